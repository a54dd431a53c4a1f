package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Follower reads a history file while it is being written. It is for one goroutine.
//
// A file grows frame by frame, and a frame is taken when it is complete. The file may end inside a frame at any moment.
// [Read] calls that cut off; a Follower waits for the rest.
type Follower struct {
	path string
	file *os.File
	data []byte // read, and not yet taken
	base int    // the offset in the file at which data begins
	h    History
	took *frames
	had  bool  // the header has been taken
	err  error // what ended it
}

// NewFollower returns a follower of the file at path, which need not exist yet. Nothing
// is read before the first Poll. Close ends it.
func NewFollower(path string) *Follower {
	f := &Follower{path: path}
	f.took = newFrames(&f.h)
	return f
}

// pollBytes is the most that one Poll reads: some 50,000 operations.
const pollBytes = 1 << 20

// Poll takes the frames written since the last one, up to about a megabyte, and does not wait for more. The operations
// come in the order of the file: those of one client in order, those of different clients in no particular order. The
// slice is valid until the next Poll.
//
// The error is io.EOF when the history is over, by its trailer or by an invalid frame; see Trailer and Cut. Other
// errors are those of [Read]. After an error all later calls return the same.
func (f *Follower) Poll() ([]Op, error) {
	f.h.Ops = f.h.Ops[:0]
	if f.err == nil {
		f.err = f.poll()
	}
	return f.h.Ops, f.err
}

func (f *Follower) poll() error {
	if err := f.read(); err != nil || len(f.data) < len(magic) {
		return err
	}
	at, err := 0, error(nil)
	if !f.had {
		if err := checkMagic(f.data); err != nil {
			return f.named(err)
		}
		if _, problem := nextFrame(f.data, len(magic)); problem == incomplete {
			return nil
		}
		if at, err = f.took.header(f.data); err != nil {
			return f.named(err)
		}
		f.had = true
	}
	for err == nil && at < len(f.data) {
		frame, problem := nextFrame(f.data, at)
		if problem == incomplete {
			break
		}
		if problem == "" {
			problem = f.took.take(frame)
		}
		switch {
		case problem != "":
			f.h.endAt(f.took.ops, f.base+at, f.base+len(f.data)+int(f.Behind()), problem)
			err = io.EOF
		case f.h.Trailer != nil:
			err = io.EOF
		default:
			f.took.took(f.data[at:frame.end()])
			at = frame.end()
		}
	}
	f.base += at
	f.data = append(f.data[:0], f.data[at:]...)
	return err
}

// read appends new bytes of the file to data.
func (f *Follower) read() (err error) {
	if f.file == nil {
		f.file, err = os.Open(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow history: %w", err)
		}
	}
	have := len(f.data)
	if want := have + pollBytes; cap(f.data) < want {
		f.data = append(make([]byte, 0, want), f.data...)
	}
	n, err := io.ReadFull(f.file, f.data[have:have+pollBytes])
	f.data = f.data[:have+n]
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("follow history: %w", err)
	}
	return nil
}

func (f *Follower) named(err error) error { return fmt.Errorf("follow history %s: %w", f.path, err) }

// Header returns the header, or nil as long as it has not been read.
func (f *Follower) Header() *Header {
	if !f.had {
		return nil
	}
	return &f.h.Header
}

// Trailer returns the trailer, or nil as long as it has not been read.
func (f *Follower) Trailer() *Trailer { return f.h.Trailer }

// Cut says, in a sentence like that of History.Cut, which invalid frame ended the history; "" if none did.
func (f *Follower) Cut() string { return f.h.Cut }

// Behind returns the number of bytes of the file that no Poll has read yet.
func (f *Follower) Behind() int64 {
	if f.file == nil {
		return 0
	}
	info, err := f.file.Stat()
	if err != nil {
		return 0
	}
	return max(0, info.Size()-int64(f.base+len(f.data)))
}

// Close closes the file.
func (f *Follower) Close() error {
	f.took.close()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
