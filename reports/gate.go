package reports

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// GateSchema identifies the format of a Gate.
const GateSchema = "oversell-gate/1"

// Slower is the verdict on an entry that is slower than allowed; the other verdicts of entries are those of runs.
// Failed is the verdict of a gate with an environment error.
const (
	Slower = "slower"
	Failed = "environment"
)

// Gate is the result of a plan: whether promises held that must hold, variants broke that must break, and
// candidates are fast enough.
type Gate struct {
	Schema string `json:"schema"`
	// Plan is the path of the plan, as given.
	Plan string `json:"plan"`
	// Verdict is the worst verdict, in the order of exit codes.
	Verdict string  `json:"verdict"`
	Machine Machine `json:"machine"`
	Seed    uint64  `json:"seed"`
	// FalseAlarms is the maximum probability that a gate raises an alarm although nothing is slower than allowed.
	FalseAlarms float64 `json:"false_alarms"`

	Safety      []GateEntry       `json:"safety"`
	Performance []GatePerformance `json:"performance"`
	// Missing are sentences about entries that the baseline has and the plan does not. They make the gate
	// inconclusive.
	Missing []string `json:"missing,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	// Interrupted means that the gate was stopped early.
	Interrupted bool `json:"interrupted,omitempty"`
	// Failed is the environment error; results before it stand.
	Failed    string  `json:"failed,omitempty"`
	ElapsedMS float64 `json:"elapsed_ms"`
	// Command is the command line that repeats the gate.
	Command string `json:"command"`
}

// Machine is the machine that numbers were measured on. They are not compared with those of another machine.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	// Redis is the version of the first server of the gate; empty if none was needed. See GatePerformance.Redis.
	Redis string `json:"redis,omitempty"`
}

// String describes the machine briefly.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %s, %s, %s", m.CPU, Count(int64(m.Cores), "core"), m.OS, m.Go)
	if m.Redis != "" {
		s += ", Redis " + m.Redis
	}
	return s
}

// GateEntry is an entry of the plan under safety.
type GateEntry struct {
	Name string `json:"name"`
	// Kind is run, explore or command.
	Kind string `json:"kind"`
	// Line and Column are its position in the plan.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Expect is Pass or Violated, as the plan demands.
	Expect string `json:"expect"`
	// Verdict is Pass if every case is as expected; otherwise the worst of them.
	Verdict string     `json:"verdict"`
	Cases   []GateCase `json:"cases"`
	Notes   []string   `json:"notes,omitempty"`
}

// GateCase is one combination of variants of an entry, over all of its runs.
type GateCase struct {
	Title     string    `json:"title"`
	Contender Contender `json:"contender"`
	// Verdict is Pass if the result is as expected, Violated if a promise was broken that must hold, Slower if a
	// limit was exceeded, and Inconclusive otherwise; Why gives the reason.
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
	// Runs is the number of runs, Broke the number with a violation, and Retried the number repeated because they
	// had decided nothing.
	Runs    int `json:"runs"`
	Broke   int `json:"broke"`
	Retried int `json:"retried,omitempty"`
	// Operations counts operations of runs that decided something; Opportunities is the smallest number of
	// opportunities to break of any promise.
	Operations    int   `json:"operations"`
	Opportunities int64 `json:"opportunities"`
	// KnownToBreak are conditions under which flaws declare violations, and which are not part of the runs.
	KnownToBreak []history.Untried `json:"known_to_break,omitempty"`
	// NotSeen are the promises that flaws declare broken under the conditions of the runs, if no run broke one.
	NotSeen []string `json:"declared_not_seen,omitempty"`
	// Searched describes the extent of a search.
	Searched   string         `json:"searched,omitempty"`
	Faults     []Fault        `json:"faults,omitempty"`
	Properties []GateProperty `json:"properties"`
	Control    *GateControl   `json:"control,omitempty"`
	Limits     []GateLimit    `json:"limits,omitempty"`
	// Dirs are the run directories.
	Dirs []string `json:"dirs,omitempty"`
	// Command is the command line that repeats its first run, or the first with a violation.
	Command   string  `json:"command,omitempty"`
	ElapsedMS float64 `json:"elapsed_ms"`
}

// GateProperty is a promise of a case, over all of its runs.
type GateProperty struct {
	Name variant.Property `json:"name"`
	Of   variant.Object   `json:"of"`
	// Result is Holds, Broken or Unknown: the worst of all runs.
	Result string `json:"result"`
	// Opportunities is the number of opportunities to break, in all runs.
	Opportunities int64 `json:"opportunities,omitempty"`
	// Runs is the number of runs that broke it.
	Runs    int          `json:"runs"`
	Why     string       `json:"why"`
	Witness []history.Op `json:"witness,omitempty"`
	// Story is the schedule of a search, or the output of a command.
	Story string `json:"story,omitempty"`
}

// GateControl is a variant known to break, run in the same configuration, except for Caveats, to see whether the
// violation is caught.
type GateControl struct {
	// What names it, such as "lock none"; NoControl if the plan has none.
	What string `json:"what"`
	// Of and Property are what it broke.
	Of       variant.Object   `json:"of,omitempty"`
	Property variant.Property `json:"property,omitempty"`
	// Runs is the number of its runs, and Caught the number in which the violation was seen.
	Runs   int `json:"runs"`
	Caught int `json:"caught"`
	// Good means that the control was caught every time, in the first or the second try.
	Good bool `json:"good"`
	// Why describes a violation that was caught or, if one was not, what happened instead.
	Why string `json:"why"`
	// Tried are candidates that were tried before and not caught, with what happened.
	Tried []string `json:"tried,omitempty"`
	// Caveats are sentences about what it does not show, such as that it ran with more clients than the entry.
	Caveats []string `json:"caveats,omitempty"`
}

// NoControl is the name of a missing control.
const NoControl = "none"

// GateLimit is an absolute limit of a latency, with the measured value, in milliseconds.
type GateLimit struct {
	Operation  string  `json:"operation"`
	Percentile string  `json:"percentile"`
	LimitMS    float64 `json:"limit_ms"`
	// MeasuredMS is the median over the runs; nil: there was no such operation.
	MeasuredMS *float64 `json:"measured_ms"`
}

// GatePerformance is an entry of the plan under performance.
type GatePerformance struct {
	Name   string `json:"name"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Verdict is Pass, Slower, Inconclusive or, if the candidate broke a promise while its speed was measured,
	// Violated; Why gives the reason.
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
	// Candidate and Baseline describe what was compared.
	Candidate string `json:"candidate"`
	Baseline  string `json:"baseline"`
	// Rounds is the number of rounds, of at most MostRounds, in each of which the baseline ran twice and the
	// candidate once, in random order.
	Rounds     int  `json:"rounds"`
	MostRounds int  `json:"most_rounds"`
	Retried    bool `json:"retried,omitempty"`
	// RunLength is the length of a run that the gate chose by the measured noise, such as "duration 400ms"; empty
	// if the plan sets it.
	RunLength string `json:"run_length,omitempty"`
	// Length is the number in RunLength, in nanoseconds or pieces.
	Length int64 `json:"length,omitempty"`
	// Redis is the version of the server or, if candidate and baseline have different ones, such as
	// "7.0.15 against 6.2.1".
	Redis string `json:"redis,omitempty"`

	Measures []GateMeasure `json:"measures"`
	// Recorded means that its slow-downs are not judged, but recorded in a baseline file.
	Recorded bool `json:"recorded,omitempty"`
	// Broken are the promises that the candidate broke during the measurement.
	Broken    []GateProperty `json:"broken,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	ElapsedMS float64        `json:"elapsed_ms"`
}

// GateMeasure compares one measure of the candidate with the baseline's.
type GateMeasure struct {
	// Name is throughput, p50 or p99, with the operation.
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Candidate and Baseline are medians over the rounds.
	Candidate float64 `json:"candidate"`
	Baseline  float64 `json:"baseline"`
	// Slowdown is the candidate's relative slow-down (0.1: it takes 10 % longer for the same work; negative: it is
	// faster), and Noise that of the baseline against itself.
	Slowdown Estimate `json:"slowdown"`
	Noise    Estimate `json:"noise"`
	// Allowed is the allowed slow-down, in addition to Accepted, which the baseline file accepts; Accepted is nil
	// if there is none.
	Allowed  float64  `json:"allowed"`
	Accepted *float64 `json:"accepted,omitempty"`
	Verdict  string   `json:"verdict"`
	// Recorded means that it is not judged: the gate records a baseline file, and accepts any slow-down.
	Recorded bool `json:"recorded,omitempty"`
}

// exceeds reports whether a recorded measure is slower than allowed.
func (m GateMeasure) exceeds() bool { return m.Recorded && m.Slowdown.Middle > m.Allowed }

// Outcome returns the verdict or, for a recorded measure, the word for that.
func (m GateMeasure) Outcome() string {
	switch {
	case m.exceeds():
		return "accepted"
	case m.Recorded:
		return "recorded"
	}
	return m.Verdict
}

// Accepts reports whether a slow-down beyond the allowed one was accepted for recording.
func (p GatePerformance) Accepts() bool {
	return p.Recorded && slices.ContainsFunc(p.Measures, GateMeasure.exceeds)
}

// Outcome returns the verdict, and what a pass means if nothing was judged.
func (p GatePerformance) Outcome() string {
	switch {
	case p.Accepts():
		return Pass + " (slower than allowed, accepted)"
	case p.Recorded:
		return Pass + " (recorded)"
	}
	return p.Verdict
}

// Estimate is a measured ratio with an interval that contains it in at least 99 of 100 cases; its ends are nil if
// there is too little data.
type Estimate struct {
	Middle float64  `json:"middle"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
}

