package foreign

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/history"
	"oversell/internal/edn"
	"oversell/internal/phrase"
)

// row is one row of a log.
type row struct {
	at  edn.Position
	get func(column string) (value string, at edn.Position, told bool)
}

// ReadMapped reads a production log as a mapping says. What is wrong is told with the file,
// the line and, where it is known, the column.
//
// Times that are told in milliseconds are those of the whole millisecond: an answer is taken
// to have come at its end, so that two operations of one millisecond overlap. A client that is
// told to do several things at once becomes several.
func ReadMapped(path string, m *Map) (*history.History, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h, err := m.read(text, m.form(path))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return h, nil
}

// read makes a history of a log.
func (m *Map) read(text []byte, form string) (*history.History, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	read, before := jsonRows, 1
	if form == "csv" {
		read, before = m.csvRows, 0
	}
	var ops []mapped
	skipped := 0
	err := read(text, func(r row) error {
		if m.skips(r) {
			skipped++
			return nil
		}
		op, err := m.op(r)
		ops = append(ops, op)
		return err
	})
	if err != nil {
		return nil, err
	}
	number(ops)
	lines, err := m.lines(ops, before)
	if err != nil {
		return nil, err
	}
	h, err := history.ReadJSONL(bytes.NewReader(lines))
	if err != nil {
		return nil, relocated(err, before)
	}
	if skipped > 0 {
		h.Remarks = append(h.Remarks, phrase.Count(skipped, "row")+" skipped, as the map says")
	}
	return h, nil
}

// lineNumber is how errors of package history tell of a line.
var lineNumber = regexp.MustCompile(`line ([\d,]+)(: )?`)

// relocated tells an error of the lines that a log became with the lines of the log. Where the
// log has no line of its own for the header, it stands one line further below.
func relocated(err error, before int) error {
	m := lineNumber.FindStringSubmatchIndex(err.Error())
	if m == nil {
		return fmt.Errorf("1: %w", err)
	}
	n, _ := strconv.Atoi(strings.ReplaceAll(err.Error()[m[2]:m[3]], ",", ""))
	text := err.Error()
	return fmt.Errorf("%d: %s", max(n-before, 1), text[:m[0]]+text[m[1]:])
}

// csvRows reads the rows of a table whose first line names the columns.
func (m *Map) csvRows(text []byte, take func(row) error) error {
	r := csv.NewReader(bytes.NewReader(text))
	r.ReuseRecord = true
	if m.Separator != "" {
		r.Comma = []rune(m.Separator)[0]
	}
	names, err := r.Read()
	if err != nil {
		return csvWrong(err)
	}
	names = slices.Clone(names)
	for {
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return csvWrong(err)
		}
		place := func(i int) edn.Position {
			line, column := r.FieldPos(i)
			return edn.Position{Line: line, Column: column}
		}
		err = take(row{place(0), func(column string) (string, edn.Position, bool) {
			i := slices.Index(names, column)
			if i < 0 {
				return "", edn.Position{Line: 1, Column: 1}, false
			}
			return strings.TrimSpace(record[i]), place(i), true
		}})
		if err != nil {
			return err
		}
	}
}

func csvWrong(err error) error {
	var p *csv.ParseError
	switch {
	case err == io.EOF:
		return edn.Wrong(edn.Position{Line: 1, Column: 1}, "the log is empty: its first line names the columns")
	case errors.As(err, &p) && errors.Is(err, csv.ErrFieldCount):
		return edn.Wrong(edn.Position{Line: p.Line, Column: 1}, "the row has another number of columns than the first line")
	case errors.As(err, &p):
		return edn.Wrong(edn.Position{Line: p.Line, Column: p.Column}, "%v", p.Err)
	}
	return err
}

