// Package foreign reads and judges histories that other tools recorded: histories of Jepsen, as EDN or as printed
// by its older logs, and histories that a mapping extracts from production logs.
//
// A history of Jepsen is a list of events in order of time: a process invokes an operation, and completes it with
// :ok (it took place), :fail (it did not), or :info (unknown). [ReadJepsen] pairs them. [Judge] decides whether a
// [Model], such as a register or a mutex, allows the history. Histories for oversell's own monitors come from
// [ReadMapped], as a [history.History].
package foreign

import (
	"fmt"
	"os"
	"slices"

	"oversell/history"
	"oversell/internal/edn"
)

// Op is an operation of a foreign history.
type Op struct {
	// Process is the process, and F the function, such as "read".
	Process, F string
	// Key is the object, in a history of independent objects; otherwise empty.
	Key string
	// Arg is the value of the invocation, and Result the value of the completion.
	Arg, Result edn.Value
	Outcome     Outcome
	// Call and Return are the positions of both events in the history; Return is [Open] for an operation that was
	// not completed.
	Call, Return int64
	// Line is the line of the invocation, and End the line of the completion; 0: none.
	Line, End int
}

// Open is the Return of operations without an answer: they may take effect at any later time.
const Open = int64(1) << 60

// Outcome is the outcome that the process saw.
type Outcome uint8

// Outcomes.
const (
	Unknown Outcome = iota // no answer, or :info
	OK
	Failed // it did not take place
)

// History is a foreign history.
type History struct {
	// Path is the path of the file.
	Path string
	Ops  []Op
	// Processes is the number of processes, without those of a nemesis.
	Processes int
	// Skipped counts events of a nemesis and, in logs, lines that are not events.
	Skipped int
	// Cut is the number of a log's last line, if it has no newline; otherwise 0. The rest of the log is missing.
	Cut int
	// First and Last are the times of the first and the last event in nanoseconds; both 0: unknown.
	First, Last int64
}

// event is one line of a history.
type event struct {
	process, f, key string
	kind            string // invoke, ok, fail, info
	value           edn.Value
	time            int64
	at              edn.Position
}

// ReadJepsen reads a history of Jepsen: EDN, or the lines of a log. An error is one line with the file, the line
// and the column.
func ReadJepsen(path string) (*History, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return jepsenOf(path, string(text), KeysAuto)
}

// Keys determines whether values [key value] belong to independent objects.
type Keys string

// Values of Keys. The empty one is KeysAuto.
const (
	KeysAuto Keys = "auto" // yes, if all invocations have such values, and nothing else explains them
	KeysYes  Keys = "yes"  // all invocations have them
	KeysNo   Keys = "no"   // such values are pairs
)

// AllKeys lists the values of Keys.
var AllKeys = []string{string(KeysAuto), string(KeysYes), string(KeysNo)}

// Read reads a history of Jepsen, or one that [WriteJepsen] wrote; the other result is nil. It reads the file once,
// so the file may be a pipe.
func Read(path string, keys Keys) (own *history.History, jepsen *History, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	if exported(text) {
		own, err = readBack(path, string(text))
		return own, nil, err
	}
	jepsen, err = jepsenOf(path, string(text), keys)
	return nil, jepsen, err
}

// jepsenOf is ReadJepsen for the text of a file.
func jepsenOf(path, text string, keys Keys) (*History, error) {
	h, err := parseWith(text, keys)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	h.Path = path
	return h, nil
}

// parseJepsen is ReadJepsen for a text.
func parseJepsen(text string) (*History, error) { return parseWith(text, KeysAuto) }

func parseWith(text string, keys Keys) (*History, error) {
	p := pairing{open: map[string]int{}}
	read := p.edn
	if isLog(text) {
		read = p.log
	}
	if err := read(text); err != nil {
		return nil, err
	}
	if len(p.history.Ops) == 0 {
		return nil, edn.Errorf(edn.Position{Line: 1, Column: 1}, "there are no operations: a history has events such as {:process 0, :type :invoke, :f :read, :value nil}")
	}
	p.history.Processes = len(p.open)
	return &p.history, p.history.unnest(keys)
}

// pairing pairs events into operations.
type pairing struct {
	history History
	events  int64
	index   int64          // of the last event with an index
	indexed bool           // there was one
	open    map[string]int // by process: the index of its open operation plus one, or 0
}

// kinds maps the types of completions to outcomes.
var kinds = map[string]Outcome{"ok": OK, "fail": Failed, "info": Unknown}

