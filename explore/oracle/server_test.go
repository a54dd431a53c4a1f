package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/coro"
	"oversell/server"
	"oversell/server/opentest"
)

// sent is a request that the server executed in a step.
type sent struct {
	conn  int
	r     coro.Request
	reply string
}

// steps returns the situations that led to s, from the first to s itself.
func (s *situation) steps() (all []*situation) {
	if s.from != nil {
		all = append(s.from.steps(), s)
	}
	return all
}

// TestSchedulesOnAServer checks that, in the schedules that break a promise, a real server gives the answers that the
// oracle expects. Time passes for real there, so only the long tests try schedules in which time passes.
func TestSchedulesOnAServer(t *testing.T) {
	t.Parallel()
	target := opentest.Open(t, server.Spec{Target: "process"})
	admin := redis.NewClient(target.Options(0, server.ConnOptions{}))
	defer admin.Close()
	tried := 0
	for i := range programs {
		p := &programs[i]
		if p.breaks == "" || p.alone {
			continue
		}
		_, l := p.limits()
		if (l.jumps > 0 && !long) || l.rounds > 1 || p.item == 5 { // item 5: a server may answer in another order
			continue
		}
		r := enumerate(p.design.variant("program"), &p.design, l, namings[0])
		for q, s := range r.ends {
			if err := admin.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if err := drive(t, target, r.scripts, s); err != nil {
				t.Errorf("%s, %s: %v\n%s", p.name, q, err, strings.Join(s.trace(), "\n"))
			}
			tried++
		}
	}
	t.Logf("%d schedules", tried)
	if tried < 5 {
		t.Error("too few schedules were tried")
	}
}

// drive has a server execute the commands that lead to a situation, and compares the answers.
func drive(t *testing.T, target *server.Target, scripts *coro.Scripts, to *situation) error {
	conns := map[int]*redis.Conn{}
	client := redis.NewClient(target.Options(0, server.ConnOptions{PoolSize: 32}))
	defer client.Close()
	began := time.Now()
	for _, s := range to.steps() {
		if wait := s.now - s.from.now; wait > 0 {
			// On a real server, just before, at, and just after an instant must be further apart than in the model.
			time.Sleep(time.Until(began.Add(s.now + s.now/50)))
		}
		if s.sent == nil {
			continue
		}
		c := conns[s.sent.conn]
		if c == nil {
			c = client.Conn()
			conns[s.sent.conn] = c
			defer c.Close()
		}
		for _, command := range s.sent.r.Commands {
			if strings.HasPrefix(command[0], "evalsha") {
				text, _ := scripts.Text(command[1])
				if err := c.ScriptLoad(t.Context(), text).Err(); err != nil {
					return err
				}
			}
		}
		got, err := ask(t, c, s.sent.r)
		if err != nil {
			return err
		}
		if timed := s.now > 0 && strings.Contains(fmt.Sprint(s.sent.r.Commands), "pttl"); sameMembers(got) != sameMembers(s.sent.reply) && !timed {
			return fmt.Errorf("at %v the server answers %v with %q, the model with %q", s.now, s.sent.r.Commands, got, s.sent.reply)
		}
	}
	return nil
}

// ask sends a request and returns the answer in RESP2, as the server wrote it.
func ask(t *testing.T, c *redis.Conn, r coro.Request) (string, error) {
	var b strings.Builder
	commands := r.Commands
	if r.Tx {
		commands = append(append([][]string{{"multi"}}, commands...), []string{"exec"})
	}
	for _, command := range commands {
		args := make([]any, len(command))
		for i, a := range command {
			args[i] = a
		}
		v, err := c.Do(t.Context(), args...).Result()
		var refused redis.Error
		switch {
		case errors.Is(err, redis.Nil):
			v = nil
		case errors.As(err, &refused):
			v = refused
		case err != nil:
			return "", err
		}
		inner := ""
		if len(command) == 1 && command[0] == "exec" {
			inner = "*"
		}
		b.WriteString(resp(v, inner))
	}
	return b.String(), nil
}

// resp returns a reply in RESP2. null says how to write a null reply. Statuses and texts have the same type in Go, so
// they cannot be told apart; none of the programs stores a status.
func resp(v any, null string) string {
	switch v := v.(type) {
	case nil:
		if null == "*" {
			return "*-1\r\n"
		}
		return "$-1\r\n"
	case error:
		return "-" + v.Error() + "\r\n"
	case int64:
		return fmt.Sprintf(":%d\r\n", v)
	case string:
		if v == "OK" || v == "QUEUED" {
			return "+" + v + "\r\n"
		}
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
	case []any:
		text := fmt.Sprintf("*%d\r\n", len(v))
		for _, e := range v {
			text += resp(e, "")
		}
		return text
	}
	return fmt.Sprintf("%T", v)
}

// sameMembers returns a reply with its lines sorted: a server may list a set in any order.
func sameMembers(reply string) string {
	lines := strings.Split(reply, "\r\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
