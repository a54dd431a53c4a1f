package replay

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/rediscmd"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server/instance"
	"oversell/variant"
)

// ErrDiverged reports that on a real server the code sent other commands, or got other answers, than the schedule says.
var ErrDiverged = errors.New("the code or the server did not follow the schedule")

// Search is the search that found the schedule.
type Search struct {
	// Run says what the clients do, and with which variants.
	Run scenarios.Config
	// Bounds are those of the search.
	Bounds reports.Bounds
	// Start starts the code of a client, whose names are in the book.
	Start func(who clients.ClientSpec, book *names.Dictionary, scripts *coro.Scripts) clients.Execution
}

// Drive drives the schedule of a counterexample against real servers, which must be empty. Every
// answer is compared with the search's. Points in time are those of the servers' clock, as much later as the schedule is
// driven; they may differ by a second, and so may what is left of an expiry, and the numbers above zero in the answer of a
// script that asks for it. Other answers that depend on the server's clock are not compared. Time passes for real. If
// the schedule begins with minutes, it begins at the same second of a real minute instead.
//
// It returns the promise that was broken there, judged by the servers' answers: nil means that the schedule was
// completed and nothing was broken. ErrDiverged says where it diverged.
func Drive(ctx context.Context, s Search, cx *reports.Counterexample, servers []*redis.Options) (*reports.Property, error) {
	look := []history.Promise{{Of: cx.Of, Property: cx.Property}}
	r := &replay{
		ctx: ctx, of: s, promise: look, naming: names.NewNamer(names.Naming(cx.Naming), len(cx.Clients)), servers: withDefaults(servers),
		rules: rules.New(s.Run, s.Bounds.Clients, look), lines: map[line]*bufio.ReadWriter{}, late: map[int]history.Kind{}, times: newTimes(),
	}
	defer r.close()
	if err := r.open(len(cx.Clients), timed(cx.Steps)); err != nil {
		return nil, err
	}
	for i, s := range cx.Steps {
		r.last, r.steps = i == len(cx.Steps)-1, i
		if err := r.step(cx.Steps, s); err != nil {
			return nil, fmt.Errorf("step %d (%s): %w", i+1, s.Text, err)
		}
		if r.breach != nil {
			return told(r.breach), nil
		}
	}
	return nil, nil
}

// withDefaults returns the options with go-redis's defaults of Network, Addr and Dialer.
func withDefaults(all []*redis.Options) (complete []*redis.Options) {
	for _, o := range all {
		whole := *o
		whole.Network, whole.Addr = cmp.Or(o.Network, "tcp"), cmp.Or(o.Addr, "localhost:6379")
		if o.Dialer == nil {
			whole.Dialer = redis.NewDialer(&whole)
		}
		complete = append(complete, &whole)
	}
	return complete
}

func told(b *rules.Breach) *reports.Property {
	return &reports.Property{Of: b.Of, Name: b.Property, Result: reports.Broken, Measured: reports.Broken, Count: 1, Why: b.Why, Witness: []history.Op{}}
}

// replay is a schedule under way on real servers.
type replay struct {
	ctx     context.Context
	of      Search
	promise []history.Promise // the promise that the schedule breaks
	naming  names.Namer
	servers []*redis.Options
	rules   *rules.Rules
	facts   rules.Facts
	scripts *coro.Scripts
	clients []*replayedClient
	lines   map[line]*bufio.ReadWriter
	conns   []net.Conn
	now     time.Duration
	times   *times
	breach  *rules.Breach
	last    bool                 // this is the last step
	steps   int                  // done
	late    map[int]history.Kind // the operation that sent a late request, by step
}

// line is a client's connection to a server: its number, see coro.Request.Conn, or for a request in flight lateLine of
// the step that sent it.
type line struct{ client, node, conn int }

func lateLine(step int) int { return -1 - step }

// replayedClient is a client of the schedule.
type replayedClient struct {
	number int
	code   clients.Execution
	book   *names.Dictionary
	loud   bool // others could notice its last step
	under  []history.Kind
	held   []rules.Event // not yet judged
}

