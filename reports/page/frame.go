// Package page renders the documents of package reports as self-contained HTML pages, which load nothing.
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

// The charts are our own SVG. Of the Go modules, gonum/plot writes images with fixed colours and sizes (no dark
// mode, no phones, nothing on hover), and go-echarts writes pages that fetch a script from the network and draw on
// a canvas, which a screen reader cannot read.

//go:embed *.tmpl *.css page.js
var pageFiles embed.FS

// Mark is in the head of every page and drawing, and identifies it as one of this program's.
const Mark = `name="generator" content="oversell"`

// frame is what all pages have in common: they are self-contained, and load nothing.
type frame struct {
	Title  string
	Style  template.CSS
	Script template.JS
	// Policy is the page's content security policy: it allows its style, the one script with the given hash, and
	// nothing else.
	Policy template.HTMLAttr
}

// framed returns the frame of a page with this title.
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

// writePage executes a template with data whose texts are made printable.
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
