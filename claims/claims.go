// Package claims checks claims of published texts by measurements on a real Redis.
//
// A claim is confirmed, refuted, or depends on a condition; if it could not be decided it is inconclusive, which is
// no answer. Each claim has a declared answer and a measurement that must give the same answer: [All] lists them.
//
// A measurement that shows that something does not happen has a control, in which it does happen; without the
// control it would prove nothing. A measurement that compares durations alternates between the contenders, several
// times, and decides by their ratio, with a tolerance for a busy machine. A small function of the numbers alone
// decides, and can give every answer.
package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"oversell/campaign"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/server"
)

// Claim is one statement of the published texts.
type Claim struct {
	// Number is its identifier, like "C14".
	Number string
	// Words is the claim; From names the texts that make it.
	Words, From string
	// Declared is the expected answer: reports.Confirmed, Refuted or Depends.
	Declared string
	// DeclaredToo is a second expected answer, for servers that behave differently.
	DeclaredToo string
	// Method says how the claim is measured; NotMeasured says which part of it is not.
	Method, NotMeasured string
	// alone means that durations are measured, so nothing else may run.
	alone   bool
	measure func(context.Context, *bench) (answer, error)
}

// answer is the result of a measurement.
type answer struct {
	is      string // reports.Confirmed, Refuted, Depends or Inconclusive
	says    string // in a sentence or two, with the numbers; used if this is the declared answer
	plain   bool   // says draws no conclusion, and fits every answer
	on      string // what it depends on
	numbers []reports.Quantity
	also    string // what was not measured this time
}

// Options select claims and a target.
type Options struct {
	// Numbers are the claims to measure; none: all.
	Numbers []string
	// Quick makes fewer repetitions.
	Quick bool
	// Target is where to measure; empty: a redis-server started for each claim.
	Target server.Spec
	// Dir holds the histories; it is created if it does not exist.
	Dir string
	// Opened, unless nil, is called with servers that already run.
	Opened func(*server.Target)
}

// Plan is a selection of claims to measure.
type Plan struct {
	Options
	claims []Claim
}

// NewPlan finds the claims. It refuses those that cannot be measured before anything is started.
func NewPlan(ctx context.Context, o Options) (Plan, error) {
	o.Target.Target = cmp.Or(o.Target.Target, string(server.Process))
	p := Plan{Options: o, claims: All}
	if len(o.Numbers) > 0 {
		p.claims = nil
		for _, n := range o.Numbers {
			c, ok := find(n)
			if !ok {
				return Plan{}, fmt.Errorf("claim %q is not known: they are C1 to C%d", n, len(All))
			}
			if !slices.ContainsFunc(p.claims, func(x Claim) bool { return x.Number == c.Number }) {
				p.claims = append(p.claims, c)
			}
		}
		slices.SortFunc(p.claims, func(a, b Claim) int { return place(a) - place(b) })
	}
	if o.Target.Target == string(server.Embedded) {
		return Plan{}, errors.New("claims are about Redis, not the emulation: use --target process, container or redis://host:port")
	}
	return p, o.Target.Validate(ctx)
}

// fresh returns an error for a directory that holds an earlier measurement.
func (p Plan) fresh() error {
	if err := campaign.CheckDirectory(p.Dir); err != nil {
		return err
	}
	for _, c := range p.claims {
		if path := filepath.Join(p.Dir, c.Number); campaign.Exists(path) {
			return fmt.Errorf("%w: %s holds an earlier measurement: choose another --out", campaign.ErrUsed, path)
		}
	}
	return nil
}

// Claims returns the number of claims to measure.
func (p Plan) Claims() int { return len(p.claims) }

// Takes estimates how long the measurements take.
func (p Plan) Takes() time.Duration {
	each := 6 * time.Second
	if p.Quick {
		each = 2 * time.Second
	}
	return time.Duration(len(p.claims)) * each
}

// find finds a claim by its number: C14, c14 or 14.
func find(number string) (Claim, bool) {
	number = strings.ToUpper(number)
	if _, err := strconv.Atoi(number); err == nil {
		number = "C" + number
	}
	for _, c := range All {
		if c.Number == number {
			return c, true
		}
	}
	return Claim{}, false
}

// place returns the index of the claim in All.
func place(c Claim) int {
	return slices.IndexFunc(All, func(x Claim) bool { return x.Number == c.Number })
}

// together is how many measurements without durations run concurrently: they mostly wait for leases to end.
const together = 4

