package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The ways in which something is no history that this build can judge. A
// history that is merely cut off is no error: see History.Cut.
var (
	// ErrNotHistory: the bytes are something else.
	ErrNotHistory = errors.New("not a history")
	// ErrVersion: a history in a format that this build does not read.
	ErrVersion = errors.New("a history of another version")
	// ErrNoHeader: a history whose header is cut off or damaged. What its
	// operations mean is not known, so that nothing can be judged.
	ErrNoHeader = errors.New("the header is unreadable, so nothing can be judged")
)

// Read reads the history in a file, in either form: a history file or JSON
// lines. Errors other than the system's wrap [ErrNotHistory], [ErrVersion] or
// [ErrNoHeader], or name a line of JSON and what is wrong with it.
func Read(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	h, err := ReadFrom(f)
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", path, err)
	}
	return h, nil
}

// ReadFrom is [Read] on a stream.
func ReadFrom(r io.Reader) (*History, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	first, err := in.Peek(len(magic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(first) > 0 && first[0] == '{' {
		return ReadJSONL(in)
	}
	if err := checkMagic(first); err != nil { // before reading all of something else
		return nil, err
	}
	var data bytes.Buffer
	data.Grow(sizeOf(r) + bytes.MinRead)
	if _, err := data.ReadFrom(in); err != nil {
		return nil, err
	}
	return readBinary(data.Bytes())
}

// sizeOf is the size of r when it is a regular file of sensible size, else 0.
func sizeOf(r io.Reader) int {
	f, ok := r.(fs.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<30 {
		return 0
	}
	return int(info.Size())
}

func readBinary(data []byte) (*History, error) {
	h := new(History)
	at, err := h.readHeader(data)
	if err != nil {
		return nil, err
	}
	h.Ops = make([]Op, 0, countOps(data, at))
	h.readFrames(data, at)
	sortByCompletion(h.Ops)
	return h, nil
}

// readHeader returns the offset behind the header.
func (h *History) readHeader(data []byte) (int, error) {
	f, problem := nextFrame(data, len(magic))
	if problem == incomplete {
		return 0, fmt.Errorf("%w: the file ends inside it", ErrNoHeader)
	}
	if problem != "" {
		return 0, fmt.Errorf("%w: it %s", ErrNoHeader, problem)
	}
	if f.kind != headerFrame {
		return 0, fmt.Errorf("%w: a frame of kind %q stands in its place", ErrNoHeader, f.kind)
	}
	if err := json.Unmarshal(f.payload, &h.Header); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoHeader, err)
	}
	return f.end(), checkSchema(h.Header.Schema)
}

// checkMagic looks at the first bytes of a file.
func checkMagic(data []byte) error {
	const name = len(magic) - 1
	n := min(len(data), name)
	switch {
	case n == 0:
		return fmt.Errorf("%w: the file is empty", ErrNoHeader)
	case string(data[:n]) != magic[:n]:
		return fmt.Errorf("%w: it begins with %q, neither with %q nor with a line of JSON", ErrNotHistory, data[:n], magic[:name])
	case len(data) <= name:
		return fmt.Errorf("%w: the file ends after %s", ErrNoHeader, plural(len(data), "byte"))
	case data[name] != magic[name]:
		return fmt.Errorf("%w: file version %d, this build reads %d", ErrVersion, data[name], magic[name])
	}
	return nil
}

func checkSchema(schema string) error {
	if schema == Schema {
		return nil
	}
	if schema == "" {
		return fmt.Errorf("%w: its header names no schema, this build reads %q", ErrVersion, Schema)
	}
	return fmt.Errorf("%w: its schema is %q, this build reads %q", ErrVersion, schema, Schema)
}

// countOps counts the operations from a frame on, in advance.
func countOps(data []byte, at int) (n int) {
	for at < len(data) {
		f, problem := nextFrame(data, at)
		if problem != "" {
			break
		}
		if f.kind == opsFrame {
			k, _ := opCount(f.payload)
			n += k
		}
		at = f.end()
	}
	return n
}

// readFrames reads up to the trailer, or to the first frame that cannot be
// trusted.
func (h *History) readFrames(data []byte, at int) {
	d := new(decoder)
	for at < len(data) {
		f, problem := nextFrame(data, at)
		if problem == "" {
			problem = h.readFrame(d, f)
		}
		if problem != "" {
			h.cutAt(at, len(data), problem)
			return
		}
		at = f.end()
		if h.Trailer != nil {
			if at < len(data) {
				h.Cut = fmt.Sprintf("%s follow the trailer at byte %s: they are no part of this history", plural(len(data)-at, "byte"), group(at))
			}
			return
		}
	}
	h.Cut = fmt.Sprintf("cut off after %s: the file ends at byte %s without a trailer", plural(len(h.Ops), "operation"), group(at))
}

// readFrame takes in one frame, or tells why it makes no sense.
func (h *History) readFrame(d *decoder, f frame) (problem string) {
	d.start(f.payload)
	var err error
	switch f.kind {
	case symbolsFrame:
		err = d.symbols()
	case opsFrame:
		h.Ops, err = d.ops(h.Ops)
	case trailerFrame:
		t := new(Trailer)
		if err = json.Unmarshal(f.payload, t); err == nil {
			h.Trailer = t
		}
	default:
		err = fmt.Errorf("this build does not know its kind, %q", f.kind)
	}
	if err != nil {
		return fmt.Sprintf("makes no sense: %v", err)
	}
	return ""
}

// cutAt says that reading stopped at a frame of a file of size bytes.
func (h *History) cutAt(at, size int, problem string) {
	h.Cut = cutSentence(len(h.Ops), at, size, problem)
}

// cutSentence says why a file of size bytes was read no further than to the frame at
// byte at, with that many operations before it.
func cutSentence(ops, at, size int, problem string) string {
	s := fmt.Sprintf("cut off after %s: the frame at byte %s %s", plural(ops, "operation"), group(at), problem)
	if problem != incomplete {
		s += fmt.Sprintf("; %s from there on are not read", plural(size-at, "byte"))
	}
	return s
}
