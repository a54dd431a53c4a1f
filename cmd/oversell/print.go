package main

import (
	"fmt"
	"io"

	"oversell/internal/printable"
)

// tellf prints as fmt.Fprintf does, with every text among the arguments printable:
// names of files, errors of servers, sentences about histories.
func tellf(w io.Writer, format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			a = err.Error()
		}
		args[i] = printable.Of(a)
	}
	fmt.Fprintf(w, format, args...) // a terminal that is gone is no reason to end; of stdout, output remembers it
}
