package mutants

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/clock"
	"oversell/internal/mutants/entry"
	"oversell/lockimpl/locktest"
	"oversell/queueimpl/queuetest"
	"oversell/reports"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/stockimpl/stocktest"
	"oversell/variant"
)

// limit is the time that a suite has for one entry.
const limit = 90 * time.Second

// A trial is one suite on one entry.
type trial struct {
	kind  string // lock, queue or sale
	suite string // Run or Explore
	entry Entry
}

func (t trial) String() string { return t.kind + "/" + t.suite + "/" + t.entry.Name }

// trials returns all of them. Those of sound entries come first, for they must not be left
// out when time is short.
func trials() (ts []trial) {
	for _, q := range Queues() {
		ts = append(ts, trial{"queue", "Run", q.Entry})
	}
	for _, s := range Sales() {
		ts = append(ts, trial{"sale", "Run", s.Entry})
	}
	for _, l := range Locks() {
		ts = append(ts, trial{"lock", "Run", l.Entry}, trial{"lock", "Explore", l.Entry})
	}
	slices.SortStableFunc(ts, func(a, b trial) int {
		switch {
		case a.entry.Sound() == b.entry.Sound():
			return 0
		case a.entry.Sound():
			return -1
		}
		return 1
	})
	return ts
}

// outcome is how a trial ended.
type outcome struct {
	verdict string // passed, caught, inconclusive, unfinished
	named   []variant.Property
	why     string // the first sentence of the failure
	steps   int    // of the schedule that Explore showed
	took    time.Duration
}

// right reports whether the suite named a promise that the entry really breaks.
func (o outcome) right(e Entry) bool {
	return slices.ContainsFunc(o.named, func(p variant.Property) bool { return slices.Contains(e.Breaks, p) })
}

// run does the trial in a process of its own, so that the suite can fail.
func (t trial) run(ctx context.Context) (outcome, string, error) {
	binary, err := os.Executable()
	if err != nil {
		return outcome{}, "", err
	}
	c := exec.CommandContext(ctx, binary, "-test.run=^TestTrial$", "-test.v", "-test.timeout="+limit.String())
	c.Env = append(os.Environ(), "OVERSELL_TRIAL="+t.String())
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	start := time.Now()
	err = c.Run()
	o := outcome{verdict: "passed", took: time.Since(start)}
	text := out.String()
	exit := new(exec.ExitError)
	switch {
	case err == nil && !strings.Contains(text, "--- PASS: TestTrial"):
		return o, text, errors.New("the trial did not run")
	case err == nil:
		return o, text, nil
	case !errors.As(err, &exit):
		return o, text, err
	}
	o.verdict, o.named, o.why, o.steps = judged(text)
	return o, text, nil
}

var (
	sentence = regexp.MustCompile(`(?m)^\s*(?:\w+\.go:\d+: )?(.*?(?: promises ([a-z-]+), but|\b([a-z-]+) is broken|\b([a-z-]+) violated|\(judged with ([a-z-]+)\)).*)$`)
	// noServer matches the failure to reach the suite's own server. That is the machine's
	// fault, not the entry's, even if the message names a promise.
	noServer = regexp.MustCompile(`connect to \S+: (dial |i/o timeout)`)
	contract = regexp.MustCompile(`(?m)^\s*(?:\w+\.go:\d+: )?(.*\bthe contract of \w+\.\w+ is broken.*)$`)
	step     = regexp.MustCompile(`(?m)^\s*violated: .* in (\d+) steps?$`)
)

// judged reads a suite's failure.
func judged(text string) (verdict string, named []variant.Property, why string, steps int) {
	found := map[variant.Property]bool{}
	unreachable := 0
	for _, m := range sentence.FindAllStringSubmatch(text, -1) {
		if noServer.MatchString(m[1]) {
			unreachable++
			continue
		}
		p := variant.Property(m[2] + m[3] + m[4] + m[5])
		if !slices.ContainsFunc(variant.Properties, func(i variant.PropertyInfo) bool { return i.Name == p }) {
			continue
		}
		found[p] = true
		if why == "" {
			why = strings.TrimSpace(m[1])
		}
	}
	for _, m := range step.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		steps = max(steps, n)
	}
	if m := contract.FindStringSubmatch(text); m != nil {
		found[entry.Contract] = true
		if why == "" {
			why = strings.TrimSpace(m[1])
		}
	}
	named = slices.Sorted(maps.Keys(found))
	switch {
	case strings.Contains(text, "panic: test timed out"):
		verdict = "unfinished"
	case len(named) > 0:
		verdict = "caught"
	case unreachable > 0:
		verdict = "inconclusive"
	case strings.Contains(text, "inconclusive") || strings.Contains(text, "search:"):
		verdict = "inconclusive"
	default:
		verdict = "caught" // by a rule of the interface, or a panic
	}
	if why == "" {
		why = firstFailure(text)
	}
	return verdict, named, why, steps
}

