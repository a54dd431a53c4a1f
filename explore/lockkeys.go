package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/explore/clients"
	"oversell/explore/servers"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
)

// lockKeys returns the keys that hold a lock: those that a client changes both by Acquire and by
// Release or, if there are none, those that Acquire sets with an expiry. They are found by running
// one client alone. Keys with the client's own names in them do not count. It returns an error if
// the code sends other commands in its first run in this process than in later runs: then the
// search, which comes later, would not see the first behaviour.
func lockKeys(c Config, scripts *coro.Scripts, naming names.Namer) (all []string, err error) {
	if c.Run.Lock.New == nil {
		return nil, nil
	}
	c.Run.Hold = 0                         // whether it can be extended does not matter here
	for client := range c.Bounds.Clients { // not every role takes the lock
		role := int(clients.RoleOf(c.Run, client))
		if client > 0 && role == int(clients.RoleOf(c.Run, client-1)) {
			continue
		}
		alone := func(scripts *coro.Scripts) (keys, sent []string) {
			s := servers.New(Epoch, nil, scripts, naming)
			who := Who{Index: role, Names: naming.Scheme(0)}
			book := who.Names.Dictionary(0)
			r := clients.NewRun(c.begin(who, book, scripts), book)
			defer r.Code.Close()
			return changedBy(s, r, c.Masters)
		}
		first := func() []string { // on servers that know no script
			_, sent := alone(&coro.Scripts{})
			return sent
		}
		before, sent := first(), first()
		keys, _ := alone(scripts)
		all = append(all, keys...)
		if slices.Equal(sent, before) {
			continue
		}
		same := true
		for range repeats {
			same = same && slices.Equal(first(), sent)
		}
		if same { // otherwise it acts at random, which the search reports
			return nil, fmt.Errorf("%w: alone, it sent %s when it was run for the first time, and then %s",
				errFirstRun, strings.Join(before, ", "), strings.Join(sent, ", "))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// outline is a command without its arguments, which may be random: its name and how many there are.
func outline(cmd []string) string { return fmt.Sprintf("%s of %d", cmd[0], len(cmd)) }

// errFirstRun is ErrNondeterministic for a client that behaves differently only in its first run in this process.
// Another search in the process cannot show that.
var errFirstRun = fmt.Errorf("%w", ErrNondeterministic)

// repeats is how often a client runs alone again if its second run sent other commands than its first.
const repeats = 6

// aloneLimit bounds the steps of a client that runs alone.
const aloneLimit = 300

// changedBy returns the keys that an execution, alone on empty servers, changes both between a call
// of Acquire and its grant, and in the Release that follows; if there are none, the keys to which
// Acquire gives an expiry. sent are the outlines of its commands.
func changedBy(s *servers.Servers, x *clients.Run, masters int) (keys, sent []string) {
	var expire []string
	now := time.Duration(0)
	holds := s.Start(masters)
	var called, granted, released uint32
	changed := map[string]bool{}
	for range aloneLimit {
		for _, e := range x.Came {
			switch {
			case e.Op.Kind == history.Acquire && !e.End:
				called = holds
			case e.Op.Kind == history.Acquire && e.Op.Outcome == history.OK:
				granted = holds
				for _, key := range s.Changes(called, granted) {
					changed[key] = true
					if s.Expires(granted, key) && len(s.Names.Owners(key)) == 0 {
						expire = append(expire, key)
					}
				}
			case e.Op.Kind == history.Release && !e.End:
				released = holds
			case e.Op.Kind == history.Release:
				for _, key := range s.Changes(released, holds) {
					if changed[key] && len(s.Names.Owners(key)) == 0 {
						keys = append(keys, key)
					}
				}
				clear(changed)
			}
		}
		pending := x.Code.Pending()
		if len(pending) == 0 || x.Code.Err() != nil {
			break
		}
		i := first(pending)
		r := pending[i]
		o := coro.Observation{Now: now}
		switch r.Kind {
		case coro.Command:
			e := s.Execute(holds, s.CallID(servers.Call{Client: 0, Node: r.Node, Commands: servers.Globally(r.Commands, 0), Tx: r.Tx, Conn: r.Conn}), now)
			for _, cmd := range r.Commands {
				sent = append(sent, outline(cmd))
			}
			if e.Unknown {
				return nil, sent
			}
			holds, o.Reply = e.Servers, s.Answer(e.Answer).Reply
		case coro.Sleep:
			by := max(r.Until-now, servers.TickUnit)
			now += by
			holds, o.Now = s.Later(holds, by), now
		}
		x.Resume(i, o)
	}
	if len(keys) == 0 {
		return expire, sent
	}
	return keys, sent
}
