package servers

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

// Servers numbers the states of the masters, and remembers the effects of commands on them.
type Servers struct {
	// Names gives the clients' names.
	Names names.Namer
	// LockKeys are the keys whose changes are watched.
	LockKeys []string
	// After says how long after a stored instant something may be due.
	After []time.Duration
	// Empty is a server that holds nothing.
	Empty *redismodel.State
	// Clocked reports that a command used the clock of a server, or had a point in time among its arguments.
	Clocked atomic.Bool
	// Pipelined reports that a pipeline was sent, Scripted that a script was called by its hash, and Ordered that the
	// order of clients' names made a difference.
	Pipelined, Scripted, Ordered atomic.Bool

	epoch    time.Duration // of the search's clock, since 1970
	scripts  *coro.Scripts
	spelling spelling
	missing  atomic.Pointer[string] // the first command that the model did not know
	states   *table.Interner[[]*redismodel.State]
	calls    *table.Interner[Call]
	answers  *table.Interner[coro.Observation]
	orders   *table.Interner[[]uint32]

	done     *table.Memo[callAt, Effect]       // of commands that do not depend on the clock, at now = 0
	doneNow  *table.Memo[callAt, Effect]       // of the others
	ticked   *table.Memo[tick, uint32]         // after time has passed
	next     *table.Memo[serversID, *dues]     // what comes by itself
	renamed  *table.Memo[renaming, uint32]     // with clients exchanged
	buried   *table.Memo[Burying, uint32]      // with dead tokens forgotten
	reclosed *table.Memo[reconnecting, uint32] // with a connection closed
}

// Call is a command of a client in global names.
type Call struct {
	Client   int
	Node     int
	Commands [][]string
	Tx       bool
	Conn     int // see coro.Request.Conn, and LateConn
	// During is the kind of the client's operation that sends it.
	During history.Kind
}

