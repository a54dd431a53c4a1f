package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/clock"
	"oversell/faults"
	"oversell/history"
	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/variant"
)

// injectionOf has, for every kind of fault, a sentence that makes it fire, and a check that its effect is visible from
// outside.
var injectionOf = map[string]struct {
	sentence string
	seen     func(o *outside) error
	flags    []string
}{
	"crash":  {sentence: "crash holder 20% times 3", seen: (*outside).theDeadAreSilent},
	"cancel": {sentence: "cancel after EVAL 20% times 3", seen: (*outside).unanswered},
	"pause":  {sentence: "pause holder 120ms 20% times 3", seen: (*outside).sectionsLast},
	"freeze": {sentence: "freeze holder 120ms 20% times 3", seen: (*outside).sectionsLast},
	"slow":   {sentence: "slow 120ms 20% times 3", seen: (*outside).sectionsLast},
	"clock":  {sentence: "clock +5s", seen: (*outside).misled},
	"resend": {sentence: "resend EVAL 20% times 3", seen: (*outside).answeredTwice},

	"delay":        {sentence: "delay EVAL 120ms 20% times 3", seen: (*outside).slowed},
	"drop-request": {sentence: "drop-request EVAL 20% times 3", seen: (*outside).unanswered},
	"drop-reply":   {sentence: "drop-reply EVAL 20% times 3", seen: (*outside).unanswered},
	"late":         {sentence: "late EVAL 50ms 20% times 3", seen: (*outside).someUnanswered},
	"reset":        {sentence: "reset EVAL 20% times 3", seen: (*outside).unanswered},
	"half-open":    {sentence: "half-open EVAL 20% times 3 for 100ms", seen: releasesTook(100 * time.Millisecond)},
	"trickle":      {sentence: "trickle EVAL 30ms 20% times 3", seen: releasesTook(3 * 30 * time.Millisecond)},
	"cut":          {sentence: "cut at 30ms for 150ms", seen: (*outside).standstill},

	"kill":         {sentence: "kill at 30ms for 100ms", seen: (*outside).reborn, flags: []string{"--aof"}},
	"restart":      {sentence: "restart at 30ms after 50ms", seen: (*outside).reborn, flags: []string{"--aof"}},
	"freeze-node":  {sentence: "freeze node 1 150ms at 30ms", seen: (*outside).standstill},
	"failover":     {sentence: "failover at 50ms", seen: (*outside).replaced, flags: []string{"--topology", "replica"}},
	"split-brain":  {sentence: "split-brain at 50ms for 100ms", seen: (*outside).replaced, flags: []string{"--topology", "replica"}},
	"script-flush": {sentence: "script-flush at 200ms", seen: saw("errorstat_NOSCRIPT:count=")},
	"client-kill":  {sentence: "client-kill at 200ms", seen: (*outside).redialed},
	"client-pause": {sentence: "client-pause 150ms at 30ms", seen: (*outside).standstill},
	"evict":        {sentence: "evict at 30ms", seen: saw("evicted_keys:")},
	"oom":          {sentence: "oom at 30ms for 150ms", seen: saw("errorstat_OOM:count=")},
	"read-only":    {sentence: "read-only at 30ms for 150ms", seen: saw("errorstat_READONLY:count=")},
	"clock-node":   {sentence: "clock +60s on node 1 at 30ms", seen: (*outside).jumped},
}

// refusedIn lists the kinds that can do nothing in a scenario.
var refusedIn = map[string][]string{"evict": {"dispatch"}} // dispatch has a lock for each task

// TestEveryFaultInEveryScenario checks that every kind of fault fires in every scenario with an effect that is
// visible from outside, or is refused before the run.
func TestEveryFaultInEveryScenario(t *testing.T) {
	servertest.NeedServer(t)
	var cells sync.WaitGroup
	defer cells.Wait()
	seats := make(chan struct{}, 4)
	long := os.Getenv("OVERSELL_LONG") != ""
	for i, k := range faults.Kinds {
		if _, listed := injectionOf[k.Name]; !listed {
			t.Errorf("there is no sentence for %s", k.Name)
			continue
		}
		for j, s := range scenarios.All {
			if !long && (i+j)%7 != 0 { // a seventh of the cells, which has every kind and every scenario
				continue
			}
			seats <- struct{}{}
			cells.Go(func() {
				defer func() { <-seats }()
				var err error
				for range 2 { // a fault with a chance may not fire in one run
					if err = injectIn(t, k.Name, s.Name); err == nil {
						return
					}
				}
				t.Errorf("%s in %s: %v", k.Name, s.Name, err)
			})
		}
	}
}

// cellClients is the number of clients in each cell.
const cellClients = 4

