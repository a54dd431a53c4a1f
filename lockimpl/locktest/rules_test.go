package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oversell/clock"
	"oversell/internal/mark"
	"oversell/internal/mutants"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/server"
	"oversell/variant"
)

// firsts returns the first row of each rule with a flawed lock, and the first with a sound one.
func firsts(rows []row) []row {
	type half struct {
		rule  string
		sound bool
	}
	had := map[half]bool{}
	return slices.DeleteFunc(rows, func(tt row) bool {
		h := half{tt.rule, tt.want == ""}
		defer func() { had[h] = true }()
		return had[h]
	})
}

// TestEachRule checks that each of these rules names the promise that a flawed lock breaks first, and finds nothing in a
// sound lock.
func TestEachRule(t *testing.T) {
	const (
		asks    = "a holder that asks again"
		asksFor = "a holder that asks again late, or for another lease"
		stalls  = "a holder that is held up as it asks again"
		two     = "a holder extends or releases one of two grants"
		inside  = "a lock is released inside a later lease than its first"
		goesOn  = "a lock that renews goes on after its client has lost one"
		winner  = "of several waiters, the one that gets the lock dies"
		quick   = "tokens of grants in quick succession"
		heldUp  = "a client held up between two commands of an acquire"
		names   = "names are independent"
		own     = "a late release leaves the client's own next lock alone"
		late    = "a late release or extend leaves the next holder alone"
		line    = "served in the order of arrival"
		lease   = "the lease keeps others out until its end"
		owner   = "a client held up between two commands of a release or an extend"
		dying   = "waiters that die"
		far     = "long leases"
		length  = "a long lease beside a short one of another name"
		old     = "tokens of a lock that is old"
		passes  = "time that passes within an acquire or an extend"
		some    = "masters that do not answer"
		minor   = "a minority of the masters is dead"
		suffer  = "a renewal that is answered late, or fails"
		atOnce  = "two grants at one time by the clients' clocks"
		clocks  = "clients' clocks may differ"
		beside  = "tokens rise though a client is held up in its acquire"
		dead    = "a dead holder's lease can be taken while others keep asking"
		stales  = "calls after a release leave the next holder alone"
		frozen  = "a holder cut off from the server until another has the lock"
		arrive  = "a request that arrives late"
		crowd   = "a free lock that several wait for"
		refuse  = "a refusal after an answer that was lost"
		again   = "a waiter looks again as often as it was told"
		told    = "a holder is told when its lock is lost"
		alike   = "tokens that resemble each other"
		quiet   = "a late release or extend after a quiet time"
		many    = "the tokens of many grants"
		errs    = "a server that answers with an error"
		renewed = "a lock that renews keeps others out while its holder lives"
		forgets = "a server that forgets its scripts"
		unload  = " on a server that knows no scripts"
		none    = variant.Property("")

		recover  = "a client whose calls have failed, or ended early, is granted the lock again"
		attempts = "a limit on the attempts"
		several  = "one client holds many locks"
		cancel   = "a cancelled wait holds nothing"
		overdue  = "a wait that is over before an answer arrives"
		end      = "the end of a lease that was waited for"
		often    = "a waiter looks again as often as it was told, though it was refused often"
		free     = "a lock that was released is free at once"
		fraction = "leases with a fraction of a millisecond"
		odd      = "leases with a fraction of a second"
		short    = "short names are independent"
		extended = "the token stays when the lock is extended"
		oneByOne = "masters that answer one after the other"
		goOn     = "a lock that renews goes on, whatever else its client does"
		hours    = "a client that waits for hours"
	)
	rows := []row{
		{often, "refusals-use-up-slots", variant.Progress},
		{extended, "extend-counts-token-up", variant.Fencing},
		{alike, "release-up-to-a-dash", variant.OwnerOnlyRelease},
		{alike, "release-64-letters", variant.OwnerOnlyRelease},
		{far, "record-of-the-day", variant.OwnerOnlyRelease},
		{recover, "refuses-after-errors", variant.Progress},
		{recover, "cancelled-wait-remembered", variant.Progress},
		{recover, "failed-release-remembered", variant.Progress},
		{recover, "setup-error-kept", variant.Progress},
		{recover, "answer-of-earlier-call", variant.MutualExclusion},
		{recover, "sound-line", none},
		{recover, "sound-renewing", none},
		{recover, "sound-token-changes", none},
		{recover, "sound-masters", none},
		{attempts, "only-attempt-wasted", variant.Progress},
		{attempts, "sound-line", none},
		{several, "connection-for-each-lock", variant.Progress},
		{several, "sound-token-changes", none},
		{several, "sound-renewing", none},
		{cancel, "wait-ignores-context", variant.Progress},
		{overdue, "late-grant-forgotten", variant.Progress},
		{overdue, "sound-line", none},
		{end, "end-from-first-attempt", variant.Progress},
		{end, "sound-line", none},
		{often, "pauses-grow-for-life", variant.Progress},
		{often, "sound-line", none},
		{free, "refusal-kept-for-a-moment", variant.Linearizable},
		{fraction, "script-stops-half-way", variant.Progress},
		{fraction, "sound-key-of-server", none},
		{odd, "no-brief-lease-else-cut", variant.MutualExclusion},
		{odd, "sound-masters", none},
		{short, "short-names-share", variant.Progress},
		{short, "sound-functions", none},
		{extended, "fence-lost-by-extend", variant.Fencing},
		{oneByOne, "lease-less-slowest-answer", variant.MutualExclusion},
		{oneByOne, "sound-masters", none},
		{goOn, "thirty-renewals", variant.MutualExclusion},
		{hours, "waited-for-an-hour", variant.MutualExclusion},
		{hours, "sound-line", none},
		{clocks, "grant-in-the-future", variant.MutualExclusion},
		{told, "loss-told-at-one-silence", variant.Progress},
		{told, "loss-timer-not-reset", variant.Progress},
		{far, "extend-in-the-last-twentieth", variant.OwnerOnlyRelease},
		{goOn, "renewal-ends-with-extend", variant.MutualExclusion},
		{line, "line-open-after-expiry", variant.FIFO},
		{names, "sound-names-limited", none},
		{names, "sound-key-of-server", none},
		{far, "lease-as-float32", variant.MutualExclusion},
		{asksFor, "reentry-shortens-lease", variant.MutualExclusion},
		{asksFor, "sound-reentrant", none},
		{stalls, "sound-reentrant", none},
		{two, "reentry-extend-shortens", variant.MutualExclusion},
		{two, "reentry-extend-of-two-lost", variant.MutualExclusion},
		{two, "reentry-release-renews", variant.Progress},
		{two, "sound-reentrant", none},
		{inside, "sound-line", none},
		{inside, "sound-renewing", none},
		{inside, "sound-extend-retakes", none},
		{inside, "sound-masters", none},
		{goesOn, "sound-renewing", none},
		{goesOn, "sound-loss-told", none},
		{goesOn, "sound-self-renewing", none},
		{winner, "sound-line", none},
		{winner, "sound-renewing", none},
		{quick, "sound-fence", none},
		{asks, "sound-reentrant", none},
		{asks, "sound-set-nx", none},
		{heldUp, "reentry-overwrites", variant.MutualExclusion},
		{heldUp, "sound-reentrant", none},
		{heldUp, "sound-renewing", none},
		{names, "names-by-hash", variant.Progress},
		{names, "names-cut", variant.Progress},
		{names, "release-one-token-field", variant.Progress},
		{names, "release-by-pattern", variant.OwnerOnlyRelease},
		{names, "sound-reentrant", none},
		{names, "sound-counter-beside", none},
		{forgets, "script-loaded-once", variant.Progress},
		{forgets, "sound-loaded-scripts", none},
		{forgets, "bsm/redislock", none},
		{forgets, "redsync", none},
		{forgets, "rueidislock", none},
		{own, "token-of-client", variant.OwnerOnlyRelease},
		{own, "token-wraps", variant.OwnerOnlyRelease},
		{own, "release-newest-token", variant.OwnerOnlyRelease},
		{own, "sound-own-random", none},
		{late, "extend-never-lost", variant.MutualExclusion},
		{late, "release-del", variant.OwnerOnlyRelease},
		{late, "sound-untold", none},
		{lease, "lease-capped", variant.MutualExclusion},
		{lease, "sound-set-nx", none},
		{owner, "release-get-del", variant.OwnerOnlyRelease},
		{owner, "extend-get-pexpire", variant.OwnerOnlyRelease},
		{owner, "empty-hash-deleted", variant.OwnerOnlyRelease},
		{owner, "sound-watch", none},
		{owner, "sound-one-hash", none},
		{renewed, "renewal-of-last-length", variant.MutualExclusion},
		{renewed, "sound-renewing", none},
		{line, "line-drops-living", variant.FIFO},
		{line, "line-barging", variant.FIFO},
		{line, "sound-line", none},
		{dying, "line-never-reaped", variant.Progress},
		{dying, "sound-line", none},
		{dying, "sound-set-nx", none},
		{length, "leases-in-one-hash", variant.MutualExclusion},
		{length, "hash-per-kind", variant.MutualExclusion},
		{length, "sound-set-nx", none},
		{length, "sound-reentrant", none},
		{length, "redsync", none},
		{far, "lease-capped-at-an-hour", variant.MutualExclusion},
		{far, "extend-keeps-longer-promise", variant.MutualExclusion},
		{far, "extend-capped", variant.MutualExclusion},
		{far, "extend-adds", variant.Progress},
		{far, "sound-set-nx", none},
		{far, "sound-reentrant", none},
		{far, "sound-line", none},
		{far, "sound-renewing", none},
		{far, "sound-own-random", none},
		{far, "bsm/redislock", none},
		{far, "redsync", none},
		{far, "rueidislock", none},
		{passes, "lost-answer-counts-anew", variant.MutualExclusion},
		{passes, "masters-grant-late", variant.MutualExclusion},
		{passes, "masters-retry-keeps-token", variant.MutualExclusion},
		{passes, "sound-masters", none},
		{passes, "sound-answer-lost", none},
		{passes, "sound-masters-leftover", none},
		{passes, "redsync", none},
		{minor, "masters-all-needed", variant.Progress},
		{minor, "sound-masters", none},
		{minor, "redsync-3", none},
		{two, "reentry-counts-to-two", variant.MutualExclusion},
		{far, "long-lease-in-seconds", variant.MutualExclusion},
		{old, "fence-refused-resets", variant.Fencing},
		{some, "masters-extend-one", variant.MutualExclusion},
		{some, "sound-masters", none},
		{suffer, "renewal-from-answer", variant.MutualExclusion},
		{suffer, "renewal-error-is-success", variant.MutualExclusion},
		{suffer, "sound-renewing", none},
		{atOnce, "token-milliseconds", variant.OwnerOnlyRelease},
		{atOnce, "sound-set-nx", none},
		{atOnce, "sound-extend-retakes", none},
		{clocks, "extend-until-client-time", variant.MutualExclusion},
		{clocks, "sound-extend-retakes", none},
		{beside, "fence-drawn-after", variant.Fencing},
		{beside, "sound-fence", none},
		{own, "extend-newest-token", variant.OwnerOnlyRelease},
		{own, "sound-extend-retakes", none},
		{dead, "waits-for-message-only", variant.Progress},
		{dead, "sound-line", none},
		{old, "fence-of-16-bits", variant.Fencing},
		{old, "fence-by-client-clock", none},
		{old, "sound-fence", none},
		{stales, "sound-counted-token", none},
		{stales, "sound-fence-is-token", none},
		{names, "sound-strict-names", none},
		{late, "sound-no-extend-in-words", none},
		{frozen, "lease-a-thousand-times", variant.Progress},
		{arrive, "lease-a-thousand-times", variant.Progress},
		{crowd, "line-asker-to-end", variant.Progress},
		{crowd, "sound-line", none},
		{crowd, "sound-no-wait", none},
		{crowd, "redsync", none},
		{far, "lease-to-nearest-second", variant.MutualExclusion},
		{far, "lease-in-tenths", variant.MutualExclusion},
		{far, "lease-in-hundredths", variant.MutualExclusion},
		{far, "sound-lease-longer", none},
		{far, "extend-hundred-times", variant.MutualExclusion},
		{passes, "lost-answer-counts-later", variant.MutualExclusion},
		{refuse, "error-is-refusal", variant.Linearizable},
		{refuse, "failed-attempt-repeated", variant.Linearizable},
		{"an acquire that tries again after an answer was lost", "retry-begins-lease-anew", variant.MutualExclusion},
		{"an acquire that tries again after an answer was lost", "sound-attempt-repeated", none},
		{"a refusal before a late answer", "slow-answer-is-refusal", variant.Linearizable},
		{"a refusal before a late answer", "sound-attempt-repeated", none},
		{"a release after an extend without an answer", "release-by-own-clock", variant.Progress},
		{"a release after an extend without an answer", "sound-set-nx", none},
		{refuse, "sound-set-nx", none},
		{refuse, "sound-attempt-repeated", none},
		{again, "backoff-without-end", variant.Progress},
		{again, "sound-line", none},
		{told, "loss-not-told", variant.MutualExclusion},
		{told, "loss-told-at-release", variant.Progress},
		{told, "sound-loss-told", none},
		{told, "sound-loss-by-timer", none},
		{names, "names-by-short-checksum", variant.Progress},
		{late, "lease-dropped-after-wait", variant.Progress},
		{frozen, "lease-dropped-after-wait", variant.Progress},
		{names, "names-as-paths", variant.Progress},
		{names, "names-unescaped", variant.Progress},
		{names, "names-mended", variant.Progress},
		{names, "names-slashes", variant.Progress},
		{names, "names-cut-late", variant.Progress},
		{"a late release or extend" + unload, "extend-without-script", variant.MutualExclusion},
		{"a late release or extend" + unload, "sound-loaded-scripts", none},
		{owner + unload, "unloaded-release", variant.OwnerOnlyRelease},
		{owner + unload, "unloaded-extend", variant.OwnerOnlyRelease},
		{owner + unload, "sound-loaded-scripts", none},
		{heldUp + unload, "sound-loaded-scripts", none},
		{"a client that dies between two commands" + unload, "unloaded-acquire", variant.Progress},
		{"a client that dies between two commands" + unload, "sound-loaded-scripts", none},
		{far, "lease-fraction-unnoticed", variant.Progress},
		{far, "extend-fraction-unnoticed", variant.MutualExclusion},
		{far, "lease-without-zeros", variant.MutualExclusion},
		{far, "second-key-ends", variant.MutualExclusion},
		{many, "token-of-16-bits", variant.OwnerOnlyRelease},
		{many, "sound-counted-token", none},
		{many, "sound-own-random", none},
		{quiet, "token-counter-expires", variant.OwnerOnlyRelease},
		{quiet, "sound-counted-token", none},
		{quiet, "sound-extend-retakes", none},
		{quiet, "sound-untold", none},
		{old, "fence-wraps", variant.Fencing},
		{errs, "replica-grants", variant.MutualExclusion},
		{errs, "replica-extends", variant.MutualExclusion},
		{errs, "busy-releases", variant.Progress},
		{errs, "sound-answer-lost", none},
		{errs, "sound-masters", none},
		{errs, "sound-loaded-scripts", none},
		{line, "line-patience-of-looker", variant.FIFO},
		{line, "line-of-sixteen", variant.FIFO},
		{alike, "release-prefix", variant.OwnerOnlyRelease},
		{alike, "release-folds-case", variant.OwnerOnlyRelease},
		{alike, "release-tonumber", variant.OwnerOnlyRelease},
		{alike, "sound-key-of-token", none},
		{alike, "sound-rename", none},
		{alike, "bsm/redislock", none},
		{alike, "redsync", none},
		{far, "extend-seldom", variant.MutualExclusion},
		{alike, "sound-reentrant", none},
		{alike, "sound-renewing", none},
		{alike, "sound-masters", none},
		{told, "loss-told-after-release", variant.Progress},
		{"served in the order of arrival when the first in line has died", "line-reaped-blindly", variant.FIFO},
		{"served in the order of arrival when the first in line has died", "sound-line-in-list", none},
		{"a free lock is granted in single attempts", "refusal-remembered", variant.Progress},
		{"a free lock is granted in single attempts", "sound-reentrant", none},
		{"a free lock is granted in single attempts after the death of a waiter", "line-reaped-by-waiters", variant.Progress},
		{"a free lock is granted in single attempts after the death of a waiter", "line-of-sixteen", none},
		{"a client whose command fails, and that is held up before the next", "release-falls-back", variant.OwnerOnlyRelease},
		{"a client whose command fails, and that is held up before the next", "sound-rename", none},
		{"a lock that renews goes on though some renewals fail", "renewal-counts-failures", variant.MutualExclusion},
		{"a lock that renews goes on though some renewals fail", "sound-renewing", none},
	}
	Process("single")(t) // skips the test if there is no server
	if os.Getenv("OVERSELL_LONG") != "1" {
		rows = firsts(rows)
	}
	byLock := map[string][]row{}
	for _, tt := range rows {
		byLock[tt.lock] = append(byLock[tt.lock], tt)
	}
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, 8) // more than processors: rules mostly wait
	for lock, of := range byLock {
		v := entry(t, lock)
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			r, end, err := trial(t, v)
			if err != nil {
				t.Errorf("%s: %v", lock, err)
				return
			}
			defer end()
			var rules sync.WaitGroup
			for _, tt := range of {
				rules.Go(func() { tt.try(t, r) })
			}
			rules.Wait()
		})
	}
}

