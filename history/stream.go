package history

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"
	"time"

	"oversell/history/marks"
	"oversell/internal/prefetch"
)

// stream is a history that stays in its file. Opening it reads the file once: it checks every
// frame, the digest and the conditions that the monitors rely on (see acceptor), and notes for each block of operations
// the earliest call and the earliest return. So reading it in completion order needs the operations of only a few
// blocks at a time.
type stream struct {
	file   *os.File
	texts  []Value
	blocks []block
	ops    int
	err    error // of reading it again

	h     *History
	marks []marks.Mark // until the file has been checked; see OpenUnchecked
	is    string       // the digest that the file must have; empty: any
}

// block is several consecutive frames.
type block struct {
	at int64 // offset in the file
	// called and returned are the earliest of this block and all that follow.
	called, returned time.Duration
}

const (
	// blockOps is the least number of operations in a block, except the last one.
	blockOps = 4096
	// inMemory is how many operations are kept in memory rather than read again each time:
	// some 150 MB.
	inMemory = 1_000_000
)

// Open is [Read] for histories of any length: a file of more than a million operations
// stays on the disk, and Ops is nil. [History.Len], [History.Each] and [History.Batches]
// read either. Close it at the end.
//
// Open still reads into memory every file that is not a complete history file as this program writes it: JSON lines, a
// history that is cut off, damaged or contradictory, and one with texts as identities.
func Open(path string) (*History, error) { return open(path, inMemory) }

// open is Open with another bound.
func open(path string, most int) (*History, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() < int64(most)*minOpBytes {
		return Read(path) // a pipe can be opened once
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	h, s := new(History), &stream{file: file}
	if !s.index(h) || s.ops <= most {
		file.Close()
		return Read(path)
	}
	h.stream = s
	return h, nil
}

// Close closes the file of a history that stayed on the disk.
func (h *History) Close() error {
	if h.stream == nil {
		return nil
	}
	return h.stream.file.Close()
}

// Len returns the number of operations.
func (h *History) Len() int {
	if h.stream != nil {
		return h.stream.ops
	}
	return len(h.Ops)
}

// Err returns the first error of reading operations again: the file was changed meanwhile, or is no longer readable.
// All conclusions from those operations are void.
func (h *History) Err() error {
	if h.stream == nil {
		return nil
	}
	return h.stream.err
}

// Each returns all operations in completion order. An operation is valid until the next one, and
// must not be changed.
func (h *History) Each() iter.Seq[*Op] {
	return func(yield func(*Op) bool) {
		for ops := range h.Batches(blockOps) {
			for i := range ops {
				if !yield(&ops[i]) {
					return
				}
			}
		}
	}
}

// Batches returns all operations in completion order, n at a time, each time with the earliest
// call of the operations that follow; Forever: none follows. A slice is valid until the next one,
// and must not be changed.
func (h *History) Batches(n int) iter.Seq2[[]Op, time.Duration] {
	if h.stream != nil {
		return h.stream.batches(n)
	}
	return func(yield func([]Op, time.Duration) bool) {
		low := lowWaters(h.Ops, n)
		for i, at := 0, 0; at < len(h.Ops); i, at = i+1, at+n {
			if !yield(h.Ops[at:min(at+n, len(h.Ops))], low[i+1]) {
				return
			}
		}
	}
}

// lowWaters returns, for the start of each batch of n and for the end, the earliest call from there on.
func lowWaters(ops []Op, n int) []time.Duration {
	low := make([]time.Duration, (len(ops)+n-1)/n+1)
	earliest := Forever
	low[len(low)-1] = earliest
	for i := len(ops) - 1; i >= 0; i-- {
		earliest = min(earliest, ops[i].Call)
		if i%n == 0 {
			low[i/n] = earliest
		}
	}
	return low
}

// index reads the file from its beginning, and reports whether it can be read as a stream.
func (s *stream) index(h *History) bool {
	in := frameReader{in: bufio.NewReaderSize(s.file, 1<<20)}
	took := newFrames(h)
	defer took.close()
	if !took.begin(&in) {
		return false
	}
	accepts := newAcceptor(h)
	if accepts == nil {
		return false
	}
	filled := blockOps // of the last block
	whole := false
	for ops, at := range prefetch.Batches(func(yield func([]Op, int64) ([]Op, bool)) { whole = took.whole(&in, yield) }) {
		if filled >= blockOps {
			s.blocks = append(s.blocks, block{at, Forever, Forever})
			filled = 0
		}
		filled += len(ops)
		last := &s.blocks[len(s.blocks)-1]
		for i := range ops {
			op := &ops[i]
			if !accepts.op(op) {
				return false
			}
			last.called, last.returned = min(last.called, op.Call), min(last.returned, op.Return)
		}
	}
	if !whole {
		return false
	}
	s.ops, s.texts, h.Ops, h.SHA256 = took.ops, took.d.texts, nil, took.sum.Text()
	for i := len(s.blocks) - 2; i >= 0; i-- {
		b, next := &s.blocks[i], &s.blocks[i+1]
		b.called, b.returned = min(b.called, next.called), min(b.returned, next.returned)
	}
	return true
}

// whole yields the operations of each frame, with its offset in the file, and reports whether the file is whole: it ends
// with its trailer, and all frames are as written. yield returns room for the next operations.
func (r *frames) whole(in *frameReader, yield func([]Op, int64) ([]Op, bool)) bool {
	h := r.h
	for h.Trailer == nil {
		at := in.at
		b := in.next()
		if b == nil {
			return false
		}
		f, problem := nextFrame(b, 0)
		if h.Ops = h.Ops[:0]; problem != "" || r.take(f) != "" {
			return false
		}
		r.took(b)
		if len(h.Ops) == 0 {
			continue
		}
		more := false
		if h.Ops, more = yield(h.Ops, at); !more {
			return false
		}
	}
	_, err := in.in.ReadByte()
	return err == io.EOF
}

// frameReader reads one frame after the other.
type frameReader struct {
	in  *bufio.Reader
	at  int64 // offset of the next frame
	buf []byte
}

// next returns the bytes of the next frame, valid until the one after it is read; nil: there is no
// whole frame of sensible length.
func (r *frameReader) next() []byte {
	if cap(r.buf) < frameHead {
		r.buf = make([]byte, frameHead, 1<<16)
	}
	r.buf = r.buf[:frameHead]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return nil
	}
	_, size, problem := headAt(r.buf, 0)
	if problem != "" {
		return nil
	}
	if need := frameHead + size; cap(r.buf) < need {
		r.buf = append(make([]byte, 0, 2*need), r.buf...)
	}
	r.buf = r.buf[:frameHead+size]
	if _, err := io.ReadFull(r.in, r.buf[frameHead:]); err != nil {
		return nil
	}
	r.at += int64(len(r.buf))
	return r.buf
}