func injectIn(t *testing.T, kind, scenario string) error {
	x := injectionOf[kind]
	args := []string{"--scenario", scenario, "--lock", "lua-release", "--clients", strconv.Itoa(cellClients), "--ttl", "1s", "--wait", "500ms", "--timeout", "500ms", "--seed", "1", "--target", "process", "--fault", x.sentence}
	switch scenario {
	case "seckill":
		args = append(args, "--stock", "100", "--hold", "2ms")
	case "queue":
		args = append(args, "--queue", "zset-locked", "--ops", "200")
	case "seckill-queued":
		args = append(args, "--queue", "zset-locked", "--stock", "60")
	case "dispatch":
		args = append(args, "--ops", "400", "--ttl", "2s")
	default:
		args = append(args, "--ops", "300")
	}
	o, err := Parse(append(args, x.flags...))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := NewPlan(ctx, *o)
	for _, in := range refusedIn[kind] {
		if in == scenario {
			if !errors.As(err, new(*faults.ParseError)) {
				return fmt.Errorf("it is not refused: %v", err)
			}
			return nil
		}
	}
	if err != nil {
		return err
	}
	p.Dir = t.TempDir()
	w := &outside{seen: map[string]int64{}, lives: map[string]bool{}}
	w.readClocks(&p.Runs[0].Lock)
	d, err := Run(ctx, p, w)
	if err != nil {
		return err
	}
	f := d.Runs[0].Faults[0]
	if f.Fired == 0 || f.Failed != "" {
		return fmt.Errorf("%+v; %s", f, d.Runs[0].Why)
	}
	h, err := history.Read(filepath.Join(p.Dir, runName(0, p.Runs[0]), HistoryFile))
	if err != nil {
		return err
	}
	w.fault, w.h = p.Runs[0].Faults[0], h
	if err := x.seen(w); err != nil {
		return fmt.Errorf("fired %d times (%s), but %w", f.Fired, f.Effect, err)
	}
	return nil
}

// outside observes a run from outside: its servers during the run, and its history afterwards.
type outside struct {
	silent
	fault faults.Fault
	h     *history.History

	mu    sync.Mutex
	seen  map[string]int64 // the highest counters that a server reported
	lives map[string]bool  // the run ids of the first server
	ahead time.Duration    // largest deviation of a server's clock
	moved bool             // another server became the primary
	conns map[string]bool  // the connections of all clients at one moment, by their id at the server
	anew  bool             // later none of conns was left, and there were others
	skew  time.Duration    // largest deviation of a client's clock
	stop  func()           // ends the observation; nothing is written afterwards
}

func (o *outside) Target(t *server.Target) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	o.stop = func() { cancel(); <-ended }
	o.look(ctx, t)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			select {
			case <-t.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			o.look(ctx, t)
		}
	}()
}

var told = regexp.MustCompile(`(?m)^(errorstat_\w+:count=|evicted_keys:)(\d+)`)

func (o *outside) look(ctx context.Context, t *server.Target) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	asked := time.Now()
	now, timeErr := t.Admin(1).Time(ctx).Result()
	primary, primaryErr := t.Primary(ctx, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if timeErr == nil {
		o.ahead = max(o.ahead, now.Sub(asked))
	}
	o.moved = o.moved || primaryErr == nil && primary != 1
	if list, err := t.Admin(1).ClientList(ctx).Result(); err == nil {
		o.lookAtConnections(list)
	}
	text, err := t.Admin(1).Info(ctx, "server", "stats", "errorstats").Result()
	if err != nil {
		return
	}
	for _, m := range told.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseInt(m[2], 10, 64)
		o.seen[m[1]] = max(o.seen[m[1]], n)
	}
	if _, id, ok := strings.Cut(text, "run_id:"); ok {
		o.lives[id[:40]] = true
	}
}

func (o *outside) Done(int, int, reports.Run) { o.stop() }

// saw requires that a server has counted this event.
func saw(what string) func(*outside) error {
	return func(o *outside) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.seen[what] == 0 {
			return fmt.Errorf("the server counted nothing under %s: %v", what, o.seen)
		}
		return nil
	}
}

func (o *outside) reborn() error {
	if len(o.lives) < 2 {
		return fmt.Errorf("the server had %d lives", len(o.lives))
	}
	return nil
}

func (o *outside) replaced() error {
	if !o.moved {
		return errors.New("the primary remained the same")
	}
	return nil
}

func (o *outside) jumped() error {
	if o.ahead < 30*time.Second {
		return fmt.Errorf("the server's clock was ahead by %v at most", o.ahead)
	}
	return nil
}

var connection = regexp.MustCompile(`(?m)^id=(\d+) .* cmd=(set|get|eval|evalsha|incr|zadd|zscore|zrangebyscore|zrem|hincrby)\b`)

