package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oversell/campaign/judging"
	"oversell/checker"
	"oversell/checker/linear"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// HistoryFile is the name of the history in a run directory. ComparisonFile is the name of a comparison in the
// directory that holds its run directories.
const (
	HistoryFile    = "history.bin"
	ComparisonFile = "comparison.json"
)

// The other files of a run directory.
const (
	jsonlFile   = "history.jsonl"
	runFile     = "run.json"
	verdictFile = "verdict.json"
	hgrmFile    = "latency.hgrm" // of the scenario's main operation
	pictureFile = "violation.html"
	pageFile    = "report.html"
	// differenceFile is the page about what changed from this run to another.
	differenceFile = "difference.html"
)

// runInfo is run.json: what was run, readable without this program.
type runInfo struct {
	Header  history.Header   `json:"header"`
	Trailer *history.Trailer `json:"trailer"`
	Ops     int              `json:"operations"`
	// SHA256 is the digest of the history file.
	SHA256 string `json:"history_sha256"`
}

// file judges the history that a run with this configuration left in dir, and writes all other files of the run directory.
func file(dir string, jsonl bool, c scenarios.Config) (*judging.Result, error) {
	h, err := history.Open(filepath.Join(dir, HistoryFile))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if h.Header.Seed != c.Seed || h.Header.Scenario != c.Scenario.Name {
		h.Damage(fmt.Sprintf("damaged: it is of a run of %s with seed %d, and was put in the place of one of %s with seed %d", h.Header.Scenario, h.Header.Seed, c.Scenario.Name, c.Seed))
	}
	j := judging.Judge(h)
	r, lat := j.Run, j.Latencies
	errs := []error{
		WriteFile(dir, runFile, func(w io.Writer) error {
			return reports.WriteJSON(w, runInfo{h.Header, h.Trailer, h.Len(), h.SHA256})
		}),
		WriteFile(dir, verdictFile, func(w io.Writer) error { return reports.WriteJSON(w, r) }),
	}
	for i, kind := range lat.Kinds() {
		name := "latency-" + kind.String() + ".hgrm"
		if i == main(lat.Kinds()) {
			name = hgrmFile
		}
		errs = append(errs, WriteFile(dir, name, func(w io.Writer) error { return lat.WriteHGRM(w, kind) }))
	}
	if jsonl {
		errs = append(errs, WriteFile(dir, jsonlFile, func(w io.Writer) error { return history.WriteJSONL(w, h) }))
	}
	errs = append(errs, picture(dir, h, j.Verdicts))
	errs = append(errs, WriteFile(dir, pageFile, func(w io.Writer) error { return pageOf(w, dir, dir, h, j) }))
	return &j, errors.Join(append(errs, h.Err())...)
}

// main returns the index of the run's main operation: buying if anything is bought, otherwise acquiring.
func main(kinds []history.Kind) int {
	at := 0
	for i, k := range kinds {
		if k == history.Buy {
			at = i
		}
	}
	return at
}

// picture draws the operations around the first violation of a lock or a sale that has a witness. Other objects
// have no pictures.
func picture(dir string, h *history.History, vs []checker.Verdict) error {
	for _, v := range vs {
		drawn := v.Of == variant.Lock || v.Of == variant.Sale
		if v.Result != checker.Violated || len(v.Witness) == 0 || !drawn || !h.Header.Promised(v.Of, v.Property) {
			continue
		}
		err := WriteFile(dir, pictureFile, func(w io.Writer) error { return linear.Picture(w, h, v) })
		if !errors.Is(err, linear.ErrNothingToDraw) {
			return err
		}
	}
	return nil
}

