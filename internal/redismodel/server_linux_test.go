package redismodel

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"oversell/internal/child"
	"oversell/internal/servertest"
)

// server is a real Redis whose wall clock stands still until the test sets it. So replies that depend on the time, and
// expiries, can be compared exactly, and the test never has to wait.
type server struct {
	t     *testing.T
	clock *int64
	conns []*conn
}

const connections = 3

// startServer starts a server, or skips the test where none can be started.
func startServer(t *testing.T) *server {
	t.Helper()
	servertest.NeedServer(t)
	dir := t.TempDir()
	shim := filepath.Join(dir, "frozen.so")
	if out, err := osexec.Command("cc", "-shared", "-fPIC", "-O2", "-o", shim, "testdata/frozen.c").CombinedOutput(); err != nil {
		unavailable(t, fmt.Errorf("compile the clock that stands still: %w: %s", err, out))
	}
	s := &server{t: t, clock: sharedClock(t, filepath.Join(dir, "now"))}
	s.setClock(start)
	// The path of a socket must be short.
	socket := filepath.Join(dir, "s")
	cmd := osexec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+shim, "FROZEN_CLOCK="+filepath.Join(dir, "now"))
	redis, err := child.Start(cmd)
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(redis.Kill)
	for range connections {
		s.conns = append(s.conns, dial(t, socket))
	}
	info := string(s.conns[0].ask("INFO", "server"))
	if !strings.Contains(info, "redis_version:7.0.") {
		unavailable(t, fmt.Errorf("the model is of Redis 7.0, and this is %s", info))
	}
	return s
}

func unavailable(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
}

func sharedClock(t *testing.T, path string) *int64 {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		defer f.Close()
		_, err = f.Write(make([]byte, 8))
	}
	if err != nil {
		t.Fatal(err)
	}
	shared, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(shared) })
	return (*int64)(unsafe.Pointer(&shared[0]))
}

// setClock sets the server's clock. No command may be under way.
func (s *server) setClock(now time.Duration) { atomic.StoreInt64(s.clock, int64(now)) }

