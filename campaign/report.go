package campaign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"oversell/campaign/judging"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/reports/page"
)

// ErrUnwritten means that a page could not be written: an environment error.
var ErrUnwritten = errors.New("write the page")

// Report writes the page about what is at paths, and returns the written files, the page first. A path is a run
// directory, a directory of run directories, a history (also as JSON lines), a comparison or its directory, or JSON
// written by explore. Several runs or searches become one page with a table; a run directory without a page gets
// its own. Two paths with one run each become a page about what changed from the first to the second.
//
// out is the page's file; empty: report.html, or difference.html for two runs, beside the first path. If it ends in
// .svg, only the sequence diagram of a search's counterexample is written. A file that is not a page of this
// program is never overwritten.
func Report(paths []string, out string) (written []string, err error) {
	if len(paths) == 0 {
		return nil, errors.New("name the input of the page: a run directory, a history, a comparison or an exploration")
	}
	var found []source
	var seen files
	for _, path := range paths {
		more, err := sourcesIn(path)
		if err != nil {
			return nil, err
		}
		for _, s := range more {
			if !seen.before(s.path) {
				found = append(found, s)
			}
		}
	}
	if len(paths) == 2 && len(found) == 1 {
		return nil, fmt.Errorf("%s and %s are the same: name two runs to see what changed, or one for its page", paths[0], paths[1])
	}
	two := len(paths) == 2 && len(found) == 2 && !slices.ContainsFunc(found, func(s source) bool { return s.shape != history.Schema })
	if out == "" {
		name := pageFile
		if two {
			name = differenceFile // keeps the first run's own page
		}
		out = filepath.Join(dirOf(paths[0]), name)
	}
	if err := ours(out); err != nil {
		return nil, err
	}
	switch {
	case filepath.Ext(out) == drawingExt:
		return []string{out}, drawing(found, out)
	case len(found) == 1:
		return []string{out}, found[0].page(out)
	case two:
		return []string{out}, difference(found[0], found[1], out)
	}
	return overview(found, out)
}

