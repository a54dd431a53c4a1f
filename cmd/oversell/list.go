package main

import (
	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/reports"
)

func listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List scenarios, locks and sales with their promises and flaws, and the properties",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := campaign.Catalogue()
			if asJSON {
				return printing(reports.WriteJSON(cmd.OutOrStdout(), c))
			}
			return printing(reports.Terminal{W: cmd.OutOrStdout()}.Catalogue(c))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}
