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
	failed atomic.Pointer[shown] // the first thing that depended on how names are spelled
	checks atomic.Uint64
	mapped *table.Memo[respelled, []*redismodel.State]
}

// shown is what showed in a spelling.
type shown struct {
	seed uint64
	why  string
}

type respelled struct {
	servers uint32
	seed    uint64
}

func (k respelled) Hash() uint64 { return table.Spread(uint64(k.servers), k.seed) }

// mostSpellings is how many pairs of spellings states take turns with. The calls from one state share theirs.
const mostSpellings = 64

// wellChecked is the number of calls, from the first, that are executed with four times as many other spellings. A script that
// compares names by one letter, or by one letter of a hash, takes only some of them for each other.
const wellChecked = 1000

// spell is what the servers hold, with the names spelled otherwise.
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
	first, others := uint64(k.servers%mostSpellings)*names.Others+1, uint64(names.Others)
	if s.spelling.checks.Add(1) <= wellChecked {
		others *= 4
	}
	for i := range others {
		if why := s.checkWith(first+i, k, c, after, reply, info); why != "" {
			s.spelling.failed.CompareAndSwap(nil, &shown{first + i, why})
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
	answered := slices.Contains(alternatives(names.MapReplies(string(reply), other), info), string(answer))
	switch {
	case same && answered:
		return ""
	case answered:
		return fmt.Sprintf("%q has another effect on the data with other names", c.Commands)
	}
	return fmt.Sprintf("%q answers %q, and with other names %q", c.Commands, reply, answer)
}

// SpellingShows returns a call that has another result when names are spelled otherwise, and the seed of that spelling;
// why is empty if none has been found.
func (s *Servers) SpellingShows() (why string, seed uint64) {
	if f := s.spelling.failed.Load(); f != nil {
		return f.why, f.seed
	}
	return "", 0
}
