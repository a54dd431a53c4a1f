package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/foreign"
	"oversell/reports"
)

func checkCommand(code *int) *cobra.Command {
	var (
		asJSON bool
		how    campaign.Reading
	)
	cmd := &cobra.Command{
		Use:   "check DIR|FILE…",
		Short: "Judge saved histories again",
		Long: `Judge saved histories again: history files (binary or JSON lines), run
directories, or directories of run directories. The verdict of a history is the
same as when it was recorded, on every machine.

A history that is not as written (a record was deleted, doubled, moved or
altered, or its digest differs from the one in run.json) is damaged: the verdict
is inconclusive. A history that contradicts itself, such as
one with two grants of a lock under one identity, is refused; the error names the line.

With --format jepsen-edn or porcupine-log, files are histories that Jepsen recorded: EDN,
or the lines of its older logs. They are checked against a model, such as a register, a
mutex or a queue, which --model names or their operations suggest.
With --map, files are production logs; the map assigns columns to fields, and values to
the outcomes ok, refused and unknown. docs/history.md explains both. Errors in a file
name its line, and the column if it is known.

A file that is refused, or is not a history, does not stop the others from being judged.
The exit code is 1 when a promise was broken, 3 when a history decided nothing, 2 when
a file could not be judged and all others passed, and 5 when the result could not be
printed; of several, 5 counts first, then 1, 3 and 2.`,
		Example: `  oversell check oversell-runs/20260102-150405
  oversell check --format jepsen-edn store/latest/history.edn
  oversell check --map orders.yaml orders.csv
  oversell check --export history.edn oversell-runs/20260102-150405/01-seckill-fenced-fenced`,
		Args: between(1, -1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if how.TimeLimit == 0 {
				return errors.New("--time-limit 0s: want a positive time")
			}
			defer collectOften()()
			d, err := campaign.CheckAs(cmd.Context(), how, paths...)
			switch {
			case errors.Is(err, campaign.ErrStopped):
				*code = interrupted(d.ExitCode())
			case err != nil && len(d.Runs) == 0:
				return err
			default:
				*code = d.ExitCode()
			}
			for _, note := range campaign.RenamedIn(d) {
				tellf(cmd.ErrOrStderr(), "note: %s\n", note)
			}
			return errors.Join(show(cmd, d, asJSON), err)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	f.StringVar(&how.Format, "format", "", "format of the files: "+strings.Join(campaign.Formats, ", ")+" (default: oversell's own, binary or JSON lines)")
	f.StringVar(&how.Map, "map", "", "file that maps the columns of production logs, CSV or JSON lines, to fields")
	f.StringVar(&how.Model, "model", "", "model of a history of Jepsen: "+strings.Join(foreign.Names(), ", ")+" (default: chosen by its operations)")
	f.StringVar(&how.Initial, "initial", "", "initial value of a register, a multi-register or a counter, in EDN (default: nil, or 0)")
	f.StringVar(&how.Keys, "keys", "", "whether values [key value] in a history of Jepsen belong to independent objects: "+strings.Join(foreign.AllKeys, ", ")+" (default: auto, see docs/history.md)")
	f.DurationVar(&how.TimeLimit, "time-limit", 30*time.Second, "how long the search for a legal order of a history of Jepsen may take")
	f.StringVar(&how.Export, "export", "", "also write the history to a file: FILE.edn in Jepsen's format, FILE.jsonl as JSON lines")
	return cmd
}

// collectOften makes garbage collections more frequent: garbage is at most a fifth of the heap, instead of a half (GOGC
// is 25 instead of 100). The returned function undoes that. Collections are cheap, because most of the memory of
// monitors has no pointers. If GOGC is set in the environment, it applies instead.
func collectOften() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	const percent = 25
	old := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(old) }
}

// show prints a document as text or as JSON.
func show(cmd *cobra.Command, d reports.Document, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return printing(reports.WriteJSON(out, d))
	}
	t := terminal(cmd)
	if err := t.Table(d); err != nil {
		return printing(err)
	}
	return printing(t.Explain(d))
}

// printing wraps an error of printing as an environment error.
func printing(err error) error {
	if err == nil {
		return nil
	}
	return environment{fmt.Errorf("print the result: %w", err)}
}
