package explore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/rediscmd"
	"oversell/internal/redismodel"
)

// servers numbers the states of the masters, and remembers the effects of commands on them.
type servers struct {
	epoch     time.Duration   // of the search's clock, since 1970
	after     []time.Duration // how long after an instant that is written down something may be due
	lockKeys  []string        // whose changes are watched
	scripts   *coro.Scripts
	naming    names.Namer
	spelling  spelling
	pipelined atomic.Bool            // a pipeline was sent
	scripted  atomic.Bool            // a script was sent by its hash
	ordered   atomic.Bool            // the order of clients\' names has shown
	missing   atomic.Pointer[string] // the first thing that the model did not know
	empty     *redismodel.State
	states    *table.Interner[[]*redismodel.State]
	calls     *table.Interner[call]
	answers   *table.Interner[coro.Observation]
	orders    *table.Interner[[]uint32]

	done     *table.Memo[callAt, effect]       // of commands that do not depend on the clock, at now = 0
	doneNow  *table.Memo[callAt, effect]       // of the others
	ticked   *table.Memo[tick, uint32]         // after time has passed
	next     *table.Memo[serversID, *dues]     // what comes by itself
	renamed  *table.Memo[renaming, uint32]     // with clients exchanged
	buried   *table.Memo[burying, uint32]      // with dead tokens forgotten
	reclosed *table.Memo[reconnecting, uint32] // with a connection closed
}

// call is a command of a client in global names.
type call struct {
	client   int
	node     int
	commands [][]string
	tx       bool
	conn     int // see coro.Request.Conn, and lateConn
	// during is the kind of the client's operation that sends it.
	during history.Kind
}

func (c call) key() string {
	var b strings.Builder
	tx := byte(0)
	if c.tx {
		tx = 1
	}
	b.Write([]byte{byte(c.client), byte(c.node), tx, byte(c.during), byte(c.conn)})
	for _, cmd := range c.commands {
		b.WriteByte(byte(len(cmd)))
		for _, arg := range cmd {
			b.Write(binary.AppendUvarint(nil, uint64(len(arg))))
			b.WriteString(arg)
		}
	}
	return b.String()
}

// connClients is the number of clients in the numbers of connections.
const connClients = 16

// lateConn is the first number for connections that were closed by their clients with a request in
// flight.
const lateConn = 64

// connection returns the number of a call's connection on its server.
func (c call) connection() int { return c.client + connClients*c.conn }

// reconnecting is the key for the state of the servers after a client has closed a connection: what
// it watched is forgotten, or goes with the request that is still under way.
type reconnecting struct {
	servers  uint32
	node     uint8
	from, to int16
}

func (s *servers) reconnect(k reconnecting) uint32 {
	before := s.states.Get(k.servers)
	after := before[k.node].Reconnect(int(k.from), int(k.to))
	if after == before[k.node] {
		return k.servers
	}
	nodes := append([]*redismodel.State(nil), before...)
	nodes[k.node] = after
	return s.id(nodes)
}

// closed returns the servers after the client of a call has closed its connection.
func (s *servers) closed(servers uint32, c call) uint32 {
	if c.conn == 0 {
		return servers
	}
	return s.reconnected(servers, c.node, c.connection(), -1)
}

// reconnected returns the servers after what a connection to a node watched has gone to another one; -1: to none.
func (s *servers) reconnected(servers uint32, node, from, to int) uint32 {
	return s.reclosed.Of(reconnecting{servers, uint8(node), int16(from), int16(to)})
}

type callAt struct {
	servers, call uint32
	now           time.Duration
}

// effect is the result of a call.
type effect struct {
	servers uint32 // afterwards
	answer  uint32 // in the names of the client
	orders  uint32 // the number of the list of other answers that a server might give; 0: none
	// touched: what is another client's was changed under a key of the lock, or its expiry was set, as far as
	// that can be told from what stands there.
	touched bool
	clock   bool // it depends on the clock
	unknown bool // the model does not know what it does: see servers.unknown
}

