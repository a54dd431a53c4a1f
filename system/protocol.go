package system

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// request is one line to a process. Fields that an operation does not use are left out.
type request struct {
	ID     int64  `json:"id"`
	Op     string `json:"op"`
	Client int64  `json:"client"`

	// init
	Schema  string            `json:"schema,omitempty"`
	Object  string            `json:"object,omitempty"`
	Redis   []string          `json:"redis,omitempty"`
	Options map[string]string `json:"options,omitempty"`

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
	Queue   string   `json:"queue,omitempty"`
	Tasks   []string `json:"tasks,omitempty"`
	AfterMS int64    `json:"after_ms,omitempty"`
	Count   int      `json:"count,omitempty"`
	Task    *task    `json:"task,omitempty"`

	// next, last of a number generator
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

// answer is one line from a process. One of OK, Refused and Unknown says what it is.
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

	came  time.Time
	exact bool // came is when it was written
	// began is, in a search, when the process began with the request.
	began time.Time
}

// latest is the largest until_ms, the year 2090.
const latest = 3786912000000

// check refuses an answer that says nothing, or two things.
func (a answer) check() error {
	said := 0
	for _, is := range []bool{a.OK, a.Refused != "", a.Unknown != ""} {
		if is {
			said++
		}
	}
	if a.UntilMS > latest {
		return fmt.Errorf("%w: until_ms %.0f is after the year 2090; it counts milliseconds since 1970", errAnswer, a.UntilMS)
	}
	if said != 1 {
		return fmt.Errorf(`%w: one of "ok": true, "refused": "…" and "unknown": "…" is wanted`, errAnswer)
	}
	return nil
}

// arrivalMargin is taken from a validity that an answer counts from when it was written: it
// had been under way for a while when it was read.
const arrivalMargin = 10 * time.Millisecond

// until is the end of a lease that an answer grants to a request that was sent at sent.
func (a answer) until(sent time.Time, ttl time.Duration) time.Time {
	if !a.began.IsZero() {
		sent = a.began
	}
	switch {
	case a.UntilMS > 0:
		until := time.UnixMicro(int64(math.Round(a.UntilMS * 1000)))
		if until.Before(sent) {
			return sent // it was over already
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
