package clients

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"oversell/explore/rules"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
)

// Clients can be exchanged, and runs of their code compared, only if names mean nothing: a program may pass a token on
// and compare it with another for equality. That is checked. Each list of observations is executed under at
// least three spellings of the names, the canonical one and those of [names.OthersAfter], and so is each command by the
// servers. If the results
// differ in more than the names, the search is repeated: first with names as long as real ones, since only the length
// may differ, and then without exchanging clients, with names that look like real ones, once for each of several
// namings.

// ClientSpec says which client's code an execution runs.
type ClientSpec struct {
	// Index is 0 for a queue's producer, 1 for its consumers, and 0 for all clients of
	// other scenarios.
	Index int
	// Names gives the client's names.
	Names names.Scheme
}

// EachText returns the requests and events with f applied to every text that may hold names. Numbers in events are
// texts here, since a value drawn at random may be a number.
func EachText(pending []coro.Request, events []rules.Event, f func(string) string) ([]coro.Request, []rules.Event) {
	pending, events = slices.Clone(pending), slices.Clone(events)
	for i := range pending {
		commands := slices.Clone(pending[i].Commands)
		for j, cmd := range commands {
			commands[j] = slices.Clone(cmd)
		}
		pending[i].Commands = commands
	}
	visitTexts(pending, events, func(text string, replace func(string)) {
		if other := f(text); other != text {
			replace(other)
		}
	})
	return pending, events
}

// visitTexts calls f with every text that may hold names, and a function that puts another text in its place.
func visitTexts(pending []coro.Request, events []rules.Event, f func(text string, replace func(string))) {
	var label, arg *string
	var value *history.Value
	replaceLabel := func(text string) { *label = text }
	replaceArg := func(text string) { *arg = text }
	replaceValue := func(text string) { *value = history.Text(text) }
	for i := range pending {
		r := &pending[i]
		if r.Kind == coro.Boundary {
			label = &r.Label
			f(r.Label, replaceLabel)
		}
		for _, cmd := range r.Commands {
			for k := range cmd {
				arg = &cmd[k]
				f(cmd[k], replaceArg)
			}
		}
	}
	for i := range events {
		o := &events[i].Op
		for _, v := range [...]*history.Value{&o.Key, &o.Arg, &o.Result, &o.Session} {
			if *v != (history.Value{}) {
				value = v
				f(v.String(), replaceValue)
			}
		}
	}
}

// shape returns the parts of requests and events that EachText skips.
func shape(pending []coro.Request, events []rules.Event) string {
	b := make([]byte, 0, 64)
	add := func(numbers ...int64) {
		for _, n := range numbers {
			b = append(strconv.AppendInt(b, n, 10), ' ')
		}
	}
	for _, r := range pending {
		add(int64(r.Thread), int64(r.Kind), int64(r.Node), int64(r.Until), int64(r.Deadline))
		b = strconv.AppendBool(b, r.Tx)
		if r.Kind != coro.Boundary {
			b = append(append(b, r.Label...), ' ')
		}
		for _, cmd := range r.Commands {
			add(int64(len(cmd)))
		}
		b = append(b, ';')
	}
	for _, e := range events {
		o := e.Op
		add(int64(o.Kind), int64(o.Outcome), int64(o.Reason), int64(o.Amount), o.Fence, int64(o.Until))
		for _, is := range [...]bool{e.End, o.Key == history.Value{}, o.Arg == history.Value{}, o.Result == history.Value{}, o.Session == history.Value{}} {
			b = strconv.AppendBool(b, is)
		}
		b = append(b, ';')
	}
	return string(b)
}

// Said returns the requests and events of a run at its present place, in its own names.
func Said(book *names.Dictionary, pending []coro.Request, events []rules.Event) *names.Stand {
	s := &names.Stand{Book: book, Shape: shape(pending, events), Texts: make([]string, 0, 16), Says: func() string { return requests(pending) }}
	visitTexts(pending, events, func(text string, _ func(string)) { s.Texts = append(s.Texts, text) })
	return s
}

// Spelled replaces the texts taken by Said.
func Spelled(pending []coro.Request, events []rules.Event, texts []string) ([]coro.Request, []rules.Event) {
	i := -1
	return EachText(pending, events, func(string) string { i++; return texts[i] })
}

// Run is an execution, with its names.
type Run struct {
	// Code is the execution. Resume resumes it and takes its events.
	Code Execution
	book *names.Dictionary
	Came []rules.Event // since it was last looked at
}

// NewRun returns an execution that has just begun, with a book of its names.
func NewRun(x Execution, book *names.Dictionary) *Run {
	r := &Run{Code: x, book: book}
	r.look()
	return r
}

// stand returns the requests and events of the run at its present place.
func (r *Run) stand() *names.Stand { return Said(r.book, r.Code.Pending(), r.Came) }

// Resume shows the run an observation in canonical names.
func (r *Run) Resume(i int, o coro.Observation) {
	o.Reply = r.book.Reply(o.Reply)
	r.Code.Resume(i, o)
	r.look()
}

// failed says why the run cannot be stepped.
func (r *Run) failed() error {
	err := r.Code.Err()
	if err != nil && !r.book.Plain() {
		return r.book.Spelled(fmt.Errorf("with other names: %w", err))
	}
	return err
}

// look takes over the run's new events.
func (r *Run) look() {
	r.Came = nil
	for _, e := range r.Code.Events() {
		r.Came = append(r.Came, e.(rules.Event))
	}
}

// runs are executions that were shown the same: the first, whose tokens are spelled as
// in the canonical text, and others with other spellings.
type runs []*Run

func (rs runs) close() {
	for _, r := range rs {
		r.Code.Close()
	}
}

// settled returns where the runs stand, in canonical names. more brings another run like the
// first one to the same place.
func (rs runs) settled(known int, more func() (*Run, error)) (pending []coro.Request, events []rules.Event, drawn []names.Value, err error) {
	first := rs[0]
	if err := first.Code.Err(); err != nil {
		return nil, nil, nil, err
	}
	pending, events = first.Code.Pending(), first.Came
	if len(rs) == 1 {
		return pending, events, nil, nil
	}
	var stands []*names.Stand
	for _, r := range rs {
		if err := r.failed(); err != nil {
			return nil, nil, nil, err
		}
		stands = append(stands, r.stand())
	}
	var others runs
	defer func() { others.close() }()
	texts, drawn, err := names.Settle(stands, known, func() (*names.Stand, error) {
		r, err := more()
		if err != nil {
			return nil, err
		}
		others = append(others, r)
		return r.stand(), nil
	})
	if err != nil {
		return nil, nil, nil, Chance(err)
	}
	pending, events = Spelled(pending, events, texts)
	return pending, events, drawn, nil
}

// Chance returns names.ErrChance as ErrNondeterministic, and other errors unchanged.
func Chance(err error) error {
	if errors.Is(err, names.ErrChance) && !errors.Is(err, ErrNondeterministic) {
		return fmt.Errorf("%w: shown the same, %w", ErrNondeterministic, err)
	}
	return err
}