// conn is a connection on which a test sends and reads the bytes of the protocol.
type conn struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, socket string) *conn {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", socket)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			return &conn{t, c, bufio.NewReaderSize(c, 1<<16)}
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// write sends commands in one piece.
func (c *conn) write(cmds [][]string) {
	c.t.Helper()
	var b []byte
	for _, cmd := range cmds {
		b = append(strconv.AppendInt(append(b, '*'), int64(len(cmd)), 10), "\r\n"...)
		for _, word := range cmd {
			b = append(strconv.AppendInt(append(b, '$'), int64(len(word)), 10), "\r\n"...)
			b = append(append(b, word...), "\r\n"...)
		}
	}
	_ = c.c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the bytes of one reply.
func (c *conn) read() []byte {
	c.t.Helper()
	var b []byte
	for left := 1; left > 0; left-- {
		line, err := c.r.ReadBytes('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		b = append(b, line...)
		n, _ := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
		switch {
		case line[0] == '*':
			left += max(n, 0)
		case line[0] == '$' && n >= 0:
			at := len(b)
			b = append(b, make([]byte, n+2)...)
			if _, err := io.ReadFull(c.r, b[at:]); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return b
}

func (c *conn) ask(cmd ...string) []byte {
	c.t.Helper()
	return c.askAll([][]string{cmd})[0]
}

func (c *conn) askAll(cmds [][]string) [][]byte {
	c.t.Helper()
	c.write(cmds)
	replies := make([][]byte, len(cmds))
	for i := range cmds {
		replies[i] = c.read()
	}
	return replies
}

// tree is a parsed reply: a text with its type, or a list of trees.
type tree struct {
	text string
	list []tree
}

func parseTree(b []byte) (tree, []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	n, _ := strconv.Atoi(string(line[1:]))
	switch {
	case line[0] == '$' && n >= 0:
		return tree{text: "$" + string(rest[:n])}, rest[n+2:]
	case line[0] == '*' && n >= 0:
		t := tree{text: "*"}
		for range n {
			var e tree
			e, rest = parseTree(rest)
			t.list = append(t.list, e)
		}
		return t, rest
	}
	return tree{text: string(line)}, rest
}

func (t tree) String() string {
	if t.text != "*" {
		return strconv.Quote(t.text)
	}
	return fmt.Sprint(t.list)
}

// sorted returns a list with its groups of n elements sorted.
func (t tree) sorted(n int) tree {
	groups := slices.Collect(slices.Chunk(t.list, n))
	slices.SortFunc(groups, func(a, b []tree) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	t.list = slices.Concat(groups...)
	return t
}

// dump returns what the real server holds, one line for each key.
func (s *server) dump() []string {
	c := s.conns[0]
	all, _ := parseTree(c.ask("KEYS", "*"))
	var keys []string
	var ask [][]string
	for _, k := range all.list {
		keys = append(keys, k.text[1:])
	}
	slices.Sort(keys)
	for _, k := range keys {
		ask = append(ask, []string{"TYPE", k}, []string{"PTTL", k})
	}
	facts := c.askAll(ask)
	ask = nil
	for i, k := range keys {
		ask = append(ask, contentCommands(strings.TrimSpace(string(facts[2*i][1:])), k)...)
	}
	contents := c.askAll(ask)
	var lines []string
	for i, k := range keys {
		kind := strings.TrimSpace(string(facts[2*i][1:]))
		line := fmt.Sprintf("%q %s left %s:", k, kind, strings.TrimSpace(string(facts[2*i+1][1:])))
		n := len(contentCommands(kind, k))
		for _, content := range contents[:n] {
			t, _ := parseTree(content)
			switch {
			case kind == "hash":
				t = t.sorted(2)
			case kind == "set":
				t = t.sorted(1)
			}
			line += " " + t.String()
		}
		contents = contents[n:]
		if kind == "stream" {
			line += s.dumpGroups(k)
		}
		lines = append(lines, line)
	}
	return lines
}

func contentCommands(kind, key string) [][]string {
	switch kind {
	case "string":
		return [][]string{{"GET", key}}
	case "hash":
		return [][]string{{"HGETALL", key}}
	case "list":
		return [][]string{{"LRANGE", key, "0", "-1"}}
	case "set":
		return [][]string{{"SMEMBERS", key}}
	case "zset":
		return [][]string{{"ZRANGE", key, "0", "-1", "WITHSCORES"}}
	}
	return [][]string{{"XRANGE", key, "-", "+"}}
}

func (s *server) dumpGroups(key string) string {
	var b strings.Builder
	full, _ := parseTree(s.conns[0].ask("XINFO", "STREAM", key))
	for i, f := range full.list {
		if f.text == "$last-generated-id" {
			b.WriteString(" last " + full.list[i+1].text[1:])
		}
	}
	groups, _ := parseTree(s.conns[0].ask("XINFO", "GROUPS", key))
	for _, g := range groups.list {
		facts := map[string]string{}
		for i := 0; i < len(g.list); i += 2 {
			facts[g.list[i].text[1:]] = g.list[i+1].text[1:]
		}
		pending, _ := parseTree(s.conns[0].ask("XPENDING", key, facts["name"], "-", "+", "10000"))
		fmt.Fprintf(&b, " %q %s %s", facts["name"], facts["last-delivered-id"], pending)
	}
	return b.String()
}

// dump returns what a state holds, in the form of server.dump.
func (s *State) dump() []string {
	var lines []string
	for _, e := range s.entries {
		left := e.left
		if left >= 0 {
			left = (left + 999) / 1000
		}
		line := fmt.Sprintf("%q %s left %d:", e.key, e.val.kind(), left)
		for _, cmd := range contentCommands(e.val.kind(), e.key) {
			_, reply, _ := s.Do(0, 0, cmd)
			t, _ := parseTree(reply)
			switch e.val.kind() {
			case "hash":
				t = t.sorted(2)
			case "set":
				t = t.sorted(1)
			}
			line += " " + t.String()
		}
		if v, ok := e.val.(*stream); ok {
			line += " last " + v.last.String()
			for _, g := range v.groups {
				_, reply, _ := s.Do(0, 0, []string{"XPENDING", e.key, g.name, "-", "+", "10000"})
				t, _ := parseTree(reply)
				line += fmt.Sprintf(" %q %s %s", g.name, g.last, t)
			}
		}
		lines = append(lines, line)
	}
	return lines
}
