package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"oversell/checker"
	"oversell/internal/edn"
	"oversell/variant"
)

// Model is an object that a history is judged against.
type Model struct {
	// Name is its name, and Summary describes what it promises.
	Name, Summary string
	// Fs are its operations.
	Fs []string
	// Promises are the properties whose violation fails the history.
	Promises []variant.Property

	// values validates the values of an operation; nil: all are valid.
	values func(Op) error
	// lacks says why the model cannot judge a history, though it accepts each of its values; empty, or nil: it can.
	lacks func([]Op) string
	// fits distinguishes models with the same operations; nil: no other has them.
	fits func([]Op) bool
	// linear specifies a sequential object; nil: judge judges the model.
	linear *sequential
	// begin is the initial state of a sequential object.
	begin any
	// judge judges the model by a procedure of its own.
	judge func([]Op) []checker.Verdict
}

// Models lists the models.
var Models = []Model{
	{Name: "register", Summary: "a value, with read, write and compare-and-set", Fs: []string{"read", "write", "cas"},
		Promises: linearizable, values: registerValues, linear: &register},
	{Name: "mutex", Summary: "a lock that one process at a time holds, and any process may release", Fs: []string{"acquire", "release"},
		Promises: linearizable, linear: &mutex, fits: not(fenced)},
	{Name: "fenced-mutex", Summary: "a lock that only its holder releases, with rising fencing tokens", Fs: []string{"acquire", "release"},
		Promises: linearizable, values: fenceValues, lacks: withoutFences, linear: &fencedMutex, fits: fenced},
	{Name: "owner-mutex", Summary: "a lock that only its holder releases", Fs: []string{"acquire", "release"},
		Promises: linearizable, linear: &ownerMutex, fits: never},
	{Name: "counter", Summary: "a number, with add and read", Fs: []string{"add", "read"},
		Promises: linearizable, values: counterValues, linear: &counter, fits: not(readsCollections)},
	{Name: "set", Summary: "elements that are added; the last read finds all of them", Fs: []string{"add", "read"},
		Promises: []variant.Property{NoLostElement, NoUnexpectedElement}, values: setValues, judge: judgeSet, fits: readsCollections},
	{Name: "queue", Summary: "all enqueued tasks are dequeued, and no others", Fs: []string{"enqueue", "dequeue", "drain"},
		Promises: []variant.Property{variant.NoLostTask, NoUnexpectedTask}, values: queueValues, judge: judgeQueue},
	{Name: "kv", Summary: "texts by key, with put, append and get", Fs: []string{"get", "put", "append"},
		Promises: linearizable, values: kvValues, linear: &kv},
	{Name: "multi-register", Summary: "values by key that transactions read and write", Fs: []string{"txn"},
		Promises: linearizable, values: txnValues, linear: &multiRegister},
	{Name: "ids", Summary: "unique numbers", Fs: []string{"generate"},
		Promises: []variant.Property{variant.UniqueIDs}, judge: judgeIDs},
}

var linearizable = []variant.Property{variant.Linearizable}

// Properties that only foreign histories have.
const (
	NoLostElement       variant.Property = "no-lost-element"
	NoUnexpectedElement variant.Property = "no-unexpected-element"
	NoUnexpectedTask    variant.Property = "no-unexpected-task"
)

// ErrModel means that no model, or not the requested one, fits a history.
var ErrModel = errors.New("no model")

// Names returns the names of the models.
func Names() (names []string) {
	for _, m := range Models {
		names = append(names, m.Name)
	}
	return names
}

// FindModel finds the model of a history: the named one or, without a name, the one that has all its operations.
// The error names an operation with a value that the model does not accept.
func FindModel(name string, h *History) (Model, error) {
	if fs := h.fs(); name == "" && len(fs) == 1 && fs[0] == "read" {
		return Model{}, fmt.Errorf("%s:%d: %w: reads alone do not determine one: give --model (register, counter, set)", h.Path, h.Ops[0].Line, ErrModel)
	}
	at := slices.IndexFunc(Models, func(m Model) bool {
		if name != "" {
			return m.Name == name
		}
		return m.has(h.fs()) && (m.fits == nil || m.fits(h.Ops))
	})
	switch {
	case at < 0 && name != "":
		return Model{}, fmt.Errorf("%w: model %q is not known: it is one of %s", ErrModel, name, strings.Join(Names(), ", "))
	case at < 0:
		return Model{}, fmt.Errorf("%s:%d: %w: none has all of the operations %s: give --model (%s), or leave out other operations", h.Path, h.Ops[0].Line, ErrModel, strings.Join(h.fs(), ", "), strings.Join(Names(), ", "))
	}
	m, err := Models[at].From("")
	if err != nil {
		return m, err
	}
	if err := m.accepts(h); err != nil || m.lacks == nil {
		return m, err
	}
	if why := m.lacks(h.Ops); why != "" {
		return m, fmt.Errorf("%s:%d: %w: %s", h.Path, h.Ops[0].Line, ErrModel, why)
	}
	return m, nil
}