type tick struct {
	servers uint32
	by      time.Duration
}

// serversID is the number of a state of the servers.
type serversID uint32

// dues are the times after which keys expire, and the points in time that are stored as values. Both
// are sorted.
type dues struct {
	in, at []time.Duration
}

// expires reports whether a key expires within so long.
func (d *dues) expires(in time.Duration) bool {
	_, found := slices.BinarySearch(d.in, in)
	return found
}

type renaming struct {
	servers uint32
	perm    names.Perm
}

func newServers(epoch time.Time, lockKeys []string, scripts *coro.Scripts, naming names.Namer) *servers {
	s := &servers{
		naming: naming,
		epoch:  time.Duration(epoch.UnixNano()), lockKeys: lockKeys, scripts: scripts, empty: redismodel.Empty(),
		states: table.NewInterner[[]*redismodel.State](), calls: table.NewInterner[call](), answers: table.NewInterner[coro.Observation](),
	}
	s.orders = table.NewInterner[[]uint32]()
	s.orders.ID("", func() []uint32 { return nil })
	s.done = table.NewMemo(func(k callAt) effect { return s.execute(k) })
	s.doneNow = table.NewMemo(func(k callAt) effect { return s.execute(k) })
	s.ticked = table.NewMemo(s.pass)
	s.next = table.NewMemo(s.comes)
	s.renamed = table.NewMemo(s.exchange)
	s.spelling.mapped = table.NewMemo(s.spell)
	s.spelling.off = naming.Naming >= names.Concrete
	s.buried = table.NewMemo(s.bury)
	s.reclosed = table.NewMemo(s.reconnect)
	return s
}

// start returns n empty servers.
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
	return s.states.ID(key, func() []*redismodel.State {
		for _, n := range nodes {
			if n.Ordered(ofOthers) {
				s.ordered.Store(true)
			}
		}
		return nodes
	})
}

// ofOthers reports whether two texts name different clients.
func ofOthers(a, b string) (yes bool) {
	names.EachLetter(a, func(i int) {
		names.EachLetter(b, func(j int) { yes = yes || a[i] != b[j] })
	})
	return yes
}

// call numbers a call. A client sends a script's text once and its hash from then on;
// here it is known from the start.
func (s *servers) call(c call) uint32 {
	return s.calls.ID(c.key(), func() call {
		if len(c.commands) > 1 && !c.tx {
			s.pipelined.Store(true)
		}
		for _, cmd := range c.commands {
			if len(cmd) > 1 && rediscmd.Is(cmd[0], rediscmd.RunsHash) {
				if text, known := s.scripts.Text(cmd[1]); known {
					s.empty.Load(text)
					s.scripted.Store(true)
				}
			}
		}
		return c
	})
}

func (s *servers) answer(o coro.Observation) uint32 {
	return s.answers.ID(string(byte(o.Failure))+o.Reply, func() coro.Observation { return o })
}

func (s *servers) execute(k callAt) effect {
	c := s.calls.Get(k.call)
	before := s.states.Get(k.servers)
	after, reply, info := perform(before[c.node], s.epoch+k.now, c)
	if info.Unknown != "" {
		s.missing.CompareAndSwap(nil, &info.Unknown)
		return effect{servers: k.servers, unknown: true}
	}
	s.check(k, c, after, reply, info)
	e := effect{servers: k.servers, clock: info.Clock}
	replies := alternatives(string(reply), info)
	if c.client == names.Nobody {
		replies = replies[:1] // it is no part of the search
	}
	if len(replies) > maxOrders {
		missing := fmt.Sprintf("the order of so many fields or members as in the answer to %q", c.commands)
		s.missing.CompareAndSwap(nil, &missing)
		return effect{servers: k.servers, unknown: true}
	}
	answers := make([]uint32, len(replies))
	for i, r := range replies {
		answers[i] = s.answer(coro.Observation{Reply: names.Local(r, c.client)})
	}
	if e.answer = answers[0]; len(answers) > 1 {
		e.orders = s.orders.ID(fmt.Sprint(answers), func() []uint32 { return answers })
	}
	if after != before[c.node] {
		e.touched = s.changesOthers(before[c.node], after, c.client, info.Expiring)
		nodes := append([]*redismodel.State(nil), before...)
		nodes[c.node] = after
		e.servers = s.id(nodes)
	}
	return e
}

