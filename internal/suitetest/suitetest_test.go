package suitetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/child"
	"oversell/internal/servertest"
	"oversell/internal/standstill"
	"oversell/variant"
)

// standStill has a server stand still for long enough that failures are doubted.
func standStill(process *child.Process) error {
	if err := process.Freeze(); err != nil {
		return err
	}
	<-time.After(standstill.Limit + standstill.Limit/10)
	return process.Thaw()
}

// TestStandstill checks that a failure is doubted if the server stood still meanwhile, and only then.
func TestStandstill(t *testing.T) {
	addr, process := servertest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	for _, still := range []bool{true, false} {
		trial := Trial{
			Servers: func() []redis.UniversalClient { return []redis.UniversalClient{c} },
			Try: func(context.Context) error {
				if still {
					if err := standStill(process); err != nil {
						return err
					}
				}
				return Broken("no-lost-task", "pop of 1 answered %q", "i/o timeout")
			},
		}
		if o := trial.watched(t.Context()); !errors.As(o.Err, new(*Breach)) || doubtful(o) != still {
			t.Errorf("still %v: %v, after a standstill of %v", still, o.Err, o.Still)
		}
	}
	for _, err := range []error{nil, &Remark{"slow"}, &NotJudged{"too small"}} {
		if doubtful(standstill.Outcome{Err: err, Still: time.Hour}) {
			t.Errorf("a rule with the result %v is tried again", err)
		}
	}
}

// TestRun checks that a rule is alone if it wants to be, that no more than so many are tried at once, and that a rule with a
// clock of its own is tried within its subtest.
func TestRun(t *testing.T) {
	const sideBySide = 2
	var mu sync.Mutex
	var ended []string
	running, most, watched := 0, 0, 0
	rule := func(name string, alone, virtual bool) Rule {
		return Rule{Name: name, Alone: alone, Open: func(*testing.T) Trial {
			return Trial{
				Virtual: virtual,
				Servers: func() []redis.UniversalClient { mu.Lock(); defer mu.Unlock(); watched++; return nil },
				Try: func(context.Context) error {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					<-time.After(10 * time.Millisecond) // others may start meanwhile
					mu.Lock()
					defer mu.Unlock()
					running--
					ended = append(ended, name)
					return &Remark{"kept"}
				},
			}
		}}
	}
	t.Run("rules", func(t *testing.T) {
		Run(t, "queue mine", sideBySide, []Rule{rule("alone", true, false), rule("a", false, false), rule("b", false, false), rule("c", false, false)})
	})
	if len(ended) != 4 || ended[3] != "alone" || most != sideBySide || watched != 4 {
		t.Errorf("the rules ended in the order %q, %d at once, %d watched; want 4, alone as the last, %d at once", ended, most, watched, sideBySide)
	}
	ended = nil
	t.Run("with clocks of their own", func(t *testing.T) {
		Run(t, "queue mine", sideBySide, []Rule{rule("a", false, true), rule("b", false, true)})
	})
	if !slices.Equal(ended, []string{"a", "b"}) || watched != 4 {
		t.Errorf("rules with clocks of their own ended in the order %q, and %d were watched", ended, watched-4)
	}
}

// logged keeps what a test logs.
type logged struct {
	testing.TB
	lines []string
}

func (l *logged) Helper() {}

func (l *logged) Logf(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// TestReasons checks that the reason why rules were not judged is logged once, with all these rules.
func TestReasons(t *testing.T) {
	var rs reasons
	none := &NotJudged{"the sale does not refund"}
	for _, r := range []struct {
		rule string
		err  error
	}{
		{"a", none}, {"b", nil}, {"c", &NotJudged{"too small"}}, {"d", &Remark{"slow"}}, {"e", none},
		{"f", fmt.Errorf("at command 2: %w", none)}, {"g", Broken("no-oversell", "3 of 2")}, {"h", &TooSlow{"busy"}},
	} {
		rs.note(r.rule, r.err)
	}
	var l logged
	rs.log(&l, "sale mine")
	if want := []string{
		"sale mine: not judged: the sale does not refund. This concerns: a; e",
		"sale mine: not judged: too small. This concerns: c",
		"sale mine: at command 2: not judged: the sale does not refund. This concerns: f",
	}; !slices.Equal(l.lines, want) {
		t.Errorf("logged:\n%s\nwant:\n%s", strings.Join(l.lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestAgain checks that a rule which fails during a standstill is tried once more, on a trial of its own.
func TestAgain(t *testing.T) {
	addr, process := servertest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute})
	defer c.Close()
	opened := 0
	t.Run("rule", func(t *testing.T) {
		Run(t, "queue mine", 1, []Rule{{Name: "fails once", Open: func(*testing.T) Trial {
			opened++
			first := opened == 1
			return Trial{
				Servers: func() []redis.UniversalClient { return []redis.UniversalClient{c} },
				Try: func(context.Context) error {
					if !first {
						return nil
					}
					if err := standStill(process); err != nil {
						return err
					}
					return Broken("no-lost-task", "pop of 1 answered %q", "i/o timeout")
				},
			}
		}}})
	})
	if opened != 2 {
		t.Errorf("the rule was tried %d times; want twice", opened)
	}
}

// TestAloneAfterABreach checks that a rule that is tried alone is left out if its promise is already known to be broken, and
// tried if another promise is.
func TestAloneAfterABreach(t *testing.T) {
	if os.Getenv("OVERSELL_BREACH") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestAloneAfterABreach$", "-test.v")
		c.Env = append(os.Environ(), "OVERSELL_BREACH=1", "OVERSELL_REQUIRE_ALL=")
		out, err := c.CombinedOutput()
		for _, want := range []string{
			"--- FAIL: TestAloneAfterABreach/beside", "--- SKIP: TestAloneAfterABreach/the_same", "--- PASS: TestAloneAfterABreach/another",
			"other rules found no-lost-task broken",
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%v, without %q:\n%s", err, want, out)
			}
		}
		return
	}
	rule := func(name string, alone bool, p variant.Property, err error) Rule {
		return Rule{Name: name, Alone: alone, Promise: p, Open: func(*testing.T) Trial {
			return Trial{Try: func(context.Context) error { return err }, Servers: func() []redis.UniversalClient { return nil }}
		}}
	}
	Run(t, "queue mine", 1, []Rule{
		rule("the same", true, variant.NoLostTask, nil), rule("another", true, variant.InOrder, nil),
		rule("beside", false, variant.NoLostTask, Broken(variant.NoLostTask, "it is gone")),
	})
}
