// Package exactjson reads JSON that may come from other tools. Package json alone misreads some texts:
//
//   - It takes "Outcome" for "outcome". Here only the exact name of a field is its name.
//   - If an object has the same field twice, it takes the last. Here that is an error.
//   - In a text it puts U+FFFD in place of bytes that are not UTF-8 and of half a
//     surrogate pair, so that different identities become one. Here that is an error.
//   - A whole number may be spelled 7, 7.0 or 70e-1. Here all of them are read as 7, if it
//     fits into 64 bits.
package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"oversell/internal/printable"
)

// Unmarshal is [json.Unmarshal] for texts that may come from other tools.
func Unmarshal(text []byte, v any) error {
	_, err := UnmarshalNoting(text, v)
	return err
}

// Names are the names of the fields of an object.
type Names struct {
	Given   []string // all of them
	Unknown []string // the fields that the type being read does not have
	Deeper  []string // those of objects within it that their types do not have
}

// UnmarshalNoting is [Unmarshal], and returns the fields of the outermost object.
func UnmarshalNoting(text []byte, v any) (Names, error) {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return Names{}, err // not JSON
	}
	x := exact{in: text, out: make([]byte, 0, len(text))}
	if err := x.value(reflect.TypeOf(v).Elem()); err != nil {
		return Names{}, err
	}
	return x.names, json.Unmarshal(x.out, v)
}

// InWords returns an error of Unmarshal in the terms of the text: in which line it is not JSON, or which field has a wrong type.
func InWords(text []byte, err error) error {
	syntax, kind := new(json.SyntaxError), new(json.UnmarshalTypeError)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax):
		before := text[:min(int(syntax.Offset), len(text))]
		what := strings.Replace(err.Error(), "unexpected end of JSON input", "it ends within the JSON text", 1)
		return fmt.Errorf("line %d: %s", 1+bytes.Count(before, []byte("\n")), what)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("it is a JSON %s, it must be %s", printable.Short(kind.Value), Wanted(kind.Type))
	case errors.As(err, &kind):
		return fmt.Errorf("%q is a JSON %s, it must be %s", kind.Field, printable.Short(kind.Value), Wanted(kind.Type))
	}
	return err
}

// exact rewrites valid JSON so that package json reads it exactly.
type exact struct {
	in, out []byte
	depth   int // in objects
	names   Names
}

// value rewrites the next value, which will be read into a type; nil: into none, or into one that reads it by itself.
func (x *exact) value(t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	x.blanks()
	switch x.in[0] {
	case '{':
		return x.object(t)
	case '[':
		return x.array(t)
	case '"':
		text, err := x.text()
		x.out = append(x.out, text...)
		return err
	}
	size := bytes.IndexAny(x.in, ",]} \t\r\n")
	if size < 0 {
		size = len(x.in)
	}
	x.out = appendWhole(x.out, x.in[:size])
	x.in = x.in[size:]
	return nil
}

func (x *exact) blanks() { x.in = bytes.TrimLeft(x.in, " \t\r\n") }

// next goes on to the next element, and reports false at the end.
func (x *exact) next() bool {
	x.blanks()
	c := x.in[0]
	if c != ',' && c != ']' && c != '}' {
		return true // the first
	}
	x.in = x.in[1:]
	return c == ','
}

func (x *exact) array(t reflect.Type) error {
	var element reflect.Type
	if t != nil && t.Kind() == reflect.Slice {
		element = t.Elem()
	}
	x.in, x.out = x.in[1:], append(x.out, '[')
	for first := true; x.next(); first = false {
		if !first {
			x.out = append(x.out, ',')
		}
		if err := x.value(element); err != nil {
			return err
		}
	}
	x.out = append(x.out, ']')
	return nil
}

func (x *exact) object(t reflect.Type) error {
	fields, known := FieldsOf(t)
	had := make(map[string]bool)
	x.depth++
	defer func() { x.depth-- }()
	x.in, x.out = x.in[1:], append(x.out, '{')
	begin := len(x.out)
	for x.next() {
		x.blanks()
		text, err := x.text()
		if err != nil {
			return err
		}
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return err
		}
		if had[name] {
			return fmt.Errorf("%q is given twice in one object", printable.Short(name))
		}
		had[name] = true
		field := len(x.out)
		if field > begin {
			x.out = append(x.out, ',')
		}
		x.out = append(append(x.out, text...), ':')
		value := len(x.out)
		of, ours := fields[name]
		if x.depth == 1 {
			x.names.note(name, ours || !known)
		} else if known && !ours {
			x.names.Deeper = append(x.names.Deeper, name)
		}
		x.blanks()
		x.in = x.in[1:] // the colon
		if err := x.value(of); err != nil {
			return err
		}
		if known && !ours {
			x.out = x.out[:field]
		}
		if of == timeType && new(time.Time).UnmarshalJSON(x.out[value:]) != nil {
			return fmt.Errorf("%q is %s: it must be a time such as \"2026-01-31T12:00:00Z\"", name, printable.Short(string(x.out[value:])))
		}
	}
	x.out = append(x.out, '}')
	return nil
}

