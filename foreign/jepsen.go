package foreign

import (
	"regexp"
	"slices"
	"strings"

	"oversell/internal/edn"
)

// edn parses events in EDN: a vector or a list of maps, or a sequence of maps.
func (p *pairing) edn(text string) error {
	r := edn.NewReader(text)
	for {
		v, more, err := r.Next()
		if err != nil || !more {
			return err
		}
		events := []edn.Value{v}
		if v = v.Untagged(); v.Sequence() {
			events = v.Items
		}
		for _, e := range events {
			if err := p.event(e); err != nil {
				return err
			}
		}
	}
}

// event processes the event that a map describes.
func (p *pairing) event(v edn.Value) error {
	at := v.At
	if v = v.Untagged(); v.Kind != edn.Map {
		return edn.Errorf(at, "%.40s is not an event: want a map such as {:process 0, :type :invoke, :f :read, :value nil}", v)
	}
	e := event{at: at}
	if err := p.inOrder(v); err != nil {
		return err
	}
	process, told := v.Get("process")
	switch {
	case !told || process.Kind == edn.Nil:
		return missing(at, v, "process", ":process 0")
	case process.Kind == edn.Atom && strings.Trim(process.Text[:1], "+-.0123456789") == "", process.Kind > edn.Atom:
		return edn.Errorf(process.At, ":process is %.40s: want a whole number, or a keyword such as :nemesis", process)
	case process.Kind != edn.Int && process.Kind != edn.String: // :nemesis
		p.history.Skipped++
		return nil
	}
	e.process = process.Text
	var err error
	if e.kind, err = word(v, "type", ":type :invoke"); err != nil {
		return err
	}
	if e.f, err = word(v, "f", ":f :read"); err != nil {
		return err
	}
	if key, told := v.Get("key"); told && key.Kind != edn.Nil {
		e.key = key.Canon()
	}
	e.value, _ = v.Get("value")
	if at, told := v.Get("time"); told {
		e.time, _ = at.Int()
	}
	return p.take(e)
}

// inOrder checks that the indexes of events do not decrease, if they have some.
func (p *pairing) inOrder(event edn.Value) error {
	at, _ := event.Get("index")
	index, told := at.Int()
	if !told {
		return nil
	}
	if p.indexed && index < p.index {
		return edn.Errorf(event.At, "an event with index %d follows one with index %d: want events in order of their indexes", index, p.index)
	}
	p.index, p.indexed = index, true
	return nil
}

// word returns the name in a field of an event.
func word(v edn.Value, field, example string) (string, error) {
	w, told := v.Get(field)
	if !told || w.Kind == edn.Nil {
		return "", missing(v.At, v, field, example)
	}
	if w.Kind != edn.Keyword && w.Kind != edn.String && w.Kind != edn.Atom {
		return "", edn.Errorf(w.At, ":%s is %.40s: want a keyword, such as %s", field, w, example)
	}
	return w.Name(), nil
}

// missing returns the error for an event without a field; it lists its fields.
func missing(at edn.Position, v edn.Value, field, example string) error {
	var has []string
	for i := 0; i < len(v.Items); i += 2 {
		has = append(has, v.Items[i].String())
	}
	return edn.Errorf(at, "an event without :%s, such as %s; it has %.80s", field, example, strings.Join(has, " "))
}

// logged matches a log line with an event:
//
//	INFO  jepsen.util - 3	:invoke	:write	4
//	2016-02-01 17:21:04,123 INFO  jepsen.core - :nemesis :info :start nil
//	INFO [2017-04-05 17:21:04,123] jepsen worker 1 - jepsen.util 1 :invoke :read nil
var logged = regexp.MustCompile(`^(.*\bjepsen[\w.]*\b(?:\s+-)?\s+)(-?\d+|:\w+)\s+:(\w+)\s+:(\S+)(?:\s+(.*?))?\s*$`)

// logger matches the name of the logger in such a line, and process the process.
var (
	logger  = regexp.MustCompile(`\bjepsen[\w.]*\b`)
	process = regexp.MustCompile(`^(-?\d+|:\w+)$`)
)

