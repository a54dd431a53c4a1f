package history

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"oversell/internal/printable"
)

// WriteJSONL writes a history as JSON lines, in the format that the package documentation
// describes. It also writes whether the history was cut off, as a last line {"cut":"…"},
// and whether it was damaged. JSON cannot hold a text that is not UTF-8: an operation
// with one is an error.
func WriteJSONL(w io.Writer, h *History) error {
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	header := h.Header
	if header.Schema == "" {
		header.Schema = Schema
	}
	if err := writeLine(out, sealedHeader{header, h.Trailer != nil}); err != nil {
		return err
	}
	var b []byte
	n := 0
	for op := range h.Each() {
		n++
		for _, v := range []Value{op.Key, op.Arg, op.Result, op.Session} {
			if !v.unicode() {
				return fmt.Errorf("operation %s: %q is not UTF-8: JSON lines cannot hold it", group(n), printable.Short(v.String()))
			}
		}
		b = appendOpLine(b[:0], op)
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	if err := errors.Join(h.Err(), out.Flush()); err != nil { // then everything before the trailer is in sum
		return err
	}
	if err := writeEnd(out, h, sum); err != nil {
		return err
	}
	return out.Flush()
}

// sealedHeader is a header in JSON lines. Sealed says that the trailer holds a digest, so that a removed digest is
// noticed.
type sealedHeader struct {
	Header
	Sealed bool `json:"sealed,omitempty"`
}

func writeEnd(out *bufio.Writer, h *History, sum hash.Hash) error {
	if h.Trailer == nil && h.Cut == "" {
		return nil
	}
	if h.Trailer == nil {
		return writeLine(out, struct {
			Cut     string `json:"cut"`
			Damaged bool   `json:"damaged,omitempty"`
		}{h.Cut, h.Damaged})
	}
	n := h.Len()
	b, err := json.Marshal(struct {
		Trailer sealed `json:"trailer"`
	}{sealed{Trailer: *h.Trailer, Operations: &n}})
	if err != nil {
		return err
	}
	b = b[:len(b)-2]
	sum.Write(b)
	b = append(b, digestField...)
	b = append(hex.AppendEncode(b, sum.Sum(nil)), "\"}}\n"...)
	_, err = out.Write(b)
	return err
}

// digestField precedes the digest in the line of a trailer. All bytes before it are digested.
const digestField = `,"sha256":"`

func writeLine(out *bufio.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

func appendOpLine(b []byte, op *Op) []byte {
	b = strconv.AppendInt(append(b, `{"client":`...), int64(op.Client), 10)
	b = appendText(b, "kind", op.Kind.String())
	b = appendText(b, "key", op.Key.String())
	b = appendText(b, "arg", op.Arg.String())
	b = appendText(b, "result", op.Result.String())
	b = appendText(b, "outcome", op.Outcome.String())
	b = appendText(b, "reason", op.Reason.String())
	b = appendNumber(b, "due_ns", int64(op.Due))
	b = appendNumber(b, "call_ns", int64(op.Call))
	if op.Outcome == Unknown {
		b = appendNumber(b, "gave_up_ns", int64(op.Return))
	} else {
		b = appendNumber(b, "return_ns", int64(op.Return))
	}
	b = appendNumber(b, "until_ns", int64(op.Until))
	b = appendNonZero(b, "amount", int64(op.Amount))
	b = appendNonZero(b, "fence", op.Fence)
	b = appendSession(b, op.Session)
	return append(b, "}\n"...)
}

// appendSession writes a number as a number, as it was written before sessions could be texts.
func appendSession(b []byte, session Value) []byte {
	if n, ok := session.Num(); ok {
		return appendNonZero(b, "session", n)
	}
	return appendText(b, "session", session.String())
}

func appendName(b []byte, name string) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	return append(b, `":`...)
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendName(b, name), n, 10)
}

func appendNonZero(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return appendNumber(b, name, n)
}

func appendText(b []byte, name, text string) []byte {
	b = appendName(b, name)
	if !isPlain(text) {
		quoted, _ := json.Marshal(text) // a string cannot fail
		return append(b, quoted...)
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// isPlain reports whether a text is the same within the quotes of JSON.
func isPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