// take processes the next event.
func (p *pairing) take(e event) error {
	p.clock(e.time)
	p.events++
	open, known := p.open[e.process]
	if e.kind == "invoke" {
		if open > 0 {
			return edn.Errorf(e.at, "process %s invokes %s while its %s of line %d has no completion: a process does one thing at a time", e.process, e.f, p.history.Ops[open-1].F, p.history.Ops[open-1].Line)
		}
		p.history.Ops = append(p.history.Ops, Op{Process: e.process, F: e.f, Key: e.key, Arg: e.value, Call: p.events, Return: Open, Line: e.at.Line})
		p.open[e.process] = len(p.history.Ops)
		return nil
	}
	outcome, isKind := kinds[e.kind]
	switch {
	case !isKind:
		return edn.Errorf(e.at, "the event has the type %q: want :invoke, :ok, :fail or :info", e.kind)
	case open == 0 && e.kind == "info":
		p.history.Skipped++
		return nil
	case open == 0 && !known:
		return edn.Errorf(e.at, "process %s completes %s, and it never invoked anything", e.process, e.f)
	case open == 0:
		return edn.Errorf(e.at, "process %s completes %s, and it has no invocation open", e.process, e.f)
	}
	op := &p.history.Ops[open-1]
	if op.F != e.f {
		return edn.Errorf(e.at, "process %s completes %s, and what it invoked on line %d is %s", e.process, e.f, op.Line, op.F)
	}
	op.Outcome, op.Result, op.End = outcome, e.value, e.at.Line
	if outcome != Unknown {
		op.Return = p.events
	}
	p.open[e.process] = 0
	return nil
}

// clock records the time of an event, if it has one.
func (p *pairing) clock(at int64) {
	if at == 0 {
		return
	}
	if p.history.First == 0 {
		p.history.First = at
	}
	p.history.Last = max(p.history.Last, at)
}

// unnest takes the keys of independent objects out of the values [key value]. Unless --keys was given, it does so
// if all invocations have such values, and nothing shows that they are pairs, such as the two values of a
// compare-and-set.
func (h *History) unnest(keys Keys) error {
	if keys == KeysNo || slices.ContainsFunc(h.Ops, func(op Op) bool { return op.Key != "" }) { // or operations have keys of their own
		return nil
	}
	keyed, bare := -1, -1
	for i, op := range h.Ops {
		_, inner, nested := pair(op.Arg)
		switch {
		case !nested && bare < 0:
			bare = i
		case nested && inner.Kind == edn.Nil && slices.Contains(asking, op.F):
			keyed = i
		}
	}
	switch {
	case bare >= 0 && keys == KeysYes:
		op := h.Ops[bare]
		return edn.Errorf(place(op, op.Arg), "%s is invoked with %.40s: with --keys yes, want [key value] in all operations", op.F, op.Arg)
	case bare >= 0 && keyed >= 0:
		op := h.Ops[bare]
		return edn.Errorf(place(op, op.Arg), "%s is invoked with %.40s, and %s on line %d with a key and a value: want [key value] in all operations, or in none", op.F, op.Arg, h.Ops[keyed].F, h.Ops[keyed].Line)
	case bare >= 0 || keys != KeysYes && !h.plainly():
		return nil
	}
	for i := range h.Ops {
		if err := h.Ops[i].unnest(); err != nil {
			return err
		}
	}
	return nil
}

// unnest takes the key of an operation out of its values. An answer of nil has no key.
func (op *Op) unnest() error {
	key, arg, _ := pair(op.Arg)
	again, result, answered := pair(op.Result)
	switch {
	case op.Outcome != OK || op.Result.Kind == edn.Nil:
	case !answered:
		return edn.Errorf(place(*op, op.Result), "%s on key %s is answered with %.40s: want [key value], or nil", op.F, key, op.Result)
	case again != key:
		return edn.Errorf(place(*op, op.Result), "%s on key %s, invoked on line %d, is answered with the key %s: want the same key", op.F, key, op.Line, again)
	}
	op.Key, op.Arg = key, arg
	if answered {
		op.Result = result
	}
	return nil
}

// plainly reports whether pairs, which all invocations have as values, are a key and a value, and not the two
// values of a compare-and-set or the steps of a transaction. The first operation that decides it counts: a tagged
// value; a pair of an operation that takes no value; and a compare-and-set, a transaction or a text, by its second
// value. Writes and adds alone do not decide; their effect is the same with keys.
func (h *History) plainly() bool {
	for _, op := range h.Ops {
		_, inner, _ := pair(op.Arg)
		switch {
		case op.Arg.Kind == edn.Tagged:
			return true
		case slices.Contains(asking, op.F):
			return inner.Kind == edn.Nil || op.Outcome == OK
		case op.F == "cas":
			_, _, nested := pair(inner)
			return nested
		case op.F == "txn":
			return transaction(inner) && !transaction(op.Arg)
		}
	}
	return true
}

// transaction reports whether a value is the steps of a transaction.
func transaction(v edn.Value) bool {
	v = v.Untagged()
	return v.Sequence() && !slices.ContainsFunc(v.Items, func(step edn.Value) bool {
		_, known := microOf(step)
		return !known
	})
}

// asking are the operations without an argument: a pair in one has a key.
var asking = []string{"read", "get", "acquire", "release", "dequeue", "drain", "generate"}

// pair splits a vector of two.
func pair(v edn.Value) (key string, inner edn.Value, ok bool) {
	v = v.Untagged()
	if v.Kind != edn.Vector || len(v.Items) != 2 {
		return "", edn.Value{}, false
	}
	return v.Items[0].Canon(), v.Items[1], true
}
