package explore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"oversell/explore/replay"
	"oversell/reports"
)

// ErrDiverged reports that a schedule took another course on a real server.
var ErrDiverged = replay.ErrDiverged

// Replay drives the schedule of a counterexample against real servers, which must
// be empty: the same code, stopped before every command, and each command sent when
// its turn comes. Every answer is compared with the search's. Points in time are those
// of the servers' clock: they may differ by a second, and so may what is left of an
// expiry, and the numbers above zero in the answer of a script that asks for it. Other
// answers that depend on the server's clock are not compared. Time passes for real.
//
// It returns the promise that was broken there, judged by the servers' answers: nil means that the schedule was
// completed and nothing was broken. ErrDiverged says where it diverged.
func Replay(ctx context.Context, c Config, cx *reports.Counterexample, servers []*redis.Options) (*reports.Property, error) {
	if cx != nil && cx.Repeat {
		c.Run.Repeat = 1
	}
	if err := c.Complete(); err != nil {
		return nil, err
	}
	if c.System != nil {
		defer c.System.CloseSearches()
	}
	if len(servers) < c.Masters {
		return nil, fmt.Errorf("%w: the schedule needs %d servers", ErrUsage, c.Masters)
	}
	return replay.Drive(ctx, replay.Search{Run: c.Run, Bounds: c.Bounds, Start: c.execution}, cx, servers[:c.Masters])
}
