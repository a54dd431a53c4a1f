package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
)

// bench is a real server, a proxy to it with a injector, a client through the proxy, and a direct client.
type bench struct {
	t      *testing.T
	s      *injector
	p      *Proxy
	client *rawClient
	direct *redis.Client
}

func newBench(t *testing.T, name string, a Action) *bench {
	t.Helper()
	addr, _ := servertest.Start(t)
	s := &injector{name: name, action: a}
	p := s.through(t, addr)
	direct := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { direct.Close() })
	return &bench{t: t, s: s, p: p, client: mustDial(t, p.Addr()), direct: direct}
}

// holds checks the value of a key on the server.
func (b *bench) holds(key, want string) {
	b.t.Helper()
	if got := b.direct.Get(b.t.Context(), key).Val(); got != want {
		b.t.Errorf("the server has %q under %q, want %q", got, key, want)
	}
}

// fired checks which actions took effect, and that the proxy counts them.
func (b *bench) fired(want string) {
	b.t.Helper()
	servertest.Await(b.t, "actions to fire: "+want, func() bool { return b.s.firings() == want })
	n := int64(0)
	if want != "" {
		n = int64(strings.Count(want, ",") + 1)
	}
	if got := b.p.Stats().Fired; got != n {
		b.t.Errorf("%d actions counted, want %d", got, n)
	}
}

func (b *bench) ends() {
	b.t.Helper()
	servertest.Await(b.t, "the proxy to give the connection up", func() bool { return b.p.Stats().Open == 0 })
}

// pipeline sends three commands at once, of which the second, INCR, is to be hit.
func (b *bench) pipeline() { b.client.send("SET a 1", "INCR b", "SET c 1") }

func TestPassingIsUnaltered(t *testing.T) {
	b := newBench(t, "", Action{})
	b.pipeline()
	b.client.expect("+OK\r\n", ":1\r\n", "+OK\r\n")
	if got, want := b.s.judgements(), "SET a, INCR b, SET c"; got != want {
		t.Errorf("judged: %q, want %q", got, want)
	}
	b.fired("")
	if got := b.p.Stats(); got.Commands != 3 || got.Connections != 1 || got.RequestBytes != 75 || got.ReplyBytes != 14 {
		t.Errorf("stats: %+v", got)
	}
}

func TestDropRequest(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: DropRequest})
	b.pipeline()
	b.client.expect("+OK\r\n")
	b.client.expectEnd(false)
	b.fired("drop-request INCR b")
	b.holds("a", "1")
	b.holds("b", "")
	b.holds("c", "")
	b.ends()
}

func TestDropReply(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: DropReply})
	b.pipeline()
	b.client.expect("+OK\r\n")
	b.client.expectEnd(false)
	b.fired("drop-reply INCR b")
	b.holds("a", "1")
	b.holds("b", "1")
	b.holds("c", "")
	b.ends()
}

func TestReset(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: Reset})
	b.pipeline()
	b.client.expect("+OK\r\n")
	b.client.expectEnd(true)
	b.fired("reset INCR b")
	b.holds("b", "")
	b.holds("c", "")
	b.ends()
}

func TestResetAfter(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: ResetAfter})
	b.pipeline()
	b.client.expect("+OK\r\n")
	b.client.expectEnd(true)
	b.fired("reset-after INCR b")
	b.holds("b", "1")
	b.holds("c", "")
	b.ends()
}

func TestLate(t *testing.T) {
	const after = 50 * time.Millisecond
	b := newBench(t, "INCR", Action{Verb: Late, After: after})
	b.client.send("SELECT 3", "SET a 1", "INCR b", "SET c 1")
	start := time.Now()
	b.client.expect("+OK\r\n", "+OK\r\n")
	b.client.expectEnd(false)
	if time.Since(start) < after { // on a slow machine the command may have been executed by now
		b.hitEither("", "late INCR b")
	}
	b.fired("late INCR b")
	if d := time.Since(start); d < after {
		t.Errorf("executed after %v, want %v", d, after)
	}
	b.holds("b", "") // not in this database, but in database 3
	third := redis.NewClient(&redis.Options{Addr: b.direct.Options().Addr, DB: 3})
	defer third.Close()
	if got := third.Get(t.Context(), "b").Val(); got != "1" {
		t.Errorf("the late command left %q, want 1", got)
	}
	b.holds("c", "")
	b.ends()
}

