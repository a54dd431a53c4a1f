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

// document parses a text that is exactly one JSON value. Its numbers are [json.Number]. It refuses duplicate names
// in an object, because it is unclear which one counts.
func document(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil { // this bounds the nesting depth, too
		if json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage)) == nil {
			return nil, errors.New("there is more after the first value")
		}
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	v, err := exactjson.Next(decoder)
	if twice := exactjson.DuplicateField(""); errors.As(err, &twice) {
		err = fmt.Errorf("%q appears twice", string(twice))
	}
	return v, err
}

// same compares two values that document returned.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && exactjson.Equal(a, b)
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
	case []any, map[string]any: // not comparable by ==
		return false
	}
	return a == b
}

// names are the valid names of an object, with those of the objects in a list below; nil: any value.
type names map[string]names

// namesOf returns the names of a struct's JSON form.
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

// named refuses objects with other names, case-sensitively: encoding/json accepts "OK" for "ok".
func named(v any, all names) error {
	o, ok := v.(map[string]any)
	if !ok {
		return errors.New("it is not an object")
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