// Run measures the claims and reports each answer as it comes, from one goroutine at a time. Claims about durations
// are measured last, one by one. When ctx ends, Run returns the answers so far. An error means that there is no
// server to measure, or that the histories cannot be written; campaign.ErrUsed, that they would overwrite earlier
// ones.
func Run(ctx context.Context, p Plan, done func(reports.Claim)) (_ reports.Claims, err error) {
	all := reports.Claims{
		Schema: reports.ClaimsSchema, Target: kind(p.Target), Cores: runtime.GOMAXPROCS(0),
		Measured: time.Now(), Quick: p.Quick, Claims: []reports.Claim{},
	}
	if err := p.fresh(); err != nil {
		return all, err
	}
	r := &running{plan: p, all: &all, done: done}
	if p.Target.IsAddress() {
		if r.given, err = server.Open(ctx, p.Target); err != nil {
			return all, campaign.Unstopped(ctx, err)
		}
		defer func() { err = errors.Join(err, r.given.Close()) }()
		r.given.Log(p.Dir)
		if p.Opened != nil {
			p.Opened(r.given)
		}
	}
	if err := os.MkdirAll(p.Dir, 0o777); err != nil {
		return all, fmt.Errorf("make the directory for the histories: %w", err)
	}
	var alone, rest []Claim
	for _, c := range p.claims {
		if c.alone {
			alone = append(alone, c)
		} else {
			rest = append(rest, c)
		}
	}
	err = r.each(ctx, together, rest)
	if err == nil {
		err = r.each(ctx, 1, alone)
	}
	slices.SortFunc(all.Claims, func(a, b reports.Claim) int {
		return strings.Compare(fmt.Sprintf("%4s", a.Number), fmt.Sprintf("%4s", b.Number))
	})
	all.ElapsedMS = reports.InMS(time.Since(all.Measured))
	all.Interrupted = len(all.Claims) < len(p.claims)
	return all, campaign.Unstopped(ctx, err)
}

// kind describes the target without its address.
func kind(s server.Spec) string {
	if s.IsAddress() {
		return string(server.Address)
	}
	return s.Target
}

// running is a measurement of several claims in progress.
type running struct {
	plan  Plan
	done  func(reports.Claim)
	given *server.Target // servers that already run; nil if there are none

	mu  sync.Mutex
	all *reports.Claims
}

// each measures claims, several concurrently, until ctx ends or there is no server.
func (r *running) each(ctx context.Context, workers int, cs []Claim) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Claim)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for c := range next {
				if err := r.one(ctx, c); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, c := range cs {
		if ctx.Err() != nil {
			break
		}
		select {
		case next <- c:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	if err := context.Cause(ctx); hopeless(err) {
		return err
	}
	return nil
}

// hopeless reports whether no other claim can be measured after an error: there is no server, or the disk is full.
func hopeless(err error) bool {
	return errors.Is(err, server.ErrEnvironment) || errors.Is(err, syscall.ENOSPC)
}

// one measures a claim. An error makes it inconclusive, unless there is no server at all.
func (r *running) one(ctx context.Context, c Claim) error {
	b := newBench(r.plan.Target, r.given, filepath.Join(r.plan.Dir, c.Number), r.plan.Quick)
	b.done("oversell claims " + c.Number)
	start := time.Now()
	a, err := c.measure(ctx, b)
	err = errors.Join(err, b.close())
	switch {
	case ctx.Err() != nil:
		return nil // an incomplete answer does not count
	case hopeless(err):
		return err
	case err != nil:
		a = answer{is: reports.Inconclusive, says: "It could not be measured: " + oneLine(err) + "."}
	case a.is != c.Declared && len(a.numbers) > 0 && !a.plain:
		a.says = bare(a.numbers) // the text was written for the declared answer
	}
	found := c.report(a, b, time.Since(start))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Claims = append(r.all.Claims, found)
	for _, v := range b.versions {
		if !slices.Contains(r.all.ServerVersions, v) {
			r.all.ServerVersions = append(r.all.ServerVersions, v)
		}
	}
	r.done(found)
	return nil
}

// bare lists the numbers without drawing a conclusion.
func bare(numbers []reports.Quantity) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = n.Name + ": " + n.Told()
	}
	return strings.Join(parts, "; ") + "."
}

// oneLine formats an error without line breaks and final full stop.
func oneLine(err error) string {
	return strings.TrimRight(phrase.OneLine(err.Error()), ".")
}

// report returns the claim with its answer.
func (c Claim) report(a answer, b *bench, took time.Duration) reports.Claim {
	numbers := a.numbers
	if numbers == nil {
		numbers = []reports.Quantity{}
	}
	return reports.Claim{
		Number: c.Number, Words: c.Words, From: c.From,
		Answer: a.is, Declared: c.Declared, DeclaredToo: c.DeclaredToo, Sentence: a.says, DependsOn: a.on, Numbers: numbers,
		Method: c.Method, NotMeasured: strings.TrimSpace(c.NotMeasured + " " + a.also),
		ServerVersion: strings.Join(b.versions, ", "),
		Repeat:        b.commands,
		ElapsedMS:     reports.InMS(took),
	}
}
