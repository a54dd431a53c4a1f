package explore

import (
	"slices"
	"time"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/redismodel"
)

// lockKeys returns the keys that hold a lock: those that a client changes both by Acquire and by
// Release or, if there are none, those that Acquire sets with an expiry. They are found by running
// one client alone. Keys with the client's own names in them do not count. clocked reports whether
// the lock's commands depend on the servers' clocks.
func lockKeys(c Config, scripts *coro.Scripts, naming namer) (all []string, clocked bool) {
	if c.Run.Lock.New == nil {
		return nil, false
	}
	s := newServers(Epoch, nil, scripts, naming)
	c.Run.Hold = 0                         // whether it can be extended does not matter here
	for client := range c.Bounds.Clients { // not every role takes the lock
		role := int(roleOf(c.Run, client))
		if client > 0 && role == int(roleOf(c.Run, client-1)) {
			continue
		}
		who := Who{Index: role, Names: naming.scheme(0)}
		r := &run{book: who.Names.Book(0)}
		r.x = c.begin(who, r.book, scripts)
		r.look()
		keys, timed := s.changedBy(r, c.Masters)
		all, clocked = append(all, keys...), clocked || timed
		r.x.Close()
	}
	slices.Sort(all)
	return slices.Compact(all), clocked
}

// begin starts the code of a client.
func (c *Config) begin(who Who, book *names.Book, scripts *coro.Scripts) Execution {
	if c.Start != nil {
		return c.Start(who)
	}
	return coro.Start(program(c.Run, who.Index, c.Bounds), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: book.Token, Number: names.OwnNumber(names.ClientNumber), Scripts: scripts})
}

// aloneLimit bounds the steps of a client that runs alone.
const aloneLimit = 300

// changedBy returns the keys that an execution, alone on empty servers, changes both between a call
// of Acquire and its grant, and in the Release that follows. clocked is as for lockKeys.
func (s *servers) changedBy(x *run, masters int) (keys []string, clocked bool) {
	var expire []string
	now := time.Duration(0)
	holds := s.start(masters)
	var called, granted, released uint32
	changed := map[string]bool{}
	for range aloneLimit {
		for _, e := range x.events {
			switch {
			case e.Op.Kind == history.Acquire && !e.End:
				called = holds
			case e.Op.Kind == history.Acquire && e.Op.Outcome == history.OK:
				granted = holds
				for _, key := range s.changes(called, granted) {
					changed[key] = true
					if s.expires(granted, key) && len(s.naming.owners(key)) == 0 {
						expire = append(expire, key)
					}
				}
			case e.Op.Kind == history.Release && !e.End:
				released = holds
			case e.Op.Kind == history.Release:
				for _, key := range s.changes(released, holds) {
					if changed[key] && len(s.naming.owners(key)) == 0 {
						keys = append(keys, key)
					}
				}
				clear(changed)
			}
		}
		pending := x.x.Pending()
		if len(pending) == 0 || x.x.Err() != nil {
			break
		}
		i := first(pending)
		r := pending[i]
		o := coro.Observation{Now: now}
		switch r.Kind {
		case coro.Command:
			e := s.execute(callAt{holds, s.call(call{client: 0, node: r.Node, commands: globally(r.Commands, 0), tx: r.Tx, conn: r.Conn}), now})
			if e.unknown {
				return nil, clocked
			}
			clocked = clocked || e.clock
			holds, o.Reply = e.servers, s.answers.get(e.answer).Reply
		case coro.Sleep:
			by := max(r.Until-now, tickUnit)
			now += by
			holds, o.Now = s.pass(tick{holds, by}), now
		}
		x.resume(i, o)
	}
	if len(keys) == 0 {
		return expire, clocked
	}
	return keys, clocked
}

// expires tells whether a key does.
func (s *servers) expires(servers uint32, key string) bool {
	return slices.ContainsFunc(s.states.get(servers), func(n *redismodel.State) bool {
		_, left, exists := n.Value(key)
		return exists && left >= 0
	})
}

// changes returns the keys whose values differ between two states of the servers.
func (s *servers) changes(before, after uint32) (keys []string) {
	a, b := s.states.get(before), s.states.get(after)
	for node := range a {
		for _, key := range slices.Concat(a[node].Keys(), b[node].Keys()) {
			if differ(a[node], b[node], key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// globally returns commands of a client in global names.
func globally(commands [][]string, client int) (all [][]string) {
	for _, cmd := range commands {
		args := make([]string, len(cmd))
		for i, arg := range cmd {
			args[i] = global(arg, client)
		}
		all = append(all, args)
	}
	return all
}

// touches reports whether a command changed what other clients have under a lock's key, as far as that can be told from
// what stands there: see differences. In a value that several clients share, such as a wait line, only their own entries
// count. Setting the expiry
// counts even if it was the same before: at another time it would have been different.
func (s *servers) touches(before, after *redismodel.State, key string, client int, expiry bool) bool {
	if !expiry && !differ(before, after, key) || s.ownedBy(before, key, client) {
		return false
	}
	v, _, _ := before.Value(key)
	w, _, _ := after.Value(key)
	return v == w || !s.keepsOthers(v, w, client)
}

// keepsOthers reports whether before has names of other clients, and after still has all of them.
func (s *servers) keepsOthers(before, after string, client int) bool {
	left := map[string]int{}
	count := func(text string, by int) (n int) {
		for _, name := range s.naming.found(text) {
			if name.client != client {
				left[name.name] += by
				n++
			}
		}
		return n
	}
	count(after, 1)
	if count(before, -1) == 0 {
		return false
	}
	for _, n := range left {
		if n < 0 {
			return false
		}
	}
	return true
}