// hitEither checks what fired, where a race with the clock allows two results.
func (b *bench) hitEither(one, other string) {
	b.t.Helper()
	if got := b.s.firings(); got != one && got != other {
		b.t.Errorf("fired: %q; want %q or %q", got, one, other)
	}
}

func TestLateExecUnderAWatch(t *testing.T) {
	b := newBench(t, "EXEC", Action{Verb: Late})
	b.client.send("SET w 1", "WATCH w", "MULTI", "INCR b", "EXEC")
	b.client.expect("+OK\r\n", "+OK\r\n", "+OK\r\n", "+QUEUED\r\n")
	b.client.expectEnd(false)
	b.fired("late EXEC")
	b.holds("b", "1")
}

func TestCloseCancelsLate(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: Late, After: time.Hour})
	b.client.send("INCR b")
	b.client.expectEnd(false)
	if err := b.p.Close(); err != nil {
		t.Fatal(err)
	}
	b.holds("b", "")
	b.fired("")
}

func TestSeverCancelsLate(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: Late, After: time.Hour})
	b.client.send("INCR b")
	b.client.expectEnd(false)
	b.p.Sever()
	b.ends()
	b.holds("b", "")
	b.fired("")
}

func TestDelay(t *testing.T) {
	const after = 40 * time.Millisecond
	b := newBench(t, "INCR", Action{Verb: Delay, After: after})
	start := time.Now()
	b.pipeline()
	b.client.expect("+OK\r\n", ":1\r\n", "+OK\r\n")
	if d := time.Since(start); d < after {
		t.Errorf("answered after %v, want %v", d, after)
	}
	b.fired("delay INCR b")
	b.holds("c", "1")
}

// TestDelayOutlivesItsClient checks that a delayed request is executed even if its client has closed the connection: the
// request was already on its way.
func TestDelayOutlivesItsClient(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: Delay, After: 40 * time.Millisecond})
	b.client.send("INCR b")
	b.client.Close()
	b.fired("delay INCR b")
	b.ends()
	b.holds("b", "1")
}

func TestHalfOpenForAWhile(t *testing.T) {
	const after = 60 * time.Millisecond
	b := newBench(t, "INCR", Action{Verb: HalfOpen, After: after})
	start := time.Now()
	b.pipeline()
	b.client.expect("+OK\r\n", ":1\r\n", "+OK\r\n")
	if d := time.Since(start); d < after {
		t.Errorf("answered after %v, want %v", d, after)
	}
	b.fired("half-open INCR b")
	b.holds("c", "1")
}

func TestHalfOpenForEver(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: HalfOpen})
	b.client.send("SUBSCRIBE news", "INCR b", "PING")
	b.client.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	b.client.expectSilence(func() {
		b.fired("half-open INCR b")
		if n := b.direct.Publish(t.Context(), "news", "x").Val(); n != 1 {
			t.Errorf("%d subscribers, want 1", n)
		}
		b.direct.ClientKillByFilter(t.Context(), "TYPE", "pubsub") // the client does not see the end of the connection either
	})
	other := mustDial(t, b.p.Addr()) // the action affects only its own connection
	other.send("PING")
	other.expect("+PONG\r\n")
	b.p.Sever()
	b.client.expectEnd(true)
}

// TestHalfOpenOneWay checks that half-open in one direction stops that direction, while the other goes on.
func TestHalfOpenOneWay(t *testing.T) {
	t.Run("replies", func(t *testing.T) {
		b := newBench(t, "INCR", Action{Verb: HalfOpen, Direction: Replies})
		b.pipeline()
		b.client.expect("+OK\r\n")
		b.client.expectSilence(func() {
			servertest.Await(t, "the commands", func() bool { return b.direct.Get(t.Context(), "c").Val() == "1" })
			b.client.send("INCR b", "SET d 1")
			servertest.Await(t, "the next ones", func() bool { return b.direct.Get(t.Context(), "d").Val() == "1" })
		})
		b.fired("half-open INCR b")
		b.p.Sever()
		b.client.expectEnd(true)
	})
	t.Run("replies for a while", func(t *testing.T) {
		const after = 40 * time.Millisecond
		b := newBench(t, "INCR", Action{Verb: HalfOpen, Direction: Replies, After: after})
		start := time.Now()
		b.pipeline()
		b.client.expect("+OK\r\n", ":1\r\n", "+OK\r\n")
		if d := time.Since(start); d < after {
			t.Errorf("answered after %v, want %v", d, after)
		}
		b.fired("half-open INCR b")
	})
	t.Run("requests", func(t *testing.T) {
		s := &injector{name: "INCR", action: Action{Verb: HalfOpen, Direction: Requests}}
		_, client, server := pair(t, Options{Decide: s.judge, Fired: s.heard})
		client.send("INCR a")
		server.expectSilence(func() {
			servertest.Await(t, "the action", func() bool { return s.firings() == "half-open INCR a" })
			server.Write([]byte(">1\r\n+push\r\n"))
			client.expect(">1\r\n+push\r\n")
		})
	})
}

