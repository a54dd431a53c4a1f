package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oversell/campaign/judging"
	"oversell/checker"
	"oversell/checker/monitor"
	"oversell/foreign"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
)

// Reading says how to read files of other formats.
type Reading struct {
	// Format is one of [Formats]; empty: jsonl, or the format in Map.
	Format string
	// Map is the path of a mapping for production logs.
	Map string
	// Model is the model for a Jepsen history; empty: chosen by its operations.
	Model string
	// Initial is the initial value of a register, a multi-register or a counter.
	Initial string
	// Keys is one of [foreign.AllKeys]; empty: auto.
	Keys string
	// TimeLimit bounds a search for a legal order; 0: half a minute.
	TimeLimit time.Duration
	// Export is the file to write the history to, in Jepsen's format (.edn) or as JSON lines (.jsonl).
	Export string
}

// Formats are the file formats that check reads.
var Formats = []string{"jsonl", "jepsen-edn", "porcupine-log"}

// defaultTimeLimit bounds a search for a legal order.
const defaultTimeLimit = 30 * time.Second

// CheckAs is [Check] for files in other formats and for production logs; their paths are files.
func CheckAs(ctx context.Context, how Reading, paths ...string) (reports.Document, error) {
	if err := how.complete(paths); err != nil {
		return reports.Document{}, err
	}
	read, err := how.reader()
	if err != nil {
		return reports.Document{}, err
	}
	if read == nil {
		d, err := Check(ctx, paths...)
		if errors.Is(err, history.ErrNotHistory) && slices.ContainsFunc(paths, func(path string) bool { return filepath.Ext(path) == ".edn" }) {
			err = fmt.Errorf("%w: histories of Jepsen need --format jepsen-edn", err)
		}
		return d, errors.Join(err, how.export(readWhole, paths))
	}
	d := reports.Document{Schema: reports.Schema, Runs: []reports.Run{}}
	var errs []error
	for _, path := range paths {
		r, err := unlessStopped(ctx, path, read)
		if err == nil {
			d.Runs = append(d.Runs, r)
		}
		errs = append(errs, err)
		if errors.Is(err, ErrStopped) {
			break
		}
	}
	return d, errors.Join(errs...)
}

// complete validates the settings, and fills in defaults.
func (r *Reading) complete(paths []string) error {
	if r.TimeLimit == 0 {
		r.TimeLimit = defaultTimeLimit
	}
	ext := filepath.Ext(r.Export)
	switch {
	case r.Format != "" && !slices.Contains(Formats, r.Format):
		return fmt.Errorf("--format %q is not known: it is one of %s", r.Format, strings.Join(Formats, ", "))
	case r.Map != "" && r.Format != "" && r.Format != "jsonl":
		return fmt.Errorf("--map and --format %s are both given: a map includes the format", r.Format)
	case !r.jepsen() && r.Model != "":
		return errors.New("--model is for histories of Jepsen: give --format jepsen-edn or porcupine-log too")
	case !r.jepsen() && r.Initial != "":
		return errors.New("--initial is for histories of Jepsen: give --format jepsen-edn or porcupine-log too")
	case !r.jepsen() && r.Keys != "":
		return errors.New("--keys is for histories of Jepsen: give --format jepsen-edn or porcupine-log too")
	case r.Keys != "" && !slices.Contains(foreign.AllKeys, r.Keys):
		return fmt.Errorf("--keys %q is not known: it is one of %s", r.Keys, strings.Join(foreign.AllKeys, ", "))
	case r.TimeLimit < 0:
		return fmt.Errorf("--time-limit %v: want a positive time", r.TimeLimit)
	case r.Export != "" && ext != ".edn" && ext != ".jsonl":
		return fmt.Errorf("--export %s: the name of the file ends in .edn (as Jepsen has it) or .jsonl", r.Export)
	case r.Export != "" && len(paths) != 1:
		return errors.New("--export is for one history")
	}
	if r.Export == "" {
		return nil
	}
	if _, err := os.Lstat(r.Export); err == nil {
		return fmt.Errorf("--export %s: the file exists: name a new one", r.Export)
	}
	return writable("--export", r.Export)
}

func (r *Reading) jepsen() bool { return r.Format == "jepsen-edn" || r.Format == "porcupine-log" }

// reader returns the function that judges a file in another format; nil for oversell's own.
func (r *Reading) reader() (func(path string) (reports.Run, error), error) {
	switch {
	case r.jepsen():
		return r.judgeJepsen, nil
	case r.Map == "":
		return nil, nil
	}
	m, err := foreign.ReadMap(r.Map)
	if err != nil {
		return nil, err
	}
	return func(path string) (reports.Run, error) {
		h, err := foreign.ReadMapped(path, m)
		if err != nil {
			return reports.Run{}, err
		}
		return judging.Judge(h).Run, r.export(func(string) (*history.History, error) { return h, nil }, []string{path})
	}, nil
}