// entry returns a lock of the catalogue in internal/mutants.
func entry(t *testing.T, name string) lockimpl.Variant {
	t.Helper()
	all := mutants.Locks()
	i := slices.IndexFunc(all, func(l mutants.Lock) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no lock %q", name)
	}
	return all[i].Variant
}

// row says which broken promise a rule must find in a lock.
type row struct {
	rule, lock string
	want       variant.Property
}

// try tries the rule, and returns what it found.
func (tt row) try(t *testing.T, r *run) (err error) {
	i := slices.IndexFunc(rules, func(u rule) bool { return u.name == tt.rule })
	for range 3 { // on a busy machine a flaw may not show at once
		if err = r.try(t.Context(), rules[i], mark.New()+"order"); !isUnjudged(err) && (err != nil || tt.want == "") {
			break
		}
	}
	var b *breach
	switch {
	case tt.want == "" && err != nil:
		t.Errorf("%s, %s: a sound lock was accused: %v", tt.rule, tt.lock, err)
	case tt.want != "" && !errors.As(err, &b):
		t.Errorf("%s, %s: the rule found %v; want a broken %s", tt.rule, tt.lock, err, tt.want)
	case tt.want != "" && b.Property != tt.want:
		t.Errorf("%s, %s: the rule named %s: %v; want %s", tt.rule, tt.lock, b.Property, err, tt.want)
	}
	return err
}

