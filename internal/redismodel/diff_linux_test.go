package redismodel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/internal/rediscmd"
)

// step is a command or a transaction of a connection, or the passing of time.
type step struct {
	conn  int
	tick  time.Duration
	cmds  [][]string // one command, unless the step is a transaction
	multi bool
}

func (s step) String() string {
	switch {
	case s.tick > 0:
		return fmt.Sprintf("tick %v", s.tick)
	case s.multi:
		return fmt.Sprintf("%d: MULTI %q EXEC", s.conn, s.cmds)
	}
	return fmt.Sprintf("%d: %q", s.conn, s.cmds[0])
}

// wire returns the commands that the server is sent for the step.
func (s step) wire() [][]string {
	if s.multi {
		return slices.Concat([][]string{{"MULTI"}}, s.cmds, [][]string{{"EXEC"}})
	}
	return s.cmds
}

// do executes the step on the model.
func (s step) do(m *State, now time.Duration) (*State, []byte, Info) {
	switch {
	case s.tick > 0:
		return m.Tick(s.tick), nil, Info{}
	case s.multi:
		return m.Transaction(now, s.conn, s.cmds)
	}
	return m.Do(now, s.conn, s.cmds[0])
}

// epoch is the number of steps after which a new epoch begins, with an empty server.
const epoch = 5000

// TestAgainstRedis compares the replies and states of the model with those of a real server, for random commands with
// random arguments, for the shipped scripts, and for random scripts.
func TestAgainstRedis(t *testing.T) {
	steps := 150_000
	if raceDetector {
		steps = 25_000
	}
	if os.Getenv("OVERSELL_LONG") == "1" {
		steps = 2_000_000
	}
	d := &differ{server: startServer(t), scripts: loadShipped(t), unknown: map[string]int{}, worked: map[string]int{}}
	began, done := time.Now(), 0
	for seed := uint64(1); done < steps || done < 2*steps && !raceDetector && len(d.uncovered()) > 0; seed++ {
		n, ok := d.epoch(seed)
		done += n
		if !ok {
			d.shrink(t, seed)
			return
		}
	}
	took := time.Since(began)
	t.Logf("%d steps in %v (%.0f/s), %d more skipped as unknown; %d transactions aborted",
		done, took.Round(time.Millisecond), float64(done)/took.Seconds(), d.skipped, d.aborted)
	if never := d.uncovered(); !raceDetector && (len(never) > 0 || d.aborted < 50) {
		t.Errorf("these never did anything: %v; %d transactions were aborted", never, d.aborted)
	}
	for what, n := range d.unknown {
		if n > steps/100 {
			t.Errorf("%q was unknown %d times", what, n)
		}
	}
	if os.Getenv("OVERSELL_LONG") == "1" {
		for what, n := range d.unknown {
			t.Logf("%6d %s", n, what)
		}
	}
}

// differ runs steps on the model and on a real server, and compares them.
type differ struct {
	server  *server
	scripts []shipped
	skipped int
	unknown map[string]int

	history []step
	why     string
	first   string
	family  *family

	// worked counts, by command or script, the replies that are neither an error nor empty. aborted counts the
	// transactions that a watched key stopped.
	worked  map[string]int
	aborted int
}

// cover counts a command that did something, or a transaction that was aborted, as the reply shows.
func (d *differ) cover(s step, reply string) {
	switch {
	case s.multi:
		if strings.HasSuffix(reply, "*-1\r\n") {
			d.aborted++
		}
	case reply[0] != '-' && reply != "$-1\r\n" && reply != "*-1\r\n" && reply != ":0\r\n" && reply != "*0\r\n":
		d.worked[d.name(s.cmds[0])]++
	}
}

// name returns a command's name, or a shipped script's file.
func (d *differ) name(cmd []string) string {
	name := strings.ToLower(cmd[0])
	if (name == "script" || name == "xgroup") && len(cmd) > 1 {
		return name + "|" + strings.ToLower(cmd[1])
	}
	for _, s := range d.scripts {
		if strings.HasPrefix(name, "eval") && (cmd[1] == s.text || cmd[1] == s.sha) {
			return s.files[len(s.files)-1]
		}
	}
	return name
}