func TestTrickleReply(t *testing.T) {
	const pause = 2 * time.Millisecond
	b := newBench(t, "GET", Action{Verb: Trickle, After: pause})
	b.client.send("SET k hello", "GET k", "PING")
	start := time.Now()
	b.client.expect("+OK\r\n", "$5\r\nhello\r\n", "+PONG\r\n")
	if d, want := time.Since(start), 10*pause; d < want {
		t.Errorf("answered after %v, want %v", d, want)
	}
	b.fired("trickle GET k")
}

func TestTrickleRequest(t *testing.T) {
	const pause = 2 * time.Millisecond
	b := newBench(t, "GET", Action{Verb: Trickle, After: pause, Direction: Requests})
	start := time.Now()
	b.client.send("SET k hello", "GET k", "PING")
	b.client.expect("+OK\r\n", "$5\r\nhello\r\n", "+PONG\r\n")
	if d, want := time.Since(start), 20*pause; d < want {
		t.Errorf("answered after %v, want %v", d, want)
	}
	b.fired("trickle GET k")
}

func TestUnknownVerbPasses(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: "explode"})
	b.pipeline()
	b.client.expect("+OK\r\n", ":1\r\n", "+OK\r\n")
	b.fired("")
}

// TestNeighbours checks that an action on one connection does not affect other connections.
func TestNeighbours(t *testing.T) {
	for _, verb := range []Verb{DropRequest, DropReply, Reset, ResetAfter, Late, HalfOpen} {
		t.Run(string(verb), func(t *testing.T) {
			b := newBench(t, "INCR", Action{Verb: verb})
			other := mustDial(t, b.p.Addr())
			other.send("SET x 1")
			other.expect("+OK\r\n")
			b.client.send("INCR b")
			b.fired(string(verb) + " INCR b")
			other.send("GET x", "PING")
			other.expect("$1\r\n1\r\n", "+PONG\r\n")
		})
	}
}

// TestNoReplyNoSwallowing checks that no action on a reply fires for a command that has no reply.
func TestNoReplyNoSwallowing(t *testing.T) {
	for _, verb := range []Verb{DropReply, ResetAfter, Trickle} {
		t.Run(string(verb), func(t *testing.T) {
			b := newBench(t, "INCR", Action{Verb: verb})
			b.client.send("CLIENT REPLY SKIP", "INCR b", "PING", "CLIENT REPLY OFF", "INCR b", "ECHO x", "CLIENT REPLY ON", "PING")
			b.client.expect("+PONG\r\n", "+OK\r\n", "+PONG\r\n")
			b.fired("")
			b.holds("b", "2")
		})
	}
}

func TestLateWithoutReply(t *testing.T) {
	b := newBench(t, "INCR", Action{Verb: Late})
	b.client.send("CLIENT REPLY OFF", "SET a 1", "INCR b")
	b.client.expectEnd(false)
	b.fired("late INCR b")
	servertest.Await(t, "the late command", func() bool { return b.direct.Get(t.Context(), "b").Val() == "1" })
	b.holds("a", "1")
}

