package page

import (
	"fmt"
	"io"
	"strings"

	"oversell/internal/phrase"
	"oversell/reports"
)

// exploration and counterexample add the methods of the page.
type (
	exploration    struct{ reports.Exploration }
	counterexample struct{ reports.Counterexample }
)

// Exploration writes the self-contained page of a search. replay is the command line that replays the
// counterexample on a real Redis; may be empty.
func Exploration(w io.Writer, e reports.Exploration, replay string) error {
	p := exploration{e}.page()
	if len(p.Entries) > 0 {
		p.Replay = replay
	}
	return writeFramed(w, "exploration.html.tmpl", e.Headline(), &p.Frame, &p)
}

// page is the data of the template.
type page struct {
	reports.Exploration
	Frame       frame
	Class, Icon string
	Declared    string
	Promise     string
	Diagrams    []diagram
	Entries     []Entry
	// Breaking is the last step, which breaks the promise.
	Breaking *Entry
	Limits   []string
	Numbers  []number
	// Replay is a command line.
	Replay string
	// Has are the kinds of steps in the schedule, for the legend.
	Has map[string]bool
}

// number is one measure of the search.
type number struct{ Name, Value string }

// Entry is a step as the page describes it.
type Entry struct {
	Number                       int
	At, Who, Class               string
	Command, Answer, Note, Redis string
	Changed, Breaks              bool
	Marks                        []string
	// Sent and Reply are the request and the reply on the wire; empty if unknown.
	Sent  []string
	Reply string
}

// Name describes the step in a sentence, for screen readers.
func (e Entry) Name() string {
	s := fmt.Sprintf("Step %d, at %s", e.Number, e.At)
	if e.Who != "" {
		s += ", " + e.Who
	}
	s += ": " + e.Command
	if e.Answer != "" {
		s += ", answer: " + e.Answer
	}
	if e.Note != "" {
		s += " (" + e.Note + ")"
	}
	for _, m := range e.Marks {
		s += ", " + m
	}
	if e.Breaks {
		s += "; this breaks the promise"
	}
	return s + ". Redis then holds " + e.Redis + "."
}

func (e exploration) page() page {
	p := page{Exploration: e.Exploration, Declared: e.Declared(), Limits: e.Limits(), Numbers: e.numbers(), Has: map[string]bool{}}
	p.Class, p.Icon = e.Verdict, map[string]string{reports.Pass: "✓", reports.Violated: "✗"}[e.Verdict]
	if p.Icon == "" {
		p.Icon = "?"
	}
	if e.Counterexample == nil || len(e.Counterexample.Steps) == 0 {
		return p
	}
	c := counterexample{*e.Counterexample}
	p.Promise = c.Promise()
	for i, s := range c.Steps {
		p.Entries = append(p.Entries, c.entry(i, e.Masters))
		p.Has[s.Kind] = true
		for _, m := range s.Marks {
			p.Has[m] = true
		}
	}
	p.Breaking = &p.Entries[len(p.Entries)-1]
	p.Diagrams = []diagram{c.draw(e.Masters, wide), c.draw(e.Masters, narrow)}
	return p
}

// Sentence describes the violation or what was proved.
func (p page) Sentence() string {
	if p.Counterexample == nil {
		if p.Verdict == reports.Inconclusive {
			return "" // it is in the headline
		}
		return p.Why
	}
	return p.Counterexample.Sentence
}

// numbers returns the measures of the search.
func (e exploration) numbers() []number {
	s := e.Stats
	list := []number{
		{"states", reports.Thousands(s.States)},
		{"transitions", reports.Thousands(s.Transitions)},
		{"time", reports.Seconds(s.ElapsedMS)},
		{"transitions a second", reports.PerSecond(s)},
		{"longest schedule", reports.Count(int64(s.Depth), "step")},
		{"runs of the real code", reports.Thousands(s.Executions)},
		{"different observations", reports.Thousands(s.Observed)},
		{phrase.Plural(e.Entries()), reports.Thousands(s.Entered)},
	}
	if e.Sale != "" {
		list = append(list, number{"sales", reports.Thousands(s.Sold)})
	}
	list = append(list,
		number{"advances of the clock", reports.Thousands(s.Advances)},
		number{"expiries", reports.Thousands(s.Expiries)},
		number{"crashes", reports.Thousands(s.Crashes)},
		number{"lost messages", reports.Thousands(s.Lost)},
		number{"late requests", reports.Thousands(s.Late)},
		number{"end states judged", reports.Thousands(s.Ends)})
	if s.Collision > 0 {
		list = append(list, number{"chance that two states were taken for one, at most", reports.Chance(s.Collision)})
	}
	if s.BytesPerState > 0 {
		list = append(list, number{"memory per state", reports.Size(s.BytesPerState)})
	}
	if s.Random != nil {
		list = append(list, number{"schedules at random", reports.Thousands(s.Random.Schedules)})
	}
	return list
}

// entry describes a step.
func (c counterexample) entry(i, masters int) Entry {
	s := c.Steps[i]
	t := s.Words(masters)
	e := Entry{Number: i + 1, At: reports.Millis(s.AtMS), Who: c.By(s), Command: t.Command, Answer: t.Answer, Note: t.Note, Redis: s.Holds(),
		Changed: i == 0 || s.Redis != c.Steps[i-1].Redis, Breaks: i == len(c.Steps)-1, Marks: s.Marks}
	if e.Who != "" {
		e.Class = clientClass(s.Client)
	}
	for _, words := range s.Commands {
		e.Sent = append(e.Sent, strings.Join(words, " "))
	}
	if s.Reply != "" {
		e.Reply = strings.TrimSuffix(strings.ReplaceAll(s.Reply, "\r\n", " "), " ")
	}
	return e
}