// trial starts a server and prepares a run that tries rules on an entry of the catalogue.
func trial(t *testing.T, v lockimpl.Variant) (r *run, end func(), err error) {
	ctx, enough := context.WithCancel(t.Context())
	topology := "single"
	if v.Needs.Masters > 1 {
		topology = "masters:3"
	}
	s, err := server.Open(ctx, server.Spec{Target: "process", Topology: topology})
	if err != nil {
		enough()
		return nil, nil, err
	}
	r = &run{lock: v, server: s, seed: 1, began: time.Now(), enough: enough, logf: func(string, ...any) {}}
	go r.beat(ctx)
	end = func() { enough(); s.Close() }
	if err := r.probe(ctx, mark.New()+"probe"); err != nil {
		end()
		return nil, nil, err
	}
	r.repeats.Store(true)
	return r, end, nil
}

// TestNamesFirst checks that the suite reports names that are not independent before it tries any rule: with such a lock
// no rule can judge anything.
func TestNamesFirst(t *testing.T) {
	r := &run{lock: entry(t, "names-by-tag"), server: Auto(t), seed: 1, began: time.Now(), logf: t.Logf}
	go r.beat(t.Context())
	err := r.probe(t.Context(), mark.New()+"probe")
	var b *breach
	if !errors.As(err, &b) || b.Property != variant.Progress || !b.Basis {
		t.Errorf("the suite said %v of a lock that takes all names for one; want a broken %s", err, variant.Progress)
	}
}

