package exactjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestNext(t *testing.T) {
	read := func(text string) (any, error) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		return Next(d)
	}
	want := map[string]any{"a": []any{json.Number("1"), "x", nil}, "b": map[string]any{}}
	if got, err := read(`{"a": [1, "x", null], "b": {}}`); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %v, %v; want %v", got, err, want)
	}
	var twice DuplicateField
	if _, err := read(`[{"a": {"b": 1, "b": 1}}]`); !errors.As(err, &twice) || twice != "b" {
		t.Errorf("a field that is given twice: %v", err)
	}
	if _, err := read(`{"a": [1`); err == nil {
		t.Error("a value that is cut off was read")
	}
}
