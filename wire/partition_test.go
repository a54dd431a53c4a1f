package wire

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/child"
	"oversell/internal/servertest"
)

// pair returns a proxy, a client's connection through it, and the other end of that connection, at which the test plays
// the server.
func pair(t *testing.T, o Options) (*Proxy, *rawClient, *rawClient) {
	t.Helper()
	addr, accepted := fakeServer(t)
	o.To = addr
	p := mustListen(t, o)
	client := mustDial(t, p.Addr())
	server := <-accepted
	return p, client, mustWrap(t, server)
}

// passing is a judge that lets everything pass. That is not the same as no judge.
func passing(Command) Action { return Action{} }

// bothWays runs a test with a judge and without.
func bothWays(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("judged", func(t *testing.T) { test(t, Options{Decide: passing}) })
	t.Run("unjudged", func(t *testing.T) { test(t, Options{}) })
}

func TestCutRequests(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		p, client, server := pair(t, o)
		p.Cut(Requests)
		client.send("INCR a", "INCR b")
		client.CloseWrite()
		server.expectSilence(func() {
			server.Write([]byte(":1\r\n")) // the other direction is open
			client.expect(":1\r\n")
		})
		p.Restore()
		server.expect(string(command("INCR", "a")), string(command("INCR", "b")))
		server.expectEnd(false)
	})
}

func TestCutReplies(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		p, client, server := pair(t, o)
		p.Cut(Replies)
		client.send("INCR a")
		client.expectSilence(func() {
			server.expect(string(command("INCR", "a")))
			server.Write([]byte(":1\r\n"))
			server.CloseWrite()
			client.send("INCR b")
			server.expect(string(command("INCR", "b")))
		})
		p.Restore()
		client.expect(":1\r\n")
		client.expectEnd(false)
	})
}

// TestCutTwice checks that a second cut adds to the first, and that one Restore ends both.
func TestCutTwice(t *testing.T) {
	p, client, server := pair(t, Options{Decide: passing})
	p.Cut(Requests)
	client.send("PING")
	servertest.Await(t, "the bytes to arrive", func() bool { return p.Stats().RequestBytes == 14 })
	p.Cut(Both)
	p.Restore()
	server.expect(string(command("PING")))
	p.Restore()
	client.send("PING")
	server.expect(string(command("PING")))
}

// TestCutHoldsNewConnections checks that, during a cut, new connections are accepted and nothing passes through them.
func TestCutHoldsNewConnections(t *testing.T) {
	addr, accepted := fakeServer(t)
	p := mustListen(t, Options{To: addr, Decide: passing})
	p.Cut(Both)
	client := mustDial(t, p.Addr())
	client.send("PING")
	client.expectSilence(func() {
		servertest.Await(t, "the connection", func() bool { return p.Stats().Open == 1 })
	})
	if len(accepted) > 0 {
		t.Fatal("the server sees a connection during the cut")
	}
	p.Restore()
	server := mustWrap(t, <-accepted)
	server.expect(string(command("PING")))
}

// TestCutIsJudgedAfter checks that a command that arrives during a cut is judged only when the cut ends.
func TestCutIsJudgedAfter(t *testing.T) {
	s := &injector{name: "INCR", action: Action{Verb: DropRequest}}
	p, client, server := pair(t, Options{Decide: s.judge, Fired: s.heard})
	client.send("PING")
	server.expect(string(command("PING")))
	p.Cut(Both)
	client.send("INCR a")
	server.Write([]byte("+PONG\r\n"))
	servertest.Await(t, "the bytes to arrive", func() bool { st := p.Stats(); return st.RequestBytes == 35 && st.ReplyBytes == 7 })
	if got := s.judgements(); got != "PING" {
		t.Errorf("judged: %q, want PING alone", got)
	}
	p.Restore()
	client.expect("+PONG\r\n")
	client.expectEnd(false)
	server.expectEnd(false)
	if got := s.firings(); got != "drop-request INCR a" {
		t.Errorf("fired: %q", got)
	}
}

// TestCloseDuringACut checks that Close does not wait for the end of a cut.
func TestCloseDuringACut(t *testing.T) {
	p, client, _ := pair(t, Options{Decide: passing})
	p.Cut(Both)
	client.send("PING")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("the proxy still listens")
	}
}

