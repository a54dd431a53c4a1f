package scenarios

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oversell/clock"
	"oversell/faults"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/server"
	"oversell/variant"
)

// TestSilenceAtTheEnd checks which errors at the end of a load leave it without answers.
func TestSilenceAtTheEnd(t *testing.T) {
	const ms = time.Millisecond
	at := func(kind history.Kind, at time.Duration, outcome history.Outcome, reason history.Reason) history.Op {
		return history.Op{Kind: kind, Call: at - ms, Return: at, Outcome: outcome, Reason: reason}
	}
	errorsAt := func(kind history.Kind, from time.Duration, n int) (ops []history.Op) {
		for i := range n {
			ops = append(ops, at(kind, from+time.Duration(i)*ms, history.Unknown, history.NoReason))
		}
		return ops
	}
	granted := at(history.Acquire, 500*ms, history.OK, history.NoReason)
	for _, c := range []struct {
		name    string
		ops     []history.Op
		clients int
		want    string
	}{
		{"nothing failed", []history.Op{granted}, 8, ""},
		{"all failed", append([]history.Op{granted}, errorsAt(history.Acquire, 600*ms, 50)...), 8, "no acquire was answered in the last 500ms: 50 in a row ended in an error"},
		{"each client failed once", append([]history.Op{granted}, errorsAt(history.Acquire, 600*ms, 3)...), 3, "no acquire was answered in the last 500ms: 3 in a row"},
		{"one client failed", append([]history.Op{granted}, errorsAt(history.Acquire, 600*ms, 1)...), 8, ""},
		{"just before the end", append([]history.Op{at(history.Acquire, 950*ms, history.OK, history.NoReason)}, errorsAt(history.Acquire, 951*ms, 40)...), 8, ""},
		{"a refusal is an answer", append(errorsAt(history.Acquire, 600*ms, 50), at(history.Acquire, 990*ms, history.Refused, history.Held)), 8, ""},
		{"another kind is answered", append(errorsAt(history.Buy, 600*ms, 50), at(history.Acquire, 990*ms, history.OK, history.NoReason)), 8, "no buy was answered in the last 1s"},
	} {
		var s silence
		for _, op := range c.ops {
			if op.Outcome == history.Unknown {
				s.failed(&op)
			} else {
				s.answered(&op)
			}
		}
		if got := s.told(0, time.Second, c.clients); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// dying is a lock whose server answers no more after some acquisitions.
type dying struct {
	lockimpl.Locker
	clock clock.Clock
	left  *atomic.Int64
}

var errDown = errors.New("backend down")

func (d dying) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	if d.left.Add(-1) < 0 {
		return lockimpl.Lock{}, errors.Join(errDown, d.clock.Sleep(ctx, 200*time.Millisecond)) // so that most operations are answered
	}
	return d.Locker.Acquire(ctx, name, o)
}

// TestALockThatDies checks that a run at whose end no client has an answer says so.
func TestALockThatDies(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	var left atomic.Int64
	left.Store(200)
	open := c.Lock.New
	c.Lock.New = func(env variant.Env) lockimpl.Locker { return dying{open(env), env.Clock, &left} }
	c.Duration = 5 * time.Second
	h := runOn(t, t.Context(), c, openServer(t, "embedded", "single"))
	if want := "no acquire was answered in the last "; !strings.HasPrefix(h.Trailer.Aborted, want) {
		t.Errorf("the run says %q, want %q", h.Trailer.Aborted, want)
	}
}

// TestAServerThatIsRestarted checks that a run notices that somebody else restarted its server.
func TestAServerThatIsRestarted(t *testing.T) {
	c := config(t, "mutex", "lua-release", "")
	c.Duration, c.TTL = 1500*time.Millisecond, 200*time.Millisecond
	s := openServer(t, "process", "single")
	live := new(Live)
	if err := c.Complete(1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.bin")
	done := make(chan error)
	go func() { done <- Run(t.Context(), c, Servers{Redis: s}, path, live) }()
	underWay(live, 100)
	if err := errors.Join(s.Kill(1), s.Start(t.Context(), 1, true)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "the server was restarted during the run"; h.Trailer == nil || h.Trailer.Aborted != want || !slices.Contains(h.Trailer.Befell, variant.RestartEmpty) {
		t.Errorf("the trailer is %+v; want it to say %q", h.Trailer, want)
	}
}

// TestGaugeOfRestarts checks that a server is restarted if it says another life, and that the faults of a run may do
// that.
func TestGaugeOfRestarts(t *testing.T) {
	for _, c := range []struct {
		name  string
		lives []string
		kills bool
		want  string
	}{
		{"the same life", []string{"a", "a", "a"}, false, ""},
		{"no life", []string{"", "", ""}, false, ""},
		{"no life at times", []string{"a", "", "a"}, false, ""},
		{"another life", []string{"a", "b", "b"}, false, "the server was restarted during the run"},
		{"a fault", []string{"a", "b", "b"}, true, ""},
	} {
		g := gaugeOf(func(int) (server.Usage, error) {
			life := c.lives[0]
			c.lives = c.lives[1:]
			return server.Usage{Life: life}, nil
		})
		g.killed = c.kills
		g.ask()
		g.ask()
		if _, got := g.end(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for sentence, want := range map[string]bool{"kill at 1s": true, "restart at 1s": true, "failover at 1s": true, "freeze node 1 1s at 1s": false, "delay GET 1ms": false} {
		f, err := faults.Parse(sentence)
		if err != nil {
			t.Fatal(err)
		}
		if got := restarts([]faults.Fault{f}); got != want {
			t.Errorf("%s restarts a server: %v", sentence, got)
		}
	}
}

// TestWhatIsLeftCanServe checks when liveness is judged after faults that are never healed.
func TestWhatIsLeftCanServe(t *testing.T) {
	mutex, seckill, single := config(t, "mutex", "redlock", ""), config(t, "seckill", "redlock", "plain"), config(t, "mutex", "lua-release", "")
	for _, c := range []struct {
		config    Config
		topology  string
		n         int
		sentences []string
		want      bool
	}{
		{mutex, "masters:3", 3, []string{"kill node 2 at 300ms for good"}, true},
		{mutex, "masters:3", 3, []string{"kill node 1 at 300ms for good"}, true},
		{seckill, "masters:3", 3, []string{"kill node 1 at 300ms for good"}, false},
		{mutex, "masters:3", 3, []string{"cut for good at 300ms"}, false},
		{mutex, "masters:5", 5, []string{"kill node 4 at 300ms for good", "kill node 5 at 300ms for good"}, true},
		{mutex, "masters:5", 5, []string{"kill node 3 at 300ms for good", "kill node 4 at 300ms for good", "kill node 5 at 300ms for good"}, false},
		{mutex, "masters:4", 4, []string{"kill node 3 at 300ms for good", "kill node 4 at 300ms for good"}, false},
		{single, "masters:3", 3, []string{"kill node 2 at 300ms for good"}, false},
		{single, "single", 1, []string{"kill for good at 1s"}, false},
	} {
		for _, sentence := range c.sentences {
			f, err := faults.Parse(sentence)
			if err != nil {
				t.Fatal(err)
			}
			c.config.Faults = append(c.config.Faults, f)
		}
		if got := c.config.majority(c.n, c.topology); got != c.want {
			t.Errorf("%s under %q: %v", c.topology, c.sentences, got)
		}
	}
}

// TestNoServerIsLeft checks that the history of a run says that servers which a fault cut off never recovered.
func TestNoServerIsLeft(t *testing.T) {
	for sentence, want := range map[string]bool{"cut for good at 100ms": true, "kill node 2 at 100ms for good": false} {
		f, err := faults.Parse(sentence)
		if err != nil {
			t.Fatal(err)
		}
		c := config(t, "mutex", "redlock", "")
		c.Faults, c.Duration, c.TTL = []faults.Fault{f}, 300*time.Millisecond, time.Second
		h := runOn(t, t.Context(), c, openServer(t, "process", "masters:3"))
		for _, op := range h.Ops {
			if op.Kind == history.Fault && (op.Until == history.Forever) != want {
				t.Errorf("%s: %v lasts until %v", sentence, op, op.Until)
			}
		}
		if (h.Trailer.Unrecovered != "") != want {
			t.Errorf("%s: unrecovered: %q", sentence, h.Trailer.Unrecovered)
		}
	}
}
