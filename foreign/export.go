package foreign

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oversell/history"
	"oversell/internal/edn"
	"oversell/internal/phrase"
)

// Event fields that only oversell reads: a line of the history in its JSON lines format. With them an exported
// history reads back unchanged, with its digest.
const (
	ownLine = ":oversell/line"
)

// WriteJepsen writes a history in Jepsen's format: one event per line, in order of time. The object of an operation
// precedes its value, as in a history of independent keys; a client that gives up waiting, or does two things
// concurrently, becomes another process; and faults are events of the nemesis.
func WriteJepsen(w io.Writer, h *history.History) error {
	var text bytes.Buffer
	if err := history.WriteJSONL(&text, h); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	out := bufio.NewWriter(w)
	own := func(line string) {
		fmt.Fprintf(out, "{:process :nemesis, :type :info, :f :oversell, %s %s}\n", ownLine, edn.Quoted(line))
	}
	own(lines[0])
	index := 0
	for _, e := range eventsOf(h.Ops) {
		fmt.Fprintf(out, "{:index %d, :time %d, :process %s, :type :%s, :f :%s, :value %s", index, e.time, e.process, e.kind, f(e.op.Kind), e.value())
		if e.line > 0 {
			fmt.Fprintf(out, ", %s %s", ownLine, edn.Quoted(lines[e.line]))
		}
		out.WriteString("}\n")
		index++
	}
	for _, line := range lines[min(1+len(h.Ops), len(lines)):] {
		own(line)
	}
	return out.Flush()
}

// jepsenEvent is an event of an exported history. line is the line of its operation; the event that completes the
// operation has it.
type jepsenEvent struct {
	op            *history.Op
	time          int64
	kind, process string
	line          int
}

// eventsOf returns the events of operations in completion order.
func eventsOf(ops []history.Op) []jepsenEvent {
	events := make([]jepsenEvent, 0, 2*len(ops))
	for i := range ops {
		op := &ops[i]
		events = append(events, jepsenEvent{op: op, time: int64(op.Call), kind: "invoke"}, jepsenEvent{op: op, time: int64(op.Return), kind: kindOf(op), line: i + 1})
	}
	slices.SortStableFunc(events, func(a, b jepsenEvent) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(min(a.line, 1), min(b.line, 1)))
	})
	p := processes{of: map[*history.Op]string{}}
	for i := range events {
		events[i].process = p.of[events[i].op]
		if events[i].line == 0 {
			events[i].process = p.begin(events[i].op)
		} else {
			p.end(events[i].op)
		}
	}
	return events
}

// kindOf returns the type of the event that completes an operation.
func kindOf(op *history.Op) string {
	switch {
	case op.Kind == history.Fault, op.Outcome == history.Unknown:
		return "info"
	case op.Outcome == history.Refused:
		return "fail"
	}
	return "ok"
}

// processes assigns processes to clients. A process without an answer is never used again.
type processes struct {
	of   map[*history.Op]string
	free map[int32][]string
	next int
}

func (p *processes) begin(op *history.Op) string {
	if op.Kind == history.Fault {
		p.of[op] = ":nemesis"
		return p.of[op]
	}
	if p.free == nil {
		p.free = map[int32][]string{}
	}
	if n := len(p.free[op.Client]); n > 0 {
		p.of[op] = p.free[op.Client][n-1]
		p.free[op.Client] = p.free[op.Client][:n-1]
	} else {
		p.of[op] = strconv.Itoa(p.next)
		p.next++
	}
	return p.of[op]
}

func (p *processes) end(op *history.Op) {
	if op.Kind != history.Fault && op.Outcome != history.Unknown {
		p.free[op.Client] = append(p.free[op.Client], p.of[op])
	}
}

// jepsenNames are Jepsen's names of operations that have another name here.
var jepsenNames = map[history.Kind]string{history.Pop: "dequeue", history.Dequeue: "withdraw", history.NextID: "generate"}

func f(k history.Kind) string {
	if name, other := jepsenNames[k]; other {
		return name
	}
	return k.String()
}

// value returns the key of the object, and the argument or the result of the operation.
func (e *jepsenEvent) value() string {
	inner := "nil"
	switch e.op.Kind {
	case history.Acquire, history.Release, history.Extend:
	case history.Pop, history.NextID, history.Take, history.Peek, history.ReadState:
		if e.kind == "ok" {
			inner = literal(e.op.Result)
		}
	default:
		inner = literal(e.op.Arg)
	}
	return "[" + literal(e.op.Key) + " " + inner + "]"
}

func literal(v history.Value) string {
	if _, whole := v.Num(); whole {
		return v.String()
	}
	return edn.Quoted(v.String())
}

// ownField finds a line of a history in a text, even if the text was reformatted.
var ownField = regexp.MustCompile(`:oversell/line[\s,]*"|#:oversell[\s,]*\{`)

// exported reports whether WriteJepsen wrote a text: it contains lines of a history.
func exported(text []byte) bool { return ownField.Match(text) }

// readBack reads a history that WriteJepsen wrote. The history is damaged if the events differ from its lines.
func readBack(path, text string) (*history.History, error) {
	events, err := eventsIn(text)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	var lines, again bytes.Buffer
	for _, v := range events {
		if line, told := v.Get("line"); told && line.Kind == edn.String {
			lines.WriteString(line.Text)
			lines.WriteByte('\n')
		}
	}
	h, err := history.ReadJSONL(&lines)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if h.Damaged {
		return h, nil
	}
	if err := WriteJepsen(&again, h); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	want, err := eventsIn(again.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if problem := difference(events, want); problem != "" {
		h.Damage("damaged: " + problem)
	}
	return h, nil
}

// difference describes how the events differ from the expected ones.
func difference(events, want []edn.Value) string {
	for i, v := range events {
		if i >= len(want) || v.String() != want[i].String() {
			return fmt.Sprintf("the event on line %d is not the one that the lines of the history in it have", v.At.Line)
		}
	}
	if len(events) < len(want) {
		return fmt.Sprintf("it has %s, and the lines of the history in it have %d", phrase.Count(len(events), "event"), len(want))
	}
	return ""
}

// eventsIn returns the events of an EDN text: the elements of a vector or a list, or a sequence.
func eventsIn(text string) (events []edn.Value, err error) {
	for r := edn.NewReader(text); ; {
		v, more, err := r.Next()
		if err != nil || !more {
			return events, err
		}
		if v = v.Untagged(); v.Sequence() {
			events = append(events, v.Items...)
		} else {
			events = append(events, v)
		}
	}
}