// uncovered returns the commands and scripts that never did anything.
func (d *differ) uncovered() (all []string) {
	for name, c := range table {
		if d.worked[name] == 0 && !c.Does(rediscmd.Container) && name != "publish" && name != "script|flush" {
			all = append(all, name)
		}
	}
	for _, s := range d.scripts {
		if name := s.files[len(s.files)-1]; d.worked[name] == 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// epoch runs the steps of one seed, beginning with an empty server. While the server works on one batch, the model works
// on the next.
func (d *differ) epoch(seed uint64) (n int, ok bool) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), now: start + time.Duration(seed)*time.Hour}
	d.history = nil
	d.reset(g.now)
	m := d.empty(seed)
	for _, s := range d.scripts {
		g.sent = append(g.sent, rediscmd.SHA1(s.text))
	}
	for next := d.batch(g, &m); ; {
		batch, after := next, m
		n += len(batch)
		d.send(batch)
		tick := g.IntN(3) == 0
		if !tick && n < epoch {
			next = d.batch(g, &m)
		}
		if !d.receive(batch) {
			return n, false
		}
		if g.IntN(12) == 0 || n >= epoch {
			if d.why = different(after.dump(), d.server.dump()); d.why != "" {
				return n, false
			}
		}
		if n >= epoch {
			return n, true
		}
		if tick {
			s := step{tick: g.tick(m)}
			d.history = append(d.history, s)
			m = m.Tick(s.tick)
			g.now += s.tick
			d.server.setClock(g.now)
			next = d.batch(g, &m)
		}
	}
}

// empty returns an empty state that knows the shipped scripts. Compiling the scripts is slow, so several epochs share the
// compiled ones.
func (d *differ) empty(seed uint64) *State {
	if d.family == nil || seed%20 == 0 {
		d.family = newFamily()
	}
	d.family.flush()
	m := &State{family: d.family}
	for _, s := range d.scripts {
		m.Load(s.text)
	}
	return m
}

// reset empties the server and loads the shipped scripts.
func (d *differ) reset(now time.Duration) {
	d.server.setClock(now)
	for _, c := range d.server.conns {
		c.askAll([][]string{{"UNWATCH"}, {"FLUSHALL"}})
	}
	cmds := [][]string{{"SCRIPT", "FLUSH"}}
	for _, s := range d.scripts {
		cmds = append(cmds, []string{"SCRIPT", "LOAD", s.text})
	}
	d.server.conns[0].askAll(cmds)
}

// tick returns how much time is to pass. It never stops at the very moment of an expiry, because then the server still has
// a key that the model has dropped.
func (g *generator) tick(m *State) time.Duration {
	d := pick[time.Duration](g, 1, 10, 100, 300, 1000, 1700, 5000) * time.Millisecond
	for slices.ContainsFunc(m.entries, func(e entry) bool { return e.left == d.Microseconds() }) {
		d += time.Millisecond
	}
	return d
}

// sent is a step that was sent, with the model's reply.
type sent struct {
	step
	reply []byte
}

// batch makes up steps of one connection and executes them on the model. Long batches are fast; short ones let the
// commands of several connections mix.
func (d *differ) batch(g *generator, m **State) []sent {
	conn, n := g.IntN(connections), 1+g.IntN(3)
	if g.IntN(3) > 0 {
		n = 200
	}
	var batch []sent
	for len(batch) < n {
		g.state = *m
		s := step{conn: conn, cmds: [][]string{d.command(g)}}
		if g.IntN(12) == 0 {
			s.multi = true
			for range g.IntN(3) {
				s.cmds = append(s.cmds, d.command(g))
			}
		}
		next, reply, info := s.do(*m, g.now)
		if info.Unknown != "" {
			d.skipped++
			d.unknown[firstWords(info.Unknown)]++
			continue
		}
		*m = next
		batch = append(batch, sent{s, reply})
	}
	return batch
}

func firstWords(s string) string {
	words := strings.Fields(strings.TrimRight(s, "+-*0123456789"))
	return strings.Join(words[:min(len(words), 5)], " ")
}

func (d *differ) command(g *generator) []string {
	switch g.IntN(10) {
	case 0, 1:
		return g.shipped(d.scripts)
	case 3:
		if g.IntN(3) > 0 {
			break
		}
		cmd := []string{"EVAL", g.lua(), "1", g.key("s"), g.value(), g.value()}
		if len(g.sent) < 200 {
			g.sent = append(g.sent, rediscmd.SHA1(cmd[1]))
		}
		return cmd
	}
	return g.command()
}

func (d *differ) send(batch []sent) {
	var cmds [][]string
	for _, s := range batch {
		cmds = append(cmds, s.wire()...)
	}
	d.server.conns[batch[0].conn].write(cmds)
}