func TestSever(t *testing.T) {
	p, client, server := pair(t, Options{Decide: passing})
	client.send("PING")
	server.expect(string(command("PING")))
	p.Sever()
	client.expectEnd(true)
	server.expectEnd(true)
	servertest.Await(t, "the connection to be gone", func() bool { return p.Stats().Open == 0 })
	if again := mustDial(t, p.Addr()); again == nil {
		t.Error("no connection after that")
	}
}

// TestHalfClose checks that each direction ends separately, and that what is left is delivered, even an unfinished
// command or an unfinished reply.
func TestHalfClose(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		p, client, server := pair(t, o)
		client.send("PING")
		client.Write([]byte("*2\r\n$3\r\nGE"))
		client.CloseWrite()
		server.expect(string(command("PING")), "*2\r\n$3\r\nGE")
		if b, err := server.in.ReadByte(); err != io.EOF {
			t.Fatalf("read %q, %v; want the end", b, err)
		}
		server.Write([]byte("+PO"))
		client.expect("+PO")
		server.Write([]byte("NG\r\n$5\r\nhe"))
		server.Close()
		client.expect("NG\r\n", "$5\r\nhe")
		client.expectEnd(false)
		servertest.Await(t, "the connection to be gone", func() bool { return p.Stats().Open == 0 })
	})
	bothWays(t, func(t *testing.T, o Options) { // now the server closes first
		p, client, server := pair(t, o)
		server.Write([]byte("-ERR max number of clients reached\r\n"))
		server.CloseWrite()
		client.expect("-ERR max number of clients reached\r\n")
		if b, err := client.in.ReadByte(); err != io.EOF {
			t.Fatalf("read %q, %v; want the end", b, err)
		}
		client.send("PING")
		server.expect(string(command("PING")))
		client.Close()
		server.expectEnd(false)
		servertest.Await(t, "the connection to be gone", func() bool { return p.Stats().Open == 0 })
	})
}

// TestResetsPass checks that the proxy passes a reset on as a reset, not as a close.
func TestResetsPass(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		_, client, server := pair(t, o)
		server.Write([]byte("+PONG\r\n"))
		client.expect("+PONG\r\n")
		server.SetLinger(0)
		server.Close()
		client.expectEnd(true)
	})
	bothWays(t, func(t *testing.T, o Options) {
		_, client, server := pair(t, o)
		client.send("PING")
		server.expect(string(command("PING")))
		client.SetLinger(0)
		client.Close()
		server.expectEnd(true)
	})
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := mustListen(t, Options{To: l.Addr().String(), Decide: passing})
	refusedSoon(t, p.Addr())
	servertest.Await(t, "the connection to be gone", func() bool { return p.Stats().Open == 0 })
}

// refusedSoon checks that a connection is refused, or reset after it was accepted.
func refusedSoon(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = io.ReadAll(c)
		c.Close()
	}
	if !isReset(err) {
		t.Errorf("a client without a server sees %v, want a reset", err)
	}
}

func TestListenRefuses(t *testing.T) {
	taken := mustListen(t, Options{To: "127.0.0.1:1"})
	for o, want := range map[*Options]string{
		{To: "nonsense"}: `open a proxy to "nonsense": `,
		{To: "127.0.0.1:1", Listen: taken.Addr()}:    "open a proxy to 127.0.0.1:1: listen tcp",
		{To: "127.0.0.1:1", Listen: "256.0.0.1:bad"}: "open a proxy to 127.0.0.1:1: listen tcp",
	} {
		if _, err := Listen(t.Context(), *o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("listen with %+v: %v; want an error that begins %q", o, err, want)
		}
	}
}

// TestForeignBytes checks that bytes that are not RESP pass at once, in both directions.
func TestForeignBytes(t *testing.T) {
	_, client, server := pair(t, Options{Decide: passing})
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	client.Write([]byte(hello))
	server.expect(hello)
	server.Write([]byte("\x16\x03\x03\x00\x7a"))
	client.expect("\x16\x03\x03\x00\x7a")
	client.send("PING")
	server.expect(string(command("PING")))
}

