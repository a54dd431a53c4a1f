package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"oversell/internal/printable"
)

// view keeps a few lines at the end of a terminal up to date, while other lines scroll past above. It is not safe
// for concurrent use.
//
// It changes no terminal mode: the cursor stays visible at the start of the line below the view, and no line is as
// wide as the terminal. So nothing needs restoring, however the program ends, even by kill -9. Each update is one
// write, which overwrites before it erases and so does not flicker.
//
// No library at hand fits: progressbar and mpb draw bars, and bubbletea and tcell take over the terminal and its
// signals.
type view struct {
	w      io.Writer
	size   func() (width, height int)
	lines  []string // on the screen now
	widths []int    // their widths
	wide   int      // width of the terminal when they were drawn
}

// sizeOf asks a terminal for its size.
func sizeOf(f *os.File) func() (int, int) {
	return func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
}

// draw replaces the lines; lines that do not fit are dropped.
func (v *view) draw(lines []string) {
	var b bytes.Buffer
	v.up(&b)
	v.put(&b, lines)
	_, _ = v.w.Write(b.Bytes()) // a closed terminal does not end a run
}

// above prints a text above the view.
func (v *view) above(text string) {
	width, _ := v.size()
	var b bytes.Buffer
	v.up(&b)
	for _, line := range wrap(printable.Text(text), width-1, "      ") {
		b.WriteString(line + "\x1b[K\n")
	}
	v.put(&b, v.lines)
	_, _ = v.w.Write(b.Bytes())
}

// clear removes the view.
func (v *view) clear() {
	if len(v.lines) > 0 {
		v.draw(nil)
	}
}

// up moves the cursor to the start of the view. A terminal that has become narrower has wrapped its lines.
func (v *view) up(b *bytes.Buffer) {
	width, _ := v.size()
	rows := 0
	for _, w := range v.widths {
		rows += max(1, (w+width-1)/width)
	}
	b.WriteString("\r")
	if rows > 0 {
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
	if width != v.wide { // or the terminal would remember where it wrapped lines
		b.WriteString("\x1b[J")
	}
	v.wide = width
}

// put writes the view's lines, and erases the rest of earlier ones.
func (v *view) put(b *bytes.Buffer, lines []string) {
	width, height := v.size()
	lines = lines[:min(len(lines), height-1)]
	v.widths = v.widths[:0]
	for _, line := range lines {
		line = cut(line, width-1)
		v.widths = append(v.widths, visible(line))
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	v.lines = lines
}

// The styles of a line. Only whole lines are styled.
const (
	plainly = ""
	dimly   = "\x1b[2m"
	loudly  = "\x1b[1;31m"
	asUsual = "\x1b[0m"
)

// styled returns a line in a style.
func styled(style, line string) string {
	if style == plainly {
		return line
	}
	return style + line + asUsual
}

// bare splits a line into its style and its text.
func bare(line string) (style, text string) {
	for _, style := range []string{dimly, loudly} {
		if text, ok := strings.CutPrefix(line, style); ok {
			return style, strings.TrimSuffix(text, asUsual)
		}
	}
	return plainly, line
}

// visible returns the number of columns that a line takes.
func visible(line string) int {
	_, text := bare(line)
	return uniseg.StringWidth(text)
}

// cut shortens a line to a width, and marks the cut.
func cut(line string, width int) string {
	style, text := bare(line)
	if uniseg.StringWidth(text) <= width {
		return line
	}
	if width <= 0 {
		return ""
	}
	return styled(style, head(text, width-1)+"~")
}

// head returns the beginning of a text that fits.
func head(text string, width int) string {
	end := 0
	for g := uniseg.NewGraphemes(text); g.Next() && g.Width() <= width; {
		width -= g.Width()
		_, end = g.Positions()
	}
	return text[:end]
}

// wrap breaks a text into lines of a width, at spaces if possible; all but the first are indented.
func wrap(text string, width int, indent string) (lines []string) {
	if width <= 2*len(indent) {
		indent = ""
	}
	line, begun := "", false
	for _, word := range strings.SplitAfter(text, " ") {
		if begun && uniseg.StringWidth(line+strings.TrimRight(word, " ")) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line, begun = indent, false
		}
		for uniseg.StringWidth(line+strings.TrimRight(word, " ")) > width { // a word longer than a line
			part := head(line+word, width)
			if len(part) <= len(line) {
				break // not even one character fits
			}
			lines = append(lines, part)
			word, line = (line + word)[len(part):], indent
		}
		line, begun = line+word, true
	}
	return append(lines, strings.TrimRight(line, " "))
}
