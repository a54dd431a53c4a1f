package history

import (
	"fmt"

	"oversell/internal/digest"
	"oversell/internal/exactjson"
	"oversell/internal/phrase"
)

// frames reads the frames of a file one after the other, and checks that they are as written: each has the next number,
// and the trailer holds the count of the operations and a digest of everything before it.
type frames struct {
	h    *History
	d    decoder
	next uint32         // the number of the next frame
	ops  int            // operations taken
	sum  *digest.Digest // of all bytes taken
}

// newFrames returns a frames that must be closed.
func newFrames(h *History) *frames { return &frames{h: h, sum: digest.New()} }

func (r *frames) close() { r.sum.Close() }

func noHeader(problem string) error {
	if problem == incomplete {
		return fmt.Errorf("%w: the file ends inside it", ErrNoHeader)
	}
	return fmt.Errorf("%w: %w: it %s", ErrNoHeader, ErrDamaged, problem)
}

// header reads the magic and the header, and returns the offset after them.
func (r *frames) header(data []byte) (int, error) {
	f, problem := nextFrame(data, len(magic))
	if problem != "" {
		return 0, noHeader(problem)
	}
	if f.kind != headerFrame {
		return 0, fmt.Errorf("%w: %w: a frame of kind %q stands in its place", ErrNoHeader, ErrDamaged, f.kind)
	}
	if err := exactjson.Unmarshal(f.payload, &r.h.Header); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoHeader, plain(err))
	}
	r.took(data[:f.end()])
	return f.end(), checkSchema(r.h.Header.Schema)
}

// took counts a frame as taken. Its bytes may have others before them.
func (r *frames) took(b []byte) {
	r.next++
	r.sum.Write(b)
}

// all reads everything up to the trailer, or to the first invalid frame.
func (r *frames) all(data []byte, at int) {
	h := r.h
	defer func() { r.sum.Write(data[at:]) }()
	for at < len(data) {
		f, problem := nextFrame(data, at)
		if problem == "" {
			problem = r.take(f)
		}
		if problem != "" {
			h.endAt(len(h.Ops), at, len(data), problem)
			return
		}
		r.took(data[at:f.end()])
		at = f.end()
		if h.Trailer != nil {
			if at < len(data) {
				h.Damage(fmt.Sprintf("damaged: %s follow the trailer at byte %s", phrase.Count(len(data)-at, "byte"), group(at)))
			}
			return
		}
	}
	h.Cut = fmt.Sprintf("cut off after %s: the file ends at byte %s without a trailer", phrase.Count(len(h.Ops), "operation"), group(at))
}

// take reads one frame, or says why it is not as it was written.
func (r *frames) take(f frame) (problem string) {
	if f.number != r.next {
		return fmt.Sprintf("has the number %d and not %d: frames are missing, doubled or out of order", f.number, r.next)
	}
	r.d.start(f.payload)
	var err error
	switch f.kind {
	case symbolsFrame:
		err = r.d.symbols()
	case opsFrame:
		before := len(r.h.Ops)
		r.h.Ops, err = r.d.ops(r.h.Ops)
		r.ops += len(r.h.Ops) - before
	case trailerFrame:
		t := new(sealed)
		if err = exactjson.Unmarshal(f.payload, t); err != nil {
			break
		}
		if problem = t.problem(r.ops, r.sum.Text()); problem != "" {
			return problem
		}
		r.h.Trailer = &t.Trailer
	default:
		err = fmt.Errorf("this build does not know its kind, %q", f.kind)
	}
	if err != nil {
		return fmt.Sprintf("makes no sense: %v", err)
	}
	return ""
}

// sealed is a trailer as in a file: with the proof that everything before it is as written.
type sealed struct {
	Trailer
	// Operations is their number; nil: the trailer has none.
	Operations *int `json:"operations"`
	// SHA256 is the digest of all bytes before the trailer's frame or, in JSON lines, before
	// this field; empty: not known.
	SHA256 string `json:"sha256,omitempty"`
	// Marks are the marks of the operations: three numbers for each. Not in JSON lines; see package marks.
	Marks []int64 `json:"marks,omitempty"`
}

// problem says how a trailer contradicts the frames before it.
func (s *sealed) problem(ops int, digest string) string {
	switch {
	case s.Operations == nil:
		return `does not tell how many operations there are ("operations")`
	case *s.Operations != ops:
		return fmt.Sprintf("counts %s, and there are %s: some are missing or doubled", phrase.Count(*s.Operations, "operation"), group(ops))
	case s.SHA256 != "" && s.SHA256 != digest:
		return "holds another digest than that of the operations before it: something was altered"
	}
	return ""
}

// endAt says that reading stopped at a frame of a file of size bytes, with that many
// operations before it.
func (h *History) endAt(ops, at, size int, problem string) {
	if problem == incomplete {
		h.Cut = fmt.Sprintf("cut off after %s: the frame at byte %s %s", phrase.Count(ops, "operation"), group(at), problem)
		return
	}
	h.Damage(fmt.Sprintf("damaged after %s: the frame at byte %s %s; %s from there on are not read",
		phrase.Count(ops, "operation"), group(at), problem, phrase.Count(size-at, "byte")))
}

// Damage marks the history as damaged, so that it has no trailer. how describes the damage in a sentence.
func (h *History) Damage(how string) {
	h.Damaged, h.Trailer, h.Cut = true, nil, how
}
