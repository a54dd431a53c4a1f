//go:build unix

package adapters

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"oversell/campaign"
	"oversell/database"
	"oversell/internal/phrase"
	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
)

// peer is a library, with what its documentation says.
type peer struct {
	name, kind, language string
	// version is a command that prints the installed version, and fails if the library is not installed.
	version []string
	module  string // replaces version for a library in Go
	// promise is what the documentation promises; link says where.
	promise, link string
	// system is the file that describes a lock as a system; extra are further arguments of its runs.
	system string
	extra  []string
	// program is the command that runs the workers of a queue.
	program []string
	env     []string // environment variables of its processes
	// warns holds what the documentation says about the cases in which the promise does not hold. firm lists the cases
	// in which it promises that the library holds.
	warns map[string]string
	firm  []string
	// ends is what else the documentation says about the limits of the promise.
	ends string
	// used says how the library is used here, if not as its documentation shows.
	used string
	// notes explains outcomes, by case.
	notes map[string]string
}

const (
	expiry  = "the lease ends by itself: "
	distlck = "https://redis.io/docs/latest/develop/use/patterns/distributed-locks/"
	redlock = "the Redlock text: without persistence, or delayed restarts, a restarted node lets a second client in"
	ended   = "a request that takes longer than 5 % of the lease (50 ms at 1 s) counts as failed; its README: the algorithm “was not formally analyzed”"
)

