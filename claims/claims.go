// Package claims answers the claims of the source documents by measurements on a
// real Redis.
//
// A claim is confirmed, refuted, or depends on something; what could not be decided
// is inconclusive, and counts as no answer. Each claim has a declared answer, what
// this project says, and a measurement that must come to the same: [All] lists them.
//
// A measurement that is to show that something does not happen has a control, in
// which the same thing does; without the control it would prove nothing. One that
// compares times takes them in turns, several times, and decides by their ratio, with
// room for what a busy machine does. What decides is a small function of the numbers
// alone, which can say yes and no.
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

// Claim is one statement of the documents.
type Claim struct {
	// Number is its name, like "C14".
	Number string
	// Words are the claim, and From the texts that make it.
	Words, From string
	// Declared is the answer that this project gives: reports.Confirmed, Refuted or
	// Depends.
	Declared string
	// DeclaredToo is another, of servers that behave in another way.
	DeclaredToo string
	// Method says how the claim is measured, and NotMeasured which part of it is not.
	Method, NotMeasured string
	// alone says that the measurement takes times, so that nothing else may run.
	alone   bool
	measure func(context.Context, *bench) (answer, error)
}

// answer is what a measurement came to.
type answer struct {
	is      string // reports.Confirmed, Refuted, Depends or Inconclusive
	says    string // in a sentence or two, with the numbers; used if this is the declared answer
	plain   bool   // says draws no conclusion, and fits every answer
	on      string // what it depends on
	numbers []reports.Quantity
	also    string // was not measured this time
}

// Options say what to measure, and where.
type Options struct {
	// Numbers are those of the claims to measure; none: all.
	Numbers []string
	// Quick makes fewer repetitions.
	Quick bool
	// Target is where; empty: a redis-server that is started for each claim.
	Target server.Spec
	// Dir is where histories go; it is made if need be.
	Dir string
	// Opened, unless nil, is told of servers that are running already.
	Opened func(*server.Target)
}

// Plan says which claims to measure.
type Plan struct {
	Options
	claims []Claim
}

// NewPlan finds the claims, and refuses what cannot be measured before anything is
// started.
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
		return Plan{}, errors.New("claims are about Redis itself, not the emulation: use --target process, container or redis://host:port")
	}
	return p, o.Target.Validate(ctx)
}

// fresh refuses a directory that holds the histories of an earlier measurement.
func (p Plan) fresh() error {
	if err := campaign.Directory(p.Dir); err != nil {
		return err
	}
	for _, c := range p.claims {
		if path := filepath.Join(p.Dir, c.Number); exists(path) {
			return fmt.Errorf("%w: %s holds an earlier measurement: choose another --out", campaign.ErrUsed, path)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Claims is how many claims are to be measured.
func (p Plan) Claims() int { return len(p.claims) }

// Takes is about how long the measurements take.
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

// place is where the claim stands in All.
func place(c Claim) int {
	return slices.IndexFunc(All, func(x Claim) bool { return x.Number == c.Number })
}

// together is how many measurements that take no times run at once: they wait for
// leases to end more than they work.
const together = 4

// Run measures the claims and reports each answer as it comes, from one goroutine at a
// time. Claims about durations are measured last, one by one. When ctx ends, what has
// been answered by then is the result. An error means that there is no server to
// measure, or nowhere to put the histories; campaign.ErrUsed, that they would
// overwrite earlier ones.
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
	all.ElapsedMS = millis(time.Since(all.Measured))
	all.Interrupted = len(all.Claims) < len(p.claims)
	return all, campaign.Unstopped(ctx, err)
}

// kind says where, without an address.
func kind(s server.Spec) string {
	if s.IsAddress() {
		return string(server.Address)
	}
	return s.Target
}

// running is a measuring of several claims under way.
type running struct {
	plan  Plan
	done  func(reports.Claim)
	given *server.Target // servers that are running already; nil if there are none

	mu  sync.Mutex
	all *reports.Claims
}

// each measures claims, so many at once, until ctx ends or there is no server.
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

// hopeless tells an error after which no other claim can be measured: there is no server,
// or the disk is full.
func hopeless(err error) bool {
	return errors.Is(err, server.ErrEnvironment) || errors.Is(err, syscall.ENOSPC)
}

// one measures a claim. What fails makes it inconclusive, unless there is no server at
// all.
func (r *running) one(ctx context.Context, c Claim) error {
	b := newBench(r.plan.Target, r.given, filepath.Join(r.plan.Dir, c.Number), r.plan.Quick)
	b.done("oversell claims " + c.Number)
	start := time.Now()
	a, err := c.measure(ctx, b)
	err = errors.Join(err, b.close())
	switch {
	case ctx.Err() != nil:
		return nil // an incomplete answer is no answer
	case hopeless(err):
		return err
	case err != nil:
		a = answer{is: reports.Inconclusive, says: "It could not be measured: " + oneLine(err) + "."}
	case a.is != c.Declared && len(a.numbers) > 0 && !a.plain:
		a.says = bare(a.numbers) // the words were written for the declared answer
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

// bare are the numbers in a sentence that draws no conclusion.
func bare(numbers []reports.Quantity) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = n.Name + ": " + n.Told()
	}
	return strings.Join(parts, "; ") + "."
}

// oneLine is an error without line breaks and the full stop.
func oneLine(err error) string {
	return strings.TrimRight(phrase.OneLine(err.Error()), ".")
}

// report is the claim with its answer.
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
		ElapsedMS:     millis(took),
	}
}