// TestForeignReplies checks that a connection whose replies are not RESP is no longer judged, and that an action that
// waits for a reply does not fire.
func TestForeignReplies(t *testing.T) {
	for _, c := range []struct {
		verb  Verb
		sent  string // what the server has received of the command that was hit, before it replies
		first string
	}{
		{Pass, string(command("INCR", "a")), ""},
		{DropReply, string(command("INCR", "a")), ""},
		{DropRequest, "", string(command("GET", "b"))},
		{HalfOpen, "", string(command("GET", "b"))},
		{Late, "", string(command("GET", "b"))},
		{Reset, "", string(command("GET", "b"))},
	} {
		t.Run(string(c.verb), func(t *testing.T) {
			s := &injector{name: "INCR", action: Action{Verb: c.verb}}
			_, client, server := pair(t, Options{Decide: s.judge, Fired: s.heard})
			if c.first != "" {
				client.send("GET b")
			}
			client.send("INCR a")
			server.expect(c.first, c.sent)
			server.Write([]byte("what is this?\r\n"))
			client.expect("what is this?\r\n")
			if c.sent == "" {
				server.expect(string(command("INCR", "a")))
			}
			judged := s.judgements()
			client.send("INCR c")
			server.expect(string(command("INCR", "c")))
			if s.firings() != "" || s.judgements() != judged {
				t.Errorf("fired: %q; judged: %q, want %q still", s.firings(), s.judgements(), judged)
			}
		})
	}
}

// TestServerLeavesDuringAStrike checks that, if the server closes the connection before an action takes effect, the action
// does not fire and the client sees the end of the connection.
func TestServerLeavesDuringAStrike(t *testing.T) {
	for _, verb := range []Verb{DropReply, ResetAfter, DropRequest, Reset, Late, HalfOpen} {
		t.Run(string(verb), func(t *testing.T) {
			s := &injector{name: "INCR", action: Action{Verb: verb}}
			p, client, server := pair(t, Options{Decide: s.judge, Fired: s.heard})
			client.send("GET b", "INCR a")
			server.expect(string(command("GET", "b")))
			if verb == DropReply || verb == ResetAfter {
				server.expect(string(command("INCR", "a")))
			}
			server.Close()
			client.expectEnd(false)
			servertest.Await(t, "the connection to be gone", func() bool { return p.Stats().Open == 0 })
			if s.firings() != "" {
				t.Errorf("fired: %q", s.firings())
			}
		})
	}
}

// TestWindowsAreBounded checks that a window does not grow beyond its bound, whatever passes through it.
func TestWindowsAreBounded(t *testing.T) {
	var w window
	in := bytes.NewReader(make([]byte, 10*maxHeld))
	for {
		n, err := w.fill(in)
		if err != nil {
			break
		}
		if n == 0 || len(w.buf) > maxHeld {
			t.Fatalf("%d bytes read into a buffer of %d, the first of %d", n, len(w.buf), w.from)
		}
		w.gone(w.end)
	}
	if in.Len() > 0 || len(w.buf) != maxHeld {
		t.Errorf("%d bytes left, a buffer of %d", in.Len(), len(w.buf))
	}
}

// TestHugeCommand checks that a huge command is judged by its beginning and passes in no more memory than a window.
func TestHugeCommand(t *testing.T) {
	const size = 64 << 20
	var judged Command
	var cutShort int
	p, client, server := pair(t, Options{Decide: func(c Command) Action {
		if c.Name == "SET" {
			judged, cutShort = c, len(c.Args[2])
		}
		return Action{}
	}})
	value := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	var wg sync.WaitGroup
	wg.Go(func() {
		client.Write(command("PING"))
		client.Write([]byte("*3\r\n$3\r\nset\r\n$3\r\nkey\r\n$67108864\r\n"))
		client.Write(value)
		client.Write([]byte("\r\n"))
		client.Write(command("GET", "key"))
	})
	server.expect(string(command("PING")), "*3\r\n$3\r\nset\r\n$3\r\nkey\r\n$67108864\r\n", string(value), "\r\n", string(command("GET", "key")))
	wg.Wait()
	wg.Go(func() {
		server.Write([]byte("+PONG\r\n+OK\r\n$67108864\r\n"))
		server.Write(value)
		server.Write([]byte("\r\n"))
	})
	client.expect("+PONG\r\n+OK\r\n", "$67108864\r\n", string(value), "\r\n")
	wg.Wait()
	if judged.Name != "SET" || judged.Key != "key" || cutShort == 0 || cutShort > maxHeld {
		t.Errorf("judged as %s %s with %d bytes of the value", judged.Name, judged.Key, cutShort)
	}
	if got := p.Stats().Commands; got != 3 {
		t.Errorf("%d commands, want 3", got)
	}
}

