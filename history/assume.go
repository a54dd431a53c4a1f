package history

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"oversell/internal/exactjson"
	"oversell/internal/printable"
	"oversell/variant"
)

// Assumed lists the promises by which a history of JSON lines is judged if its header has no "promises", by the object
// of its operations: that a lock or a task has one holder, that no more is sold than there was, and that no task or
// number is given out twice. Every other property is still measured.
var Assumed = []Promise{
	{variant.Lock, variant.MutualExclusion},
	{variant.Sale, variant.NoOversell},
	{variant.Queue, variant.NoDuplicateDelivery},
	{variant.IDs, variant.UniqueIDs},
	{variant.Dispatch, variant.OneHolderPerTask},
}

// objectOf is the object of the operations of a class.
var objectOf = [classes]variant.Object{onLock: variant.Lock, onSale: variant.Sale, onQueue: variant.Queue, onIDs: variant.IDs, onPool: variant.Dispatch}

// complete completes a history that this program did not write: missing fields of its header, and the zero of its
// times. It adds remarks on what it assumed or ignored.
func (l *lineReader) complete(h *History) error {
	if l.sealed || h.Damaged {
		return nil
	}
	if err := l.guess(h); err != nil {
		return err
	}
	if remark := l.others.remark(); remark != "" {
		h.Remarks = append(h.Remarks, remark)
	}
	return nil
}

// foreign checks the unknown fields of a line: one that seems to mean a known field is an error, and the others are
// reported at the end.
func (l *lineReader) foreign(told exactjson.Names, fields []string) error {
	if l.sealed || len(told.Unknown) == 0 {
		return nil
	}
	absent := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return slices.Contains(told.Given, f) })
	if err := mistaken(told.Unknown, absent); err != nil {
		return err
	}
	l.others.add(l.number, told.Unknown)
	return nil
}

// headerFields and opFields are the fields of a header and of an operation.
var (
	headerFields = fieldNames[Header]()
	opFields     = slices.DeleteFunc(fieldNames[opLine](), func(f string) bool { return f == "trailer" || f == "cut" || f == "damaged" })
)

func fieldNames[T any]() []string {
	fields, _ := exactjson.FieldsOf(reflect.TypeFor[T]())
	return slices.Sorted(maps.Keys(fields))
}

// guess completes the header of a history from another tool, with remarks: the objects of the
// operations, and their promises.
func (l *lineReader) guess(h *History) error {
	var first [classes]int // operation, plus one
	for i := range h.Ops {
		if c := h.Ops[i].Kind.class(); first[c] == 0 {
			first[c] = i + 1
		}
	}
	given := func(field string) bool { return slices.Contains(l.told.Given, field) }
	stock, promises := given("stock"), given("promises")
	silent := !promises && !given("objects") // about its contents
	for c, of := range objectOf {
		if first[c] == 0 || of == "" || h.Header.Has(of) || !silent && (of != variant.Sale || !stock) {
			continue
		}
		if of == variant.Sale && !stock {
			return fmt.Errorf(`line 1: %w: the header has no "stock", and line %s is a %s: tell how many pieces there were to sell, such as "stock":100`,
				ErrInvalid, group(int(l.lines[first[c]-1])), h.Ops[first[c]-1].Kind)
		}
		h.Header.Objects = append(h.Header.Objects, of)
	}
	if promises {
		return nil
	}
	var told []string
	for _, p := range Assumed {
		if h.Header.Has(p.Of) {
			h.Header.Promises = append(h.Header.Promises, p)
			told = append(told, fmt.Sprintf("%s of the %s", p.Property, p.Of))
		}
	}
	if len(told) > 0 {
		h.Remarks = append(h.Remarks, `the header has no "promises": `+english.WordSeries(told, "and")+" is assumed to be promised")
	}
	return nil
}

// lateStart is how late the first operation of a history may be for its times to count
// from the start of the run. A later first operation means that the clock counts from something else.
const lateStart = time.Minute

// rebase makes the times of a history count from its first operation, if they count from something long before it, such
// as the start of the machine or of the year 1970.
func rebase(h *History) {
	if len(h.Ops) == 0 {
		return
	}
	start := Forever
	for i := range h.Ops {
		start = min(start, h.Ops[i].Due, h.Ops[i].Call)
	}
	if start <= lateStart {
		return
	}
	for i := range h.Ops {
		op := &h.Ops[i]
		op.Due, op.Call, op.Return = op.Due-start, op.Call-start, op.Return-start
		if op.Until >= start && op.Until != Forever {
			op.Until -= start
		}
	}
	h.Remarks = append(h.Remarks, fmt.Sprintf("the first operation is at %d ns: all times here count from it", int64(start)))
}

// strangers are unknown fields of a history, in the order of their appearance.
type strangers struct {
	names []string
	at    []int // the line of the first
}

// mostStrangers is how many of them are reported.
const mostStrangers = 5

func (s *strangers) add(line int, names []string) {
	for _, name := range names {
		if known := len(s.names); known > mostStrangers || slices.Contains(s.names, name) {
			continue
		}
		s.names, s.at = append(s.names, name), append(s.at, line)
	}
}

// remark says that the unknown fields were ignored; "" if there are none.
func (s *strangers) remark() string {
	if len(s.names) == 0 {
		return ""
	}
	var told []string
	for i, name := range s.names[:min(mostStrangers, len(s.names))] {
		told = append(told, fmt.Sprintf("%q (line %s)", printable.Short(name), group(s.at[i])))
	}
	if len(s.names) > mostStrangers {
		told = append(told, "others")
	}
	return "ignored what histories have no fields for: " + english.WordSeries(told, "and")
}

// meant maps names that other tools may use to fields whose absence changes verdicts.
var meant = map[string]string{
	"quantity": "amount", "qty": "amount", "count": "amount", "pieces": "amount",
	"order": "arg", "orderid": "arg", "task": "arg", "taskid": "arg",
	"product": "key", "item": "key", "sku": "key",
	"start": "call_ns", "begin": "call_ns", "end": "return_ns", "finish": "return_ns",
	"type": "kind", "op": "kind", "status": "outcome", "thread": "client", "worker": "client",
	"inventory": "stock", "promise": "promises",
}

// mistaken returns an error if an unknown field looks like a missing one: it has a similar
// spelling, or a name that means the same. Without that field, the verdict could differ from the one intended.
func mistaken(unknown, absent []string) error {
	for _, name := range unknown {
		if of := intended(name, absent); of != "" {
			return fmt.Errorf("there is no field %q: did you mean %q?", printable.Short(name), of)
		}
	}
	return nil
}

// intended returns the absent field that a name seems to mean; "" if there is none.
func intended(name string, absent []string) string {
	plain := bare(name)
	if of := meant[plain]; slices.Contains(absent, of) {
		return of
	}
	for _, of := range absent {
		if known := bare(of); plain == known || len(plain) > 3 && variant.Edits(plain, known) == 1 {
			return of
		}
	}
	return ""
}

// bare returns a name in lower case, without separators and without its unit.
func bare(name string) string {
	name = strings.ToLower(name)
	for _, unit := range []string{"_ns", "_us", "_ms", "_s"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(name)
}