// inMemory is a lock of this process alone.
type inMemory struct {
	mu   sync.Mutex
	held map[string]lockimpl.Lock
}

func (l *inMemory) Acquire(_ context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.held[key].Until) {
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	l.held[key] = lockimpl.Lock{Key: key, Token: rand.Text(), Until: time.Now().Add(o.TTL)}
	return l.held[key], nil
}

func (l *inMemory) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, errors.ErrUnsupported
}

func (l *inMemory) Release(_ context.Context, m lockimpl.Lock) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[m.Key].Token != m.Token {
		return lockimpl.ErrLost
	}
	delete(l.held, m.Key)
	return nil
}

// TestLockWithoutAServer checks that the suite does not judge a lock that it cannot disturb: one that keeps its state
// elsewhere than on the servers of the suite.
func TestLockWithoutAServer(t *testing.T) {
	l := &inMemory{held: map[string]lockimpl.Lock{}}
	v := lockimpl.Variant{Name: "in-memory", Promises: []variant.Property{variant.MutualExclusion}, New: func(variant.Env) lockimpl.Locker { return l }}
	r := &run{lock: v, server: Auto(t), seed: 1, began: time.Now(), logf: t.Logf}
	go r.beat(t.Context())
	if err := r.probe(t.Context(), mark.New()+"probe"); err == nil || !strings.Contains(err.Error(), "without a command to a server of the suite") {
		t.Errorf("the suite said %v", err)
	}
}