func (c Call) key() string {
	var b strings.Builder
	tx := byte(0)
	if c.Tx {
		tx = 1
	}
	b.Write([]byte{byte(c.Client), byte(c.Node), tx, byte(c.During), byte(c.Conn)})
	for _, cmd := range c.Commands {
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

// LateConn is the first number for connections that were closed by their clients with a request in
// flight.
const LateConn = 64

// Connection returns the number of a call's connection on its server.
func (c Call) Connection() int { return c.Client + connClients*c.Conn }

// reconnecting is the key for the state of the servers after a client has closed a connection: its watched keys are
// forgotten, or go with the request in flight.
type reconnecting struct {
	servers  uint32
	node     uint8
	from, to int16
}

func (s *Servers) reconnect(k reconnecting) uint32 {
	before := s.states.Get(k.servers)
	after := before[k.node].Reconnect(int(k.from), int(k.to))
	if after == before[k.node] {
		return k.servers
	}
	nodes := append([]*redismodel.State(nil), before...)
	nodes[k.node] = after
	return s.id(nodes)
}

// Closed returns the servers after the client of a call has closed its connection.
func (s *Servers) Closed(servers uint32, c Call) uint32 {
	if c.Conn == 0 {
		return servers
	}
	return s.Reconnected(servers, c.Node, c.Connection(), -1)
}

// Reconnected returns the servers after the watched keys of a connection to a node have moved to another one; -1: to
// none.
func (s *Servers) Reconnected(servers uint32, node, from, to int) uint32 {
	return s.reclosed.Of(reconnecting{servers, uint8(node), int16(from), int16(to)})
}

type callAt struct {
	servers, call uint32
	now           time.Duration
}

// Effect is the result of a call.
type Effect struct {
	Servers uint32 // afterwards
	Answer  uint32 // in the names of the client
	Orders  uint32 // the number of the list of other answers that a server might give; 0: none
	// Touched: another client's data under a key of the lock was changed, or its expiry was set, judged by the value.
	Touched bool
	Clock   bool // it depends on the clock
	Unknown bool // the model does not know what it does: see Servers.Unknown
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
	In, At []time.Duration
}

// Expires reports whether a key expires within so long.
func (d *dues) Expires(in time.Duration) bool {
	_, found := slices.BinarySearch(d.In, in)
	return found
}

type renaming struct {
	servers uint32
	perm    names.Perm
}

// New returns servers whose clock begins at epoch and on which these keys hold the lock. They know the scripts.
func New(epoch time.Time, lockKeys []string, scripts *coro.Scripts, naming names.Namer) *Servers {
	s := &Servers{
		Names: naming,
		epoch: time.Duration(epoch.UnixNano()), LockKeys: lockKeys, scripts: scripts, Empty: redismodel.Empty(),
		states: table.NewInterner[[]*redismodel.State](), calls: table.NewInterner[Call](), answers: table.NewInterner[coro.Observation](),
	}
	s.orders = table.NewInterner[[]uint32]()
	s.orders.ID("", func() []uint32 { return nil })
	s.done = table.NewMemo(func(k callAt) Effect { return s.execute(k) })
	s.doneNow = table.NewMemo(func(k callAt) Effect { return s.execute(k) })
	s.ticked = table.NewMemo(s.pass)
	s.next = table.NewMemo(s.comes)
	s.renamed = table.NewMemo(s.exchange)
	s.spelling.mapped = table.NewMemo(s.spell)
	s.spelling.off = naming.Naming >= names.Concrete
	s.buried = table.NewMemo(s.bury)
	s.reclosed = table.NewMemo(s.reconnect)
	return s
}

// Start returns n empty servers.
func (s *Servers) Start(n int) uint32 {
	nodes := make([]*redismodel.State, n)
	for i := range nodes {
		nodes[i] = s.Empty
	}
	return s.id(nodes)
}

func (s *Servers) id(nodes []*redismodel.State) uint32 {
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
				s.Ordered.Store(true)
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

// CallID numbers a call. A client sends a script's text once and then its hash; here the servers know it from the
// start.
func (s *Servers) CallID(c Call) uint32 {
	return s.calls.ID(c.key(), func() Call {
		if len(c.Commands) > 1 && !c.Tx {
			s.Pipelined.Store(true)
		}
		for _, cmd := range c.Commands {
			if len(cmd) > 1 && rediscmd.Is(cmd[0], rediscmd.RunsHash) {
				if text, known := s.scripts.Text(cmd[1]); known {
					s.Empty.Load(text)
					s.Scripted.Store(true)
				}
			}
		}
		return c
	})
}

// AnswerID numbers an answer.
func (s *Servers) AnswerID(o coro.Observation) uint32 {
	return s.answers.ID(string(byte(o.Failure))+o.Reply, func() coro.Observation { return o })
}

func (s *Servers) execute(k callAt) Effect {
	c := s.calls.Get(k.call)
	before := s.states.Get(k.servers)
	after, reply, info := s.Do(before[c.Node], k.now, c)
	if info.Unknown != "" {
		s.missing.CompareAndSwap(nil, &info.Unknown)
		return Effect{Servers: k.servers, Unknown: true}
	}
	s.check(k, c, after, reply, info)
	if info.Clock || s.tellsTime(c) {
		s.Clocked.Store(true)
	}
	e := Effect{Servers: k.servers, Clock: info.Clock}
	replies := alternatives(string(reply), info)
	if c.Client == names.Nobody {
		replies = replies[:1] // it is not part of the search
	}
	if len(replies) > maxOrders {
		missing := fmt.Sprintf("the order of so many fields or members as in the answer to %q", c.Commands)
		s.missing.CompareAndSwap(nil, &missing)
		return Effect{Servers: k.servers, Unknown: true}
	}
	answers := make([]uint32, len(replies))
	for i, r := range replies {
		answers[i] = s.AnswerID(coro.Observation{Reply: s.Names.Local(r, c.Client)})
	}
	if e.Answer = answers[0]; len(answers) > 1 {
		e.Orders = s.orders.ID(fmt.Sprint(answers), func() []uint32 { return answers })
	}
	if after != before[c.Node] {
		e.Touched = s.changesOthers(before[c.Node], after, c.Client, info.Expiring)
		nodes := append([]*redismodel.State(nil), before...)
		nodes[c.Node] = after
		e.Servers = s.id(nodes)
	}
	return e
}

// named reports whether a text has a name or a point in time of the search in it, which stands for any other.
func (s *Servers) named(text string) (yes bool) {
	names.EachLetter(text, func(int) { yes = true })
	return yes || len(s.Names.Found(text)) > 0 || len(s.InstantsIn(text)) > 0
}

// tellsTime reports whether a call has a point in time among its arguments.
func (s *Servers) tellsTime(c Call) bool {
	for _, cmd := range c.Commands {
		if slices.ContainsFunc(cmd, func(arg string) bool { return len(s.InstantsIn(arg)) > 0 }) {
			return true
		}
	}
	return false
}

// Unknown returns the error for a command that the model does not know.
func (s *Servers) Unknown() error { return fmt.Errorf("%w %s", ErrUnknown, *s.missing.Load()) }

// perform has one server execute the call, and returns its reply.
func perform(on *redismodel.State, now time.Duration, c Call) (*redismodel.State, []byte, redismodel.Info) {
	if c.Tx {
		return on.Transaction(now, c.Connection(), c.Commands)
	}
	var all redismodel.Info
	var replies []byte
	for _, cmd := range c.Commands {
		next, reply, info := on.Do(now, c.Connection(), cmd)
		if info.Unknown != "" {
			return on, nil, info
		}
		for _, l := range info.Unordered {
			l.At += len(replies)
			all.Unordered = append(all.Unordered, l)
		}
		on, replies = next, append(replies, reply...)
		all.Clock = all.Clock || info.Clock
		all.Touched = all.Touched || info.Touched
		all.Expiring = append(all.Expiring, info.Expiring...)
		all.Hashed = append(all.Hashed, info.Hashed...)
	}
	return on, replies, all
}

func (s *Servers) pass(k tick) uint32 {
	before := s.states.Get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Tick(k.by)
	}
	return s.id(nodes)
}

// comes returns the dues of a state.
func (s *Servers) comes(id serversID) *dues {
	d := &dues{}
	for _, n := range s.states.Get(uint32(id)) {
		d.In = n.Expiries(d.In)
		for _, at := range s.InstantsIn(n.Text(nil)) {
			for _, later := range s.After {
				then := at.At + later
				second := then.Truncate(time.Second) // a clock may be read in whole seconds, begun or over
				d.At = append(d.At, then, then+at.Unit, second, second+time.Second)
			}
		}
	}
	slices.Sort(d.In)
	slices.Sort(d.At)
	d.In, d.At = slices.Compact(d.In), slices.Compact(d.At)
	return d
}

func (s *Servers) exchange(k renaming) uint32 {
	before := s.states.Get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(k.perm.Rename, func(conn int) int { return k.perm.Of(conn%connClients) + conn - conn%connClients })
	}
	return s.id(nodes)
}

// Text describes a state of the servers in readable form.
func (s *Servers) Text(id uint32) string {
	nodes := s.states.Get(id)
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = names.Readable(n.Text(nil))
	}
	return strings.Join(parts, " | ")
}

