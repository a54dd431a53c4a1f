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

// GateSchema names the form of a Gate.
const GateSchema = "oversell-gate/1"

// Slower is the verdict on an entry that is slower than allowed; a gate's other verdicts
// are those of runs. Failed is the verdict of a gate that met an environment error.
const (
	Slower = "slower"
	Failed = "environment"
)

// Gate is what a plan came to: what must hold held or not, what must break broke or
// not, and what must be fast is or is not.
type Gate struct {
	Schema string `json:"schema"`
	// Plan is the path of the plan, as it was given.
	Plan string `json:"plan"`
	// Verdict is the worst that came up, in the order in which exit codes count.
	Verdict string  `json:"verdict"`
	Machine Machine `json:"machine"`
	Seed    uint64  `json:"seed"`
	// FalseAlarms is in how many of all gates, at the most, a measure alarms though
	// nothing is slower than allowed.
	FalseAlarms float64 `json:"false_alarms"`

	Safety      []GateEntry       `json:"safety"`
	Performance []GatePerformance `json:"performance"`
	// Missing are sentences about what the baseline guards and the plan does not. They
	// make the gate inconclusive.
	Missing []string `json:"missing,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	// Interrupted says that the gate was stopped before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Failed is the environment error; what was judged until then stands.
	Failed    string  `json:"failed,omitempty"`
	ElapsedMS float64 `json:"elapsed_ms"`
	// Command is the command line that makes this gate again.
	Command string `json:"command"`
}

// Machine is what numbers were measured on. They are not compared with those of another.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	// Redis is the version of the server; empty if none was needed.
	Redis string `json:"redis,omitempty"`
}

// String is the machine in a few words.
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
	// Line and Column are where the plan has it.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Expect is Pass or Violated, as the plan demands.
	Expect string `json:"expect"`
	// Verdict is Pass when every case is as demanded; otherwise the worst of them.
	Verdict string     `json:"verdict"`
	Cases   []GateCase `json:"cases"`
	Notes   []string   `json:"notes,omitempty"`
}

// GateCase is one combination of variants of an entry, over all of its runs.
type GateCase struct {
	Title     string    `json:"title"`
	Contender Contender `json:"contender"`
	// Verdict is Pass when it is as demanded, Violated when a promise was broken that
	// must hold, Slower when a limit was exceeded, and Inconclusive otherwise; Why says
	// what made it so.
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
	// Runs is how often it was run, Broke in how many of them a promise was broken, and
	// Retried how many of them were made again because they had decided nothing.
	Runs    int `json:"runs"`
	Broke   int `json:"broke"`
	Retried int `json:"retried,omitempty"`
	// Operations counts what was done in the runs that decided something, Opportunities
	// how often the promise that had the fewest opportunities could have been broken.
	Operations    int   `json:"operations"`
	Opportunities int64 `json:"opportunities"`
	// KnownToBreak are conditions under which flaws declare that promises break, and
	// which the runs did not bring.
	KnownToBreak []history.Untried `json:"known_to_break,omitempty"`
	// NotSeen are the promises that flaws declare broken by what the runs brought, if none
	// of them broke one.
	NotSeen []string `json:"declared_not_seen,omitempty"`
	// Searched says what a search has gone through.
	Searched   string         `json:"searched,omitempty"`
	Faults     []Fault        `json:"faults,omitempty"`
	Properties []GateProperty `json:"properties"`
	Control    *GateControl   `json:"control,omitempty"`
	Limits     []GateLimit    `json:"limits,omitempty"`
	// Dirs are the run directories, for a closer look.
	Dirs []string `json:"dirs,omitempty"`
	// Command is the command line that makes its first run again, or the first that broke
	// something.
	Command   string  `json:"command,omitempty"`
	ElapsedMS float64 `json:"elapsed_ms"`
}

// GateProperty is a promise of a case, over all of its runs.
type GateProperty struct {
	Name variant.Property `json:"name"`
	Of   variant.Object   `json:"of"`
	// Result is Holds, Broken or Unknown: the worst of all runs.
	Result string `json:"result"`
	// Opportunities is how often it could have been broken, in all runs.
	Opportunities int64 `json:"opportunities,omitempty"`
	// Runs is in how many runs it was broken.
	Runs    int          `json:"runs"`
	Why     string       `json:"why"`
	Witness []history.Op `json:"witness,omitempty"`
	// Story is the schedule of a search, or what a command said.
	Story string `json:"story,omitempty"`
}

// GateControl is something known to be broken, run in the same configuration, but for
// what Caveats tell, to see whether it would show.
type GateControl struct {
	// What it is, such as "lock none"; NoControl if the plan wants none.
	What string `json:"what"`
	// Of and Property are what it broke.
	Of       variant.Object   `json:"of,omitempty"`
	Property variant.Property `json:"property,omitempty"`
	// Runs is how often it was run, and Caught in how many of them it showed.
	Runs   int `json:"runs"`
	Caught int `json:"caught"`
	// Good says that the control was caught every time, at the first or the second try.
	Good bool `json:"good"`
	// Why tells of one that was caught or, if one was not, what happened instead.
	Why string `json:"why"`
	// Tried are others that were tried before and not caught, with what happened.
	Tried []string `json:"tried,omitempty"`
	// Caveats are sentences about what it does not show, such as that it ran with more
	// clients than what it watches over.
	Caveats []string `json:"caveats,omitempty"`
}

// NoControl is what a control is called that there is not.
const NoControl = "none"

// GateLimit is an absolute limit of a latency, and what was measured, in milliseconds.
type GateLimit struct {
	Operation  string  `json:"operation"`
	Percentile string  `json:"percentile"`
	LimitMS    float64 `json:"limit_ms"`
	// MeasuredMS is the median over the runs; nil: it did not happen.
	MeasuredMS *float64 `json:"measured_ms"`
}

// GatePerformance is an entry of the plan under performance.
type GatePerformance struct {
	Name   string `json:"name"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Verdict is Pass, Slower, Inconclusive or, if a promise of the candidate was broken
	// while its speed was measured, Violated; Why says what made it so.
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
	// Candidate and Baseline say what was compared.
	Candidate string `json:"candidate"`
	Baseline  string `json:"baseline"`
	// Rounds is how many were made, of at most MostRounds, in each of which the baseline
	// was run twice and the candidate once, in an order drawn by chance.
	Rounds     int  `json:"rounds"`
	MostRounds int  `json:"most_rounds"`
	Retried    bool `json:"retried,omitempty"`
	// RunLength is what the gate chose to end a run, from the noise that it measured, such
	// as "duration 400ms"; empty if the plan says it.
	RunLength string `json:"run_length,omitempty"`
	// Length is the number in it, in nanoseconds or pieces.
	Length int64 `json:"length,omitempty"`

	Measures []GateMeasure `json:"measures"`
	// Recorded says that its slow-downs are not judged, but recorded for a baseline file.
	Recorded bool `json:"recorded,omitempty"`
	// Broken are the promises that the candidate broke meanwhile.
	Broken    []GateProperty `json:"broken,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	ElapsedMS float64        `json:"elapsed_ms"`
}

// GateMeasure is how one measure of the candidate compares with the baseline's.
type GateMeasure struct {
	// Name is throughput, p50 or p99, with the operation that it is about.
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Candidate and Baseline are medians over the rounds.
	Candidate float64 `json:"candidate"`
	Baseline  float64 `json:"baseline"`
	// Slowdown is by what part the candidate is slower (0.1: it takes 10 % longer for the
	// same; negative: it is faster), and Noise the same of the baseline against itself.
	Slowdown Estimate `json:"slowdown"`
	Noise    Estimate `json:"noise"`
	// Allowed is the largest part by which it may be slower, on top of Accepted, which is
	// what the baseline file has accepted; nil: there is nothing to accept.
	Allowed  float64  `json:"allowed"`
	Accepted *float64 `json:"accepted,omitempty"`
	Verdict  string   `json:"verdict"`
	// Recorded says that it is not judged: the gate records a baseline file, and what it
	// holds is accepted, however large.
	Recorded bool `json:"recorded,omitempty"`
}

// exceeds tells of a measure that is recorded whether it is slower than allowed.
func (m GateMeasure) exceeds() bool { return m.Recorded && m.Slowdown.Middle > m.Allowed }

// Outcome returns the verdict in a word, or, for a measure that was only recorded, the
// word for that.
func (m GateMeasure) Outcome() string {
	switch {
	case m.exceeds():
		return "accepted"
	case m.Recorded:
		return "recorded"
	}
	return m.Verdict
}

// Accepts reports whether a slow-down beyond what is allowed was accepted to be recorded.
func (p GatePerformance) Accepts() bool {
	return p.Recorded && slices.ContainsFunc(p.Measures, GateMeasure.exceeds)
}

// Outcome is the verdict, with what a pass is if nothing was judged.
func (p GatePerformance) Outcome() string {
	switch {
	case p.Accepts():
		return Pass + " (slower than allowed, accepted)"
	case p.Recorded:
		return Pass + " (recorded)"
	}
	return p.Verdict
}

// Estimate is a measured part with an interval that holds it in 99 of 100 cases; the
// ends are nil when there is too little to say.
type Estimate struct {
	Middle float64  `json:"middle"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
}

