// Package suitetest runs the rules of a conformance suite, each as a subtest, and has the errors that a rule may return.
package suitetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/standstill"
	"oversell/variant"
)

// Breach is a promise, or a rule of the interface, that was broken.
type Breach struct {
	Promise variant.Property
	How     error
	At      time.Time // when that was found
}

func (b *Breach) Error() string { return fmt.Sprintf("%s is broken: %v", b.Promise, b.How) }
func (b *Breach) Unwrap() error { return b.How }

// FirstOf runs steps until one fails.
func FirstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Broken reports that a promise, or a rule of the interface, was not kept.
func Broken(promise variant.Property, format string, args ...any) error {
	return &Breach{promise, fmt.Errorf(format, args...), time.Now()}
}

// Panicked is the error of code that panicked with a value, and where it did. It must be called while the panic is under way,
// by the function that recovers.
func Panicked(what string, value any) error {
	return fmt.Errorf("%s panicked: %v\n%s", what, value, debug.Stack())
}

// Caught returns the error of f; if f panics, that it did.
func Caught(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Panicked(what, p)
		}
	}()
	return f()
}

// TooSlow says that a rule could not be completed in time. Its subtest is skipped, or fails if OVERSELL_REQUIRE_ALL=1.
type TooSlow struct{ Why string }

func (s *TooSlow) Error() string { return "too slow to judge: " + s.Why }

// NotJudged says why a rule cannot tell whether a promise is kept. Its subtest is skipped. Run logs the reason after the last
// subtest, once for all rules that have it.
type NotJudged struct{ Why string }

func (n *NotJudged) Error() string { return "not judged: " + n.Why }

// Remark is returned by a rule that was kept, to have a text logged.
type Remark struct{ Text string }

func (r *Remark) Error() string { return r.Text }

// Rule is one subtest.
type Rule struct {
	Name string
	// Alone says that the rule is tried when all others have ended, unless one of them found Promise broken.
	Alone   bool
	Promise variant.Property
	// Open opens what one trial needs. It may be called twice.
	Open func(t *testing.T) Trial
}

// Trial is one try of a rule.
type Trial struct {
	Try func(context.Context) error
	// Servers returns clients of the servers that are watched meanwhile.
	Servers func() []redis.UniversalClient
	// Virtual says that the trial has a clock of its own, which it moves. It is then made within its subtest.
	Virtual bool
}

// Run tries rules on a subject, such as "queue mine", at most sideBySide of them at a time. A rule
// that fails while the servers or the machine stand still for a second is tried once more, and is skipped as too slow if that
// happens again.
func Run(t *testing.T, subject string, sideBySide int, rules []Rule) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	slots := make(chan struct{}, sideBySide)
	var others, all sync.WaitGroup
	var last sync.Mutex
	var found sync.Map                    // the promises that are broken
	begun := make(chan struct{})          // closed when others has them all
	defer func() { stop(); all.Wait() }() // nobody waits for the rules that -run leaves out
	type check struct {
		Rule
		result func(context.Context) standstill.Outcome
	}
	var checks []check
	for _, r := range rules {
		trial := r.Open(t)
		if trial.Virtual {
			checks = append(checks, check{r, func(ctx context.Context) standstill.Outcome { return standstill.Outcome{Err: trial.Try(ctx)} }})
			continue
		}
		result := make(chan standstill.Outcome, 1)
		checks = append(checks, check{r, func(context.Context) standstill.Outcome { return <-result }})
		if r.Alone {
			all.Go(func() {
				select {
				case <-begun:
				case <-ctx.Done(): // the test ended while it opened a rule
				}
				others.Wait()
				last.Lock()
				defer last.Unlock()
				if _, broken := found.Load(r.Promise); broken {
					result <- standstill.Outcome{Err: &NotJudged{fmt.Sprintf("other rules found %s broken", r.Promise)}}
					return
				}
				result <- trial.watched(ctx)
			})
			continue
		}
		others.Add(1)
		all.Go(func() {
			defer others.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			o := trial.watched(ctx)
			if b := new(Breach); errors.As(o.Err, &b) && !doubtful(o) {
				found.Store(b.Promise, true)
			}
			result <- o
		})
	}
	close(begun)
	var skipped reasons
	defer skipped.log(t, subject)
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			o := c.result(t.Context())
			if doubtful(o) {
				t.Logf("tried again, since the server or the machine stood still for %v: %v", o.Still.Round(time.Millisecond), o.Err)
				o = c.Open(t).watched(t.Context())
			}
			if doubtful(o) {
				o.Err = &TooSlow{fmt.Sprintf("the server or the machine stood still for %v: %v", o.Still.Round(time.Millisecond), o.Err)}
			}
			skipped.note(c.Name, o.Err)
			report(t, subject, o.Err)
		})
	}
}

// reasons are why rules were not judged. Many may have one reason.
type reasons []reason

type reason struct {
	why   string
	rules []string
}

// note keeps the reason of a rule that was not judged.
func (rs *reasons) note(rule string, err error) {
	if !errors.As(err, new(*NotJudged)) {
		return
	}
	i := slices.IndexFunc(*rs, func(r reason) bool { return r.why == err.Error() })
	if i < 0 {
		i = len(*rs)
		*rs = append(*rs, reason{why: err.Error()})
	}
	(*rs)[i].rules = append((*rs)[i].rules, rule)
}

// log logs each reason once, with its rules.
func (rs *reasons) log(t testing.TB, subject string) {
	t.Helper()
	for _, r := range *rs {
		t.Logf("%s: %s. This concerns: %s", subject, r.why, strings.Join(r.rules, "; "))
	}
}

// watched tries the rule, and watches the servers meanwhile.
func (x Trial) watched(ctx context.Context) standstill.Outcome {
	if ctx.Err() != nil {
		return standstill.Outcome{Err: context.Cause(ctx)}
	}
	return standstill.While(x.Servers(), func() error { return x.Try(ctx) })
}

// doubtful reports whether a rule failed, perhaps because the servers or the machine stood still.
func doubtful(o standstill.Outcome) bool {
	return o.Err != nil && !errors.As(o.Err, new(*Remark)) && !errors.As(o.Err, new(*NotJudged)) && o.Doubtful()
}

// report fails a rule that was broken, and skips one that could not be judged.
func report(t *testing.T, subject string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.As(err, new(*Remark)):
		t.Logf("%s: %v", subject, err)
	case errors.As(err, new(*NotJudged)):
		t.SkipNow() // Run logs why
	case errors.As(err, new(*TooSlow)) && os.Getenv("OVERSELL_REQUIRE_ALL") != "1":
		t.Skipf("%s: %v", subject, err)
	default:
		t.Errorf("%s: %v", subject, err)
	}
}