// looksLike reports whether a line that is not an event looks like one: it contains the type of an event (:ok), or
// the remains of one after a process (1 ok :read, 1 ok read, 1 :o). Quoted maps and texts in it do not count.
func looksLike(line string) bool {
	at := logger.FindStringIndex(line)
	if at == nil {
		return false
	}
	rest := line[at[1]:]
	if quoted := strings.IndexAny(rest, `{"`); quoted >= 0 {
		rest = rest[:quoted]
	}
	words := strings.Fields(rest)
	for i, word := range words {
		name, typed := strings.CutPrefix(word, ":")
		behind := i > 0 && process.MatchString(words[i-1])
		switch _, is := kinds[name]; {
		case (is || name == "invoke") && typed:
			return true
		case (is || name == "invoke") && behind && (i+1 == len(words) || words[i+1][0] == ':' || slices.Contains(allFs(), words[i+1])):
			return true
		case i+1 == len(words) && typed && behind && words[i-1][0] != ':' && beginsKind(name):
			return true
		}
	}
	return false
}

// beginsKind reports whether a text is the beginning of an event type.
func beginsKind(text string) bool {
	for kind := range kinds {
		if strings.HasPrefix(kind, text) {
			return true
		}
	}
	return strings.HasPrefix("invoke", text)
}

// allFs returns the operations of all models.
func allFs() (fs []string) {
	for _, m := range Models {
		fs = append(fs, m.Fs...)
	}
	return fs
}

// bracketed matches a log that begins with a text in square brackets.
var bracketed = regexp.MustCompile(`^\[[^\s\[\](){}#^;:"][^\n]*\bjepsen\b`)

// isLog reports whether a text is a log. After comments, EDN begins with an opening bracket of a map or a list, a
// tag, metadata, or a vector of these; a quoted log line inside EDN does not make it a log.
func isLog(text string) bool {
	text = strings.TrimPrefix(text, "\ufeff")
	for {
		text = strings.TrimLeft(text, " \t\r\n\f,")
		if !strings.HasPrefix(text, ";") {
			break
		}
		_, text, _ = strings.Cut(text, "\n")
	}
	if text == "" || strings.IndexByte("[({#^", text[0]) >= 0 {
		return bracketed.MatchString(text)
	}
	return strings.Contains(text, "jepsen")
}

// notAnEvent is the error for a line that looks like an event but is not.
const notAnEvent = "the line looks like an event but is not: want a process, its type, what it does and a value, such as 0 :invoke :read nil"

// log parses events from the lines of a log, and skips other lines. A last line without a newline was cut off,
// perhaps within a number, and does not count.
func (p *pairing) log(text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if !strings.HasSuffix(line, "\n") {
			p.history.Cut = number
			return nil
		}
		line = strings.TrimRight(line, "\r\n")
		m := logged.FindStringSubmatchIndex(line)
		if m == nil {
			if looksLike(line) {
				return edn.Errorf(edn.Position{Line: number, Column: 1}, notAnEvent)
			}
			if strings.TrimSpace(line) != "" {
				p.history.Skipped++
			}
			continue
		}
		if err := p.logLine(number, line, m); err != nil {
			return err
		}
	}
	return nil
}

// logLine processes the event of a line; m holds the submatches of the line.
func (p *pairing) logLine(number int, line string, m []int) error {
	part := func(i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return line[m[2*i]:m[2*i+1]]
	}
	place := func(i int) edn.Position {
		return edn.Position{Line: number, Column: 1 + len([]rune(line[:m[2*i]]))}
	}
	e := event{process: part(2), kind: part(3), f: part(4), at: place(2)}
	if strings.HasPrefix(e.process, ":") {
		p.history.Skipped++
		return nil
	}
	if _, known := kinds[e.kind]; !known && e.kind != "invoke" {
		return edn.Errorf(place(3), "the event has the type %q: want :invoke, :ok, :fail or :info", e.kind)
	}
	if part(5) == "" {
		return edn.Errorf(edn.Position{Line: number, Column: 1}, notAnEvent)
	}
	v, _, err := edn.NewReaderAt(part(5), place(5)).Next()
	if err != nil {
		_, _, err = edn.NewReader(part(5)).Next() // with positions in the value
		return edn.Errorf(place(5), "the value %.40q is not EDN: %v", part(5), err)
	}
	if e.kind == "invoke" || e.kind == "ok" { // for other types, an error message follows
		if _, err := edn.One(part(5)); err != nil {
			return edn.Errorf(place(5), "the value %.40q is not one value: %v", part(5), err)
		}
	}
	e.value = v
	return p.take(e)
}

// fs lists the functions of the operations, each once, sorted.
func (h *History) fs() (all []string) {
	for _, op := range h.Ops {
		if !slices.Contains(all, op.F) {
			all = append(all, op.F)
		}
	}
	slices.Sort(all)
	return all
}