// open brings the servers to the state in which the schedule starts, and the clients to their first step. If the schedule
// is timed, it starts at a whole second, like that of the search.
func (r *replay) open(n int, timed bool) error {
	if err := r.do(func(ctx context.Context, client *scenarios.Client) error { return client.Open(ctx) }); err != nil {
		return fmt.Errorf("open the scenario: %w", err)
	}
	if timed {
		second := time.Now().Truncate(time.Second).Add(time.Second)
		if err := (clock.Real{}).Sleep(r.ctx, time.Until(second)); err != nil {
			return err
		}
	}
	r.facts = r.rules.Start()
	r.scripts = &coro.Scripts{}
	for i := range n {
		who := clients.ClientSpec{Index: int(clients.RoleOf(r.of.Run, i)), Names: r.naming.Scheme(i)}
		p := &replayedClient{number: i, book: who.Names.Dictionary(0)}
		p.code = r.of.Start(who, p.book, r.scripts)
		r.clients = append(r.clients, p)
		if err := r.settle(p); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) close() {
	for _, p := range r.clients {
		p.code.Close()
	}
	for _, c := range r.conns {
		c.Close()
	}
}

// settle hands on the client's events, and answers its looks at the clock.
func (r *replay) settle(p *replayedClient) error {
	for {
		if err := p.code.Err(); err != nil {
			return err
		}
		for _, e := range p.code.Events() {
			_, events := clients.EachText(nil, []rules.Event{e.(rules.Event)}, p.book.Canonical)
			r.came(p, events[0])
		}
		i := slices.IndexFunc(p.code.Pending(), func(q coro.Request) bool { return q.Kind == coro.Boundary })
		if i < 0 {
			return nil
		}
		p.code.Resume(i, coro.Observation{})
	}
}

func (r *replay) came(p *replayedClient, e rules.Event) {
	if e.Op.Kind != history.Join {
		if e.End {
			p.under = p.under[:max(len(p.under)-1, 0)]
		} else {
			p.under = append(p.under, e.Op.Kind)
		}
	}
	p.held = append(p.held, e)
	if e.End {
		r.judge(p)
	}
}

// start returns what the servers' clock shows where the schedule starts, if what has passed of the schedule passed without
// delay.
func (r *replay) start() time.Time { return time.Now().Add(-r.now) }

// judge judges the client's events; calls are judged only when it goes on.
func (r *replay) judge(p *replayedClient) {
	for _, e := range p.held {
		p.loud = p.loud || clients.Noticed(e)
		var b *rules.Breach
		r.facts, b = r.rules.Observe(r.facts, p.number, r.now, e)
		r.broken(b)
	}
	p.held = nil
}

func (r *replay) broken(b *rules.Breach) {
	if r.breach == nil {
		r.breach = b
	}
}

func (r *replay) step(all []reports.Step, s reports.Step) error {
	switch s.Kind {
	case reports.StepAdvance:
		return r.pass(reports.FromMS(s.AdvanceMS))
	case reports.StepCrash:
		return nil // it is never let go on
	case reports.StepEnd:
		return r.end()
	case reports.StepArrive:
		c := servers.Call{Client: s.Client, Node: s.Node, Commands: s.Commands, Tx: s.Tx, During: r.late[s.Of]}
		if s.Conn > 0 {
			c.Conn = lateLine(s.Of)
		}
		_, err := r.send(c, s)
		r.hangUp(c)
		return err
	}
	p := r.clients[s.Client]
	i := s.Thread
	if i < 0 || i >= len(p.code.Pending()) {
		return fmt.Errorf("%w: client %d has nothing to do there", ErrDiverged, s.Client)
	}
	if looked, err := r.look(p, i, s.Looks); err != nil || looked && (s.Kind == reports.StepLook || s.Kind == reports.StepStart) {
		return err
	}
	if i >= len(p.code.Pending()) {
		return fmt.Errorf("%w: client %d has nothing to do there", ErrDiverged, s.Client)
	}
	r.judge(p)
	q := p.code.Pending()[i]
	o := coro.Observation{Now: max(r.now, q.Until)}
	if q.Kind == coro.Command {
		if err := r.same(p, q, s); err != nil {
			return err
		}
		c := servers.Call{Client: s.Client, Node: s.Node, Commands: s.Commands, Tx: s.Tx, Conn: s.Conn}
		if len(p.under) > 0 {
			c.During = p.under[len(p.under)-1]
		}
		if s.Kind == reports.StepLate {
			r.late[r.steps] = c.During
		}
		var err error
		if o.Reply, err = r.happens(s, c); err != nil {
			return err
		}
		if s.Kind != reports.StepCommand {
			if s.Kind == reports.StepLate {
				from, to := line{c.Client, c.Node, c.Conn}, line{c.Client, c.Node, lateLine(r.steps)}
				if rw := r.lines[from]; rw != nil && c.Conn > 0 {
					r.lines[to] = rw
					delete(r.lines, from)
				}
			}
			r.hangUp(c)
			o.Reply, o.Failure = "", coro.NoAnswer
			if q.Deadline > 0 && q.Deadline <= r.now {
				o.Failure = coro.TimedOut
			}
		}
		o.Reply = p.book.Reply(r.naming.Local(o.Reply, s.Client))
	}
	p.code.Resume(i, o)
	return r.settle(p)
}

// hangUp closes the connection of a call, as a client library does without an answer, if keys are watched on it.
func (r *replay) hangUp(c servers.Call) {
	l := line{c.Client, c.Node, c.Conn}
	if l.conn == 0 || r.lines[l] == nil {
		return
	}
	_, _ = r.exchange(l, instance.Request("RESET"), 1) // so that it is forgotten before the next command
	delete(r.lines, l)
}

// look lets a client take its private steps before its next command, or look at the clock so often.
func (r *replay) look(p *replayedClient, i, times int) (looked bool, err error) {
	if i >= len(p.code.Pending()) {
		return false, nil
	}
	before, thread := p.code.Pending(), p.code.Pending()[i].Thread
	for p.loud = false; !p.loud && clients.Private(p.code.Pending()[i]); {
		looks := p.code.Pending()[i].Kind == coro.Clock
		r.judge(p)
		p.code.Resume(i, coro.Observation{Now: r.now})
		if err := r.settle(p); err != nil {
			return true, err
		}
		looked = true
		if looks {
			times--
		}
		if !clients.OnlyMoved(before, p.code.Pending(), thread) || looks && times == 0 {
			break
		}
		i = max(clients.ThreadAt(p.code.Pending(), thread), 0)
	}
	return looked, nil
}

// happens sends a command, if it reaches the server now.
func (r *replay) happens(s reports.Step, c servers.Call) (string, error) {
	if s.Kind != reports.StepCommand && s.Kind != reports.StepNoReply {
		return "", nil
	}
	return r.send(c, s)
}

// same compares what the client is about to send with what the schedule says.
func (r *replay) same(p *replayedClient, q coro.Request, s reports.Step) error {
	// The schedule names the values that the client has drawn at random.
	want := clients.Said(p.book, []coro.Request{{Commands: localCommands(s.Commands, p.number)}}, nil)
	if err := names.Follow(clients.Said(p.book, []coro.Request{{Commands: q.Commands}}, nil), want, names.Values(want.Texts)); err != nil && !s.Clock {
		return fmt.Errorf("%w: client %d is about to send %q", ErrDiverged, p.number, q.Commands)
	}
	var commands [][]string
	for _, cmd := range q.Commands {
		args := make([]string, len(cmd))
		for i, arg := range cmd {
			args[i] = names.Global(p.book.Canonical(arg), p.number)
		}
		commands = append(commands, args)
	}
	equal := func(a, b []string) bool {
		if s.Clock { // the command may hold times
			return len(a) == len(b) && len(a) > 0 && a[0] == b[0]
		}
		return slices.Equal(a, b)
	}
	if !slices.EqualFunc(commands, s.Commands, equal) {
		return fmt.Errorf("%w: client %d is about to send %q", ErrDiverged, p.number, commands)
	}
	return nil
}

// localCommands returns commands in the names of client.
func localCommands(commands [][]string, client int) [][]string {
	all := make([][]string, len(commands))
	for i, cmd := range commands {
		for _, arg := range cmd {
			all[i] = append(all[i], names.Local(arg, client))
		}
	}
	return all
}

// pass lets time pass for real, and 20 ms more, because a server may be late in expiring a key. Minutes before the
// first command do not pass: only what the servers' clock shows afterwards can matter, so pass waits for the same
// second of a real minute.
func (r *replay) pass(d time.Duration) error {
	wait := d + 20*time.Millisecond
	if r.now == 0 && len(r.lines) == 0 && d >= time.Minute {
		now := time.Now()
		if wait = now.Truncate(time.Minute).Add(d % time.Minute).Sub(now); wait < 0 {
			wait += time.Minute
		}
	}
	if err := (clock.Real{}).Sleep(r.ctx, wait); err != nil {
		return err
	}
	r.now += d
	r.facts = r.rules.TimePasses(r.facts, r.now)
	return nil
}

// send has a server execute a client's call, and judges what it does to the lock.
func (r *replay) send(c servers.Call, s reports.Step) (string, error) {
	// The search has shown that it makes a difference to the holder; here it is enough that something changed.
	var holders []rules.Holder
	var before string
	if r.last {
		holders = r.rules.Endangered(r.facts, c.Client, c.During, r.now)
	}
	if len(holders) > 0 {
		// Two expiries differ by the millisecond in which they were set.
		if err := (clock.Real{}).Sleep(r.ctx, 2*time.Millisecond); err != nil {
			return "", err
		}
		var err error
		if before, err = r.dump(c.Node); err != nil {
			return "", err
		}
	}
	reply, err := r.exchange(line{c.Client, c.Node, c.Conn}, r.wire(c), replyCount(c))
	if err != nil {
		return "", err
	}
	equal := func(got, want string) bool { return got == want }
	if r.asksRest(c) {
		equal = sameButRest
	}
	switch start := r.start(); {
	case r.times.same(reply, s.Reply, start, equal), asksTime(c):
		reply = s.Reply // so the client goes by the clock of the search
	case s.Clock:
		reply = r.times.toSchedule(reply, start)
	default:
		return "", fmt.Errorf("%w: the server answered %s, and in the search %s", ErrDiverged, servers.Replies(c, reply), servers.Replies(c, s.Reply))
	}
	if len(holders) == 0 {
		return reply, nil
	}
	after, err := r.dump(c.Node)
	if err == nil && before != after {
		r.broken(r.rules.Touched(holders[0], c.Client, c.During))
	}
	return reply, err
}

// asksRest reports whether an answer may hold what is left of an expiry.
func (r *replay) asksRest(c servers.Call) bool {
	return slices.ContainsFunc(c.Commands, func(cmd []string) bool {
		text := cmd[0]
		switch known, _ := rediscmd.Find(cmd[0]); {
		case len(cmd) < 2:
		case known.Does(rediscmd.RunsText):
			text = cmd[1]
		case known.Does(rediscmd.RunsHash):
			text, _ = r.scripts.Text(cmd[1])
		}
		return strings.Contains(strings.ToUpper(text), "TTL")
	})
}

// asksTime reports whether a call only asks for the time.
func asksTime(c servers.Call) bool {
	return len(c.Commands) == 1 && len(c.Commands[0]) == 1 && strings.EqualFold(c.Commands[0][0], "TIME")
}

// mostRest is how much two answers to PTTL may differ: the clock of a search stands while it executes commands.
const mostRest = 1000

// sameButRest reports whether two answers are the same, or differ in numbers above zero that are nearly the same.
func sameButRest(got, want string) bool {
	return slices.EqualFunc(strings.Split(got, "\r\n"), strings.Split(want, "\r\n"), func(a, b string) bool {
		if a == b {
			return true
		}
		x, isX := integer(a)
		y, isY := integer(b)
		return isX && isY && min(x, y) > 0 && max(x-y, y-x) <= mostRest
	})
}

// integer returns the number of an integer in RESP.
func integer(reply string) (int64, bool) {
	digits, is := strings.CutPrefix(reply, ":")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, is && err == nil
}

// dump returns all data of a server.
func (r *replay) dump(node int) (all string, err error) {
	own := line{names.Nobody, node, 0}
	list, err := r.exchange(own, instance.Request("KEYS", "*"), 1)
	if err != nil {
		return "", err
	}
	keys := texts(list)
	slices.Sort(keys)
	for _, key := range keys {
		one, err := r.exchange(own, instance.Request("DUMP", key)+instance.Request("PEXPIRETIME", key), 2)
		if err != nil {
			return "", err
		}
		all += key + one
	}
	return all, nil
}

// texts returns the texts of a reply in RESP that is a list.
func texts(reply string) (all []string) {
	_, rest, _ := strings.Cut(reply, "\r\n")
	for strings.HasPrefix(rest, "$") {
		size, after, _ := strings.Cut(rest[1:], "\r\n")
		n, _ := strconv.Atoi(size)
		n = min(max(n, 0), len(after))
		all, rest = append(all, after[:n]), strings.TrimPrefix(after[n:], "\r\n")
	}
	return all
}

// wire returns a call as it is sent. Scripts go as text, so that none needs to be known. Times are those of the servers.
func (r *replay) wire(c servers.Call) string {
	start := r.start()
	var b strings.Builder
	if c.Tx {
		b.WriteString(instance.Request("MULTI"))
	}
	for _, cmd := range c.Commands {
		c, _ := rediscmd.Find(cmd[0])
		cmd = slices.Clone(cmd)
		for i := range cmd {
			if i != 1 || !c.Does(rediscmd.RunsText) && !c.Does(rediscmd.RunsHash) {
				cmd[i] = r.times.toServers(cmd[i], start)
			}
		}
		if c.Does(rediscmd.RunsHash) {
			if text, known := r.scripts.Text(cmd[1]); known {
				cmd[0], cmd[1] = c.OtherScript.Name, text
			}
		}
		b.WriteString(instance.Request(cmd...))
	}
	if c.Tx {
		b.WriteString(instance.Request("EXEC"))
	}
	return b.String()
}

func replyCount(c servers.Call) int {
	if c.Tx {
		return len(c.Commands) + 2
	}
	return len(c.Commands)
}

// exchange sends commands on a client's own connection and reads so many replies.
func (r *replay) exchange(l line, commands string, n int) (string, error) {
	rw, err := r.line(l)
	if err != nil {
		return "", err
	}
	if _, err := rw.WriteString(commands); err != nil {
		return "", err
	}
	if err := rw.Flush(); err != nil {
		return "", err
	}
	var reply strings.Builder
	for range n {
		if err := readReply(rw, &reply); err != nil {
			return "", err
		}
	}
	return reply.String(), nil
}

// replayLimit is how long a replay may take.
const replayLimit = 10 * time.Minute

func (r *replay) line(l line) (*bufio.ReadWriter, error) {
	if rw := r.lines[l]; rw != nil {
		return rw, nil
	}
	o := r.servers[l.node]
	conn, err := o.Dialer(r.ctx, o.Network, o.Addr)
	if err != nil {
		return nil, err
	}
	r.conns = append(r.conns, conn)
	if err := conn.SetDeadline(time.Now().Add(replayLimit)); err != nil {
		return nil, err
	}
	rw := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	r.lines[l] = rw
	if o.Password != "" {
		args := []string{"AUTH", o.Password}
		if o.Username != "" {
			args = []string{"AUTH", o.Username, o.Password}
		}
		if _, err := r.exchange(l, instance.Request(args...), 1); err != nil {
			return nil, err
		}
	}
	return rw, nil
}

// readReply copies one value in RESP.
func readReply(from *bufio.ReadWriter, to *strings.Builder) error {
	head, err := from.ReadString('\n')
	if err != nil {
		return err
	}
	to.WriteString(head)
	if len(head) < 3 {
		return fmt.Errorf("a server replied %q", head)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(head[1:]))
	switch head[0] {
	case '$':
		if n >= 0 {
			_, err = io.CopyN(to, from, int64(n)+2)
		}
	case '*':
		for range n {
			if err = readReply(from, to); err != nil {
				return err
			}
		}
	}
	return err
}

// do runs f as a client of its own, which is not stepped.
func (r *replay) do(f func(ctx context.Context, client *scenarios.Client) error) error {
	env, closeAll := r.plain()
	defer closeAll()
	return f(r.ctx, scenarios.Alone(r.of.Run, plainWorld(env, r.naming.DictionaryOfNobody(), nil)))
}

// plain returns the environment of a client that is not stepped.
func (r *replay) plain() (variant.Env, func()) {
	env := variant.Env{Clock: clock.Real{}}
	live, end := context.WithCancel(r.ctx)
	n := 0
	env.Token = func() string { n++; return r.naming.Outsider(n) }
	env.Wait = func(ctx context.Context, _ string, atMost time.Duration) error {
		return env.Clock.Sleep(ctx, min(atMost, 20*time.Millisecond))
	}
	env.Go = func(f func(context.Context)) func(context.Context) error {
		over := make(chan struct{})
		go func() { defer close(over); f(live) }()
		return variant.Join(over)
	}
	for _, o := range r.servers {
		env.Redis = append(env.Redis, redis.NewClient(o))
		env.Addr = append(env.Addr, o.Addr)
	}
	return env, func() {
		end()
		for _, c := range env.Redis {
			c.Close()
		}
	}
}

// plainWorld is the environment of a client that is not stepped; it calls ended with each operation.
func plainWorld(env variant.Env, book *names.Dictionary, ended func(history.Op)) scenarios.ClientEnv {
	numbers := map[string]int64{}
	return scenarios.ClientEnv{
		Env: env, Index: names.Nobody, Epoch: servers.Epoch,
		Pause:  func(string) {},
		Enough: func() bool { return false },
		Number: func(of string) int64 { numbers[of]++; return book.Number(numbers[of]) },
		Began:  func(history.Op) {},
		Ended: func(op history.Op, _ error) {
			if ended != nil {
				ended(clients.InCanonicalNumbers(op, book))
			}
		},
	}
}

// end judges what the servers hold now; all busy clients are dead.
func (r *replay) end() error {
	dead := r.rules.Busy(r.facts)
	if bits.OnesCount16(dead) > r.of.Bounds.Crashes {
		return fmt.Errorf("%w: more clients are in the middle of something than may die", ErrDiverged)
	}
	lock, books := rules.JudgesTheEnd(r.promise)
	if books {
		var ops []history.Op
		env, closeAll := r.plain()
		defer closeAll()
		if err := scenarios.Alone(r.of.Run, plainWorld(env, r.naming.DictionaryOfNobody(), func(op history.Op) { ops = append(ops, op) })).Audit(r.ctx); err != nil {
			return err
		}
		r.broken(r.rules.AtTheEnd(r.facts, ops, dead))
	}
	if lock && r.breach == nil {
		return r.tryLock(dead)
	}
	return nil
}

// tryLock lets a client try for the lock for its lease and a grace.
func (r *replay) tryLock(dead uint16) error {
	env, closeAll := r.plain()
	defer closeAll()
	o := clients.LockOptions(r.of.Run)
	o.Wait, o.MaxTries = r.of.Run.Patience(), 0
	locker := r.of.Run.Lock.New(env)
	var refused error
	for end := time.Now().Add(o.Wait); ; {
		_, refused = locker.Acquire(r.ctx, clients.LockName(r.of.Run), o)
		if refused == nil {
			return nil
		}
		if network := net.Error(nil); errors.As(refused, &network) {
			return refused
		}
		if errors.Is(refused, lockimpl.ErrHeld) {
			refused = nil
		}
		if time.Now().After(end) {
			break
		}
		if err := env.Wait(r.ctx, "", o.RetryEvery); err != nil { // a lock may try only once, whatever its options say
			return err
		}
	}
	v, _ := env.Redis[0].Get(r.ctx, lockimpl.Key(clients.LockName(r.of.Run))).Result()
	r.broken(r.rules.Stuck(r.facts, dead, r.of.Run.Patience(), v, refused))
	return nil
}