func (n *Names) note(name string, known bool) {
	if n.Given = append(n.Given, name); !known {
		n.Unknown = append(n.Unknown, name)
	}
}

// text takes a string, with its quotes.
func (x *exact) text() ([]byte, error) {
	end := 1
	unicode, half := true, false // half: of a surrogate pair, right before end
	for x.in[end] != '"' {
		size, low := 1, false
		if x.in[end] == '\\' {
			size = 2
			if x.in[end+1] == 'u' {
				size = 6
				unit, _ := strconv.ParseUint(string(x.in[end+2:end+6]), 16, 16)
				low = unit>>10 == 0xdc00>>10
				if unit>>10 == 0xd800>>10 {
					unicode = unicode && !half
					half = true
					end += size
					continue
				}
			}
		}
		unicode = unicode && half == low
		half = false
		end += size
	}
	text := x.in[:end+1]
	x.in = x.in[end+1:]
	if !unicode || half || !utf8.Valid(text) {
		return nil, fmt.Errorf("the text %s is not Unicode: it has bytes that are not UTF-8 or half of a surrogate pair, and cannot be told from other such texts", printable.Short(string(text)))
	}
	return text, nil
}

// appendWhole appends a literal; a whole number of 64 bits in its decimal form.
func appendWhole(b, literal []byte) []byte {
	if c := literal[0]; c == '-' || c >= '0' && c <= '9' {
		if n, ok := Int64(json.Number(literal)); ok {
			return strconv.AppendInt(b, n, 10)
		}
	}
	return append(b, literal...)
}

// Int64 returns the value of a JSON number such as 7, 7.0 or 70e-1. ok is false if it is not a whole number of 64 bits.
func Int64(number json.Number) (n int64, ok bool) {
	d, ok := decimalOf(number)
	if !ok || d.power < 0 || int64(len(d.digits))+d.power > int64(len("9223372036854775807")) {
		return 0, false
	}
	text := d.digits + strings.Repeat("0", int(d.power))
	if d.negative {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// Equal reports whether two JSON numbers have exactly the same value.
func Equal(a, b json.Number) bool {
	x, okX := decimalOf(a)
	y, okY := decimalOf(b)
	return okX && okY && x == y || a == b
}

// decimal is a number digits × 10^power. digits has no zeros at its ends, unless the number is 0.
type decimal struct {
	negative bool
	digits   string
	power    int64
}

// decimalOf returns false if the exponent is beyond 32 bits.
func decimalOf(number json.Number) (d decimal, ok bool) {
	text, negative := strings.CutPrefix(string(number), "-")
	text, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	before, behind, _ := strings.Cut(text, ".")
	all := strings.TrimLeft(before+behind, "0")
	digits := strings.TrimRight(all, "0")
	if digits == "" {
		return decimal{digits: "0"}, true
	}
	power := int64(0)
	if exponent != "" {
		var err error
		if power, err = strconv.ParseInt(exponent, 10, 32); err != nil {
			return decimal{}, false
		}
	}
	return decimal{negative, digits, power - int64(len(behind)) + int64(len(all)-len(digits))}, true
}

var (
	timeType    = reflect.TypeFor[time.Time]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	fieldTypes  sync.Map // of a struct: what FieldsOf returns
)

// FieldsOf returns the types of the fields that package json knows of a struct, by name. known is false for other
// types, and for those that read themselves.
func FieldsOf(t reflect.Type) (fields map[string]reflect.Type, known bool) {
	if t == nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(unmarshaler) {
		return nil, false
	}
	if all, ok := fieldTypes.Load(t); ok {
		return all.(map[string]reflect.Type), true
	}
	fields = make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	fieldTypes.Store(t, fields)
	return fields, true
}

// Wanted describes the JSON required for a type, such as "a number".
func Wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Uint64:
		return "a whole number of 64 bits without a sign"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct:
		return "an object"
	}
	return "a " + t.Kind().String()
}