// firstFailure returns the first line that reports one.
func firstFailure(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); regexp.MustCompile(`^\w+\.go:\d+: `).MatchString(line) || strings.HasPrefix(line, "panic:") {
			_, line, _ = strings.Cut(line, ": ")
			return line
		}
	}
	return ""
}

// TestTrial is what a trial's process runs.
func TestTrial(t *testing.T) {
	name := os.Getenv("OVERSELL_TRIAL")
	if name == "" {
		return
	}
	kind, rest, _ := strings.Cut(name, "/")
	suite, entry, _ := strings.Cut(rest, "/")
	switch kind {
	case "lock":
		all := Locks()
		i := slices.IndexFunc(all, func(l Lock) bool { return l.Name == entry })
		lock(t, all[i], suite)
	case "queue":
		all := Queues()
		i := slices.IndexFunc(all, func(q Queue) bool { return q.Name == entry })
		target := open(t, "single")
		queuetest.Run(t, all[i].Variant, func(t *testing.T) queuetest.Bench {
			return queuetest.Bench{Queue: "{" + rand.Text()[:6] + "}mail", Env: func() variant.Env { return opentest.Env(t, target, clock.Real{}) }}
		})
	case "sale":
		all := Sales()
		i := slices.IndexFunc(all, func(s Sale) bool { return s.Name == entry })
		target := open(t, "single")
		stocktest.Run(t, all[i].Variant, func(t *testing.T) stocktest.Bench {
			return stocktest.Bench{Product: "{" + rand.Text()[:6] + "}phone", Env: func() variant.Env { return opentest.Env(t, target, clock.Real{}) }}
		})
	}
}

func lock(t *testing.T, l Lock, suite string) {
	switch {
	case suite == "Explore" && l.Bubble:
		locktest.ExploreBubble(t, l.Variant, reports.Bounds{})
	case suite == "Explore":
		locktest.Explore(t, l.Variant, reports.Bounds{})
	case l.Variant.Needs.Masters > 1:
		locktest.Run(t, l.Variant, locktest.Process("masters:"+strconv.Itoa(l.Variant.Needs.Masters)))
	default:
		locktest.Run(t, l.Variant, locktest.Process("single"))
	}
}

func open(t *testing.T, topology string) *server.Target {
	t.Helper()
	return opentest.Open(t, server.Spec{Target: "process", Topology: topology})
}

// notTried is the verdict of a trial for which the test's time limit left no time.
const notTried = "not tried"

// result is a trial and how it ended, the last time of several.
type result struct {
	trial
	outcome
	// Of times times, it was accused of breaking a promise, or Run could not judge it.
	accused, unjudged, times int
}

// recorded is a result in a file, from which an interrupted measurement goes on.
type recorded struct {
	Trial, Verdict, Why             string
	Named                           []variant.Property
	Steps, Accused, Unjudged, Times int
	Took                            time.Duration
}

func (r result) record() recorded {
	return recorded{r.trial.String(), r.verdict, r.why, r.named, r.steps, r.accused, r.unjudged, r.times, r.took}
}

func (r recorded) result(t trial) result {
	return result{t, outcome{r.Verdict, r.Named, r.Why, r.Steps, r.Took}, r.Accused, r.Unjudged, r.Times}
}

// A resultsFile keeps results; it has no name if none are kept.
type resultsFile struct {
	name string
	mu   sync.Mutex // guards the file
}

// read returns the results of earlier measurements, by trial.
func (f *resultsFile) read() (map[string]recorded, error) {
	text, err := os.ReadFile(f.name)
	if f.name == "" || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]recorded{}
	for in := json.NewDecoder(bytes.NewReader(text)); in.More(); {
		var r recorded
		if err := in.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		found[r.Trial] = r
	}
	return found, nil
}

