package locksearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/explore"
	"oversell/reports"
	"oversell/reports/text"
	"oversell/server"
)

// Replay drives the schedule of the first counterexample in a trace against servers of the
// topology that it needs, and says why it breaks nothing any more. The error says what it still breaks, or why it
// cannot be replayed.
func Replay(ctx context.Context, trace []byte, open func(topology string) *server.Target) (string, error) {
	e, err := counterexampleIn(trace)
	if err != nil {
		return "", err
	}
	topology := "single"
	if e.Masters > 1 {
		topology = fmt.Sprintf("masters:%d", e.Masters)
	}
	return replay(ctx, e, open(topology))
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
		return fmt.Sprintf("the code no longer follows the schedule that broke %s (%v); other schedules may break it: search again", cx.Property, err), nil
	case err != nil:
		return "", fmt.Errorf("replay: %w", err)
	case broken == nil:
		return fmt.Sprintf("the code follows the schedule that broke %s, and nothing is broken now; other schedules may break it: search again", cx.Property), nil
	}
	var b strings.Builder
	if err := (text.Terminal{W: &b}).Exploration(e); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%w on redis-server %s: %s\n%s", errBroken, servers.ServerVersion, broken.Why, &b)
}

// counterexampleIn returns the first search of a trace that found a counterexample.
func counterexampleIn(trace []byte) (reports.Exploration, error) {
	var either struct {
		reports.Exploration
		Explorations []reports.Exploration `json:"explorations"`
	}
	if err := json.Unmarshal(trace, &either); err != nil {
		return either.Exploration, fmt.Errorf("this is not a trace of oversell explore: %w", err)
	}
	if either.Schema != reports.ExplorationsSchema {
		return either.Exploration, nil // if it is not an exploration, ConfigOf says so
	}
	for _, e := range either.Explorations {
		if e.Counterexample != nil {
			return e, nil
		}
	}
	return reports.Exploration{}, errors.New("no search in the trace found a counterexample")
}
