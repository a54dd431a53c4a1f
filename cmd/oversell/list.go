package main

import (
	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/reports"
	"oversell/reports/text"
)

func listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [SECTION]",
		Short: "List scenarios, variants with their promises and flaws, faults, and properties",
		Long: `List what there is, or one section of it: scenarios, locks, sales, queues, ids,
dispatches, faults or properties.`,
		Example: `  oversell list
  oversell list faults
  oversell list locks --json`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: reports.Sections,
		RunE: func(cmd *cobra.Command, section []string) (err error) {
			c := campaign.Catalogue()
			if len(section) > 0 {
				if c, err = c.Only(section[0]); err != nil {
					return err
				}
			}
			if asJSON {
				return printing(reports.WriteJSON(cmd.OutOrStdout(), c))
			}
			return printing(text.Terminal{W: cmd.OutOrStdout()}.Catalogue(c))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}
