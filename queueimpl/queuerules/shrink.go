package queuerules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
)

// The limits of the search for a shorter walk.
const (
	shrinksFor   = 2 * time.Second
	mostReplays  = 400
	reproduced   = 3  // further attempts to reproduce a finding
	mostReported = 16 // lines of a history
)

// shrunk repeats a walk with fewer and fewer calls as long as it finds the same promise broken (delta debugging), and returns the finding with
// the calls that are left. It returns nil if the finding cannot be reproduced.
func (w *walk) shrunk(ctx context.Context, found *suitetest.Breach) error {
	best, breach := w, found
	end := time.Now().Add(shrinksFor)
	replays := 0
	try := func(p plan, steps []step) bool {
		replays++
		n := w.newWalk(p)
		b := n.judged(n.again(ctx, slices.Clone(steps)))
		if b == nil || b.Promise != found.Promise {
			return false
		}
		best, breach = n, b
		return true
	}
	for n := 0; !try(w.plan, w.steps); n++ {
		if n == reproduced {
			return nil
		}
	}
	more := func() bool { return replays < mostReplays && time.Now().Before(end) && ctx.Err() == nil }
	for size := len(best.steps) / 2; size > 0 && more(); {
		if !leaveOut(best.plan, func() []step { return best.steps }, size, try, more) || size > 1 {
			size /= 2
		}
	}
	w.simpler(func() *walk { return best }, try, more)
	return best.report(breach)
}

// leaveOut repeats the walk without size steps in a row, for each place in it, and reports whether any could be left out.
func leaveOut(p plan, steps func() []step, size int, try func(plan, []step) bool, more func() bool) (shorter bool) {
	for at := 0; at < len(steps()) && more(); {
		now := steps()
		if try(p, slices.Delete(slices.Clone(now), at, min(at+size, len(now)))) {
			shorter = true
		} else {
			at += size
		}
	}
	return shorter
}

// simpler tries the walk with one client, with one queue, and with fewer ids in each call.
func (all *walks) simpler(best func() *walk, try func(plan, []step) bool, more func() bool) {
	one := best().plan
	one.options = one.options[:1]
	alone := slices.Clone(best().steps)
	for i := range alone {
		alone[i].client = 0
	}
	if more() {
		try(one, alone)
	}
	one = best().plan
	one.queues = 1
	if more() {
		try(one, best().steps)
	}
	for i := 0; i < len(best().steps) && more(); i++ {
		for n := len(best().steps[i].ids) - 1; n >= 0 && len(best().steps) > i && len(best().steps[i].ids) > 1 && more(); n-- {
			steps := slices.Clone(best().steps)
			steps[i].ids = slices.Delete(slices.Clone(steps[i].ids), n, n+1)
			try(best().plan, steps)
		}
	}
}

// report adds the history of calls to a finding.
func (w *walk) report(found *suitetest.Breach) error {
	var text strings.Builder
	log := w.log
	if n := len(log) - mostReported; n > 0 {
		fmt.Fprintf(&text, "\n  (%d calls before)", n)
		log = log[n:]
	}
	for _, line := range log {
		fmt.Fprintf(&text, "\n  %s", line)
	}
	found.How = fmt.Errorf("%w. %s. These calls were made, each with its time (OVERSELL_SEED=%d tries the walk first that found this):%s", found.How, w.about(), w.seed, text.String())
	return found
}

// about describes the options of the clients.
func (w *walk) about() string {
	var all []string
	first := w.options[0]
	if !slices.ContainsFunc(w.options, func(o queueimpl.Options) bool { return o.Visibility != first.Visibility }) {
		if first.Visibility > 0 {
			all = append(all, fmt.Sprintf("the visibility timeout is %v", first.Visibility))
		}
	} else {
		for i, o := range w.options {
			all = append(all, fmt.Sprintf("client %d has a visibility timeout of %v", i+1, o.Visibility))
		}
	}
	if first.MaxAttempts > 0 {
		all = append(all, fmt.Sprintf("Options.MaxAttempts is %d", first.MaxAttempts))
	}
	if first.Overwrite {
		all = append(all, "Options.Overwrite is set")
	}
	if len(all) == 0 {
		return "The clients have no options"
	}
	text := strings.Join(all, ", ")
	return strings.ToUpper(text[:1]) + text[1:]
}
