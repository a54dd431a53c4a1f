// Package page draws the documents of package reports as HTML pages, each of which
// stands by itself and loads nothing from anywhere.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"oversell/internal/printable"
)

// The charts are SVG of our own: of the modules for Go, gonum/plot writes pictures
// whose colours and sizes are fixed (no dark mode, no telephone, nothing on hover),
// and go-echarts writes pages that fetch a script from the network and draw on a
// canvas, which a screen reader cannot see.

//go:embed *.tmpl *.css page.js
var pageFiles embed.FS

// Mark stands in the head of every page and drawing, by which it is known as one of this
// program's.
const Mark = `name="generator" content="oversell"`

// frame is what all pages have round what they tell: they stand by themselves, and
// load nothing from anywhere.
type frame struct {
	Title  string
	Style  template.CSS
	Script template.JS
	// Policy is the page's own rule of what it may do: its style, the one script
	// whose hash it states, and nothing else.
	Policy template.HTMLAttr
}

// framed is the frame of a page with this title.
func framed(title string) (frame, error) {
	css, err := style("colours.css", "diagram.css", "page.css")
	if err != nil {
		return frame{}, err
	}
	f := frame{Title: title, Style: css}
	js, err := pageFiles.ReadFile("page.js")
	if err != nil {
		return frame{}, err
	}
	sum := sha256.Sum256(js)
	f.Script = template.JS(js)
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	f.Policy = template.HTMLAttr(`content="` + policy + `"`)
	return f, nil
}

// writeFramed is writePage for a page that lacks only its frame.
func writeFramed(w io.Writer, name, title string, to *frame, page any) (err error) {
	if *to, err = framed(title); err != nil {
		return err
	}
	return writePage(w, name, page)
}

// style is what style sheets say together.
func style(names ...string) (template.CSS, error) {
	var all template.CSS
	for _, name := range names {
		css, err := pageFiles.ReadFile(name)
		if err != nil {
			return "", err
		}
		all += template.CSS(css)
	}
	return all, nil
}

// writePage writes the page of a template, with what it shows, in which every text is
// printable.
func writePage(w io.Writer, name string, data any) error {
	t, err := template.ParseFS(pageFiles, "*.tmpl")
	if err == nil {
		err = t.ExecuteTemplate(w, name, printable.Of(data))
	}
	if err != nil {
		return fmt.Errorf("the page %s: %w", name, err)
	}
	return nil
}
