// Package linear asks porcupine whether a small history is linearizable, by models of a lock without leases and of a
// stock, and draws the result.
package linear

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// Porcupine searches all orders. Its time grows exponentially with the number of operations in flight and its memory
// with the square of the history, so it is used only for small histories: as the oracle of the tests, where no
// procedure here decides, and for pictures.
const (
	OracleOps     = 500             // the largest history that it is asked about
	oracleSteps   = 1 << 18         // steps of its model, the same on every machine
	OracleLimit   = 5 * time.Second // and a limit in case that still takes long
	pictureOps    = 200
	pictureLimit  = 2 * time.Second
	EndOfOpen     = math.MaxInt64 // the return of an operation without an answer
	pictureColour = "#ffc9c9"     // what broke
	faultColour   = "#ffd8a8"     // the faults of the run
)

// Operations translates recorded operations for porcupine. It omits those that the models ignore.
func Operations(ops []history.Op) []porcupine.Operation {
	out := make([]porcupine.Operation, 0, len(ops))
	extended := make(map[history.Value]bool) // sessions: with known leases
	for i := range ops {
		if op := &ops[i]; op.Kind == history.Extend && op.Outcome == history.OK {
			extended[monitor.Session(op)] = true
		}
	}
	for _, op := range ops {
		if !Modelled(&op) {
			continue
		}
		ret := int64(op.Return)
		if op.Outcome == history.Unknown {
			ret = EndOfOpen
		}
		out = append(out, porcupine.Operation{ClientId: int(op.Client), Input: op, Call: int64(op.Call), Output: op.Outcome, Return: ret})
		if op.Kind == history.Acquire && op.Outcome == history.Unknown && !extended[monitor.Session(&op)] { // it is not known when it loses the lock again
			op.Kind = history.Release
			out = append(out, porcupine.Operation{ClientId: int(op.Client), Input: op, Call: int64(op.Call), Output: op.Outcome, Return: ret})
		}
	}
	return out
}

// Modelled reports whether an operation concerns its object.
func Modelled(op *history.Op) bool {
	switch op.Kind {
	case history.Acquire:
		return op.Outcome != history.Refused || op.Reason == history.Held
	case history.Extend, history.Release:
		return op.Outcome != history.Refused || op.Reason == history.Lost
	case history.Buy:
		return op.Outcome != history.Refused || op.Reason == history.SoldOut
	case history.Refund:
		return op.Outcome != history.Refused
	case history.ReadState:
		return op.Outcome == history.OK && (op.Arg == monitor.IsLeft || op.Arg == monitor.IsSold)
	}
	return false
}

// holder is the state of the lock model: the session that holds it.
type holder struct {
	held    bool
	session history.Value
}

// LockModel returns a lock with unique sessions and without leases. An operation
// without an answer has its effect if it can, when its turn comes; its turn may come
// after everything else.
func LockModel() porcupine.Model { return lockModelFrom(holder{}) }

func lockModelFrom(start holder) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, _ any) (bool, any) {
			h, op := state.(holder), input.(history.Op)
			mine := h.held && h.session == monitor.Session(&op)
			switch {
			case op.Kind == history.Acquire && op.Outcome == history.Refused:
				return h.held, h
			case op.Kind == history.Acquire && !h.held:
				return true, holder{true, monitor.Session(&op)}
			case op.Outcome == history.Refused:
				return !mine, h
			case op.Outcome == history.OK && op.Kind == history.Acquire:
				return false, h
			case op.Kind == history.Release && mine:
				return true, holder{}
			}
			return mine || op.Outcome == history.Unknown, h
		},
		Hash: func(state any) uint64 {
			h := state.(holder)
			return maphash.Comparable(seed, h)
		},
		DescribeOperation: describe,
		DescribeState: func(state any) string {
			if h := state.(holder); h.held {
				return "held in session " + h.session.String()
			}
			return "free"
		},
	}
}

// shelf is the state of the stock model.
type shelf struct {
	left   int64
	orders string // pieces bought and refunded of the orders that matter
}

// shelfOrder is the size of an order in shelf.orders.
const shelfOrder = 16

