package wire

import "io"

const (
	// maxHeld is the number of bytes that the proxy reads of a command before it forwards it,
	// and of a reply whose beginning decides whether it is forwarded.
	maxHeld = 64 << 10
	// firstBuffer suits a client that waits for each answer; there may be
	// thousands of them. Buffers grow to maxHeld with what they are given.
	firstBuffer = 4 << 10
)

// window is what was read from one side and not yet written to the other:
// from ≤ at ≤ pos ≤ end.
type window struct {
	buf  []byte
	from int // the first byte that was not written yet
	at   int // where the command or reply under way begins, or the part of it that is still in the window
	pos  int // the first byte that was not looked at yet
	end  int // behind the last byte that was read
}

// fill reads on.
func (w *window) fill(r io.Reader) (int, error) {
	w.makeRoom()
	n, err := r.Read(w.buf[w.end:])
	w.end += n
	return n, err
}

// makeRoom moves what is still held to the front, and grows the buffer when the
// last read filled it.
func (w *window) makeRoom() {
	full := w.end == len(w.buf)
	into := w.buf
	if full && len(w.buf) < maxHeld {
		into = make([]byte, max(firstBuffer, 2*len(w.buf)))
	}
	copy(into, w.buf[w.from:w.end])
	w.buf = into
	w.at, w.pos, w.end, w.from = w.at-w.from, w.pos-w.from, w.end-w.from, 0
}

// full says that nothing can be read before something is written.
func (w *window) full() bool { return w.from == 0 && w.end == maxHeld }

// gone marks the bytes up to here as written, or dropped.
func (w *window) gone(upTo int) {
	w.from = upTo
	w.at = max(w.at, upTo)
	w.pos = max(w.pos, upTo)
}
