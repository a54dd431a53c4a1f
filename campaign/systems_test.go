package campaign

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/server"
	"oversell/variant"
)

// withPython makes python3 one that has redis-py: Debian's, if another comes first in PATH.
func withPython(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH"))
	if err := exec.Command("python3", "-c", "import redis").Run(); err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skip("python3 has no redis (Debian: python3-redis)")
	}
}

// runSystem runs the system that a file in examples describes.
func runSystem(t *testing.T, file, scenario string, alter func(*Options)) reports.Run {
	t.Helper()
	o := Options{Scenario: scenario, System: filepath.Join("..", "examples", file), Target: server.Spec{Target: "process"}, Clients: 16, Stock: 200, Quantity: 1, Seed: 1, Waiting: "poll",
		Set: func(flag string) bool { return flag == "clients" }}
	alter(&o)
	p, err := NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.Dir = filepath.Join(t.TempDir(), "runs")
	d, err := Run(t.Context(), p, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Runs[0]
}

// withPHP skips the test where there is no PHP with phpredis.
func withPHP(t *testing.T) {
	t.Helper()
	out, _ := exec.Command("php", "-m").Output()
	if !slices.Contains(strings.Fields(string(out)), "redis") && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skip("there is no php with phpredis (Debian: php-cli php-redis)")
	}
}

// withNode skips the test where there is no Node.js.
func withNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skip("there is no node (Debian: nodejs)")
	}
}

// TestSystemsAreJudged checks that flawed locks in Python, Node.js and PHP and a flawed shop behind HTTP are caught,
// and that the sound ones pass.
func TestSystemsAreJudged(t *testing.T) {
	withPython(t)
	withPHP(t)
	withNode(t)
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../examples/shop").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, name := range []string{"shop.yaml", "shop-flawed.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "shop", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(text), "./shop", filepath.Join(dir, "shop"))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	shop := func(name string) func(*Options) {
		return func(o *Options) { o.System, o.Resend = filepath.Join(dir, name), 0.1 }
	}
	short := func(o *Options) { o.TTL, o.Hold, o.Wait, o.Stock, o.Sale = 50e6, 80e6, 10e9, 40, "plain" }
	for _, c := range []struct {
		file, scenario string
		alter          func(*Options)
		verdict        string
		broke          variant.Property
	}{
		{"python/lock.yaml", "mutex", func(o *Options) { o.Wait, o.Ops = 10e9, 200 }, reports.Pass, ""},
		{"python/lock-flawed.yaml", "seckill", short, reports.Violated, variant.OwnerOnlyRelease},
		{"node/lock.yaml", "mutex", func(o *Options) { o.Wait, o.Ops = 10e9, 200 }, reports.Pass, ""},
		{"node/lock-flawed.yaml", "seckill", short, reports.Violated, variant.OwnerOnlyRelease},
		{"php/lock.yaml", "seckill", func(*Options) {}, reports.Pass, ""},
		{"php/lock-printed.yaml", "seckill", func(*Options) {}, reports.Violated, variant.NoOversell},
		{"shop.yaml", "seckill", shop("shop.yaml"), reports.Pass, ""},
		{"shop-flawed.yaml", "seckill", shop("shop-flawed.yaml"), reports.Violated, variant.NoOversell},
	} {
		r := runSystem(t, c.file, c.scenario, c.alter)
		broke := slices.ContainsFunc(r.Properties, func(p reports.Property) bool { return p.Name == c.broke && p.Result == "violated" })
		if r.Verdict != c.verdict || c.broke != "" && !broke {
			t.Errorf("%s: %s, want %s (%s): %+v", c.file, r.Verdict, c.verdict, c.broke, r.Properties)
		}
	}
}

// TestSystemsThatCannotStart checks that a system that ends before its first answer is reported at once, with its
// output, and that no run is made.
func TestSystemsThatCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("name: s\nobject: lock\ncommand: [sh, -c, 'echo Traceback >&2; echo ModuleNotFoundError >&2; exit 1']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Scenario: "mutex", System: file, Target: server.Spec{Target: "embedded"}, Clients: 4, Quantity: 1, Seed: 1, Waiting: "poll", Timeout: 5e9}
	p, err := NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.Dir = filepath.Join(t.TempDir(), "runs")
	d, err := Run(t.Context(), p, silent{})
	if len(d.Runs) != 0 || err == nil || err.Error() != "start s: it ended with exit status 1; its last output is\nTraceback\nModuleNotFoundError" {
		t.Errorf("%d runs, %v", len(d.Runs), err)
	}
}