// unknown returns the error for a command that the model does not know.
func (s *servers) unknown() error { return fmt.Errorf("%w %s", errUnknown, *s.missing.Load()) }

// perform has one server do what the call asks for, and replies as it does.
func perform(on *redismodel.State, now time.Duration, c call) (*redismodel.State, []byte, redismodel.Info) {
	if c.tx {
		return on.Transaction(now, c.connection(), c.commands)
	}
	var all redismodel.Info
	var replies []byte
	for _, cmd := range c.commands {
		next, reply, info := on.Do(now, c.connection(), cmd)
		if info.Unknown != "" {
			return on, nil, info
		}
		for _, l := range info.Loose {
			l.At += len(replies)
			all.Loose = append(all.Loose, l)
		}
		on, replies = next, append(replies, reply...)
		all.Clock = all.Clock || info.Clock
		all.Touched = all.Touched || info.Touched
		all.Expiring = append(all.Expiring, info.Expiring...)
	}
	return on, replies, all
}

func (s *servers) pass(k tick) uint32 {
	before := s.states.Get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Tick(k.by)
	}
	return s.id(nodes)
}

// comes returns the dues of a state.
func (s *servers) comes(id serversID) *dues {
	d := &dues{}
	for _, n := range s.states.Get(uint32(id)) {
		d.in = n.Expiries(d.in)
		for _, at := range instants(n.Text(nil), s.epoch) {
			for _, later := range s.after {
				then := at.is + later
				second := then.Truncate(time.Second) // a clock may be read in whole seconds, begun or over
				d.at = append(d.at, then, then+at.unit, second, second+time.Second)
			}
		}
	}
	slices.Sort(d.in)
	slices.Sort(d.at)
	d.in, d.at = slices.Compact(d.in), slices.Compact(d.at)
	return d
}

func (s *servers) exchange(k renaming) uint32 {
	before := s.states.Get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(k.perm.Rename, func(conn int) int { return k.perm.Of(conn%connClients) + conn - conn%connClients })
	}
	return s.id(nodes)
}

// text describes a state of the servers for people.
func (s *servers) text(id uint32) string {
	nodes := s.states.Get(id)
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = names.Readable(n.Text(nil))
	}
	return strings.Join(parts, " | ")
}

// callRenamed returns a call with its clients permuted.
func (s *servers) callRenamed(id uint32, p names.Perm) uint32 {
	c := s.calls.Get(id)
	c.client = p.Of(c.client)
	commands := make([][]string, len(c.commands))
	for i, cmd := range c.commands {
		commands[i] = make([]string, len(cmd))
		for j, arg := range cmd {
			commands[i][j] = p.Rename(arg)
		}
	}
	c.commands = commands
	return s.call(c)
}

// burying is the key for a state of the servers in which dead names have been replaced by one name.
// A name is dead if its client made it before the oldest one that it may still hold.
type burying struct {
	servers uint32
	alive   [names.MaxSlots]uint8 // of tokens
	drawn   [names.MaxSlots]uint8 // of random values
}

// grave is the client's letter in dead names.
const grave = '7'

