// Package yamlfile reads YAML files that people write, and reports errors in one line, with the line and the column.
//
// The target types define the allowed contents of a file: unknown keys, keys without a value, aliases and second
// documents are refused. The parser is goccy/go-yaml's, which keeps the position of every node.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/variant"
)

// Position is a place in a file, from 1; the zero value is nowhere.
type Position struct{ Line, Column int }

// PositionOf returns where a node begins.
func PositionOf(n ast.Node) Position {
	// A mapping's own token is the colon of its first pair.
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return TokenAt(m.Values[0].Key.GetToken())
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return TokenAt(m.Key.GetToken())
	}
	return TokenAt(n.GetToken())
}

// TokenAt returns the position of a token.
func TokenAt(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{}
	}
	return Position{t.Position.Line, t.Position.Column}
}

// Error is an error at a position of a file.
type Error struct {
	At  Position
	Say string
	Of  error // its cause, if any
}

// Unwrap returns the cause.
func (m *Error) Unwrap() error { return m.Of }

// Error implements error: the position, if it is known, and the message. The caller adds the file's name.
func (m *Error) Error() string {
	if m.At.Line == 0 {
		return m.Say
	}
	return fmt.Sprintf("%d:%d: %s", m.At.Line, m.At.Column, m.Say)
}

// Errorf returns an error at a position.
func Errorf(at Position, format string, a ...any) error {
	return &Error{At: at, Say: printable.Text(phrase.OneLine(fmt.Sprintf(format, a...)))}
}

// Recover turns a panic of the YAML library, which happens with some texts that are not YAML, into an error. Callers defer
// it. what is the name for the document in errors, such as "plan".
func Recover(err *error, what string) {
	if recover() != nil {
		*err = Errorf(Position{1, 1}, "the %s is YAML that cannot be read: a tag (!…) or a list without items may be the reason", what)
	}
}

// Parse returns the root of the one document of a file. known are the keys that it may have, and docs the document that
// explains them.
func Parse(source []byte, known []string, what, docs string) (ast.Node, error) {
	file, err := parser.ParseBytes(bytes.TrimPrefix(source, byteOrderMark), 0)
	switch {
	case err != nil:
		err = Positioned(err, known, docs)
		if m := (*Error)(nil); errors.As(err, &m) {
			err = &Error{At: m.At, Say: "this is not YAML: " + m.Say}
		}
		return nil, err
	case len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.NullType:
		return nil, Errorf(Position{1, 1}, "the %s is empty: %s says what it may hold", what, docs)
	case len(file.Docs) > 1:
		return nil, Errorf(PositionOf(file.Docs[1].Body), "a second document begins here: a %s is one", what)
	}
	return file.Docs[0].Body, nil
}

// Decode decodes the one document of a file.
func Decode(source []byte, into any, what, docs string) (err error) {
	defer Recover(&err, what)
	body, err := Parse(source, keysOf(reflect.TypeOf(into)), what, docs)
	if err != nil {
		return err
	}
	if err := plain(body, "", Position{}); err != nil {
		return err
	}
	if err := yaml.NodeToValue(body, into, yaml.Strict()); err != nil {
		return Positioned(err, keysOf(reflect.TypeOf(into)), docs)
	}
	return whole(body, reflect.TypeOf(into))
}

// byteOrderMark is put before a text in UTF-8 by some editors.
var byteOrderMark = []byte("\xef\xbb\xbf")

// whole refuses a fraction in place of a whole number, which the library would truncate.
func whole(n ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := n.(type) {
	case *ast.FloatNode:
		if k := t.Kind(); k >= reflect.Int && k <= reflect.Uint64 {
			return Errorf(PositionOf(n), "%s stands where %s belongs", shapeOf(n.Type()), kindOf(k))
		}
	case *ast.SequenceNode:
		for _, item := range v.Values {
			if t.Kind() != reflect.Slice {
				break
			}
			if err := whole(item, t.Elem()); err != nil {
				return err
			}
		}
	case *ast.MappingNode:
		for _, p := range v.Values {
			if err := whole(p, t); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		of, known := t, t.Kind() == reflect.Map
		if known {
			of = t.Elem()
		}
		for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name == v.Key.String() {
				of, known = t.Field(i).Type, true
			}
		}
		if known {
			return whole(v.Value, of)
		}
	}
	return nil
}