// judgeJepsen judges a Jepsen history by a model, or, if oversell exported it, as the original run.
func (r *Reading) judgeJepsen(path string) (reports.Run, error) {
	h, j, err := foreign.Read(path, foreign.Keys(r.Keys))
	switch {
	case err != nil:
		return reports.Run{}, err
	case h != nil && (r.Model != "" || r.Initial != "" || r.Keys != ""):
		return reports.Run{}, fmt.Errorf("%s: --model, --initial and --keys are for histories that Jepsen recorded: this one was exported, and is judged by what it promises", path)
	case h != nil:
		return judging.Judge(h).Run, r.export(func(string) (*history.History, error) { return h, nil }, []string{path})
	case r.Export != "":
		return reports.Run{}, errors.New("--export is for histories of oversell and for production logs: what Jepsen recorded has another model")
	}
	m, err := foreign.FindModel(r.Model, j)
	if err == nil {
		m, err = m.Begin(r.Initial, j)
	}
	if err != nil {
		return reports.Run{}, err
	}
	return r.runOf(j, m, foreign.Judge(j, m, foreign.Limits{Time: r.TimeLimit})), nil
}

// runOf reports on a foreign history.
func (r *Reading) runOf(h *foreign.History, m foreign.Model, vs []checker.Verdict) reports.Run {
	run := reports.Run{Scenario: m.Name, Engine: r.Format, Target: filepath.Base(h.Path), Clients: h.Processes, Operations: len(h.Ops), ElapsedMS: judging.Round(float64(h.Last-h.First) / 1e6),
		Latency: map[string]reports.Latency{}, Faults: []reports.Fault{}, Properties: []reports.Property{}}
	var promised []checker.Verdict
	for _, v := range vs {
		p := reports.Property{Name: v.Property, Of: v.Of, Measured: v.Result.String(), Result: reports.NotClaimed, Count: v.Count, Opportunities: v.Opportunities, Why: v.Why, Witness: []history.Op{}}
		if slices.Contains(m.Promises, v.Property) {
			promised = append(promised, v)
			p.Result = p.Measured
		}
		run.Properties = append(run.Properties, p)
	}
	if run.ElapsedMS > 0 {
		run.Throughput = judging.Round(float64(run.Operations) * 1e3 / run.ElapsedMS)
	}
	run.Notes = append(run.Notes, "read from "+h.Path)
	if h.Skipped > 0 {
		run.Notes = append(run.Notes, "skipped events of a nemesis or without a process: "+phrase.Count(h.Skipped, "event"))
	}
	if h.Cut > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("the log was cut off: line %d has no newline, and is ignored", h.Cut))
	}
	run.Verdict, run.Why = foreignVerdict(promised)
	return run
}

// foreignVerdict merges the verdicts on the promises.
func foreignVerdict(promised []checker.Verdict) (verdict, why string) {
	var results []checker.Result
	for _, v := range promised {
		results = append(results, v.Result)
		if v.Result == checker.Unknown && why == "" {
			why = v.Why
		}
	}
	few := judging.FewestOf(promised)
	switch merged := monitor.Merge(results...); {
	case merged == checker.Violated:
		return reports.Violated, ""
	case merged == checker.Unknown:
		return reports.Inconclusive, why
	case few.Opportunities < judging.Needed:
		return reports.Inconclusive, fmt.Sprintf("%s: %s of the %s had %s, and a pass needs %d for each promise", judging.TooLittle, few.Property, few.Of, phrase.Count(few.Opportunities, "opportunity"), judging.Needed)
	}
	return reports.Pass, ""
}

// export writes the history of the only path, if --export asked for it.
func (r *Reading) export(read func(string) (*history.History, error), paths []string) error {
	if r.Export == "" {
		return nil
	}
	files, err := historiesIn(paths[0])
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("--export is for one history, and %s holds %d", paths[0], len(files))
	}
	h, err := read(files[0])
	if err != nil {
		return err
	}
	form := history.WriteJSONL
	if filepath.Ext(r.Export) == ".edn" {
		form = foreign.WriteJepsen
	}
	var unfit error // what the format cannot express
	err = reports.ToFile(r.Export, func(w io.Writer) error {
		out := &noting{w: w}
		if unfit = form(out, h); out.err != nil {
			unfit = nil
		}
		return errors.Join(unfit, out.err)
	})
	if err != nil && unfit == nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return err
}

// noting is a writer that notes its error.
type noting struct {
	w   io.Writer
	err error
}

func (n *noting) Write(b []byte) (int, error) {
	done, err := n.w.Write(b)
	n.err = errors.Join(n.err, err)
	return done, err
}
