package foreign

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oversell/history"
	"oversell/internal/edn"
	"oversell/internal/exactjson"
	"oversell/internal/phrase"
	"oversell/internal/printable"
)

// row is one row of a log.
type row struct {
	at  edn.Position
	get func(column string) (value cell, at edn.Position, told bool)
	// gaps are the columns that some rows may lack, and the first error about one; nil: no row may lack a column.
	gaps map[string]error
}

// lacks reports whether a row has no value of a field that it does not need: the cell is empty or, in an object, missing.
func (r row) lacks(c *column) bool {
	if c == nil || c.Column == "" {
		return c == nil
	}
	v, _, told := r.get(c.Column)
	if told {
		if r.gaps != nil {
			r.gaps[c.Column] = nil
		}
		return strings.TrimSpace(v.written) == ""
	}
	if r.gaps == nil {
		return false
	}
	if _, known := r.gaps[c.Column]; !known {
		_, _, _, r.gaps[c.Column] = value(r, c)
	}
	return true
}

// cell is the value of a column: in canonical form, and as written, which shows the precision of a time.
type cell struct{ text, written string }

// ReadMapped reads a production log by a mapping. An error names the file, the line and, if known, the column.
//
// A time in milliseconds stands for the whole millisecond: a call is assumed at its beginning and an answer at its
// end, so that two operations of one millisecond overlap. An operation that refers to a grant, such as the release
// of a lock, came after its answer: only these two are ordered within the millisecond. A client that does several
// things concurrently becomes several clients.
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

// read converts a log to a history.
func (m *Map) read(text []byte, form string) (*history.History, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := unicodeText(text); err != nil {
		return nil, err
	}
	read, before := jsonRows, 1
	if form == "csv" {
		read, before = m.csvRows, 0
	}
	var ops []mapped
	skipped := 0
	gaps := make(map[string]error) // a column that no row has is a mistake in the map
	err := read(text, func(r row) error {
		if form != "csv" {
			r.gaps = gaps
		}
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
	for _, name := range slices.Sorted(maps.Keys(gaps)) {
		if gaps[name] != nil {
			return nil, gaps[name]
		}
	}
	inOrder(ops)
	names := number(ops)
	lines, err := m.lines(ops, before)
	if err != nil {
		return nil, err
	}
	h, err := history.ReadJSONL(bytes.NewReader(lines))
	if err != nil {
		return nil, relocated(err, before)
	}
	if m.zoneless() {
		h.Remarks = append(h.Remarks, "the map has times without a zone: they are read as UTC, so that when clocks are put back an hour occurs twice")
	}
	if names != "" {
		h.Remarks = append(h.Remarks, names)
	}
	if skipped > 0 {
		h.Remarks = append(h.Remarks, phrase.Count(skipped, "row")+" skipped, as the map says")
	}
	return h, nil
}

// unicodeText refuses a text that is not UTF-8: two identities could become one.
func unicodeText(text []byte) error {
	at := edn.Position{Line: 1, Column: 1}
	for rest := text; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		switch {
		case c == utf8.RuneError && n == 1:
			return edn.Errorf(at, "the text is not UTF-8: want UTF-8, because other texts cannot be told apart")
		case c == '\n':
			at = edn.Position{Line: at.Line + 1, Column: 1}
		default:
			at.Column++
		}
		rest = rest[n:]
	}
	return nil
}

// lineNumber matches the line numbers in errors of package history.
var lineNumber = regexp.MustCompile(`line ([\d,]+)(: )?`)

// relocated replaces the line numbers of the converted history in an error by those of the log. The history has a
// header, so it may be one line ahead.
func relocated(err error, before int) error {
	m := lineNumber.FindStringSubmatchIndex(err.Error())
	if m == nil {
		return fmt.Errorf("1: %w", err)
	}
	text := err.Error()
	line := func(digits string) int {
		n, _ := strconv.Atoi(strings.ReplaceAll(digits, ",", ""))
		return max(n-before, 1)
	}
	rest := otherLine.ReplaceAllStringFunc(text[m[1]:], func(other string) string {
		at := strings.LastIndexByte(other, ' ') + 1
		return other[:at] + strconv.Itoa(line(other[at:]))
	})
	return fmt.Errorf("%d: %s", line(text[m[2]:m[3]]), text[:m[0]]+rest)
}

// otherLine matches references to other lines in such errors.
var otherLine = regexp.MustCompile(`\b(on|see) line [\d,]*\d`)

// csvRows reads the rows of a table with column names in the first line.
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
	if err := m.header(r, names); err != nil {
		return err
	}
	if err := m.whole(text, names); err != nil {
		return err
	}
	begins := linesOf(text)
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
		err = take(row{at: place(0), get: func(column string) (cell, edn.Position, bool) {
			i := slices.Index(names, column)
			if i < 0 {
				return cell{}, edn.Position{Line: 1, Column: 1}, false
			}
			v, at := record[i], place(i)
			if text[begins[at.Line-1]+at.Column-1:][0] != '"' { // blanks in quotes are part of a value
				v = strings.TrimSpace(v)
			}
			return cell{v, v}, at, true
		}})
		if err != nil {
			return err
		}
	}
}