// StockModel returns the model of a stock of pieces; package sales defines a legal order of its operations.
func StockModel(stock int64, ops []history.Op) porcupine.Model {
	return stockModelAfter(nil, stock, ops)
}

// stockModelAfter returns StockModel in the state after the operations in before.
// It tracks an order only if some operation of ops refunds it or calls it repeated.
func stockModelAfter(before []history.Op, stock int64, ops []history.Op) porcupine.Model {
	seed := maphash.MakeSeed()
	places := make(map[history.Value]int) // in shelf.orders
	for i := range ops {
		if op := &ops[i]; op.Kind == history.Refund || op.Reason == history.Repeated {
			if _, known := places[op.Arg]; !known {
				places[op.Arg] = len(places) * shelfOrder
			}
		}
	}
	step := func(s shelf, op *history.Op) (bool, shelf) {
		var bought, given uint64
		place, known := places[op.Arg]
		if known {
			o := []byte(s.orders[place : place+shelfOrder])
			bought, given = binary.LittleEndian.Uint64(o), binary.LittleEndian.Uint64(o[8:])
		}
		q := op.Pieces()
		switch number, told := op.Result.Num(); {
		case op.Kind == history.ReadState && op.Arg == monitor.IsSold:
			return stock-s.left == number, s
		case op.Kind == history.ReadState:
			return s.left == number, s
		case op.Kind == history.Refund && op.Reason == history.Repeated:
			return given > 0, s
		case op.Kind == history.Refund && given+uint64(q) <= bought:
			given += uint64(q)
			s.left += q
		case op.Kind == history.Refund:
			return op.Outcome == history.Unknown, s
		case op.Outcome == history.Refused:
			return s.left < q, s
		case op.Reason == history.Repeated:
			return bought > 0, s
		case s.left >= q && (op.Outcome == history.Unknown || !told || number < 0 || number == s.left-q):
			bought += uint64(q)
			s.left -= q
		default:
			return op.Outcome == history.Unknown, s
		}
		if known {
			orders := []byte(s.orders)
			binary.LittleEndian.PutUint64(orders[place:], bought)
			binary.LittleEndian.PutUint64(orders[place+8:], given)
			s.orders = string(orders)
		}
		return true, s
	}
	start := shelf{stock, string(make([]byte, len(places)*shelfOrder))}
	for i := range before {
		if op := &before[i]; op.Outcome == history.OK && op.Reason != history.Repeated {
			_, start = step(start, op)
		}
	}
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, _ any) (bool, any) {
			op := input.(history.Op)
			return step(state.(shelf), &op)
		},
		Hash: func(state any) uint64 {
			s := state.(shelf)
			return maphash.String(seed, s.orders) + uint64(s.left)*0x9e3779b97f4a7c15
		},
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return say.Thousands(state.(shelf).left) + " left" },
	}
}

func describe(input, _ any) string {
	op := input.(history.Op)
	s := fmt.Sprintf("%s %s", op.Kind, op.Arg)
	if op.Kind == history.Buy || op.Kind == history.Refund {
		s = fmt.Sprintf("%s order %s × %s", op.Kind, op.Arg, say.Thousands(op.Pieces()))
	}
	s += " → " + op.Outcome.String()
	if op.Reason != history.NoReason {
		s += " (" + op.Reason.String() + ")"
	}
	if op.Result != (history.Value{}) && op.Result != history.Int(-1) {
		s += " " + op.Result.String()
	}
	return s
}

// Ask asks porcupine about a small history. The number of steps is limited, so that
// the answer is the same every time; the time limit only guards against a step
// that is slow beyond reason.
func Ask(model porcupine.Model, ops []porcupine.Operation) monitor.Result {
	steps := 0
	step := model.Step
	model.Step = nil
	model.StepContext = func(_ context.Context, state, input, output any) (bool, any) {
		if steps++; steps > oracleSteps {
			return false, state // the search ends with a no that does not count
		}
		return step(state, input, output)
	}
	done := make(chan monitor.Result, 1)
	go func() {
		switch ok := porcupine.CheckOperations(model, ops); {
		case ok:
			done <- monitor.Holds
		case steps > oracleSteps:
			done <- monitor.Unknown
		default:
			done <- monitor.Violated
		}
	}()
	select {
	case r := <-done:
		return r
	case <-time.After(OracleLimit):
		return monitor.Unknown
	}
}

