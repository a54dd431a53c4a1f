package history

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
)

// WriteJSONL writes a history as JSON lines, in the format that the package
// documentation describes. That a history was cut off is written too, as a last
// line {"cut":"…"}. Bytes in texts that are not UTF-8 become U+FFFD.
func WriteJSONL(w io.Writer, h *History) error {
	out := bufio.NewWriterSize(w, 1<<16)
	header := h.Header
	if header.Schema == "" {
		header.Schema = Schema
	}
	if err := writeLine(out, header); err != nil {
		return err
	}
	var b []byte
	for i := range h.Ops {
		b = appendOpLine(b[:0], &h.Ops[i])
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	if err := writeEnd(out, h); err != nil {
		return err
	}
	return out.Flush()
}

func writeEnd(out *bufio.Writer, h *History) error {
	if h.Trailer == nil && h.Cut == "" {
		return nil
	}
	return writeLine(out, struct {
		Trailer *Trailer `json:"trailer,omitempty"`
		Cut     string   `json:"cut,omitempty"`
	}{h.Trailer, h.Cut})
}

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
	b = appendNonZero(b, "session", op.Session)
	return append(b, "}\n"...)
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

// isPlain tells whether a text is the same within the quotes of JSON.
func isPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
