package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
	"oversell/server/topology"
)

// A guard process can be killed, too, or the machine can go down. So the changes to undo are also recorded on the
// server until they are undone. While the guard lives, it has a connection, with the guard's name, to every server. A
// record without such a connection is a leftover of a dead run.

// recordsKey is the hash of the records, one for each duty of each guard.
const recordsKey = "oversell:undo"

// record is a duty as recorded on a server.
type record struct {
	Undo Undo `json:"undo"`
	// Addr is the address of the changed server; Addrs are those of all servers then, in the order of their numbers.
	// The next run may number them differently.
	Addr  string   `json:"addr,omitempty"`
	Addrs []string `json:"addrs,omitempty"`
	// Named: the guard has a connection with its name. Without that name, another process cannot know whether the guard
	// lives.
	Named bool   `json:"named"`
	Host  string `json:"host"`
	Since string `json:"since"`
}

// connectionName returns the name of a guard's connections.
func connectionName(id string) string { return "oversell-" + id }

// introduce opens the connections that show that the guard lives, and keeps them open.
func (k *undoing) introduce() {
	for _, s := range k.t.group.Data() {
		named := make(chan bool, 1)
		go k.stay(s, named)
		select {
		case ok := <-named:
			k.named[s.Number] = ok
		case <-time.After(instance.TalkTimeout):
		}
	}
}

// stay keeps a connection under our name. first is told whether it has one.
func (k *undoing) stay(s *instance.Server, first chan<- bool) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), instance.TalkTimeout)
		conn, err := instance.Dial(ctx, s.Endpoint())
		if err == nil {
			err = s.LoginAnd(ctx, conn, "CLIENT", "SETNAME", connectionName(k.id))
		}
		cancel()
		select {
		case first <- err == nil:
		default:
		}
		if err == nil {
			gone := make(chan struct{})
			go func() { _, _ = conn.Read(make([]byte, 1)); close(gone) }()
			select {
			case <-gone:
			case <-k.over:
			}
		}
		if conn != nil {
			_ = conn.Close()
		}
		select {
		case <-k.over:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (k *undoing) field(id int64) string { return fmt.Sprintf("%s/%d", k.id, id) }

// noting is how long writing a record may take: a server may refuse it, for example if it is read-only. The guard
// itself does not need the record.
const noting = 500 * time.Millisecond

// note writes a record, on the changed server if possible.
func (k *undoing) note(ctx context.Context, id int64, d *duty) {
	host, _ := os.Hostname()
	k.mu.Lock()
	r := record{Undo: d.Undo, Named: len(k.named) > 0, Host: host, Since: time.Now().UTC().Format(time.RFC3339)}
	for _, ok := range k.named {
		r.Named = r.Named && ok
	}
	k.mu.Unlock()
	if d.Server > 0 {
		r.Addr = k.t.group.Servers[d.Server-1].Addr
	}
	if d.Master {
		for _, s := range k.t.group.Servers {
			r.Addrs = append(r.Addrs, s.Addr)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return
	}
	k.t.tryServers(ctx, d.Server, func(ctx context.Context, c *redis.Client) bool {
		return c.HSet(ctx, recordsKey, k.field(id), text).Err() == nil
	})
}

// forget removes a record.
func (k *undoing) forget(ctx context.Context, id int64, d *duty) {
	k.t.tryServers(ctx, d.Server, func(ctx context.Context, c *redis.Client) bool {
		return c.HDel(ctx, recordsKey, k.field(id)).Val() > 0
	})
}

// tryServers calls do for one server with data after the other, beginning with the chosen one, until
// do returns true.
func (t *Target) tryServers(ctx context.Context, chosen int, do func(context.Context, *redis.Client) bool) {
	ctx, cancel := context.WithTimeout(ctx, noting)
	defer cancel()
	all := t.group.Data()
	slices.SortStableFunc(all, func(a, b *instance.Server) int {
		switch chosen {
		case a.Number:
			return -1
		case b.Number:
			return 1
		}
		return 0
	})
	for _, s := range all {
		done := false
		err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
			done = do(ctx, c)
			return nil
		})
		if err == nil && done {
			return
		}
	}
}

// leftover is a record of a run that may be dead.
type leftover struct {
	record
	at    []*instance.Server // the servers that have it
	field string
}

// leftovers looks for records of runs that are dead.
func (t *Target) leftovers(ctx context.Context, mend bool) error {
	found := map[string]*leftover{}
	for _, s := range t.group.Data() {
		for field, text := range s.Admin.HGetAll(ctx, recordsKey).Val() { // an account without permission to look finds nothing
			l := found[field]
			if l == nil {
				l = &leftover{field: field}
				if json.Unmarshal([]byte(text), &l.record) != nil {
					continue
				}
				found[field] = l
			}
			l.at = append(l.at, s)
		}
	}
	if len(found) == 0 {
		return nil
	}
	living, known := t.living(ctx, found)
	fields := slices.SortedFunc(maps.Keys(found), func(a, b string) int { // a server must be restored before keys can be removed
		return cmp.Or(strings.Compare(found[a].Undo.Keys, found[b].Undo.Keys), strings.Compare(a, b))
	})
	for _, field := range fields {
		l := found[field]
		id, _, _ := strings.Cut(field, "/")
		switch {
		case slices.Contains(living, id):
			if l.Undo.Keys == "" {
				t.Notes = append(t.Notes, fmt.Sprintf("a run on %s that is under way (since %s) has changed the server, and is going to %s", l.Host, l.Since, l.remedy(t)))
			}
			continue
		case !known || !l.Named:
			t.Notes = append(t.Notes, fmt.Sprintf("%s may have been left as it is by a run on %s since %s; this account cannot tell whether that is under way: %s", t.Addrs[0], l.Host, l.Since, l.remedy(t)))
			continue
		}
		if err := l.settle(ctx, t, mend); err != nil {
			return err
		}
	}
	return nil
}

