package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/reports/text"
	"oversell/server"
	"oversell/system"
)

func systemCommand(code *int) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "system",
		Short: "Check a lock, sale, queue or id generator of your own that a file describes",
	}
	cmd.AddCommand(systemCheckCommand(code))
	return cmd
}

func systemCheckCommand(code *int) *cobra.Command {
	var (
		spec   server.Spec
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Try each operation of a system, and report what is missing",
		Long: `Try each operation of a system, and report what is missing.

The file is the one for oversell run --system; docs/systems.md explains it and the
protocol. The exit code is 0 when a run can use every answer, 1 when it cannot use
one, 2 when the file is wrong, 3 when the check was stopped early, and 5 when there is
no server, or the system cannot start.`,
		Example: `  oversell system check examples/python/lock.yaml`,
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := campaign.ReadSystem(args[0], spec)
			if err != nil {
				return err
			}
			findings, err := campaign.CheckSystem(cmd.Context(), s, spec)
			stopped := cmd.Context().Err() != nil
			if err != nil && len(findings) == 0 && !stopped {
				return whileRunning(err)
			}
			for _, f := range findings {
				if !f.OK && !f.Optional {
					*code = reports.ExitViolated
				}
			}
			if stopped {
				*code = interrupted(*code)
				tellf(cmd.ErrOrStderr(), "stopped before everything was tried: %s answered\n", phrase.Count(len(findings), "call"))
			}
			return errors.Join(showFindings(cmd, findings, asJSON), whileRunning(err))
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.Target, "target", "auto", "auto, embedded, process, container, or redis://[user:password@]host:port[/db]")
	campaign.BindAddress(f, &spec)
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// showFindings prints the result of a check.
func showFindings(cmd *cobra.Command, findings []system.Finding, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return printing(encoder.Encode(struct {
			Schema   string           `json:"schema"`
			Findings []system.Finding `json:"findings"`
		}{"oversell-system-check/1", findings}))
	}
	width := cmp.Or(terminal(cmd).Width, text.DefaultWidth)
	for _, f := range findings {
		word, said := findingWords(f)
		for _, line := range reports.Folded(printable.Text(said), max(width-len(word), len(word))) {
			tellf(cmd.OutOrStdout(), "%s%s\n", word, line)
			word = strings.Repeat(" ", len(word))
		}
	}
	return nil
}

// findingWords returns the word that begins the line of a finding, and its text.
func findingWords(f system.Finding) (word, said string) {
	switch {
	case f.OK:
		return "ok       ", fmt.Sprintf("%s: %s", f.Tried, f.Got)
	case f.Optional:
		return "without  ", fmt.Sprintf("%s: %s", f.Tried, f.Got)
	}
	return "WRONG    ", fmt.Sprintf("%s: want %s, got: %s", f.Tried, f.Want, f.Got)
}
