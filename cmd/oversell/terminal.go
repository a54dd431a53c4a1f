package main

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oversell/reports/text"
)

// terminal draws documents on a command's output, as wide as the output is, and in colour if it supports colour.
func terminal(cmd *cobra.Command) text.Terminal {
	out := cmd.OutOrStdout()
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
	return text.Terminal{W: cmd.OutOrStdout(), Color: isTerminal(out), Width: widthOf(out, os.Getenv("COLUMNS"))}
}

// widthOf returns the number of columns of an output: $COLUMNS, or the terminal's width; 0 if it is not a terminal.
func widthOf(w io.Writer, columns string) int {
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		width, _ := sizeOf(f)()
		return width
	}
	return 0
}