// lookAtConnections looks at the connections whose last command was one of the load's.
func (o *outside) lookAtConnections(list string) {
	now, left := map[string]bool{}, false
	for _, m := range connection.FindAllStringSubmatch(list, -1) {
		now[m[1]] = true
		left = left || o.conns[m[1]]
	}
	switch {
	case len(now) == 0:
	case len(o.conns) > 0 && !left:
		o.anew = true
	case len(now) >= cellClients:
		o.conns = now
	}
}

// redialed requires that every connection of the clients was replaced.
func (o *outside) redialed() error {
	if !o.anew {
		return fmt.Errorf("connections of clients remained: %v", o.conns)
	}
	return nil
}

// readClocks makes the lock compare the clock that its code is given with the real one.
func (o *outside) readClocks(v *lockimpl.Variant) {
	locker := v.New
	v.New = func(env variant.Env) lockimpl.Locker { return reading{locker(env), env.Clock, o} }
}

// reading is a lock that reads the clock after each attempt to acquire it.
type reading struct {
	lockimpl.Locker
	clock clock.Clock
	o     *outside
}

func (r reading) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := r.Locker.Acquire(ctx, name, o)
	before := time.Now()
	skew := r.clock.Now().Sub(before)
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	r.o.skew = max(r.o.skew, skew)
	return l, err
}

// misled requires that the code under test has read a wrong clock.
func (o *outside) misled() error {
	if o.skew < o.fault.Amount {
		return fmt.Errorf("the clocks of the clients were ahead by %v at most", o.skew)
	}
	return nil
}

// answeredTwice requires that, for each injection, a release that was sent again after its execution was answered
// with "lost".
func (o *outside) answeredTwice() error {
	return o.eachInjection(history.Release, "was told that the lock was lost", func(op history.Op) bool { return op.Reason == history.Lost })
}

// releasesTook requires that, for each injection, the delayed release took this long or was given up.
func releasesTook(d time.Duration) func(*outside) error {
	return func(o *outside) error {
		return o.eachInjection(history.Release, fmt.Sprintf("took %v", d), func(op history.Op) bool {
			return op.Outcome == history.Unknown || op.Return-op.Call >= d
		})
	}
}

// eachInjection requires, for each injection, that the client it hit had an operation of this kind under way for
// which is returns true.
func (o *outside) eachInjection(kind history.Kind, must string, is func(history.Op) bool) error {
	for _, s := range o.injections() {
		if !slices.ContainsFunc(o.h.Ops, func(op history.Op) bool {
			return op.Client == s.Client && op.Kind == kind && op.Call <= s.Call && (op.Outcome == history.Unknown || op.Return >= s.Call) && is(op)
		}) {
			return fmt.Errorf("no %v of client %d at %v %s", kind, s.Client, s.Call, must)
		}
	}
	return nil
}

// injections returns the injections of the fault in the history.
func (o *outside) injections() (all []history.Op) {
	for _, op := range o.h.Ops {
		if op.Kind == history.Fault && op.Key.String() == o.fault.Text {
			all = append(all, op)
		}
	}
	return all
}

// standstill requires that each injection has a stretch of time without operations.
func (o *outside) standstill() error {
	for _, s := range o.injections() {
		last, longest := s.Call, time.Duration(0)
		for _, op := range o.h.Ops { // in order of completion
			if op.Kind == history.Fault || op.Outcome != history.OK || op.Return < s.Call || op.Call > s.Return {
				continue
			}
			longest = max(longest, min(op.Return, s.Return)-last)
			last = op.Return
		}
		if longest = max(longest, s.Return-last); longest < 100*time.Millisecond {
			return fmt.Errorf("operations took place all the time from %v to %v, with pauses of %v at most", s.Call, s.Return, longest)
		}
	}
	return nil
}

func (o *outside) theDeadAreSilent() error {
	for _, s := range o.injections() {
		for _, op := range o.h.Ops {
			if op.Client == s.Client && op.Kind != history.Fault && op.Call > s.Return && op.Outcome == history.OK {
				return fmt.Errorf("client %d died at %v and did %v at %v", s.Client, s.Call, op.Kind, op.Call)
			}
		}
	}
	return nil
}

// sectionsLast requires that each injection lies between a grant and its release.
func (o *outside) sectionsLast() error {
	for _, s := range o.injections() {
		if s.Return-s.Call < 100*time.Millisecond {
			continue // the run ended
		}
		granted, within := time.Duration(-1), false
		for _, op := range o.h.Ops {
			switch {
			case op.Client != s.Client:
			case op.Kind == history.Acquire && op.Outcome == history.OK && op.Return <= s.Call:
				granted = max(granted, op.Return)
			case op.Kind == history.Release && op.Call < s.Return && op.Call > granted && op.Call < s.Call:
				granted = -1 // released before the injection
			case op.Kind == history.Release && op.Call >= s.Return:
				within = true
			}
		}
		if granted < 0 || !within {
			return fmt.Errorf("the injection from %v to %v at client %d lies in no section", s.Call, s.Return, s.Client)
		}
	}
	return nil
}

