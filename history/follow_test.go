package history

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// pollAll polls until the end or until nothing more is there, and returns the operations.
func pollAll(t testing.TB, f *Follower) (all []Op, err error) {
	t.Helper()
	for {
		ops, err := f.Poll()
		all = append(all, ops...)
		if err != nil || f.Behind() == 0 {
			return all, err
		}
	}
}

// growing returns the path of a file and a function that appends to it.
func growing(t testing.TB) (path string, grow func([]byte)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "history.bin")
	return path, func(b []byte) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFollowEveryByte lets a file grow byte by byte: half a frame is never taken for damage, and each operation is
// returned once, as soon as its frame is complete.
func TestFollowEveryByte(t *testing.T) {
	trailer := testTrailer()
	frames := [][]Op{randomOps(5, 1), randomOps(3, 2), loadOps(4, 2, 3)}
	m := encoded(t, testHeader(), &trailer, frames...)
	data := m.bytes()
	path, grow := growing(t)
	f := NewFollower(path)
	defer f.Close()
	if ops, err := f.Poll(); err != nil || len(ops) > 0 || f.Header() != nil {
		t.Fatalf("of a file that does not exist: %v, %v", ops, err)
	}
	ends := map[int]bool{}
	size := 0
	for _, w := range m.writes {
		size += len(w)
		ends[size] = true
	}
	var all []Op
	for i, b := range data {
		grow([]byte{b})
		ops, err := f.Poll()
		if (err == io.EOF) != (i == len(data)-1) || err != nil && err != io.EOF {
			t.Fatalf("after byte %d of %d: %v (%s)", i, len(data), err, f.Cut())
		}
		if len(ops) > 0 && !ends[i+1] {
			t.Fatalf("%d operations in the middle of a frame, after byte %d", len(ops), i)
		}
		all = append(all, ops...)
		if want := i+1 >= len(m.writes[0]); (f.Header() != nil) != want {
			t.Fatalf("after byte %d the header is there: %v", i, !want)
		}
	}
	wantOps(t, all, slices.Concat(frames...))
	if !reflect.DeepEqual(*f.Header(), testHeader()) || !reflect.DeepEqual(*f.Trailer(), trailer) || f.Cut() != "" {
		t.Errorf("%+v\n%+v\n%q", f.Header(), f.Trailer(), f.Cut())
	}
	if ops, err := f.Poll(); err != io.EOF || len(ops) > 0 {
		t.Errorf("after the end: %v, %v", ops, err)
	}
}

// TestFollowSaysWhatReadSays damages each byte of a file in turn: the follower must stop where Read stops, with the
// same sentence and after the same operations.
func TestFollowSaysWhatReadSays(t *testing.T) {
	trailer := testTrailer()
	data := encoded(t, testHeader(), &trailer, randomOps(3, 1), randomOps(2, 2)).bytes()
	for i := range data {
		damaged := slices.Clone(data)
		damaged[i] ^= 0x10
		path := filepath.Join(t.TempDir(), "h")
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		want, wantErr := rawRead(path)
		f := NewFollower(path)
		ops, err := pollAll(t, f)
		f.Close()
		switch {
		case wantErr != nil && (err == nil || err == io.EOF):
			if !strings.Contains(wantErr.Error(), "ends inside it") { // a header with a greater length may still be completed
				t.Errorf("byte %d: followed: %v; read: %v", i, err, wantErr)
			}
		case wantErr == nil && strings.Contains(want.Cut, incomplete): // a frame with a greater length may still be completed
			if err != nil || f.Cut() != "" {
				t.Errorf("byte %d: %v, %q; want to wait", i, err, f.Cut())
			}
			wantOps(t, completed(ops), want.Ops)
		case wantErr == nil:
			if err != io.EOF || f.Cut() != want.Cut {
				t.Errorf("byte %d: %v, %q; want %q", i, err, f.Cut(), want.Cut)
			}
			wantOps(t, completed(ops), want.Ops)
		}
	}
}

// TestFollowCountsAll checks that the sentence about a cut counts all operations, not only those since the last poll.
func TestFollowCountsAll(t *testing.T) {
	m := encoded(t, testHeader(), nil, randomOps(3, 1), randomOps(2, 2), randomOps(2, 3))
	path, grow := growing(t)
	f := NewFollower(path)
	defer f.Close()
	for i, w := range m.writes {
		w = slices.Clone(w)
		if i == len(m.writes)-1 {
			w[len(w)-1] ^= 0x10
		}
		grow(w)
		if _, err := f.Poll(); (err == io.EOF) != (i == len(m.writes)-1) {
			t.Fatalf("after write %d of %d: %v", i+1, len(m.writes), err)
		}
	}
	want, err := rawRead(path)
	if err != nil || f.Cut() != want.Cut || !strings.Contains(f.Cut(), "after 5 operations") {
		t.Errorf("%q; want %q (%v)", f.Cut(), want.Cut, err)
	}
}

// TestFollowAWriter follows a file while a Writer writes it; the file is larger than what is read at once.
func TestFollowAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.bin")
	want := loadOps(80_000, 50, 4)
	written := make(chan error, 1)
	first := make(chan struct{})
	go func() {
		w, err := Create(path, testHeader())
		if err == nil {
			<-first // the header is alone for a while
			for ops := range slices.Chunk(want, 5_000) {
				err = errors.Join(err, w.Append(ops))
			}
			err = errors.Join(err, w.Finish(testTrailer()))
		}
		written <- err
	}()
	f := NewFollower(path)
	defer f.Close()
	var got []Op
	for began, late := false, time.Now().Add(30*time.Second); ; {
		ops, err := f.Poll()
		if got = append(got, ops...); err == io.EOF {
			break
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("after %d of %d operations: %v", len(got), len(want), err)
		}
		if !began && f.Header() != nil {
			began = true
			close(first)
		}
		runtime.Gosched() // to the writer
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	wantOps(t, got, want)
	if f.Trailer() == nil {
		t.Error("the end was not told")
	}
}

// TestFollowSomethingElse follows a file that is not a history.
func TestFollowSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, []byte("hello, this is no history"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := NewFollower(path)
	defer f.Close()
	if _, err := f.Poll(); !errors.Is(err, ErrNotHistory) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v; want ErrNotHistory and the path", err)
	}
}

func BenchmarkFollow(b *testing.B) {
	path := writeHistory(b, testHeader(), &Trailer{}, loadOps(1_000_000, 100, 1))
	b.ReportAllocs()
	for b.Loop() {
		f := NewFollower(path)
		n := 0
		for {
			ops, err := f.Poll()
			n += len(ops)
			if err != nil {
				break
			}
		}
		f.Close()
		if n != 1_000_000 {
			b.Fatal(n)
		}
	}
}
