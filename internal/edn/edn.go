// Package edn reads values in extensible data notation, as Clojure prints them, with their positions.
//
// It reads more than the notation has, because histories are printed by Clojure: ratios,
// hexadecimal numbers, ##NaN, regular expressions, var quotes, and maps with a namespace
// (#:jepsen{:f :read}). The input is not trusted: no input makes the package panic, and
// values that are nested deeper than maxDepth are refused.
package edn

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep values may be nested.
const maxDepth = 200

// Kind is the kind of a value.
type Kind uint8

// The kinds. Atom is everything that has no parts and no kind of its own: a boolean, a
// symbol, a number that is no integer, a character, a regular expression.
const (
	Nil Kind = iota
	Int
	String
	Keyword
	Atom
	List
	Vector
	Map
	Set
	Tagged
)

// Position is a place in a text: the line and the column of a character, from 1.
type Position struct{ Line, Column int }

// String returns p as line:column, both from 1.
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Value is a value and its place.
type Value struct {
	Kind Kind
	// Text is the text of a String, the name of a Keyword without its colon, the tag of a Tagged, and the literal of an
	// Int or an Atom.
	Text string
	// Items are the elements of a List, a Vector or a Set, the alternating keys and values of a Map, and the value of a
	// Tagged.
	Items []Value
	At    Position
}

// Sequence reports whether the value is a list, a vector or a set.
func (v Value) Sequence() bool { return v.Kind == List || v.Kind == Vector || v.Kind == Set }

// Int returns the value as a whole number of 64 bits, if it is one.
func (v Value) Int() (int64, bool) {
	if v.Kind != Int {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(v.Text, "+"), 10, 64)
	return n, err == nil
}

// Get returns the value of a field of a map: of the key with this name, ignoring its namespace. A key without a
// namespace has precedence.
func (v Value) Get(name string) (Value, bool) {
	var found *Value
	for i := 0; i+1 < len(v.Items) && v.Kind == Map; i += 2 {
		switch k := v.Items[i]; {
		case k.Kind != Keyword && k.Kind != String:
		case k.Text == name:
			return v.Items[i+1], true
		case found == nil && k.Name() == name:
			found = &v.Items[i+1]
		}
	}
	if found == nil {
		return Value{}, false
	}
	return *found, true
}

// Name returns the text without a namespace: "ok" of :jepsen/ok.
func (v Value) Name() string {
	if at := strings.LastIndexByte(v.Text, '/'); at >= 0 && at+1 < len(v.Text) {
		return v.Text[at+1:]
	}
	return v.Text
}

// Untagged returns the value without its tags.
func (v Value) Untagged() Value {
	for v.Kind == Tagged && len(v.Items) == 1 {
		v = v.Items[0]
	}
	return v
}

// brackets are the opening and closing brackets of values with parts.
var brackets = map[Kind][2]string{List: {"(", ")"}, Vector: {"[", "]"}, Map: {"{", "}"}, Set: {"#{", "}"}}

// String writes the value so that equal values have one form: the elements of sets and the
// pairs of maps are in order.
func (v Value) String() string {
	switch v.Kind {
	case Nil:
		return "nil"
	case String:
		return Quoted(v.Text)
	case Keyword:
		return ":" + v.Text
	case Tagged:
		return "#" + v.Text + " " + v.Items[0].String()
	case Int, Atom:
		return v.Text
	}
	return brackets[v.Kind][0] + strings.Join(v.parts(), " ") + brackets[v.Kind][1]
}

func (v Value) parts() (parts []string) {
	step := 1
	if v.Kind == Map {
		step = 2
	}
	for i := 0; i+step <= len(v.Items); i += step {
		part := v.Items[i].String()
		if step == 2 {
			part += " " + v.Items[i+1].String()
		}
		parts = append(parts, part)
	}
	if v.Kind == Map || v.Kind == Set {
		slices.Sort(parts)
	}
	return parts
}