// plain refuses aliases, keys without a value, and empty items. It is unclear whether the author meant them to be empty
// or forgot the value.
func plain(n ast.Node, key string, at Position) error {
	switch v := n.(type) {
	case *ast.NullNode:
		return Errorf(at, "%s has no value: give it one, or leave it out", key)
	case *ast.AliasNode, *ast.AnchorNode:
		return Errorf(PositionOf(n), "anchors and aliases are not supported here: write the value out")
	case *ast.SequenceNode:
		for _, item := range v.Values {
			if err := plain(item, "an item of "+key, PositionOf(item)); err != nil {
				return err
			}
		}
	case *ast.MappingNode:
		for _, p := range v.Values {
			if err := plain(p.Value, p.Key.String(), TokenAt(p.Key.GetToken())); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		return plain(v.Value, v.Key.String(), TokenAt(v.Key.GetToken()))
	}
	return nil
}

// Positioned makes an error of the YAML library an [Error]: one line, with a place. known are
// the keys that the file may have, and docs the document that explains them.
func Positioned(err error, known []string, docs string) error {
	if m := (*Error)(nil); errors.As(err, &m) {
		return m
	}
	var e yaml.Error
	if !errors.As(err, &e) {
		return &Error{Say: phrase.OneLine(err.Error())}
	}
	say := misplaced(err)
	if say == "" {
		say = phrase.OneLine(e.GetMessage())
	}
	if m := unknownField.FindStringSubmatch(say); m != nil {
		say = UnknownKey(m[1], known, docs)
	}
	return &Error{At: TokenAt(e.GetToken()), Say: say}
}

// misplaced describes a value of the wrong kind, and the kind expected; "" for other errors.
func misplaced(err error) string {
	var mistyped *yaml.TypeError
	var shaped *yaml.UnexpectedNodeTypeError
	var large *yaml.OverflowError
	switch {
	case errors.As(err, &mistyped):
		return fmt.Sprintf("%s stands where %s belongs", kindOf(mistyped.SrcType.Kind()), kindOf(mistyped.DstType.Kind()))
	case errors.As(err, &shaped):
		return fmt.Sprintf("%s stands where %s belongs", shapeOf(shaped.Actual), shapeOf(shaped.Expected))
	case errors.As(err, &large):
		return fmt.Sprintf("the number %s is too large or too small here", large.SrcNum)
	}
	return ""
}

const (
	mapping = "a mapping (key: value)"
	list    = "a list ([a, b])"
)

// kindOf returns YAML's name for the kind of a Go value.
func kindOf(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return list
	case reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
		return mapping
	}
	return "a whole number"
}

// shapeOf returns the name of a node's kind.
func shapeOf(t ast.NodeType) string {
	switch t {
	case ast.BoolType:
		return "true or false"
	case ast.IntegerType:
		return "a whole number"
	case ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.SequenceType:
		return list
	case ast.MappingType, ast.MappingValueType:
		return mapping
	}
	return "a text"
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// UnknownKey returns the error about an unknown key, with suggestions.
func UnknownKey(key string, known []string, docs string) string {
	if near := variant.Nearest(key, known); len(near) > 0 {
		return fmt.Sprintf("the key %q is not known here: did you mean %s?", key, strings.Join(near, " or "))
	}
	return fmt.Sprintf("the key %q is not known here: see %s for those that are", key, docs)
}

// keysOf returns the keys of a type and of those in it.
func keysOf(t reflect.Type) (keys []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name != "" {
			keys = append(append(keys, name), keysOf(t.Field(i).Type)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
