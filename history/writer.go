package history

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"

	"oversell/history/marks"
)

// Writer writes a history file. It is for one goroutine, usually the one that
// sweeps the [Log].
//
// A Writer that failed stays failed: all later calls return the first error.
// What it wrote before remains a readable, cut history.
type Writer struct {
	file    file
	symbols symbols
	buf     []byte
	next    uint32 // the number of the next frame
	ops     int    // operations written
	marker  marks.Marker
	sum     hash.Hash // of all bytes written
	err     error
}

// file is the part of *os.File that a Writer needs.
type file interface {
	io.WriteCloser
	Sync() error
}

// Create begins a history file. When it returns, the header is in the file, and everything appended later can be read
// back even if the process dies. It never overwrites a file, which may be the only record of a run: the error is then
// fs.ErrExist. An empty Schema in the header is filled in.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	w := newWriter(f)
	if w.begin(h); w.err != nil {
		_ = f.Close()
		return nil, w.err
	}
	return w, nil
}

func newWriter(f file) *Writer {
	return &Writer{file: f, symbols: symbols{indexes: make(map[Value]uint32)}, sum: sha256.New(), marker: marks.Marker{Least: blockOps, Most: mostMarks}}
}

func (w *Writer) begin(h Header) {
	if h.Schema == "" {
		h.Schema = Schema
	}
	w.appendJSON([]byte(magic), headerFrame, h)
}

// Append writes operations, in frames of at most 4096, each with one write. It buffers nothing: when it returns, the
// operations are in the file and survive a kill -9. It keeps no reference to ops.
func (w *Writer) Append(ops []Op) error {
	for len(ops) > 0 && w.err == nil {
		n := min(len(ops), maxFrameOps)
		w.appendOps(ops[:n])
		ops = ops[n:]
	}
	return w.err
}

// Finish writes the trailer, syncs the file to disk, and always closes it. After an earlier failure it returns that
// error.
func (w *Writer) Finish(t Trailer) error {
	w.end(t)
	if w.err == nil {
		w.keep(w.file.Sync())
	}
	err := w.file.Close()
	if w.err == nil {
		w.keep(err)
	}
	if w.err == nil {
		w.err = fmt.Errorf("write history: %w", os.ErrClosed) // for later calls
		return nil
	}
	return w.err
}

// end writes the trailer, with the proof that everything before it is as written.
func (w *Writer) end(t Trailer) {
	w.appendJSON(nil, trailerFrame, sealed{t, &w.ops, hex.EncodeToString(w.sum.Sum(nil)), w.marker.Numbers()})
}

// appendOps writes one frame of operations, after one with their new texts.
func (w *Writer) appendOps(ops []Op) {
	b := append(w.buf[:0], make([]byte, frameHead)...)
	b = binary.AppendUvarint(b, uint64(len(ops)))
	var c deltaState
	for i := range ops {
		b = w.symbols.appendOp(b, &c, &ops[i])
	}
	w.buf = b
	w.appendSymbols()
	w.write(opsFrame, b, 0)
	w.ops += len(ops)
	w.marker.Add(markOf(ops))
}

// mostMarks is the most marks that a trailer has.
const mostMarks = 4096

func markOf(ops []Op) marks.Mark {
	m := marks.Mark{Ops: len(ops), Called: Forever, Returned: Forever}
	for i := range ops {
		m.Called, m.Returned = min(m.Called, ops[i].Call), min(m.Returned, ops[i].Return)
	}
	return m
}

// appendSymbols writes the texts that are not in the file yet, in frames of about a megabyte.
func (w *Writer) appendSymbols() {
	fresh := w.symbols.fresh
	for len(fresh) > 0 && w.err == nil {
		b := make([]byte, frameHead)
		for len(fresh) > 0 && len(b) < 1<<20 {
			text := fresh[0].String()
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
			fresh = fresh[1:]
		}
		w.write(symbolsFrame, b, 0)
	}
	w.symbols.fresh = w.symbols.fresh[:0]
}

// appendJSON writes a frame of JSON, together with the bytes before it.
func (w *Writer) appendJSON(before []byte, kind frameKind, v any) {
	text, err := json.Marshal(v)
	w.keep(err)
	b := append(before, make([]byte, frameHead)...)
	w.write(kind, append(b, text...), len(before))
}

// write seals the frame that begins at offset at of b, and writes all of b.
func (w *Writer) write(kind frameKind, b []byte, at int) {
	if w.err != nil {
		return
	}
	limit := maxPayload
	if kind == headerFrame {
		limit = maxHeader
	}
	if size := len(b) - at - frameHead; size > limit {
		w.keep(fmt.Errorf("a frame of kind %q would be %s bytes long, and readers accept %s", kind, group(size), group(limit)))
		return
	}
	seal(kind, w.next, b[at:])
	_, err := w.file.Write(b)
	w.keep(err)
	w.next++
	w.sum.Write(b)
}

// keep keeps the first error.
func (w *Writer) keep(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("write history: %w", err)
	}
}