// TestEnough checks that a broken promise does not end the run, unless nothing else can be judged without that promise.
func TestEnough(t *testing.T) {
	ctx, enough := context.WithCancel(t.Context())
	r := &run{began: time.Now(), enough: enough}
	r.found(broken(variant.FIFO, "for a test"))
	if ctx.Err() != nil {
		t.Error("the run ended at once when one promise was found broken; the others are of interest, too")
	}
	r.found(sameLock("for a test"))
	if ctx.Err() == nil {
		t.Error("the run goes on though names are not independent")
	}
}

// TestDoubt checks that a lock that refuses is not accused while an acquire without an answer may hold it, and is accused
// once the lease of that acquire is over.
func TestDoubt(t *testing.T) {
	b := &bench{run: &run{logf: t.Logf}, name: "order"}
	refused := broken(variant.Progress, "nobody could take the lock: %v", lockimpl.ErrHeld)
	if b.judged(refused) == nil {
		t.Error("a free lock that is refused was let pass, though every acquire had an answer")
	}
	b.doubted(time.Now(), time.Minute)
	waited := &lockclient.Ungranted{Since: time.Now(), Limit: patience, Sure: true, Last: context.DeadlineExceeded}
	for _, err := range []error{refused, sameLock("another name was refused: %v", lockimpl.ErrHeld), broken(variant.Progress, "a client waited in vain: %v", waited)} {
		if err := b.judged(err); !isUnjudged(err) {
			t.Errorf("the lock was accused while an acquire of which nobody knows had time left: %v", err)
		}
	}
	for _, since := range []time.Time{time.Now().Add(-patience), time.Now()} {
		asked := broken(variant.Progress, "nobody could take the lock: %v", &lockclient.Ungranted{Since: since, Limit: patience, Sure: true, Last: lockimpl.ErrHeld})
		if excused := isUnjudged(b.judged(asked)); excused == since.Before(time.Now().Add(-patience/2)) {
			t.Errorf("excused: %v, of a lock that was refused %v before the call that had no answer", excused, time.Since(since))
		}
	}
	for _, err := range []error{broken(variant.Progress, "nobody could take the lock: %v", errors.New("nobody answers here")), broken(variant.MutualExclusion, "two hold it: %v", lockimpl.ErrHeld)} {
		if isUnjudged(b.judged(err)) {
			t.Errorf("%q was let pass; want only refusals", err)
		}
	}
	b.doubts = []doubt{{till: time.Now()}}
	if isUnjudged(b.judged(refused)) {
		t.Error("a free lock that is refused was let pass, though the lease in doubt was over")
	}
}