// Canon writes the value so that values have one form if and only if Clojure considers them
// equal: lists and vectors with the same elements, numbers of one kind however they are written,
// an #inst of one millisecond in any time zone, a #uuid in any case. A regular expression and ##NaN equal nothing else,
// so their form contains their position.
func (v Value) Canon() string {
	switch v.Kind {
	case Atom:
		return v.canonAtom()
	case Tagged:
		if form, known := canonTagged[v.Text]; known && v.Items[0].Kind == String {
			return "#" + v.Text + " " + Quoted(form(v.Items[0].Text))
		}
		return "#" + v.Text + " " + v.Items[0].Canon()
	case List, Vector, Set, Map:
		w := Value{Kind: v.Kind, Items: make([]Value, len(v.Items))}
		if v.Kind == List {
			w.Kind = Vector
		}
		for i, item := range v.Items {
			w.Items[i] = Value{Kind: Atom, Text: item.Canon()}
		}
		return w.String()
	}
	return v.String()
}

// fractional are numbers with a fraction or an exponent, and ratio those of two whole ones.
var (
	fractional = regexp.MustCompile(`^[-+]?\d+(\.\d*)?([eE][-+]?\d{1,3})?M?$`)
	ratio      = regexp.MustCompile(`^[-+]?\d+/\d+$`)
)

func (v Value) canonAtom() string {
	switch {
	case v.Text == "##NaN", strings.HasPrefix(v.Text, `#"`):
		return v.Text + " at " + v.At.String()
	case strings.HasPrefix(v.Text, `\`):
		return canonCharacter(v.Text)
	}
	return canonNumber(v.Text)
}

// characters are the characters with a name.
var characters = map[string]rune{"newline": '\n', "space": ' ', "tab": '\t', "backspace": '\b', "formfeed": '\f', "return": '\r'}

// canonCharacter returns the one form of a character: itself after a backslash.
func canonCharacter(text string) string {
	name := text[1:]
	c, named := characters[name]
	if n, size := unit(name); size > 0 && size == len(name) {
		c, named = n, true
	} else if digits, octal := strings.CutPrefix(name, "o"); octal && !named {
		n, err := strconv.ParseUint(digits, 8, 8)
		c, named = rune(n), err == nil
	}
	if !named {
		return text
	}
	return `\` + string(c)
}

// canonTagged gives the one form of literals that may be written in several ways.
var canonTagged = map[string]func(text string) string{"inst": canonInst, "uuid": canonUUID}

// instant matches a time as Clojure reads it: omitted parts at the end have their least value.
var instant = regexp.MustCompile(`^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?)?)?)?(Z|[-+]\d\d:\d\d)?$`)

// canonInst returns the one form of an #inst, in UTC and to the millisecond, as Clojure reads it.
func canonInst(text string) string {
	m := instant.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	for i, least := range []string{"", "", "01", "01", "00", "00", "00", "0"} {
		if m[i] == "" {
			m[i] = least
		}
	}
	zone := m[8]
	if zone == "" {
		zone = "Z"
	}
	t, err := time.Parse(time.RFC3339Nano, m[1]+"-"+m[2]+"-"+m[3]+"T"+m[4]+":"+m[5]+":"+m[6]+"."+m[7]+zone)
	if err != nil {
		return text
	}
	return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

// canonUUID returns the one form of a #uuid: small letters, and no zeros before its parts, as
// Java reads it.
func canonUUID(text string) string {
	parts := strings.Split(strings.ToLower(text), "-")
	for i, part := range parts {
		if parts[i] = strings.TrimLeft(part, "0"); parts[i] == "" && part != "" {
			parts[i] = "0"
		}
	}
	return strings.Join(parts, "-")
}

// canonNumber returns the one form of a number that is not an integer, and any other text unchanged.
func canonNumber(text string) string {
	switch {
	case text == "" || strings.IndexByte("+-0123456789", text[0]) < 0:
	case ratio.MatchString(text), fractional.MatchString(text) && strings.HasSuffix(text, "M"):
		number := strings.TrimSuffix(strings.TrimSuffix(text, "M"), ".")
		if n, ok := new(big.Rat).SetString(number); ok {
			return n.RatString() + strings.Repeat("M", len(text)-len(strings.TrimSuffix(text, "M")))
		}
	case fractional.MatchString(text):
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(n+0, 'e', -1, 64)
		}
	}
	return text
}

// Quoted returns a text as an EDN string.
func Quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(text) + `"`
}

