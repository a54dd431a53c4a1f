package history

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"oversell/history/marks"
	"oversell/internal/exactjson"
	"oversell/internal/prefetch"
)

// ErrUnchecked is the error of a history that [OpenUnchecked] opened and whose file contradicts its trailer, or cannot be checked
// in one pass. Discard what was concluded from its operations. [Open] then reads the file, or says what is wrong with it.
var ErrUnchecked = errors.New("read history: its file cannot be checked in one pass")

// OpenUnchecked is [Open] in one pass instead of two. It reads only the header and the trailer. The file is checked while its
// operations are read for the first time; after that, [History.Err] is nil if everything was as it should be, and ErrUnchecked
// if the caller must start again with Open. Until then SHA256 is empty; see [History.Is]. OpenUnchecked calls Open for
// files without marks, such as those that are cut off, and for those whose groups of operations would take too much memory.
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

// Is reports whether sha256 is the digest of the history's file, in hexadecimal. Before a history of [OpenUnchecked] has been read,
// Is returns true, and [History.Err] is ErrUnchecked after reading if the digest differs.
func (h *History) Is(sha256 string) bool {
	if s := h.stream; s != nil && s.marks != nil {
		s.is = sha256
		return true
	}
	return h.SHA256 == sha256
}

// mostOfMark is the most operations that a group may have if the file is to be read in one pass: 20 MB are kept in memory.
const mostOfMark = 1 << 17

// marked reads the header and the trailer, and reports whether the trailer has marks with which the file can be read in one pass.
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
	return s.marks != nil && !slices.ContainsFunc(s.marks, func(m marks.Mark) bool { return m.Ops > mostOfMark })
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

// lastFrame finds the last frame of a file. It searches backwards, since the length of a frame is stored at the start of the frame.
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

// readFirst does what read does, and checks the file meanwhile.
func (s *stream) readFirst(n int, yield func([]Op, time.Duration) bool) error {
	in := frameReader{in: bufio.NewReaderSize(io.NewSectionReader(s.file, 0, 1<<62), 1<<20)}
	took := newFrames(new(History))
	defer took.close()
	accepts := newAcceptor(s.h)
	if !took.begin(&in) {
		return ErrUnchecked
	}
	var blocks []block
	var held []Op // read, and not passed on yet
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
	if !whole || s.is != "" && s.is != sum { // if it is whole, it has as many operations as its marks say
		return ErrUnchecked
	}
	s.blocks, s.texts, s.marks, s.h.SHA256 = blocks, took.d.texts, nil, sum
	return nil
}
