package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/variant"
)

// noAnswer stands for the missing answer of a client that gave up.
const noAnswer = "no answer"

// Headline summarizes the verdict.
func (e Exploration) Headline() string {
	switch c := e.Counterexample; {
	case e.Verdict == Violated && c != nil:
		return fmt.Sprintf("violated: %s of %s, in %s", c.Property, e.object(c.Of), Count(int64(len(c.Steps)), "step"))
	case e.Verdict == Pass:
		return "holds within these bounds: " + e.Title() + e.untried()
	case e.Why != "":
		return e.Verdict + ": " + e.Why
	}
	return e.Verdict
}

// untried names what the bounds exclude; may be empty.
func (e Exploration) untried() string {
	b := e.Bounds
	var not []string
	for _, of := range []struct {
		bound int
		what  string
	}{
		{b.Advances, "clients held up until a lease ends"}, {b.Crashes, "crashes"}, {b.Lost, "lost messages"},
		{b.Late, "late requests"}, {b.Stalls, "clients held up after reading the clock"},
	} {
		if of.bound == 0 {
			not = append(not, of.what)
		}
	}
	if e.Sale != "" && b.Resends == 0 {
		not = append(not, "orders sent again")
	}
	if len(not) == 0 {
		return ""
	}
	return " (not tried: " + strings.Join(not, ", ") + ")"
}

// Title describes what was searched.
func (e Exploration) Title() string {
	title := Run{Scenario: e.Scenario, Lock: e.Lock, Sale: e.Sale, Queue: e.Queue, IDs: e.IDs}.Title()
	if e.Masters > 1 {
		title += fmt.Sprintf(", on %d independent masters", e.Masters)
	}
	return title
}

// object names the object of a promise.
func (e Exploration) object(o variant.Object) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", o, Contender{Lock: e.Lock, Sale: e.Sale, Queue: e.Queue, IDs: e.IDs}.Of(o)))
}

// Declared compares the verdict with the declared promises and flaws.
func (e Exploration) Declared() string {
	switch {
	case e.Verdict == Inconclusive:
		return ""
	case e.Verdict == e.Expected && e.Verdict == Pass:
		return "as declared"
	case e.Verdict == e.Expected:
		return "as its flaws declare"
	case e.Expected == Violated:
		return "though a flaw is declared, which was not seen within these bounds"
	}
	return "though no declared flaw explains it"
}

// Promise describes what the property would have meant.
func (c Counterexample) Promise() string {
	for _, info := range variant.Properties {
		if info.Of == c.Of && info.Name == c.Property {
			return info.Promise
		}
	}
	return ""
}

// StepWords describes a step.
type StepWords struct {
	Command, Answer string
	// Note describes what happened to a request without an immediate reply.
	Note string
}

// Words describes a step. It names the node if there are several.
func (s Step) Words(masters int) StepWords {
	command, answer, _ := strings.Cut(s.Text, " -> ")
	t := StepWords{Command: command, Answer: answer}
	switch s.Kind {
	case StepStart:
		t = StepWords{Command: cmp.Or(s.Text, "starts")}
	case StepPause:
		t = StepWords{Command: cmp.Or(s.Text, "goes on")}
	case StepAdvance:
		t = StepWords{Command: s.passes()}
	case StepCrash:
		t = StepWords{Command: cmp.Or(s.Text, "crashes")}
	case StepEnd:
		t = StepWords{Command: "in the end: " + s.Text}
	case StepLost:
		t.Answer, t.Note = noAnswer, "the request is lost"
	case StepNoReply:
		t.Answer, t.Note = noAnswer, "executed, the answer is lost"
	case StepLate:
		t.Answer, t.Note = noAnswer, "gives up; the request is still in flight"
	}
	if masters > 1 && s.Asks() {
		t.Command = fmt.Sprintf("node %d: %s", s.Node, t.Command)
	}
	if s.Kind == StepArrive {
		t.Command = "arrives late: " + t.Command
		t.Note = fmt.Sprintf("sent in step %d", s.Of+1)
	}
	if s.Thread > 0 {
		t.Command = fmt.Sprintf("thread %d: %s", s.Thread, t.Command)
	}
	return t
}

