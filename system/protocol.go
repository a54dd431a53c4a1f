package system

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"oversell/internal/exactjson"
	"oversell/variant"
)

// request is one line to a process. Unused fields are left out.
type request struct {
	ID     int64  `json:"id"`
	Op     string `json:"op"`
	Client int64  `json:"client"`

	// init
	Schema string   `json:"schema,omitempty"`
	Object string   `json:"object,omitempty"`
	Redis  []string `json:"redis,omitempty"`

	// acquire, extend, release
	Key     string          `json:"key,omitempty"`
	TTLMS   int64           `json:"ttl_ms,omitempty"`
	WaitMS  int64           `json:"wait_ms,omitempty"`
	RetryMS int64           `json:"retry_ms,omitempty"`
	Lock    json.RawMessage `json:"lock,omitempty"`

	// open, buy, refund, state of a sale
	Product  string `json:"product,omitempty"`
	Stock    int64  `json:"stock,omitempty"`
	Order    int64  `json:"order,omitempty"`
	Quantity int    `json:"quantity,omitempty"`
	Fence    int64  `json:"fence,omitempty"`

	// enqueue, pop, ack, state of a queue
	Queue string   `json:"queue,omitempty"`
	Tasks []string `json:"tasks,omitempty"`
	Count int      `json:"count,omitempty"`
	Task  *task    `json:"task,omitempty"`

	// next, last of an id generator
	Counter string `json:"counter,omitempty"`
	Request string `json:"request,omitempty"`
}

// task is a task of a queue.
type task struct {
	ID      string  `json:"id"`
	Score   float64 `json:"score,omitempty"`
	Attempt int     `json:"attempt,omitempty"`
	Receipt string  `json:"receipt,omitempty"`
	UntilMS float64 `json:"until_ms,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler]: a task may be its id alone.
func (t *task) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &t.ID)
	}
	type plain task
	return json.Unmarshal(text, (*plain)(t))
}

// answer is one line from a process. Exactly one of OK, Refused and Unknown is set.
type answer struct {
	ID      *int64 `json:"id"`
	OK      bool   `json:"ok"`
	Refused string `json:"refused"`
	Unknown string `json:"unknown"`

	Lock     json.RawMessage `json:"lock"`
	ValidMS  float64         `json:"valid_ms"`
	UntilMS  float64         `json:"until_ms"`
	Fence    int64           `json:"fence"`
	Via      string          `json:"via"`
	Repeated bool            `json:"repeated"`

	Left     *int64 `json:"left"`
	Sold     *int64 `json:"sold"`
	Reserved int64  `json:"reserved"`

	Entered []task `json:"entered"`
	Tasks   []task `json:"tasks"`
	Claimed []task `json:"claimed"`

	Number int64 `json:"number"`

	given map[string]bool // the fields that are present
	came  time.Time
	exact bool // came is when it was written, not when it was read
	// began is when, in a search, the process began with the request.
	began time.Time
}

// read decodes an answer. Whole numbers may be written 7, 7.0 or 70e-1. The lock keeps its bytes.
func (a *answer) read(line []byte) error {
	if err := exactjson.Unmarshal(line, a); err != nil {
		return err
	}
	var spelled struct {
		Lock json.RawMessage `json:"lock"`
	}
	err := json.Unmarshal(line, &spelled)
	a.Lock = spelled.Lock
	return err
}

// latest is the largest until_ms, the year 2090.
const latest = 3786912000000

// earliest is the smallest until_ms, in 1973: a smaller value is a duration, or in seconds.
const earliest = 1e11

// longest is the largest valid_ms, ten years.
const longest = 10 * 365 * 24 * 3600 * 1000

// checkLease refuses an implausible end of a lease.
func (a answer) checkLease() error {
	switch until, valid := a.UntilMS, a.ValidMS; {
	case until > latest:
		return fmt.Errorf("until_ms %.0f is after the year 2090: want milliseconds since 1970", until)
	case until >= 1e9 && until < 1e10:
		return fmt.Errorf("until_ms %.0f looks like seconds: want milliseconds since 1970", until)
	case a.given["until_ms"] && until < earliest:
		return fmt.Errorf("until_ms %.0f: want milliseconds since 1970", until)
	case a.given["valid_ms"] && valid <= 0:
		return fmt.Errorf("valid_ms %v: want more than 0", valid)
	case valid > longest:
		return fmt.Errorf("valid_ms %v: want at most ten years", valid)
	}
	return nil
}

// needed returns the field that an ok answer to an operation must have; empty: none.
func (s *System) needed(op string) string {
	switch {
	case op == "next", op == "last":
		return "number"
	case op == "pop", op == "state" && s.Object == variant.Queue:
		return "tasks"
	case op == "state":
		return "left"
	case op == "acquire" && s.Fences:
		return "fence"
	}
	return ""
}

// check is like answer.check, and also requires the fields that the operation needs.
func (s *System) check(op string, a answer) error {
	if err := a.check(); err != nil || !a.OK {
		return err
	}
	if name := s.needed(op); name != "" && !a.given[name] {
		return fmt.Errorf("%w: an ok answer to %s has %q", errAnswer, op, name)
	}
	for _, t := range slices.Concat(a.Entered, a.Tasks, a.Claimed) {
		if t.ID == "" {
			return fmt.Errorf("%w: a task has an id", errAnswer)
		}
	}
	return nil
}

// check refuses an answer that is none or several of ok, refused and unknown.
func (a answer) check() error {
	said := 0
	for _, is := range []bool{a.OK, a.Refused != "", a.Unknown != ""} {
		if is {
			said++
		}
	}
	if err := a.checkLease(); err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	if said != 1 {
		return fmt.Errorf(`%w: one of "ok": true, "refused": "…" and "unknown": "…" is wanted`, errAnswer)
	}
	return nil
}

// arrivalMargin is subtracted from a validity that counts from when the answer was written, because it was read
// some time later.
const arrivalMargin = 10 * time.Millisecond

// until returns the end of a lease granted to a request that was sent at sent.
func (a answer) until(sent time.Time, ttl time.Duration) time.Time {
	if !a.began.IsZero() {
		sent = a.began
	}
	switch {
	case a.UntilMS > 0:
		until := time.UnixMicro(int64(math.Round(a.UntilMS * 1000)))
		if until.Before(sent) {
			return sent // it had already ended
		}
		return until
	case a.ValidMS > 0:
		valid := time.Duration(a.ValidMS * float64(time.Millisecond))
		if a.exact {
			return a.came.Add(valid.Round(time.Microsecond))
		}
		return a.came.Add(valid - max(arrivalMargin, valid/100))
	}
	return sent.Add(ttl)
}
