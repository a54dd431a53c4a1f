package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// asSystem is the environment variable that makes the test binary behave as a system. Its value says how the system
// misbehaves, and from which request on.
const asSystem = "TEST_AS_SYSTEM"

func TestMain(m *testing.M) {
	if how := os.Getenv(asSystem); how != "" {
		behave(how)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// behave serves a lock, a sale and a queue without a server: the process itself keeps their state. how names a
// misbehaviour and the number of the request from which on the process misbehaves.
func behave(how string) {
	if text, says := strings.CutPrefix(how, "says:"); says {
		sayOnly(text)
		return
	}
	if file, leaves := strings.CutPrefix(how, "leaves:"); leaves {
		leave(file)
	}
	var from int64
	how, at, _ := strings.Cut(how, "@")
	fmt.Sscan(at, &from)
	holder, left, tasks := "", int64(0), []string{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		said := map[string]any{"id": r.ID, "ok": true}
		refuse := func(word string) { said = map[string]any{"id": r.ID, "refused": word} }
		switch r.Op {
		case "acquire":
			if holder != "" {
				refuse("held")
				break
			}
			holder = fmt.Sprintf("token-%d", r.ID)
			said["lock"], said["valid_ms"], said["fence"] = map[string]string{"token": holder}, r.TTLMS, r.ID
		case "release":
			if !strings.Contains(string(r.Lock), `"`+holder+`"`) || holder == "" {
				refuse("lost")
				break
			}
			holder = ""
		case "open":
			left = r.Stock
		case "buy":
			if left < int64(r.Quantity) {
				refuse("sold-out")
				break
			}
			left -= int64(r.Quantity)
			said["left"] = left
		case "state":
			said["left"] = left
		case "enqueue":
			tasks = append(tasks, r.Tasks...)
		case "pop":
			if len(tasks) == 0 {
				refuse("empty")
				break
			}
			said["tasks"], tasks = []task{{ID: tasks[0]}}, tasks[1:]
		}
		line, err := json.Marshal(said)
		if err != nil {
			panic(err)
		}
		if r.ID >= from && from > 0 {
			line = misbehaviours[how](r, line)
		}
		os.Stdout.Write(append(line, '\n'))
	}
	if how == "stays" {
		select {}
	}
}

// sayOnly answers each request except init with a text, in which %d stands for the request's id.
func sayOnly(text string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		if r.Op == "init" {
			fmt.Printf("{\"id\":%d,\"ok\":true}\n", r.ID)
			continue
		}
		fmt.Printf(text+"\n", r.ID)
	}
}

// leave exits at the second request, and leaves behind a process that holds its output open.
func leave(file string) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	fmt.Println(`{"id":1,"ok":true}`)
	lines.Scan()
	other := exec.Command("sleep", "300")
	other.Stdout, other.Stderr = os.Stdout, os.Stderr
	if err := other.Start(); err != nil {
		panic(err)
	}
	if err := os.WriteFile(file, fmt.Append(nil, other.Process.Pid), 0o600); err != nil {
		panic(err)
	}
	os.Exit(4)
}

