package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// tally counts the runs that broke something, and those for which that is unknown.
type tally struct{ broke, runs, unknown int }

// count counts the runs in which a property was seen broken.
func count(rs []ran, of variant.Object, p variant.Property) tally {
	t := tally{runs: len(rs)}
	for _, r := range rs {
		switch {
		case r.broke(of, p) > 0:
			t.broke++
		case !r.held(of, p):
			t.unknown++
		}
	}
	return t
}

func (t tally) String() string {
	s := fmt.Sprintf("%d of %d", t.broke, t.runs)
	if t.unknown > 0 {
		s += fmt.Sprintf(" (undecided: %d)", t.unknown)
	}
	return s
}

// all and none report whether each run of a non-empty tally broke the property, or is known to have kept it.
func (t tally) all() bool  { return t.runs > 0 && t.broke == t.runs }
func (t tally) none() bool { return t.runs > 0 && t.broke == 0 && t.unknown == 0 }

// undecided reports whether no run broke the property, and it is not known either that each kept it.
func (t tally) undecided() bool { return t.broke == 0 && !t.none() }

// sold returns the pieces that each run sold.
func sold(rs []ran) (pieces []int64) {
	for _, r := range rs {
		pieces = append(pieces, *r.Sold)
	}
	return pieces
}

func floats[T int | int64](ns []T) (xs []float64) {
	for _, n := range ns {
		xs = append(xs, float64(n))
	}
	return xs
}

// sale returns the flags of a flash sale that reads the stock and writes it back.
func sale(lock string) []string {
	return []string{"--lock", lock, "--sale", "plain", "--clients", "32", "--stock", "200"}
}

const stock = 200 // of every sale

// soldOut counts the runs that did not sell exactly their stock. With one buyer there are no races, so there the
// total is the control, not a verdict.
func soldOut(rs []ran) tally {
	t := tally{runs: len(rs)}
	for _, r := range rs {
		switch {
		case *r.Sold > *r.Stock:
			t.broke++
		case *r.Sold < *r.Stock:
			t.unknown++
		}
	}
	return t
}

// unprotected measures C1.
func unprotected(ctx context.Context, b *bench) (a answer, err error) {
	n := b.times(5, 2)
	open, err := b.again(ctx, n, sale("none")...)
	if err != nil {
		return a, err
	}
	script, err := b.again(ctx, n, "--lock", "none", "--sale", "lua", "--clients", "32", "--stock", "200")
	if err != nil {
		return a, err
	}
	alone, err := b.again(ctx, 1, "--lock", "none", "--sale", "plain", "--clients", "1", "--stock", "200")
	if err != nil {
		return a, err
	}
	tallies := [3]tally{}
	for i, rs := range [][]ran{open, script} {
		tallies[i] = count(rs, variant.Sale, variant.NoOversell)
	}
	tallies[2] = soldOut(alone)
	a.is = oversells(tallies[0], tallies[1], tallies[2])
	a.says = fmt.Sprintf("32 buyers who read the stock and write it back, unprotected, sold %s pieces of a stock of %d; one buyer alone sold %s, and 32 who decrement in one script, without a lock either, %s.",
		ranged(sold(open)), stock, ranged(sold(alone)), ranged(sold(script)))
	a.numbers = []reports.Quantity{
		number("stock", stock, "pieces"),
		repeated("sold by 32 unprotected buyers", floats(sold(open)), "pieces"),
		number("runs of them that oversold", tallies[0].broke, "of "+fmt.Sprint(tallies[0].runs)),
		repeated("sold by 32 buyers with one script", floats(sold(script)), "pieces"),
		repeated("sold by one buyer", floats(sold(alone)), "pieces"),
	}
	return a, nil
}

// oversells decides C1 by three kinds of runs: many clients without protection, many clients with atomic steps, and
// one client alone.
func oversells(open, atomic, alone tally) string {
	switch {
	case !atomic.none() || !alone.none() || open.undecided():
		return reports.Inconclusive // something other than the race oversells, or nobody knows
	case open.broke == 0:
		return reports.Refuted
	}
	return reports.Confirmed
}

// printedLockPrevents measures C2, and phpLockPrevents C3.
func printedLockPrevents(ctx context.Context, b *bench) (answer, error) {
	return lockPrevents(ctx, b, "php-lock-printed")
}
func phpLockPrevents(ctx context.Context, b *bench) (answer, error) {
	return lockPrevents(ctx, b, "php-lock")
}