var peers = []peer{
	{name: "bsm/redislock", kind: "lock", language: "Go", module: "github.com/bsm/redislock", system: "golang/redislock.yaml",
		promise: "one holder until the TTL is over (our wording)", link: "https://github.com/bsm/redislock#readme",
		used:  "tokens of the adapter's",
		warns: map[string]string{"overrun": expiry + "its example ends with “Now, my lock has expired!”", "data loss": "its README links to the [Redis text on distributed locks](http://redis.io/topics/distlock), which says that a restart without persistence loses locks"}},
	{name: "rueidislock", kind: "lock", language: "Go", module: "github.com/redis/rueidis", system: "golang/rueidislock.yaml",
		promise: "a “Redis Distributed Lock Pattern enhanced by Client Side Caching”, and the library “will extend the `ctx` validity periodically”", link: "https://github.com/redis/rueidis/tree/main/rueidislock#readme",
		used:  "`TryWithContext` in a loop; `TryNextAfter: 2s`, how long it waits for an answer (its default is 20 ms); nobody looks at a holder's `ctx` before the release, and mutual-exclusion is judged within the first lease; owner-only-release is not judged, since `cancel()` does not tell whether anything was released; a client of its own, with its defaults, which sends a script again when its connection breaks",
		warns: map[string]string{"data loss": "a holder's `ctx` “will be canceled automatically and immediately once the `KeyMajority` is not held anymore”; it links to the Redlock text"}},
	{name: "redsync, 1 master", kind: "lock", language: "Go", module: "github.com/go-redsync/redsync/v4", system: "golang/redsync.yaml",
		promise: "a distributed mutual exclusion lock “as described in” the Redlock text", link: "https://github.com/go-redsync/redsync#readme",
		used: "tokens of the adapter's; one try a call (its default is 32)", ends: ended,
		warns: map[string]string{"overrun": expiry + "the Redlock text has a validity time", "data loss": redlock}},
	{name: "redsync, 3 masters", kind: "lock", language: "Go", module: "github.com/go-redsync/redsync/v4", system: "golang/redsync.yaml", extra: []string{"--topology", "masters:3"},
		promise: "the same", link: distlck,
		used: "tokens of the adapter's; one try a call (its default is 32)", ends: ended,
		notes: map[string]string{"data loss": "One master forgets, so only a lock that stood on two of three can break. That needs a race for the masters and " + rare},
		warns: map[string]string{"overrun": expiry + "the Redlock text has a validity time", "data loss": redlock}},
	{name: "redis-py Lock", kind: "lock", language: "Python", version: []string{"python3", "-c", "import redis; print(redis.__version__)"}, system: "redis-py/lock.yaml",
		promise: "one holder (our wording); `timeout` is “a maximum life for the lock”", link: "https://github.com/redis/redis-py/blob/v4.3.4/redis/lock.py",
		used:  "`thread_local=False`, `blocking=False` in a loop",
		warns: map[string]string{"overrun": expiry + "“thread-1 has not yet completed. redis expires the lock key.”"}},
	{name: "symfony/lock, RedisStore", kind: "lock", language: "PHP", version: []string{"dpkg-query", "-Wf", "${source:Upstream-Version}", "php-symfony-lock"}, system: "symfony/lock.yaml",
		promise: "“guarantees that the same resource can't be lock twice as long as the component is used in the following way”", link: "https://symfony.com/doc/5.4/components/lock.html#reliability",
		used:  "`autoRelease: false`; `isAcquired()` before each release, as `release()` does not tell whether anything was released",
		notes: map[string]string{"lost replies": "`acquire()` takes the lock for the store's `initialTtl`, 300 s by default, and shortens it to the lock's TTL by a second command. If the connection breaks after the server has executed the first and before it executes the second, the lock stays taken for `initialTtl`. The same happens with `autoRelease: true`. `new RedisStore($redis, 1.0)` bounds that (symfony/symfony#35725 gives the reason for the default)."},
		warns: map[string]string{"overrun": expiry + "“If the task takes longer to be accomplished, then the lock can be released by the store and acquired by someone else”", "data loss": "“If the Redis service or the machine hosting it restarts, every locks would be lost”"}},
	{name: "Laravel cache lock", kind: "lock", language: "PHP", version: []string{"dpkg-query", "-Wf", "${source:Upstream-Version}", "php-illuminate-cache"}, system: "laravel/lock.yaml",
		promise: "“manipulation of distributed locks without worrying about race conditions”", link: "https://laravel.com/docs/8.x/cache#atomic-locks",
		used:  "`PhpRedisLock`, which `Cache::lock()` returns for a store on phpredis; leases of whole seconds",
		warns: map[string]string{"overrun": expiry + "“Lock acquired for 10 seconds…”"}},
	{name: "asynq", kind: "queue", language: "Go", module: "github.com/hibiken/asynq", program: []string{"./asynq/asynq"},
		promise: "“Guaranteed at least one execution of a task”", link: "https://github.com/hibiken/asynq#features", used: "`Concurrency: 1`", firm: []string{"load", "crash"}},
	{name: "RQ", kind: "queue", language: "Python", version: []string{"python3", "-c", "import rq; print(rq.__version__)"}, program: []string{"python3", "queues/rq_queue.py"},
		promise: "“Every job that doesn't execute successfully is stored” in the FailedJobRegistry", link: "https://python-rq.org/docs/exceptions/", firm: []string{"load", "crash"},
		notes: map[string]string{"crash": "A job whose worker was killed stays in the StartedJobRegistry. RQ moves it to the FailedJobRegistry once its timeout has passed; the trial does not wait for that. Not tried: a death between the pop and the entry in the StartedJobRegistry."}},
	{name: "Celery, early acknowledgement", kind: "queue", language: "Python", version: []string{"python3", "-c", "import celery; print(celery.__version__)"}, program: []string{"python3", "queues/celery_queue.py"},
		promise: "a task is acknowledged “just-in-time before being executed”", link: "https://docs.celeryq.dev/en/stable/glossary.html",
		used:  "the default, with `--concurrency 1`, `worker_prefetch_multiplier=1` and a `visibility_timeout` of 3 s (default 1 h), without gossip and mingle; a worker looks every 10 s for what is over that timeout, but acts on every tenth look only: 10 s after its start, and then every 100 s (kombu 5.2.4)",
		warns: map[string]string{"crash": "“the task won't be redelivered to another worker if the machine loses power, or the worker instance is abruptly killed, mid-execution”"}},
	{name: "Celery, late acknowledgement", kind: "queue", language: "Python", version: []string{"python3", "-c", "import celery; print(celery.__version__)"}, program: []string{"python3", "queues/celery_queue.py"}, env: []string{"LATE=1"},
		promise: "“the task will be redelivered to another worker in the event of … the worker instance being killed mid-execution”", link: "https://docs.celeryq.dev/en/stable/glossary.html", firm: []string{"load", "crash"},
		used: "`task_acks_late` and `task_reject_on_worker_lost`, else as above"},
	{name: "Sidekiq (open source, basic fetch)", kind: "queue", language: "Ruby", version: []string{"ruby", "-e", "require 'sidekiq'; puts Sidekiq::VERSION"}, program: []string{"ruby", "queues/sidekiq_queue.rb"},
		promise: "“does its best to never lose jobs but it can't guarantee it”", link: "https://github.com/sidekiq/sidekiq/wiki/Reliability", used: "`-c 1`",
		warns: map[string]string{"crash": "“If Sidekiq crashes while processing that job, it is lost forever”"}},
}

