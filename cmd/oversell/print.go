package main

import (
	"fmt"
	"io"

	"oversell/internal/printable"
)

// tellf is fmt.Fprintf with all text arguments made printable: file names, server errors, sentences about
// histories.
func tellf(w io.Writer, format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			a = err.Error()
		}
		args[i] = printable.Of(a)
	}
	fmt.Fprintf(w, format, args...) // a closed terminal does not end the program; output remembers errors of stdout
}