// Error is an error in a text, with its position.
type Error struct {
	At  Position
	Say string
}

// Error implements error: the position and the message.
func (e *Error) Error() string { return e.At.String() + ": " + e.Say }

// Errorf returns an error at a position.
func Errorf(at Position, format string, a ...any) error {
	return &Error{at, fmt.Sprintf(format, a...)}
}

// Reader reads one value after the other.
type Reader struct {
	text  string
	at    int // byte
	place Position
}

// NewReader returns a reader of a text. A byte order mark before it is skipped.
func NewReader(text string) *Reader {
	return &Reader{text: strings.TrimPrefix(text, "\ufeff"), place: Position{1, 1}}
}

// NewReaderAt returns a reader of a text that is part of another one, at this position.
func NewReaderAt(text string, at Position) *Reader { return &Reader{text: text, place: at} }

// Next reads the next value. It reports false at the end of the text.
func (r *Reader) Next() (Value, bool, error) {
	if err := r.blanks(0); err != nil || r.at >= len(r.text) {
		return Value{}, false, err
	}
	v, err := r.value(0)
	return v, err == nil, err
}

// One reads a text that is exactly one value.
func One(text string) (Value, error) {
	r := NewReader(text)
	v, more, err := r.Next()
	if err != nil {
		return v, err
	}
	if !more {
		return v, Errorf(r.place, "there is no value: want one")
	}
	another, more, err := r.Next()
	if more {
		err = Errorf(another.At, "%.40s follows the value %.40s: want one value", another, v)
	}
	return v, err
}

// skip goes on by n bytes, and counts lines and columns.
func (r *Reader) skip(n int) {
	for end := r.at + n; r.at < end; r.at++ {
		switch c := r.text[r.at]; {
		case c == '\n':
			r.place = Position{r.place.Line + 1, 1}
		case utf8.RuneStart(c):
			r.place.Column++
		}
	}
}

