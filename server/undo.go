package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/internal/guard"
	"oversell/server/instance"
	"oversell/server/topology"
)

// This file restores servers that are not ours. Changes there, and the keys of a run, are the duties of a guard
// process; see package guard.

// Undo says how a change of servers is undone. An empty field was not changed.
type Undo struct {
	// Keys is the prefix of the keys of a run: those are removed.
	Keys string `json:"keys,omitempty"`
	// Server is the number of the server to which the other fields refer.
	Server int `json:"server,omitempty"`
	// Settings are restored, in this order.
	Settings []Setting `json:"settings,omitempty"`
	// ReadOnly: the server follows the address Nobody, and must follow Follows again, or be a master if that is empty.
	ReadOnly bool   `json:"read_only,omitempty"`
	Follows  string `json:"follows,omitempty"`
	// Paused: the server holds back the commands of its clients.
	Paused bool `json:"paused,omitempty"`
	// Master: the server must be the master of its group again. Priorities are those by which sentinels choose one, by
	// the numbers of the servers; none if there is no choice.
	Master     bool           `json:"master,omitempty"`
	Priorities map[int]string `json:"priorities,omitempty"`
}

// Setting is a setting of a server, before and during a change.
type Setting struct {
	Name string `json:"name"`
	Was  string `json:"was"`
	// Set is its value during the change; empty: none.
	Set string `json:"set,omitempty"`
}

// Nobody is the address of the master that a server follows to be read-only. There is no server at it, because a real
// master would replace the server's data by its own.
const Nobody = "127.0.0.1:1"

// Intend announces a change before it is made. Until done is called, after the change was undone, a guard process will
// undo it if this process dies. Servers that we started need no guard: they end with us.
func (t *Target) Intend(u Undo) (done func(), err error) { return t.guard.Intend(u) }

// Log sets the directory in which the guard process reports what it had to undo.
func (t *Target) Log(dir string) { t.guard.Log(dir) }

// Following returns the address of the master that a server follows; empty: it is a master itself.
func (t *Target) Following(ctx context.Context, number int) (string, error) {
	s := t.group.Servers[number-1]
	text, err := s.Admin.Info(ctx, "replication").Result()
	if err != nil {
		return "", errclass.Environmentf("read the master of server %d on %s from INFO: %w", number, s.Addr, err)
	}
	if in := instance.ParseInfo(text); in["role"] == "slave" {
		return net.JoinHostPort(in["master_host"], in["master_port"]), nil
	}
	return "", nil
}