// worst orders verdicts as exit codes count.
var worst = []string{Failed, Violated, Inconclusive, Slower, Pass}

// Worst is the one of these verdicts that counts; nothing at all is inconclusive.
func Worst(verdicts ...string) string {
	for _, v := range worst {
		if slices.Contains(verdicts, v) {
			return v
		}
	}
	return Inconclusive
}

// Judged is the verdict of a gate in which this came up.
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

// ExitCode is the process's exit code for this gate.
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

// Headline is the verdict in one line.
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

// Sentence says how much was seen without a violation, and whether one would have shown.
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
		s = "no violation seen, and no opportunity for one"
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

// Seen says of every promise that held how often it could have been broken.
func (c GateCase) Seen() (sentences []string) {
	for _, p := range c.Properties {
		if s := p.Seen(); s != "" {
			sentences = append(sentences, p.Label()+": "+s)
		}
	}
	return sentences
}

// Sentence says whether the control was caught, in words that follow a comma.
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

// TriedInVain describes, a sentence each, the combinations that were tried as a control
// before this one.
func (c *GateControl) TriedInVain() (sentences []string) {
	if c == nil {
		return nil
	}
	for _, s := range c.Tried {
		sentences = append(sentences, "tried as a control, and not caught: "+s)
	}
	return sentences
}