// misbehaviours holds functions that alter an answer, or do something worse.
var misbehaviours = map[string]func(r request, line []byte) []byte{
	"well":     func(_ request, line []byte) []byte { return line },
	"stays":    func(_ request, line []byte) []byte { return line },
	"exits":    func(request, []byte) []byte { fmt.Fprintln(os.Stderr, "out of luck"); os.Exit(3); return nil },
	"exits-0":  func(request, []byte) []byte { os.Exit(0); return nil },
	"panics":   func(request, []byte) []byte { panic("a mistake") },
	"hangs":    func(request, []byte) []byte { time.Sleep(time.Hour); return nil },
	"silent":   func(request, []byte) []byte { os.Stdout.Close(); time.Sleep(time.Hour); return nil },
	"garbage":  func(request, []byte) []byte { return []byte("<html>\x1b[31moh no") },
	"half":     func(_ request, line []byte) []byte { os.Stdout.Write(line[:len(line)/2]); os.Exit(0); return nil },
	"twice":    func(_ request, line []byte) []byte { return append(append(line, '\n'), line...) },
	"two":      func(_ request, line []byte) []byte { return append(append(line, ' '), line...) },
	"another":  func(r request, _ []byte) []byte { return fmt.Appendf(nil, `{"id":%d,"ok":true}`, r.ID+100) },
	"no-id":    func(request, []byte) []byte { return []byte(`{"ok":true}`) },
	"says-nil": func(r request, _ []byte) []byte { return fmt.Appendf(nil, `{"id":%d}`, r.ID) },
	"says-two": func(r request, _ []byte) []byte {
		return fmt.Appendf(nil, `{"id":%d,"ok":true,"refused":"held"}`, r.ID)
	},
	"unknown": func(r request, _ []byte) []byte { return fmt.Appendf(nil, `{"id":%d,"unknown":"read timeout"}`, r.ID) },
	"word":    func(r request, _ []byte) []byte { return fmt.Appendf(nil, `{"id":%d,"refused":"no mood"}`, r.ID) },
	"field":   func(r request, _ []byte) []byte { return fmt.Appendf(nil, `{"id":%d,"ok":true,"okay":1}`, r.ID) },
	"null":    func(request, []byte) []byte { return []byte("null") },
	"list":    func(request, []byte) []byte { return []byte("[1,2]") },
	"text-id": func(request, []byte) []byte { return []byte(`{"id":"7","ok":true}`) },
	"empty":   func(request, []byte) []byte { return nil },
	"long":    func(request, []byte) []byte { return []byte(strings.Repeat("x", 2*longestLine)) },
	"bom":     func(_ request, line []byte) []byte { return append([]byte("\ufeff"), line...) },
	"binary":  func(request, []byte) []byte { return []byte{0, 1, 2, 0xff, 0xfe} },
}

// read returns the system that a file with this text describes.
func read(t *testing.T, text string) (*System, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "system.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

// serving returns the processes that serve clients. A process that ends is removed by a goroutine of its own.
func serving(s *System) []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.processes)
}

// behaving returns a system whose program is this test binary, and a function that returns the Env of a client.
func behaving(t *testing.T, object, how, more string) (*System, func() variant.Env) {
	t.Helper()
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(t, fmt.Sprintf("name: mine\nobject: %s\ncommand: [%q]\nenv: {%s: %q}\n%s", object, binary, asSystem, how, more))
	if err != nil {
		t.Fatal(err)
	}
	return s, world(t)
}

// world returns a function that returns the Env of a client that ends with the test.
func world(t *testing.T) func() variant.Env {
	ctx, end := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	t.Cleanup(func() { end(); beside.Wait() })
	return func() variant.Env {
		return variant.Env{Addr: []string{"127.0.0.1:1"}, Clock: clock.Real{}, Go: func(f func(context.Context)) func(context.Context) error {
			beside.Go(func() { f(ctx) })
			return func(context.Context) error { return nil }
		}}
	}
}

// TestFaultySystems checks that, whatever a process does from whichever request on, each call ends, either with an answer
// that the process gave or with an error that leaves the outcome unknown, and that the process ends with its clients.
func TestFaultySystems(t *testing.T) {
	for how := range misbehaviours {
		for at := int64(1); at <= 8; at++ {
			if at != 1 && at != 3 && os.Getenv("OVERSELL_LONG") == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s@%d", how, at), func(t *testing.T) {
				t.Parallel()
				harmless := how == "well" || how == "stays"
				limit := "limit: 150ms\nstart: 150ms"
				if harmless {
					limit = "limit: 30s" // on a busy machine an answer takes a while
				}
				s, env := behaving(t, "lock", fmt.Sprintf("%s@%d", how, at), limit)
				v := s.Lock()
				clients := []lockimpl.Locker{v.New(env()), v.New(env())}
				open := 0
				for i := range 5 {
					l, err := clients[i%2].Acquire(t.Context(), "order", lockimpl.Options{TTL: time.Minute})
					open += isOpen(t, how, err)
					if err == nil {
						open += isOpen(t, how, clients[i%2].Release(t.Context(), l))
					}
				}
				if harmless != (open == 0) {
					t.Errorf("%d calls were left open", open)
				}
			})
		}
	}
}