// From returns the model with an initial value in EDN; empty: the default.
func (m Model) From(initial string) (Model, error) {
	v, err := edn.Value{}, error(nil)
	switch {
	case initial != "" && m.linear == nil:
		err = errors.New("its initial state is fixed: leave out --initial")
	case initial != "":
		v, err = edn.One(initial)
	}
	if err == nil && m.linear != nil {
		m.begin, err = m.linear.initial(v)
	}
	if err != nil {
		return m, fmt.Errorf("%w: a %s cannot begin with %q: %w", ErrModel, m.Name, initial, err)
	}
	return m, nil
}

// Begin is like From, and also checks that the model accepts the history with that value.
func (m Model) Begin(initial string, h *History) (Model, error) {
	m, err := m.From(initial)
	if err != nil || initial == "" {
		return m, err
	}
	return m, m.sums(h)
}

// has reports whether the model has all of these operations.
func (m Model) has(fs []string) bool {
	return !slices.ContainsFunc(fs, func(f string) bool { return !slices.Contains(m.Fs, f) })
}

// accepts checks that the model has the operations of the history.
func (m Model) accepts(h *History) error {
	for _, op := range h.Ops {
		if !slices.Contains(m.Fs, op.F) {
			return fmt.Errorf("%s:%d: %w: a %s has no operation %s: it has %s", h.Path, op.Line, ErrModel, m.Name, op.F, strings.Join(m.Fs, ", "))
		}
		if err := op.repeats(); err != nil {
			return fmt.Errorf("%s:%w", h.Path, err)
		}
		if m.values == nil {
			continue
		}
		if err := m.values(op); err != nil {
			return fmt.Errorf("%s:%w", h.Path, err)
		}
	}
	return m.sums(h)
}

// told lists the operations that are invoked with a value and answered with the same value, or nil.
var told = []string{"write", "put", "append", "add"}

// alike reports whether one value repeats another: it is equal, or written in the same way, like ##NaN, which is
// not equal to itself.
func alike(a, b edn.Value) bool { return a.Canon() == b.Canon() || a.String() == b.String() }

// repeats checks that an answer has the value of its invocation, for operations that return no other value.
func (op Op) repeats() error {
	if !slices.Contains(told, op.F) && op.F != "cas" && op.F != "enqueue" || op.Outcome != OK || op.Result.Kind == edn.Nil || alike(op.Result, op.Arg) {
		return nil
	}
	return edn.Errorf(place(op, op.Result), "%s is answered with %.40s, and was invoked on line %d with %.40s: want the same value, or nil", op.F, op.Result, op.Line, op.Arg)
}

// sums checks that every possible value of a counter is below mostSum.
func (m Model) sums(h *History) error {
	begin, counts := m.begin.(int64)
	if !counts {
		return nil
	}
	sums := map[string]uint64{}
	for _, op := range h.Ops {
		n, _ := op.Arg.Int()
		if op.F != "add" || op.Outcome == Failed {
			continue
		}
		if _, begun := sums[op.Key]; !begun {
			sums[op.Key] = magnitude(begin)
		}
		if sums[op.Key] += magnitude(n); sums[op.Key] >= mostSum {
			return fmt.Errorf("%s:%w", h.Path, edn.Errorf(place(op, op.Arg), "a counter that begins as %d adds %s: want a sum of less than 2^62", begin, op.Arg))
		}
	}
	return nil
}

// magnitude returns the absolute value of a number.
func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func not(f func([]Op) bool) func([]Op) bool { return func(ops []Op) bool { return !f(ops) } }

// never is for models that must be requested by name.
func never([]Op) bool { return false }

// fenced reports whether a lock was ever granted with a fencing token.
func fenced(ops []Op) bool {
	return slices.ContainsFunc(ops, func(op Op) bool {
		_, told := fenceOf(op)
		return op.F == "acquire" && op.Outcome == OK && told
	})
}