// blanks skips blanks, commas, comments, and values that are commented out with #_.
func (r *Reader) blanks(depth int) error {
	for r.at < len(r.text) {
		switch rest := r.text[r.at:]; {
		case strings.IndexByte(" \t\r\n,\f", rest[0]) >= 0:
			r.skip(1)
		case rest[0] == ';':
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			r.skip(n)
		case strings.HasPrefix(rest, "#_"):
			r.skip(2)
			if _, err := r.wanted(depth+1, "a value after #_"); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// wanted reads a required value.
func (r *Reader) wanted(depth int, what string) (Value, error) {
	at := r.place
	if depth > maxDepth {
		return Value{}, tooDeep(at)
	}
	if err := r.blanks(depth); err != nil {
		return Value{}, err
	}
	if r.at >= len(r.text) {
		return Value{}, Errorf(at, "the file ends; want %s", what)
	}
	return r.value(depth)
}

func tooDeep(at Position) error {
	return Errorf(at, "values are nested more than %d deep", maxDepth)
}

// value reads the value that begins here.
func (r *Reader) value(depth int) (Value, error) {
	at := r.place
	if depth > maxDepth {
		return Value{}, tooDeep(at)
	}
	switch c := r.text[r.at]; c {
	case '(':
		return r.sequence(List, 1, depth)
	case '[':
		return r.sequence(Vector, 1, depth)
	case '{':
		return r.sequence(Map, 1, depth)
	case ')', ']', '}':
		return Value{}, Errorf(at, "%q closes nothing", string(c))
	case '"':
		text, err := r.quotation()
		return Value{Kind: String, Text: text, At: at}, err
	case '#':
		return r.dispatch(depth)
	case '\\':
		return r.character()
	case '^': // metadata, which is dropped
		r.skip(1)
		if _, err := r.wanted(depth+1, "metadata"); err != nil {
			return Value{}, err
		}
		return r.wanted(depth+1, "a value after metadata")
	case '\'', '`', '@', '~':
		r.skip(1)
		return r.wanted(depth+1, "a value after "+string(c))
	}
	return atom(r.token(), at)
}

// sequence reads the values between brackets; n is the length of the opening one.
func (r *Reader) sequence(kind Kind, n, depth int) (Value, error) {
	v := Value{Kind: kind, At: r.place}
	r.skip(n)
	closing := brackets[kind][1]
	for {
		if err := r.blanks(depth); err != nil {
			return v, err
		}
		if r.at >= len(r.text) {
			return v, Errorf(v.At, "%s is not closed: %s is missing at the end of the file", brackets[kind][0], closing)
		}
		if r.text[r.at] == closing[0] {
			break
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	r.skip(1)
	if kind == Map && len(v.Items)%2 == 1 {
		last := v.Items[len(v.Items)-1]
		return v, Errorf(last.At, "the key %s of a map has no value", last)
	}
	return v, v.once()
}

// escapes are the characters after a backslash in a string.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", '"': `"`, '\\': `\`}

// quotation reads a text in quotes.
func (r *Reader) quotation() (string, error) {
	at := r.place
	var b strings.Builder
	for r.skip(1); r.at < len(r.text); r.skip(1) {
		c := r.text[r.at]
		switch {
		case c == '"':
			r.skip(1)
			return b.String(), nil
		case c != '\\':
			b.WriteByte(c)
		case r.at+1 < len(r.text):
			r.skip(1)
			r.escaped(&b)
		}
	}
	return "", Errorf(at, `a string is not closed: " is missing`)
}

// escaped reads the escape after a backslash, up to its last byte. Unknown escapes are kept as written.
func (r *Reader) escaped(b *strings.Builder) {
	c := r.text[r.at]
	if c == 'u' && r.at+4 < len(r.text) {
		c, n := unit(r.text[r.at:])
		if next, is := strings.CutPrefix(r.text[min(r.at+n, len(r.text)):], `\`); is && utf16.IsSurrogate(c) {
			low, m := unit(next)
			if whole := utf16.DecodeRune(c, low); whole != utf8.RuneError {
				c, n = whole, n+1+m
			}
		}
		if n > 0 && !utf16.IsSurrogate(c) { // half a pair is kept as written
			b.WriteRune(c)
			r.skip(n - 1)
			return
		}
	}
	if text, known := escapes[c]; known {
		b.WriteString(text)
		return
	}
	b.WriteByte('\\')
	b.WriteByte(c)
}

// unit returns the value of uXXXX at the beginning of a text, and its length; 0: there is none.
func unit(text string) (rune, int) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, 0
	}
	n, err := strconv.ParseUint(text[1:5], 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(n), 5
}

// dispatch reads a form that begins with #.
func (r *Reader) dispatch(depth int) (Value, error) {
	at := r.place
	rest := r.text[r.at:]
	switch {
	case len(rest) == 1:
		return Value{}, Errorf(at, "the file ends behind #")
	case rest[1] == '{':
		return r.sequence(Set, 2, depth)
	case rest[1] == '"':
		r.skip(1)
		text, err := r.quotation()
		return Value{Kind: Atom, Text: `#` + Quoted(text), At: at}, err
	case rest[1] == '#':
		r.skip(2)
		return Value{Kind: Atom, Text: "##" + r.token(), At: at}, nil
	case rest[1] == '\'':
		r.skip(2)
		return Value{Kind: Atom, Text: "#'" + r.token(), At: at}, nil
	}
	r.skip(1)
	tag := r.token()
	if tag == "" {
		return Value{}, Errorf(at, "# is followed by %q: want a tag, {, or _", first(r.text[r.at:]))
	}
	v, err := r.wanted(depth+1, "the value of the tag "+tag)
	if tag[0] == ':' {
		return inNamespace(v, strings.TrimLeft(tag, ":"), err)
	}
	return Value{Kind: Tagged, Text: tag, Items: []Value{v}, At: at}, err
}

// inNamespace puts the keys of a map into a namespace; those in the namespace _ have none.
func inNamespace(v Value, namespace string, err error) (Value, error) {
	switch {
	case err != nil:
		return v, err
	case v.Kind != Map:
		return v, Errorf(v.At, "the namespace %s is followed by %.40s: want a map", namespace, v)
	}
	v.Items = slices.Clone(v.Items)
	for i := 0; i < len(v.Items); i += 2 {
		k := &v.Items[i]
		name, bare := strings.CutPrefix(k.Text, "_/")
		switch {
		case k.Kind != Keyword:
		case bare:
			k.Text = name
		case !strings.Contains(k.Text, "/"):
			k.Text = namespace + "/" + k.Text
		}
	}
	return v, v.once()
}

// once checks that no key of a map and no element of a set is repeated.
func (v Value) once() error {
	step, what := 1, "the element %s of a set is there twice"
	if v.Kind == Map {
		step, what = 2, "the key %s of a map is there twice"
	}
	if v.Kind != Set && v.Kind != Map || len(v.Items) < 2*step {
		return nil
	}
	seen := make(map[string]bool, len(v.Items)/step)
	for i := 0; i < len(v.Items); i += step {
		form := v.Items[i].Canon()
		if seen[form] {
			return Errorf(v.Items[i].At, what, v.Items[i])
		}
		seen[form] = true
	}
	return nil
}

// first returns the first character of a text.
func first(text string) string {
	_, n := utf8.DecodeRuneInString(text)
	return text[:n]
}

// character reads a character such as \a or \newline.
func (r *Reader) character() (Value, error) {
	at := r.place
	if r.at+1 >= len(r.text) {
		return Value{}, Errorf(at, `the file ends behind \`)
	}
	begin := r.at
	r.skip(1 + len(first(r.text[r.at+1:])))
	r.token()
	return Value{Kind: Atom, Text: r.text[begin:r.at], At: at}, nil
}

// token reads up to the next blank, bracket, quote or semicolon.
func (r *Reader) token() string {
	n := strings.IndexAny(r.text[r.at:], " \t\r\n,\f()[]{}\";")
	if n < 0 {
		n = len(r.text) - r.at
	}
	text := r.text[r.at : r.at+n]
	r.skip(n)
	return text
}

// atom returns the value of a token.
func atom(token string, at Position) (Value, error) {
	switch {
	case token == "nil":
		return Value{At: at}, nil
	case strings.Trim(token, ":") == "":
		return Value{}, Errorf(at, "a keyword has no name: it is written :name")
	case token[0] == ':':
		return Value{Kind: Keyword, Text: strings.TrimLeft(token, ":"), At: at}, nil
	}
	if n, whole := integer(token); whole {
		return Value{Kind: Int, Text: n, At: at}, nil
	}
	return Value{Kind: Atom, Text: token, At: at}, nil
}

// whole matches integers as Clojure reads them: decimal, 0x1f, 017, and 2r101.
var whole = regexp.MustCompile(`^([-+]?)(?:0[xX]([0-9a-fA-F]+)|([1-9]\d?)[rR]([0-9a-zA-Z]+)|(\d+))N?$`)

// integer returns the decimal form of an integer.
func integer(token string) (string, bool) {
	if c := token[len(token)-1]; strings.IndexByte("+-0123456789", token[0]) < 0 || c == '+' || c == '-' {
		return "", false
	}
	m := whole.FindStringSubmatch(token)
	if m == nil {
		return "", false
	}
	sign, digits, base := strings.TrimPrefix(m[1], "+"), m[5], 10
	switch {
	case m[2] != "":
		digits, base = m[2], 16
	case m[4] != "":
		base, _ = strconv.Atoi(m[3])
		digits = m[4]
	case digits[0] == '0' && strings.Trim(digits, "01234567") == "":
		base = 8
	}
	if base == 10 {
		return plain(sign + digits), true
	}
	if base < 2 || base > 36 {
		return "", false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return "", false
	}
	return plain(sign + n.String()), true
}

// plain returns a whole number without leading zeros.
func plain(number string) string {
	sign := ""
	if number[0] == '-' {
		sign, number = "-", number[1:]
	}
	if number = strings.TrimLeft(number, "0"); number == "" {
		return "0" // -0, too
	}
	return sign + number
}
