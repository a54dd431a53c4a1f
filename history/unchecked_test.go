package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"oversell/history/marks"
)

// sameUnchecked checks that a history of OpenUnchecked has the operations of h, in the first pass over the file and in a second.
func sameUnchecked(t *testing.T, path string, h *History, n int) {
	t.Helper()
	s, err := openUnchecked(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.stream == nil || s.stream.marks == nil {
		t.Fatal("it was checked when it was opened")
	}
	if s.Len() != len(h.Ops) || !reflect.DeepEqual(s.Header, h.Header) || !reflect.DeepEqual(s.Trailer, h.Trailer) || !s.Is(h.SHA256) {
		t.Errorf("%d %v %v", s.Len(), s.Header, s.Trailer)
	}
	for range s.Each() {
		break // it is not checked yet
	}
	for range 2 {
		at, low := 0, time.Duration(0)
		for ops, next := range s.Batches(n) {
			for i := range ops {
				if ops[i] != h.Ops[at] || ops[i].Call < low {
					t.Fatalf("operation %d is %v, after it was said that none was called before %v; want %v", at, ops[i], low, h.Ops[at])
				}
				at++
			}
			low = max(low, next)
		}
		if at != len(h.Ops) || s.Err() != nil || s.SHA256 != h.SHA256 {
			t.Errorf("%d operations of %d, %v", at, len(h.Ops), s.Err())
		}
	}
}

// TestManyMarks checks that a history is read in one pass if it is so long that its marks were joined.
func TestManyMarks(t *testing.T) {
	for most := range 7 {
		path := filepath.Join(t.TempDir(), "history.bin")
		w, err := Create(path, testHeader())
		if err != nil {
			t.Fatal(err)
		}
		w.marker = marks.Marker{Least: 100, Most: 2 + most}
		r := rand.New(rand.NewPCG(uint64(most), 1))
		for ops := loadOps(20_000, 20, 1); len(ops) > 0; {
			n := min(1+r.IntN(150), len(ops))
			w.Append(ops[:n]) //nolint:errcheck // Finish returns it
			ops = ops[n:]
		}
		if n := len(w.marker.Numbers()) / 3; n > 2+most {
			t.Errorf("there are %d marks; want %d at most", n, 2+most)
		}
		if err := w.Finish(testTrailer()); err != nil {
			t.Fatal(err)
		}
		h, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		sameUnchecked(t, path, h, 500)
	}
}

// TestLargeGroups checks that a file is not read in one pass if that would keep too many operations in memory.
func TestLargeGroups(t *testing.T) {
	for _, tt := range []struct {
		ops     int
		onePass bool
	}{{mostOfMark, true}, {mostOfMark + 1, false}} {
		path := filepath.Join(t.TempDir(), "history.bin")
		w, err := Create(path, testHeader())
		if err != nil {
			t.Fatal(err)
		}
		w.marker = marks.Marker{Least: tt.ops, Most: 1}
		w.Append(loadOps(tt.ops, 5, 1)) //nolint:errcheck // Finish returns it
		if err := w.Finish(testTrailer()); err != nil {
			t.Fatal(err)
		}
		h, err := openUnchecked(path, 10)
		if err != nil {
			t.Fatal(err)
		}
		if onePass := h.stream.marks != nil; onePass != tt.onePass {
			t.Errorf("a group of %d operations: it is read in one pass: %t; want %t", tt.ops, onePass, tt.onePass)
		}
		h.Close()
	}
}

// TestUncheckedIsChecked checks that a file which contradicts its trailer is noticed when it is opened, or else by the time that all
// of it has been read, and that Open then agrees with Read about it.
func TestUncheckedIsChecked(t *testing.T) {
	marked := func(change func(numbers []int64) []int64) func(*Writer) { // the trailer is otherwise right
		return func(w *Writer) {
			numbers := change(w.marker.Numbers())
			w.marker = marks.Marker{Most: len(numbers)}
			for ; len(numbers) > 0; numbers = numbers[3:] {
				w.marker.Add(marks.Mark{Ops: int(numbers[0]), Called: time.Duration(numbers[1]), Returned: time.Duration(numbers[2])})
			}
		}
	}
	for name, tt := range map[string]struct {
		alter  func(*Writer)
		change func([]byte) []byte
		is     string
		opens  bool // it is opened without being checked
	}{
		"nothing":         {opens: true},
		"another digest":  {is: "00", opens: true},
		"later calls":     {alter: marked(func(m []int64) []int64 { m[4] += 1e9; return m }), opens: true},
		"later returns":   {alter: marked(func(m []int64) []int64 { m[5] += 1e9; return m }), opens: true},
		"a longer group":  {alter: marked(func(m []int64) []int64 { m[0]++; m[3]--; return m }), opens: true},
		"a group too few": {alter: marked(func(m []int64) []int64 { return m[3:] })},
		"a wrong digest":  {alter: func(w *Writer) { w.sum.Write([]byte("more")) }, opens: true},
		"no marks":        {alter: marked(func(m []int64) []int64 { return nil })},
		"an altered byte": {change: func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, opens: true},
		"a missing end":   {change: func(b []byte) []byte { return b[:len(b)-1] }},
		"a later byte":    {change: func(b []byte) []byte { return append(b, 0) }},
		"a frame twice": {change: func(b []byte) []byte {
			header, _ := nextFrame(b, len(magic))
			second, _ := nextFrame(b, header.end())
			return slices.Insert(b, second.end(), b[second.at:second.end()]...)
		}, opens: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.bin")
			w, err := Create(path, testHeader())
			if err != nil {
				t.Fatal(err)
			}
			w.Append(loadOps(20_000, 5, 1)) //nolint:errcheck // Finish returns it
			if tt.alter != nil {
				tt.alter(w)
			}
			if err := w.Finish(testTrailer()); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, tt.change(b), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			h, err := openUnchecked(path, 10)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if unchecked := h.stream != nil && h.stream.marks != nil; unchecked != tt.opens {
				t.Fatalf("it is checked later: %t; want %t", unchecked, tt.opens)
			}
			h.Is(tt.is)
			for range h.Each() {
			}
			if want := tt.opens && name != "nothing"; errors.Is(h.Err(), ErrUnchecked) != want {
				t.Errorf("it says %v; want %q: %t", h.Err(), ErrUnchecked, want)
			}
			again, err := open(path, 10)
			want, errRead := Read(path)
			if fmt.Sprint(err) != fmt.Sprint(errRead) || again.Cut != want.Cut || again.Len() != len(want.Ops) {
				t.Errorf("Open says %v, %q; want %v, %q", err, again.Cut, errRead, want.Cut)
			}
		})
	}
}
