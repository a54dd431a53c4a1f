package main

import (
	"errors"
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
same as when it was recorded, on every machine.

A history that is not what was written (something in it was deleted, doubled,
moved or altered, or it is not the one that its run.json was written for) is
damaged: the verdict is inconclusive. A history that contradicts itself, such as
one with two grants of a lock under one identity, is refused with its line.

A file that is refused, or is no history, does not keep the others from being judged.
The exit code is 1 when a promise was broken, 3 when a history decided nothing, 2 when
something could not be judged and all else passed, and 5 when the result could not be
printed; of several, 5 counts first, then 1, 3 and 2.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			d, err := campaign.Check(cmd.Context(), paths...)
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// show prints a document in the form that was asked for.
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

// printing marks a failure to print, which is the surroundings'.
func printing(err error) error {
	if err == nil {
		return nil
	}
	return environment{fmt.Errorf("print the result: %w", err)}
}
