package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"oversell/internal/rediscmd"
)

// Conn is a connection of a process to a server.
type Conn struct {
	// Node is the number of the server.
	Node int

	process *Process
	conn    net.Conn
	answers chan string
	closed  atomic.Bool
	watches bool       // keys are watched on it
	multi   bool       // between MULTI and EXEC
	queued  [][]string // since MULTI
}

// Answer sends the replies to the commands of an event: for a transaction, the reply to EXEC.
func (c *Conn) Answer(replies string) {
	select {
	case c.answers <- replies:
	case <-c.process.over:
	}
}

// Break closes the connection: the commands of the event get no reply. It waits until the process waits for one, since
// a library may check the connection before that.
func (c *Conn) Break() {
	c.process.settle()
	c.closed.Store(true)
	c.process.hold(c.conn.RemoteAddr().(*net.TCPAddr).Port, true)
	_ = c.conn.Close()
	select {
	case c.answers <- "":
	case <-c.process.over:
	}
}

func (c *Conn) broken() bool { return c.closed.Load() }

// serve reads commands and sends replies until the connection ends.
func (c *Conn) serve() {
	defer c.conn.Close()
	r := bufio.NewReader(c.conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			if errors.Is(err, errProtocol) && !c.broken() {
				c.process.fail(err)
			}
			return
		}
		reply := c.execute(command)
		if reply == "" {
			return
		}
		if _, err := io.WriteString(c.conn, reply); err != nil {
			return
		}
	}
}

// execute returns the reply to a command, "" if the connection ends. It answers at once the commands that a library
// sends by itself on a new connection, and those that only queue or name a command.
func (c *Conn) execute(command []string) string {
	command[0] = strings.ToLower(command[0])
	if reply, known := c.setUp(command); known {
		return reply
	}
	switch command[0] {
	case "multi":
		if c.multi {
			return "-ERR MULTI calls can not be nested\r\n"
		}
		c.multi = true
		return "+OK\r\n"
	case "discard":
		return c.discard()
	case "exec":
		if !c.multi {
			return "-ERR EXEC without MULTI\r\n"
		}
		queued := c.queued
		c.multi, c.queued, c.watches = false, nil, false
		if len(queued) == 0 {
			return c.ask(Event{Commands: [][]string{{"unwatch"}}}, "*0\r\n")
		}
		return c.ask(Event{Commands: queued, Tx: true}, "")
	}
	if c.multi {
		c.queued = append(c.queued, command)
		return "+QUEUED\r\n"
	}
	c.watches = c.watches && command[0] != "unwatch" || command[0] == "watch"
	return c.ask(Event{Commands: [][]string{command}}, "")
}

// discard drops the queued commands and the watched keys.
func (c *Conn) discard() string {
	if !c.multi {
		return "-ERR DISCARD without MULTI\r\n"
	}
	watches := c.watches
	c.multi, c.queued, c.watches = false, nil, false
	if !watches {
		return "+OK\r\n"
	}
	return c.ask(Event{Commands: [][]string{{"unwatch"}}}, "+OK\r\n")
}

// ask passes commands to the caller that steps the process. instead replaces their reply.
func (c *Conn) ask(e Event, instead string) string {
	e.Kind, e.Conn = Commands, c
	c.process.mu.Lock()
	idle := c.process.idle
	c.process.mu.Unlock()
	if idle {
		e = Event{err: errBeside}
	}
	c.process.send(e)
	select {
	case reply := <-c.answers:
		if reply != "" && instead != "" {
			return instead
		}
		return reply
	case <-c.process.over:
		return ""
	}
}

// setUp answers commands that need no server.
func (c *Conn) setUp(command []string) (reply string, known bool) {
	switch command[0] {
	case "auth", "readonly":
		return "+OK\r\n", true
	case "select":
		if len(command) == 2 && command[1] == "0" {
			return "+OK\r\n", true
		}
		return "-ERR DB index is out of range: a search has database 0 only\r\n", true
	case "hello":
		if len(command) > 1 && command[1] != "2" {
			return "-NOPROTO unsupported protocol version: a search speaks RESP2\r\n", true
		}
		return array("server", "redis", "version", "7.0.0", "proto", 2, "id", 1, "mode", "standalone", "role", "master"), true
	case "ping":
		if len(command) > 1 {
			return bulk(command[1]), true
		}
		return "+PONG\r\n", true
	case "client":
		if len(command) > 1 && strings.EqualFold(command[1], "id") {
			return ":1\r\n", true
		}
		return "+OK\r\n", true
	case "command":
		return "*0\r\n", true
	case "info":
		return bulk("# Server\r\nredis_version:7.0.0\r\nredis_mode:standalone\r\nrole:master\r\nloading:0\r\n"), true
	case "quit":
		return "+OK\r\n", true
	case "script":
		return c.script(command)
	case "eval", "eval_ro":
		c.learn(command)
	case "evalsha", "evalsha_ro":
		return c.known(command)
	}
	return "", false
}

// script answers SCRIPT LOAD and SCRIPT EXISTS. A process does not see scripts of others.
func (c *Conn) script(command []string) (reply string, known bool) {
	p := c.process
	if len(command) == 3 && strings.EqualFold(command[1], "load") {
		return bulk(c.learn(command[1:])), true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(command) < 3 || !strings.EqualFold(command[1], "exists") {
		return "", false
	}
	var all []any
	for _, sha := range command[2:] {
		exists := 0
		if _, known := p.scripts[strings.ToLower(sha)]; known {
			exists = 1
		}
		all = append(all, exists)
	}
	return array(all...), true
}

// learn keeps the script in a command, and returns its hash.
func (c *Conn) learn(command []string) string {
	if len(command) < 2 {
		return ""
	}
	sha := rediscmd.SHA1(command[1])
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	c.process.scripts[sha] = command[1]
	return sha
}

// known turns EVALSHA into EVAL, or answers that there is no such script.
func (c *Conn) known(command []string) (reply string, known bool) {
	if len(command) < 2 {
		return "", false
	}
	c.process.mu.Lock()
	text, loaded := c.process.scripts[strings.ToLower(command[1])]
	c.process.mu.Unlock()
	if !loaded {
		return "-" + rediscmd.ScriptMissing + "\r\n", true
	}
	command[0], command[1] = strings.Replace(command[0], "evalsha", "eval", 1), text
	return "", false
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func array(values ...any) string {
	all := fmt.Sprintf("*%d\r\n", len(values))
	for _, v := range values {
		switch v := v.(type) {
		case int:
			all += fmt.Sprintf(":%d\r\n", v)
		case string:
			all += bulk(v)
		}
	}
	return all
}

// errProtocol is the error of a process that does not speak Redis's protocol.
var errProtocol = errors.New("it sent something that is not a Redis command")

// The most arguments and bytes of a command.
const (
	mostArguments = 1 << 16
	mostBytes     = 16 << 20
)

// readCommand reads a command: an array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readSize(r, '*', mostArguments)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, errProtocol
	}
	all := make([]string, n)
	for i := range all {
		size, err := readSize(r, '$', mostBytes)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		all[i] = string(text[:size])
	}
	return all, nil
}

func readSize(r *bufio.Reader, mark byte, most int) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != mark {
		return 0, fmt.Errorf("%w: %.40q", errProtocol, line)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: %.40q", errProtocol, line)
	}
	return n, nil
}