// hardship is a kind of run that locks are put through.
type hardship struct {
	name string
	env  string // an environment variable of the process
	args []string
}

var hardships = []hardship{
	{name: "load", args: []string{"--scenario", "mutex", "--clients", "8", "--duration", "3s", "--ttl", "10s"}},
	{name: "overrun", args: []string{"--clients", "6", "--stock", "4", "--ttl", "1s", "--hold", "1200ms"}},
	{name: "crash", env: "CRASH=10", args: []string{"--scenario", "mutex", "--clients", "8", "--ops", "80", "--ttl", "1s"}},
	{name: "lost replies", args: []string{"--scenario", "mutex", "--clients", "8", "--duration", "5s", "--ttl", "1s", "--fault", "drop-reply 0.5%"}},
	{name: "data loss", args: []string{"--scenario", "mutex", "--clients", "8", "--duration", "5s", "--ttl", "10s", "--hold", "500ms", "--fault", "restart empty every 700ms"}},
}

// outcome is the result of a peer under a hardship.
type outcome struct {
	peer     peer
	hardship string
	command  string   // of the run that why describes, or of the first run
	verdicts []string // one for each run
	broke    []string // promises of the peer that were broken
	sale     []string // promises of the sale under the lock that were broken
	counts   []string // the numbers of tasks, one for each run
	why      string   // of the first violation, or why nothing was decided
	asked    int64    // opportunities of the promise that had the fewest, in the last run
	version  string
}

// The classes of outcomes.
const (
	holds        = "holds"
	outlived     = "holds; the section outlives the lease"
	asDocumented = "breaks as documented"
	otherwise    = "breaks although documented otherwise"
	undocumented = "breaks; not mentioned in its documentation"
	undecided    = "not decided"
)

// rare ends the note on a case that broke only in some runs.
const rare = "is seen in some runs only."

// word returns the class of the outcome.
func (o outcome) word() string {
	broken := slices.Contains(o.verdicts, reports.Violated)
	_, warned := o.peer.warns[o.hardship]
	switch {
	case broken && warned:
		return asDocumented
	case broken && slices.Contains(o.peer.firm, o.hardship):
		return otherwise
	case broken:
		return undocumented
	case slices.Contains(o.verdicts, reports.Inconclusive):
		return undecided
	case len(o.sale) > 0:
		return outlived
	}
	return holds
}

// silent is a watcher that does nothing.
type silent struct{}

func (silent) Target(*server.Target)                             {}
func (silent) Database(*database.DB)                             {}
func (silent) Start(int, int, scenarios.Config, *scenarios.Live) {}
func (silent) Done(int, int, reports.Run)                        {}

// installed returns the version of the library. Without the library it skips the test, or fails it if everything is
// required.
func (p peer) installed(t *testing.T) string {
	t.Helper()
	if p.module != "" {
		info, _ := debug.ReadBuildInfo()
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", p.module).Output()
		if err != nil || info == nil {
			t.Fatal(p.module, err)
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	}
	out, err := exec.Command(p.version[0], p.version[1:]...).Output()
	if err != nil {
		if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
			t.Fatalf("%s is not installed: %v (make setup)", p.name, err)
		}
		t.Skipf("%s is not installed: %v", p.name, err)
	}
	return strings.TrimSpace(string(out))
}

// building makes sure that the programs in Go are built once.
var building sync.Once

func build(t *testing.T) {
	t.Helper()
	building.Do(func() {
		for _, dir := range []string{"golang", "asynq"} {
			if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, dir), "./"+dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	})
}

