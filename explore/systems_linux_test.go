package explore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/system"
)

// protocol is the Python code with which the programs of these tests begin.
const protocol = `
import encodings.idna, json, os, socket, sys, threading, time, uuid
host, port = os.environ["REDIS_URL"].removeprefix("redis://").split("/")[0].split(":")
DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
line, first = None, []
class Refused(Exception): pass
def reply():
    head = line.readline()
    if not head: raise OSError("no answer")
    kind, rest = head[:1], head[1:-2]
    if kind == b"$": return None if rest == b"-1" else line.read(int(rest) + 2)[:-2].decode()
    if kind == b"-": raise Refused(rest.decode())
    return int(rest) if kind == b":" else rest.decode()
def say(*words):
    words = [str(w).encode() for w in words]
    line.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    line.flush()
    return reply()
def dial(): return socket.create_connection((host, port))
def redis(*words):
    global line
    try:
        if line is None:
            line = dial().makefile("rwb")
            for f in first: say(*f)
        return say(*words)
    except Exception: line = None; raise
def until(r): return time.time() * 1000 + r["ttl_ms"]
def take(r, token, ends=None):
    ends = ends or until(r)
    return {"ok": True, "lock": token, "until_ms": ends} if redis("set", r["key"], token, "nx", "px", r["ttl_ms"]) else {"refused": "held"}
def acquire(r): return take(r, uuid.uuid4().hex)
def release(r): return {"ok": True} if redis("eval", DELETE, 1, r["key"], r["lock"]) else {"refused": "lost"}
def serve():
    for text in sys.stdin:
        r = json.loads(text)
        try: a = {"acquire": acquire, "release": release, "init": lambda r: {"ok": True}}[r["op"]](r)
        except Exception as e: a = {"unknown": repr(e)}
        print(json.dumps({"id": r["id"], **a}), flush=True)
`