// TestAgain checks that a case that could not be judged is tried again under another name, and that a case that can never
// be judged does not count as a success.
func TestAgain(t *testing.T) {
	open := unjudged("it is a test", broken(variant.Progress, "nobody could take the lock"))
	for _, times := range []int{1, 2, 3, 9} {
		r := &run{lock: lockimpl.Variant{Promises: []variant.Property{variant.Progress}}, logf: t.Logf}
		b := &bench{ctx: t.Context(), run: r, name: "order", property: variant.Progress}
		names := map[string]bool{}
		err := b.together(2, []part{{"nothing", func(*bench) error { return nil }}, {"one", func(b *bench) error {
			if names[b.name] = true; len(names) > times {
				return nil
			}
			return open
		}}})
		if isUnjudged(err) != (times >= 3) || err != nil && !isUnjudged(err) {
			t.Errorf("a case that could not be judged %d times ended in %v", times, err)
		}
		if want := min(times+1, 3); len(names) != want {
			t.Errorf("a case that could not be judged %d times was tried under %d names, want %d", times, len(names), want)
		}
	}
	for err, want := range map[error]bool{
		unjudged("it is a test", nil): true,
		open:                          true,
		unjudged("it is a test", broken(variant.Progress, "nobody could take the lock: %v", lockimpl.ErrHeld)): false,
		unjudged("it is a test", broken(variant.MutualExclusion, "two hold it")):                               false,
		broken(variant.Progress, "nobody could take the lock"):                                                 false,
	} {
		if lockfinding.OnlyBusy(err) != want {
			t.Errorf("%v: taken for a busy machine: %v, want %v", err, !want, want)
		}
	}
	r := &run{lock: lockimpl.Variant{Name: "mine"}}
	if told := r.told(open, ""); !strings.HasPrefix(told, "inconclusive: ") || strings.Contains(told, "promises") {
		t.Errorf("it was told as %q; want an inconclusive test that accuses nobody", told)
	}
}

// TestBusy checks that the finding of a rule that its time limit cut short does not count, unless the rule asked for long
// enough and was answered in time.
func TestBusy(t *testing.T) {
	r := &run{lock: lockimpl.Variant{Promises: []variant.Property{variant.Progress}}, logf: t.Logf, enough: func() {}}
	for _, idle := range []bool{false, true} { // the machine
		for _, sure := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			err := r.within(t.Context(), ctx, rule{property: variant.Progress, name: "a test", check: func(b *bench) error {
				cancel()
				if idle {
					r.healthy.Add(int64(ruleLimit))
				}
				return broken(variant.Progress, "%v", &lockclient.Ungranted{Since: time.Now(), Limit: patience, Sure: sure, Last: lockimpl.ErrHeld})
			}}, "order")
			var b *breach
			if isUnjudged(err) == sure || !errors.As(err, &b) {
				t.Errorf("the finding of a rule that was cut short (sure: %v, idle: %v) was judged as %v", sure, idle, err)
			}
		}
	}
}

// perDay draws its fencing tokens from a counter for each day.
type perDay struct {
	lockimpl.Locker
	env variant.Env
}