// bury replaces a dead name, if there is only one: whose name it was can make no difference any more.
func (s *servers) bury(k burying) uint32 {
	var dead names.Secret
	for _, n := range s.states.Get(k.servers) {
		for _, t := range names.SecretsIn(n.Key()) {
			if t.Client == grave-'0' {
				return k.servers // two in one grave would be one
			}
			alive := &k.alive
			if t.Random {
				alive = &k.drawn
			}
			if t.Client >= names.MaxSlots || t.Number >= int(alive[t.Client]) || t.Name == dead.Name {
				continue
			}
			if dead.Name != "" {
				return k.servers
			}
			dead = t
		}
	}
	if dead.Name == "" {
		return k.servers
	}
	buried := dead.Name[:dead.Letter] + string(grave) + dead.Name[dead.Letter+1:]
	before := s.states.Get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(func(text string) string { return names.Replace(text, dead.Name, buried) }, func(conn int) int { return conn })
	}
	return s.id(nodes)
}

// errUnknown wraps what the model of the servers does not know.
var errUnknown = errors.New("the model of Redis does not know")

// nodes returns what each server holds in a state.
func (s *servers) nodes(id uint32) []*redismodel.State { return s.states.Get(id) }

// callOf returns the call with a number.
func (s *servers) callOf(id uint32) call { return s.calls.Get(id) }

// answerOf returns the answer with a number.
func (s *servers) answerOf(id uint32) coro.Observation { return s.answers.Get(id) }

// ordersOf returns the answers in a list of those that a server might give: see effect.orders.
func (s *servers) ordersOf(id uint32) []uint32 { return s.orders.Get(id) }

// effectOf returns the result of a call at a time, and remembers it.
func (s *servers) effectOf(servers, call uint32, now time.Duration) effect {
	k := callAt{servers: servers, call: call}
	e := s.done.Get(k, k.Hash())
	if e.clock {
		k.now = now
		e = s.doneNow.Get(k, k.Hash())
	}
	return *e
}

// executeAt is effectOf without remembering the result.
func (s *servers) executeAt(servers, call uint32, now time.Duration) effect {
	return s.execute(callAt{servers, call, now})
}

// later returns the servers after some time.
func (s *servers) later(servers uint32, by time.Duration) uint32 {
	k := tick{servers, by}
	return *s.ticked.Get(k, k.Hash())
}

// due returns what comes by itself where the servers are so.
func (s *servers) due(servers uint32) *dues {
	k := serversID(servers)
	return *s.next.Get(k, k.Hash())
}

// exchanged returns the servers with clients exchanged.
func (s *servers) exchanged(servers uint32, p names.Perm) uint32 {
	k := renaming{servers, p}
	return *s.renamed.Get(k, k.Hash())
}

// forget returns the servers in which dead names have been replaced by one name.
func (s *servers) forget(k burying) uint32 { return *s.buried.Get(k, k.Hash()) }

// until returns when a wait ends: at the next expiry, the end of a sleep, or the end of the run.
func (s *servers) until(servers uint32, now, wake, end time.Duration) time.Duration {
	by := end - now
	if due := s.due(servers); len(due.in) > 0 {
		by = min(by, due.in[0])
	}
	if wake > now {
		by = min(by, wake-now)
	}
	return max(by, tickUnit)
}

// globally returns commands of a client in global names.
func globally(commands [][]string, client int) (all [][]string) {
	for _, cmd := range commands {
		args := make([]string, len(cmd))
		for i, arg := range cmd {
			args[i] = names.Global(arg, client)
		}
		all = append(all, args)
	}
	return all
}

func (k callAt) Hash() uint64 { return table.Spread(table.Pair(k.servers, k.call), uint64(k.now)) }

func (k tick) Hash() uint64 { return table.Spread(uint64(k.servers), uint64(k.by)) }

func (k serversID) Hash() uint64 { return table.Spread(uint64(k), 1) }

func (k renaming) Hash() uint64 { return table.Spread(uint64(k.servers), k.perm.Word()) }

func (k burying) Hash() uint64 {
	return table.Spread(uint64(k.servers), names.Perm(k.alive).Word()^names.Perm(k.drawn).Word()<<16)
}

func (k reconnecting) Hash() uint64 {
	return table.Spread(table.Pair(k.servers, uint32(k.node)), table.Pair(uint32(k.from), uint32(k.to)))
}