// ErrNothingToDraw reports that no operation of a history shows a verdict.
var ErrNothingToDraw = errors.New("draw a picture")

// Picture writes a web page that shows the operations around the witness of a verdict, at most 200 of the same object
// and key, with the orders that porcupine found for parts of them. A window of a history is not a history: the picture
// starts from a state that sums up the operations before, and does not show leases, so the page illustrates the verdict
// and proves nothing.
func Picture(w io.Writer, h *history.History, v monitor.Verdict) error {
	if len(v.Witness) == 0 {
		return fmt.Errorf("%w: the verdict has no witness", ErrNothingToDraw)
	}
	before, ops := window(h, v)
	if len(ops) == 0 {
		return fmt.Errorf("%w: no operation of the %s has an answer", ErrNothingToDraw, v.Of)
	}
	model := lockModelFrom(heldAfter(before))
	if v.Of == variant.Sale {
		model = stockModelAfter(before, h.Header.Stock, ops)
	}
	list := Operations(ops)
	last := int64(0)
	for _, op := range ops {
		last = max(last, int64(op.Return))
	}
	for i := range list {
		list[i].Return = min(list[i].Return, last+1)
	}
	_, info := porcupine.CheckOperationsVerbose(model, list, pictureLimit)
	var notes []porcupine.Annotation
	for _, op := range v.Witness {
		notes = append(notes, porcupine.Annotation{ClientId: int(op.Client), Start: int64(op.Call), End: int64(op.Return),
			Description: "witness: " + describe(op, nil), Details: v.Why, BackgroundColor: pictureColour})
	}
	first := history.Forever
	for _, op := range ops {
		first = min(first, op.Call)
	}
	info.AddAnnotations(append(notes, faultNotes(h, first, time.Duration(last))...))
	if err := porcupine.Visualize(model, info, w); err != nil {
		return fmt.Errorf("draw a picture: %w", err)
	}
	return nil
}

// faultNotes shade the times of the faults that fired between first and last.
func faultNotes(h *history.History, first, last time.Duration) (notes []porcupine.Annotation) {
	for op := range h.Each() {
		if op.Kind == history.Fault && op.Call <= last && op.Return >= first {
			notes = append(notes, porcupine.Annotation{Tag: "faults", Start: int64(max(op.Call, first)), End: int64(min(op.Return, last+1)),
				Description: fmt.Sprintf("%s: %s", op.Key, op.Result), BackgroundColor: faultColour})
		}
	}
	return notes
}

// window returns the operations of the witness's object and key closest to the
// witness in completion order, and those before them.
func window(h *history.History, v monitor.Verdict) (before, ops []history.Op) {
	key := v.Witness[0].Key
	var all []history.Op
	first, last := -1, -1
	for op := range h.Each() {
		if op.Key != key || op.Kind == history.ReadState || !Modelled(op) || (op.Kind == history.Buy || op.Kind == history.Refund) != (v.Of == variant.Sale) {
			continue
		}
		if op.Return == v.Witness[0].Return || op.Return == v.Witness[len(v.Witness)-1].Return {
			if first < 0 {
				first = len(all)
			}
			last = len(all)
		}
		all = append(all, *op)
	}
	if len(all) == 0 {
		return nil, nil
	}
	first, last = max(first, 0), max(last, 0)
	from := max(0, min(first-(pictureOps-(last-first))/2, len(all)-pictureOps))
	if last-first >= pictureOps { // too far apart: the end shows more
		from = max(0, last+1-pictureOps)
	}
	to := min(len(all), from+pictureOps)
	return all[:from], all[from:to]
}

// heldAfter returns which session held the lock after some operations, if they show it.
func heldAfter(ops []history.Op) holder {
	var h holder
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Outcome != history.OK:
		case op.Kind == history.Acquire:
			h = holder{true, monitor.Session(op)}
		case op.Kind == history.Release && h.session == monitor.Session(op):
			h = holder{}
		}
	}
	return h
}