func (f *resultsFile) add(r result) error {
	if f.name == "" {
		return nil
	}
	line, err := json.Marshal(r.record())
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out, err := os.OpenFile(f.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return errors.Join(err, out.Close())
}

// try does trials, several at a time. Sound entries are tried times times by Run, and
// searches times by Explore, which does the same each time, up to its limit of time. What kept holds is not done again.
func try(t *testing.T, ts []trial, atOnce, times, searches int, logs string, kept *resultsFile) []result {
	t.Helper()
	before, err := kept.read()
	if err != nil {
		t.Fatal(err)
	}
	results := make([]result, len(ts))
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, one := range ts {
		n := 1
		switch {
		case one.entry.Sound() && one.suite == "Run":
			n = times
		case one.entry.Sound():
			n = searches
		}
		if r, is := before[one.String()]; is {
			results[i] = r.result(one)
			continue
		}
		results[i] = result{trial: one, times: n}
		places <- struct{}{}
		if end, ok := t.Deadline(); ok && time.Until(end) < limit+10*time.Second {
			results[i].verdict = notTried
			<-places
			continue
		}
		group.Go(func() {
			defer func() { <-places }()
			for at := range n {
				o, text, err := one.run(t.Context())
				if err != nil {
					t.Errorf("%v: %v\n%s", one, err, text)
				}
				if logs != "" && o.verdict != "passed" {
					path := filepath.Join(logs, fmt.Sprintf("%s-%d.txt", strings.ReplaceAll(one.String(), "/", "_"), at+1))
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Error(err)
					}
				}
				accuses := o.verdict != "passed" && o.verdict != "inconclusive"
				switch {
				case accuses:
					results[i].accused++
				case o.verdict == "inconclusive" && one.suite == "Run": // Explore often is
					results[i].unjudged++
				}
				if results[i].verdict == "" || accuses && results[i].accused == 1 {
					results[i].outcome = o
				}
			}
			if err := kept.add(results[i]); err != nil {
				t.Error(err)
			}
			t.Logf("%-50v %-13s %6.1f s %v", one, results[i].verdict, results[i].took.Seconds(), results[i].named)
		})
	}
	group.Wait()
	return results
}