// TestRepliesAreMatched hits PING after all kinds of commands that make it hard to tell which reply belongs to PING.
func TestRepliesAreMatched(t *testing.T) {
	for name, c := range map[string]struct {
		send, expect []string
	}{
		"skip": {
			[]string{"CLIENT REPLY SKIP", "SET a 1", "GET a"},
			[]string{"$1\r\n1\r\n"}},
		"skip, on": {
			[]string{"CLIENT REPLY SKIP", "CLIENT REPLY ON", "GET a"},
			[]string{"+OK\r\n", "$-1\r\n"}},
		"skip, skip": {
			[]string{"CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "ECHO a", "ECHO b"},
			[]string{"$1\r\nb\r\n"}},
		"skip, error": {
			[]string{"CLIENT REPLY SKIP", "CLIENT REPLY what", "ECHO b"},
			[]string{"$1\r\nb\r\n"}},
		"skip in a transaction": {
			[]string{"CLIENT REPLY SKIP", "MULTI", "ECHO b", "EXEC"},
			[]string{"+QUEUED\r\n", "*1\r\n$1\r\nb\r\n"}},
		"off": {
			[]string{"CLIENT REPLY OFF", "SET a 1", "nosuch", "CLIENT REPLY SKIP", "MULTI", "EXEC", "CLIENT REPLY ON", "GET a"},
			[]string{"+OK\r\n", "$1\r\n1\r\n"}},
		"off, reset": {
			[]string{"CLIENT REPLY OFF", "SET a 1", "RESET", "GET a"},
			[]string{"+RESET\r\n", "$1\r\n1\r\n"}},
		"client": {
			[]string{"CLIENT SETNAME x", "CLIENT NO-EVICT on", "CLIENT REPLY", "CLIENT"},
			[]string{"+OK\r\n", "+OK\r\n",
				"-ERR wrong number of arguments for 'client|reply' command\r\n", "-ERR wrong number of arguments for 'client' command\r\n"}},
		"transaction": {
			[]string{"MULTI", "SET a 1", "LRANGE l 0 1", "EXEC", "MULTI", "DISCARD", "WATCH a", "EXEC"},
			[]string{"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n+OK\r\n*0\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "-ERR EXEC without MULTI\r\n"}},
		"subscribe and leave": {
			[]string{"SUBSCRIBE a b", "PSUBSCRIBE p", "UNSUBSCRIBE", "PUNSUBSCRIBE p q", "PUNSUBSCRIBE", "UNSUBSCRIBE"},
			[]string{confirmation("subscribe", "a", 1), confirmation("subscribe", "b", 2), confirmation("psubscribe", "p", 3),
				"*3\r\n$11\r\nunsubscribe\r\n$1\r\n", "?", "\r\n:2\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\n", "?", "\r\n:1\r\n",
				confirmation("punsubscribe", "p", 0), confirmation("punsubscribe", "q", 0),
				"*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:0\r\n", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"}},
		"subscribed": {
			[]string{"SUBSCRIBE a a", "GET a", "HELLO 3", "SUBSCRIBE", "SSUBSCRIBE s"},
			[]string{confirmation("subscribe", "a", 1), confirmation("subscribe", "a", 1),
				refused("get"), refused("hello"), "-ERR wrong number of arguments for 'subscribe' command\r\n", confirmation("ssubscribe", "s", 1)}},
		"subscribe, reset": {
			[]string{"SUBSCRIBE a", "RESET", "RPUSH l message subscribe a", "LRANGE l 0 2", "LRANGE l 1 2"},
			[]string{confirmation("subscribe", "a", 1), "+RESET\r\n", ":3\r\n", "*3\r\n$7\r\nmessage\r\n$9\r\nsubscribe\r\n$1\r\na\r\n", "*2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n"}},
		"lists that look like messages": {
			[]string{"RPUSH l message a b", "RPUSH m subscribe a 1", "LRANGE l 0 2", "LRANGE m 0 2"},
			[]string{":3\r\n", ":3\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n$1\r\n1\r\n"}},
		"refused": {
			[]string{"AUTH a b", "SUBSCRIBE a", "UNSUBSCRIBE a"},
			[]string{"-WRONGPASS invalid username-password pair or user is disabled.\r\n", confirmation("subscribe", "a", 1), confirmation("unsubscribe", "a", 0)}},
		"forbidden channel": {
			[]string{"ACL SETUSER default resetchannels", "SUBSCRIBE a b", "PSUBSCRIBE c"},
			[]string{"+OK\r\n", forbidden("subscribe"), forbidden("psubscribe")}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "PING", Action{Verb: DropReply})
			b.client.send(append(c.send, "PING", "SET after 1")...)
			for _, e := range c.expect {
				if e == "?" {
					b.client.in.ReadByte()
				} else {
					b.client.expect(e)
				}
			}
			b.client.expectEnd(false)
			b.fired("drop-reply PING")
			b.holds("after", "")
			b.ends()
		})
	}
}

func confirmation(word, channel string, n int) string {
	return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:%d\r\n", len(word), word, len(channel), channel, n)
}

func refused(command string) string {
	return "-ERR Can't execute '" + command + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"
}

func forbidden(string) string {
	return "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
}

// TestSubscriptionStruck checks that drop-reply on PSUBSCRIBE drops both confirmations, but no message.
func TestSubscriptionStruck(t *testing.T) {
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			b := newBench(t, "PSUBSCRIBE", Action{Verb: DropReply})
			b.client.send("HELLO "+proto, "CLIENT SETNAME x", "SUBSCRIBE a")
			servertest.Await(t, "the subscription", func() bool { return b.direct.PubSubNumSub(t.Context(), "a").Val()["a"] == 1 })
			b.direct.Publish(t.Context(), "a", "m")
			servertest.Await(t, "the message", func() bool {
				line, err := b.client.in.ReadString('\n')
				return err != nil || line == "m\r\n"
			})
			b.client.send("PSUBSCRIBE p q", "PSUBSCRIBE r")
			b.client.expectEnd(false)
			b.fired("drop-reply PSUBSCRIBE")
			b.ends()
		})
	}
}

