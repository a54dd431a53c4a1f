package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"oversell/internal/exactjson"
	"oversell/internal/printable"
)

// plain puts an error of package json into the terms of this format.
func plain(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		if syntax.Error() == "unexpected end of JSON input" {
			return errors.New("not JSON: it ends within an object, and each line holds a whole one")
		}
		return fmt.Errorf("not JSON: %w", err)
	}
	wrong := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return fmt.Errorf("a JSON %s instead of an object", printable.Short(wrong.Value))
	}
	path := strings.Split(wrong.Field, ".")
	path = slices.DeleteFunc(path, func(name string) bool { return 'A' <= name[0] && name[0] <= 'Z' }) // embedded structs
	name, want := strings.Join(path, "."), exactjson.Wanted(wrong.Type)
	if wrong.Type == reflect.TypeFor[Promise]() {
		want = `an object such as {"of":"sale","property":"no-oversell"}`
	}
	if strings.HasSuffix(name, "_ns") {
		want = "a whole number of nanoseconds, of 64 bits"
	}
	return fmt.Errorf("%q is a JSON %s, it must be %s", name, printable.Short(wrong.Value), want)
}