// unanswered requires that a client that was hit had an operation without an answer that began before the injection.
func (o *outside) unanswered() error {
	n := 0
	for _, s := range o.injections() {
		for _, op := range o.h.Ops {
			if op.Client == s.Client && op.Call <= s.Call && op.Outcome == history.Unknown {
				n++
				break
			}
		}
	}
	if n == 0 {
		return errors.New("every operation had an answer")
	}
	return nil
}

func (o *outside) someUnanswered() error {
	for _, op := range o.h.Ops {
		if op.Outcome == history.Unknown {
			return nil
		}
	}
	return errors.New("every operation had an answer")
}

// slowed requires that some operation took as long as the fault delays one.
func (o *outside) slowed() error {
	for _, op := range o.h.Ops {
		if op.Kind != history.Fault && op.Kind != history.Acquire && op.Return-op.Call >= o.fault.Amount {
			return nil
		}
	}
	return fmt.Errorf("no operation took %v", o.fault.Amount)
}

// TestFaultsThatCannotMatterAreRefused checks that a fault that refers to something that the run lacks is refused
// with its position, before anything is started.
func TestFaultsThatCannotMatterAreRefused(t *testing.T) {
	mutex := []string{"--scenario", "mutex", "--lock", "lua-release", "--clients", "2", "--target", "process"}
	for _, c := range []struct {
		args            []string
		fault, position string
	}{
		{mutex, "crash client 99", "position 7"},
		{mutex, "kill node 7", "position 6"},
		{with(mutex, "--topology", "replica"), "kill node 2", "position 6"},
		{with(mutex, "--topology", "masters:3"), "kill node 2", "position 6"},
		{with(mutex, "--duration", "1s"), "crash at 10s", "position 7"},
		{with(mutex, "--duration", "1s"), "late EVAL 3s", "position 11"},
		{mutex, "crash in buy", "position 7"},
		{[]string{"--scenario", "queue", "--queue", "reliable", "--target", "process"}, "clock +60s on node 1 at 1s for 1s", "position 28"},
		{mutex, "pause holder 1s in release", "position 17"},
		{mutex, "cancel holder 5%", "position 8"},
		{[]string{"--scenario", "mutex", "--lock", "none", "--target", "process"}, "pause waiter 1s", "position 7"},
		{[]string{"--scenario", "mutex", "--lock", "none", "--target", "process"}, "evict", "position 1"},
		{[]string{"--scenario", "dispatch", "--lock", "none", "--target", "process"}, "oom for 1s", "position 1"},
	} {
		o, err := Parse(append(with(c.args), "--fault", c.fault))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewPlan(t.Context(), *o); !errors.As(err, new(*faults.ParseError)) || !strings.Contains(err.Error(), c.position) {
			t.Errorf("%v --fault %q: %v; want a refusal at %s", c.args, c.fault, err, c.position)
		}
	}
}

// TestAnInterruptWaitsForNoFault checks that an interrupted run does not last as long as a fault that is active.
func TestAnInterruptWaitsForNoFault(t *testing.T) {
	servertest.NeedServer(t)
	for _, fault := range []string{"client-pause 60s at 50ms", "restart after 60s at 50ms", "freeze node 1 60s at 50ms", "freeze holder 60s", "kill for good at 50ms", "half-open for good 50%", "cut for good at 50ms", "delay 60s 10%", "late 60s", "clock +60s on node 1 at 50ms"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			o, err := Parse([]string{"--scenario", "mutex", "--lock", "lua-release", "--clients", "4", "--ttl", "2s", "--target", "process", "--fault", fault})
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlan(t.Context(), *o)
			if err != nil {
				t.Fatal(err)
			}
			p.Dir = t.TempDir()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			w := &interrupter{after: func() { time.AfterFunc(300*time.Millisecond, interrupt) }}
			if _, err := Run(ctx, p, w); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			if took := time.Since(w.began) - 300*time.Millisecond; took > 30*time.Second {
				t.Errorf("it ended %v after the interrupt", took)
			}
		})
	}
}

// interrupter calls after when the run begins.
type interrupter struct {
	silent
	began time.Time
	after func()
}

func (i *interrupter) Start(int, int, scenarios.Config, *scenarios.Live) {
	i.began = time.Now()
	i.after()
}