func TestRESP3(t *testing.T) {
	b := newBench(t, "PING", Action{Verb: DropReply})
	c := b.client
	c.send("HELLO 3")
	servertest.Await(t, "the end of the greeting", func() bool {
		line, err := c.in.ReadString('\n')
		return err != nil || line == "modules\r\n"
	})
	c.expect("*0\r\n")
	push := func(s string) string { return ">" + s[1:] }
	c.send("CLIENT TRACKING on", "GET k", "SET k 1", "SUBSCRIBE a b", "RPUSH l message a x", "LRANGE l 0 2", "HGETALL h", "UNSUBSCRIBE")
	c.expect("+OK\r\n", "_\r\n", "+OK\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")
	c.expect(push(confirmation("subscribe", "a", 1)), push(confirmation("subscribe", "b", 2)), ":3\r\n")
	c.expect("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n", "%0\r\n")
	for range 2 {
		c.expect(">3\r\n$11\r\nunsubscribe\r\n$1\r\n")
		c.in.Discard(len("a\r\n:1\r\n"))
	}
	c.send("SUBSCRIBE a", "PING", "SET after 1")
	c.expect(push(confirmation("subscribe", "a", 1)))
	c.expectEnd(false)
	b.fired("drop-reply PING")
	b.holds("after", "")
}

// TestBlockedClientLeaves checks that the command of a client that gives up does not go on waiting at the server, where it
// would steal an element later, even if its reply or the next command is to be hit.
func TestBlockedClientLeaves(t *testing.T) {
	for _, c := range []struct {
		name string
		verb Verb
	}{{"BLPOP", DropReply}, {"BLPOP", ResetAfter}, {"BLPOP", Pass}, {"INCR", DropRequest}, {"INCR", Reset}, {"INCR", DropReply}} {
		t.Run(c.name+" "+string(c.verb), func(t *testing.T) {
			b := newBench(t, c.name, Action{Verb: c.verb})
			b.client.send("BLPOP l 0", "INCR b")
			blocked := func() bool {
				return strings.Contains(b.direct.Info(t.Context(), "clients").Val(), "blocked_clients:1")
			}
			servertest.Await(t, "the client to block", blocked)
			b.client.Close()
			servertest.Await(t, "the client to be gone", func() bool { return !blocked() })
			b.direct.RPush(t.Context(), "l", "x")
			if n := b.direct.LLen(t.Context(), "l").Val(); n != 1 {
				t.Errorf("%d elements, want 1", n)
			}
			b.fired("")
			b.ends()
		})
	}
}

// TestPushesAreNoReplies checks that the proxy does not count pushes as replies, while an action waits for a reply or
// before.
func TestPushesAreNoReplies(t *testing.T) {
	s := &injector{name: "INCR", action: Action{Verb: DropReply}}
	_, client, server := pair(t, Options{Decide: s.judge, Fired: s.heard})
	push := ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"
	client.send("GET a", "GET b")
	server.expect(string(command("GET", "a")), string(command("GET", "b")))
	server.Write([]byte(push + "$1\r\n1\r\n" + push))
	client.expect(push, "$1\r\n1\r\n", push)
	client.send("INCR c")
	server.expect(string(command("INCR", "c")))
	server.Write([]byte("$1\r\n2\r\n" + push + ":1\r\n"))
	client.expect("$1\r\n2\r\n", push)
	client.expectEnd(false)
	if got := s.firings(); got != "drop-reply INCR c" {
		t.Errorf("fired: %q", got)
	}
}