// difference writes the page about what changed from one run to another.
func difference(a, b source, out string) error {
	var in page.DifferenceInput
	var judged [2]judging.Result
	var histories [2]*history.History
	for i, s := range []source{a, b} {
		h, err := read(s.path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		defer h.Close()
		histories[i], judged[i] = h, judging.Judge(h)
		in.Runs[i] = page.DifferenceRun{History: h, Latencies: judged[i].Latencies, Name: s.named()}
		if own := filepath.Join(s.named(), pageFile); filepath.Base(s.path) == HistoryFile && Exists(own) && ours(own) == nil {
			in.Runs[i].Page = linkFrom(filepath.Dir(out), own)
		}
	}
	var err error
	if in.Difference, err = differenceOf(histories[0], histories[1], judged[0], judged[1]); err != nil {
		return err
	}
	return writeTo(out, func(w io.Writer) error { return page.Difference(w, in) })
}

// drawingExt is the extension of a diagram for use in documents.
const drawingExt = ".svg"

// drawing writes the sequence diagram of the one search in found.
func drawing(found []source, out string) error {
	var all []reports.Exploration
	for _, s := range found {
		more, err := s.explorations()
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	if len(found) != 1 || len(all) != 1 {
		return fmt.Errorf("--out %s: only a single search of explore is drawn as %s; use .html for everything else", out, drawingExt)
	}
	var b bytes.Buffer
	if err := page.Diagram(&b, all[0]); err != nil {
		return fmt.Errorf("%s: %w", found[0].path, err)
	}
	return writeTo(out, func(w io.Writer) error { _, err := b.WriteTo(w); return err })
}

// explorations returns the explorations in a file; none if the file holds something else.
func (s source) explorations() ([]reports.Exploration, error) {
	switch s.shape {
	case reports.ExplorationSchema:
		e := make([]reports.Exploration, 1)
		return e, decode(s.path, &e[0])
	case reports.ExplorationsSchema:
		var all reports.Explorations
		err := decode(s.path, &all)
		return all.Explorations, err
	}
	return nil, nil
}

// dirOf returns a directory itself, or the directory of a file.
func dirOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return filepath.Dir(path)
}

// source is an input of a page.
type source struct {
	// path is its file.
	path string
	// shape is its schema.
	shape string
}

// sourcesIn finds the sources at a path.
func sourcesIn(path string) ([]source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		s, err := recognised(path)
		return []source{s}, err
	}
	if compared := filepath.Join(path, ComparisonFile); Exists(compared) {
		s, err := recognised(compared)
		return []source{s}, err
	}
	files, err := historiesIn(path)
	if err != nil && !errors.Is(err, errNoHistory) {
		return nil, err
	}
	if err != nil {
		if files, _ = filepath.Glob(filepath.Join(GlobEscape(path), "explore-*.json")); len(files) == 0 {
			return nil, fmt.Errorf("%s holds no %s and no %s, nor do the directories in it, and no searches: name a run directory, a history, a comparison or an exploration", path, HistoryFile, ComparisonFile)
		}
	}
	var all []source
	for _, f := range files {
		s, err := recognised(f)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Exists reports whether there is a file or a directory at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Saved reports whether a directory, or one in it, has a history.
func Saved(dir string) bool {
	found, _ := historiesIn(dir)
	return len(found) > 0
}

// recognised determines what a file holds, by its first bytes or its schema.
func recognised(path string) (source, error) {
	if err := ordinary(path); err != nil { // the file is read twice
		return source{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return source{}, err
	}
	defer f.Close()
	head := make([]byte, len(historyMagic))
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return source{}, fmt.Errorf("%s is empty: there is nothing to report", path)
	}
	text := bytes.TrimPrefix(head[:n], []byte("\ufeff")) // as history.Read does
	if string(head[:n]) == historyMagic {
		return source{path, history.Schema}, nil
	}
	var what struct {
		Schema  string `json:"schema"`
		Verdict string `json:"verdict"`
	}
	whole := io.MultiReader(bytes.NewReader(text), f)
	if err == nil {
		err = json.NewDecoder(whole).Decode(&what)
	}
	switch {
	case err != nil:
		return source{}, fmt.Errorf("%s is neither a history nor JSON of this program: %w", path, err)
	case what.Schema == reports.Schema, what.Schema == "" && what.Verdict != "":
		return source{}, fmt.Errorf("%s holds verdicts, not operations: name the run directory or its %s", path, HistoryFile)
	}
	for _, known := range []string{history.Schema, reports.ComparisonSchema, reports.ExplorationSchema, reports.ExplorationsSchema} {
		if what.Schema == known {
			return source{path, known}, nil
		}
	}
	return source{}, fmt.Errorf("%s: its schema is %q, which has no page; those with one are %s, %s and %s", path, what.Schema, history.Schema, reports.ComparisonSchema, reports.ExplorationSchema)
}

// historyMagic begins a history file of any version.
const historyMagic = "OVSHIST"

// page writes the page about one source.
func (s source) page(out string) error {
	tell, err := s.tells(filepath.Dir(out))
	if err != nil {
		return err
	}
	return writeTo(out, tell)
}

// tells reads a source, and returns the function that writes its page, which will be in dir.
func (s source) tells(dir string) (func(io.Writer) error, error) {
	switch s.shape {
	case reports.ComparisonSchema:
		var c reports.Comparison
		if err := decode(s.path, &c); err != nil {
			return nil, err
		}
		away, err := filepath.Rel(dir, filepath.Dir(s.path))
		if err != nil {
			return nil, fmt.Errorf("path of the runs relative to the page: %w", err)
		}
		return func(w io.Writer) error { return page.Comparison(w, c.RelativeTo(filepath.ToSlash(away))) }, nil
	case reports.ExplorationSchema, reports.ExplorationsSchema:
		all, err := s.explorations()
		if err != nil {
			return nil, err
		}
		if len(all) == 1 {
			return func(w io.Writer) error { return page.Exploration(w, all[0], ReplayCommand(s.path)) }, nil
		}
		return func(w io.Writer) error { return page.Overview(w, page.OverviewInput{Explorations: all}) }, nil
	}
	h, err := read(s.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return func(w io.Writer) error {
		defer h.Close()
		return errors.Join(pageOf(w, s.named(), dir, h, judging.Judge(h)), h.Err())
	}, nil
}

// named returns the source as users name it: the run directory, if it is the history of one.
func (s source) named() string {
	if filepath.Base(s.path) == HistoryFile {
		return filepath.Dir(s.path)
	}
	return s.path
}

func decode(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// pageOf writes the page of a judged history at path, a run directory or a file; the page will be in dir.
func pageOf(w io.Writer, path, dir string, h *history.History, j judging.Result) error {
	in := page.RunInput{History: h, Run: j.Run, Latencies: j.Latencies, Command: commandLine(h.Header), Check: "oversell check " + phrase.ShellWord(path)}
	if picture := filepath.Join(dirOf(path), pictureFile); Exists(picture) {
		in.Picture = linkFrom(dir, picture)
	}
	return page.Run(w, in)
}

// linkFrom returns the link to a file from a page in dir; empty if there is no relative path.
func linkFrom(dir, path string) string {
	dir, err1 := filepath.Abs(dir)
	path, err2 := filepath.Abs(path)
	rel, err3 := filepath.Rel(dir, path)
	if errors.Join(err1, err2, err3) != nil {
		return ""
	}
	return (&url.URL{Path: filepath.ToSlash(rel)}).String()
}

// overview writes a page with a table of several sources, and the missing pages of runs.
func overview(found []source, out string) (written []string, err error) {
	dir := filepath.Dir(out)
	var in page.OverviewInput
	var others []string
	for _, s := range found {
		switch s.shape {
		case reports.ExplorationSchema, reports.ExplorationsSchema:
			all, err := s.explorations()
			if err != nil {
				return nil, err
			}
			in.Explorations = append(in.Explorations, all...)
		case reports.ComparisonSchema:
			return nil, fmt.Errorf("%s: a comparison has a page of its own: name nothing else beside it", s.path)
		default:
			r, page, err := s.run(dir)
			if errors.Is(err, history.ErrNoHeader) || errors.Is(err, history.ErrNotHistory) {
				in.Unreadable = append(in.Unreadable, err.Error())
				continue
			} else if err != nil {
				return nil, err
			}
			if page != "" {
				others = append(others, page)
			}
			in.Runs = append(in.Runs, r)
		}
	}
	if len(in.Runs)+len(in.Explorations) == 0 {
		return nil, errors.New(in.Unreadable[0])
	}
	return append([]string{out}, others...), writeTo(out, func(w io.Writer) error { return page.Overview(w, in) })
}

// run judges one of several runs, and writes its page if its run directory has none.
func (s source) run(dir string) (in page.OverviewRun, wrote string, err error) {
	h, err := read(s.path)
	if err != nil {
		return in, "", fmt.Errorf("%s: %w", s.path, err)
	}
	defer h.Close()
	j := judging.Judge(h)
	in = page.OverviewRun{Run: j.Run, Name: s.named()}
	if filepath.Base(s.path) != HistoryFile {
		return in, "", nil
	}
	at := filepath.Dir(s.path)
	page := filepath.Join(at, pageFile)
	if !Exists(page) {
		err := WriteFile(at, pageFile, func(w io.Writer) error { return pageOf(w, at, at, h, j) })
		if err != nil {
			return in, "", fmt.Errorf("%w: %w", ErrUnwritten, err)
		}
		wrote = page
	}
	if ours(page) == nil {
		in.Page = linkFrom(dir, page)
	}
	return in, wrote, nil
}

// writeTo writes a file completely or not at all.
func writeTo(path string, tell func(io.Writer) error) error {
	if err := WriteFile(filepath.Dir(path), filepath.Base(path), tell); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	return nil
}

// ours returns an error if a file exists and is not a page of this program.
func ours(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("--out %s is a directory: name a file in it, such as %s", path, filepath.Join(path, pageFile))
	case !info.Mode().IsRegular():
		return fmt.Errorf("--out %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 2048))
	if err != nil {
		return err
	}
	if len(head) > 0 && !bytes.Contains(head, []byte(page.Mark)) {
		return fmt.Errorf("%s exists and is not a page of oversell: choose another --out", path)
	}
	return nil
}
