package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"
)

// ReadJSONL reads a history written as JSON lines, in the format that the
// package documentation describes. A line that is wrong is an error that gives
// its number, unless it is the last one and has no end: that is how a file
// looks that was cut off. No trailer is needed.
func ReadJSONL(r io.Reader) (*History, error) {
	l := lineReader{in: bufio.NewReaderSize(r, 1<<16)}
	h := new(History)
	if err := l.header(&h.Header); err != nil {
		return nil, err
	}
	for l.next() {
		if err := l.take(h); err != nil {
			return nil, fmt.Errorf("line %s: %w", group(l.number), err)
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	sortByCompletion(h.Ops)
	return h, nil
}

// lineReader goes through the lines of a stream.
type lineReader struct {
	in     *bufio.Reader
	line   []byte
	number int  // of the line, from 1
	ended  bool // the line ends in a newline
	err    error
	latest time.Duration // the largest return so far
}

// next goes on to the next line that is not blank.
func (l *lineReader) next() bool {
	for l.err == nil {
		line, err := l.in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			l.err = err
			return false
		}
		l.number++
		l.line, l.ended = line, err == nil
		if len(bytes.TrimSpace(line)) > 0 {
			return true
		}
		if err == io.EOF {
			return false
		}
	}
	return false
}

// cut tells whether the line is what is left of one that was cut off.
func (l *lineReader) cut() bool { return !l.ended && !json.Valid(l.line) }

func (l *lineReader) header(h *Header) error {
	if !l.next() {
		if l.err != nil {
			return l.err
		}
		return fmt.Errorf("%w: there is no line", ErrNoHeader)
	}
	if l.line[0] != '{' {
		return fmt.Errorf("%w: line 1 must be the header, a JSON object", ErrNotHistory)
	}
	if l.cut() {
		return fmt.Errorf("%w: the file ends inside it, on line 1", ErrNoHeader)
	}
	var schema struct{ Schema string }
	if err := json.Unmarshal(l.line, &schema); err != nil {
		return fmt.Errorf("%w: line 1: %w", ErrNotHistory, plain(err))
	}
	if err := checkSchema(schema.Schema); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	if err := json.Unmarshal(l.line, h); err != nil {
		return fmt.Errorf("%w: line 1: %w", ErrNoHeader, plain(err))
	}
	return nil
}

// take takes in one line behind the header.
func (l *lineReader) take(h *History) error {
	if l.cut() {
		h.Cut = fmt.Sprintf("cut off after %s: line %s is incomplete", plural(len(h.Ops), "operation"), group(l.number))
		return nil
	}
	var o opLine
	if err := json.Unmarshal(l.line, &o); err != nil {
		return plain(err)
	}
	if h.Trailer != nil || h.Cut != "" {
		return errors.New("nothing may follow the trailer")
	}
	if o.Trailer != nil || o.Cut != "" {
		h.Trailer, h.Cut = o.Trailer, o.Cut
		return nil
	}
	op, err := o.op(l.latest)
	if err != nil {
		return err
	}
	h.Ops = append(h.Ops, op)
	l.latest = max(l.latest, op.Return)
	return nil
}

// plain puts an error of package json into the words of this format.
func plain(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("not JSON: %w", err)
	}
	wrong := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return fmt.Errorf("a JSON %s instead of an object", wrong.Value)
	}
	want := wrong.Type.String()
	if wrong.Type.Kind() == reflect.Int64 || wrong.Type.Kind() == reflect.Int32 {
		want = fmt.Sprintf("whole number of %d bits", wrong.Type.Bits())
	}
	return fmt.Errorf("%q is a JSON %s, it must be a %s", wrong.Field, wrong.Value, want)
}
