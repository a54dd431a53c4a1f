package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/server"
	"oversell/system"
)

func systemCommand(code *int) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "system",
		Short: "Try a lock, sale or queue outside of oversell that a file describes",
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
		Short: "Try each operation of a system, legal and illegal, and say what is missing",
		Long: `Try each operation of a system, legal and illegal, and say what is missing.

The file is that of oversell run --system; docs/systems.md explains it and the
protocol. The exit code is 0 when every answer is one that a run can use, 1 when one
is not, 2 when the file is wrong, and 5 when there is no server.`,
		Example: `  oversell system check examples/python/lock.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			findings, err := campaign.CheckSystem(cmd.Context(), args[0], spec)
			if err != nil {
				return surroundings(err)
			}
			*code = reports.ExitPass
			for _, f := range findings {
				if !f.OK && !f.Optional {
					*code = reports.ExitViolated
				}
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(struct {
					Schema   string           `json:"schema"`
					Findings []system.Finding `json:"findings"`
				}{"oversell-system-check/1", findings})
			}
			for _, f := range findings {
				tellf(cmd.OutOrStdout(), "%s\n", findingLine(f))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.Target, "target", "auto", "auto, embedded, process, container, or redis://[user:password@]host:port[/db]")
	campaign.BindAddress(f, &spec)
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// findingLine is a finding on a line.
func findingLine(f system.Finding) string {
	switch {
	case f.OK:
		return fmt.Sprintf("ok       %s: %s", f.Tried, f.Got)
	case f.Optional:
		return fmt.Sprintf("without  %s: %s", f.Tried, printable.Text(f.Got))
	}
	return fmt.Sprintf("WRONG    %s: want %s, got: %s", f.Tried, f.Want, printable.Text(f.Got))
}