// RenamedCall returns a call with its clients permuted.
func (s *Servers) RenamedCall(id uint32, p names.Perm) uint32 {
	c := s.calls.Get(id)
	c.Client = p.Of(c.Client)
	commands := make([][]string, len(c.Commands))
	for i, cmd := range c.Commands {
		commands[i] = make([]string, len(cmd))
		for j, arg := range cmd {
			commands[i][j] = p.Rename(arg)
		}
	}
	c.Commands = commands
	return s.CallID(c)
}

// Burying is the key for a state of the servers in which dead names have been replaced by one name.
// A name is dead if its client made it before the oldest one that it may still hold.
type Burying struct {
	Servers uint32
	Alive   [names.MaxSlots]uint8 // of tokens
	Drawn   [names.MaxSlots]uint8 // of random values
}

// grave is the client's letter in dead names.
const grave = '7'

// bury replaces a dead name, if there is only one: whose it was makes no difference any more.
func (s *Servers) bury(k Burying) uint32 {
	var dead names.Secret
	for _, n := range s.states.Get(k.Servers) {
		for _, t := range names.SecretsIn(n.Key()) {
			if t.Client == grave-'0' {
				return k.Servers // two would become one
			}
			alive := &k.Alive
			if t.Random {
				alive = &k.Drawn
			}
			if t.Client >= names.MaxSlots || t.Number >= int(alive[t.Client]) || t.Name == dead.Name {
				continue
			}
			if dead.Name != "" {
				return k.Servers
			}
			dead = t
		}
	}
	if dead.Name == "" {
		return k.Servers
	}
	buried := dead.Name[:dead.Letter] + string(grave) + dead.Name[dead.Letter+1:]
	before := s.states.Get(k.Servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(func(text string) string { return names.Replace(text, dead.Name, buried) }, func(conn int) int { return conn })
	}
	return s.id(nodes)
}