// TestWhatCameBeforeIsDelivered checks that earlier replies are delivered, even if they were held back when the action was
// judged.
func TestWhatCameBeforeIsDelivered(t *testing.T) {
	for _, first := range []string{"HELLO 2", "PING"} {
		s := &injector{name: "INCR", action: Action{Verb: DropRequest}}
		p, client, server := pair(t, Options{Decide: s.judge, Fired: s.heard})
		p.Cut(Replies)
		client.send(first)
		server.expect(string(command(strings.Fields(first)...)))
		server.Write([]byte("*0\r\n"))
		servertest.Await(t, "the reply", func() bool { return p.Stats().ReplyBytes == 4 })
		client.send("INCR a")
		servertest.Await(t, "the judgement", func() bool { return strings.HasSuffix(s.judgements(), "INCR a") })
		p.Restore()
		client.expect("*0\r\n")
		client.expectEnd(false)
	}
}

func TestBlockingReplyDropped(t *testing.T) {
	b := newBench(t, "BLPOP", Action{Verb: DropReply})
	b.client.send("SET a 1", "BLPOP l 0", "SET c 1")
	b.client.expect("+OK\r\n")
	servertest.Await(t, "the client to block", func() bool {
		return strings.Contains(b.direct.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	b.fired("")
	b.direct.RPush(t.Context(), "l", "x")
	b.client.expectEnd(false)
	b.fired("drop-reply BLPOP l")
	b.holds("c", "")
	if n := b.direct.LLen(t.Context(), "l").Val(); n != 0 {
		t.Errorf("%d elements, want 0: it was popped", n)
	}
}

// TestMonitor checks that MONITOR and its output pass unchanged, and that no later command is judged.
func TestMonitor(t *testing.T) {
	b := newBench(t, "PING", Action{Verb: DropReply})
	b.client.send("SET a 1", "MONITOR")
	b.client.expect("+OK\r\n", "+OK\r\n")
	b.direct.Set(t.Context(), "x", "1", 0)
	servertest.Await(t, "the command to be seen", func() bool {
		line, err := b.client.in.ReadString('\n')
		return err != nil || strings.Contains(line, `"set" "x" "1"`)
	})
	b.client.send("PING")
	if got, want := b.s.judgements(), "SET a, MONITOR"; got != want {
		t.Errorf("judged: %q, want %q", got, want)
	}
	b.fired("")
}

// TestUnfollowed checks that everything passes where the proxy cannot know which replies come.
func TestUnfollowed(t *testing.T) {
	for name, c := range map[string]struct{ send, expect []string }{
		"subscribing in a transaction": {
			[]string{"MULTI", "SUBSCRIBE a b", "EXEC", "PING"},
			[]string{"+OK\r\n", "+QUEUED\r\n", "*1\r\n", confirmation("subscribe", "a", 1), confirmation("subscribe", "b", 2), "*2\r\n$4\r\npong\r\n$0\r\n\r\n"}},
		"replies turned off in a transaction": {
			[]string{"MULTI", "CLIENT REPLY OFF", "EXEC", "PING", "CLIENT REPLY ON", "PING"},
			[]string{"+OK\r\n", "+QUEUED\r\n", "*1\r\n+OK\r\n+PONG\r\n"}},
		"a subscription that is not answered": {
			[]string{"CLIENT REPLY SKIP", "SUBSCRIBE a", "PING"},
			[]string{confirmation("subscribe", "a", 1), "*2\r\n$4\r\npong\r\n$0\r\n\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "PING", Action{Verb: DropReply})
			b.client.send(c.send...)
			b.client.expect(c.expect...)
			b.fired("")
		})
	}
}

// TestQuit checks that the server's reply to QUIT passes, and that it then closes the connection.
func TestQuit(t *testing.T) {
	b := newBench(t, "", Action{})
	b.client.send("SET a 1", "QUIT")
	b.client.expect("+OK\r\n", "+OK\r\n")
	b.client.expectEnd(false)
	b.client.Close()
	b.ends()
}