// worst lists verdicts in the order of exit codes.
var worst = []string{Failed, Violated, Inconclusive, Slower, Pass}

// Worst returns the worst of the verdicts; without any, Inconclusive. An unknown verdict counts as Inconclusive.
func Worst(verdicts ...string) string {
	if len(verdicts) == 0 {
		return Inconclusive
	}
	rank := func(v string) int {
		if i := slices.Index(worst, v); i >= 0 {
			return i
		}
		return slices.Index(worst, Inconclusive)
	}
	first := len(worst)
	for _, v := range verdicts {
		first = min(first, rank(v))
	}
	return worst[first]
}

// Judged returns the verdict of a gate with these results.
func (g Gate) Judged() string {
	var all []string
	for _, e := range g.Safety {
		all = append(all, e.Verdict)
	}
	for _, p := range g.Performance {
		all = append(all, p.Verdict)
	}
	if g.Interrupted || len(g.Missing) > 0 {
		all = append(all, Inconclusive)
	}
	if g.Failed != "" {
		all = append(all, Failed)
	}
	return Worst(all...)
}

// ExitCode returns the process's exit code for this gate.
func (g Gate) ExitCode() int {
	switch g.Judged() {
	case Failed:
		return ExitEnvironment
	case Violated:
		return ExitViolated
	case Slower:
		return ExitRegression
	case Pass:
		return ExitPass
	}
	return ExitInconclusive
}