// batches is [History.Batches].
func (s *stream) batches(n int) iter.Seq2[[]Op, time.Duration] {
	return prefetch.Batches(func(yield func([]Op, time.Duration) ([]Op, bool)) {
		var room []Op
		read := s.read
		if s.marks != nil {
			read = s.readFirst
		}
		s.err = read(n, func(ops []Op, low time.Duration) (more bool) {
			room, more = yield(append(room[:0], ops...), low)
			return more
		})
	})
}

// read puts operations into completion order: the operations of a block can be passed on when no
// later block has an operation that returned earlier.
func (s *stream) read(n int, yield func([]Op, time.Duration) bool) error {
	file := io.NewSectionReader(s.file, 0, 1<<62)
	in := frameReader{in: bufio.NewReaderSize(file, 1<<20)}
	if len(s.blocks) == 0 {
		return nil
	}
	if _, err := file.Seek(s.blocks[0].at, io.SeekStart); err != nil {
		return err
	}
	in.at = s.blocks[0].at
	d := decoder{texts: s.texts}
	var ops []Op // taken, and not passed on
	for i := range s.blocks {
		end := int64(1<<63 - 1)
		ripe, called := Forever, Forever
		if i+1 < len(s.blocks) {
			end, ripe, called = s.blocks[i+1].at, s.blocks[i+1].returned, s.blocks[i+1].called
		}
		var err error
		for in.at < end {
			b := in.next()
			if b == nil {
				return errChanged
			}
			f, problem := nextFrame(b, 0)
			if problem != "" {
				return errChanged
			}
			if f.kind == trailerFrame {
				break
			}
			if f.kind != opsFrame {
				continue
			}
			d.start(f.payload)
			if ops, err = d.ops(ops); err != nil {
				return errChanged
			}
		}
		more := false
		if ops, more = ripen(ops, ripe, called, n, yield); !more {
			return nil
		}
	}
	return nil
}

// ripen passes the operations that returned before ripe to yield, in completion order and n at a time, and returns the others.
// ripe and called are the earliest return and the earliest call of the operations that have not been read yet; both are Forever if
// there are none.
func ripen(ops []Op, ripe, called time.Duration, n int, yield func([]Op, time.Duration) bool) (rest []Op, more bool) {
	SortByCompletion(ops)
	know := len(ops)
	if ripe != Forever {
		know = sort.Search(len(ops), func(i int) bool { return ops[i].Return >= ripe })
	}
	told := 0
	for know-told >= n || ripe == Forever && told < know {
		next := min(told+n, know)
		low := called
		for k := next; k < len(ops); k++ {
			low = min(low, ops[k].Call)
		}
		if !yield(ops[told:next], low) {
			return nil, false
		}
		told = next
	}
	return append(ops[:0], ops[told:]...), true
}

var errChanged = fmt.Errorf("read history: the file was changed while it was judged")
