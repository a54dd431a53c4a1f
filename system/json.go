package system

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"oversell/internal/exactjson"
)

// document reads a text that is one value of JSON and nothing else. Its numbers are
// [json.Number]. A name that stands twice in an object is refused: it is unclear which one
// counts.
func document(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil { // which bounds its depth, too
		if json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage)) == nil {
			return nil, errors.New("there is more behind its first value")
		}
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	v, err := exactjson.Next(decoder)
	if twice := exactjson.Twice(""); errors.As(err, &twice) {
		err = fmt.Errorf("%q stands there twice", string(twice))
	}
	return v, err
}

// same compares two values that document has read.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if of, ok := b[name]; !ok || !same(v, of) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any: // which == cannot compare
		return false
	}
	return a == b
}

// sameNumber compares numbers by their values: 1e6 is 1000000.
func sameNumber(a, b json.Number) bool {
	n, errN := a.Int64()
	m, errM := b.Int64()
	if errN == nil && errM == nil {
		return n == m
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// names are those that an object may have, with those of the objects in a list that stands
// there; nil: it is any value.
type names map[string]names

// namesOf are the names of the JSON form of a struct.
func namesOf[T any]() names {
	all := names{}
	for f := range reflect.TypeFor[T]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all[name] = nil
		}
	}
	return all
}

var answerNames = func() names {
	all := namesOf[answer]()
	for _, name := range []string{"entered", "tasks", "claimed"} {
		all[name] = namesOf[task]()
	}
	return all
}()

// named refuses an object that has other names, to the letter: encoding/json takes "OK" for "ok".
func named(v any, all names) error {
	o, ok := v.(map[string]any)
	if !ok {
		return errors.New("it is no object")
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		in, known := all[name]
		if !known {
			return fmt.Errorf("unknown field %q", name)
		}
		items, _ := o[name].([]any)
		for _, item := range items {
			if _, isObject := item.(map[string]any); in != nil && isObject {
				if err := named(item, in); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
