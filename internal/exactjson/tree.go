package exactjson

import (
	"encoding/json"
	"fmt"
)

// DuplicateField is the name of a field that an object has twice.
type DuplicateField string

// Error implements error.
func (t DuplicateField) Error() string {
	return fmt.Sprintf("%q is given twice in one object", string(t))
}

// Next reads the next value as package json does into an any. An object that has a field twice is an error, a [DuplicateField]:
// it is unclear which one counts.
func Next(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return nextObject(d)
	case json.Delim('['):
		return nextList(d)
	}
	return t, nil
}

func nextObject(d *json.Decoder) (any, error) {
	object := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if _, twice := object[name]; twice {
			return nil, DuplicateField(name)
		}
		if object[name], err = Next(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func nextList(d *json.Decoder) (any, error) {
	list := []any{}
	for d.More() {
		v, err := Next(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}
