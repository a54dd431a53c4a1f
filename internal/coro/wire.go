package coro

import (
	"encoding"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// wire returns arguments as go-redis sends them: it follows the internal writer of the library. ok
// is false for an argument that cannot be sent.
func wire(args []any) (texts []string, ok bool) {
	texts = make([]string, len(args))
	for i, arg := range args {
		if texts[i], ok = text(arg); !ok {
			return nil, false
		}
	}
	return texts, true
}

func text(arg any) (string, bool) {
	switch v := arg.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case []byte:
		return string(v), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 64), true
	case bool:
		if v {
			return "1", true
		}
		return "0", true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case time.Duration:
		return strconv.FormatInt(v.Nanoseconds(), 10), true
	case int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), true
	}
	return indirect(arg)
}

// indirect is text for pointers, of which nil means zero, and for types that format themselves.
func indirect(arg any) (string, bool) {
	switch v := arg.(type) {
	case *string:
		return pointed(v)
	case *int:
		return pointed(v)
	case *int8:
		return pointed(v)
	case *int16:
		return pointed(v)
	case *int32:
		return pointed(v)
	case *int64:
		return pointed(v)
	case *uint:
		return pointed(v)
	case *uint8:
		return pointed(v)
	case *uint16:
		return pointed(v)
	case *uint32:
		return pointed(v)
	case *uint64:
		return pointed(v)
	case *float32:
		return pointed(v)
	case *float64:
		return pointed(v)
	case *bool:
		return pointed(v)
	case *time.Time:
		return pointed(v)
	case *time.Duration:
		return pointed(v)
	case encoding.BinaryMarshaler:
		b, err := v.MarshalBinary()
		return string(b), err == nil
	case net.IP:
		return string(v), true
	}
	return "", false
}

func pointed[T any](p *T) (string, bool) {
	var zero T
	if p != nil {
		zero = *p
	}
	return text(zero)
}

// isReplies reports whether s is exactly n replies in RESP2.
func isReplies(s string, n int) bool {
	for ; n > 0; n-- {
		var ok bool
		if s, ok = skip(s); !ok {
			return false
		}
	}
	return s == ""
}

// skip removes one reply.
func skip(s string) (rest string, ok bool) {
	line, rest, ok := strings.Cut(s, "\r\n")
	if !ok || line == "" {
		return "", false
	}
	switch line[0] {
	case '+', '-':
		return rest, true
	case ':':
		_, err := strconv.ParseInt(line[1:], 10, 64)
		return rest, err == nil
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil || size < -1 {
		return "", false
	}
	switch line[0] {
	case '$':
		if size < 0 {
			return rest, true
		}
		if len(rest) < size+2 || rest[size:size+2] != "\r\n" {
			return "", false
		}
		return rest[size+2:], true
	case '*':
		for ; size > 0 && ok; size-- {
			rest, ok = skip(rest)
		}
		return rest, ok
	}
	return "", false
}

// where returns up to 12 frames of the stack of the program that panicked, without those of the
// runtime and of this package's thread.
func where() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var b strings.Builder
	for lines := 0; lines < 12; {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") && !strings.Contains(f.Function, "coro.(*thread).main") {
			fmt.Fprintf(&b, "\n\t%s %s:%d", f.Function, f.File, f.Line)
			lines++
		}
		if !more {
			break
		}
	}
	return b.String()
}