// TestStart checks that the time in which a program starts is not limited by that of its answers.
func TestStart(t *testing.T) {
	s, env := behaving(t, "lock", "well", "limit: 1ms") // no process starts within 1 ms
	for range 3 {
		if _, err := s.Lock().New(env()).Acquire(t.Context(), "order", lockimpl.Options{TTL: time.Minute}); err != nil && strings.Contains(err.Error(), "start") {
			t.Error(err)
		}
	}
}

// isOpen returns 1 for an error that leaves the outcome unknown, and 0 for an answer.
func isOpen(t *testing.T, how string, err error) int {
	t.Helper()
	if err == nil || errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, lockimpl.ErrLost) {
		return 0
	}
	if !strings.Contains(err.Error(), "mine") || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("%s: %q does not name the system on one line", how, err)
	}
	return 1
}

// TestFailuresAreTold checks that the error says what went wrong.
func TestFailuresAreTold(t *testing.T) {
	for how, want := range map[string]string{
		"exits@3":    "acquire of mine: the process failed: it ended with exit status 3: out of luck",
		"hangs@3":    "no answer to acquire within 2s",
		"garbage@3":  `it printed a line that is not an answer`,
		"twice@2":    "it answered request 2 twice",
		"another@3":  "it answered request 103, which it was never asked",
		"no-id@3":    "it printed an answer without an id",
		"says-two@3": `one of "ok": true, "refused": "…" and "unknown": "…" is wanted`,
		"unknown@3":  "mine: read timeout",
		"word@3":     `acquire of mine was refused with "no mood", which is not a refusal of acquire`,
		"field@3":    `unknown field "okay"`,
		"long@3":     "it printed a line of more than 1048576 bytes",
		"hangs@1":    "start mine: init of mine: no answer to init within 2s",
		"exits@1":    "start mine: it ended with exit status 3: out of luck",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			limit := "limit: 30s" // on a busy machine starting a process takes a while
			if strings.HasPrefix(how, "hangs") {
				limit = "limit: 2s\nstart: 2s"
			}
			s, env := behaving(t, "lock", how, limit)
			l := s.Lock().New(env())
			var last error
			for range 30 {
				if _, err := l.Acquire(t.Context(), "order", lockimpl.Options{TTL: time.Minute}); isOpen(t, how, err) == 1 {
					last = err
					break
				}
			}
			if last == nil || !strings.Contains(last.Error(), want) {
				t.Errorf("the error is %v; want %q in it", last, want)
			}
		})
	}
}

// TestNoMoreProcesses checks that no more processes are started after a number of failures, so that a run with a system
// that always fails comes to an end.
func TestNoMoreProcesses(t *testing.T) {
	s, env := behaving(t, "lock", "exits@1", "clients: 1")
	for range mostFailures + 5 {
		if _, err := s.Lock().New(env()).Acquire(t.Context(), "order", lockimpl.Options{TTL: time.Minute}); isOpen(t, "exits", err) == 0 {
			t.Fatal("a process that fails has answered")
		}
	}
	if s.failures != mostFailures {
		t.Errorf("%d processes failed; want %d and no more", s.failures, mostFailures)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "20 processes failed; the last: ") {
		t.Errorf("the system reports no failure: %v", err)
	}
	if s.Begin(); s.failures != 0 || s.Err() != nil {
		t.Errorf("another run begins with %d failures, %v", s.failures, s.Err())
	}
}

// TestNotesOfProcesses checks that a run is told that several processes served it, and that one replaced another.
func TestNotesOfProcesses(t *testing.T) {
	for _, c := range []struct {
		how, clients, want string
	}{
		{"well@1", "clients: 2", ""},
		{"well@1", "clients: 1", "2 processes of mine served the clients: what a process keeps in its memory, the others do not have"},
		{"exits@3", "clients: 2", "in place of 1 that failed: what"},
	} {
		s, env := behaving(t, "lock", c.how, c.clients)
		clients := []lockimpl.Locker{s.Lock().New(env()), s.Lock().New(env())}
		for i := range 4 {
			_, _ = clients[i%2].Acquire(t.Context(), "order", lockimpl.Options{TTL: time.Minute})
		}
		if got := strings.Join(s.Notes(), "; "); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s, %s: %q, want %q", c.how, c.clients, got, c.want)
		}
		if s.Begin(); len(s.Notes()) > 0 {
			t.Error(s.Notes())
		}
	}
}

