package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"oversell/internal/exactjson"
	"oversell/internal/phrase"
	"oversell/variant"
)

// ReadJSONL reads a history written as JSON lines, in the format that the
// package documentation describes. A wrong line is an error with its number, unless it is the last one and has no end:
// then the file was cut off. A file without a trailer that counts the operations is cut off, too.
func ReadJSONL(r io.Reader) (*History, error) { return finish(decodeJSONL(r)) }

// decodeJSONL reads the operations in the order of their lines.
func decodeJSONL(r io.Reader) (*History, *places, error) {
	l := lineReader{in: bufio.NewReaderSize(r, 1<<16), sum: sha256.New()}
	if mark, _ := l.in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = l.in.Discard(len(byteOrderMark)) // which is not part of the text
	}
	h := new(History)
	if err := l.header(&h.Header); err != nil {
		return nil, nil, err
	}
	for l.next() {
		if err := l.take(h); err != nil {
			return nil, nil, fmt.Errorf("line %s: %w", group(l.number), err)
		}
	}
	if l.err != nil {
		return nil, nil, l.err
	}
	if h.Trailer == nil && h.Cut == "" {
		h.Cut = fmt.Sprintf("cut off after %s: the file ends at line %s without a trailer", phrase.Count(len(h.Ops), "operation"), group(l.number))
		if !l.sealed {
			h.Remarks = append(h.Remarks, `the last line of a whole history counts its operations: {"trailer":{"operations":N}}`)
		}
	}
	if err := l.complete(h); err != nil {
		return nil, nil, err
	}
	h.SHA256 = l.digest()
	giveUp(h.Ops, l.open)
	if !l.sealed {
		rebase(h)
	}
	return h, &places{true, l.lines}, nil
}

// byteOrderMark is written by some tools at the beginning of a text in UTF-8.
const byteOrderMark = "\ufeff"

// lineReader reads the lines of a stream.
type lineReader struct {
	in     *bufio.Reader
	line   []byte // until the next call of next
	long   []byte // room for a line that is longer than the buffer
	number int    // of the line, from 1
	ended  bool   // the line ends in a newline
	err    error
	sum    hash.Hash // of the lines before this one
	fields fields
	lines  []int32         // of the operations
	sealed bool            // the header says that the trailer holds a digest
	open   []int32         // operations without the time at which their clients gave up
	told   exactjson.Names // the header's fields
	others strangers
}

// next moves to the next line that is not blank.
func (l *lineReader) next() bool {
	for l.err == nil {
		l.sum.Write(l.line)
		line, err := l.read()
		if err != nil && err != io.EOF {
			l.err = err
			return false
		}
		if len(line) > 0 {
			l.number++
		}
		l.line, l.ended = line, err == nil
		if len(bytes.TrimSpace(line)) > 0 {
			return true
		}
		if err == io.EOF {
			l.sum.Write(line)
			l.line = nil
			return false
		}
	}
	return false
}

// read reads a line, up to the limit.
func (l *lineReader) read() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	l.long = l.long[:0]
	for err == bufio.ErrBufferFull {
		if l.long = append(l.long, line...); len(l.long) > maxLine {
			return nil, l.tooLong()
		}
		line, err = l.in.ReadSlice('\n')
	}
	if l.long = append(l.long, line...); len(l.long) > maxLine {
		return nil, l.tooLong()
	}
	return l.long, err
}

// maxLine bounds every line, including the header.
const maxLine = maxHeader

func (l *lineReader) tooLong() error {
	err := fmt.Errorf("line %s is longer than %s bytes: no line of a history may be", group(l.number+1), group(maxLine))
	if l.number == 0 {
		return fmt.Errorf("%w: %w", ErrNoHeader, err)
	}
	return err
}

// digest returns the digest of the lines before this one or, at the end, of all
// lines.
func (l *lineReader) digest() string { return hex.EncodeToString(l.sum.Sum(nil)) }

