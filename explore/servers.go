package explore

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/redismodel"
)

// servers are all that the masters can hold, each situation with a number, and
// what commands make of them.
type servers struct {
	epoch     time.Duration // of the search's clock, since 1970
	lockKey   string        // whose changes are watched; empty: none is
	scripts   *coro.Scripts
	pipelined atomic.Bool            // a pipeline was sent
	ordered   atomic.Bool            // the order of clients\' names has shown
	missing   atomic.Pointer[string] // the first thing that the model did not know
	empty     *redismodel.State
	states    *interner[[]*redismodel.State]
	calls     *interner[call]
	answers   *interner[coro.Observation]

	done    *memo[callAt, effect]     // of commands that do not depend on the clock, at now = 0
	doneNow *memo[callAt, effect]     // of the others
	ticked  *memo[tick, uint32]       // after time has passed
	next    *memo[serversID, nextDue] // until the next expiry
	renamed *memo[renaming, uint32]   // with clients exchanged
	buried  *memo[burying, uint32]    // with dead tokens forgotten
}

// call is a command of a client as the servers see it, in everybody's names.
type call struct {
	client   int
	node     int
	commands [][]string
	tx       bool
	// during is the kind of the client's operation that sends it.
	during history.Kind
}

func (c call) key() string {
	var b strings.Builder
	b.Write([]byte{byte(c.client), byte(c.node), flag(c.tx), byte(c.during)})
	for _, cmd := range c.commands {
		b.WriteByte(byte(len(cmd)))
		for _, arg := range cmd {
			b.Write(binary.AppendUvarint(nil, uint64(len(arg))))
			b.WriteString(arg)
		}
	}
	return b.String()
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

type callAt struct {
	servers, call uint32
	now           time.Duration
}

// effect is what a call does.
type effect struct {
	servers uint32 // afterwards
	answer  uint32 // in the names of the client
	// touched: the lock's key was deleted or changed.
	touched bool
	clock   bool // it depends on the clock
	unknown bool // the model does not know what it does: see servers.unknown
}

type tick struct {
	servers uint32
	by      time.Duration
}

// serversID is the number of what the servers hold.
type serversID uint32

type nextDue struct {
	in  time.Duration
	any bool
}

type renaming struct {
	servers uint32
	perm    perm
}

func newServers(epoch time.Time, lockKey string, scripts *coro.Scripts) *servers {
	s := &servers{
		epoch: time.Duration(epoch.UnixNano()), lockKey: lockKey, scripts: scripts, empty: redismodel.Empty(),
		states: newInterner[[]*redismodel.State](), calls: newInterner[call](), answers: newInterner[coro.Observation](),
	}
	s.done = newMemo(func(k callAt) effect { return s.execute(k) })
	s.doneNow = newMemo(func(k callAt) effect { return s.execute(k) })
	s.ticked = newMemo(s.pass)
	s.next = newMemo(s.nextExpiry)
	s.renamed = newMemo(s.exchange)
	s.buried = newMemo(s.bury)
	return s
}

// start is n servers that hold nothing.
func (s *servers) start(n int) uint32 {
	nodes := make([]*redismodel.State, n)
	for i := range nodes {
		nodes[i] = s.empty
	}
	return s.id(nodes)
}

func (s *servers) id(nodes []*redismodel.State) uint32 {
	key := nodes[0].Key()
	if len(nodes) > 1 {
		var b []byte
		for _, n := range nodes {
			k := n.Key()
			b = append(binary.AppendUvarint(b, uint64(len(k))), k...)
		}
		key = string(b)
	}
	return s.states.id(key, func() []*redismodel.State {
		for _, n := range nodes {
			if n.Ordered(ofOthers) {
				s.ordered.Store(true)
			}
		}
		return nodes
	})
}

// ofOthers tells whether two texts name different clients.
func ofOthers(a, b string) (yes bool) {
	each(a, func(i int) {
		each(b, func(j int) { yes = yes || a[i] != b[j] })
	})
	return yes
}

// call numbers a call. A client sends a script's text once and its hash from then on;
// here it is known from the start.
func (s *servers) call(c call) uint32 {
	return s.calls.id(c.key(), func() call {
		if len(c.commands) > 1 && !c.tx {
			s.pipelined.Store(true)
		}
		for _, cmd := range c.commands {
			if len(cmd) > 1 && strings.EqualFold(cmd[0], "evalsha") {
				if text, known := s.scripts.Text(cmd[1]); known {
					s.empty.Load(text)
				}
			}
		}
		return c
	})
}

func (s *servers) answer(o coro.Observation) uint32 {
	return s.answers.id(string(byte(o.Failure))+o.Reply, func() coro.Observation { return o })
}

func (s *servers) execute(k callAt) effect {
	c := s.calls.get(k.call)
	before := s.states.get(k.servers)
	after, reply, info := perform(before[c.node], s.epoch+k.now, c)
	if info.Unknown != "" {
		s.missing.CompareAndSwap(nil, &info.Unknown)
		return effect{servers: k.servers, unknown: true}
	}
	e := effect{servers: k.servers, clock: info.Clock}
	e.answer = s.answer(coro.Observation{Reply: local(string(reply), c.client)})
	if after != before[c.node] {
		e.touched = s.lockKey != "" && differ(before[c.node], after, s.lockKey) && !ownedBy(before[c.node], s.lockKey, c.client)
		nodes := append([]*redismodel.State(nil), before...)
		nodes[c.node] = after
		e.servers = s.id(nodes)
	}
	return e
}

// unknown is the error of an effect that the model does not know.
func (s *servers) unknown() error { return fmt.Errorf("%w %s", errUnknown, *s.missing.Load()) }

// perform has one server do what the call asks for, and replies as it does.
func perform(on *redismodel.State, now time.Duration, c call) (*redismodel.State, []byte, redismodel.Info) {
	if c.tx {
		return on.Transaction(now, c.client, c.commands)
	}
	var all redismodel.Info
	var replies []byte
	for _, cmd := range c.commands {
		next, reply, info := on.Do(now, c.client, cmd)
		if info.Unknown != "" {
			return on, nil, info
		}
		on, replies = next, append(replies, reply...)
		all.Clock = all.Clock || info.Clock
		all.Touched = all.Touched || info.Touched
	}
	return on, replies, all
}

// ownedBy tells whether what stands under key names this client, or a dead token, and
// nobody else.
func ownedBy(on *redismodel.State, key string, client int) bool {
	v, _, _ := on.Value(key)
	at := tokensIn(v)
	for _, i := range at {
		if _, of, _ := tokenAt(v, i); of != client && of != grave-'0' {
			return false
		}
	}
	return len(at) > 0
}

func differ(a, b *redismodel.State, key string) bool {
	v, left, is := a.Value(key)
	w, left2, is2 := b.Value(key)
	return is != is2 || v != w || left != left2
}

func (s *servers) pass(k tick) uint32 {
	before := s.states.get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Tick(k.by)
	}
	return s.id(nodes)
}

