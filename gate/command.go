package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oversell/campaign"
	"oversell/internal/child"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/variant"
)

// commands carries out an entry that runs a program of the user's. The notes are those of all its runs.
func (r *running) commands(ctx context.Context, g *safetyEntry) (cases []reports.GateCase, notes []string, err error) {
	t := &tally{g: g, title: shell(g.command.words), command: func(seed uint64) string {
		return fmt.Sprintf("OVERSELL_SEED=%d %s", seed, shell(g.command.words))
	}}
	if g.Expect.V == reports.Pass {
		t.control = &entryControl{name: g.Name.V, none: "there is no default control of a command: name one that is known to break (control: {command: […]})"}
		if g.control.word.V == noControl {
			t.control.none = "the plan has none (control: none), so it is unknown whether a violation would have been seen"
		}
		if g.control.command != nil {
			t.control.none = ""
			if g.command.history != "" && g.control.history.V == "" {
				t.control.none = "this entry is judged by its history, so its control must be, too: name the file that it writes (control: {command: […], history: …})"
			}
		}
	}
	started := time.Now()
	for round := 0; g.goesOn(round, time.Since(started)) && ctx.Err() == nil && !t.settled(); round++ {
		if err := r.commandRound(ctx, t, round); err != nil {
			return nil, nil, err
		}
	}
	if t.total == 0 {
		return nil, nil, nil
	}
	return []reports.GateCase{t.judge(time.Since(started))}, t.notes(), nil
}

// notes returns the notes of all histories, such as what they are judged by.
func (t *tally) notes() (all []string) {
	for i, m := range t.kept {
		if i == 0 {
			all = slices.Clone(m.run.Notes)
		}
		all = slices.DeleteFunc(all, func(n string) bool { return !slices.Contains(m.run.Notes, n) })
	}
	return all
}

// commandRound runs the program, again if it decided nothing, and then the control.
func (r *running) commandRound(ctx context.Context, t *tally, round int) error {
	started := time.Now()
	defer func() { t.elapsed += time.Since(started) }()
	g := t.g
	for try := range 2 {
		m, err := r.execute(ctx, g.command, g.Name.V, r.seedOf(g, round, try > 0))
		if err != nil {
			return err
		}
		if try > 0 && g.Expect.V == reports.Pass {
			t.kept = t.kept[:len(t.kept)-1] // the retry counts instead
		}
		t.retried += try
		t.add(m)
		if ctx.Err() != nil {
			return nil
		}
		if last := g.repeat > 0 && round == g.repeat-1; !t.again(m, last) {
			break
		}
	}
	if t.control == nil || t.control.none != "" || t.settled() {
		return nil
	}
	return r.commandControl(ctx, t, round)
}

// commandControl runs the control: it must break in the first or the second try.
func (r *running) commandControl(ctx context.Context, t *tally, round int) error {
	g, w := t.g, t.control
	p, err := resolveCommand(r.plan.Path, *g.control.command, g.control.history, g.Dir)
	if err != nil {
		return err
	}
	w.last.What = shell(p.words)
	for try := range 2 {
		m, err := r.execute(ctx, p, g.Name.V+"-control", r.seedOf(g, round, try > 0))
		if err != nil || ctx.Err() != nil {
			return err
		}
		w.runs++
		q, why := t.caughtBy(m.run)
		if q != nil {
			w.caught++
			w.last.Of, w.last.Property, w.last.Why = q.Of, q.Name, q.Why
			if q.Of == theirs {
				w.caveats = []string{"only its exit code was seen, which is also 1 for a program that does not build: " + q.Why}
			}
			return nil
		}
		if try == 1 {
			w.missed = "it must break, and " + why
		}
	}
	return nil
}

// caughtBy returns a violation of the control that the entry is judged by, too. If the control broke something
// else, or was judged in another way, it shows nothing about the entry, and why explains that.
func (t *tally) caughtBy(control reports.Run) (p *reports.Property, why string) {
	if control.Verdict != reports.Violated {
		return nil, fmt.Sprintf("came to %s: %s", control.Verdict, or(control.Why, "nothing was broken"))
	}
	var others []string
	for i := range control.Properties {
		q := &control.Properties[i]
		if q.Measured != reports.Broken && q.Result != reports.Broken {
			continue
		}
		if slices.ContainsFunc(t.kept, func(m made) bool { return judgedBy(m.run, *q) }) {
			return q, ""
		}
		others = append(others, fmt.Sprintf("%s of the %s", q.Name, q.Of))
	}
	return nil, fmt.Sprintf("broke %s, which the entry is not judged by", or(strings.Join(others, " and "), "nothing that is named"))
}

// judgedBy reports whether a run promises a property, so that its verdict depends on it.
func judgedBy(r reports.Run, q reports.Property) bool {
	return slices.ContainsFunc(r.Properties, func(p reports.Property) bool {
		return p.Of == q.Of && p.Name == q.Name && p.Result != reports.NotClaimed
	})
}

// execute runs a program and judges it: by the history that it leaves, else by the oversell document that it
// prints, else by its exit code.
func (r *running) execute(ctx context.Context, p program, name string, seed uint64) (*made, error) {
	r.dirs++
	dir, err := filepath.Abs(filepath.Join(r.options.Dir, fmt.Sprintf("%03d-%s", r.dirs, fileName(name))))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	before, began := stamp(p.history), time.Now()
	exit, err := r.spawn(ctx, p, dir, seed)
	if err != nil {
		return nil, err
	}
	m := &made{dir: dir, seed: seed}
	switch printed, ok := byDocument(dir, exit); {
	case ctx.Err() != nil:
		m.run = undecidedRun("the command was stopped before its end")
	case p.history != "":
		m.judgeHistory(ctx, p.history, before, began, exit)
	case ok:
		m.run = printed
	default:
		m.run = byExitCode(exit, dir)
	}
	m.run.Scenario = shell(p.words)
	return m, nil
}