// A guard reopens its connections at once when a server has closed them, so this looks more than once.
const (
	looks        = 5
	betweenLooks = 200 * time.Millisecond
)

// living returns the guards with records on the servers that still have connections. known is false if the account may
// not list them.
func (t *Target) living(ctx context.Context, found map[string]*leftover) (ids []string, known bool) {
	wanted := map[string]bool{}
	for field := range found {
		id, _, _ := strings.Cut(field, "/")
		wanted[id] = true
	}
	for look := 0; look < looks && len(ids) < len(wanted); look++ {
		if look > 0 {
			select {
			case <-time.After(betweenLooks):
			case <-ctx.Done():
			}
		}
		for _, s := range t.group.Data() {
			list, err := s.Admin.Do(ctx, "client", "list").Text()
			if err != nil {
				return ids, false
			}
			for id := range wanted {
				if !slices.Contains(ids, id) && strings.Contains(list, " name="+connectionName(id)+" ") {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids, true
}

// remedy says what remains to be done.
func (l *leftover) remedy(t *Target) string {
	if l.Undo.Keys != "" {
		return fmt.Sprintf("remove the keys containing %q", l.Undo.Keys)
	}
	return l.Undo.String() + " " + l.Addr
}

// at returns the server at an address, perhaps under another name of its host; nil if there
// is none.
func (t *Target) at(addr string) *instance.Server {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, topology.SameAddr} {
		for _, s := range t.group.Servers {
			if same(s.Addr, addr) {
				return s
			}
		}
	}
	return nil
}

// renumbered returns the changes to undo, with the present numbers of the servers.
func (l *leftover) renumbered(t *Target) (u Undo, s *instance.Server) {
	u = l.Undo
	if u.Keys != "" {
		return u, l.at[0]
	}
	if s = t.at(l.Addr); s == nil {
		return u, nil
	}
	u.Server, u.Priorities = s.Number, nil
	for number, priority := range l.Undo.Priorities {
		if number > len(l.Addrs) {
			continue
		}
		if other := t.at(l.Addrs[number-1]); other != nil {
			if u.Priorities == nil {
				u.Priorities = map[int]string{}
			}
			u.Priorities[other.Number] = priority
		}
	}
	return u, s
}

// mendingTimeout is how long a repair may take.
const mendingTimeout = time.Minute

// settle repairs a leftover or reports it.
func (l *leftover) settle(ctx context.Context, t *Target, mend bool) error {
	u, s := l.renumbered(t)
	if s == nil {
		t.Notes = append(t.Notes, fmt.Sprintf("a run on %s that was killed (since %s) has left a server changed that is not part of this target: give its address and --mend to %s", l.Host, l.Since, l.remedy(t)))
		return nil
	}
	still := false
	var err error
	if u.Keys == "" {
		if still, err = u.inForce(ctx, s.Admin); err != nil {
			return errclass.Environmentf("look for what a run that was killed has left on %s: %w", s.Addr, err)
		}
	}
	switch {
	case !mend && u.Master && still:
		t.Notes = append(t.Notes, fmt.Sprintf("a run on %s that was killed (since %s) has left another server as the master: add --mend to %s", l.Host, l.Since, l.remedy(t)))
		return nil
	case !mend && still:
		return errclass.Usagef("%s was left changed by a run on %s that was killed (since %s): add --mend to %s", s.Addr, l.Host, l.Since, l.remedy(t))
	case !mend && u.Keys != "":
		t.Notes = append(t.Notes, fmt.Sprintf("a run on %s (since %s) was killed, or could not delete its record of the keys that it uses: add --mend to %s", l.Host, l.Since, l.remedy(t)))
		return nil
	case mend && u.Master:
		limited, cancel := context.WithTimeout(ctx, mendingTimeout)
		err = instance.Poll(limited, func(ctx context.Context) error { return t.reinstate(ctx, u) })
		cancel()
	case mend && still:
		err = u.on(ctx, s.Admin)
	case mend && u.Keys != "":
		err = t.sweepTwice(ctx, u.Keys)
	}
	if err != nil {
		return errclass.Environmentf("mend what a run that was killed has left: %s: %w", l.remedy(t), err)
	}
	if !mend && !still || mend {
		for _, at := range l.at {
			_ = at.Admin.HDel(ctx, recordsKey, l.field).Err() // a replica's is repaired with its master's
		}
	}
	if still || u.Keys != "" {
		t.Notes = append(t.Notes, "mended what a run that was killed had left: "+l.remedy(t))
	}
	return nil
}

// inForce reports whether a change is still in force on a server.
func (u Undo) inForce(ctx context.Context, c *redis.Client) (bool, error) {
	for _, s := range u.Settings {
		now, err := c.ConfigGet(ctx, s.Name).Result()
		if err != nil {
			return false, err
		}
		if s.Set != "" && s.Set != s.Was && now[s.Name] == s.Set {
			return true, nil
		}
	}
	if !u.ReadOnly && !u.Master {
		return false, nil
	}
	text, err := c.Info(ctx, "replication").Result()
	in := instance.ParseInfo(text)
	return u.Master && in["role"] != "master" || u.ReadOnly && orphan(in), err
}
