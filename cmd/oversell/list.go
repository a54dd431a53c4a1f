package main

import (
	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/reports"
)

func listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [SECTION [NAME…]]",
		Short: "List scenarios, variants, faults and properties",
		Long: `List everything, or one section: scenarios, locks, sales, queues, ids,
dispatches, faults or properties.

A section is an overview: what several variants share, such as a flaw, appears once below
the table. With names, list shows these in full: source, promises, needs, and each flaw
with its reason.`,
		Example: `  oversell list
  oversell list locks
  oversell list locks php-lock-printed redlock
  oversell list faults failover
  oversell list locks --json`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return reports.Sections, cobra.ShellCompDirectiveNoFileComp
			}
			c, _ := campaign.Catalogue().Only(args[0])
			return c.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			c := campaign.Catalogue()
			if len(args) > 0 {
				c, err = c.Only(args[0])
			}
			if err == nil && len(args) > 1 {
				c, err = c.Named(args[1:]...)
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				return printing(reports.WriteJSON(cmd.OutOrStdout(), c))
			case len(args) > 1:
				return printing(terminal(cmd).CatalogueDetails(c))
			}
			return printing(terminal(cmd).Catalogue(c))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}