// TestProcessesAreReady checks that Prepare starts the processes for all clients before the first client calls, and that
// no others are started.
func TestProcessesAreReady(t *testing.T) {
	s, _ := behaving(t, "sale", "well", "clients: 3")
	ctx, end := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	env := variant.Env{Clock: clock.Real{}, Go: func(f func(context.Context)) func(context.Context) error {
		beside.Go(func() { f(ctx) })
		return nil
	}}
	for range 7 {
		s.Prepare(t.Context(), env)
	}
	started := serving(s)
	if len(started) != 3 {
		t.Errorf("%d processes for 7 clients, 3 each", len(started))
	}
	for range 7 {
		if err := s.Sale().New(env, "phone").Open(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
	}
	if now := serving(s); !slices.Equal(now, started) {
		t.Errorf("%d processes when all had called", len(now))
	}
	s.Prepare(t.Context(), env) // for a client that never calls
	end()
	beside.Wait()
	if left := serving(s); len(left) != 0 {
		t.Errorf("%d processes outlive their clients", len(left))
	}
}

// TestProcessesServeSomeClients checks that as many processes are started as the clients need, and that none outlives
// them.
func TestProcessesServeSomeClients(t *testing.T) {
	s, _ := behaving(t, "sale", "well", "clients: 3")
	ctx, end := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	env := variant.Env{Clock: clock.Real{}, Go: func(f func(context.Context)) func(context.Context) error {
		beside.Go(func() { f(ctx) })
		return nil
	}}
	for range 7 {
		if err := s.Sale().New(env, "phone").Open(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
	}
	started := serving(s)
	if len(started) != 3 {
		t.Errorf("%d processes for 7 clients, 3 each", len(started))
	}
	end()
	beside.Wait()
	for _, p := range started {
		if !p.child.Gone() {
			t.Errorf("a process outlives its clients")
		}
	}
}

// TestObjects checks that a variant returns what its system answers.
func TestObjects(t *testing.T) {
	ctx := t.Context()
	t.Run("sale", func(t *testing.T) {
		s, env := behaving(t, "sale", "well", "clients: 100")
		one := s.Sale().New(env(), "phone")
		if err := one.Open(ctx, 2); err != nil {
			t.Fatal(err)
		}
		left, err := one.Buy(ctx, stockimpl.Order{ID: 1, Quantity: 2}, lockimpl.Lock{})
		if left != 0 || err != nil {
			t.Errorf("%d left, %v", left, err)
		}
		if left, err := one.Buy(ctx, stockimpl.Order{ID: 2, Quantity: 1}, lockimpl.Lock{}); left != stockimpl.Unsaid || !errors.Is(err, stockimpl.ErrSoldOut) {
			t.Errorf("%d left, %v; want nothing said, and sold out", left, err)
		}
		if state, err := one.State(ctx); state != (stockimpl.State{Sold: stockimpl.Unsaid}) || err != nil {
			t.Errorf("the state is %v, %v", state, err)
		}
	})
	t.Run("queue", func(t *testing.T) {
		s, env := behaving(t, "queue", "well", "")
		one := s.Queue().New(env(), queueimpl.Options{})
		if entered, err := one.Enqueue(ctx, "q", "a"); len(entered) != 1 || entered[0].ID != "a" || err != nil {
			t.Errorf("entered %v, %v", entered, err)
		}
		if got, err := one.Pop(ctx, "q", 1); len(got) != 1 || got[0].ID != "a" || err != nil {
			t.Errorf("popped %v, %v", got, err)
		}
		if _, err := one.Pop(ctx, "q", 1); !errors.Is(err, queueimpl.ErrEmpty) {
			t.Errorf("popped from an empty queue: %v", err)
		}
		if _, acks := one.(queueimpl.Acker); acks {
			t.Error("a queue that does not say so has acks")
		}
	})
	t.Run("lock", func(t *testing.T) {
		s, env := behaving(t, "lock", "well", "fences: true")
		one := s.Lock().New(env())
		before := time.Now()
		l, err := one.Acquire(ctx, "order", lockimpl.Options{TTL: time.Minute})
		if err != nil || l.Fence == 0 || !strings.HasPrefix(l.Token, `{"token":"token-`) {
			t.Fatalf("%v, %v", l, err)
		}
		if l.Until.Before(before.Add(50*time.Second)) || l.Until.After(time.Now().Add(time.Minute)) {
			t.Errorf("the lease ends %v from now", time.Until(l.Until))
		}
		if err := one.Release(ctx, l); err != nil {
			t.Error(err)
		}
		if err := one.Release(ctx, l); !errors.Is(err, lockimpl.ErrLost) {
			t.Errorf("released twice: %v", err)
		}
	})
}

// TestWrongFiles checks that the error for a wrong file is one line and says where the mistake is.
func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "system.yaml:1:1: the system is empty",
		"name: x\nobject: lock":                 "there is neither command nor http",
		"name: x\nobject: lok\ncommand: [a]":    `object "lok" is not known: it is one of lock, sale, queue, ids`,
		"name: x\nobjekt: lock":                 `system.yaml:2:1: the key "objekt" is not known here: did you mean object?`,
		"object: lock\ncommand: [a]":            `name "": want at most 63 letters`,
		"name: a b\nobject: lock\ncommand: [a]": `name "a b"`,
		"name: x\nobject: lock\ncommand: [a]\npromises: [no-oversell]":                    `"no-oversell" is not a promise of a lock`,
		"name: x\nobject: lock\ncommand: [a]\npromises: [mutual-exclusio]":                "did you mean mutual-exclusion?",
		"name: x\nobject: lock\ncommand: [a]\nenv: {A: \"{reddis}\"}":                     "the placeholder {reddis}",
		"name: x\nobject: lock\ncommand: [a, \"{Redis}\"]":                                "the placeholder {Redis}",
		"name: x\nobject: lock\ncommand: [a, \"{reddis}\"]":                               "the placeholder {reddis}",
		"name: x\nobject: lock\ncommand: [a, \"--at={redis\"]":                            `the placeholder {redis in "--at={redis" has no }`,
		"name: x\nobject: lock\ncommand: [a]\nenv: {A: \"{redis\"}":                       "has no }",
		"name: x\nobject: lock\ncommand: [a]\nlimit: 3":                                   `limit "3": want a time`,
		"name: x\nobject: lock\ncommand: [a]\nstart: 2h":                                  `start "2h": want a time`,
		"name: x\nobject: lock\ncommand: [a]\nclients: -1":                                "clients -1",
		"name: x\nobject: lock\ncommand:":                                                 "system.yaml:3:1: command has no value",
		"name: x\nobject: lock\ncommand: {a: b}":                                          "system.yaml:3:",
		"name: x\nobject: lock\nhttp: {base: http://h}":                                   "http is for a sale",
		"name: x\nobject: sale\nhttp: {base: h}":                                          `http.base "h"`,
		"name: x\nobject: sale\nhttp: {base: http://h}":                                   "http needs buy and reset",
		"name: x\nobject: sale\nhttp: {base: http://h, buy: {path: x}, reset: {path: /}}": "a path begins with /",
		"name: x\nobject: lock\ncommand: [a]\nclients: 0":                                 "clients 0: a process serves 1 to 100000",
		"name: x\nobject: lock\ncommand: [a, \"b\\0c\"]":                                  "contains a NUL",
		"name: x\nobject: lock\ncommand: [\"\"]":                                          "want a program",
		"name: x\nobject: lock\ncommand: [a]\nenv: {A: \"b\\0c\"}":                        "env.A: \"b\\x00c\" contains a NUL",
		"name: x\nobject: lock\ncommand: [a]\nenv: {\"A=B\": c}":                          `env: the name "A=B"`,
		"name: x\nobject: lock\ncommand: [a, \"{order}\"]":                                `command: the placeholder {order} in "{order}" is not valid there: want {redis}`,
		"name: x\nobject: lock\ncommand: [a]\nenv: {A: \"{port}\"}":                       `env.A: the placeholder {port} in "{port}" is not valid there: want {redis}`,
		"name: x\nobject: lock\ncommand: [a]\nenv: {A: \"{foo}\"}":                        `env.A: the placeholder {foo} in "{foo}" is not known: want {redis}`,
		"name: x\nschema: oversell-system/2\nobject: lock\ncommand: [a]":                  `schema "oversell-system/2" is not known`,
		"name: x\nobject: sale\nacks: true\ncommand: [a]":                                 "acks is for a queue",
		"name: x\n---\nname: y":                                                           "system.yaml:3:1: a second document begins here",
		"a: *b":                                                                           "anchors and aliases",
		"\t":                                                                              "system.yaml:",
	} {
		_, err := read(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %q on one line", text, err, want)
		}
	}
}