// cut reports whether the line is the beginning of a line that was cut off.
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
	var schema struct {
		Schema string `json:"schema"`
	}
	if err := exactjson.Unmarshal(l.line, &schema); err != nil {
		return fmt.Errorf("%w: line 1: %w", ErrNotHistory, plain(err))
	}
	if schema.Schema == "" {
		return fmt.Errorf("%w: line 1 must be the header, such as {\"schema\":%q,\"stock\":100}, and it has no \"schema\"", ErrNotHistory, Schema)
	}
	if err := checkSchema(schema.Schema); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	var sealed sealedHeader
	var err error
	if l.told, err = exactjson.UnmarshalNoting(l.line, &sealed); err != nil {
		return fmt.Errorf("%w: line 1: %w", ErrNoHeader, plain(err))
	}
	*h, l.sealed = sealed.Header, sealed.Sealed
	if err := l.foreign(l.told, headerFields); err != nil {
		return fmt.Errorf("line 1: %w: %w", ErrInvalid, err)
	}
	if !slices.Contains(l.told.Given, "stock") && h.Has(variant.Sale) {
		return fmt.Errorf("line 1: %w: it is about a sale and does not tell its \"stock\"", ErrInvalid)
	}
	return nil
}

// take reads one line after the header.
func (l *lineReader) take(h *History) error {
	ended := h.Trailer != nil || h.Cut != ""
	f := &l.fields
	if !l.ended || !f.scan(l.line) {
		if l.cut() {
			if ended {
				return errors.New("nothing may follow the trailer")
			}
			h.Cut = fmt.Sprintf("cut off after %s: line %s is incomplete", phrase.Count(len(h.Ops), "operation"), group(l.number))
			return nil
		}
		var o opLine
		told, err := exactjson.UnmarshalNoting(l.line, &o)
		if err != nil {
			return plain(err)
		}
		if o.Trailer != nil || o.Cut != "" {
			if ended {
				return errors.New("nothing may follow the trailer")
			}
			l.end(h, &o)
			return nil
		}
		if ended {
			return errors.New("nothing may follow the trailer")
		}
		if slices.Contains(told.Given, "trailer") {
			return errors.New(`"trailer" is null, it must be an object such as {"operations":2}`)
		}
		if err := l.foreign(told, opFields); err != nil {
			return err
		}
		f = o.fields()
	}
	if ended {
		return errors.New("nothing may follow the trailer")
	}
	op, open, err := f.complete()
	if err == nil && h.Header.TTL > 0 {
		err = f.leased()
	}
	if err != nil {
		return err
	}
	if open {
		l.open = append(l.open, int32(len(h.Ops)))
	}
	h.Ops = append(h.Ops, *op)
	l.lines = append(l.lines, int32(l.number))
	return nil
}

// end reads the last line: a trailer, or the reason why there is none.
func (l *lineReader) end(h *History, o *opLine) {
	t := o.Trailer
	if at := bytes.LastIndex(l.line, []byte(digestField)); at >= 0 {
		l.sum.Write(l.line[:at])
		l.line = l.line[at:]
	}
	digest := l.digest()
	switch {
	case o.Cut != "":
		h.Cut, h.Damaged = o.Cut, o.Damaged
	case l.sealed && t.SHA256 == "":
		h.Damage("damaged: its header announces a digest, and its trailer holds none")
	case t.Operations == nil:
		h.Cut = "its trailer " + t.problem(len(h.Ops), digest)
	case t.problem(len(h.Ops), digest) != "":
		h.Damage("damaged: its trailer " + t.problem(len(h.Ops), digest))
	default:
		h.Trailer = &t.Trailer
	}
}

// giveUp sets the time at which clients gave up waiting, if the history does not have it: right before their next
// operation, or at the end of the history.
func giveUp(ops []Op, open []int32) {
	if len(open) == 0 {
		return
	}
	last := time.Duration(0)
	waits := make(map[int32][]time.Duration, len(open)) // all times of clients that gave up
	for _, i := range open {
		waits[ops[i].Client] = nil
	}
	for i := range ops {
		op := &ops[i]
		last = max(last, op.Return)
		if times, waited := waits[op.Client]; waited {
			waits[op.Client] = append(times, op.Call, op.Return)
		}
	}
	for _, times := range waits {
		slices.Sort(times)
	}
	for _, i := range open {
		op := &ops[i]
		times := waits[op.Client]
		next, _ := slices.BinarySearch(times, op.Call+1)
		if op.Return = last; next < len(times) {
			op.Return = times[next] - 1
		}
	}
}