// lockPrevents measures whether a sale under a lock oversells; a sale that must oversell and one that must not are
// the controls.
func lockPrevents(ctx context.Context, b *bench, lock string) (a answer, err error) {
	n := b.times(4, 2)
	locked, err := b.again(ctx, n, sale(lock)...)
	if err != nil {
		return a, err
	}
	controls, err := b.runs(ctx, sale("none"), sale("lua-release"))
	if err != nil {
		return a, err
	}
	shortest, err := b.search(ctx, "--lock", lock, "--sale", "plain", "--property", "no-oversell")
	if err != nil {
		return a, err
	}
	broke := count(locked, variant.Sale, variant.NoOversell)
	a.is = prevents(broke, count(controls[:1], variant.Sale, variant.NoOversell), count(controls[1:], variant.Sale, variant.NoOversell))
	a.says = fmt.Sprintf("Under this lock, 32 buyers sold %s pieces of a stock of %d, without any fault; under lua-release they sold %s, and without a lock %s.",
		ranged(sold(locked)), stock, ranged(sold(controls[1:])), ranged(sold(controls[:1])))
	a.numbers = []reports.Quantity{
		number("stock", stock, "pieces"),
		repeated("sold under "+lock, floats(sold(locked)), "pieces"),
		number("runs of them that oversold", broke.broke, fmt.Sprintf("of %d", broke.runs)),
		repeated("sold under lua-release", floats(sold(controls[1:])), "pieces"),
		repeated("sold under no lock", floats(sold(controls[:1])), "pieces"),
	}
	if c := shortest.Counterexample; c != nil {
		a.says += fmt.Sprintf(" Two clients and %d steps are enough.", len(c.Steps))
		a.numbers = append(a.numbers, number("shortest schedule that oversells", len(c.Steps), "steps"))
	}
	return a, nil
}

// prevents decides C2 and C3 by sales under the lock, under none, and under a sound one.
func prevents(locked, open, sound tally) string {
	switch {
	case open.broke == 0 || !sound.none() || locked.undecided():
		return reports.Inconclusive // this load never oversells, or something else does
	case locked.broke > 0:
		return reports.Refuted
	}
	return reports.Confirmed
}

// takeovers measures C4.
func takeovers(ctx context.Context, b *bench) (a answer, err error) {
	alive, total := 0, 0
	var by [2]int // after TTL -1, -2
	for _, lock := range []string{"php-lock-printed", "php-lock"} {
		rs, err := b.runs(ctx, []string{"--scenario", "mutex", "--lock", lock, "--clients", "16", "--duration", "1s"})
		if err != nil {
			return a, err
		}
		grants, err := rs[0].grants()
		if err != nil {
			return a, err
		}
		for via, n := range grants {
			total += n
			for i := range by {
				if strings.HasPrefix(via, fmt.Sprintf("SET after TTL -%d", i+1)) {
					by[i] += n
					alive += n
				}
			}
		}
	}
	dead, err := afterDeath(ctx, b)
	if err != nil {
		return a, err
	}
	e, err := b.search(ctx, "--lock", "php-lock", "--property", "mutual-exclusion")
	if err != nil {
		return a, err
	}
	confirmed, replays, err := b.replayed(ctx, e)
	if err != nil {
		return a, err
	}
	a.is = onlyTheDead(alive, dead)
	a.says = fmt.Sprintf("Without a crash, of %s grants %s (%s) were takeovers: %s after TTL -1, from a live owner whose key had no expiry (yet), and %s after TTL -2, of a lock just released.",
		reports.Thousands(int64(total)), reports.Thousands(int64(alive)), percent(float64(alive)/float64(max(total, 1))), reports.Thousands(int64(by[0])), reports.Thousands(int64(by[1])))
	a.numbers = []reports.Quantity{
		number("grants without a crash, both locks, 16 clients", total, ""),
		number("of them takeovers after TTL -1", by[0], ""),
		number("of them takeovers after TTL -2", by[1], ""),
		number("takeovers of a dead owner's lock, as meant", dead, "of 1"),
	}
	if e.Counterexample != nil {
		a.numbers = append(a.numbers,
			number("shortest schedule that takes the lock from a live owner", len(e.Counterexample.Steps), "steps"),
			number("times confirmed on a real server", confirmed, fmt.Sprintf("of %d", replays)))
	}
	return a, nil
}

