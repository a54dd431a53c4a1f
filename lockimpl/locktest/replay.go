package locktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/explore"
	"oversell/reports"
	"oversell/reports/text"
	"oversell/server"
)

// Replay drives the schedule of a counterexample that oversell explore found against
// redis-server children of its own, command by command, and fails as long as the
// schedule breaks its promise there. The trace is what explore wrote to --out or, by
// --json, to its standard output; of several searches the first counterexample counts.
// Tests that call this are written by oversell explore --emit-test.
//
// The test passes when the code goes another way, and when it goes the same way and
// nothing is broken: that schedule is no bug any more. Whether another one is, only a new
// search tells. It is skipped where no redis-server is installed, and fails there if
// OVERSELL_REQUIRE_ALL=1.
func Replay(t *testing.T, trace []byte) {
	t.Helper()
	e, err := counterexampleIn(trace)
	if err != nil {
		t.Fatal(err)
	}
	topology := "single"
	if e.Masters > 1 {
		topology = fmt.Sprintf("masters:%d", e.Masters)
	}
	report(t, func() (string, error) { return replay(t.Context(), e, Process(topology)(t)) })
}

// replay says why the schedule breaks nothing any more; the error is errBroken if it
// does.
func replay(ctx context.Context, e reports.Exploration, servers *server.Target) (string, error) {
	c, err := explore.ConfigOf(e)
	if err != nil {
		return "", err
	}
	var options []*redis.Options
	for node := range servers.Nodes() {
		options = append(options, servers.Options(node, server.ConnOptions{}))
	}
	cx := e.Counterexample
	broken, err := explore.Replay(ctx, c, cx, options)
	switch {
	case errors.Is(err, explore.ErrDiverged):
		return fmt.Sprintf("the code does not go the way any more on which it broke %s, so that bug is gone; whether there is another, a new search tells (%v)", cx.Property, err), nil
	case err != nil:
		return "", fmt.Errorf("replay: %w", err)
	case broken == nil:
		return fmt.Sprintf("the code still goes the way on which it broke %s, and nothing is broken there now, so that bug is gone; whether there is another, a new search tells", cx.Property), nil
	}
	var b strings.Builder
	if err := (text.Terminal{W: &b}).Exploration(e); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%w on redis-server %s: %s\n%s", errBroken, servers.ServerVersion, broken.Why, &b)
}

// counterexampleIn is the first search of a trace that found one.
func counterexampleIn(trace []byte) (reports.Exploration, error) {
	var either struct {
		reports.Exploration
		Explorations []reports.Exploration `json:"explorations"`
	}
	if err := json.Unmarshal(trace, &either); err != nil {
		return either.Exploration, fmt.Errorf("the trace is none of oversell explore: %w", err)
	}
	if either.Schema != reports.ExplorationsSchema {
		return either.Exploration, nil // and if it is no exploration, ConfigOf says so
	}
	for _, e := range either.Explorations {
		if e.Counterexample != nil {
			return e, nil
		}
	}
	return reports.Exploration{}, errors.New("none of the searches in the trace found a counterexample")
}
