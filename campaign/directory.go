package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"oversell/checker"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// The files of a run directory.
const (
	historyFile = "history.bin"
	jsonlFile   = "history.jsonl"
	runFile     = "run.json"
	verdictFile = "verdict.json"
	hgrmFile    = "latency.hgrm" // of the scenario's main operation
	pictureFile = "violation.html"
	pageFile    = "report.html"
)

// runInfo is run.json: what was run, readable without this program.
type runInfo struct {
	Header  history.Header   `json:"header"`
	Trailer *history.Trailer `json:"trailer"`
	Ops     int              `json:"operations"`
}

// file judges the history in dir and writes everything else beside it.
func file(dir string, jsonl bool) (*Judged, error) {
	h, err := history.Read(filepath.Join(dir, historyFile))
	if err != nil {
		return nil, err
	}
	j := Judge(h)
	r, lat := j.Run, j.Latencies
	errs := []error{
		write(dir, runFile, func(w io.Writer) error { return reports.WriteJSON(w, runInfo{h.Header, h.Trailer, len(h.Ops)}) }),
		write(dir, verdictFile, func(w io.Writer) error { return reports.WriteJSON(w, r) }),
	}
	for i, kind := range lat.Kinds() {
		name := "latency-" + kind.String() + ".hgrm"
		if i == main(lat.Kinds()) {
			name = hgrmFile
		}
		errs = append(errs, write(dir, name, func(w io.Writer) error { return lat.WriteHGRM(w, kind) }))
	}
	if jsonl {
		errs = append(errs, write(dir, jsonlFile, func(w io.Writer) error { return history.WriteJSONL(w, h) }))
	}
	errs = append(errs, picture(dir, h, j.Verdicts))
	errs = append(errs, write(dir, pageFile, func(w io.Writer) error { return pageOf(w, dir, dir, h, j) }))
	return &j, errors.Join(errs...)
}

// main is the index of the operation that the run is about: buying if
// anything is bought, otherwise acquiring.
func main(kinds []history.Kind) int {
	at := 0
	for i, k := range kinds {
		if k == history.Buy {
			at = i
		}
	}
	return at
}

// picture draws the window round the first broken promise, of a lock or a sale,
// that has a witness. Of the other objects there are no pictures.
func picture(dir string, h *history.History, vs []checker.Verdict) error {
	for _, v := range vs {
		drawn := v.Of == variant.Lock || v.Of == variant.Sale
		if v.Result != checker.Violated || len(v.Witness) == 0 || !drawn || !h.Header.Promised(v.Of, v.Property) {
			continue
		}
		return write(dir, pictureFile, func(w io.Writer) error { return checker.Picture(w, h, v) })
	}
	return nil
}

func write(dir, name string, content func(io.Writer) error) error {
	var b bytes.Buffer
	if err := content(&b); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".part", b.Bytes(), 0o644); err != nil {
		os.Remove(path + ".part")
		return err
	}
	return os.Rename(path+".part", path)
}

// ErrNoHistory says that a path leads to no history.
var ErrNoHistory = errors.New("no history")

// Check judges saved histories again: each path is a history file, a run
// directory, or a directory of run directories.
func Check(paths ...string) (reports.Document, error) {
	d := reports.Document{Schema: reports.Schema, Runs: []reports.Run{}}
	for _, path := range paths {
		files, err := historiesIn(path)
		if err != nil {
			return d, err
		}
		for _, f := range files {
			h, err := history.Read(f)
			if err != nil {
				return d, err
			}
			d.Runs = append(d.Runs, Judge(h).Run)
		}
	}
	return d, nil
}

func historiesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	for _, pattern := range []string{historyFile, filepath.Join("*", historyFile)} {
		if found, _ := filepath.Glob(filepath.Join(globEscape(path), pattern)); len(found) > 0 {
			return found, nil // sorted
		}
	}
	return nil, fmt.Errorf("%w: %s holds no %s, nor do the directories in it", ErrNoHistory, path, historyFile)
}

// globEscape makes a path match itself.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