// Claim is Intend for the keys of a run. Sweep undoes it.
func (t *Target) Claim(prefix string) error {
	done, err := t.Intend(Undo{Keys: prefix})
	if err != nil {
		return errclass.Environmentf("claim the keys containing %q: %w", prefix, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claims == nil {
		t.claims = map[string]func(){}
	}
	t.claims[prefix] = done
	return nil
}

// unclaim reports that the keys of a run were removed.
func (t *Target) unclaim(prefix string) {
	t.mu.Lock()
	done := t.claims[prefix]
	delete(t.claims, prefix)
	t.mu.Unlock()
	if done != nil {
		done()
	}
}

// Undoer is the role of a guard process that undoes changes of servers.
const Undoer = "redis"

// NewKeeper creates the Keeper of a guard process whose role is [Undoer]. It is for guard.Serve.
func NewKeeper(hello json.RawMessage) (guard.Keeper, error) {
	var d description
	if err := json.Unmarshal(hello, &d); err != nil {
		return nil, err
	}
	return &undoing{t: d.target(), id: d.ID, duties: map[int64]*duty{}, named: map[int]bool{}, over: make(chan struct{})}, nil
}

// description describes a target at an address to a guard process.
type description struct {
	ID      string             `json:"id"` // of the program's use of it
	Shape   topology.ShapeName `json:"shape"`
	Master  string             `json:"master,omitempty"` // the sentinels' name for it
	Local   bool               `json:"local"`
	Servers []describedServer  `json:"servers"`
}

type describedServer struct {
	Member
	User       string `json:"user,omitempty"`
	Password   string `json:"password,omitempty"`
	DB         int    `json:"db,omitempty"`
	TLS        bool   `json:"tls,omitempty"`
	SkipVerify bool   `json:"skip_verify,omitempty"`
	ServerName string `json:"server_name,omitempty"`
}

// guarded starts a guard process for a target at an address.
func (t *Target) guarded(ctx context.Context, p plan) error {
	var b [4]byte
	rand.Read(b[:]) // never fails
	d := description{ID: hex.EncodeToString(b[:]), Shape: p.shape, Local: !p.AllowRemote}
	if g, ok := t.shape.(*topology.SentinelGroup); ok {
		d.Master = g.Name
	}
	for _, s := range t.group.Servers {
		e := describedServer{Member: s.Member}
		if l := s.Login; l != nil {
			e.User, e.Password, e.DB = l.Username, l.Password, l.DB
			if c := l.TLSConfig; c != nil {
				e.TLS, e.SkipVerify, e.ServerName = true, c.InsecureSkipVerify, c.ServerName
			}
		}
		d.Servers = append(d.Servers, e)
	}
	var err error
	if t.guard, err = guard.Start(ctx, Undoer, d); err != nil {
		return errclass.Environmentf("%w", err)
	}
	return nil
}

// target returns the described target. It does not check whether that has changed.
func (d description) target() *Target {
	var servers []*instance.Server
	for _, e := range d.Servers {
		login := &redis.Options{Username: e.User, Password: e.Password, DB: e.DB}
		if e.TLS {
			login.TLSConfig = &tls.Config{ServerName: e.ServerName, InsecureSkipVerify: e.SkipVerify, MinVersion: tls.VersionTLS12}
		}
		servers = append(servers, &instance.Server{Member: e.Member, Login: login})
	}
	t := newTarget(Address, topology.NewGroup(servers, true))
	t.group.LocalOnly = d.Local
	t.shape = newShape(t, d.Shape, d.Master)
	return t
}

// undoing is the keeper in a guard process.
type undoing struct {
	t  *Target
	id string

	mu     sync.Mutex
	duties map[int64]*duty
	named  map[int]bool // servers that know our connection by its name
	over   chan struct{}
	once   sync.Once
}

type duty struct {
	Undo
	exempt net.Conn // of a pause
}

// Begin implements guard.Keeper.
func (k *undoing) Begin(ctx context.Context, id int64, body json.RawMessage) error {
	d := &duty{}
	if err := json.Unmarshal(body, &d.Undo); err != nil {
		return err
	}
	k.once.Do(k.introduce)
	if d.Paused {
		var err error
		if d.exempt, err = instance.Exempt(ctx, k.t.group.Servers[d.Server-1]); err != nil {
			return err
		}
	}
	k.note(ctx, id, d)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.duties[id] = d
	return nil
}

// End implements guard.Keeper.
func (k *undoing) End(ctx context.Context, id int64) {
	if d := k.duty(id); d != nil {
		d.close()
		k.forget(ctx, id, d)
		k.mu.Lock()
		delete(k.duties, id)
		k.mu.Unlock()
	}
}

// Undo implements guard.Keeper.
func (k *undoing) Undo(ctx context.Context, id int64) (what string, err error) {
	d := k.duty(id)
	if d == nil {
		return "nothing", nil
	}
	switch {
	case d.Keys != "":
		what = fmt.Sprintf("remove the keys containing %q", d.Keys)
		changed := k.changed()
		if err = k.t.sweepTwice(ctx, d.Keys); err == nil && changed {
			err = errChanged
		}
	case d.Master:
		what = fmt.Sprintf("%s %s", d.Undo, k.t.group.Servers[d.Server-1].Addr)
		err = k.t.reinstate(ctx, d.Undo)
	default:
		s := k.t.group.Servers[d.Server-1]
		what = fmt.Sprintf("%s %s", d.Undo, s.Addr)
		if d.Paused {
			if err = instance.Resume(ctx, d.exempt, s); err != nil {
				return what, errors.New(k.t.Hide(err.Error()))
			}
		}
		err = s.VisitFor(ctx, instance.TalkTimeout, d.Undo.on)
	}
	if err != nil {
		err = errors.New(k.t.Hide(err.Error())) // it may go to a file
	}
	if err == nil {
		k.forget(ctx, id, d)
		d.close()
		k.mu.Lock()
		delete(k.duties, id)
		k.mu.Unlock()
	}
	return what, err
}

// errChanged: a write made before the servers are restored may be lost when a server stops being the master. So keys
// are removed once more afterwards.
var errChanged = errors.New("the configuration of the servers is not restored yet")

// changed reports whether there is anything to undo other than keys.
func (k *undoing) changed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.duties {
		if d.Keys == "" {
			return true
		}
	}
	return false
}

// Close implements guard.Keeper.
func (k *undoing) Close() {
	close(k.over)
	_ = k.t.Close()
}

func (k *undoing) duty(id int64) *duty {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.duties[id]
}

func (d *duty) close() {
	if d.exempt != nil {
		_ = d.exempt.Close()
	}
}

// String describes how it is undone.
func (u Undo) String() string {
	switch {
	case u.Master:
		return "restore the role of master of"
	case u.Paused:
		return "end the pause of the clients of"
	case u.ReadOnly && u.Follows != "":
		return "follow " + u.Follows + " again:"
	case u.ReadOnly:
		return "end the read-only state of"
	}
	var names []string
	for _, s := range u.Settings {
		names = append(names, s.Name)
	}
	return "put back " + strings.Join(names, ", ") + " of"
}

// on undoes the change on the server.
func (u Undo) on(ctx context.Context, c *redis.Client) error {
	for _, s := range u.Settings {
		if err := c.ConfigSet(ctx, s.Name, s.Was).Err(); err != nil {
			return fmt.Errorf("set %s: %w", s.Name, err)
		}
	}
	if !u.ReadOnly {
		return nil
	}
	host, port := "NO", "ONE"
	if u.Follows != "" {
		var err error
		if host, port, err = net.SplitHostPort(u.Follows); err != nil {
			return err
		}
	}
	return c.ReplicaOf(ctx, host, port).Err()
}

// Pause makes a server hold back the commands of all clients, for d at most. Only resumed can end that: the server would
// hold back any other client's command, too. resumed may be called when the pause is over, and again if it fails: it
// waits for servers before 6.2, which have no command for it.
func (t *Target) Pause(ctx context.Context, number int, d time.Duration) (resumed func(context.Context) error, err error) {
	s, err := t.numbered(number)
	if err != nil {
		return nil, err
	}
	conn, err := instance.Exempt(ctx, s)
	if err == nil {
		err = instance.Answered(ctx, conn, instance.Request("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10)), 1)
		if err != nil {
			_ = conn.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pause the clients of server %d: %w", number, err)
	}
	return func(ctx context.Context) error {
		err := instance.Resume(ctx, conn, s)
		if err == nil || ctx.Err() != nil {
			_ = conn.Close()
		}
		return err
	}, nil
}
