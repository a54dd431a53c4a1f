package history

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"

	"oversell/history/marks"
	"oversell/internal/exactjson"
	"oversell/internal/prefetch"
)

// ErrUnchecked says that a history opened by [OpenUnchecked] is not as its trailer says, or that checking it takes more than
// one look. What was concluded from its operations is void. [Open] tells what is wrong, or reads it.
var ErrUnchecked = errors.New("read history: it cannot be checked while it is read")

// OpenUnchecked is [Open] for those who read all operations of a long history once, and begin anew if that fails. It reads the
// header and the trailer only, and the file is checked while its operations are read for the first time: then
// [History.Err] is ErrUnchecked if it was not as it should be. SHA256 is empty until then; see [History.Is]. A file
// that needs more than that, such as one that is cut off, is opened by Open.
func OpenUnchecked(path string) (*History, error) { return openUnchecked(path, inMemory) }

// openUnchecked is OpenUnchecked with another bound.
func openUnchecked(path string, most int) (*History, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() < int64(most)*minOpBytes {
		return open(path, most)
	}
	file, err := os.Open(path)
	if err != nil {
		return open(path, most)
	}
	h := new(History)
	s := &stream{file: file, h: h}
	if !s.marked(info.Size()) || s.ops <= most {
		file.Close()
		return open(path, most)
	}
	h.stream = s
	return h, nil
}

// Is reports whether the history was read from bytes with this digest. If they have not been read yet, it reports true, and they
// are compared when they are.
func (h *History) Is(sha256 string) bool {
	if s := h.stream; s != nil && s.marks != nil {
		s.is = sha256
		return true
	}
	return h.SHA256 == sha256
}

// marked reads the header and the trailer, and reports whether the trailer has marks of all operations.
func (s *stream) marked(size int64) bool {
	in := frameReader{in: bufio.NewReaderSize(s.file, 1<<16)}
	took := newFrames(s.h)
	defer took.close()
	if !took.begin(&in) || newAcceptor(s.h) == nil {
		return false
	}
	f, found := lastFrame(s.file, size)
	t := new(sealed)
	if !found || f.kind != trailerFrame || exactjson.Unmarshal(f.payload, t) != nil || t.Operations == nil {
		return false
	}
	s.ops, s.marks, s.h.Trailer = *t.Operations, marks.Of(t.Marks, *t.Operations), &t.Trailer
	return s.marks != nil
}

// begin reads the magic and the header.
func (r *frames) begin(in *frameReader) bool {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in.in, head); err != nil || string(head) != magic {
		return false
	}
	b := in.next()
	if b == nil {
		return false
	}
	_, err := r.header(append(head, b...))
	in.at += int64(len(magic))
	return err == nil
}

// lastFrame finds the frame that ends with a file: it looks for one from there backwards.
func lastFrame(file io.ReaderAt, size int64) (f frame, found bool) {
	for window := min(size, 1<<16); ; window = min(size, 4*window) {
		data := make([]byte, window)
		if _, err := file.ReadAt(data, size-window); err != nil && err != io.EOF {
			return f, false
		}
		for at := len(data) - frameHead; at >= 0; at-- {
			if data[at] != byte(trailerFrame) {
				continue
			}
			if f, problem := nextFrame(data, at); problem == "" && f.end() == len(data) {
				return f, true
			}
		}
		if window == size || window > maxPayload+frameHead {
			return f, false
		}
	}
}

// readFirst is read for a file that has not been checked.
func (s *stream) readFirst(n int, yield func([]Op, time.Duration) bool) error {
	in := frameReader{in: bufio.NewReaderSize(io.NewSectionReader(s.file, 0, 1<<62), 1<<20)}
	took := newFrames(new(History))
	defer took.close()
	accepts := newAcceptor(s.h)
	if !took.begin(&in) {
		return ErrUnchecked
	}
	var blocks []block
	var held []Op // taken, and not passed on
	left, taken, whole := s.marks, 0, false
	for ops, at := range prefetch.Batches(func(yield func([]Op, int64) ([]Op, bool)) { whole = took.whole(&in, yield) }) {
		if len(left) == 0 {
			return ErrUnchecked
		}
		m := &left[0]
		if taken == 0 {
			blocks = append(blocks, block{at, m.Called, m.Returned})
		}
		for i := range ops {
			if op := &ops[i]; op.Call < m.Called || op.Return < m.Returned || !accepts.op(op) {
				return ErrUnchecked
			}
		}
		held = append(held, ops...)
		if taken += len(ops); taken < m.Ops {
			continue
		}
		if taken > m.Ops {
			return ErrUnchecked
		}
		left, taken = left[1:], 0
		ripe, called := Forever, Forever
		if len(left) > 0 {
			ripe, called = left[0].Returned, left[0].Called
		}
		more := false
		if held, more = ripen(held, ripe, called, n, yield); !more {
			return nil
		}
	}
	sum := took.sum.Text()
	if !whole || len(left) > 0 || s.is != "" && s.is != sum {
		return ErrUnchecked
	}
	s.blocks, s.texts, s.marks, s.h.SHA256 = blocks, took.d.texts, nil, sum
	return nil
}