// linesOf returns the offsets at which the lines of a text begin, and its end.
func linesOf(text []byte) (begins []int) {
	at := 0
	for line := range bytes.Lines(text) {
		begins = append(begins, at)
		at += len(line)
	}
	return append(begins, at)
}

// whole refuses a table whose last line has no newline, if the mapping uses the last column: 12 may have been 120.
func (m *Map) whole(text []byte, names []string) error {
	last := text[len(text)-1]
	if last == '\n' || last == '"' || !m.names(names[len(names)-1]) {
		return nil
	}
	return edn.Errorf(edn.Position{Line: bytes.Count(text, []byte("\n")) + 1, Column: 1}, "the last line has no newline, and may be cut off in column %q: if it is complete, end it with a newline", names[len(names)-1])
}

// header checks the columns that the mapping names.
func (m *Map) header(r *csv.Reader, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) && m.names(name) {
			line, column := r.FieldPos(i)
			return edn.Errorf(edn.Position{Line: line, Column: column}, "the column %q, which the map names, appears twice", name)
		}
	}
	for _, s := range m.Skip {
		if !slices.Contains(names, s.Column) {
			return edn.Errorf(edn.Position{Line: 1, Column: 1}, "there is no column %q, which the map names under skip", s.Column)
		}
	}
	return nil
}

func csvWrong(err error) error {
	var p *csv.ParseError
	switch {
	case err == io.EOF:
		return edn.Errorf(edn.Position{Line: 1, Column: 1}, "the log is empty: its first line names the columns")
	case errors.As(err, &p) && errors.Is(err, csv.ErrFieldCount):
		return edn.Errorf(edn.Position{Line: p.Line, Column: 1}, "the row has another number of columns than the first line")
	case errors.As(err, &p):
		return edn.Errorf(edn.Position{Line: p.Line, Column: p.Column}, "%v", p.Err)
	}
	return err
}

