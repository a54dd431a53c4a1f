package wire

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRandomStreams sends random conversations through the proxy, cut at random places on both sides. In a third of them
// no command is hit, and every byte must arrive in both directions. In the others one command is hit, and no other may be
// affected: the test fails if the proxy miscounts a single reply.
func TestRandomStreams(t *testing.T) {
	const workers = 4
	streams := int64(2000)
	if os.Getenv("OVERSELL_LONG") != "" {
		streams = 10_000
	}
	var next, fired atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		w := newStreamWorker(t)
		wg.Go(func() {
			for !t.Failed() {
				n := next.Add(1)
				if n > streams {
					return
				}
				if w.run(t, uint64(n)) {
					fired.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d conversations, in %d of them something was hit", streams, fired.Load())
	if fired.Load() < streams/3 {
		t.Errorf("something was hit in %d of %d conversations only", fired.Load(), streams)
	}
}

// exchange is a request and what the server sends when it has received it.
type exchange struct {
	request []byte
	judged  string // how it should be judged: "NAME key", "" if not at all
	args    []string
	// before is what the server sends unasked ahead of the answer. The answer may have pushes mixed in. Nothing unasked
	// follows it, because the proxy does not promise to deliver that before it ends a connection.
	before []byte
	answer []piece
}

// piece is a part of an answer, or, if push is set, something unasked that came in between.
type piece struct {
	text []byte
	push bool
}

func (e *exchange) reply() (all []byte) {
	for _, p := range e.answer {
		all = append(all, p.text...)
	}
	return all
}

// unasked returns what remains of an answer that is dropped: the pushes in it.
func (e *exchange) unasked() (rest []byte) {
	for _, p := range e.answer {
		if p.push {
			rest = append(rest, p.text...)
		}
	}
	return rest
}

// streamWorker runs conversations with its own proxy and its own server, so that it knows what to expect.
type streamWorker struct {
	accepted <-chan *net.TCPConn
	proxy    *Proxy

	mu     sync.Mutex
	talk   []exchange
	at     int // the next exchange to be judged
	victim int // the exchange to be hit, or -1
	action Action
	wrong  string
	fired  int
}

func newStreamWorker(t *testing.T) *streamWorker {
	addr, accepted := fakeServer(t)
	w := &streamWorker{accepted: accepted}
	w.proxy = mustListen(t, Options{To: addr, Decide: w.judge, Fired: w.heard})
	return w
}

// judge checks that the proxy has understood the command, and chooses the action.
func (w *streamWorker) judge(c Command) Action {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.at < len(w.talk) && w.talk[w.at].judged == "" {
		w.at++
	}
	if w.at == len(w.talk) {
		w.wrong = "judged after the end: " + c.Name
		return Action{}
	}
	e := w.talk[w.at]
	w.at++
	if got := strings.TrimSpace(c.Name + " " + c.Key); got != e.judged {
		w.wrong = fmt.Sprintf("exchange %d is judged as %q, want %q", w.at-1, got, e.judged)
	}
	if len(e.request) < maxHeld && !slices.EqualFunc(c.Args, e.args, func(a []byte, b string) bool { return string(a) == b }) {
		w.wrong = fmt.Sprintf("exchange %d is judged with %q, want %q", w.at-1, c.Args, e.args)
	}
	if w.at-1 == w.victim {
		return w.action
	}
	return Action{}
}

func (w *streamWorker) heard(Command, Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fired++
}

// run plays one conversation and reports whether a command was hit.
func (w *streamWorker) run(t *testing.T, seed uint64) bool {
	rng := rand.New(rand.NewPCG(seed, 42))
	talk := newSpeaker(rng).converse()
	w.mu.Lock()
	w.talk, w.at, w.victim, w.action, w.wrong, w.fired = talk, 0, -1, Action{}, "", 0
	if rng.IntN(3) > 0 {
		w.choose(rng)
	}
	victim, action := w.victim, w.action
	w.mu.Unlock()

	client, err := net.Dial("tcp", w.proxy.Addr())
	if err != nil {
		t.Error(err)
		return false
	}
	defer client.Close()
	var got, heard []byte
	var ended error
	var wg sync.WaitGroup
	wg.Go(func() { got = serve(<-w.accepted, talk, rand.New(rand.NewPCG(seed, 43))) })
	wg.Go(func() {
		client.SetReadDeadline(time.Now().Add(20 * time.Second))
		heard, ended = io.ReadAll(client)
		client.Close()
	})
	whole := requestsOf(talk)
	var refused error
	for _, p := range cuts(whole, rng) {
		if _, refused = client.Write(p); refused != nil {
			break // the connection was ended by the action
		}
	}
	client.(*net.TCPConn).CloseWrite()
	wg.Wait()

	w.mu.Lock()
	defer w.mu.Unlock()
	sent, replies, fired, reset := outcomeOf(talk, victim, action)
	complain := func(what, how string) {
		if how != "" {
			t.Errorf("conversation %d, %s of exchange %d of %d: %s: %s", seed, action.Verb, victim, len(talk), what, how)
		}
	}
	complain("the proxy", w.wrong)
	complain("the server got", diff(got, sent))
	complain("the client got", diff(heard, replies))
	if w.fired != fired {
		complain("fired", fmt.Sprintf("%d times, want %d", w.fired, fired))
	}
	// The system reports a reset only once: to the read or to the write, whichever comes first.
	if (isReset(ended) || isReset(refused)) != reset {
		complain("the connection ended with", fmt.Sprint(ended))
	}
	return fired > 0
}

// choose picks a command and the action on it.
func (w *streamWorker) choose(rng *rand.Rand) {
	actions := []Action{
		{Verb: DropRequest}, {Verb: DropReply}, {Verb: DropReply}, {Verb: Reset}, {Verb: ResetAfter}, {Verb: Late},
		{Verb: Trickle}, {Verb: Trickle, Direction: Requests}, {Verb: Delay},
		{Verb: HalfOpen, After: 1}, {Verb: HalfOpen, After: 1, Direction: Replies}, {Verb: HalfOpen, After: 1, Direction: Requests},
	}
	var candidates []int
	for i, e := range w.talk {
		if e.judged != "" {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) > 0 {
		w.victim = candidates[rng.IntN(len(candidates))]
		w.action = actions[rng.IntN(len(actions))]
	}
	if e := w.talk; w.action.Verb == Trickle && len(e[w.victim].request)+len(e[w.victim].reply()) > 2000 {
		w.action = Action{Verb: Delay} // to trickle it would take too long
	}
}

// outcomeOf returns what must come of a conversation: the bytes that arrive, the actions that fire, and the kind of end.
func outcomeOf(talk []exchange, victim int, a Action) (sent, replies []byte, fired int, reset bool) {
	if victim >= 0 && len(talk[victim].answer) == 0 && (a.Verb == DropReply || a.Verb == ResetAfter || a.Verb == Trickle && a.Direction != Requests) {
		victim, a = -1, Action{} // there is no reply to act on
	}
	if victim >= 0 {
		fired = 1
	}
	for i, e := range talk {
		hit := i == victim
		if hit && (a.Verb == DropRequest || a.Verb == Reset) {
			return sent, replies, fired, a.Verb == Reset
		}
		sent = append(sent, e.request...)
		switch {
		case hit && a.Verb == Late:
			return sent, replies, fired, false
		case hit && (a.Verb == DropReply || a.Verb == ResetAfter):
			return sent, append(append(replies, e.before...), e.unasked()...), fired, a.Verb == ResetAfter
		}
		replies = append(append(replies, e.before...), e.reply()...)
	}
	return sent, replies, fired, false
}

func requestsOf(talk []exchange) (all []byte) {
	for _, e := range talk {
		all = append(all, e.request...)
	}
	return all
}

// serve plays the server: it answers each request when it has arrived, and returns all bytes that it received.
func serve(conn *net.TCPConn, talk []exchange, rng *rand.Rand) (got []byte) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second)) // longer than the client's
	buf := make([]byte, 1<<15)
	answered, due := 0, 0
	for {
		n, err := conn.Read(buf[:1+rng.IntN(len(buf))])
		got = append(got, buf[:n]...)
		var out []byte
		for answered < len(talk) && due+len(talk[answered].request) <= len(got) {
			e := talk[answered]
			due += len(e.request)
			answered++
			out = append(append(out, e.before...), e.reply()...)
			if rng.IntN(2) == 0 {
				write(conn, out, rng)
				out = nil
			}
		}
		write(conn, out, rng)
		if err != nil {
			return got
		}
	}
}

func write(conn net.Conn, b []byte, rng *rand.Rand) {
	for _, p := range cuts(b, rng) {
		if _, err := conn.Write(p); err != nil {
			return
		}
	}
}

// cuts splits bytes at a few random places, and sometimes into single bytes.
func cuts(b []byte, rng *rand.Rand) (pieces [][]byte) {
	if len(b) < 300 && rng.IntN(20) == 0 {
		return slices.Collect(slices.Chunk(b, 1))
	}
	for range rng.IntN(6) {
		if len(b) > 1 {
			n := 1 + rng.IntN(len(b)-1)
			if rng.IntN(2) == 0 {
				n = min(n, 1+rng.IntN(20))
			}
			pieces, b = append(pieces, b[:n]), b[n:]
		}
	}
	if len(b) > 0 {
		pieces = append(pieces, b)
	}
	return pieces
}

// speaker makes up conversations that a real server could have had.
type speaker struct {
	rng        *rand.Rand
	resp3      bool
	channels   map[string]bool
	skip, off  bool
	subscribed bool // there was a subscription once
	talk       []exchange
}

func newSpeaker(rng *rand.Rand) *speaker {
	return &speaker{rng: rng, channels: map[string]bool{}}
}

func (s *speaker) converse() []exchange {
	for range 1 + s.rng.IntN(20) {
		s.turn()
	}
	return s.talk
}

func (s *speaker) turn() {
	if len(s.channels) > 0 && !s.resp3 {
		s.subscriber()
		return
	}
	switch s.rng.IntN(16) {
	case 0:
		s.hello()
	case 1:
		s.transaction()
	case 2:
		s.subscribe()
	case 3:
		s.unsubscribe()
	case 4:
		s.replyMode()
	case 5:
		s.plain("RESET", "", nil, "+RESET\r\n", func() { s.reset() })
	case 6:
		s.nothing()
	case 7:
		s.inline()
	case 8:
		s.big()
	case 9:
		s.plain("EVALSHA", s.word(), []string{"sha", "1"}, s.value(3), nil)
	default:
		s.plain([]string{"GET", "set", "HgetAll", "LRANGE", "NOSUCH"}[s.rng.IntN(5)], s.word(), nil, s.value(3), nil)
	}
}

// add adds an exchange to the conversation. Whether it has an answer depends on CLIENT REPLY.
func (s *speaker) add(e exchange) {
	if s.skip || s.off {
		e.answer = nil
	}
	s.skip = false
	if len(e.answer) > 0 {
		e.before = s.unasked(3)
	}
	s.talk = append(s.talk, e)
}

// unasked returns messages and other pushes that are possible in the state of the connection.
func (s *speaker) unasked(chance int) (b []byte) {
	for s.rng.IntN(chance) == 0 {
		switch {
		case len(s.channels) > 0 && s.rng.IntN(2) == 0:
			b = append(b, s.aggregate(bulkOf([]string{"pmessage", "message", "smessage"}[s.rng.IntN(3)]), bulkOf(s.word()), bulkOf(s.binary(200)))...)
		case s.resp3:
			b = append(b, ">2\r\n$10\r\ninvalidate\r\n*1\r\n"+bulkOf(s.word())...)
		default:
			return b
		}
	}
	return b
}

// aggregate returns a message or a confirmation of a subscription.
func (s *speaker) aggregate(parts ...string) string {
	typ := "*"
	if s.resp3 {
		typ = ">"
	}
	return typ + strconv.Itoa(len(parts)) + "\r\n" + strings.Join(parts, "")
}

// plain adds a command with a key, unless that is empty, further arguments, and a reply.
func (s *speaker) plain(name, key string, args []string, reply string, done func()) {
	if done != nil && s.skip {
		s.nothing()
		return
	}
	all := append([]string{name}, args...)
	if key != "" {
		all = append(all, key)
	}
	for range s.rng.IntN(3) {
		if name != "RESET" {
			all = append(all, s.binary(60))
		}
	}
	judged := strings.ToUpper(name)
	if key != "" {
		judged += " " + key
	}
	off := s.off
	if done != nil {
		done()
		s.off = false
	}
	e := exchange{request: command(all...), judged: judged, args: all, answer: []piece{{text: []byte(reply)}}}
	s.add(e)
	s.off = off && done == nil
}

func (s *speaker) reset() { s.resp3, s.channels, s.subscribed = false, map[string]bool{}, false }

func (s *speaker) inline() {
	key := s.word()
	line := []string{"GET " + key + "\r\n", "get\t" + key + " \n", " \"get\" '" + key + "'\r\n"}[s.rng.IntN(3)]
	name := "GET"
	if line[0] != 'G' {
		name = "get"
	}
	s.add(exchange{request: []byte(line), judged: "GET " + key, args: []string{name, key}, answer: []piece{{text: []byte(s.value(2))}}})
}

// nothing adds a request without arguments.
func (s *speaker) nothing() {
	s.skip = false
	s.talk = append(s.talk, exchange{request: []byte([]string{"*0\r\n", "\r\n", "*-1\r\n", " \n"}[s.rng.IntN(4)])})
}

func (s *speaker) big() {
	if s.rng.IntN(8) > 0 {
		s.nothing()
		return
	}
	args := []string{"SET", s.word(), string(bytes.Repeat([]byte(s.binary(50)+"*1\r\n"), 2000+s.rng.IntN(2000)))}
	s.add(exchange{request: command(args...), judged: "SET " + args[1], args: args, answer: []piece{{text: []byte(bulkOf(args[2]))}}})
}

func (s *speaker) hello() {
	if s.skip || s.off {
		s.nothing()
		return
	}
	if s.rng.IntN(4) == 0 {
		s.add(exchange{request: command("HELLO", "9"), judged: "HELLO", args: []string{"HELLO", "9"}, answer: []piece{{text: []byte("-NOPROTO unsupported\r\n")}}})
		return
	}
	// The protocol changes with the reply; what comes unasked before it is still in the old protocol.
	e := exchange{judged: "HELLO", before: s.unasked(3)}
	s.resp3 = s.rng.IntN(3) > 0
	e.args = []string{"HELLO", "2"}
	reply := "*4\r\n+proto\r\n:2\r\n+modules\r\n*0\r\n"
	if s.resp3 {
		e.args[1] = "3"
		reply = "%2\r\n+proto\r\n:3\r\n+modules\r\n*0\r\n"
	}
	e.request, e.answer = command(e.args...), []piece{{text: []byte(reply)}}
	s.talk = append(s.talk, e)
}

func (s *speaker) transaction() {
	if s.skip {
		s.nothing()
	}
	s.add(exchange{request: command("MULTI"), judged: "MULTI", args: []string{"MULTI"}, answer: []piece{{text: []byte("+OK\r\n")}}})
	n := s.rng.IntN(4)
	values := ""
	for range n {
		key := s.word()
		s.add(exchange{request: command("incr", key), judged: "INCR " + key, args: []string{"incr", key}, answer: []piece{{text: []byte("+QUEUED\r\n")}}})
		values += s.value(2)
	}
	s.add(exchange{request: command("EXEC"), judged: "EXEC", args: []string{"EXEC"}, answer: []piece{{text: fmt.Appendf(nil, "*%d\r\n%s", n, values)}}})
}

func (s *speaker) replyMode() {
	if s.subscribed {
		s.nothing()
		return
	}
	mode := []string{"ON", "off", "SKIP", "skip"}[s.rng.IntN(4)]
	e := exchange{request: command("CLIENT", "REPLY", mode), judged: "CLIENT", args: []string{"CLIENT", "REPLY", mode}}
	s.skip = false
	switch mode {
	case "ON":
		s.off = false
		e.answer = []piece{{text: []byte("+OK\r\n")}}
	case "off":
		s.off = true
	default:
		s.skip = !s.off
	}
	s.talk = append(s.talk, e)
}

// subscriber adds a command that a client may send after it has subscribed under RESP2.
func (s *speaker) subscriber() {
	switch s.rng.IntN(6) {
	case 0:
		s.subscribe()
	case 1, 2:
		s.unsubscribe()
	case 3:
		s.plain("RESET", "", nil, "+RESET\r\n", func() { s.reset() })
	case 4:
		s.plain("GET", s.word(), nil, "-ERR Can't execute 'get'\r\n", nil)
	default:
		s.add(exchange{request: command("PING"), judged: "PING", args: []string{"PING"}, answer: []piece{{text: []byte("*2\r\n$4\r\npong\r\n$0\r\n\r\n")}}})
	}
}

func (s *speaker) subscribe() {
	if s.skip || s.off {
		s.nothing()
		return
	}
	s.subscribed = true
	args := []string{"SUBSCRIBE"}
	for range 1 + s.rng.IntN(3) {
		args = append(args, s.word())
	}
	e := exchange{request: command(args...), judged: "SUBSCRIBE", args: args, before: s.unasked(3)}
	if s.rng.IntN(6) == 0 {
		e.answer = []piece{{text: []byte("-NOPERM no\r\n")}}
		s.talk = append(s.talk, e)
		return
	}
	for _, channel := range args[1:] {
		s.channels[channel] = true
		e.answer = append(e.answer, piece{text: []byte(s.aggregate(bulkOf("subscribe"), bulkOf(channel), s.count()))}, piece{text: s.unasked(4), push: true})
	}
	e.answer = e.answer[:len(e.answer)-1]
	s.talk = append(s.talk, e)
}

func (s *speaker) unsubscribe() {
	if s.skip || s.off {
		s.nothing()
		return
	}
	s.subscribed = true
	args := []string{"unsubscribe"}
	var from []string
	if s.rng.IntN(2) == 0 {
		for range 1 + s.rng.IntN(3) {
			from = append(from, s.word())
		}
		args = append(args, from...)
	} else {
		for channel := range s.channels {
			from = append(from, channel)
		}
		slices.Sort(from)
	}
	e := exchange{request: command(args...), judged: "UNSUBSCRIBE", args: args, before: s.unasked(3)}
	for _, channel := range from {
		delete(s.channels, channel)
		e.answer = append(e.answer, piece{text: []byte(s.aggregate(bulkOf("unsubscribe"), bulkOf(channel), s.count()))}, piece{text: s.unasked(4), push: true})
	}
	if len(from) > 0 {
		e.answer = e.answer[:len(e.answer)-1]
	} else {
		e.answer = []piece{{text: []byte(s.aggregate(bulkOf("unsubscribe"), "$-1\r\n", s.count()))}}
	}
	s.talk = append(s.talk, e)
}

func (s *speaker) count() string { return fmt.Sprintf(":%d\r\n", len(s.channels)) }

func (s *speaker) word() string { return string(rune('a' + s.rng.IntN(6))) }

// binary returns a string of random bytes, many of them with a meaning in the protocol.
func (s *speaker) binary(most int) string {
	b := make([]byte, s.rng.IntN(most+1))
	for i := range b {
		if s.rng.IntN(3) == 0 {
			b[i] = "\r\n*$>0123456789"[s.rng.IntN(15)]
		} else {
			b[i] = byte(s.rng.UintN(256))
		}
	}
	return string(b)
}

func bulkOf(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// value returns a reply of a random type, nested no deeper than depth.
func (s *speaker) value(depth int) string {
	if depth > 0 && s.rng.IntN(3) == 0 {
		return s.nested(depth - 1)
	}
	if s.resp3 && s.rng.IntN(2) == 0 {
		switch s.rng.IntN(8) {
		case 0:
			return "|1\r\n+ttl\r\n" + s.value(0) + s.value(depth)
		case 1:
			return "_\r\n"
		case 2:
			return "#t\r\n"
		case 3:
			return ",inf\r\n"
		case 4:
			return "(3492890328409238509324850943850943825024385\r\n"
		case 5:
			return "!5\r\nERR x\r\n"
		case 6:
			return "=7\r\ntxt:" + "abc\r\n"
		default:
			a, b := s.binary(20)+"x", s.binary(20)+"y"
			return "$?\r\n;" + bulkOf(a)[1:] + ";" + bulkOf(b)[1:] + ";0\r\n"
		}
	}
	switch s.rng.IntN(6) {
	case 0:
		return "-ERR wrong\r\n"
	case 1:
		return ":-17\r\n"
	case 2:
		return "$-1\r\n"
	case 3:
		return "+OK\r\n"
	default:
		return bulkOf(s.binary(80))
	}
}

// nested returns an array or an aggregate of RESP3. It may look like a message.
func (s *speaker) nested(depth int) string {
	if s.rng.IntN(4) == 0 {
		return "*3\r\n" + bulkOf([]string{"message", "subscribe", "unsubscribe"}[s.rng.IntN(3)]) + bulkOf(s.word()) + s.value(depth)
	}
	n := s.rng.IntN(4)
	values := ""
	for range 2 * n {
		values += s.value(depth)
	}
	if !s.resp3 {
		return fmt.Sprintf("*%d\r\n%s", 2*n, values)
	}
	switch s.rng.IntN(4) {
	case 0:
		return fmt.Sprintf("%%%d\r\n%s", n, values)
	case 1:
		return fmt.Sprintf("~%d\r\n%s", 2*n, values)
	case 2:
		return "*?\r\n" + values + ".\r\n"
	default:
		return fmt.Sprintf("*%d\r\n%s", 2*n, values)
	}
}