func (l perDay) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	lock, err := l.Locker.Acquire(ctx, name, o)
	if err == nil {
		lock.Fence, err = l.env.Redis[0].Incr(ctx, "fence:"+name+":"+l.env.Clock.Now().Format(time.DateOnly)).Result()
	}
	return lock, err
}

// in32Bits tells the server a lease in milliseconds of 32 bits.
type in32Bits struct{ lockimpl.Locker }

func (l in32Bits) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	asked := o.TTL
	o.TTL %= 1 << 32 * time.Millisecond
	lock, err := l.Locker.Acquire(ctx, name, o)
	lock.Until = lock.Until.Add(asked - o.TTL)
	return lock, err
}

// TestLongTimes checks that two flaws are noticed that show only after a long time: fencing tokens from a counter that
// begins anew each day, and leases of more than 49 days in a number that is too short for them.
func TestLongTimes(t *testing.T) {
	Process("single")(t) // skips the test if there is no server
	good, _ := lockimpl.Find("fenced")
	const tokens, leases = "tokens of later hours, days and months", "long leases"
	for _, tt := range []struct {
		rule string
		want variant.Property
		with func(variant.Env) lockimpl.Locker
	}{
		{tokens, "", good.New},
		{tokens, variant.Fencing, func(env variant.Env) lockimpl.Locker { return perDay{good.New(env), env} }},
		{leases, "", good.New},
		{leases, variant.MutualExclusion, func(env variant.Env) lockimpl.Locker { return in32Bits{good.New(env)} }},
	} {
		v := good
		v.New = tt.with
		r, end, err := trial(t, v)
		if err != nil {
			t.Fatal(err)
		}
		row{tt.rule, v.Name, tt.want}.try(t, r)
		end()
	}
}

// TestNoPromises checks that the suite fails for a lock without promises: nothing is judged.
func TestNoPromises(t *testing.T) {
	if os.Getenv("OVERSELL_NO_PROMISES") != "" {
		RunWith(t, lockimpl.Variant{Name: "mine"}, Embedded("single"), Options{})
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoPromises$")
	cmd.Env = append(os.Environ(), "OVERSELL_NO_PROMISES=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "promises nothing") {
		t.Errorf("%v, %s; want a failure, because the lock promises nothing", err, out)
	}
}

// TestLateCommands checks that the rules reach the late commands of long calls, and an acquire that was refused.
func TestLateCommands(t *testing.T) {
	Process("single")(t) // skips the test if there is no server
	const (
		owner  = "a client held up between two commands of a release or an extend"
		heldUp = "a client held up between two commands of an acquire"
		beside = "tokens rise though a client is held up in its acquire"
	)
	var all sync.WaitGroup
	for _, tt := range []struct {
		row
		commands int // of the longest call
	}{
		{row{heldUp, "acquire-after-settings", variant.MutualExclusion}, 7},
		{row{owner, "release-in-transactions", variant.OwnerOnlyRelease}, 3},
		{row{owner, "release-after-settings", variant.OwnerOnlyRelease}, 7},
		{row{beside, "fence-given-back", variant.Fencing}, 3},
	} {
		v := entry(t, tt.lock)
		all.Go(func() {
			r, end, err := trial(t, v)
			if err != nil {
				t.Errorf("%s: %v", tt.lock, err)
				return
			}
			defer end()
			if r.able.commands != tt.commands {
				t.Errorf("%s: the longest call has %d commands; want %d", tt.lock, r.able.commands, tt.commands)
			}
			tt.try(t, r)
		})
	}
	all.Wait()
}

// TestTooManyFiles checks that a lock is not accused because the process has no file descriptors left.
func TestTooManyFiles(t *testing.T) {
	b := &bench{run: &run{logf: t.Logf}, name: "order"}
	opening := &net.OpError{Op: "listen", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	err := b.checked(func(*bench) error { panic(failure{fmt.Errorf("open a proxy: %w", opening)}) })
	if err := b.judged(err); !isUnjudged(err) {
		t.Errorf("got %v; want that it was not judged", err)
	}
}

// TestHalfOfTheRules checks that await counts, for each promise, by how many there are more judged rules than others: a test in
// which fewer than half were judged is inconclusive.
func TestHalfOfTheRules(t *testing.T) {
	var checks []check
	add := func(p variant.Property, n int, err error) {
		for i := range n {
			c := check{rule{property: p, name: fmt.Sprintf("%d of %d, %v", i, n, err)}, make(chan error, 1)}
			c.result <- err
			checks = append(checks, c)
		}
	}
	busy := unjudged("it is a test", nil)
	add(variant.Progress, 3, nil)
	add(variant.Progress, 3, busy)
	add(variant.MutualExclusion, 2, nil)
	add(variant.MutualExclusion, 5, busy)
	var judged map[variant.Property]int
	t.Run("rules", func(t *testing.T) { _, judged = new(run).await(t, checks) })
	if judged[variant.Progress] != 0 || judged[variant.MutualExclusion] != -3 {
		t.Errorf("counted are %v; want 0 for progress, and -3 for mutual exclusion", judged)
	}
}

// TestForgottenFunctions checks that the suite finds a lock that does not recover when the servers have forgotten its scripts or
// functions.
func TestForgottenFunctions(t *testing.T) {
	for name, flawed := range map[string]bool{"functions-loaded-once": true, "script-error-is-refusal": true, "sound-functions": false, "sound-loaded-scripts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, end, err := trial(t, entry(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			if b := new(breach); errors.As(r.forgotten, &b) != flawed || flawed && b.Property != variant.Progress {
				t.Errorf("the suite found %v; want a broken promise: %t", r.forgotten, flawed)
			}
		})
	}
}