// TestFailoversNeedReplicas checks that a failover without replicas is refused before any server is started, for a
// named lock and for a sweep.
func TestFailoversNeedReplicas(t *testing.T) {
	for target, want := range map[string]string{"process": "use --topology replica, sentinel or cluster", "embedded": "has no replicas"} {
		o := Options{Scenario: "seckill", Faults: []string{"failover at 1s"}, Target: server.Spec{Target: target}, Clients: 4, Stock: 10, Quantity: 1, Waiting: "poll", Timeout: 5e9}
		for _, o.Locks = range [][]string{nil, {"lua-release"}} {
			if p, err := NewPlan(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, locks %v: %d runs, %v; want %q", target, o.Locks, len(p.Runs), err, want)
			}
		}
		o.Target.Topology = "replica"
		if _, err := NewPlan(t.Context(), o); target == "process" && err != nil {
			t.Error(err)
		}
	}
}

// TestSystemsAreRefused checks that a system that cannot replace the variant is refused before anything is started.
func TestSystemsAreRefused(t *testing.T) {
	lock := filepath.Join("..", "examples", "python", "lock.yaml")
	remote := filepath.Join(t.TempDir(), "remote.yaml")
	if err := os.WriteFile(remote, []byte("name: far\nobject: sale\nhttp: {base: 'http://192.0.2.1', buy: {path: '/{order}'}, reset: {path: /r}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	renamed := filepath.Join(t.TempDir(), "renamed.yaml")
	if err := os.WriteFile(renamed, []byte("name: redislock\nobject: lock\ncommand: [true]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{System: renamed, Scenario: "mutex"}, "redislock is an earlier name of the shipped lock php-lock"},
		{Options{System: lock, Scenario: "seckill", Locks: []string{"none"}, Set: func(f string) bool { return f == "lock" }}, "the system is a lock: leave out --lock"},
		{Options{System: filepath.Join("..", "examples", "shop", "shop.yaml"), Scenario: "mutex"}, "scenario mutex has no sale"},
		{Options{System: remote, Scenario: "seckill"}, "--allow-remote"},
		{Options{System: "nowhere.yaml", Scenario: "seckill"}, "nowhere.yaml"},
		{Options{System: filepath.Join("..", "examples", "shop", "shop.yaml"), Scenario: "seckill", Refund: 0.1}, "system our-shop: the file has no http.refund"},
		{Options{System: lock, Scenario: "mutex", Faults: []string{"drop-reply SET in acquire 1%"}}, "fires in acquire, but the run uses python-lock"},
		{Options{System: lock, Scenario: "seckill", Faults: []string{"drop-reply SET in acquire 1%"}}, "fires in acquire"},
		{Options{System: lock, Scenario: "mutex", Faults: []string{"drop-reply SET client 2 1%"}}, "fires at client 2"},
		{Options{System: lock, Scenario: "mutex", Faults: []string{"drop-reply EVAL holder 1%"}}, "and in this run of mutex a holder sends none"},
		{Options{System: lock, Scenario: "mutex", Faults: []string{"crash after SET 1%"}}, "python-lock sends them itself"},
		{Options{System: lock, Scenario: "seckill", Faults: []string{"crash after SET in acquire 1%"}}, "python-lock sends them itself"},
		{Options{System: filepath.Join("..", "examples", "shop", "shop.yaml"), Scenario: "seckill", Faults: []string{"drop-reply EVALSHA in buy 1%"}}, "fires in buy"},
	} {
		c.o.Clients, c.o.Stock, c.o.Quantity, c.o.Timeout, c.o.Target.Target = 4, 10, 1, 5e9, "process"
		if _, err := NewPlan(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.o.System, err, c.want)
		}
	}
}

// TestFaultsThatReachASystem checks that a system can be combined with faults on the commands of oversell's own
// clients, and with faults on the wire that name no client.
func TestFaultsThatReachASystem(t *testing.T) {
	lock := filepath.Join("..", "examples", "python", "lock.yaml")
	for _, c := range []struct{ scenario, fault string }{
		{"mutex", "drop-reply SET 1%"}, {"mutex", "freeze holder 3s every 2s"}, {"mutex", "kill at 100ms for 50ms"},
		{"seckill", "drop-reply GET in buy 1%"}, {"seckill", "crash after SET in buy 1%"}, {"seckill", "drop-reply GET client 2 nth 2"},
	} {
		o := Options{System: lock, Scenario: c.scenario, Faults: []string{c.fault}, Target: server.Spec{Target: "process"}, Clients: 4, Stock: 10, Quantity: 1, Timeout: 5e9}
		if _, err := NewPlan(t.Context(), o); err != nil {
			t.Errorf("%s: %v", c.fault, err)
		}
	}
}

// TestScenarioOfASystem checks that, without --scenario, the scenario is one that has the system's object.
func TestScenarioOfASystem(t *testing.T) {
	for object, want := range map[string]string{"lock": "seckill", "sale": "seckill", "queue": "queue", "ids": "ids"} {
		file := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(file, []byte("name: mine\nobject: "+object+"\ncommand: [cat]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"", "--scenario=floors"} {
			o, err := Parse(strings.Fields("--target embedded --system " + file + " " + more))
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlan(t.Context(), *o)
			if more != "" && object != "ids" && object != "lock" {
				if err == nil || !strings.Contains(err.Error(), "scenario floors has no "+object) {
					t.Errorf("%s in floors: %v", object, err)
				}
				continue
			}
			if err != nil || more == "" && p.Runs[0].Scenario.Name != want {
				t.Errorf("%s %s: %v; want the scenario %s", object, more, err, want)
			}
		}
	}
}

// pythonSystem writes a system file and its Python program, and returns the path of the file.
func pythonSystem(t *testing.T, file, program string) string {
	t.Helper()
	python := servertest.Python(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"s.yaml": strings.ReplaceAll(file, "python3", python), "s.py": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "s.yaml")
}

// pythonLock is a sound lock in the memory of one process. START is code that runs first, and EACH can alter an
// answer.
const pythonLock = `import json, os, sys, time
START
holder, n = None, 0
for line in sys.stdin:
    r = json.loads(line)
    n += 1
    a = {"ok": True}
    if r["op"] == "acquire":
        if holder and holder[1] > time.time() * 1000:
            a = {"refused": "held"}
        else:
            holder = (n, time.time() * 1000 + r["ttl_ms"])
            a = {"ok": True, "lock": n, "until_ms": holder[1]}
    elif r["op"] == "release":
        if holder and holder[0] == r["lock"]:
            holder = None
        else:
            a = {"refused": "lost"}
    EACH
    print(json.dumps({"id": r["id"], **a}), flush=True)
`

// TestTheStartIsNoLoad checks that a lock whose program starts slowly keeps its promises, and that a run of a system
// that serves hardly any clients does not pass.
func TestTheStartIsNoLoad(t *testing.T) {
	for _, c := range []struct {
		start, each, more string
		verdict, reason   string
	}{
		{"time.sleep(1.5)", "", "", reports.Pass, ""},
		{"", "os._exit(4) if n > 1 else 0", "", reports.Inconclusive, "20 processes failed; the last: it ended with exit status 4"},
		{"", "if r['op'] == 'acquire' and n > 9: continue", "limit: 500ms", reports.Inconclusive, "operations ended in an error"},
	} {
		t.Run(c.start+c.each, func(t *testing.T) {
			program := strings.NewReplacer("START", c.start, "EACH", c.each).Replace(pythonLock)
			file := pythonSystem(t, "name: s\nobject: lock\nclients: 100\ncommand: [python3, s.py]\n"+c.more, program)
			r := runSystem(t, file, "mutex", func(o *Options) {
				o.System, o.Target.Target = file, "embedded"
				o.Clients, o.TTL, o.Duration = 8, 300e6, 1500e6
				o.Hold, o.Wait = 1e6, 200e6
				switch {
				case c.more != "":
					o.Duration, o.Ops = 0, 60
				case c.each != "":
					o.Duration = 30e9 // the run ends before
				}
			})
			if r.Verdict != c.verdict || !strings.Contains(r.Why, c.reason) {
				t.Errorf("%s%s: %s (%s); want %s (%s): %+v", c.start, c.each, r.Verdict, r.Why, c.verdict, c.reason, r.Notes)
			}
			replaced := strings.Contains(strings.Join(r.Notes, "\n"), "in place of 20 that failed")
			if failed := strings.Contains(c.reason, "failed"); replaced != failed {
				t.Errorf("the notes say that processes were replaced: %t, want %t: %q", replaced, failed, r.Notes)
			}
		})
	}
}

// pythonShop is a shop in the memory of one process, which has no refunds.
const pythonShop = `import http.server, json, os, sys, threading
left, sold, lock = 0, 0, threading.Lock()
START
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_POST(self):
        global left, sold
        with lock:
            status = 200
            if self.path.startswith("/reset/"):
                left, sold = int(self.path[7:]), 0
            elif self.path.startswith("/refund"):
                status = 404
            elif left == 0:
                status = 409
            else:
                left, sold, status = left - 1, sold + 1, 201
            EACH
        self.send_response(status); self.send_header("Content-Length", "0"); self.end_headers()
    def do_GET(self):
        b = json.dumps({"left": left}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(b))); self.end_headers(); self.wfile.write(b)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
`

// pythonShopFile describes pythonShop; MORE is replaced by more settings of http.
const pythonShopFile = `name: s
object: sale
promises: [no-oversell, no-undersell]
http:
  base: "http://127.0.0.1:{port}"
  start: [python3, s.py, "{port}"]
  reset: {path: "/reset/{stock}"}
  buy: {path: "/buy?{quantity}", ok: {status: [201]}, sold-out: {status: [409]}}
  left: {path: /left, result: left}
MORE
`

// pythonShopSystem writes a pythonShop and the file that describes it.
func pythonShopSystem(t *testing.T, more, start, each string) string {
	t.Helper()
	return pythonSystem(t, strings.Replace(pythonShopFile, "MORE", more, 1), strings.NewReplacer("START", start, "EACH", each).Replace(pythonShop))
}

// TestAServiceThatEndsInARun checks that a shop that ends in a run is not started again: it would have lost its
// stock.
func TestAServiceThatEndsInARun(t *testing.T) {
	file := pythonShopSystem(t, "", "", "if sold == 30: os._exit(3)")
	r := runSystem(t, file, "seckill", func(o *Options) { o.System, o.Target.Target, o.Stock, o.Clients = file, "embedded", 100, 8 })
	if r.Verdict != reports.Inconclusive || !strings.Contains(r.Why, "it ended with exit status 3") {
		t.Errorf("%s (%s); want inconclusive: %+v", r.Verdict, r.Why, r.Properties)
	}
}

// TestProcessesEndWithTheirRun checks that, when a run is over, its programs have been asked to end and have ended,
// with the processes that they started.
func TestProcessesEndWithTheirRun(t *testing.T) {
	started := "import subprocess; child = subprocess.Popen(['sleep', '300'])\nopen('child', 'w').write(str(child.pid))\n"
	asked := started + `import signal
if os.path.exists("ended"): os.remove("ended")
def ends(*a):
    open("ended", "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, ends)
`
	lock := strings.NewReplacer("START", started, "EACH", "").Replace(pythonLock) + "open('ended', 'w').close()\n"
	for name, file := range map[string]string{
		"seckill": pythonShopSystem(t, "", asked, "pass"),
		"mutex":   pythonSystem(t, "name: s\nobject: lock\nclients: 100\ncommand: [python3, s.py]\n", strings.Replace(lock, "import json", "import os, json", 1)),
	} {
		runSystem(t, file, name, func(o *Options) {
			o.System, o.Target.Target, o.Stock, o.Clients, o.Ops = file, "embedded", 20, 2, 0
			if name == "mutex" {
				o.Stock, o.Ops = 0, 10
			}
		})
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "ended")); err != nil {
			t.Errorf("%s: the program was not asked to end: %v", name, err)
		}
		pid, err := os.ReadFile(filepath.Join(filepath.Dir(file), "child"))
		if err != nil {
			t.Fatal(err)
		}
		if state, err := os.ReadFile("/proc/" + string(pid) + "/stat"); err == nil && !strings.Contains(string(state), ") Z ") {
			t.Errorf("%s: what the program had started is left: %s", name, state)
		}
	}
}

// TestOperationsThatAreNotThere checks that a missing operation of a system excuses nothing: a run that calls it is
// inconclusive.
func TestOperationsThatAreNotThere(t *testing.T) {
	file := pythonShopSystem(t, "  refund: {path: '/refund?{order}&{quantity}'}", "", "pass")
	r := runSystem(t, file, "seckill", func(o *Options) {
		o.System, o.Target.Target, o.Stock, o.Clients, o.Refund = file, "embedded", 60, 4, 0.5
	})
	if r.Verdict != reports.Inconclusive || !strings.Contains(r.Why, "no answer to refund was definite") || !strings.Contains(r.Why, "404") {
		t.Errorf("%s (%s); want inconclusive: %+v", r.Verdict, r.Why, r.Properties)
	}
}

// TestChecksOfWhatCannotStart checks that a check reports a program that cannot start as a run does.
func TestChecksOfWhatCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("name: s\nobject: lock\ncommand: [sh, -c, 'echo Traceback >&2; exit 1']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSystem(file, server.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	findings, err := CheckSystem(t.Context(), s, server.Spec{Target: "embedded"})
	if len(findings) != 0 || err == nil || !strings.Contains(err.Error(), "start s: it ended with exit status 1: Traceback") {
		t.Errorf("%v, %v", findings, err)
	}
}