func (s *servers) nextExpiry(id serversID) (d nextDue) {
	for _, n := range s.states.get(uint32(id)) {
		if in, any := n.NextExpiry(); any && (!d.any || in < d.in) {
			d = nextDue{in, true}
		}
	}
	return d
}

func (s *servers) exchange(k renaming) uint32 {
	before := s.states.get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(k.perm.rename, func(conn int) int { return k.perm.of(conn) })
	}
	return s.id(nodes)
}

// text shows what the servers hold, for people.
func (s *servers) text(id uint32) string {
	nodes := s.states.get(id)
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = readable(n.Text(nil))
	}
	return strings.Join(parts, " | ")
}

// callRenamed is a call with clients exchanged.
func (s *servers) callRenamed(id uint32, p perm) uint32 {
	c := s.calls.get(id)
	c.client = p.of(c.client)
	commands := make([][]string, len(c.commands))
	for i, cmd := range c.commands {
		commands[i] = make([]string, len(cmd))
		for j, arg := range cmd {
			commands[i][j] = p.rename(arg)
		}
	}
	c.commands = commands
	return s.call(c)
}

// burying asks for what the servers hold with dead tokens called by one name: those
// that their clients made before their first one that is alive.
type burying struct {
	servers uint32
	alive   [maxSlots]uint8
}

// grave is the letter of a token that no client remembers.
const grave = '7'

// bury gives a dead token the name of nobody, if there is one only: whose it was, and
// which of his, can make no difference any more.
func (s *servers) bury(k burying) uint32 {
	var dead string
	for _, n := range s.states.get(k.servers) {
		key := n.Key()
		for _, at := range tokensIn(key) {
			name, client, number := tokenAt(key, at)
			if client == grave-'0' {
				return k.servers // two in one grave would be one
			}
			if client >= maxSlots || number >= int(k.alive[client]) || name == dead {
				continue
			}
			if dead != "" {
				return k.servers
			}
			dead = name
		}
	}
	if dead == "" {
		return k.servers
	}
	buried := dead[:len(tokenPrefix)] + string(grave) + dead[len(tokenPrefix)+1:]
	before := s.states.get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(func(text string) string { return replaceToken(text, dead, buried) }, func(conn int) int { return conn })
	}
	return s.id(nodes)
}