// TestConformance measures the suites with the whole catalogue and writes
// docs/conformance.md. It takes the better part of an hour, so it runs if
// OVERSELL_CONFORMANCE=1. OVERSELL_CONFORMANCE_OF is a pattern of the trials to do, and
// nothing is written then; OVERSELL_CONFORMANCE_AT_ONCE is how many are done at a time (4),
// OVERSELL_CONFORMANCE_TIMES how often Run tries a sound entry (20), and
// OVERSELL_CONFORMANCE_SEARCHES how often Explore does (2). OVERSELL_CONFORMANCE_LOGS is a
// directory, made if it is not there, for what the suites said, and
// OVERSELL_CONFORMANCE_RESULTS a file for the results; those that it holds are not measured again.
func TestConformance(t *testing.T) {
	if os.Getenv("OVERSELL_CONFORMANCE") != "1" {
		return
	}
	ts := trials()
	of := os.Getenv("OVERSELL_CONFORMANCE_OF")
	if of != "" {
		pattern := regexp.MustCompile(of)
		ts = slices.DeleteFunc(ts, func(one trial) bool { return !pattern.MatchString(one.String()) })
	}
	logs := os.Getenv("OVERSELL_CONFORMANCE_LOGS")
	if logs != "" {
		if err := os.MkdirAll(logs, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	results := try(t, ts, number("OVERSELL_CONFORMANCE_AT_ONCE", 4), number("OVERSELL_CONFORMANCE_TIMES", 20), number("OVERSELL_CONFORMANCE_SEARCHES", 2), logs, &resultsFile{name: os.Getenv("OVERSELL_CONFORMANCE_RESULTS")})
	text := document(results)
	t.Log("\n" + text[:strings.Index(text, "##")])
	if of != "" {
		return
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "conformance.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCatalogue: names are unique, and what the entries say is complete.
func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	flawed, sound, published := 0, 0, 0
	check := func(e Entry, promises []variant.Property) {
		if seen[e.Name] || e.Name == "" || e.Mechanism == "" {
			t.Errorf("entry %q: its name is not its own, or it lacks a mechanism", e.Name)
		}
		seen[e.Name] = true
		if e.Sound() {
			sound++
			return
		}
		flawed++
		if e.Source != "" {
			published++
		}
		if !slices.ContainsFunc(e.Breaks, func(p variant.Property) bool { return p == entry.Contract || slices.Contains(promises, p) }) {
			t.Errorf("entry %q breaks %v, and promises none of them: %v", e.Name, e.Breaks, promises)
		}
	}
	for _, l := range Locks() {
		check(l.Entry, l.Variant.Promises)
	}
	for _, q := range Queues() {
		check(q.Entry, q.Variant.Promises)
	}
	for _, s := range Sales() {
		check(s.Entry, s.Variant.Promises)
	}
	if flawed < 80 || sound < 15 || published < 20 {
		t.Errorf("%d flawed entries, %d of them published, and %d sound ones; want 80, 20 and 15", flawed, published, sound)
	}
	t.Logf("%d locks, %d queues, %d sales: %d flawed (%d published), %d sound", len(Locks()), len(Queues()), len(Sales()), flawed, published, sound)
}

// sample names trials that TestSample makes every day, with a promise that the suite must name; "" if it must pass.
var sample = map[string]variant.Property{
	"lock/Explore/release-get-del": variant.OwnerOnlyRelease, "lock/Run/release-without-script": variant.OwnerOnlyRelease, "lock/Run/names-one-separator": variant.Progress,
	"lock/Run/renewal-dies-with-acquire": variant.MutualExclusion, "lock/Run/sound-two-permits": "",
	"queue/Run/pop-in-two-steps": variant.NoDuplicateDelivery, "queue/Run/next-due-remembered": variant.Progress, "queue/Run/enqueue-unpacked": variant.NoLostTask, "queue/Run/sound-suffixed-keys": "",
	"sale/Run/checks-for-one": variant.NoOversell, "sale/Run/error-reply-sold-out": variant.NoUndersell, "sale/Run/order-zero": variant.OncePerOrder, "sale/Run/sound-suffixed-products": "",
}

// longSample names those that it makes in "make long", too.
var longSample = map[string]variant.Property{
	"lock/Explore/lease-from-answer": variant.MutualExclusion, "lock/Run/refusal-grants": variant.MutualExclusion, "lock/Run/sound-counter-beside": "", "lock/Run/redsync": "", "lock/Run/rueidislock": "", "lock/Run/bsm/redislock": "", "lock/Run/hash-per-kind": variant.MutualExclusion,
	"lock/Run/sound-deadline": "", "lock/Run/long-names-by-checksum": variant.Progress, "lock/Run/names-as-numbers": variant.Progress,
	"sale/Run/large-orders-in-parts": variant.NoUndersell, "sale/Run/product-names-as-numbers": variant.NoOversell,
	"queue/Run/late-ack-forgets-id": variant.OneEntryPerID, "queue/Run/mover-removes-first": variant.NoLostTask, "queue/Run/mover-pushes-first": variant.NoDuplicateDelivery,
	"queue/Run/ack-forgets-error": variant.EffectOnce, "queue/Run/queue-expires": variant.NoLostTask, "queue/Run/sound-claims-no-scores": "", "queue/Run/sound-list": "", "queue/Run/sound-claims": "",
	"sale/Run/compares-text": variant.NoUndersell, "sale/Run/buys-again-on-error": variant.NoUndersell, "sale/Run/sound-lua": "", "sale/Run/sound-count": "", "sale/Run/sound-list-of-pieces": "",
}

// TestSample checks that the suites and the search catch the flawed implementations of the sample, name the right promise,
// and pass the sound ones.
func TestSample(t *testing.T) {
	sample := maps.Clone(sample)
	if os.Getenv("OVERSELL_LONG") != "" {
		maps.Copy(sample, longSample)
	}
	ts := slices.DeleteFunc(trials(), func(one trial) bool { _, in := sample[one.String()]; return !in })
	if len(ts) != len(sample) {
		t.Fatalf("%d of %d trials are there", len(ts), len(sample))
	}
	for _, r := range try(t, ts, 3, 1, 1, "", new(resultsFile)) {
		want := sample[r.trial.String()]
		switch {
		case want == "" && r.verdict != "passed":
			t.Errorf("%v: %s, naming %v: %s; want passed", r.trial, r.verdict, r.named, r.why)
		case want != "" && (r.verdict != "caught" || !slices.Contains(r.named, want)):
			t.Errorf("%v: %s, naming %v: %s; want caught, naming %s", r.trial, r.verdict, r.named, r.why, want)
		}
	}
}

// TestLoadedScripts: a client that loads its scripts itself is searched like any other. The
// bounds are small, so that the search ends on a busy machine, too.
func TestLoadedScripts(t *testing.T) {
	all := Locks()
	i := slices.IndexFunc(all, func(l Lock) bool { return l.Name == "sound-loaded-scripts" })
	locktest.Explore(t, all[i].Variant, reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, Lost: 1, Advances: 1, Depth: 40})
}

// shownWithin is how long a user may have to wait for a suite.
const shownWithin = 30 * time.Second

// caught reports whether the suite found a fault in time.
func (r result) caught() bool { return r.verdict == "caught" && r.took <= shownWithin }

// cell tells in a table how a trial ended.
func (r result) cell() string {
	if r.kind == "" {
		return "not tried"
	}
	switch took := fmt.Sprintf("%.1f s", r.took.Seconds()); {
	case r.verdict == "caught" && !r.entry.Sound():
		names := make([]string, len(r.named))
		for i, p := range r.named {
			names[i] = string(p)
		}
		what := strings.Join(names, ", ")
		if what == "" {
			what = "the interface"
		}
		if !r.right(r.entry) {
			what += " (another promise than it breaks)"
		}
		return what + ", " + took
	case r.entry.Sound() && (r.suite == "Run" || r.accused > 0):
		if r.unjudged > 0 {
			took = fmt.Sprintf("not judged in %d, %s", r.unjudged, took)
		}
		return fmt.Sprintf("accused in %d of %d, %s", r.accused, r.times, took)
	case r.verdict == "passed" && r.entry.Sound():
		return "passed, " + took
	default:
		return map[string]string{"passed": "–", "inconclusive": "inconclusive", "unfinished": "no end", notTried: notTried}[r.verdict] + ", " + took
	}
}

// pair is the results of one entry.
type pair struct {
	kind         string
	entry        Entry
	run, explore result
}

func (p pair) caught() bool { return p.run.caught() || p.explore.caught() }

// right reports whether the right promise was named in time.
func (p pair) right() bool {
	return p.run.caught() && p.run.right(p.entry) || p.explore.caught() && p.explore.right(p.entry)
}

func paired(results []result) (ps []pair) {
	for _, r := range results {
		if len(ps) == 0 || ps[len(ps)-1].entry.Name != r.entry.Name {
			ps = append(ps, pair{kind: r.kind, entry: r.entry})
		}
		last := &ps[len(ps)-1]
		if r.suite == "Explore" {
			last.explore = r
		} else {
			last.run = r
		}
	}
	return ps
}

// share counts those of which something is so, as "8 of 10 (80 %)".
// It is 100 % only if it is all of them, and 0 % only if it is none.
func share(ps []pair, is func(pair) bool) string {
	n := 0
	for _, p := range ps {
		if is(p) {
			n++
		}
	}
	percent := (100*n + len(ps)/2) / max(len(ps), 1)
	if percent == 100 && n < len(ps) {
		percent = 99
	}
	if percent == 0 && n > 0 {
		percent = 1
	}
	return fmt.Sprintf("%d of %d (%d %%)", n, len(ps), percent)
}

// document tells what came of all trials.
func document(results []result) string {
	var b strings.Builder
	ps := paired(results)
	untried := len(ps)
	ps = slices.DeleteFunc(ps, func(p pair) bool { return p.run.verdict == notTried })
	untried -= len(ps)
	of := func(sound bool, kinds ...string) (some []pair) {
		for _, p := range ps {
			if p.entry.Sound() == sound && slices.Contains(kinds, p.kind) {
				some = append(some, p)
			}
		}
		return some
	}
	kinds := []string{"lock", "queue", "sale"}
	flawed, sound := of(false, kinds...), of(true, kinds...)
	run := func(p pair) bool { return p.run.caught() }
	explore := func(p pair) bool { return p.explore.caught() }
	accused := func(p pair) bool { return p.run.accused > 0 || p.explore.accused > 0 }
	unjudged := func(p pair) bool { return p.run.unjudged > 0 }
	fewest, runs, searches := math.MaxInt, 0, 0
	for _, p := range sound {
		fewest, runs, searches = min(fewest, p.run.times), max(runs, p.run.times), max(searches, p.explore.times)
	}
	each := fmt.Sprint(runs)
	if fewest < runs {
		each = fmt.Sprintf("%d to %d", fewest, runs)
	}
	fmt.Fprintf(&b, "# The conformance suites catch %s of the flawed implementations within %.0f s and accuse %s of the sound ones in %s runs each\n\n", share(flawed, pair.caught), shownWithin.Seconds(), share(sound, accused), each)
	fmt.Fprintf(&b, "The package `internal/mutants` holds implementations with small flaws, of many mechanisms, and sound ones. This document is made from it by\n`OVERSELL_CONFORMANCE=1 OVERSELL_CONFORMANCE_TIMES=%d OVERSELL_CONFORMANCE_SEARCHES=%d go test -timeout 2h -run TestConformance ./internal/mutants`.\nEach suite ran at its defaults, in a process of its own; several ran at once, so the times are upper bounds.\n`Explore` is deterministic, so each sound implementation was searched only %s.\nThe catalogue is a sample: it says nothing about a flaw of another kind.\n\n", runs, searches, often(searches))
	if os.Getenv("OVERSELL_CONFORMANCE_RESULTS") != "" {
		fmt.Fprint(&b, "It was measured in parts (`OVERSELL_CONFORMANCE_RESULTS`), which may be of different commits, and in which the machine may have been more or less busy.\n\n")
	}
	if untried > 0 {
		fmt.Fprintf(&b, "There was no time for %d entries, which are not in the tables.\n\n", untried)
	}
	fmt.Fprintln(&b, "| | flawed | caught by `Run` | by `Explore` | by either | with the right promise | sound | accused | not judged in some run |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|---|---|")
	for _, k := range append(kinds, "") {
		name := k + "s"
		which := []string{k}
		if k == "" {
			which, name = kinds, "all"
		}
		wrong, right := of(false, which...), of(true, which...)
		explored := "not searched"
		switch locks := of(false, "lock"); k {
		case "lock":
			explored = share(locks, explore)
		case "": // the share of all would hide that only locks were searched
			n := 0
			for _, p := range locks {
				if explore(p) {
					n++
				}
			}
			explored = fmt.Sprintf("%d of %d searched", n, len(locks))
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %d | %s | %s |\n", name, len(wrong), share(wrong, run), explored, share(wrong, pair.caught), share(wrong, pair.right), len(right), share(right, accused), share(right, unjudged))
	}
	fmt.Fprint(&b, "\nA cell of the tables below tells which promises the suite named, and after how long; – means that it found nothing.\n")

	fmt.Fprint(&b, "\n## Published bugs\n\nEach was described in the tracker of a library and is rebuilt here in code of our own.\n\n| bug | what is wrong | caught by |\n|---|---|---|\n")
	for _, p := range flawed {
		if p.entry.Source != "" {
			fmt.Fprintf(&b, "| [%s](%s) | %s: %s | %s |\n", strings.TrimPrefix(p.entry.Source, "https://github.com/"), p.entry.Source, p.entry.Name, p.entry.Mechanism, p.by())
		}
	}

	head := "\n## Not caught\n\n| entry | breaks | what is wrong | why it is not caught |\n|---|---|---|---|\n"
	for _, p := range flawed {
		if !p.caught() {
			fmt.Fprint(&b, head)
			head = ""
			why := missed[p.entry.Name]
			if why == "" {
				why = "not looked into"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.entry.Name, list(p.entry.Breaks), p.entry.Mechanism, why)
		}
	}

	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## %ss\n\n| entry | what is wrong | breaks | `Run` | `Explore` |\n|---|---|---|---|---|\n", strings.ToUpper(k[:1])+k[1:])
		for _, p := range of(false, k) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.entry.Name, p.entry.Mechanism, list(p.entry.Breaks), p.run.cell(), p.explore.cell())
		}
	}
	fmt.Fprint(&b, "\n## Sound implementations\n\n| entry | what it is | `Run` | `Explore` | what was said |\n|---|---|---|---|---|\n")
	for _, p := range sound {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.entry.Name, p.entry.Mechanism, p.run.cell(), p.explore.cell(), strings.ReplaceAll(p.run.why, "|", "/"))
	}
	return b.String()
}