// Asks reports whether a request was sent in the step, or arrived.
func (s Step) Asks() bool {
	return slices.Contains([]string{StepCommand, StepLost, StepNoReply, StepLate, StepArrive}, s.Kind)
}

// passes describes an advance of the clock.
func (s Step) passes() string {
	text := "time passes: " + Millis(s.AdvanceMS)
	if s.Text != "" {
		text += "; " + s.Text
	}
	return text
}

// Has reports whether the step has a mark.
func (s Step) Has(mark string) bool { return slices.Contains(s.Marks, mark) }

// Holds returns what the server holds after the step.
func (s Step) Holds() string { return cmp.Or(s.Redis, "(empty)") }

// By names the client of the step; empty if there is none.
func (c Counterexample) By(s Step) string {
	if s.Client < 0 || s.Client >= len(c.Clients) {
		return ""
	}
	return c.Clients[s.Client]
}

// Limits returns the bounds of the search, one phrase each.
func (e Exploration) Limits() []string {
	b := e.Bounds
	limits := []string{
		Count(int64(b.Clients), "client"),
		each(b.Tries),
		upTo(b.Crashes, "crash"),
		upTo(b.Lost, "lost message"),
		upTo(b.Late, "late request"),
		upTo(b.Advances, "advance") + " of the clock while a client could run",
	}
	limits = append(limits, upTo(b.Stalls, "stall")+" between reading the clock and the next action")
	if b.Waits > 0 {
		limits = append(limits, upTo(b.Waits, "wait")+" within an acquisition")
	}
	if b.Resends > 0 {
		limits = append(limits, "orders without an answer sent again "+Count(int64(b.Resends), "time"))
	}
	if e.TTLMS > 0 {
		limits = append(limits, "leases of "+Millis(e.TTLMS))
	}
	if e.HoldMS > 0 {
		limits = append(limits, "sections of "+Millis(e.HoldMS))
	}
	if e.Stock > 0 {
		limits = append(limits, "a stock of "+Thousands(e.Stock))
	}
	if e.Quantity > 0 {
		limits = append(limits, "orders for "+Count(int64(e.Quantity), "piece"))
	}
	if b.Depth > 0 {
		limits = append(limits, "schedules of up to "+Count(int64(b.Depth), "step"))
	}
	return limits
}

// String describes the random schedules and what they prove.
func (r RandomEffort) String() string {
	text := fmt.Sprintf("then %s at random, of up to %s", Count(r.Schedules, "schedule"), Count(int64(r.Steps), "step"))
	if len(r.Chances) < 3 || r.Faultless == 0 {
		return text
	}
	return text + fmt.Sprintf("; the %s of them without faults find a bug that needs two steps in one order, and no fault, with a probability of at least %s, and one that needs three steps with %s",
		Thousands(r.Faultless), likely(r.Chances[1]), likely(r.Chances[2]))
}

// likely formats a probability above 0.
func likely(p float64) string {
	switch {
	case p > 0.9999:
		return "99.99 %"
	case p > 0.001:
		return strconv.FormatFloat(100*p, 'g', 3, 64) + " %"
	}
	return "1 in " + Thousands(int64(math.Ceil(1/p)))
}

// Entries returns what Effort.Entered counts here.
func (e Exploration) Entries() string {
	switch {
	case e.Sale != "":
		return "purchase"
	case e.Queue != "":
		return "delivery"
	case e.IDs != "":
		return "number given out"
	}
	return "entry into the critical section"
}

// each formats the number of tries of each client.
func each(tries int) string {
	if tries == 1 {
		return "1 try each"
	}
	return fmt.Sprintf("%d tries each", tries)
}

// upTo formats a bound.
func upTo(n int, noun string) string {
	if n == 0 {
		return "no " + noun
	}
	return "up to " + Count(int64(n), noun)
}

// PerSecond formats the rate of transitions; "-" if no time was measured.
func PerSecond(s Effort) string {
	if s.ElapsedMS <= 0 {
		return "-"
	}
	return Thousands(int64(float64(s.Transitions) / s.ElapsedMS * 1000))
}
