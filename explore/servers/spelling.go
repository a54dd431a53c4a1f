package servers

import (
	"fmt"
	"slices"
	"sync/atomic"

	"oversell/explore/table"
	"oversell/internal/names"
	"oversell/internal/redismodel"
)

// spelling executes the commands once more, with the names spelled otherwise.
type spelling struct {
	off    bool
	failed atomic.Pointer[string] // the first call that depended on how names are spelled
	mapped *table.Memo[respelled, []*redismodel.State]
}

type respelled struct {
	servers uint32
	seed    uint64
}

func (k respelled) Hash() uint64 { return table.Spread(uint64(k.servers), k.seed) }

// spell returns the servers' states with the names spelled otherwise.
func (s *Servers) spell(k respelled) []*redismodel.State {
	before := s.states.Get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(func(text string) string { return names.Other(k.seed, text) }, func(conn int) int { return conn })
	}
	return nodes
}

// check compares the effect of a call with its effect when names are spelled otherwise.
func (s *Servers) check(k callAt, c Call, after *redismodel.State, reply []byte, info redismodel.Info) {
	if s.spelling.off || s.spelling.failed.Load() != nil {
		return
	}
	for seed := range uint64(names.Others) {
		if why := s.checkWith(seed+1, k, c, after, reply, info); why != "" {
			s.spelling.failed.CompareAndSwap(nil, &why)
			return
		}
	}
}

// checkWith is check with one other spelling; it returns the difference.
func (s *Servers) checkWith(seed uint64, k callAt, c Call, after *redismodel.State, reply []byte, info redismodel.Info) (why string) {
	other := func(text string) string { return names.Other(seed, text) }
	d := c
	d.Commands = make([][]string, len(c.Commands))
	for i, cmd := range c.Commands {
		d.Commands[i] = make([]string, len(cmd))
		for j, arg := range cmd {
			d.Commands[i][j] = other(arg)
		}
	}
	before := s.spelling.mapped.Of(respelled{k.servers, seed})
	then, answer, about := s.Do(before[c.Node], k.now, d)
	want := after.Map(other, func(conn int) int { return conn })
	same := about.Unknown == "" && about.Clock == info.Clock && then.Key() == want.Key()
	if same && slices.Contains(alternatives(names.MapReplies(string(reply), other), info), string(answer)) {
		return ""
	}
	return fmt.Sprintf("%q answers %q, and with other names %q", c.Commands, reply, answer)
}

// SpellingShows returns a call that has another result when names are spelled otherwise; "": none has been found.
func (s *Servers) SpellingShows() string {
	if why := s.spelling.failed.Load(); why != nil {
		return *why
	}
	return ""
}