// Headline formats the verdict in one line.
func (g Gate) Headline() string {
	count := map[string]int{}
	for _, e := range g.Safety {
		count[e.Verdict]++
	}
	for _, p := range g.Performance {
		count[p.Verdict]++
	}
	var parts []string
	for _, v := range []string{Pass, Violated, Inconclusive, Slower} {
		if count[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[v], map[string]string{Pass: "passed", Violated: "violated", Inconclusive: "inconclusive", Slower: "slower than allowed"}[v]))
		}
	}
	word := "RED"
	if g.Judged() == Pass {
		word = "GREEN"
	}
	accepted := 0
	for _, p := range g.Performance {
		if p.Accepts() {
			accepted++
		}
	}
	if accepted > 0 {
		parts = append(parts, fmt.Sprintf("of which %d slower than allowed and accepted", accepted))
	}
	s := fmt.Sprintf("%s: %s", word, g.Judged())
	if len(parts) > 0 {
		s += fmt.Sprintf(" (%s)", strings.Join(parts, ", "))
	}
	switch {
	case g.Failed != "":
		s += "; environment error: " + g.Failed
	case g.Interrupted:
		s += "; it was stopped before its end"
	}
	return s
}

// Sentence describes how much was seen without a violation, and whether one would have been seen.
func (c GateCase) Sentence() string {
	var s string
	switch {
	case c.Searched != "":
		s = c.Searched
	case c.Broke > 0:
		s = fmt.Sprintf("a promise was broken in %d of %s", c.Broke, Count(int64(c.Runs), "run"))
	case c.Opportunities > 0:
		s = strings.TrimSuffix(seen(c.Opportunities, len(c.Properties) > 1, nil), ")") + " for this schedule distribution)"
	case len(c.Properties) > 0:
		s = "no violation seen in 0 opportunities"
	default:
		s = fmt.Sprintf("no violation in %s", Count(int64(c.Runs), "run"))
	}
	if c.Control != nil {
		s += ", " + c.Control.Sentence()
	}
	if c.Broke == 0 {
		s = Joined("; ", s, DeclaredNotSeen(c.NotSeen), NotTried(c.KnownToBreak))
	}
	return s
}

// Seen describes, for every promise that held, its opportunities to break.
func (c GateCase) Seen() (sentences []string) {
	for _, p := range c.Properties {
		if s := p.Seen(); s != "" {
			sentences = append(sentences, p.Label()+": "+s)
		}
	}
	return sentences
}

// Sentence describes whether the control was caught, as a clause.
func (c GateControl) Sentence() string {
	if c.Runs == 0 {
		return "there was no control: " + c.Why
	}
	s := fmt.Sprintf("the control (%s", c.What)
	if c.Property != "" {
		s += fmt.Sprintf(", which broke %s", c.Property)
	}
	s += fmt.Sprintf(") was caught %d of %d times", c.Caught, c.Runs)
	if len(c.Caveats) > 0 {
		s += fmt.Sprintf(" (%s)", strings.Join(c.Caveats, "; "))
	}
	if !c.Good {
		s += ": " + c.Why
	}
	return s
}