// withoutFences says that locks were granted, and none with a fencing token; it is empty if that is not so.
func withoutFences(ops []Op) string {
	granted := slices.ContainsFunc(ops, func(op Op) bool { return op.F == "acquire" && op.Outcome == OK })
	if !granted || fenced(ops) {
		return ""
	}
	return "no acquire has a fencing token, such as 7 or {:fence 7}: give --model owner-mutex"
}

// fenceValues refuses a fencing token that cannot be compared with others.
func fenceValues(op Op) error {
	if op.F != "acquire" || op.Outcome != OK {
		return nil
	}
	v := fenceIn(op)
	if _, whole := v.Int(); !whole && v.Kind != edn.Nil {
		return edn.Errorf(place(op, v), "an acquire has the fencing token %s: want a whole number of 64 bits", v)
	}
	return nil
}

// readsCollections reports whether any read returned a set or a list or, if no read returned anything, whether an
// element was added that is not a number.
func readsCollections(ops []Op) bool {
	if !slices.ContainsFunc(ops, func(op Op) bool { return op.F == "read" && op.Outcome == OK }) {
		return slices.ContainsFunc(ops, func(op Op) bool { return op.F == "add" && op.Arg.Kind != edn.Int })
	}
	return slices.ContainsFunc(ops, func(op Op) bool {
		return op.F == "read" && op.Outcome == OK && op.Result.Untagged().Sequence()
	})
}

// place returns the position of a value, or of its operation if it has none.
func place(op Op, v edn.Value) edn.Position {
	if v.At.Line > 0 {
		return v.At
	}
	return edn.Position{Line: max(op.Line, op.End), Column: 1}
}

func registerValues(op Op) error {
	if op.F != "cas" {
		return nil
	}
	if _, _, two := pair(op.Arg); !two {
		return edn.Errorf(place(op, op.Arg), "a cas has the value %s: want a vector of two, what is expected and what is set, such as [1 2]", op.Arg)
	}
	return nil
}

func counterValues(op Op) error {
	v, what := op.Arg, "adds"
	if op.F == "read" {
		v, what = op.Result, "reads"
		if op.Outcome != OK {
			return nil
		}
	}
	if _, whole := v.Int(); !whole {
		return edn.Errorf(place(op, v), "a counter %s %s: want a whole number of 64 bits", what, v)
	}
	return nil
}

func setValues(op Op) error {
	if op.F == "read" && op.Outcome == OK && op.Result.Kind != edn.Nil && !op.Result.Untagged().Sequence() {
		return edn.Errorf(place(op, op.Result), "a read of a set returned %s: want a set or a vector, such as #{1 2}", op.Result)
	}
	return nil
}

func queueValues(op Op) error {
	if op.F == "drain" && op.Outcome == OK && op.Result.Kind != edn.Nil && !op.Result.Untagged().Sequence() {
		return edn.Errorf(place(op, op.Result), "a drain returned %s: want a vector of what was dequeued, such as [1 2]", op.Result)
	}
	return nil
}

func kvValues(op Op) error {
	v, what := op.Arg, map[string]string{"put": "kv puts", "append": "kv appends"}[op.F]
	if op.F == "get" {
		v, what = op.Result, "get of a kv returned"
		if op.Outcome != OK {
			return nil
		}
	}
	if v.Kind != edn.String {
		return edn.Errorf(place(op, v), "a %s %s: want a text, such as \"x\"; what was never put is \"\"", what, v)
	}
	return nil
}

func txnValues(op Op) error {
	asked, err := steps(op, op.Arg)
	if err != nil || op.Outcome != OK || op.Result.Kind == edn.Nil {
		return err
	}
	done, err := steps(op, op.Result)
	if err != nil {
		return err
	}
	same := func(a, b micro) bool {
		return a.write == b.write && alike(a.of, b.of) && (!a.write || alike(a.to, b.to))
	}
	if !slices.EqualFunc(asked, done, same) {
		return edn.Errorf(place(op, op.Result), "a transaction is answered with %.80s, and was invoked on line %d with %.80s: want the same steps, or nil", op.Result, op.Line, op.Arg)
	}
	return nil
}

// steps parses the steps of a transaction.
func steps(op Op, v edn.Value) (all []micro, err error) {
	list := v.Untagged()
	if list.Kind != edn.Vector && list.Kind != edn.List {
		return nil, edn.Errorf(place(op, v), "a transaction is %.40s: want a vector of [:read key value] and [:write key value]", v)
	}
	for _, item := range list.Items {
		m, known := microOf(item)
		if !known {
			return nil, edn.Errorf(place(op, item), "a transaction does %s: want [:read key value] or [:write key value]", item)
		}
		all = append(all, m)
	}
	return all, nil
}
