package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"oversell/internal/phrase"
	"oversell/internal/printable"
)

// The errors for files that are not a history that this build can judge. A history that is only cut off is not an
// error: see History.Cut.
var (
	// ErrNotHistory: the bytes are something else.
	ErrNotHistory = errors.New("not a history")
	// ErrVersion: a history in a format that this build does not read.
	ErrVersion = errors.New("a history of another version")
	// ErrNoHeader: a history whose header is cut off or damaged. The meaning of its operations is unknown, so nothing
	// can be judged.
	ErrNoHeader = errors.New("the header is unreadable, so nothing can be judged")
	// ErrDamaged: a history whose header is not as it was written. It comes with ErrNoHeader. Damage after the header
	// is not an error; see History.Damaged.
	ErrDamaged = errors.New("damaged")
)

// Read reads the history in a file, in either form: a history file or JSON
// lines. Errors other than the system's wrap [ErrNotHistory], [ErrVersion], [ErrNoHeader] or [ErrInvalid], or name a
// line of JSON and its fault.
//
// A history that Read returns without an error is valid in everything on which the monitors rely, or it is marked as
// damaged; see the package documentation.
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
func ReadFrom(r io.Reader) (*History, error) { return finish(decode(r)) }

// decode reads the operations in the order of the file.
func decode(r io.Reader) (*History, *places, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	first, err := in.Peek(len(magic) + frameHead)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if len(first) > 0 && first[0] == '{' || bytes.HasPrefix(first, []byte(byteOrderMark)) {
		return decodeJSONL(in)
	}
	if err := checkMagic(first[:min(len(first), len(magic))]); err != nil { // before reading a whole other file
		return nil, nil, err
	}
	if _, _, problem := headAt(first, len(magic)); problem != "" {
		return nil, nil, noHeader(problem)
	}
	var data bytes.Buffer
	data.Grow(sizeOf(r) + bytes.MinRead)
	if _, err := data.ReadFrom(in); err != nil {
		return nil, nil, err
	}
	return decodeBinary(data.Bytes())
}

// sizeOf returns the size of r when it is a regular file of sensible size, else 0.
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

func decodeBinary(data []byte) (*History, *places, error) {
	h := new(History)
	f := newFrames(h)
	defer f.close()
	at, err := f.header(data)
	if err != nil {
		return nil, nil, err
	}
	h.Ops = make([]Op, 0, countOps(data, at))
	f.all(data, at)
	h.SHA256 = f.sum.Text()
	return h, new(places), nil
}

// checkMagic looks at the first bytes of a file.
func checkMagic(data []byte) error {
	const name = len(magic) - 1
	n := min(len(data), name)
	switch {
	case n == 0:
		return fmt.Errorf("%w: the file is empty", ErrNoHeader)
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return fmt.Errorf("%w: it is a text in UTF-16: save it as UTF-8", ErrNotHistory)
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		return fmt.Errorf("%w: it is compressed: unpack it first, as gunzip does", ErrNotHistory)
	case data[0] == '[':
		return fmt.Errorf("%w: it is a JSON array: write one object a line, the header first", ErrNotHistory)
	case string(data[:n]) != magic[:n]:
		return fmt.Errorf("%w: it begins with %q, neither with %q nor with a line of JSON", ErrNotHistory, data[:n], magic[:name])
	case len(data) <= name:
		return fmt.Errorf("%w: the file ends after %s", ErrNoHeader, phrase.Count(len(data), "byte"))
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
	return fmt.Errorf("%w: its schema is %q, this build reads %q", ErrVersion, printable.Short(schema), Schema)
}

// countOps counts the operations from a frame on, in advance.
func countOps(data []byte, at int) (n int) {
	for at < len(data) {
		f, size, problem := headAt(data, at)
		if problem != "" || size > len(data)-at-frameHead {
			break
		}
		f.payload = data[at+frameHead:][:size]
		if f.kind == opsFrame {
			k, _ := opCount(f.payload)
			n += k
		}
		at = f.end()
	}
	return n
}