// TriedInVain describes, one sentence each, the candidates for a control that were tried before this one.
func (c *GateControl) TriedInVain() (sentences []string) {
	if c == nil {
		return nil
	}
	for _, s := range c.Tried {
		sentences = append(sentences, "tried as a control, and not caught: "+s)
	}
	return sentences
}

// Under names the faults of a case, or says that there were none.
func (c GateCase) Under() string {
	var names []string
	for _, f := range c.Faults {
		names = append(names, f.Name)
	}
	switch {
	case c.Searched != "":
		return "every interleaving"
	case c.Contender == Contender{}:
		return "its own load"
	}
	return cmp.Or(strings.Join(names, " + "), "load alone")
}

// FaultsFired describes the injections; empty if there were no faults.
func (c GateCase) FaultsFired() string {
	var parts []string
	for _, f := range c.Faults {
		s := fmt.Sprintf("%q fired %s times", f.Name, Thousands(f.Fired))
		if f.Failed != "" {
			s += " (" + f.Failed + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// runPrefix matches the prefix of one run's keys.
var runPrefix = regexp.MustCompile(`\{ov-[0-9a-f]+\}`)

// Text describes a violation: the sentence, and the operations that show it.
func (p GateProperty) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", strings.TrimSuffix(p.Why, "."))
	for _, op := range p.Witness {
		fmt.Fprintf(&b, "  %s\n", runPrefix.ReplaceAllString(op.String(), ""))
	}
	if p.Story != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(p.Story, "\n"))
	}
	return b.String()
}

// Seen describes the opportunities to break of a promise that held; empty if they were not counted.
func (p GateProperty) Seen() string {
	if p.Result != Holds || p.Opportunities == 0 {
		return ""
	}
	return noViolation(p.Opportunities, Count(p.Opportunities, "opportunity"))
}

// Label names a property, with its object if needed.
func (p GateProperty) Label() string { return fmt.Sprintf("%s of the %s", p.Name, p.Of) }

// Sentence describes the slow-down and the noise of a measure. Candidate and baseline are compared round by round,
// so the medians of all rounds, at the end of the sentence, may differ less.
func (m GateMeasure) Sentence() string {
	slower := m.Slowdown.Span()
	if m.Slowdown.whole() {
		slower += " slower"
	}
	s := fmt.Sprintf("%s: round by round %s (%s), the baseline against itself %s; ", m.Name, faster(m.Slowdown.Middle), slower, m.Noise.Span())
	switch {
	case m.exceeds():
		s += "accepted for recording, otherwise "
	case m.Recorded:
		s += "recorded; "
	}
	s += "allowed " + Percent(m.Allowed)
	if m.Accepted != nil {
		s += fmt.Sprintf(" beyond the %s that the baseline file accepts", Percent(*m.Accepted))
	}
	return s + fmt.Sprintf("; the medians of all rounds, which include the noise between rounds, are %s and, of the baseline, %s %s", significant(m.Candidate), significant(m.Baseline), m.Unit)
}

// faster describes a slow-down.
func faster(slowdown float64) string {
	if slowdown < 0 {
		return Percent(-slowdown) + " faster"
	}
	return Percent(slowdown) + " slower"
}

// whole reports whether both ends of the interval are known.
func (e Estimate) whole() bool { return e.Low != nil && e.High != nil }

// Within reports whether the upper end of the interval is beyond the middle by at most a share, as factors, up to
// rounding.
func (e Estimate) Within(part float64) bool {
	return e.High != nil && (1+*e.High)/(1+e.Middle) <= (1+part)*1.0001
}

// Span formats the interval.
func (e Estimate) Span() string {
	if !e.whole() {
		return "too few rounds for an interval"
	}
	return fmt.Sprintf("%s to %s", Percent(*e.Low), Percent(*e.High))
}

// Sentence describes a limit and the measured value.
func (l GateLimit) Sentence() string {
	if l.MeasuredMS == nil {
		return fmt.Sprintf("%s of %s may be at most %s ms, and there was none", l.Percentile, l.Operation, significant(l.LimitMS))
	}
	return fmt.Sprintf("%s of %s: %s ms, of at most %s ms", l.Percentile, l.Operation, significant(*l.MeasuredMS), significant(l.LimitMS))
}

// Exceeded reports whether the measured value exceeds the limit.
func (l GateLimit) Exceeded() bool { return l.MeasuredMS != nil && *l.MeasuredMS > l.LimitMS }
