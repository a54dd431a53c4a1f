package clients

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/scenarios"
	"oversell/system"
	"oversell/variant"
)

// remembered describes all that a client's objects hold, so that two clients with equal descriptions behave alike from
// here on.
//
// Their environment (Env, clock, connections, contexts) is the same for all and holds no memory. Channels and functions
// cannot be inspected, except that nil is nil, and that those in the shipped variants are set once and hold no state.
func remembered(objects []any) memory {
	d := dump{seen: map[seenAt]int{}, ok: true}
	for _, o := range objects {
		d.value(reflect.ValueOf(o))
		d.b.WriteByte(';')
	}
	return memory{text: d.b.String(), ok: d.ok, sorted: d.sorted}
}

// memory describes what objects hold.
type memory struct {
	text string
	ok   bool // everything in them could be inspected
	// sorted: a map has several keys. Their order in the text depends on how names are spelled.
	sorted bool
}

type seenAt struct {
	at uintptr
	of reflect.Type
}

type dump struct {
	b    strings.Builder
	seen map[seenAt]int
	ok   bool
	ours bool // it is in a struct of a shipped variant
	// sorted: see memory.
	sorted bool
}

// shipped lists the packages whose objects hold functions that never change.
var shipped = []string{"oversell/lockimpl", "oversell/stockimpl", "oversell/queueimpl", "oversell/idimpl"}

func bytesOf(v reflect.Value) string {
	b := make([]byte, v.Len())
	for i := range b {
		b[i] = byte(v.Index(i).Uint())
	}
	return string(b)
}

// quotedText returns a text that can hold names as it is, and any other in hexadecimal: then all spellings of random
// bytes have one length.
func quotedText(text string) string {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return fmt.Sprintf("hex\"%x\"", text)
		}
	}
	return strconv.Quote(text)
}

// world lists the types of a client's environment, which it does not change, and of locks that guard its memory.
var world = map[reflect.Type]bool{
	reflect.TypeFor[variant.Env]():             true,
	reflect.TypeFor[redis.UniversalClient]():   true,
	reflect.TypeFor[[]redis.UniversalClient](): true,
	reflect.TypeFor[clock.Clock]():             true,
	reflect.TypeFor[*redis.Client]():           true,
	reflect.TypeFor[*scenarios.Client]():       true,
	reflect.TypeFor[*redis.Script]():           true,
	reflect.TypeFor[*system.System]():          true,
	reflect.TypeFor[*system.Session]():         true,
	reflect.TypeFor[sync.Mutex]():              true,
	reflect.TypeFor[sync.RWMutex]():            true,
}

func (d *dump) value(v reflect.Value) {
	if !d.ok {
		return // it has no effect
	}
	if !v.IsValid() {
		d.b.WriteString("nil")
		return
	}
	if world[v.Type()] {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		fmt.Fprint(&d.b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.b.WriteString(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		d.b.WriteString(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Complex64, reflect.Complex128:
		fmt.Fprint(&d.b, v.Complex())
	case reflect.String:
		d.b.WriteString(quotedText(v.String()))
	case reflect.Interface:
		if !v.IsNil() {
			d.b.WriteString(v.Elem().Type().String())
		}
		d.value(v.Elem())
	case reflect.Pointer:
		d.pointer(v)
	case reflect.Struct:
		defer func(was bool) { d.ours = was }(d.ours)
		d.ours = slices.Contains(shipped, v.Type().PkgPath())
		d.b.WriteByte('{')
		for i := range v.NumField() {
			d.value(v.Field(i))
			d.b.WriteByte(',')
		}
		d.b.WriteByte('}')
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			d.b.WriteString(quotedText(bytesOf(v)))
			return
		}
		d.b.WriteByte('[')
		for i := range v.Len() {
			d.value(v.Index(i))
			d.b.WriteByte(',')
		}
		d.b.WriteByte(']')
	case reflect.Map:
		d.entries(v)
	case reflect.Func:
		fmt.Fprintf(&d.b, "func@%x", v.Pointer())
		d.ok = d.ok && (v.IsNil() || d.ours)
	default: // channels and bare addresses
		d.ok = d.ok && v.IsZero()
	}
}

func (d *dump) pointer(v reflect.Value) {
	if v.IsNil() {
		d.b.WriteString("nil")
		return
	}
	at := seenAt{v.Pointer(), v.Type()}
	if n, again := d.seen[at]; again {
		fmt.Fprintf(&d.b, "^%d", n)
		return
	}
	d.seen[at] = len(d.seen)
	d.b.WriteByte('&')
	d.value(v.Elem())
}

// entries describes the entries of a map, in the order of the descriptions of their keys.
func (d *dump) entries(v reflect.Value) {
	values := map[string]reflect.Value{}
	var keys []string
	for it := v.MapRange(); it.Next(); {
		key := dump{seen: maps.Clone(d.seen), ok: d.ok, ours: d.ours} // a key may lead back to its own map
		key.value(it.Key())
		d.ok = d.ok && key.ok
		keys = append(keys, key.b.String())
		values[key.b.String()] = it.Value()
	}
	d.sorted = d.sorted || len(keys) > 1
	sort.Strings(keys)
	d.b.WriteByte('{')
	for _, key := range keys {
		d.b.WriteString(key)
		d.b.WriteByte(':')
		d.value(values[key])
		d.b.WriteByte(',')
	}
	d.b.WriteByte('}')
}