// jsonRows reads the rows of a log with a JSON object on each line. A dot in the name of a column leads into an
// object.
func jsonRows(text []byte, take func(row) error) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		at := edn.Position{Line: number, Column: 1}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		object, err := objectOf(line, number)
		if err != nil {
			return err
		}
		err = take(row{at: at, get: func(column string) (cell, edn.Position, bool) {
			v, told := dig(object, column)
			return v, at, told
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// objectOf parses the JSON object on a line.
func objectOf(line []byte, number int) (map[string]any, error) {
	wrong := func(offset int64, format string, a ...any) error {
		before := line[:min(max(offset, 0), int64(len(line)))]
		return edn.Errorf(edn.Position{Line: number, Column: 1 + utf8.RuneCount(before)}, format, a...)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	v, err := exactjson.Next(d)
	if err == nil {
		if object, is := v.(map[string]any); is && halfPair(object, line) {
			return nil, wrong(0, "a text has half of a surrogate pair: want Unicode, because other texts cannot be told apart")
		}
	}
	object, is := v.(map[string]any)
	var syntax *json.SyntaxError
	switch {
	case !is && bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")):
		return nil, wrong(0, "the line is not a JSON object: want one such as {\"user\":\"ann\"} on each line")
	case errors.As(err, &syntax):
		return nil, wrong(syntax.Offset-1, "the line is not a JSON object: %v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, wrong(0, "the line ends within a value: want a JSON object on one line")
	case err != nil:
		return nil, wrong(d.InputOffset()-1, "%v", err)
	case !is:
		return nil, wrong(0, "the line is not a JSON object: want one such as {\"user\":\"ann\"} on each line")
	}
	if rest := line[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		blanks := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
		return nil, wrong(d.InputOffset()+int64(blanks), "the line continues after its JSON object: want one object per line")
	}
	return object, nil
}

// halfPair reports whether a text in a decoded object contains a replacement character (U+FFFD) although the line
// contains none: the decoder has put it in place of half of a surrogate pair.
func halfPair(v any, line []byte) bool {
	if bytes.Contains(line, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(line), []byte(`\ufffd`)) {
		return false
	}
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, utf8.RuneError)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return halfPair(v, line) })
	case map[string]any:
		for name, v := range v {
			if strings.ContainsRune(name, utf8.RuneError) || halfPair(v, line) {
				return true
			}
		}
	}
	return false
}

// dig finds a value in an object: by the whole name, or along its parts.
func dig(object map[string]any, name string) (cell, bool) {
	v, told := object[name]
	if !told {
		first, rest, nested := strings.Cut(name, ".")
		inner, isObject := object[first].(map[string]any)
		if !nested || !isObject {
			return cell{}, false
		}
		return dig(inner, rest)
	}
	switch v := v.(type) {
	case nil:
		return cell{}, true
	case string:
		return cell{v, v}, true
	case json.Number:
		return cell{canonNumber(v.String()), v.String()}, true
	}
	b, _ := json.Marshal(v)
	return cell{string(b), string(b)}, true
}

// mostDigits bounds the numbers that are converted to canonical form, and their exponents.
const mostDigits = 40

// canonNumber returns the canonical form of a JSON number: 7 for 7.0 and 70e-1, 7.5 for 7.50.
func canonNumber(text string) string {
	_, exponent, has := strings.Cut(strings.ToLower(text), "e")
	if n, err := strconv.Atoi(exponent); len(text) > mostDigits || has && (err != nil || max(n, -n) > mostDigits) {
		return text
	}
	n, ok := new(big.Rat).SetString(text)
	switch {
	case !ok:
		return text
	case n.IsInt():
		return n.Num().String()
	}
	return strings.TrimRight(n.FloatString(2*mostDigits), "0")
}

// skips reports whether the mapping skips a row.
func (m *Map) skips(r row) bool {
	return slices.ContainsFunc(m.Skip, func(s *skip) bool {
		v, _, told := r.get(s.Column)
		return told && slices.Contains(s.Values, v.text)
	})
}

// mapped is an operation of a log, with the fields of a history line.
type mapped struct {
	line int
	who  string
	// call and latest bound the time of the call; earliest and answer bound the time of the answer.
	call, latest     int64
	earliest, answer int64
	fields           map[string]any
}

// op converts a row to an operation.
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
		if slices.Contains(spareable, t.name) && r.lacks(t.from) {
			continue
		}
		v, at, told, err := value(r, t.from)
		if err != nil {
			return o, err
		}
		text := v.text
		if !told || text == "" {
			continue
		}
		if o.fields[t.name], err = t.to(text); err != nil {
			return o, edn.Errorf(at, "%s is %q: %v", t.name, text, err)
		}
	}
	client, _, _, err := value(r, f.Client)
	if err != nil {
		return o, err
	}
	o.who = client.text
	if err := m.outcome(r, &o); err != nil {
		return o, err
	}
	return o, m.times(r, &o)
}

// spareable are the fields that not every operation has.
var spareable = []string{"result", "session", "amount", "fence"}

// leased are the kinds of operations that grant a lease. If the map names a column for its end, they need a value there
// when they succeed.
var leased = []string{"acquire", "extend", "take"}

func asText(text string) (any, error) { return text, nil }