// ErrUnknown is wrapped by errors about what the model of the servers does not know.
var ErrUnknown = errors.New("the model of Redis does not know")

// Nodes returns what each server holds in a state.
func (s *Servers) Nodes(id uint32) []*redismodel.State { return s.states.Get(id) }

// Call returns the call with a number.
func (s *Servers) Call(id uint32) Call { return s.calls.Get(id) }

// Answer returns the answer with a number.
func (s *Servers) Answer(id uint32) coro.Observation { return s.answers.Get(id) }

// Orders returns the answers in a list of those that a server might give: see Effect.Orders.
func (s *Servers) Orders(id uint32) []uint32 { return s.orders.Get(id) }

// Effect returns the result of a call at a time, and remembers it.
func (s *Servers) Effect(servers, call uint32, now time.Duration) Effect {
	k := callAt{servers: servers, call: call}
	e := s.done.Get(k, k.Hash())
	if e.Clock {
		k.now = now
		e = s.doneNow.Get(k, k.Hash())
	}
	return *e
}

// Execute returns the result of a call at a time, like Effect, but does not remember it.
func (s *Servers) Execute(servers, call uint32, now time.Duration) Effect {
	return s.execute(callAt{servers, call, now})
}

// Later returns the servers after some time.
func (s *Servers) Later(servers uint32, by time.Duration) uint32 {
	k := tick{servers, by}
	return *s.ticked.Get(k, k.Hash())
}

// Due returns what happens by itself in a state of the servers.
func (s *Servers) Due(servers uint32) *dues {
	k := serversID(servers)
	return *s.next.Get(k, k.Hash())
}

// Exchanged returns the servers with clients exchanged.
func (s *Servers) Exchanged(servers uint32, p names.Perm) uint32 {
	k := renaming{servers, p}
	return *s.renamed.Get(k, k.Hash())
}

// Forget returns the servers with dead names replaced by one name. The caller passes the key's hash, so that Forget is
// inlined: see [table.Memo].
func (s *Servers) Forget(k Burying, hash uint64) uint32 { return *s.buried.Get(k, hash) }

// Until returns when a wait ends: at the next expiry, the end of a sleep, or the end of the run.
func (s *Servers) Until(servers uint32, now, wake, end time.Duration) time.Duration {
	by := end - now
	if due := s.Due(servers); len(due.In) > 0 {
		by = min(by, due.In[0])
	}
	if wake > now {
		by = min(by, wake-now)
	}
	return max(by, TickUnit)
}

// Globally returns commands of a client in global names.
func Globally(commands [][]string, client int) (all [][]string) {
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

// Hash returns the hash of the key for a table.
func (k Burying) Hash() uint64 {
	return table.Spread(uint64(k.Servers), names.Perm(k.Alive).Word()^names.Perm(k.Drawn).Word()<<16)
}

func (k reconnecting) Hash() uint64 {
	return table.Spread(table.Pair(k.servers, uint32(k.node)), table.Pair(uint32(k.from), uint32(k.to)))
}

// Load makes the servers know the scripts in commands.
func (s *Servers) Load(commands [][]string) {
	for _, cmd := range commands {
		if len(cmd) > 1 && rediscmd.Is(cmd[0], rediscmd.RunsHash) {
			if text, known := s.scripts.Text(cmd[1]); known {
				s.Empty.Load(text)
			}
		}
	}
}

// Do has one server execute the call at a time of the search, and returns its reply.
func (s *Servers) Do(on *redismodel.State, now time.Duration, c Call) (*redismodel.State, []byte, redismodel.Info) {
	next, reply, info := perform(on, s.epoch+now, c)
	if slices.ContainsFunc(info.Hashed, s.named) {
		return on, nil, redismodel.Info{Unknown: "the order of the fields of a Lua table whose keys are random"}
	}
	return next, reply, info
}