// Files for a program's output.
const (
	stdoutFile = "stdout.txt"
	stderrFile = "stderr.txt"
)

// patience is how long a program may take to end after it was asked to.
const patience = 10 * time.Second

// spawn runs a program until it ends and returns its exit code, or -1 if it has none.
func (r *running) spawn(ctx context.Context, p program, dir string, seed uint64) (int, error) {
	stdout, err := os.Create(filepath.Join(dir, stdoutFile))
	if err != nil {
		return 0, err
	}
	defer stdout.Close()
	stderr, err := os.Create(filepath.Join(dir, stderrFile))
	if err != nil {
		return 0, err
	}
	defer stderr.Close()
	cmd := exec.CommandContext(ctx, p.path, p.words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, stdout, stderr
	cmd.Env = append(os.Environ(), fmt.Sprintf("OVERSELL_SEED=%d", seed))
	err = child.Run(cmd, patience)
	var exited *exec.ExitError
	switch {
	case err == nil, ctx.Err() != nil:
		return 0, nil
	case errors.As(err, &exited):
		return exited.ExitCode(), nil
	}
	return 0, fmt.Errorf("run %s: %w", shell(p.words), err)
}

// written describes a file when it was written; the zero value: there is none.
type written struct {
	at   time.Time
	size int64
}

func stamp(path string) written {
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return written{}
	}
	return written{info.ModTime(), info.Size()}
}

// coarse is by how much the time of a file may be behind the clock: file systems count in up to two seconds.
const coarse = 2 * time.Second

// judgeHistory judges the history that a program has written since it began, and copies it to the run's directory. When
// ctx ends, the run decides nothing.
func (m *made) judgeHistory(ctx context.Context, path string, before written, began time.Time, exit int) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		m.run = undecidedRun(fmt.Sprintf("the command left no history in %s (it exited with %d)", path, exit))
		return
	case !info.Mode().IsRegular():
		m.run = undecidedRun(fmt.Sprintf("the command left no history in %s, which is not a regular file (it exited with %d)", path, exit))
		return
	case info.ModTime().Equal(before.at) && info.Size() == before.size, info.ModTime().Before(began.Add(-coarse)):
		m.run = undecidedRun(fmt.Sprintf("the command did not write its history: %s is older than the run (it exited with %d)", path, exit))
		return
	}
	d, err := campaign.Check(ctx, path)
	if err == nil {
		err = keepCopy(path, filepath.Join(m.dir, filepath.Base(path)))
	}
	if err != nil {
		m.run = undecidedRun("the history that the command left cannot be judged: " + phrase.OneLine(err.Error()))
		return
	}
	m.run = combined(d.Runs)
	if exit != reports.ExitPass && m.run.Verdict == reports.Pass {
		m.run.Verdict, m.run.Why = reports.Inconclusive, fmt.Sprintf("there is no violation in the history of the command, but it exited with %d", exit)
	}
}

func keepCopy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return reports.ToFile(to, func(f io.Writer) error { _, err := io.Copy(f, in); return err })
}

// combined merges several runs into one with the worst verdict.
func combined(runs []reports.Run) reports.Run {
	if len(runs) == 1 {
		return runs[0]
	}
	all := reports.Run{Latency: map[string]reports.Latency{}}
	var verdicts []string
	for _, r := range runs {
		verdicts = append(verdicts, r.Verdict)
		all.Operations += r.Operations
		all.Properties = append(all.Properties, r.Properties...)
		all.Faults = append(all.Faults, r.Faults...)
	}
	all.Verdict = reports.Worst(verdicts...)
	for _, r := range runs {
		if r.Verdict == all.Verdict {
			all.Why = or(all.Why, r.Why)
		}
	}
	return all
}

func undecidedRun(why string) reports.Run {
	return reports.Run{Verdict: reports.Inconclusive, Why: why}
}

// The object and the property that stand for a program's exit code.
const (
	exitCode variant.Property = "exit-code"
	theirs   variant.Object   = "command"
)

// byExitCode judges a program by oversell's exit codes, which are those of tests, too: 0 passes, 1 fails. Any other
// code decides nothing.
func byExitCode(code int, dir string) reports.Run {
	p := reports.Property{Name: exitCode, Of: theirs, Result: reports.Holds, Why: "the command exited with 0"}
	r := reports.Run{Verdict: reports.Pass}
	switch code {
	case reports.ExitPass:
	case reports.ExitViolated:
		p.Result, p.Count = reports.Broken, 1
		p.Why = "the command exited with 1: " + tail(dir)
		r.Verdict = reports.Violated
	default:
		r = undecidedRun(fmt.Sprintf("the command exited with %d: %s", code, tail(dir)))
		p.Result, p.Why = reports.Unknown, r.Why
	}
	p.Measured = p.Result
	r.Properties = []reports.Property{p}
	return r
}

// tail returns the end of a program's output: of stderr or, if that is empty, of stdout.
func tail(dir string) string {
	const most = 2000
	for _, name := range []string{stderrFile, stdoutFile} {
		said, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && len(said) > 0 {
			said = slices.Clone(said[max(0, len(said)-most):])
			return phrase.OneLine(string(said))
		}
	}
	return "it printed nothing"
}
