// Package packtest checks functions that pack values for [monitor.Pages].
package packtest

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"oversell/checker/monitor"
	"oversell/history"
)

// Fields checks that values that differ from the usual ones in one field are packed without loss, for each field. usual
// returns the usual value with a number.
func Fields[T comparable](t *testing.T, code func(c *monitor.Packer, number int32, v, before *T), usual func(number int32) T) {
	t.Helper()
	const values = 200_000
	for field := range reflect.TypeFor[T]().NumField() {
		ps := monitor.NewPages(code)
		want := make([]T, values)
		for i := range int32(values) {
			v := usual(i)
			if i%7 == 3 {
				change(t, reflect.ValueOf(&v).Elem().Field(field))
			}
			want[i] = v
			*ps.At(ps.Add()) = v
		}
		if packed, _ := ps.Packed(); packed < values/2 {
			t.Errorf("%d of %d values are packed, want at least half", packed, values)
		}
		ps.Each(func(i int32, v *T) {
			if *v != want[i] {
				t.Fatalf("%s: value %d is %+v, and was %+v", reflect.TypeFor[T]().Field(field).Name, i, *v, want[i])
			}
		})
	}
}

// change changes the value of a field, which may be unexported.
func change(t *testing.T, f reflect.Value) {
	t.Helper()
	f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
	switch v := f.Addr().Interface().(type) {
	case *history.Value:
		*v = history.Text("another")
	case *time.Duration:
		*v += 5 * time.Second
	default:
		switch {
		case f.CanInt():
			f.SetInt(f.Int() + 3)
		case f.CanUint():
			f.SetUint(f.Uint() + 3)
		case f.Kind() == reflect.Bool:
			f.SetBool(!f.Bool())
		default:
			t.Fatalf("a field of type %v", f.Type())
		}
	}
}