// underLock runs a lock under a hardship, and also returns the command for that run.
func underLock(t *testing.T, p peer, h hardship, seed int) (reports.Run, string) {
	t.Helper()
	env := slices.Clone(p.env)
	if h.env != "" {
		env = append(env, h.env)
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	args := append(append([]string{}, h.args...), p.extra...)
	o, err := campaign.Parse(append(args, "--system", p.system, "--seed", fmt.Sprint(seed)))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := campaign.NewPlan(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	plan.Dir = t.TempDir()
	d, err := campaign.Run(t.Context(), plan, silent{})
	if err != nil || len(d.Runs) != 1 {
		t.Fatalf("%d runs, %v", len(d.Runs), err)
	}
	return d.Runs[0], strings.TrimSpace(fmt.Sprintf("%s oversell run %s --seed %d --system adapters/%s", strings.Join(env, " "), quoted(args), seed, p.system))
}

// quoted returns arguments as they are written in a shell.
func quoted(args []string) string {
	var all []string
	for _, a := range args {
		all = append(all, phrase.ShellWord(a))
	}
	return strings.Join(all, " ")
}

// add adds a run to the outcome. Promises that the sale under a lock broke are kept separately: the lock promises nothing
// about them. A promise is named only if it broke in every run that broke any; otherwise the machine may be the reason.
func (o *outcome) add(r reports.Run) {
	first := !slices.Contains(o.verdicts, reports.Violated)
	o.asked = 0
	var broke []string
	for _, p := range r.Properties {
		switch {
		case p.Result == reports.NotClaimed:
		case p.Result == reports.Broken && p.Of != "lock" && o.peer.kind == "lock":
			if !slices.Contains(o.sale, string(p.Name)) {
				o.sale = append(o.sale, string(p.Name))
			}
			if first {
				o.why = cmp.Or(o.why, p.Why)
			}
		case p.Result == reports.Broken:
			if broke = append(broke, p.Label(r)); len(broke) == 1 && first {
				o.why = p.Why
			}
		case o.asked == 0 || p.Opportunities < o.asked:
			o.asked = p.Opportunities
		}
	}
	verdict := r.Verdict
	if verdict == reports.Violated && len(broke) == 0 {
		verdict = reports.Pass // only promises of the sale broke
	}
	o.verdicts = append(o.verdicts, verdict)
	switch {
	case verdict == reports.Violated && first:
		o.broke = broke
	case verdict == reports.Violated:
		o.broke = slices.DeleteFunc(o.broke, func(name string) bool { return !slices.Contains(broke, name) })
	case verdict == reports.Inconclusive:
		o.why = cmp.Or(o.why, r.Why)
	}
}

// try runs a peer under a hardship a number of times.
func try(t *testing.T, p peer, h hardship, times int) outcome {
	o := outcome{peer: p, hardship: h.name, version: p.installed(t)}
	for seed := range times {
		var r reports.Run
		var command, count string
		if p.kind == "lock" {
			r, command = underLock(t, p, h, seed+1)
		} else {
			r, count, command = underWorkers(t, p, h.name == "crash")
			o.counts = append(o.counts, count)
		}
		why := o.why
		if o.add(r); seed == 0 || o.why != why {
			o.command = command
		}
	}
	return o
}

// TestPeers takes a sample: a lock that must hold and a sale under it that must break when the lease ends, a sabotaged
// lock that must break, and a queue that must lose the task that a dead worker had. With OVERSELL_PEERS=1 it tries
// everything, several times each, and writes docs/peers.md. OVERSELL_PEERS_TIMES says how many times (3).
// OVERSELL_PEERS_OF names some peers, separated by semicolons; then no document is written. OVERSELL_PEERS_KEEP is a
// directory that keeps the result of each case, so that a case is not tried twice.
func TestPeers(t *testing.T) {
	servertest.NeedServer(t)
	t.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH")) // use Debian's packages of the libraries
	if os.Getenv("OVERSELL_PEERS") == "1" {
		document(t)
		return
	}
	for _, c := range []struct{ peer, hardship, want string }{
		{"redis-py Lock", "load", "holds"},
		{"redis-py Lock", "overrun", "holds; the section outlives the lease"},
		{"redis-py Lock, sabotaged: any-release", "overrun", "breaks as documented"},
		{"Sidekiq (open source, basic fetch)", "crash", "breaks as documented"},
		{"RQ", "crash", "holds"},
	} {
		t.Run(c.peer+" "+c.hardship, func(t *testing.T) {
			p := named(c.peer)
			h := hardships[slices.IndexFunc(hardships, func(h hardship) bool { return h.name == c.hardship })]
			if o := try(t, p, h, 1); o.word() != c.want {
				t.Errorf("%s, want %s: %v %s", o.word(), c.want, o.verdicts, o.why)
			}
		})
	}
}

// named returns the peer with this name, sabotaged or not.
func named(name string) peer {
	for _, s := range sabotages {
		if s.peer().name == name {
			return s.peer()
		}
	}
	return peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
}

// kept is an outcome as it is stored in a file.
type kept struct {
	Command, Why, Version string
	Verdicts, Broke, Sale []string
	Counts                []string
	Asked                 int64
}

// remembered returns the stored outcome of a case, or tries the case and stores its outcome.
func remembered(t *testing.T, p peer, h hardship, times int) outcome {
	dir := os.Getenv("OVERSELL_PEERS_KEEP")
	path := filepath.Join(dir, strings.NewReplacer("/", "-", " ", "-").Replace(p.name+" "+h.name)+".json")
	var k kept
	text, err := os.ReadFile(path)
	if dir != "" && err == nil && json.Unmarshal(text, &k) == nil {
		return outcome{peer: p, hardship: h.name, command: k.Command, verdicts: k.Verdicts, broke: k.Broke, sale: k.Sale, counts: k.Counts, why: k.Why, asked: k.Asked, version: k.Version}
	}
	o := try(t, p, h, times)
	if dir == "" {
		return o
	}
	if text, err = json.Marshal(kept{Command: o.command, Why: o.why, Version: o.version, Verdicts: o.verdicts, Broke: o.broke, Sale: o.sale, Counts: o.counts, Asked: o.asked}); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// document tries all cases and writes docs/peers.md.
func document(t *testing.T) {
	build(t)
	times := 3
	_, _ = fmt.Sscan(os.Getenv("OVERSELL_PEERS_TIMES"), &times)
	of := os.Getenv("OVERSELL_PEERS_OF")
	var all, controls []outcome
	var adding sync.Mutex
	t.Run("all", func(t *testing.T) {
		for _, p := range peers {
			for _, h := range hardships {
				if p.kind == "queue" && h.name != "load" && h.name != "crash" || of != "" && !slices.Contains(strings.Split(of, ";"), p.name) {
					continue
				}
				t.Run(p.name+" "+h.name, func(t *testing.T) {
					if p.kind == "queue" { // its workers mostly wait
						t.Parallel()
					}
					o := remembered(t, p, h, times)
					t.Logf("%s: %v %v: %s", o.word(), o.verdicts, o.broke, o.why)
					adding.Lock()
					defer adding.Unlock()
					all = append(all, o)
				})
			}
		}
		for _, s := range sabotages {
			for _, h := range hardships {
				if p := s.peer(); !slices.Contains(breaking, h.name) && (of == "" || slices.Contains(strings.Split(of, ";"), p.name)) {
					t.Run(p.name+" "+h.name, func(t *testing.T) {
						o := remembered(t, p, h, times)
						t.Logf("%v %v: %s", o.verdicts, o.broke, o.why)
						if slices.Contains(s.caught, h.name) && !slices.Contains(o.verdicts, reports.Violated) {
							t.Errorf("%s is not caught", s.name)
						}
						controls = append(controls, o)
					})
				}
			}
		}
	})
	slices.SortStableFunc(all, func(a, b outcome) int { return cmp.Or(a.peer.at()-b.peer.at(), a.at()-b.at()) })
	if of != "" || t.Failed() {
		return
	}
	if err := os.WriteFile("../docs/peers.md", []byte(told(all, controls, times)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// at returns the index of the peer in peers, and for an outcome the index of its hardship in hardships.
func (p peer) at() int { return slices.IndexFunc(peers, func(q peer) bool { return q.name == p.name }) }
func (o outcome) at() int {
	return slices.IndexFunc(hardships, func(h hardship) bool { return h.name == o.hardship })
}

// commandIn returns a command that runs the peer's program and ends with ctx.
func commandIn(ctx context.Context, p peer, what ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.program[0], append(p.program[1:len(p.program):len(p.program)], what...)...)
	cmd.Env = append(os.Environ(), p.env...)
	return cmd
}
