package scenarios

import (
	"fmt"
	"strings"

	"oversell/internal/phrase"
)

// mostFrequentError finds the most frequent of many errors. Errors that differ only in their digits count as the same.
type mostFrequentError struct {
	all   int
	kinds map[string]*kindOfError
	top   *kindOfError
}

// kindOfError is the first of the errors that count as the same, and how many there were.
type kindOfError struct {
	n     int
	first error
}

// mostKinds bounds the memory. An error of a further kind is only added to the total.
const mostKinds = 100

func (o *mostFrequentError) add(err error) {
	o.all++
	like := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
	k := o.kinds[like]
	if k == nil {
		if len(o.kinds) == mostKinds {
			return
		}
		if o.kinds == nil {
			o.kinds = map[string]*kindOfError{}
		}
		k = &kindOfError{first: err}
		o.kinds[like] = k
	}
	if k.n++; o.top == nil || k.n > o.top.n {
		o.top = k
	}
}

// settled reports whether all scheduled faults are over.
func (r *run) settled() bool {
	if r.injector == nil {
		return false
	}
	select {
	case <-r.injector.Settled():
		return true
	default:
		return false
	}
}

// errorsSince quotes the most frequent error since the faults were over. It is "" if there was none.
func (r *run) errorsSince() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.afterwards.top == nil {
		return ""
	}
	text := r.plainError(r.afterwards.top.first)
	if r.afterwards.all == 1 {
		return "; an operation ended since then in an error: " + text
	}
	return fmt.Sprintf("; %s ended since then in an error, most often (%d) like this: %s", phrase.Count(r.afterwards.all, "operation"), r.afterwards.top.n, text)
}

// plainError returns an error in one line, without secrets and without the prefix of the run's keys.
func (r *run) plainError(err error) string {
	return phrase.OneLine(r.target.Hide(strings.ReplaceAll(err.Error(), r.prefix, "")))
}