// TestNameOfAGrant checks that the suite knows a lock by its name though Lock.Key is something else.
func TestNameOfAGrant(t *testing.T) {
	r, end, err := trial(t, entry(t, "sound-key-of-server"))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	b := &bench{ctx: t.Context(), run: r, name: mark.New() + "named", ttl: time.Second}
	defer b.close()
	c, l, err := b.holder(long)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Extend(l, long)
	if l.Key == b.name || c.Name(l) != b.name || err != nil || c.Name(m) != b.name {
		t.Errorf("the lock %q has the key %q; the suite says that its names are %q and, extended, %q (%v)", b.name, l.Key, c.Name(l), c.Name(m), err)
	}
}

// changed is a lock whose options are changed before each acquire.
type changed struct {
	lockimpl.Locker
	change func(*lockimpl.Options) error
}

func (c changed) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	if err := c.change(&o); err != nil {
		return lockimpl.Lock{}, err
	}
	return c.Locker.Acquire(ctx, key, o)
}

// TestOptionsOfALock checks what the suite finds out about locks that wait for whole seconds, or refuse leases.
func TestOptionsOfALock(t *testing.T) {
	of := func(change func(*lockimpl.Options) error) lockimpl.Variant {
		v := entry(t, "sound-set-nx")
		first := v.New
		v.New = func(env variant.Env) lockimpl.Locker { return changed{first(env), change} }
		return v
	}
	r, end, err := trial(t, of(func(o *lockimpl.Options) error { o.Wait = o.Wait.Truncate(time.Second); return nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if !r.able.waits {
		t.Error("the suite says that a lock which waits for whole seconds does not wait")
	}
	_, _, err = trial(t, of(func(o *lockimpl.Options) error {
		if o.TTL > 30*time.Second {
			return errors.New("a lease is at most 30 s")
		}
		return nil
	}))
	if want := "it answers a lease of 1m0s with an error of its own, and the suite needs leases of 1s and 1m0s"; err == nil || !strings.Contains(err.Error(), want) || errors.As(err, new(*breach)) {
		t.Errorf("of a lock that takes leases of at most 30 s the suite says %v; want %q", err, want)
	}
}

// TestABreachComesFirst checks that a broken promise is reported although another case of the rule could not be tried.
func TestABreachComesFirst(t *testing.T) {
	r, end, err := trial(t, entry(t, "sound-set-nx"))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	b := &bench{ctx: t.Context(), run: r, name: mark.New(), ttl: time.Second, property: variant.Progress}
	defer b.close()
	err = b.together(3, []part{
		{"not tried", func(*bench) error { return errors.New("connect: the time was over") }},
		{"broken", func(*bench) error { return broken(variant.Progress, "a free lock was refused") }},
		{"not tried either", func(*bench) error { return errors.New("connect: the time was over") }},
	})
	if !errors.As(err, new(*breach)) {
		t.Errorf("the rule says %v; want the broken promise", err)
	}
}

// TestTimeElsewhere checks that time passes for clients on an emulation of their own: otherwise a client that is refused there would
// ask for ever.
func TestTimeElsewhere(t *testing.T) {
	r, end, err := trial(t, entry(t, "sound-set-nx"))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	b := &bench{ctx: t.Context(), run: r, name: mark.New(), ttl: time.Second}
	defer b.close()
	own, err := b.elsewhere(clock.Real{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.leave()
	if before, there := r.lasted(), own.run.lasted(); there < before || before == 0 {
		t.Errorf("the machine has answered in time for %v, and on the emulation for %v", before, there)
	}
}
