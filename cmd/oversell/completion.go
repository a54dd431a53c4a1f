package main

import (
	"strings"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/claims"
	"oversell/load"
	"oversell/reports"
	"oversell/variant"
)

// registerCompletions registers shell completions for the flags and arguments of all commands.
func registerCompletions(root *cobra.Command) {
	c := campaign.Catalogue()
	values := map[string][]cobra.Completion{
		"target":   {"auto", "embedded", "process", "container", "redis://"},
		"topology": {"single", "replica", "sentinel", "cluster", "masters:5"},
	}
	for _, of := range variant.Objects { // its flag is called like the object
		values[string(of)] = variants(*c.Variants(of))
	}
	for _, s := range c.Scenarios {
		values["scenario"] = append(values["scenario"], cobra.CompletionWithDesc(s.Name, s.Summary))
	}
	values["fault"] = sentences(c.Faults)
	for _, w := range load.Waitings {
		values["waiting"] = append(values["waiting"], string(w))
	}
	for _, cmd := range root.Commands() {
		for flag, all := range values {
			if cmd.Flags().Lookup(flag) != nil {
				// The flag exists and has no completions yet, so this cannot fail.
				_ = cmd.RegisterFlagCompletionFunc(flag, listed(all))
			}
		}
		switch cmd.Name() {
		case "gate":
			cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
		case "claims":
			for _, claim := range claims.All {
				cmd.ValidArgs = append(cmd.ValidArgs, cobra.CompletionWithDesc(claim.Number, claim.Words))
			}
		}
	}
}

func variants(all []variant.Described) (names []cobra.Completion) {
	for _, v := range all {
		names = append(names, cobra.CompletionWithDesc(v.Name, v.Summary))
	}
	return names
}

// sentences returns the first words of fault sentences. Several faults share one, such as freeze of a client and of
// a node.
func sentences(all []reports.FaultInfo) (words []cobra.Completion) {
	syntax := map[string][]string{}
	var order []string
	for _, f := range all {
		word, _, _ := strings.Cut(f.Syntax, " ")
		if syntax[word] == nil {
			order = append(order, word)
		}
		syntax[word] = append(syntax[word], f.Syntax)
	}
	for _, word := range order {
		words = append(words, cobra.CompletionWithDesc(word, strings.Join(syntax[word], "; or ")))
	}
	return words
}

// listed completes a value, or the last one of a comma-separated list.
func listed(all []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (matching []cobra.Completion, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		for _, value := range all {
			if strings.HasPrefix(before+value, typed) {
				matching = append(matching, before+value)
			}
		}
		return matching, cobra.ShellCompDirectiveNoFileComp
	}
}