// TestByteOrderMarks checks that a byte order mark, which some editors put before a text, is ignored.
func TestByteOrderMarks(t *testing.T) {
	if s, err := read(t, "\xef\xbb\xbfname: x\nobject: lock\ncommand: [awk, '{print}', a]"); err != nil || s.Name != "x" {
		t.Errorf("%v, %v", s, err)
	}
}

// TestFilesThatAreNone checks that a path that is not a regular file is refused, and so is a file that is too long or too
// deeply nested.
func TestFilesThatAreNone(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, append([]byte("name: x\n#"), strings.Repeat("x", longestFile)...), 0o600); err != nil {
		t.Fatal(err)
	}
	nested := filepath.Join(t.TempDir(), "nested.yaml")
	if err := os.WriteFile(nested, append([]byte("name: "), strings.Repeat("[", 20_000)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/zero": "/dev/zero: want a regular file", t.TempDir(): "want a regular file",
		long: "long.yaml: want at most 1048576 bytes", nested: "nested.yaml: want at most 100 levels of lists and objects",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", path, err, want)
		}
	}
}

// TestUsualPromises checks that the default promises of a system follow from what its file declares, and that a list of
// promises in the file replaces them.
func TestUsualPromises(t *testing.T) {
	for text, want := range map[string][]variant.Property{
		"object: lock":               {variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
		"object: lock\nfences: true": {variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress, variant.Fencing},
		"object: queue":              {variant.NoLostTask, variant.NoDuplicateDelivery},
		"object: queue\nacks: true":  {variant.NoLostTask},
		"object: queue\nacks: true\npromises: [no-duplicate-delivery]": {variant.NoDuplicateDelivery},
	} {
		s, err := read(t, "name: x\ncommand: [a]\n"+text)
		if err != nil || !slices.Equal(s.Promises, want) {
			t.Errorf("%s: %v, %v; want %v", text, s, err, want)
		}
	}
}

// shop returns a sale that is an HTTP service with this handler.
func shop(t *testing.T, handle http.HandlerFunc) stockimpl.Sale {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	s, err := read(t, fmt.Sprintf(`
name: shop
object: sale
limit: 300ms
http:
  base: %s
  reset: {method: POST, path: /reset, body: '{"stock": {stock}}'}
  buy: {method: POST, path: '/orders/{order}', ok: {status: [201]}, sold-out: {status: [409], json: {code: SOLD_OUT, n: 3}}, repeated: {status: [200]}}
  left: {path: /stock, result: stock.left}
  orders: {path: /orders, result: "orders[].id", quantity: "orders[].n"}
`, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	return s.Sale().New(world(t)(), "phone")
}

// TestServices checks what declared HTTP answers mean, and that undeclared ones leave the outcome unknown.
func TestServices(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   error // nil and "" for a purchase
		open   string
	}{
		{status: 201},
		{status: 200, body: "whatever", want: stockimpl.ErrRepeated},
		{status: 409, body: `{"code":"SOLD_OUT","n":3}`, want: stockimpl.ErrSoldOut},
		{status: 409, body: `{"code":"OTHER","n":3}`, open: "an answer that the file does not declare: 409"},
		{status: 409, body: `{"code":"SOLD_OUT","n":4}`, open: "409"},
		{status: 409, body: `<html>`, open: "409 <html>"},
		{status: 500, body: "a\nb", open: "500"},
		{status: 302, open: "302"},
	} {
		sale := shop(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		_, err := sale.Buy(t.Context(), stockimpl.Order{ID: 7, Quantity: 1}, lockimpl.Lock{})
		switch {
		case c.open == "" && !errors.Is(err, c.want):
			t.Errorf("%d %q: %v; want %v", c.status, c.body, err, c.want)
		case c.open != "" && (err == nil || !strings.Contains(err.Error(), c.open) || errors.Is(err, stockimpl.ErrSoldOut)):
			t.Errorf("%d %q: %v; want %q", c.status, c.body, err, c.open)
		}
	}
	hung := shop(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if _, err := hung.Buy(t.Context(), stockimpl.Order{ID: 7, Quantity: 1}, lockimpl.Lock{}); err == nil || !strings.Contains(err.Error(), "no answer to buy within 300ms") {
		t.Errorf("a service that hangs: %v", err)
	}
	broken := shop(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := broken.Buy(t.Context(), stockimpl.Order{ID: 7, Quantity: 1}, lockimpl.Lock{}); err == nil {
		t.Error("a service that closes the connection has sold")
	}
}

// TestClientsAreNumbered checks that a service can tell its clients apart by {client}.
func TestClientsAreNumbered(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths = append(paths, r.URL.Path) }))
	defer server.Close()
	s, err := read(t, fmt.Sprintf("name: shop\nobject: sale\npromises: [no-oversell]\nhttp: {base: %q, reset: {path: /}, buy: {path: '/{client}'}}", server.URL))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		sale := s.Sale().New(world(t)(), "phone")
		for range 2 {
			if _, err := sale.Buy(t.Context(), stockimpl.Order{ID: 7, Quantity: 1}, lockimpl.Lock{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"/1", "/1", "/2", "/2"}; !slices.Equal(paths, want) {
		t.Errorf("the clients are %v; want %v", paths, want)
	}
}

// TestServiceStates checks how the number left and the number sold are read from a service's answers.
func TestServiceStates(t *testing.T) {
	for stock, want := range map[string]string{
		`{"stock":{"left":5}}`:   "",
		`{"stock":{"left":"5"}}`: "5 at stock.left is not a number",
		`{"stock":{"left":1.5}}`: "not a whole number",
		`{"stock":{}}`:           `the answer has no "left" of stock.left`,
		`[]`:                     "there is a list",
		`5`:                      `there is no "stock"`,
		`oops`:                   "the answer is not JSON",
	} {
		sale := shop(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stock" {
				fmt.Fprint(w, stock)
				return
			}
			fmt.Fprint(w, `{"orders":[{"id":"1","n":2},{"id":"2","n":3}]}`)
		})
		state, err := sale.State(t.Context())
		if want == "" && (err != nil || state.Left != 5 || state.Sold != 5) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v; want %q", stock, state, err, want)
		}
	}
}

// FuzzAnswers checks that a line that a process prints is either a valid answer or an error.
func FuzzAnswers(f *testing.F) {
	for _, line := range []string{`{"id":1,"ok":true}`, `{"id":1,"refused":"held"}`, `{"id":1}`, `{"id":2,"ok":true}`, `{"id":1,"ok":true} {"id":1,"ok":true}`, `{"id":null}`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		came := make(chan answer, 1)
		p := &process{system: &System{Name: "x"}, waiting: map[int64]waiter{1: {came: came}}, abandoned: map[int64]bool{}, next: 1, over: make(chan struct{})}
		err := p.take([]byte(line))
		select {
		case a := <-came:
			if a.ID == nil || *a.ID != 1 || err == nil && a.check() != nil {
				t.Errorf("%q was taken for an answer: %v", line, err)
			}
		default:
			if err == nil {
				t.Errorf("%q was ignored without an error", line)
			}
		}
	})
}