// receive compares the server's replies with the model's.
func (d *differ) receive(batch []sent) (ok bool) {
	c := d.server.conns[batch[0].conn]
	ok = true
	for _, s := range batch {
		var real []byte
		for range s.wire() {
			real = append(real, c.read()...)
		}
		if !ok {
			continue // reads on, so that the connection is empty at the end
		}
		d.history = append(d.history, s.step)
		d.cover(s.step, string(real))
		if string(real) != string(s.reply) && !sameReply(s.step, s.reply, real) {
			d.why = fmt.Sprintf("the model replies %q\nRedis replies     %q", s.reply, real)
			ok = false
		}
	}
	return ok
}

// unorderedReplies lists the commands whose replies may have any order, and how many elements of a reply belong together.
var unorderedReplies = map[string]int{"hgetall": 2, "hkeys": 1, "hvals": 1, "smembers": 1, "sinter": 1, "sunion": 1, "sdiff": 1}

// sameReply reports whether replies with different bytes are the same: the order of the elements may be undefined, and so
// may the text of an error in a Lua expression.
func sameReply(s step, model, real []byte) bool {
	for len(model) > 0 && len(real) > 0 {
		var a, b tree
		a, model = parseTree(model)
		b, real = parseTree(real)
		if s.multi && len(model) == 0 && len(a.list) == len(b.list) && a.text == "*" && b.text == "*" {
			i := 0
			for _, cmd := range s.cmds {
				if strings.EqualFold(cmd[0], "watch") {
					continue
				}
				a.list[i], b.list[i] = comparable(cmd, a.list[i]), comparable(cmd, b.list[i])
				i++
			}
		} else if !s.multi {
			a, b = comparable(s.cmds[0], a), comparable(s.cmds[0], b)
		}
		if a.String() != b.String() {
			return false
		}
	}
	return len(model) == 0 && len(real) == 0
}

// luaMessage matches the part of an error that Lua wrote.
var luaMessage = regexp.MustCompile(`user_script:(\d+): .*?("| script: )`)

func comparable(cmd []string, t tree) tree {
	if n := unorderedReplies[strings.ToLower(cmd[0])]; n > 0 && t.text == "*" {
		return t.sorted(n)
	}
	if strings.HasPrefix(strings.ToLower(cmd[0]), "eval") {
		return tree{text: luaMessage.ReplaceAllString(t.String(), "user_script:$1: … $2")}
	}
	return t
}

// different says where two dumps differ, or returns "" if they are equal.
func different(model, real []string) string {
	for i := range max(len(model), len(real)) {
		a, b := "nothing", "nothing"
		if i < len(model) {
			a = model[i]
		}
		if i < len(real) {
			b = real[i]
		}
		if a != b {
			return fmt.Sprintf("the model holds %s\nRedis holds     %s", a, b)
		}
	}
	return ""
}

// shrink looks for as few steps as possible that show the difference, and reports them.
func (d *differ) shrink(t *testing.T, seed uint64) {
	t.Helper()
	steps, why := d.history, d.why
	d.first = why
	// The history ends with a difference. Which of its steps can be left out?
	for size := len(steps) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(steps); {
			fewer := slices.Concat(steps[:i], steps[i+size:])
			if n, w := d.replay(fewer, seed); w != "" {
				steps, why = fewer[:n], w
			} else {
				i += size
			}
		}
	}
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = s.String()
	}
	t.Errorf("seed %d, after %d steps:\n%s\n%s\n(first seen as: %s)", seed, len(steps), strings.Join(lines, "\n"), why, d.first)
}

// replay executes steps one by one until model and server differ.
func (d *differ) replay(steps []step, seed uint64) (n int, why string) {
	now := start + time.Duration(seed)*time.Hour
	d.reset(now)
	m := d.empty(seed)
	for i, s := range steps {
		if s.tick > 0 {
			if slices.ContainsFunc(m.entries, func(e entry) bool { return e.left == s.tick.Microseconds() }) {
				return 0, "" // the moment is not one at which tick stops
			}
			m = m.Tick(s.tick)
			now += s.tick
			d.server.setClock(now)
			continue
		}
		next, reply, info := s.do(m, now)
		if info.Unknown != "" {
			continue
		}
		m = next
		batch := []sent{{s, reply}}
		d.send(batch)
		if !d.receive(batch) {
			return i + 1, d.why
		}
	}
	return len(steps), different(m.dump(), d.server.dump())
}