// WriteFile writes a file of this name in dir.
func WriteFile(dir, name string, content func(io.Writer) error) error {
	if err := reports.ToFile(filepath.Join(dir, name), content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// errNoHistory means that a path leads to no history.
var errNoHistory = errors.New("no history")

// ErrStopped means that judging saved histories was interrupted.
var ErrStopped = errors.New("stopped")

// files is the set of files seen, under any path.
type files []os.FileInfo

// before reports whether the file was seen before, and adds it.
func (s *files) before(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(*s, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
		return true
	}
	*s = append(*s, info)
	return false
}

// ordinary returns an error if a path is not a regular file: reading a pipe could block for ever.
func ordinary(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// Check judges saved histories again, each once: a path is a history file, a run directory, or a directory of run
// directories. One that cannot be judged does not stop the others: the error joins one error for each. When ctx
// ends, it returns at once the histories judged so far, and ErrStopped.
func Check(ctx context.Context, paths ...string) (reports.Document, error) {
	d := reports.Document{Schema: reports.Schema, Runs: []reports.Run{}}
	var errs []error
	var seen files
	for _, path := range paths {
		files, err := historiesIn(path)
		if err != nil {
			errs = append(errs, err)
		}
		for _, f := range files {
			if seen.before(f) {
				continue
			}
			r, err := checked(ctx, f)
			switch {
			case err == nil:
				d.Runs = append(d.Runs, r)
			case errors.Is(err, ErrStopped):
				return d, errors.Join(append(errs, err)...)
			default:
				errs = append(errs, err)
			}
		}
	}
	return d, errors.Join(errs...)
}

// checked judges one history, unless ctx ends first.
func checked(ctx context.Context, path string) (reports.Run, error) {
	return unlessStopped(ctx, path, func(path string) (reports.Run, error) {
		run, err := judged(history.OpenUnchecked, path)
		if errors.Is(err, history.ErrUnchecked) {
			run, err = judged(history.Open, path)
		}
		return run, err
	})
}

// judged opens a history and judges it.
func judged(open func(string) (*history.History, error), path string) (reports.Run, error) {
	h, err := withItsRun(open, path)
	switch {
	case errors.Is(err, history.ErrDamaged):
		return unreadable(err), nil
	case err != nil:
		return reports.Run{}, err
	}
	defer h.Close()
	run := judging.Judge(h).Run
	return run, h.Err() // of reading the operations for the judgement
}

// unlessStopped judges a file, unless ctx ends first. The judging then continues in the background and its result
// is dropped; it only reads.
func unlessStopped(ctx context.Context, path string, judge func(string) (reports.Run, error)) (reports.Run, error) {
	type result struct {
		run reports.Run
		err error
	}
	done := make(chan result, 1)
	go func() {
		run, err := judge(path)
		done <- result{run, err}
	}()
	select {
	case r := <-done:
		return r.run, r.err
	case <-ctx.Done():
		return reports.Run{}, fmt.Errorf("check %s: %w", path, ErrStopped)
	}
}

// read opens a saved history, with old names replaced by current ones; the caller closes it. A history in a run
// directory must match the digest in its run.json.
func read(path string) (*history.History, error) { return withItsRun(history.Open, path) }

// readWhole is like read, with all operations in memory.
func readWhole(path string) (*history.History, error) { return withItsRun(history.Read, path) }

// withItsRun opens a history and compares it with its run.json.
func withItsRun(open func(string) (*history.History, error), path string) (*history.History, error) {
	h, err := open(path)
	if err != nil {
		return h, err
	}
	if note := Renamed(h.Header.Lock); note != "" {
		h.Header.Lock = lockimpl.CurrentName(h.Header.Lock)
		h.Remarks = append(h.Remarks, note)
	}
	if filepath.Base(path) != HistoryFile {
		return h, nil
	}
	beside := filepath.Join(filepath.Dir(path), runFile)
	if err := ordinary(beside); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	var info runInfo
	text, err := os.ReadFile(beside)
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.Remarks = append(h.Remarks, "there is no "+runFile+" beside the history: it is unknown whether the history is the recorded one")
	case err != nil:
		h.Damage(fmt.Sprintf("damaged: its %s cannot be read: %v", runFile, err))
	case info.SHA256 == "":
		h.Damage("damaged: its " + runFile + " holds no digest of the history")
	case !h.Is(info.SHA256):
		h.Damage("damaged: its " + runFile + " was written for another history, or the history was altered since")
	}
	return h, nil
}

// unreadable returns the report of a run whose history is damaged.
func unreadable(err error) reports.Run {
	return reports.Run{Properties: []reports.Property{}, Faults: []reports.Fault{}, Verdict: reports.Inconclusive, Why: err.Error(), Cut: err.Error()}
}

// historiesIn finds the histories at a path: a file, a run directory, or up to two directories above those. It also
// returns those it found if some are refused, or are missing from their run directories. A path that is itself a history
// may be a pipe.
func historiesIn(path string) (found []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoHistory, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var errs []error
	for _, below := range []string{"", "*", filepath.Join("*", "*")} {
		in := filepath.Join(GlobEscape(path), below)
		histories, _ := filepath.Glob(filepath.Join(in, HistoryFile)) // sorted
		for _, f := range histories {
			if err := ordinary(f); err != nil {
				errs = append(errs, err)
				continue
			}
			found = append(found, f)
		}
		runs, _ := filepath.Glob(filepath.Join(in, runFile))
		for _, f := range runs {
			if lost := filepath.Join(filepath.Dir(f), HistoryFile); !Exists(lost) {
				errs = append(errs, fmt.Errorf("%s is missing: %s is beside it", lost, runFile))
			}
		}
	}
	if len(found) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("%w: %s holds no %s, nor do the directories in it", errNoHistory, path, HistoryFile)
	}
	return found, errors.Join(errs...)
}

// GlobEscape escapes a path so that a glob pattern matches only it.
func GlobEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
