package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/reports/text"
	"oversell/variant"
)

// helpWidth returns the width of help text: that of its output, up to a readable maximum.
func helpWidth(stdout io.Writer) int {
	width := widthOf(stdout, os.Getenv("COLUMNS"))
	if width == 0 || width > text.DefaultWidth {
		return text.DefaultWidth
	}
	return width
}

// setUpHelp makes all commands fold their help to a width, and commands with subcommands refuse unknown ones.
func setUpHelp(root *cobra.Command, width int) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", fmt.Sprintf("Flags.FlagUsagesWrapped %d", width)))
	each(root, func(cmd *cobra.Command) {
		cmd.Long = foldedHelp(cmd.Long, width)
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args = unknownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		if cmd.Name() == "help" {
			cmd.Run = nil
			cmd.RunE = help
		}
	})
}

// each calls f for a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, below := range cmd.Commands() {
		each(below, f)
	}
}

// unknownCommand refuses arguments of a command that takes only subcommands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() || below.Name() == "help" {
			names = append(names, below.Name())
		}
	}
	if near := variant.Nearest(args[0], names); len(near) > 0 {
		return fmt.Errorf("unknown command %q for %q: did you mean %s?", args[0], cmd.CommandPath(), strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q for %q: it is one of %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
}

// help prints the help of the command that the arguments name.
func help(cmd *cobra.Command, args []string) error {
	of, rest, err := cmd.Root().Find(args)
	if of.HasSubCommands() && len(rest) > 0 {
		return unknownCommand(of, rest)
	}
	if err != nil {
		return err
	}
	of.InitDefaultHelpFlag()
	return of.Help()
}

// foldedHelp folds paragraphs that are too wide. Indented lines stay as they are.
func foldedHelp(long string, width int) string {
	paragraphs := strings.Split(long, "\n\n")
	for i, p := range paragraphs {
		if fits(p, width) || strings.HasPrefix(p, "\t") || strings.HasPrefix(p, " ") || strings.Contains(p, "\n\t") || strings.Contains(p, "\n ") {
			continue
		}
		paragraphs[i] = strings.Join(reports.Folded(phrase.OneLine(p), width), "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

// fits reports whether no line of a text is wider than width.
func fits(text string, width int) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if reports.Width(line) > width {
			return false
		}
	}
	return true
}