func asNumber(text string) (any, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return nil, errors.New("want a whole number of 64 bits")
	}
	return n, nil
}

// value returns the value of a field in a row; told is false without a column.
func value(r row, c *column) (v cell, at edn.Position, told bool, err error) {
	switch {
	case c == nil:
		return cell{}, r.at, false, nil
	case c.Column == "":
		return cell{c.Value, c.Value}, r.at, true, nil
	}
	if v, at, told = r.get(c.Column); !told {
		return cell{}, at, false, edn.Errorf(edn.Position{Line: r.at.Line, Column: 1}, "there is no column %q, which the map names on line %d", c.Column, c.at.Line)
	}
	if c.Values == nil {
		return v, at, true, nil
	}
	replaced, known := c.Values[v.text]
	if !known {
		return cell{}, at, false, edn.Errorf(at, "%s is %q, which the values of the map on line %d do not have", c.Column, v.text, c.at.Line)
	}
	return cell{replaced, replaced}, at, true, nil
}

// outcome sets the outcome of an operation.
func (m *Map) outcome(r row, o *mapped) error {
	c := &m.Outcome
	v, at, told := r.get(c.Column)
	text := v.text
	reason, refused := c.Refused[text]
	switch {
	case !told:
		return edn.Errorf(edn.Position{Line: r.at.Line, Column: 1}, "there is no column %q, which the map names as the outcome", c.Column)
	case slices.Contains(c.OK, text):
		o.fields["outcome"] = "ok"
	case refused:
		o.fields["outcome"], o.fields["reason"] = "refused", reason
	case slices.Contains(c.Unknown, text):
		o.fields["outcome"] = "unknown"
	case c.Else != "":
		o.fields["outcome"] = c.Else
	default:
		return edn.Errorf(at, "the outcome %q is neither ok, refused nor unknown in the map: add it to one of them, or say else: unknown", text)
	}
	return nil
}

// times sets the times of an operation.
func (m *Map) times(r row, o *mapped) error {
	f := &m.Fields
	call, resolution, err := moment(r, f.Call, "call")
	if err != nil {
		return err
	}
	o.call, o.latest, o.answer = call, call+resolution-1, call
	o.fields["call_ns"] = call
	kind, _ := o.fields["kind"].(string)
	if needed := o.fields["outcome"] == "ok" && slices.Contains(leased, kind); f.Until != nil && (needed || !r.lacks(f.Until)) {
		until, _, err := moment(r, f.Until, "until")
		if err != nil {
			return err
		}
		o.fields["until_ns"] = until
	}
	if o.fields["outcome"] == "unknown" {
		return nil
	}
	from, base := f.Return, span64{}
	if f.Duration != nil {
		from, base = f.Duration, span64{o.call, o.latest}
	}
	answer, resolution, err := moment(r, from, "the time of the answer")
	if err != nil {
		return err
	}
	o.earliest, o.answer = base.first+answer, base.last+answer+resolution-1
	if o.answer < call {
		return edn.Errorf(r.at, "the answer came %v before the call", time.Duration(call-o.earliest))
	}
	o.fields["return_ns"] = o.answer
	return nil
}

// span64 is a range of times.
type span64 struct{ first, last int64 }

// decimal matches an unsigned decimal number.
var decimal = regexp.MustCompile(`^\d+(\.\d*)?$`)

// moment parses a time and determines its precision.
func moment(r row, c *column, what string) (ns, resolution int64, err error) {
	v, at, _, err := value(r, c)
	if err != nil {
		return 0, 0, err
	}
	text := strings.TrimSpace(v.written)
	if c.Format != "" || c.Unit == "" && strings.ContainsAny(text, "T:-") {
		return momentOf(text, c.Format, what, at)
	}
	unit := units[c.Unit]
	if unit == 0 {
		unit = time.Nanosecond
	}
	whole, rest, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || !decimal.MatchString(text) || n > int64(1<<62)/int64(unit) {
		return 0, 0, edn.Errorf(at, "%s is %q: want a number of %s, or a format for texts", what, text, c.unitName())
	}
	part, _ := strconv.ParseInt((rest + "000000000")[:9], 10, 64)
	resolution = int64(unit)
	for range min(len(rest), 9) {
		resolution = max(resolution/10, 1)
	}
	return n*int64(unit) + part*int64(unit)/1e9, resolution, nil
}