// TestHugeCommandStruck checks that the rest of a huge command passes, is dropped or is kept, as its beginning was judged.
func TestHugeCommandStruck(t *testing.T) {
	for _, verb := range []Verb{DropRequest, DropReply, Reset, ResetAfter, Late, Delay, Trickle} {
		t.Run(string(verb), func(t *testing.T) {
			size := 1 << 20
			if verb == Trickle {
				size = maxHeld + 5000
			}
			b := newBench(t, "SET", Action{Verb: verb, Direction: Requests})
			var wg sync.WaitGroup
			wg.Go(func() {
				b.client.Write(command("SET", "big", strings.Repeat("x", size)))
				b.client.Write(command("INCR", "after"))
			})
			passes := verb == Delay || verb == Trickle
			if passes {
				b.client.expect("+OK\r\n", ":1\r\n")
			} else {
				b.client.SetReadDeadline(time.Now().Add(10 * time.Second))
				if rest, _ := io.ReadAll(b.client.in); len(rest) > 0 {
					t.Errorf("read %q", rest)
				}
				b.client.Close()
			}
			wg.Wait()
			b.fired(string(verb) + " SET big")
			want := int64(size)
			if verb == DropRequest || verb == Reset {
				want = 0
			}
			if n := b.direct.StrLen(t.Context(), "big").Val(); n != want {
				t.Errorf("the server has %d bytes, want %d", n, want)
			}
			if !passes {
				b.holds("after", "")
			}
		})
	}
}

// TestKeyBeyondTheWindow checks that a command whose key does not fit into the window is judged as one without a key.
func TestKeyBeyondTheWindow(t *testing.T) {
	judged := make(chan Command, 1)
	_, client, server := pair(t, Options{Decide: func(c Command) Action { judged <- c; return Action{} }})
	client.Write(command("GET", strings.Repeat("k", 2*maxHeld)))
	if c := <-judged; c.Name != "GET" || c.Key != "" || len(c.Args) != 2 {
		t.Errorf("judged as %s with a key of %d bytes and %d arguments", c.Name, len(c.Key), len(c.Args))
	}
	server.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := io.CopyN(io.Discard, server.in, 2*maxHeld); err != nil {
		t.Errorf("%d bytes passed: %v", n, err)
	}
}

// TestClientThatReadsNothing checks that replies to a client that does not read are held back, and that Close does not
// wait for it.
func TestClientThatReadsNothing(t *testing.T) {
	p, client, server := pair(t, Options{Decide: passing})
	client.send("GET k")
	server.expect(string(command("GET", "k")))
	server.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	_, err := server.Write(append([]byte("$1000000000\r\n"), make([]byte, 64<<20)...))
	if !isTimeout(err) {
		t.Errorf("the proxy takes any amount: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestServerKilled checks that a client notices the crash of the server, and that the proxy connects to a new server at
// the same address.
func TestServerKilled(t *testing.T) {
	addr, process := servertest.Start(t)
	s := &injector{}
	p := s.through(t, addr)
	client := mustDial(t, p.Addr())
	client.send("PING")
	client.expect("+PONG\r\n")
	process.Kill()
	client.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := client.in.ReadByte(); err == nil || isTimeout(err) {
		t.Errorf("read after the kill: %v; want an end", err)
	}
	refusedSoon(t, p.Addr())
	_, port, _ := net.SplitHostPort(addr)
	again, err := child.Start(exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Kill)
	c := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer c.Close()
	servertest.Await(t, "the new server", func() bool { return c.Ping(t.Context()).Err() == nil })
}

// TestReplica checks that a server can replicate through the proxy: what is neither a command nor a reply passes.
func TestReplica(t *testing.T) {
	addr, _ := servertest.Start(t, "--repl-diskless-sync-delay", "0")
	s := &injector{name: "SET", action: Action{Verb: DropRequest}}
	p := s.through(t, addr)
	master := redis.NewClient(&redis.Options{Addr: addr})
	defer master.Close()
	master.Set(t.Context(), "before", strings.Repeat("\r\n*1$", 1000), 0)
	host, port, _ := net.SplitHostPort(p.Addr())
	at, _ := servertest.Start(t, "--replicaof", host, port)
	replica := redis.NewClient(&redis.Options{Addr: at})
	defer replica.Close()
	servertest.Await(t, "the copy", func() bool { return replica.StrLen(t.Context(), "before").Val() == 5000 })
	master.Set(t.Context(), "after", 1, 0)
	servertest.Await(t, "the change", func() bool { return replica.Get(t.Context(), "after").Val() == "1" })
	if got := s.judgements(); !strings.HasPrefix(got, "PING, REPLCONF") || !strings.HasSuffix(got, "PSYNC") {
		t.Errorf("judged: %s", got)
	}
}
