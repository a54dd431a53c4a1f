package campaign

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/server"
	"oversell/variant"
)

// needPython skips the test where programs cannot be stepped.
func needPython(t *testing.T) {
	t.Helper()
	servertest.Python(t)
	if _, err := exec.LookPath("cc"); err != nil {
		servertest.Unable(t, err)
	}
}

// described writes a system file whose program is testdata/lock.py with these arguments, and returns its path.
func described(t *testing.T, more string, args ...string) string {
	t.Helper()
	return describedAs(t, "lock", more, args...)
}

// describedAs is described for any object, whose program is testdata/<object>.py.
func describedAs(t *testing.T, object, more string, args ...string) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("testdata", object+".py"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lock.yaml")
	text := fmt.Sprintf("name: mine\nobject: %s\nclients: 1\ncommand: [%s, -S, %q, %s]\nenv: {REDIS_URL: \"{redis}\"}\n%s\n", object, servertest.Python(t), program, strings.Join(args, ", "), more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// exploreSystem searches a system within small bounds, which alter may change.
func exploreSystem(t *testing.T, file string, alter func(*SearchOptions)) (reports.Exploration, error) {
	t.Helper()
	o := SearchOptions{Options: Options{System: file, TTL: time.Second, Stock: 1, Quantity: 1}, Time: 2 * time.Minute,
		Bounds: reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, Lost: 1, Late: 0, Advances: 1}}
	o.Hold = 750 * time.Millisecond
	if alter != nil {
		alter(&o)
	}
	cs, _, err := Searches(o)
	if err != nil {
		t.Fatal(err)
	}
	var found reports.Exploration
	err = Explore(t.Context(), cs, func(e reports.Exploration) { found = e })
	return found, err
}

const stateless = "stateless: true"

// TestExploreSystems checks that a search finds each flaw of a lock in Python, and proves the sound one.
func TestExploreSystems(t *testing.T) {
	needPython(t)
	for _, c := range []struct {
		kind    string
		look    string
		verdict string
		steps   int // 0: any
	}{
		{"sound", "", reports.Pass, 0},
		{"setnx-expire", "progress", reports.Violated, 0},
		{"blind-release", "owner-only-release", reports.Violated, 0},
		{"blind-extend", "owner-only-release", reports.Violated, 0},
		{"client-clock", "mutual-exclusion", reports.Violated, 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			e, err := exploreSystem(t, described(t, stateless, c.kind), func(o *SearchOptions) {
				if c.look != "" {
					o.Properties = []string{c.look}
				}
				if c.kind == "client-clock" { // two clients must find that the lease of a third is over
					o.Bounds.Clients, o.Bounds.Crashes, o.Bounds.Lost = 3, 0, 0
				}
			})
			if err != nil || e.Verdict != c.verdict {
				t.Fatalf("%s: %s, %v", e.Verdict, e.Why, err)
			}
			if e.Verdict == reports.Pass && e.Stats.Lapses == 0 {
				t.Error("no lease ran out")
			}
		})
	}
}

// TestExploreSales checks that a search finds that a sale that reads and then writes oversells, and that one in a
// script does not.
func TestExploreSales(t *testing.T) {
	needPython(t)
	for kind, verdict := range map[string]string{"flawed": reports.Violated, "sound": reports.Pass} {
		e, err := exploreSystem(t, describedAs(t, "sale", stateless, kind), func(o *SearchOptions) { o.Hold = 0 })
		if err != nil || e.Verdict != verdict {
			t.Errorf("%s: %s (%s), %v", kind, e.Verdict, e.Why, err)
		}
	}
}