// momentOf parses a time that is a text.
func momentOf(text, layout, what string, at edn.Position) (ns, resolution int64, err error) {
	example := fmt.Sprintf("a time as the format %q has it, in which Go writes 2 January 2006, 15:04:05", layout)
	if layout == "" {
		layout, example = time.RFC3339, "a time of RFC 3339, such as 2026-01-31T15:04:05Z"
	}
	t, err := time.Parse(layout, text)
	switch {
	case err != nil:
		return 0, 0, edn.Errorf(at, "%s is %q: want %s", what, text, example)
	case t.Before(time.Unix(0, 0)) || t.After(time.Unix(0, 1<<61)):
		return 0, 0, edn.Errorf(at, "%s is %q: want a time from 1970 to 2043", what, text)
	}
	return t.UnixNano(), exactness(layout, text, t), nil
}

func (c *column) unitName() string {
	if c.Unit == "" {
		return "ns"
	}
	return c.Unit
}

// zoneless reports whether a time format of the map leaves the zone open, like one with an abbreviated zone name.
func (m *Map) zoneless() bool {
	at := time.Date(2001, 1, 1, 1, 1, 1, 0, time.UTC)
	for _, c := range []*column{m.Fields.Call, m.Fields.Return, m.Fields.Until} {
		if c != nil && c.Format != "" && !strings.HasSuffix(c.Format, "Z") && at.Format(c.Format) == at.Add(-time.Hour).In(time.FixedZone("UTC", 3600)).Format(c.Format) {
			return true
		}
	}
	return false
}

// exactness returns the precision of a time's text, in nanoseconds: that of its layout and, if it has seconds, of
// their decimals.
func exactness(layout, text string, t time.Time) int64 {
	base := time.Date(2001, 1, 1, 1, 1, 1, 0, time.UTC)
	for _, step := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 31 * 24 * time.Hour} {
		if base.Format(layout) != base.Add(step).Format(layout) {
			if step == time.Second {
				step = fraction(layout, text, t)
			}
			return int64(step)
		}
	}
	return int64(366 * 24 * time.Hour)
}

// fractions matches the decimals of a second after a colon and the second, and anyFraction possible decimals; zeros
// matches them in a layout.
var (
	fractions   = regexp.MustCompile(`:\d\d[.,](\d+)`)
	anyFraction = regexp.MustCompile(`[.,](\d+)`)
	zeros       = regexp.MustCompile(`5[.,](0+)`)
)

// fraction returns the precision of the seconds in a text.
func fraction(layout, text string, t time.Time) time.Duration {
	digits := ""
	if m := zeros.FindStringSubmatch(layout); m != nil {
		digits = m[1]
	} else if m := fractions.FindStringSubmatch(text); m != nil {
		digits = m[1]
	} else if t.Nanosecond() != 0 {
		for _, m := range anyFraction.FindAllStringSubmatch(text, -1) {
			if n, _ := strconv.Atoi((m[1] + "000000000")[:9]); n == t.Nanosecond() {
				digits = m[1]
			}
		}
	}
	exact := time.Second
	for range min(len(digits), 9) {
		exact /= 10
	}
	return exact
}

// refers names the field by which an operation refers to a grant, or is one.
var refers = map[string]struct {
	field, grant string
}{
	"acquire": {"arg", "acquire"}, "extend": {"arg", "acquire"}, "release": {"arg", "acquire"},
	"pop": {"session", "pop"}, "ack": {"session", "pop"},
	"take": {"session", "take"}, "submit": {"session", "take"},
}