// afterDeath counts takeovers of a lock whose owner died after SETNX.
func afterDeath(ctx context.Context, b *bench) (int, error) {
	c, err := b.client(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.Set(ctx, lockimpl.Key(b.key("order")), time.Now().Unix()+1, 0).Err(); err != nil {
		return 0, err
	}
	l, err := b.locker(ctx, "php-lock")
	if err != nil {
		return 0, err
	}
	got, err := l.Acquire(ctx, b.key("order"), lockimpl.Options{TTL: time.Second})
	if errors.Is(err, lockimpl.ErrHeld) {
		return 0, nil
	}
	if err != nil || !strings.Contains(got.Via, "takeover") {
		return 0, err
	}
	return 1, nil
}

// onlyTheDead decides C4 by the takeovers while all owners lived and those from the dead owner.
func onlyTheDead(alive, dead int) string {
	switch {
	case dead == 0:
		return reports.Inconclusive // there were no takeovers at all
	case alive > 0:
		return reports.Refuted
	}
	return reports.Confirmed
}

// healing is how long a lock was unavailable after its holder had died.
type healing struct {
	lease time.Duration // requested
	ttl   time.Duration // as set on the server
	after time.Duration // until another obtained it; 0: not before patience was over
}

// patience is how long C5 waits for a lock to heal.
const patience = 4500 * time.Millisecond

// crashedHolder measures C5.
func crashedHolder(ctx context.Context, b *bench) (a answer, err error) {
	short, long, printed := healing{lease: time.Second}, healing{lease: 3 * time.Second}, healing{lease: time.Second}
	var g errgroup.Group
	for _, x := range []struct {
		lock string
		h    *healing
	}{{"php-lock", &short}, {"php-lock", &long}, {"php-lock-printed", &printed}} {
		measure, err := b.heal(ctx, x.lock, fmt.Sprintf("%s-%v", x.lock, x.h.lease), x.h)
		if err != nil {
			return a, err
		}
		g.Go(measure)
	}
	if err := g.Wait(); err != nil {
		return a, err
	}
	a.is = garbage(short, long, printed)
	a.says = fmt.Sprintf("The second listing's lock was free %.2f s after its holder had died with a lease of 1 s, and %.2f s with 3 s. The printed lock, with a requested lease of 1 s, had a TTL of %.0f years, so no choice of lease heals it.",
		seconds(short.after), seconds(long.after), printed.ttl.Hours()/24/365.25)
	a.on = "which lock: the printed lock passes an absolute time to EXPIRE, which expects seconds from now, so its lease is as long as the time since 1970, whatever was requested; the second listing's lock passes the right number."
	a.numbers = []reports.Quantity{
		number("second listing, lease 1 s: free after", seconds(short.after), "s"),
		number("second listing, lease 3 s: free after", seconds(long.after), "s"),
		number("printed lock, lease 1 s: expiry on the server", seconds(printed.ttl), "s"),
		number("printed lock: free after (0: not within the measurement)", seconds(printed.after), "s"),
	}
	b.done(commandLine("run", []string{"--scenario", "mutex", "--lock", "php-lock-printed", "--clients", "4", "--ttl", "1s", "--wait", "500ms", "--fault", "crash holder"}))
	return a, nil
}

// heal prepares the measurement of one healing.
func (b *bench) heal(ctx context.Context, lock, key string, h *healing) (func() error, error) {
	owner, err := b.locker(ctx, lock)
	if err != nil {
		return nil, err
	}
	other, err := b.locker(ctx, lock)
	if err != nil {
		return nil, err
	}
	c, err := b.client(ctx)
	if err != nil {
		return nil, err
	}
	key = b.key(key)
	return func() error {
		start := time.Now()
		if _, err := owner.Acquire(ctx, key, lockimpl.Options{TTL: h.lease}); err != nil {
			return err
		}
		// The owner does nothing more.
		if h.ttl, err = c.TTL(ctx, lockimpl.Key(key)).Result(); err != nil {
			return err
		}
		_, err := other.Acquire(ctx, key, lockimpl.Options{TTL: time.Second, Wait: patience, RetryEvery: shortWait})
		switch {
		case errors.Is(err, lockimpl.ErrHeld):
		case err != nil:
			return err
		default:
			h.after = time.Since(start)
		}
		return nil
	}, nil
}

// late is the tolerance for a late wake-up on a busy machine.
const late = 700 * time.Millisecond

// garbage decides C5.
func garbage(short, long, printed healing) string {
	onTime := func(h healing) bool { return h.after > h.lease-50*time.Millisecond && h.after < h.lease+late }
	switch {
	case !onTime(short) || long.after == 0:
		return reports.Inconclusive
	case long.after < long.lease-50*time.Millisecond:
		return reports.Refuted // free although the lease was still running
	case printed.after == 0:
		return reports.Depends
	}
	return reports.Confirmed
}

// job is a section longer than its lease, under a lock that is renewed.
type job struct {
	lock  string
	renew bool
	pause time.Duration // once, between two renewals
	// sameSecond makes the contender call in the same second as the owner, so that the second listing's lock gives
	// both the same value; otherwise it calls later.
	sameSecond bool

	// Results:
	entered bool          // the contender got the lock during the job
	told    bool          // the last expire() reported that the lock was kept
	gap     time.Duration // the longest time between two renewals
}

// The times of C6.
const (
	jobLease  = time.Second
	jobLength = 3 * time.Second
	renewal   = 200 * time.Millisecond
	jobPause  = 1600 * time.Millisecond
)

// renewing measures C6.
func renewing(ctx context.Context, b *bench) (a answer, err error) {
	jobs := []*job{
		{lock: "php-lock-printed", renew: true},
		{lock: "php-lock", renew: true},
		{lock: "php-lock"},
		{lock: "php-lock-printed", renew: true, pause: jobPause},
		{lock: "php-lock", renew: true, pause: jobPause},
		{lock: "php-lock", renew: true, pause: jobPause, sameSecond: true},
	}
	var g errgroup.Group
	for i, j := range jobs {
		work, err := b.work(ctx, b.key(fmt.Sprintf("job-%d", i)), j)
		if err != nil {
			return a, err
		}
		g.Go(work)
	}
	if err := g.Wait(); err != nil {
		return a, err
	}
	onTime, without, paused := jobs[:2], jobs[2], jobs[3:]
	a.is = keepsLock(onTime, *without, paused)
	a.says = fmt.Sprintf("A job of %v under a lease of %v kept its lock when expire() came every %v. After one pause of %v another client held the lock, and the next expire() answered: printed lock %s; the second listing's %s, or %s if both had called in the same second.",
		jobLength, jobLease, renewal, jobPause, kept(paused[0].told), kept(paused[1].told), kept(paused[2].told))
	a.on = "the loop never being later than the lease. If it is, the printed lock's expire() reports success and extends the other client's lock; the second listing's detects it, unless both got the same whole-second value."
	a.numbers = []reports.Quantity{
		number("longest time between two renewals in the loops that were on time", reports.InMS(max(onTime[0].gap, onTime[1].gap)), "ms"),
		yes("another client got the lock during them", onTime[0].entered || onTime[1].entered),
		yes("another client got the lock without expire()", without.entered),
		yes("another client got the lock after a pause, printed lock", paused[0].entered),
		yes("expire() then reports that the lock was kept, printed lock", paused[0].told),
		yes("another client got the lock after a pause, the second listing's lock", paused[1].entered),
		yes("expire() then reports that the lock was kept, the second listing's lock", paused[1].told),
		yes("the same, both having called in one second", paused[2].told),
	}
	return a, nil
}

func kept(told bool) string {
	if told {
		return `"kept"`
	}
	return `"lost"`
}

// yes returns a quantity that is 1 or 0.
func yes(what string, is bool) reports.Quantity {
	if is {
		return number(what, 1, "(yes)")
	}
	return number(what, 0, "(no)")
}

// work prepares the measurement of one job.
func (b *bench) work(ctx context.Context, key string, j *job) (func() error, error) {
	owner, err := b.locker(ctx, j.lock)
	if err != nil {
		return nil, err
	}
	other, err := b.locker(ctx, j.lock)
	if err != nil {
		return nil, err
	}
	named, ok := owner.(lockimpl.Named)
	if !ok {
		return nil, fmt.Errorf("%s has no expire()", j.lock)
	}
	return func() error {
		var now clock.Real
		// Start at the beginning of a second, so that simultaneous calls fall into the same second.
		now.Sleep(ctx, time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		if _, err := owner.Acquire(ctx, key, lockimpl.Options{TTL: jobLease}); err != nil {
			return err
		}
		end := time.Now().Add(jobLength)
		entered := make(chan error, 1)
		go func() {
			if !j.sameSecond {
				now.Sleep(ctx, jobLease-time.Since(time.Now().Truncate(time.Second)))
			}
			_, err := other.Acquire(ctx, key, lockimpl.Options{TTL: jobLease, Wait: time.Until(end) + time.Second, RetryEvery: shortWait})
			j.entered = err == nil && time.Now().Before(end)
			entered <- err
		}()
		if err := j.renewUntil(ctx, end, func() (bool, error) { return named.Expire(ctx, key, jobLease) }); err != nil {
			return err
		}
		if err := <-entered; err != nil && !errors.Is(err, lockimpl.ErrHeld) {
			return err
		}
		return nil
	}, nil
}

// renewUntil runs the owner's loop.
func (j *job) renewUntil(ctx context.Context, end time.Time, expire func() (bool, error)) error {
	var now clock.Real
	last, paused := time.Now(), j.pause == 0
	for time.Now().Before(end) {
		wait := min(renewal, time.Until(end))
		if !paused {
			wait, paused = j.pause, true
		}
		if err := now.Sleep(ctx, wait); err != nil {
			return err
		}
		if !j.renew {
			continue
		}
		told, err := expire()
		if err != nil {
			return err
		}
		j.gap, last = max(j.gap, time.Since(last)), time.Now()
		j.told = told
		if j.pause > 0 || !told {
			return nil // what follows is not measured
		}
	}
	return nil
}

// keepsLock decides C6 by jobs that were renewed on time, one that was not renewed, and jobs that paused.
func keepsLock(onTime []*job, without job, paused []*job) string {
	if !without.entered {
		return reports.Inconclusive // no client wanted the lock
	}
	for _, j := range onTime {
		switch {
		case j.entered && j.gap < jobLease-renewal:
			return reports.Refuted
		case j.entered || j.gap == 0:
			return reports.Inconclusive // the loop itself was late
		}
	}
	for _, j := range paused {
		if j.entered {
			return reports.Depends
		}
	}
	return reports.Confirmed
}

// crashing returns the flags of runs with crashes.
func crashing(lock, fault string) []string {
	return []string{"--scenario", "mutex", "--lock", lock, "--clients", "4", "--ttl", "1s", "--wait", "500ms", "--duration", "2s", "--fault", fault}
}

// diesBetween measures C9.
func diesBetween(ctx context.Context, b *bench) (a answer, err error) {
	n := b.times(2, 1)
	before, err := b.again(ctx, n, crashing("setnx-expire", "crash before EXPIRE")...)
	if err != nil {
		return a, err
	}
	after, err := b.again(ctx, n, crashing("setnx-expire", "crash after EXPIRE")...)
	if err != nil {
		return a, err
	}
	e, err := b.search(ctx, "--lock", "setnx-expire", "--crashes", "1", "--property", "progress")
	if err != nil {
		return a, err
	}
	stuck, healed := count(before, variant.Lock, variant.Progress), count(after, variant.Lock, variant.Progress)
	a.is = deadlocks(stuck, healed, powerless(before, after))
	a.says = fmt.Sprintf("A client that died between the two commands left the lock stuck for the rest of the run (%v of %d runs, lease 1 s); one that died after EXPIRE did so in %v.",
		stuck.broke, stuck.runs, healed)
	a.numbers = []reports.Quantity{
		number("runs stuck after a crash before EXPIRE", stuck.broke, fmt.Sprintf("of %d", stuck.runs)),
		number("runs stuck after a crash after EXPIRE", healed.broke, fmt.Sprintf("of %d", healed.runs)),
	}
	if e.Counterexample != nil {
		a.numbers = append(a.numbers, number("shortest schedule that leaves it stuck", len(e.Counterexample.Steps), "steps"))
	}
	return a, nil
}

// powerless returns the first reason why one of the runs shows nothing.
func powerless(groups ...[]ran) string {
	for _, rs := range groups {
		for _, r := range rs {
			if why := r.powerless(); why != "" {
				return why
			}
		}
	}
	return ""
}

// deadlocks decides C9 by runs with a crash between the commands and runs with a crash after them.
func deadlocks(between, after tally, powerless string) string {
	switch {
	case powerless != "" || !after.none() || between.undecided():
		return reports.Inconclusive
	case between.broke > 0:
		return reports.Confirmed
	}
	return reports.Refuted
}

// forcedOpen describes a lock after its owner died after INCR.
type forcedOpen struct {
	tries     int  // tries until a persistent client obtained it; 0: never
	stopped   bool // still stuck two leases after a client gave up early
	plain     int  // tries until obtained without a maximum; 0: never
	robberies tally
}

// tryAtMost is the number of tries after which C10 gives up; tooFew is a number of tries that is too small.
const (
	tryAtMost = 20
	tooFew    = 3
)

// countingUp measures C10.
func countingUp(ctx context.Context, b *bench) (a answer, err error) {
	var f forcedOpen
	if f.tries, err = b.triesAfterINCR(ctx, "incr-max", tryAtMost); err != nil {
		return a, err
	}
	if f.plain, err = b.triesAfterINCR(ctx, "incr", tryAtMost); err != nil {
		return a, err
	}
	few, err := b.triesAfterINCR(ctx, "incr-max", tooFew)
	if err != nil {
		return a, err
	}
	c, err := b.client(ctx)
	if err != nil {
		return a, err
	}
	if err := (clock.Real{}).Sleep(ctx, 2*time.Second); err != nil {
		return a, err
	}
	left, err := c.TTL(ctx, lockimpl.Key(b.key(fmt.Sprintf("incr-max-%d", tooFew)))).Result()
	if err != nil {
		return a, err
	}
	f.stopped = few == 0 && left == -1
	rs, err := b.again(ctx, b.times(5, 3), "--scenario", "mutex", "--lock", "incr-max", "--clients", "64", "--duration", "500ms")
	if err != nil {
		return a, err
	}
	f.robberies = count(rs, variant.Lock, variant.MutualExclusion)
	if _, err := b.search(ctx, "--lock", "incr-max", "--clients", "6", "--tries", "1", "--advances", "0", "--property", "mutual-exclusion"); err != nil {
		return a, err
	}
	a.is = neverStuck(f)
	a.says = fmt.Sprintf("After a crash between INCR and EXPIRE the next client obtained the lock at try %d (maximum 5), and without a maximum never. After only %d tries, the key stayed, without expiry. And the maximum takes the lock from live owners, too: in %v runs of 64 clients without a crash two held the lock at once.",
		f.tries, tooFew, f.robberies)
	a.on = "clients trying often enough: the key of a dead owner is deleted only when the count reaches the maximum, so the time depends on the traffic, not on the lease. The cost: a live owner between INCR and EXPIRE loses the lock, too."
	a.numbers = []reports.Quantity{
		number("tries until a dead owner's lock was obtained, with a maximum of 5", f.tries, ""),
		number(fmt.Sprintf("the same without a maximum (0: not within %d tries)", tryAtMost), f.plain, ""),
		yes(fmt.Sprintf("without an expiry 2 s after only %d tries", tooFew), f.stopped),
		number("runs without a crash in which a live owner lost the lock", f.robberies.broke, fmt.Sprintf("of %d", f.robberies.runs)),
	}
	return a, nil
}

// triesAfterINCR returns how many tries a client needs to obtain a lock after its owner
// died between INCR and EXPIRE; 0: more than atMost.
func (b *bench) triesAfterINCR(ctx context.Context, lock string, atMost int) (int, error) {
	key := b.key(fmt.Sprintf("%s-%d", lock, atMost))
	c, err := b.client(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.Incr(ctx, lockimpl.Key(key)).Err(); err != nil {
		return 0, err
	}
	l, err := b.locker(ctx, lock)
	if err != nil {
		return 0, err
	}
	for try := 1; try <= atMost; try++ {
		_, err := l.Acquire(ctx, key, lockimpl.Options{TTL: time.Second})
		if err == nil {
			return try, nil
		}
		if !errors.Is(err, lockimpl.ErrHeld) {
			return 0, err
		}
	}
	return 0, nil
}

// neverStuck decides C10.
func neverStuck(f forcedOpen) string {
	switch {
	case f.plain > 0:
		return reports.Inconclusive // the owner's death does not block the lock
	case f.tries == 0:
		return reports.Refuted
	case f.stopped:
		return reports.Depends
	}
	return reports.Confirmed
}

// oneCommand measures C11.
func oneCommand(ctx context.Context, b *bench) (a answer, err error) {
	var commands [2][]string
	for i, lock := range []string{"set-nx-ex", "setnx-expire"} {
		if commands[i], err = b.commandsOfAcquire(ctx, lock); err != nil {
			return a, err
		}
	}
	args := crashing("set-nx-ex", "crash after SETNX 5% times 20")
	single, err := b.again(ctx, b.times(3, 1), args...)
	if err != nil {
		return a, err
	}
	pair, err := b.again(ctx, 1, crashing("setnx-expire", "crash before EXPIRE")...)
	if err != nil {
		return a, err
	}
	e, err := b.search(ctx, "--lock", "set-nx-ex", "--clients", "3", "--crashes", "2", "--property", "progress")
	if err != nil {
		return a, err
	}
	stuck, control := count(single, variant.Lock, variant.Progress), count(pair, variant.Lock, variant.Progress)
	a.is = cannotDeadlock(len(commands[0]), stuck, control, powerless(single, pair), e.Verdict)
	crashes := int64(0)
	for _, r := range single {
		crashes += r.Faults[0].Fired
	}
	a.says = fmt.Sprintf("An acquisition is %d command (%s; SETNX and EXPIRE: %d). %d clients died right after it and none of %d runs got stuck; a search of every schedule of three clients, two of which may die, found none that does.",
		len(commands[0]), strings.Join(commands[0], ", "), len(commands[1]), crashes, stuck.runs)
	a.numbers = []reports.Quantity{
		number("commands of an acquisition, SET NX EX", len(commands[0]), ""),
		number("commands of an acquisition, SETNX and EXPIRE", len(commands[1]), ""),
		number("crashes right after SET NX EX", crashes, ""),
		number("runs stuck after them", stuck.broke, fmt.Sprintf("of %d", stuck.runs)),
		number("runs stuck after a crash between SETNX and EXPIRE", control.broke, fmt.Sprintf("of %d", control.runs)),
		number("states searched, none of them stuck", e.Stats.States, ""),
	}
	return a, nil
}

// commandsOfAcquire returns the commands that a client sends to acquire a free lock.
func (b *bench) commandsOfAcquire(ctx context.Context, lock string) ([]string, error) {
	var seen spy
	l, err := b.locker(ctx, lock, &seen)
	if err != nil {
		return nil, err
	}
	seen.names = nil // the handshake
	_, err = l.Acquire(ctx, b.key(lock), lockimpl.Options{TTL: time.Second})
	return seen.names, err
}

// cannotDeadlock decides C11 by the commands of an acquisition, runs with crashes, runs that must get stuck, and
// the verdict of a search.
func cannotDeadlock(commands int, stuck, control tally, powerless, searched string) string {
	switch {
	case powerless != "" || !control.all() || stuck.undecided():
		return reports.Inconclusive
	case commands != 1 || stuck.broke > 0 || searched == reports.Violated:
		return reports.Refuted
	case searched != reports.Pass:
		return reports.Inconclusive
	}
	return reports.Confirmed
}

// overrunning returns the flags of runs in which holders outlive their lease.
func overrunning(lock, fault string) []string {
	return []string{"--lock", lock, "--sale", "lua", "--clients", "16", "--stock", "30", "--hold", "30ms", "--ttl", "100ms", "--fault", fault}
}

// anothersLock measures C12.
func anothersLock(ctx context.Context, b *bench) (a answer, err error) {
	const slow, gap = "slow 150ms 20%", "pause 150ms in release 20%"
	n := b.times(2, 1)
	var runs [4][]ran
	for i, args := range [][]string{overrunning("token-del", slow), overrunning("token-get-del", gap), overrunning("lua-release", slow), overrunning("lua-release", gap)} {
		if runs[i], err = b.again(ctx, n, args...); err != nil {
			return a, err
		}
	}
	var searched [3]reports.Exploration
	var shown, replays [2]int
	for i, lock := range []string{"token-del", "token-get-del", "lua-release"} {
		if searched[i], err = b.search(ctx, "--lock", lock, "--property", "owner-only-release"); err != nil {
			return a, err
		}
		if i < len(shown) {
			if shown[i], replays[i], err = b.replayed(ctx, searched[i]); err != nil {
				return a, err
			}
		}
	}
	del := count(runs[0], variant.Lock, variant.OwnerOnlyRelease)
	getDel := count(runs[1], variant.Lock, variant.MutualExclusion)
	script := count(append(runs[2], runs[3]...), variant.Lock, variant.OwnerOnlyRelease)
	inside := count(append(runs[2], runs[3]...), variant.Lock, variant.MutualExclusion)
	script.broke = max(script.broke, inside.broke)
	a.is = removesAnothers(del, getDel, script, powerless(runs[:]...), searched)
	a.says = fmt.Sprintf("With holders that outlive their lease, DEL removed another's lock in %v runs; GET, compare and DEL, with a pause between them, admitted a second holder in %v; the script did neither in %d runs, nor in any schedule of a search, which finds both other violations in %d and %d steps.",
		del, getDel, script.runs, steps(searched[0]), steps(searched[1]))
	a.numbers = []reports.Quantity{
		number("runs in which DEL removed another's lock", del.broke, fmt.Sprintf("of %d", del.runs)),
		number("runs in which GET, DEL admitted a second holder", getDel.broke, fmt.Sprintf("of %d", getDel.runs)),
		number("runs in which the script did either", script.broke, fmt.Sprintf("of %d", script.runs)),
		number("shortest schedule for DEL", steps(searched[0]), "steps"),
		number("times confirmed on a real server", shown[0], fmt.Sprintf("of %d", replays[0])),
		number("shortest schedule for GET, DEL", steps(searched[1]), "steps"),
		number("times confirmed on a real server, too", shown[1], fmt.Sprintf("of %d", replays[1])),
		number("states searched for the script, none with a violation", searched[2].Stats.States, ""),
	}
	return a, nil
}

// steps returns the length of a search's counterexample; 0: there is none.
func steps(e reports.Exploration) int {
	if e.Counterexample == nil {
		return 0
	}
	return len(e.Counterexample.Steps)
}

// removesAnothers decides C12 by runs and searches with DEL, with GET and DEL, and with the script.
func removesAnothers(del, getDel, script tally, powerless string, searched [3]reports.Exploration) string {
	switch {
	case powerless != "" || script.undecided():
		return reports.Inconclusive
	case script.broke > 0 || searched[2].Verdict == reports.Violated:
		return reports.Refuted
	case searched[2].Verdict != reports.Pass:
		return reports.Inconclusive
	case (del.broke > 0 || steps(searched[0]) > 0) && (getDel.broke > 0 || steps(searched[1]) > 0):
		return reports.Confirmed
	case unseen(del, searched[0]) || unseen(getDel, searched[1]):
		return reports.Inconclusive
	}
	return reports.Refuted
}

// unseen reports whether neither runs nor a search show that a property is broken, or that it is kept.
func unseen(in tally, searched reports.Exploration) bool {
	return in.broke == 0 && steps(searched) == 0 && !in.none() && searched.Verdict != reports.Pass
}

// redlockLease is the lease of C18.
const redlockLease = time.Second

// The ways in which C18 removes masters, and for how long: a stopped master does not answer, but its connections
// stay open.
var gone = []struct{ name, sentence string }{
	{"killed", "kill node %d at 300ms for good"},
	{"stopped", "freeze 4s node %d at 300ms"},
}

// without returns the flags of a run of C18 without these masters.
func without(sentence string, nodes ...int) []string {
	args := []string{"--scenario", "mutex", "--lock", "redlock", "--topology", "masters:5", "--clients", "8", "--ttl", redlockLease.String(), "--timeout", "200ms", "--duration", "3s"}
	for _, n := range nodes {
		args = append(args, "--fault", fmt.Sprintf(sentence, n))
	}
	return args
}

// minorityDown measures C18.
func minorityDown(ctx context.Context, b *bench) (a answer, err error) {
	if b.spec.IsAddress() {
		return answer{is: reports.Inconclusive, says: "It needs five masters that may be killed: --target process."}, nil
	}
	answers := map[string]string{}
	for _, way := range gone {
		minority, err := b.again(ctx, b.times(2, 1), without(way.sentence, 4, 5)...)
		if err != nil {
			return a, err
		}
		majority, err := b.again(ctx, 1, without(way.sentence, 3, 4, 5)...)
		if err != nil {
			return a, err
		}
		var grants [2][]int
		for i, rs := range [][]ran{minority, majority} {
			for _, r := range rs {
				n, err := r.grantsMeanwhile(redlockLease)
				if err != nil {
					return a, err
				}
				grants[i] = append(grants[i], n)
			}
		}
		bad := count(minority, variant.Lock, variant.MutualExclusion)
		bad.broke = max(bad.broke, count(minority, variant.Lock, variant.Progress).broke)
		answers[way.name] = keepsWorking(bad, slices.Min(grants[0]), slices.Max(grants[1]), powerless(minority, majority))
		a.says += fmt.Sprintf("With two of five masters %s the lock was still granted (%s times a run), and to one client at a time (%d of %d runs); with three of five %s, %s times once the last lease was over. ",
			way.name, ranged(grants[0]), bad.runs-bad.broke, bad.runs, way.name, ranged(grants[1]))
		a.numbers = append(a.numbers,
			number("runs with two of five "+way.name+" that stuck or had two holders", bad.broke, fmt.Sprintf("of %d", bad.runs)),
			repeated("grants with two of five "+way.name+", from one lease after the failure", floats(grants[0]), "a run"),
			repeated("grants with three of five "+way.name+", from one lease after the failure", floats(grants[1]), "a run"))
	}
	a.says = strings.TrimSpace(a.says)
	a.is, a.plain = bothWays(answers["killed"], answers["stopped"]), true
	a.on = "how the masters fail: killed or stopped."
	return a, nil
}

// bothWays combines the answers of two measurements of a claim: the answer that both give, or that it depends.
func bothWays(a, b string) string {
	switch {
	case a == b:
		return a
	case a == reports.Inconclusive || b == reports.Inconclusive:
		return reports.Inconclusive
	}
	return reports.Depends
}

// keepsWorking decides C18 by the runs with a minority of masters down that got stuck or had two holders, and by
// the grants, after a lease, with a minority and with a majority down.
func keepsWorking(minority tally, grants, without int, powerless string) string {
	switch {
	case powerless != "" || without > 0 || minority.runs == 0:
		return reports.Inconclusive // the lock works without a majority
	case minority.broke > 0 || grants == 0:
		return reports.Refuted
	case minority.undecided():
		return reports.Inconclusive
	}
	return reports.Confirmed
}