// ofPython returns the configuration of a search of a lock in Python. code follows protocol and may redefine its
// functions; more holds further lines of the file that describes the lock.
func ofPython(t *testing.T, code, more string) Config {
	t.Helper()
	python := servertest.Python(t)
	if _, err := exec.LookPath("cc"); err != nil {
		servertest.Unable(t, err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lock.py"), protocol+code+"\nserve()\n")
	file := filepath.Join(dir, "lock.yaml")
	write(t, file, "name: mine\nobject: lock\nclients: 1\nstateless: true\ncommand: ["+python+", -S, lock.py]\nenv: {REDIS_URL: \"{redis}\"}\n"+more)
	s, err := system.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{System: s, Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 1, TimeMS: 60_000}, Exhaustive: true}
	c.Run.Scenario, _ = scenarios.Find("mutex")
	c.Run.Lock, c.Run.TTL, c.Run.Hold = s.Lock(), 1500*time.Millisecond, 1125*time.Millisecond
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantVerdict runs a search and checks its verdict, and that the reason contains why.
func wantVerdict(t *testing.T, c Config, verdict, why string) reports.Exploration {
	t.Helper()
	e, err := Run(t.Context(), c)
	said := e.Verdict
	text := fmt.Sprint(e.Why, " ", err)
	if err != nil || said != verdict || !strings.Contains(text, why) {
		t.Errorf("%s: %s; want %s: %s", said, text, verdict, why)
	}
	return e
}

// TestProgramThatNeverGetsIn checks that the search of a program that never works is inconclusive and reports the error.
func TestProgramThatNeverGetsIn(t *testing.T) {
	for code, why := range map[string]string{
		`def acquire(r): return {"unknown": "no luck today"}`: "no luck today",
		`first = [("hello", 3)]`:                              "NOPROTO",
		`first = [("select", 1)]`:                             "DB index",
	} {
		wantVerdict(t, ofPython(t, code, ""), reports.Inconclusive, why)
	}
	// A program that works at first and then stops working is judged.
	wantVerdict(t, ofPython(t, "def release(r): return {'ok': redis('lpush', r['key'] + '!', 1) > 0}\ndef acquire(r):\n    redis('get', r['key'] + '!')\n    return take(r, uuid.uuid4().hex)\n", ""), reports.Violated, "")
}

// TestClientsHaveNumbers checks locks whose token is the number of the client: a plain one is sound, and so is one that
// answers "unknown" when it finds the lock held under its own number. One that releases with DEL breaks.
func TestClientsHaveNumbers(t *testing.T) {
	owner := "def acquire(r): return take(r, 'client-%d' % r['client'])\n"
	again := `
def acquire(r):
    a = take(r, r["client"])
    return a if "ok" in a or redis("get", r["key"]) != str(r["client"]) else {"unknown": "it is mine already"}
`
	for _, code := range []string{owner, again} {
		c := ofPython(t, code, "")
		c.Bounds.Tries = 1
		wantVerdict(t, c, reports.Pass, "")
	}
	e := wantVerdict(t, ofPython(t, owner+"def release(r): return {'ok': True} if redis('del', r['key']) else {'refused': 'lost'}\n", ""), reports.Violated, "")
	if e.Counterexample == nil || !strings.Contains(fmt.Sprint(e.Counterexample.Steps), "client-#0") {
		t.Errorf("no client-#0: %+v", e.Counterexample)
	}
}

// TestLeaseLastsFromItsAnswer checks that a lease of valid_ms begins when the program answers, not when its answer is
// read.
func TestLeaseLastsFromItsAnswer(t *testing.T) {
	for _, clock := range []struct{ name, least string }{
		{"monotonic", "-60000"}, // the real clock, by which a busy machine may take long
		{"time", "500"},
	} {
		c := ofPython(t, strings.NewReplacer("CLOCK", clock.name, "LEAST", clock.least).Replace(`
def acquire(r):
    began, token = time.CLOCK(), uuid.uuid4().hex
    if not redis("set", r["key"], token, "nx", "px", r["ttl_ms"]): return {"refused": "held"}
    if r["ttl_ms"] - (time.CLOCK() - began) * 1000 < LEAST: return {"unknown": "too late"}
    return {"ok": True, "lock": token, "valid_ms": 400}
`), "promises: [mutual-exclusion]\n")
		c.Bounds.Tries = 1
		wantVerdict(t, c, reports.Pass, "")
	}
}

// TestProgramsThatLeadOut checks that a search is inconclusive, and says why, if the program acts through other programs
// or sockets, which a search cannot step.
func TestProgramsThatLeadOut(t *testing.T) {
	for _, how := range []string{`import subprocess; subprocess.check_output(["date"])`, `os.system("date >/dev/null")`, `os.popen("date").read()`, `os.spawnlp(os.P_WAIT, "true", "true")`,
		`os.posix_spawn("/bin/true", ["true"], os.environ)`} {
		wantVerdict(t, ofPython(t, "def acquire(r):\n    "+how+"\n    return take(r, uuid.uuid4().hex)", ""), reports.Inconclusive, "it starts other programs")
	}
	wantVerdict(t, ofPython(t, "def dial():\n    s = socket.socket(socket.AF_UNIX); s.connect('/tmp/no-such-socket'); return s", ""), reports.Inconclusive, "it connects to the socket /tmp/no-such-socket")
	pair := "def acquire(r):\n    a, b = socket.socketpair(); a.close(); b.close()\n    return take(r, uuid.uuid4().hex)"
	wantVerdict(t, ofPython(t, pair, ""), reports.Pass, "")
}

// TestClientsThatSleepUntil checks that a sleep until an instant of a clock that shows real time lasts equally long in all runs.
func TestClientsThatSleepUntil(t *testing.T) {
	c := ofPython(t, "def acquire(r):\n    for _ in range(3):\n        a = take(r, uuid.uuid4().hex)\n        if 'ok' in a: return a\n        time.sleep(0.3)\n    return a", "")
	c.Bounds.Tries = 1
	wantVerdict(t, c, reports.Pass, "")
}

// TestTimeEndsAnExecution checks that the time limit of a search, and its context, end an execution that is under way.
func TestTimeEndsAnExecution(t *testing.T) {
	slow := "def acquire(r):\n    threading.Event().wait(60)\n    return take(r, uuid.uuid4().hex)"
	c := ofPython(t, slow, "limit: 60s\n")
	c.Bounds.TimeMS = 2000
	began := time.Now()
	wantVerdict(t, c, reports.Inconclusive, "(--time;")
	c = ofPython(t, slow, "limit: 60s\n")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if e, err := Run(ctx, c); err != nil || e.Verdict != reports.Inconclusive || !strings.Contains(e.Why, "interrupted") {
		t.Errorf("%s: %s, %v", e.Verdict, e.Why, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestEndInSeconds checks that a program that gives the end of a lease in seconds is told that it looks like seconds.
func TestEndInSeconds(t *testing.T) {
	wantVerdict(t, ofPython(t, "def acquire(r): return take(r, uuid.uuid4().hex, int(time.time()) + 2)", ""), reports.Inconclusive, fmt.Sprintf("until_ms %d looks like seconds", Epoch.Unix()+2))
}

// TestStateThatShowsLater checks that a search detects a program that remembers how an earlier request ended, even if
// the state shows only some steps later.
func TestStateThatShowsLater(t *testing.T) {
	for _, code := range []string{`
released = 0
def acquire(r):
    a = take(r, uuid.uuid4().hex)
    if "refused" in a and released and redis("get", r["key"]): redis("del", r["key"])
    return a
def release(r):
    global released
    released = redis("eval", DELETE, 1, r["key"], r["lock"])
    return {"ok": True} if released else {"refused": "lost"}
`, `
refusals = 0
def acquire(r):
    global refusals
    a = take(r, uuid.uuid4().hex)
    if "refused" in a: refusals += 1
    return a
def release(r):
    a = redis("eval", DELETE, 1, r["key"], r["lock"])
    if refusals: redis("del", r["key"])
    return {"ok": True} if a else {"refused": "lost"}
`} {
		c := ofPython(t, code, "")
		c.Bounds.Lost = 1
		wantVerdict(t, c, reports.Inconclusive, "keeps state from one request to the next")
	}
}

// TestUUIDOfATime checks that a search treats tokens made from the time and the machine as names, too.
func TestUUIDOfATime(t *testing.T) {
	c := ofPython(t, "def acquire(r): return take(r, uuid.uuid1().hex)", "")
	c.Bounds.Tries = 1
	wantVerdict(t, c, reports.Pass, "")
}