// inOrder moves operations behind the grant that they refer to, if the times allow both orders.
func inOrder(ops []mapped) {
	type grant struct{ kind, key, id any }
	grants, others := map[grant][]*mapped{}, map[grant][]*mapped{}
	var order []grant
	for i := range ops {
		o := &ops[i]
		kind, _ := o.fields["kind"].(string)
		r, is := refers[kind]
		if !is || o.fields[r.field] == nil || kind == r.grant && o.fields["outcome"] == "refused" {
			continue
		}
		id := grant{r.grant, o.fields["key"], o.fields[r.field]}
		if kind != r.grant {
			others[id] = append(others[id], o)
			continue
		}
		if grants[id] == nil {
			order = append(order, id)
		}
		grants[id] = append(grants[id], o)
	}
	cut := int64(0)
	for _, id := range order {
		cut = after(grants[id], others[id], cut)
	}
}

// after moves operations behind the grant that they refer to, by moving its answer and their calls within the
// precision of their times. It uses a different time for each grant, so that it never makes two grants overlap; it
// returns the latest one.
func after(grants, others []*mapped, before int64) int64 {
	g := grants[0]
	first, last, needed := g.call, g.answer, false
	if g.fields["outcome"] != "unknown" {
		first = max(first, g.earliest)
	}
	var behind []*mapped
	for _, o := range others {
		latest := o.latest
		if o.fields["outcome"] != "unknown" {
			latest = min(latest, o.answer)
		}
		if o.call > g.answer || latest <= first {
			continue // it came later anyway, or too early
		}
		needed, last = true, min(last, latest-1)
		behind = append(behind, o)
	}
	if !needed {
		return before
	}
	at := min(max(first+1, before+2), last)
	if before >= last || last < first+1 {
		at = max(min(first+1, last), first)
	}
	for _, g := range grants {
		if g.fields["outcome"] != "unknown" {
			g.answer = at
			g.fields["return_ns"] = at
		}
	}
	for _, o := range behind {
		o.call = max(o.call, at+1)
		o.fields["call_ns"] = o.call
	}
	return max(before, at)
}

// request is what the answers to one request have in common.
type request struct {
	who                string
	kind, key, session any
	call, answer       int64
}

// number assigns numbers to clients. A client that does several things concurrently gets several numbers. Clients that
// the log numbers keep their numbers; of others it returns a sentence with the names.
func number(ops []mapped) (names string) {
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
	free := map[string][]int{} // by client, when each of its numbers becomes free
	until := make([]int64, numbered(ops))
	kept := len(until) > 0
	var list []string
	requests := map[request]int{} // with several answers, such as a pop of several tasks
	for _, i := range order {
		op := &ops[i]
		r := request{op.who, op.fields["kind"], op.fields["key"], op.fields["session"], op.call, op.answer}
		if n, known := requests[r]; known && r.session != nil && (r.kind == "pop" || r.kind == "enqueue" || r.kind == "peek") {
			op.fields["client"] = n
			continue
		}
		at := slices.IndexFunc(free[op.who], func(n int) bool { return until[n] < op.call })
		if at < 0 {
			at = len(free[op.who])
			next := len(until)
			if own, _ := strconv.Atoi(op.who); kept && at == 0 {
				next = own
			} else {
				until = append(until, 0)
				list = append(list, fmt.Sprintf("%d is %s", next, printable.Short(op.who)))
			}
			free[op.who] = append(free[op.who], next)
		}
		n := free[op.who][at]
		until[n], requests[r] = op.answer, n
		op.fields["client"] = n
	}
	if len(list) == 0 || ops[0].who == "" {
		return ""
	}
	more := ""
	if len(list) > mostNames {
		list, more = list[:mostNames], fmt.Sprintf(", and so on, in the order of their first calls: %d in all", len(list))
	}
	return "clients by their numbers here: " + strings.Join(list, ", ") + more
}

// mostNames bounds the names in a sentence, and mostNumber the numbers that clients keep.
const (
	mostNames  = 50
	mostNumber = 1 << 16
)

// numbered returns one more than the largest number of a client if the log numbers all of them; otherwise 0.
func numbered(ops []mapped) (size int) {
	for i := range ops {
		n, err := strconv.Atoi(ops[i].who)
		if err != nil || n < 0 || n >= mostNumber || strconv.Itoa(n) != ops[i].who {
			return 0
		}
		size = max(size, n+1)
	}
	return size
}

// lines writes a history with each operation on its line of the log, or further down by the lines of the header.
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
