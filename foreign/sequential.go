package foreign

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/internal/edn"
)

// sequential specifies an object by the effect of operations in sequence.
type sequential struct {
	// initial returns the initial state, a comparable value, for a given value; nil: none was given. It returns an
	// error if the object cannot have it.
	initial func(initial edn.Value) (any, error)
	// step returns the state after an operation, and whether its answer was correct. For an operation without an
	// answer, it returns the state if the operation takes place, and whether it can.
	step func(state any, op *Op) (any, bool)
	// idle returns a function that reports whether an operation without an answer changes nothing that other
	// operations can observe, so that it need not be tried; nil: none is idle.
	idle func(ops []*Op) func(*Op) bool
	// effect identifies the effect of an operation besides its f: equal effects are equal in every state. nil: its
	// values identify it.
	effect func(op *Op) string
	// bound returns a test that stops a search that cannot succeed; nil: there is none.
	bound func(*order) func(i, state int32, ahead []int32) bool
}

// text returns the state of an object whose state is a value in canonical form.
func text(initial edn.Value) (any, error) { return initial.Canon(), nil }

// always returns the initial state of objects that all begin alike.
func always(state any) func(edn.Value) (any, error) {
	return func(initial edn.Value) (any, error) {
		if initial.Kind != edn.Nil {
			return nil, errors.New("its initial state is fixed: leave out --initial")
		}
		return state, nil
	}
}

// wholeNumber returns a state that is a number.
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

// mostSum bounds the numbers of a sum, to avoid overflow.
const mostSum = 1 << 62

// A read that returned nil has no result, as in Knossos.
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

// unobserved returns a function that reports whether a write without an answer wrote a value that no operation
// observed: every order that is legal with such a write is legal without it.
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

// who returns the client of an operation: the one that its value names, or its process.
func who(op *Op) string {
	for _, v := range []edn.Value{op.Result, op.Arg} {
		if client, told := v.Get("client"); told {
			return client.Canon()
		}
	}
	return op.Process
}

// fenceOf returns the fencing token of an acquisition.
func fenceOf(op Op) (int64, bool) { return fenceIn(op).Int() }

// fenceIn returns the part of an acquisition's result that is its fencing token: all of it, or a field of a map.
func fenceIn(op Op) edn.Value {
	if op.Result.Kind != edn.Map {
		return op.Result
	}
	fence, _ := op.Result.Get("fence")
	return fence
}

// fencedEffect identifies the client and the token.
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

var fencedMutex = sequential{initial: always(holder{fence: math.MinInt64}), effect: fencedEffect, step: func(state any, op *Op) (any, bool) {
	h := state.(holder)
	if op.F == "release" {
		return holder{"", h.fence}, h.who == who(op)
	}
	fence, told := fenceOf(*op)
	if !told || fence == 0 { // Hazelcast grants 0 if it has no token
		return holder{who(op), h.fence}, h.who == ""
	}
	return holder{who(op), fence}, h.who == "" && fence > h.fence
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
	key, value string    // in canonical form
	of, to     edn.Value // as written
}

// micros are the names of transaction steps.
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

// multiRegister has as its state the values by key, in canonical form, so that equal states are equal texts.
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

// valueOf returns nil for a key that was never written, unless "" holds the initial value of all keys.
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
