package golocks

import (
	"testing"

	"oversell/lockimpl/locktest"
	"oversell/reports"
)

func TestRedislock(t *testing.T) {
	locktest.ExploreBubble(t, Redislock, reports.Bounds{Clients: 2, Tries: 2, Advances: 1, Lost: -1, Late: -1})
}

func TestRedislockWhoseAnswersAreLost(t *testing.T) {
	locktest.ExploreBubble(t, Redislock, reports.Bounds{Clients: 2, Tries: 1, Advances: 1, Lost: 1, Late: 1})
}

func TestRedsync(t *testing.T) {
	locktest.ExploreBubble(t, Redsync, reports.Bounds{Clients: 2, Tries: 2, Advances: 1, Lost: -1, Late: -1})
}