// often tells how many times something was done.
func often(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// by tells which suite caught an entry, in how many steps or after how long.
func (p pair) by() string {
	var by []string
	if p.run.caught() {
		by = append(by, "`Run`: "+p.run.cell())
	}
	if p.explore.caught() {
		by = append(by, fmt.Sprintf("`Explore`: %s, in %d steps", p.explore.cell(), p.explore.steps))
	}
	if len(by) == 0 {
		return "nothing"
	}
	return strings.Join(by, "; ")
}

func list(ps []variant.Property) string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// missed are the reasons why an entry is not caught, as far as they are known.
var missed = map[string]string{
	"release-again-by-del":         "the first answer of a release must be lost, and another must take the lock before the second",
	"token-wraps":                  "the client must be granted the lock ten more times before its first release comes late",
	"no-script-no-expiry":          "only the very first attempt on a server that was just started has no expiry",
	"extend-adds":                  "the holder must extend several times before it dies",
	"extend-error-retakes":         "the answer of an extend must be lost, and another must hold the lock by then",
	"extend-error-is-success":      "the request of an extend must be lost, and the lease must end before the holder leaves",
	"fence-drawn-before":           "an acquire that is granted an older number overlaps the acquire that was granted the newer one, and numbers of such acquires are not compared, though the first holder had released the lock in between",
	"error-deletes":                "the answer of an acquire must be lost while another holds the lock",
	"masters-no-undo":              "the locks that are left have a lease, so somebody gets in within it and the grace",
	"masters-token-per-node":       "the locks that are left have a lease, so somebody gets in within it and the grace",
	"claim-from-due-time":          "a task must wait for about as long as a claim lasts before it is popped",
	"claim-joined-text":            "the claim of an id with a colon must run out",
	"claim-scan-stops":             "an extended claim must have begun before one that runs out",
	"ack-leaves-waiting":           "the ack must come when another's pop has ended the claim and taken other tasks",
	"receipt-per-task":             "an id must be enqueued again after its ack, and be acked by the receipt of its earlier entry",
	"orders-forgotten":             "the copy of an order must come more than a second after it",
	"fence-kept-for-half-a-second": "half a second must pass without a purchase before the older number is shown",
	"claim-never-ends":             "it was, but later than 30 s after the start: on a busy machine the rules with thousands of tasks wait in turn until their time is over",
	"stream-new-only":              "as claim-never-ends",
	"stream-ack-first":             "as claim-never-ends",
	"claim-scan-of-ten":            "on a busy machine the claims that go on are over before the rule can tell; alone it was caught in 3 of 3 runs",
	"line-leaver-pops-head":        "the client that gives up must do so while others stand in line, in the order that shows it; other runs catch it",
	"names-by-short-checksum":      "two of the names must have one checksum, and a busy machine takes too few names",
	"last-orders-of-many":          "more than twenty thousand orders must come before the copy of the first",
	"abandoned-wait":               "the wait must be cancelled while the lock is held for longer than the rule waits",
	"renewal-of-abandoned":         "the answer of an acquire must be lost, and the client must live on",
}

// TestJudged checks how the failure of a suite is read.
func TestJudged(t *testing.T) {
	for text, want := range map[string]struct {
		verdict string
		named   []variant.Property
	}{
		"    suitetest.go:166: queue mine: no-lost-task is broken: it is gone\n":                           {"caught", []variant.Property{variant.NoLostTask}},
		"    suitetest.go:166: queue mine: the contract of queueimpl.Queue is broken: pop answered 2\n":    {"caught", []variant.Property{entry.Contract}},
		"    x.go:1: inconclusive: the time was over\n":                                                    {"inconclusive", nil},
		"panic: test timed out after 1m30s\n    suitetest.go:166: queue mine: progress is broken: never\n": {"unfinished", []variant.Property{variant.Progress}},
	} {
		verdict, named, _, _ := judged(text)
		if verdict != want.verdict || !slices.Equal(named, want.named) {
			t.Errorf("%q is read as %s, naming %v; want %s, naming %v", text, verdict, named, want.verdict, want.named)
		}
	}
}
