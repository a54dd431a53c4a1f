package main

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"oversell/campaign"
)

func reportCommand() *cobra.Command {
	var (
		out  string
		open bool
	)
	cmd := &cobra.Command{
		Use:   "report PATH…",
		Short: "Write a page about runs, a comparison or an exploration",
		Long: `Write a page about runs, a comparison or an exploration: one self-contained HTML
file that needs no network.

Each path is a run directory, a directory of run directories, a history (binary or
JSON lines), a comparison (its directory or comparison.json), or what explore wrote
as JSON. Several become one page with a table. The page is report.html beside the
first path unless --out says otherwise; a file that is not such a page is never
overwritten. A run writes its own page into its directory.

Two runs become a page of what changed from the first to the second: verdicts,
throughput and latencies with intervals, and whether the runs are comparable at all.
It is difference.html beside the first.

With --out FILE.svg, only the sequence diagram of a search's counterexample is
written, for use in a document.`,
		Example: `  oversell report oversell-runs/20260102-150405
  oversell report before/01-seckill-lua-release-plain after/01-seckill-lua-release-plain
  oversell report trace.jsonl --out trace.html --open`,
		Args: between(1, -1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			written, err := campaign.Report(paths, out)
			if errors.Is(err, campaign.ErrUnwritten) {
				return environment{err}
			}
			if err != nil {
				return err
			}
			for _, path := range written {
				tellf(cmd.OutOrStdout(), "%s\n", path)
			}
			if !open {
				return nil
			}
			return openPage(written[0])
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file for the page, or with .svg for the diagram of a search (default: report.html beside the first path)")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}

// openers are the commands that open a file with the user's default application.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// openPage opens a page in the user's browser.
func openPage(path string) error {
	command, known := openers[runtime.GOOS]
	if !known {
		command = []string{"xdg-open"}
	}
	if err := exec.Command(command[0], append(command[1:], path)...).Run(); err != nil {
		return environment{fmt.Errorf("open %s: %w", path, err)}
	}
	return nil
}