// jsonRows reads the rows of a log that has a JSON object on each line. A dot in the name of a
// column leads into an object.
func jsonRows(text []byte, take func(row) error) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		at := edn.Position{Line: number, Column: 1}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var object map[string]any
		if err := d.Decode(&object); err != nil {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				at.Column = int(syntax.Offset)
			}
			return edn.Wrong(at, "the line is no JSON object: %v", err)
		}
		err := take(row{at, func(column string) (string, edn.Position, bool) {
			v, told := dig(object, column)
			return v, at, told
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// dig finds a value in an object: under the name as it is, or along its parts.
func dig(object map[string]any, name string) (string, bool) {
	v, told := object[name]
	if !told {
		first, rest, nested := strings.Cut(name, ".")
		inner, isObject := object[first].(map[string]any)
		if !nested || !isObject {
			return "", false
		}
		return dig(inner, rest)
	}
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	b, _ := json.Marshal(v)
	return string(b), true
}

// skips tells whether the mapping leaves a row out.
func (m *Map) skips(r row) bool {
	return slices.ContainsFunc(m.Skip, func(s *skip) bool {
		v, _, told := r.get(s.Column)
		return told && slices.Contains(s.Values, v)
	})
}

// mapped is an operation of a log, with the fields of a line of a history.
type mapped struct {
	line         int
	who          string
	call, answer int64
	fields       map[string]any
}

// op makes an operation of a row.
func (m *Map) op(r row) (mapped, error) {
	o := mapped{line: r.at.Line, fields: map[string]any{}}
	f := &m.Fields
	for _, t := range []struct {
		name string
		from *column
		to   func(text string) (any, error)
	}{
		{"kind", f.Kind, asText}, {"key", f.Key, asText}, {"arg", f.Arg, asText}, {"result", f.Result, asText}, {"session", f.Session, asText},
		{"amount", f.Amount, asNumber}, {"fence", f.Fence, asNumber},
	} {
		text, at, told, err := value(r, t.from)
		if err != nil {
			return o, err
		}
		if !told || text == "" {
			continue
		}
		if o.fields[t.name], err = t.to(text); err != nil {
			return o, edn.Wrong(at, "%s is %q: %v", t.name, text, err)
		}
	}
	var err error
	if o.who, _, _, err = value(r, f.Client); err != nil {
		return o, err
	}
	if err := m.outcome(r, &o); err != nil {
		return o, err
	}
	return o, m.times(r, &o)
}

func asText(text string) (any, error) { return text, nil }

func asNumber(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, errors.New("want a whole number")
	}
	return n, nil
}

// value is what a row has for a field; told is false without a column.
func value(r row, c *column) (text string, at edn.Position, told bool, err error) {
	switch {
	case c == nil:
		return "", r.at, false, nil
	case c.Column == "":
		return c.Value, r.at, true, nil
	}
	if text, at, told = r.get(c.Column); !told {
		return "", at, false, edn.Wrong(edn.Position{Line: r.at.Line, Column: 1}, "there is no column %q, which the map names on line %d", c.Column, c.at.Line)
	}
	if c.Values == nil {
		return text, at, true, nil
	}
	replaced, known := c.Values[text]
	if !known {
		return "", at, false, edn.Wrong(at, "%s is %q, which the values of the map on line %d do not have", c.Column, text, c.at.Line)
	}
	return replaced, at, true, nil
}

// outcome notes what came of an operation.
func (m *Map) outcome(r row, o *mapped) error {
	c := &m.Outcome
	text, at, told := r.get(c.Column)
	reason, refused := c.Refused[text]
	switch {
	case !told:
		return edn.Wrong(edn.Position{Line: r.at.Line, Column: 1}, "there is no column %q, which the map names as the outcome", c.Column)
	case slices.Contains(c.OK, text):
		o.fields["outcome"] = "ok"
	case refused:
		o.fields["outcome"], o.fields["reason"] = "refused", reason
	case slices.Contains(c.Unknown, text):
		o.fields["outcome"] = "unknown"
	case c.Else != "":
		o.fields["outcome"] = c.Else
	default:
		return edn.Wrong(at, "the outcome %q is neither ok, refused nor unknown in the map: add it to one of them, or say else: unknown", text)
	}
	return nil
}

// times notes when an operation began and ended.
func (m *Map) times(r row, o *mapped) error {
	f := &m.Fields
	call, _, err := moment(r, f.Call, "call")
	if err != nil {
		return err
	}
	o.call, o.answer = call, call
	o.fields["call_ns"] = call
	if f.Until != nil {
		until, _, err := moment(r, f.Until, "until")
		if err != nil {
			return err
		}
		o.fields["until_ns"] = until
	}
	if o.fields["outcome"] == "unknown" {
		return nil
	}
	from, base := f.Return, int64(0)
	if f.Duration != nil {
		from, base = f.Duration, call
	}
	answer, resolution, err := moment(r, from, "the time of the answer")
	if err != nil {
		return err
	}
	o.answer = base + answer + resolution - 1
	if o.answer < call {
		return edn.Wrong(r.at, "the answer came %v before the call", time.Duration(call-o.answer))
	}
	o.fields["return_ns"] = o.answer
	return nil
}

// moment reads a time, and how exactly it is told.
func moment(r row, c *column, what string) (ns, resolution int64, err error) {
	text, at, _, err := value(r, c)
	if err != nil {
		return 0, 0, err
	}
	if c.Format != "" || c.Unit == "" && strings.ContainsAny(text, "T:-") {
		layout := c.Format
		if layout == "" {
			layout = time.RFC3339
		}
		t, err := time.Parse(layout, text)
		if err != nil {
			return 0, 0, edn.Wrong(at, "%s is %q: want a time such as %s", what, text, layout)
		}
		return t.UnixNano(), fraction(text), nil
	}
	unit := units[c.Unit]
	if unit == 0 {
		unit = time.Nanosecond
	}
	whole, rest, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	part, partErr := strconv.ParseInt((rest + "000000000")[:9], 10, 64)
	if err != nil || partErr != nil || n < 0 || n > int64(1<<62)/int64(unit) {
		return 0, 0, edn.Wrong(at, "%s is %q: want a number of %s, or a format for texts", what, text, c.unitName())
	}
	resolution = int64(unit)
	for range min(len(rest), 9) {
		resolution = max(resolution/10, 1)
	}
	return n*int64(unit) + int64(float64(part)/1e9*float64(unit)), resolution, nil
}

func (c *column) unitName() string {
	if c.Unit == "" {
		return "ns"
	}
	return c.Unit
}

// fractions finds the digits of a second.
var fractions = regexp.MustCompile(`[.,](\d+)`)

// fraction is how exactly a text tells a time, in nanoseconds.
func fraction(text string) int64 {
	resolution := int64(time.Second)
	if m := fractions.FindStringSubmatch(text); m != nil {
		for range min(len(m[1]), 9) {
			resolution /= 10
		}
	}
	return resolution
}

// number gives clients numbers: one who does several things at once is several.
func number(ops []mapped) {
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ops[a].call < ops[b].call:
			return -1
		case ops[a].call > ops[b].call:
			return 1
		}
		return 0
	})
	free := map[string][]int{} // the numbers of a client, and by number when it is free
	var until []int64
	for _, i := range order {
		op := &ops[i]
		at := slices.IndexFunc(free[op.who], func(n int) bool { return until[n] < op.call })
		if at < 0 {
			at = len(free[op.who])
			free[op.who] = append(free[op.who], len(until))
			until = append(until, 0)
		}
		n := free[op.who][at]
		until[n] = op.answer
		op.fields["client"] = n
	}
}

// lines writes a history whose operations stand on the lines of the log, or as far below as the
// header takes.
func (m *Map) lines(ops []mapped, before int) ([]byte, error) {
	header := map[string]any{"schema": history.Schema, "scenario": "log"}
	if m.Stock != nil {
		header["stock"] = *m.Stock
	}
	if m.TTL != nil {
		header["ttl_ns"] = int64(m.TTL.Duration)
	}
	if m.Drift != nil {
		header["drift_ns"] = int64(m.Drift.Duration)
	}
	if m.Promises != nil {
		header["promises"] = m.Promises
	}
	var b bytes.Buffer
	line := 1
	write := func(v any) error {
		text, err := json.Marshal(v)
		b.Write(append(text, '\n'))
		line++
		return err
	}
	if err := write(header); err != nil {
		return nil, err
	}
	for _, op := range ops {
		for ; line < op.line+before; line++ {
			b.WriteByte('\n')
		}
		if err := write(op.fields); err != nil {
			return nil, err
		}
	}
	err := write(map[string]any{"trailer": map[string]any{"operations": len(ops)}})
	return b.Bytes(), err
}
