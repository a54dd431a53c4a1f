package foreign

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"oversell/internal/edn"
)

// sequential says what an object does when one operation comes after the other.
type sequential struct {
	// initial is the state in the beginning, a comparable value, for a value that was given;
	// nil: none was. It is an error if the object cannot have it.
	initial func(initial edn.Value) (any, error)
	// step is the state after an operation, and whether its answer was right. Of an operation
	// without an answer, it is the state if it takes place, and whether it can.
	step func(state any, op *Op) (any, bool)
	// idle returns a function that reports whether an operation without an answer changes
	// nothing that any other operation can see, so that it need not be tried; nil: none is
	// idle.
	idle func(ops []*Op) func(*Op) bool
	// effect names what an operation does, beside its f: two with one name are alike in every
	// state. nil: its values say so.
	effect func(op *Op) string
	// bound returns a test that stops a search which cannot succeed; nil: there is none.
	bound func(*order) func(i, state int32, ahead []int32) bool
}

// text is a state that is a value as a text.
func text(initial edn.Value) (any, error) { return initial.Canon(), nil }

// always is the beginning of objects that all begin alike.
func always(state any) func(edn.Value) (any, error) {
	return func(initial edn.Value) (any, error) {
		if initial.Kind != edn.Nil {
			return nil, errors.New("it begins in one way only: leave --initial out")
		}
		return state, nil
	}
}

// wholeNumber is a state that is a number.
func wholeNumber(initial edn.Value) (any, error) {
	n, whole := initial.Int()
	switch {
	case initial.Kind == edn.Nil:
		return int64(0), nil
	case !whole || magnitude(n) >= mostSum:
		return nil, errors.New("want a whole number of less than 2^62")
	}
	return n, nil
}

// mostSum bounds the numbers that are added up, so that they do not overflow.
const mostSum = 1 << 62

// A read that returned nil did not tell what it read, as Knossos has it.
var register = sequential{initial: text, idle: unobserved, step: func(state any, op *Op) (any, bool) {
	value := state.(string)
	switch op.F {
	case "read":
		return value, op.Outcome != OK || op.Result.Kind == edn.Nil || op.Result.Canon() == value
	case "write":
		return op.Arg.Canon(), true
	}
	from, to, _ := pair(op.Arg)
	return to.Canon(), from == value
}}

// unobserved returns a function that reports whether a write without an answer wrote a value
// that no operation ever saw: every order that is legal with such a write is legal without
// it.
func unobserved(ops []*Op) func(*Op) bool {
	seen := map[string]bool{}
	for _, op := range ops {
		switch {
		case op.F == "read" && op.Outcome == OK && op.Result.Kind != edn.Nil:
			seen[op.Result.Canon()] = true
		case op.F == "cas":
			from, _, _ := pair(op.Arg)
			seen[from] = true
		}
	}
	return func(op *Op) bool {
		switch op.F {
		case "write":
			return !seen[op.Arg.Canon()]
		case "cas":
			_, to, _ := pair(op.Arg)
			return !seen[to.Canon()]
		}
		return true
	}
}

var mutex = sequential{initial: always(false), effect: func(*Op) string { return "" }, step: func(state any, op *Op) (any, bool) {
	held := state.(bool)
	wanted := op.F == "release"
	return op.F == "acquire", held == wanted
}}

// holder is the state of a lock that knows its holder.
type holder struct {
	who   string
	fence int64
}

// who returns who does an operation: the client that its value names, or its process.
func who(op *Op) string {
	for _, v := range []edn.Value{op.Result, op.Arg} {
		if client, told := v.Get("client"); told {
			return client.Canon()
		}
	}
	return op.Process
}

// fenceOf is the fencing token of an acquisition.
func fenceOf(op Op) (int64, bool) {
	if n, whole := op.Result.Int(); whole {
		return n, true
	}
	fence, _ := op.Result.Get("fence")
	return fence.Int()
}

// fencedEffect is by whom, and with which token.
func fencedEffect(op *Op) string {
	fence, told := fenceOf(*op)
	if op.F == "release" || !told {
		return who(op)
	}
	return who(op) + "\n" + strconv.FormatInt(fence, 10)
}

var ownerMutex = sequential{initial: always(holder{}), effect: who, step: func(state any, op *Op) (any, bool) {
	h := state.(holder)
	if op.F == "acquire" {
		return holder{who: who(op)}, h.who == ""
	}
	return holder{}, h.who == who(op)
}}

var fencedMutex = sequential{initial: always(holder{}), effect: fencedEffect, step: func(state any, op *Op) (any, bool) {
	h := state.(holder)
	if op.F == "release" {
		return holder{"", h.fence}, h.who == who(op)
	}
	next := holder{who(op), h.fence}
	fence, told := fenceOf(*op)
	if told && fence > 0 { // Hazelcast grants 0 where it has none
		next.fence = fence
	}
	return next, h.who == "" && (!told || fence <= 0 || fence > h.fence)
}}

var counter = sequential{initial: wholeNumber, bound: pastReads, step: func(state any, op *Op) (any, bool) {
	n := state.(int64)
	if op.F == "read" {
		read, _ := op.Result.Int()
		return n, op.Outcome != OK || read == n
	}
	more, _ := op.Arg.Int()
	return n + more, true
}}

var kv = sequential{initial: always(""), step: func(state any, op *Op) (any, bool) {
	value := state.(string)
	switch op.F {
	case "get":
		return value, op.Outcome != OK || op.Result.Text == value
	case "put":
		return op.Arg.Text, true
	}
	return value + op.Arg.Text, true
}}

// micro is one step of a transaction.
type micro struct {
	write      bool
	key, value string    // in the form that equal values have
	of, to     edn.Value // as they are written
}

// micros are the names of the steps of transactions.
var micros = map[string]bool{"read": false, "r": false, "write": true, "w": true}

func microOf(v edn.Value) (micro, bool) {
	v = v.Untagged()
	if !v.Sequence() || len(v.Items) != 3 || v.Items[0].Kind != edn.Keyword {
		return micro{}, false
	}
	write, known := micros[v.Items[0].Name()]
	of, to := v.Items[1], v.Items[2]
	return micro{write, of.Canon(), to.Canon(), of, to}, known
}

// multiRegister has the values by key as its state, written so that equal ones are equal
// texts.
var multiRegister = sequential{initial: text, step: func(state any, op *Op) (any, bool) {
	values := parsed(state.(string))
	done := op.Result
	if op.Outcome != OK || done.Kind == edn.Nil {
		done = op.Arg
	}
	for _, item := range done.Untagged().Items {
		m, _ := microOf(item)
		switch {
		case m.write:
			values[m.key] = m.value
		case op.Outcome == OK && m.value != "nil" && valueOf(values, m.key) != m.value:
			return state, false
		}
	}
	return written(values), true
}}

// valueOf is nil for what was never written, unless "" says what all have in the beginning.
func valueOf(values map[string]string, key string) string {
	if v, told := values[key]; told {
		return v
	}
	return values[""]
}

func parsed(state string) map[string]string {
	values := map[string]string{}
	for _, line := range strings.Split(state, "\n") {
		key, value, told := strings.Cut(line, "\t")
		if !told {
			key, value = "", line
		}
		values[key] = value
	}
	return values
}

func written(values map[string]string) string {
	lines := []string{values[""]}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if key != "" {
			lines = append(lines, key+"\t"+values[key])
		}
	}
	return strings.Join(lines, "\n")
}