// Under names the faults that a case was under, or says that there were none.
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

// FaultsFired says what became of the faults; empty if there were none.
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

// runPrefix is what marks the keys of one run.
var runPrefix = regexp.MustCompile(`\{ov-[0-9a-f]+\}`)

// Text describes a broken promise: the sentence, and the operations that show it.
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

// Seen says of a promise that held how often it could have been broken; empty if that was
// not counted.
func (p GateProperty) Seen() string {
	if p.Result != Holds || p.Opportunities == 0 {
		return ""
	}
	return noViolation(p.Opportunities, Count(p.Opportunities, "opportunity"))
}

// Label names a property, with its object where that is not plain.
func (p GateProperty) Label() string { return fmt.Sprintf("%s of the %s", p.Name, p.Of) }

// Sentence says how much slower a measure is, and how much noise there was. Candidate and
// baseline are compared round by round, so that the medians of all rounds, which are told last,
// need not be as far apart.
func (m GateMeasure) Sentence() string {
	slower := m.Slowdown.Span()
	if m.Slowdown.whole() {
		slower += " slower"
	}
	s := fmt.Sprintf("%s: round by round %s (%s), the baseline against itself %s; ", m.Name, faster(m.Slowdown.Middle), slower, m.Noise.Span())
	switch {
	case m.exceeds():
		s += "accepted to be recorded, and otherwise "
	case m.Recorded:
		s += "recorded; "
	}
	s += "allowed " + Percent(m.Allowed)
	if m.Accepted != nil {
		s += fmt.Sprintf(" beyond the %s that the baseline file accepts", Percent(*m.Accepted))
	}
	return s + fmt.Sprintf("; the medians of all rounds, which differ for the noise between rounds, too, are %s and, of the baseline, %s %s", significant(m.Candidate), significant(m.Baseline), m.Unit)
}

// faster is a slow-down in words.
func faster(slowdown float64) string {
	if slowdown < 0 {
		return Percent(-slowdown) + " faster"
	}
	return Percent(slowdown) + " slower"
}

// whole reports whether both ends of the interval are known.
func (e Estimate) whole() bool { return e.Low != nil && e.High != nil }

// Within reports whether the upper end of the interval is beyond the middle by no more than a
// part, as factors, up to rounding.
func (e Estimate) Within(part float64) bool {
	return e.High != nil && (1+*e.High)/(1+e.Middle) <= (1+part)*1.0001
}

// Span is the interval in words.
func (e Estimate) Span() string {
	if !e.whole() {
		return "too few rounds for an interval"
	}
	return fmt.Sprintf("%s to %s", Percent(*e.Low), Percent(*e.High))
}

// Sentence says what a limit was and what was measured.
func (l GateLimit) Sentence() string {
	if l.MeasuredMS == nil {
		return fmt.Sprintf("%s of %s may be %s ms at most, and none was made", l.Percentile, l.Operation, significant(l.LimitMS))
	}
	return fmt.Sprintf("%s of %s: %s ms, of %s ms at most", l.Percentile, l.Operation, significant(*l.MeasuredMS), significant(l.LimitMS))
}

// Exceeded reports whether more was measured than is allowed.
func (l GateLimit) Exceeded() bool { return l.MeasuredMS != nil && *l.MeasuredMS > l.LimitMS }
