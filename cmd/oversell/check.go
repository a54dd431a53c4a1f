package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/reports"
)

func checkCommand(code *int) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check DIR|FILE…",
		Short: "Judge saved histories again",
		Long: `Judge saved histories again: history files (binary or JSON lines), run
directories, or directories of run directories. The verdict of a history is the
same as when it was recorded, on every machine.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			d, err := campaign.Check(paths...)
			if err != nil {
				return err
			}
			*code = d.ExitCode()
			return show(cmd, d, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// show prints a document in the form that was asked for.
func show(cmd *cobra.Command, d reports.Document, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return printing(reports.WriteJSON(out, d))
	}
	t := reports.Terminal{W: out, Color: isTerminal(out)}
	if err := t.Table(d); err != nil {
		return printing(err)
	}
	return printing(t.Explain(d))
}

// printing marks a failure to print, which is the surroundings'.
func printing(err error) error {
	if err == nil {
		return nil
	}
	return environment{fmt.Errorf("print the result: %w", err)}
}