// TestLeasesByTheirLength checks locks that tell the length of their lease, which counts from when the answer is
// written. Such a lock is proved only if the search knows that time. It does not know it if the program reads no
// clock after its last command, unless the file says that the search sees all clocks (monotonic: true): then time
// passes in between, and the lock is broken.
func TestLeasesByTheirLength(t *testing.T) {
	needPython(t)
	withPHP(t)
	php := filepath.Join(t.TempDir(), "lock.yaml")
	if err := os.WriteFile(filepath.Join(filepath.Dir(php), "lock.php"), []byte(phpLock), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(php, []byte("name: mine\nobject: lock\ncommand: [php, lock.php]\nclients: 1\nenv: {REDIS_URL: \"{redis}\"}\nstateless: true\nmonotonic: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, verdict, why string }{
		{described(t, stateless, "valid"), reports.Inconclusive, "without reading the time of day after its last command"},
		{described(t, stateless, "valid-late"), reports.Violated, ""},
		{described(t, stateless, "valid-left"), reports.Pass, ""},
		{php, reports.Violated, ""},
	} {
		e, err := exploreSystem(t, c.file, func(o *SearchOptions) {
			o.Properties, o.Hold = []string{"mutual-exclusion"}, 100*time.Millisecond
			o.Bounds.Crashes, o.Bounds.Lost = 0, 0
		})
		if err != nil || e.Verdict != c.verdict || !strings.Contains(e.Why, c.why) {
			t.Errorf("%s: %s (%s), %v; want %s (%s)", c.file, e.Verdict, e.Why, err, c.verdict, c.why)
		}
	}
}

// phpLock tells the length of its lease without reading a clock.
const phpLock = `<?php
$url = parse_url(getenv('REDIS_URL'));
$redis = null;
while (($line = fgets(STDIN)) !== false) {
    $r = json_decode($line, true);
    $a = ['ok' => true];
    if ($r['op'] !== 'init' && $redis === null) {
        $redis = new Redis();
        $redis->connect($url['host'], $url['port']);
    }
    if ($r['op'] === 'acquire') {
        $token = bin2hex(random_bytes(16));
        $a = $redis->set('Lock:' . $r['key'], $token, ['nx', 'px' => $r['ttl_ms']]) ? ['ok' => true, 'lock' => $token, 'valid_ms' => $r['ttl_ms']] : ['refused' => 'held'];
    } elseif ($r['op'] === 'release') {
        $script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
        $a = $redis->eval($script, ['Lock:' . $r['key'], $r['lock']], 1) ? ['ok' => true] : ['refused' => 'lost'];
    } elseif ($r['op'] === 'extend') {
        $a = ['unknown' => 'extend is not implemented'];
    }
    echo json_encode(['id' => $r['id']] + $a), "\n";
}
`

// stepsToBreak returns the number of steps in which a search breaks mutual exclusion.
func stepsToBreak(t *testing.T, alter func(*SearchOptions)) int {
	t.Helper()
	o := SearchOptions{Options: Options{TTL: time.Second, Stock: 1, Quantity: 1}, Time: 2 * time.Minute, Properties: []string{"mutual-exclusion"},
		Bounds: reports.Bounds{Clients: 2, Tries: 1, Lost: 0, Late: 0, Advances: 0}}
	alter(&o)
	cs, _, err := Searches(o)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	if err := Explore(t.Context(), cs, func(e reports.Exploration) {
		if e.Verdict != reports.Violated {
			t.Fatalf("%s: %s", e.Verdict, e.Why)
		}
		steps = len(e.Counterexample.Steps)
	}); err != nil {
		t.Fatal(err)
	}
	return steps
}

// TestPrintedLockInPHP checks that the printed lock in PHP breaks in as many steps as its Go port.
func TestPrintedLockInPHP(t *testing.T) {
	needPython(t)
	withPHP(t)
	php := stepsToBreak(t, func(o *SearchOptions) { o.System = filepath.Join("..", "examples", "php", "lock-printed.yaml") })
	ported := stepsToBreak(t, func(o *SearchOptions) { o.Locks = []string{"php-lock-printed"} })
	if php != ported {
		t.Errorf("%d steps in PHP, and %d in Go", php, ported)
	}
}

// TestExploreExamples checks that the locks in examples have the verdicts that their names announce.
func TestExploreExamples(t *testing.T) {
	needPython(t)
	withPHP(t)
	withPython(t)
	for file, verdict := range map[string]string{"php/lock.yaml": reports.Pass, "python/lock.yaml": reports.Pass, "python/lock-flawed.yaml": reports.Violated} {
		e, err := exploreSystem(t, filepath.Join("..", "examples", file), nil)
		if err != nil || e.Verdict != verdict {
			t.Errorf("%s: %s (%s), %v", file, e.Verdict, e.Why, err)
		}
	}
}

// TestReplayOfASystem checks that a schedule of a program in another language replays on a real server.
func TestReplayOfASystem(t *testing.T) {
	needPython(t)
	servertest.NeedServer(t)
	e, err := exploreSystem(t, described(t, stateless, "blind-release"), func(o *SearchOptions) { o.Properties = []string{"owner-only-release"} })
	if err != nil || e.Counterexample == nil {
		t.Fatalf("%s: %s, %v", e.Verdict, e.Why, err)
	}
	r, err := Replay(t.Context(), e, server.Spec{Target: "process"}, 1)
	if err != nil || r.Confirmed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestExploreNotices checks that a search reports a program that is not deterministic, or that keeps state although
// its file says that it does not.
func TestExploreNotices(t *testing.T) {
	needPython(t)
	for kind, want := range map[string]string{"coin": "not deterministic", "counts": "keeps state", "few-tokens": "random values from too few|draws the same value twice|not deterministic"} {
		e, err := exploreSystem(t, described(t, stateless, kind), func(o *SearchOptions) { o.Bounds.Tries, o.Bounds.Crashes = 2, 0 })
		if err != nil || e.Verdict != reports.Inconclusive || !regexp.MustCompile(want).MatchString(e.Why) {
			t.Errorf("%s: %s (%s), %v", kind, e.Verdict, e.Why, err)
		}
	}
	e, err := exploreSystem(t, described(t, "", "counts"), func(o *SearchOptions) {
		o.Bounds.Tries, o.Bounds.Crashes, o.Bounds.Lost, o.Bounds.Advances = 2, 0, 0, 0
		o.Properties = []string{"mutual-exclusion"}
	})
	if err != nil || e.Verdict == reports.Violated {
		t.Errorf("a lock that counts, and says so: %s (%s), %v", e.Verdict, e.Why, err)
	}
}

// TestExploreRefuses checks that a system that cannot be stepped is refused in one line.
func TestExploreRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nobject: queue\ncommand: [cat]": "a search steps only locks and sales",
		"name: a\nobject: sale\nhttp: {base: 'http://127.0.0.1:1', buy: {path: '/{order}'}, reset: {path: /}}": "it is an HTTP service",
	} {
		path := filepath.Join(t.TempDir(), "system.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Searches(SearchOptions{Options: Options{System: path, Stock: 1, Quantity: 1}, Bounds: reports.Bounds{Clients: 2, Tries: 1}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// misbehaviours of testdata/lock.py, and what the search says of each. Empty means that it need not notice anything.
var misbehaviours = map[string]string{
	"garbage": "is not an answer", "half": "is not an answer", "dies": "out of luck", "killed": "ended", "closes": "did nothing", "hangs": "did nothing",
	"twice": "twice", "two": "more after the first value", "stranger": "never asked", "huge": "a line of more than", "no-newline": "did nothing", "bytes": "is not an answer",
	"empty": "is not an answer", "types": "is not an answer", "says-nothing": "not part of the protocol", "elsewhere": "127.0.0.1:1", "no-redis": "not a Redis command",
	"unknown-command": "geoadd", "another-clock": "does not read its clock", "sleeps": "", "spins": "must wait by a sleep", "spams": "twice", "beside": "", "second-connection": "",
}

// TestFaultyPrograms checks that a search and a run end with a reason, whatever the program does.
func TestFaultyPrograms(t *testing.T) {
	needPython(t)
	names, most := make([]string, 0, len(misbehaviours)), 1
	for name := range misbehaviours {
		names = append(names, name)
	}
	slices.Sort(names)
	if os.Getenv("OVERSELL_LONG") == "1" {
		most = 9 // 216 programs
	}
	for _, name := range names {
		for at := 1; at <= most; at++ {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				t.Parallel()
				faulty(t, name, at)
			})
		}
	}
}

func faulty(t *testing.T, name string, at int) {
	file := described(t, stateless+"\nlimit: 3s", "sound", name, fmt.Sprint(at))
	e, err := exploreSystem(t, file, func(o *SearchOptions) {
		o.Time = 20 * time.Second
		o.Bounds.Tries = 1 + at/3
	})
	why := e.Why
	if err != nil {
		why = err.Error()
	}
	switch want := misbehaviours[name]; {
	case at > 3: // perhaps no execution has so many requests
	case want != "" && (err == nil && e.Verdict != reports.Inconclusive || !strings.Contains(why, want)):
		t.Errorf("explore: %s (%s), %v; want %q", e.Verdict, e.Why, err, want)
	}
	if e.Verdict == reports.Violated && name != "sleeps" { // it sleeps for hours
		t.Errorf("explore: it accuses a sound lock: %s", e.Why)
	}
	r := runSystem(t, file, "mutex", func(o *Options) {
		o.System, o.Clients, o.Duration, o.TTL, o.Wait = file, 4, 300*time.Millisecond, 10*time.Second, time.Second
	})
	if r.Verdict == reports.Violated && slices.ContainsFunc(r.Properties, func(p reports.Property) bool { return p.Name == variant.MutualExclusion && p.Result == reports.Broken }) && name != "another-clock" {
		t.Errorf("run: %s of a sound lock", r.Verdict)
	}
}
