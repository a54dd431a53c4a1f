package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/phrase"
	"oversell/internal/rediscmd"
	"oversell/internal/stats"
	"oversell/reports"
	"oversell/server"
)

// eval runs a script and returns its raw reply.
func eval(ctx context.Context, c *redis.Client, script string, keys []string, args ...any) (any, error) {
	return c.Eval(ctx, script, keys, args...).Result()
}

// refusal returns the server's error reply to a script; empty if there was none. Other errors are returned as err.
func refusal(err error) (string, error) {
	var refused redis.Error
	if err == nil || !errors.As(err, &refused) {
		return "", err
	}
	return phrase.OneLine(err.Error()), nil
}

// atomicity is the result of C13.
type atomicity struct {
	reads         int  // by another client, of two keys that the script writes
	torn          int  // of them between the two writes
	tornCommands  int  // the same when the writes are two commands
	undone        bool // the first write is undone when the script fails at the second
	cached        bool // EVALSHA finds the script after EVAL
	dataSurvives  bool // a restart
	cacheSurvives bool
}

// atomicAndCached measures C13.
func atomicAndCached(ctx context.Context, b *bench) (a answer, err error) {
	if b.spec.IsAddress() {
		return answer{is: reports.Inconclusive, says: "It needs a server that may be restarted: --target process."}, nil
	}
	b.spec.Persist = true // so that data survive the restart and only scripts can be lost
	t, err := b.server(ctx)
	if err != nil {
		return a, err
	}
	var f atomicity
	if f.reads, f.torn, err = b.tornReads(ctx, writeBoth, b.times(3000, 1000)); err != nil {
		return a, err
	}
	if _, f.tornCommands, err = b.tornReads(ctx, writeOneByOne, b.times(3000, 1000)); err != nil {
		return a, err
	}
	if f.undone, err = b.rollsBack(ctx); err != nil {
		return a, err
	}
	if f.cached, f.dataSurvives, f.cacheSurvives, err = b.restarted(ctx, t); err != nil {
		return a, err
	}
	a.is = runsAtomically(f)
	a.says = fmt.Sprintf("Another client never saw the intermediate state of a script in %s reads (of two single commands: %s times); EVALSHA found the script after EVAL, but not after a restart, which the data survived. A script is atomic without rollback: what it wrote before an error %s.",
		reports.Thousands(int64(f.reads)), reports.Thousands(int64(f.tornCommands)), map[bool]string{true: "was undone all the same", false: "stays"}[f.undone])
	a.numbers = []reports.Quantity{
		number("reads while a script wrote two keys", f.reads, ""),
		number("of them between the two writes", f.torn, ""),
		number("reads between two writes by two commands", f.tornCommands, ""),
		yes("a write before an error in the script is undone", f.undone),
		yes("EVALSHA finds the script after EVAL", f.cached),
		yes("data survive the restart (append-only file)", f.dataSurvives),
		yes("EVALSHA finds the script after the restart", f.cacheSurvives),
	}
	return a, nil
}

// bothScript writes two keys, with work between them.
const bothScript = `
redis.call('SET', KEYS[1], ARGV[1])
local x = 0
for i = 1, 2000 do x = x + i end
redis.call('SET', KEYS[2], ARGV[1])
return x`

func writeBoth(ctx context.Context, c *redis.Client, keys []string, value int) error {
	return c.Eval(ctx, bothScript, keys, value).Err()
}

func writeOneByOne(ctx context.Context, c *redis.Client, keys []string, value int) error {
	for _, k := range keys {
		if err := c.Set(ctx, k, value, 0).Err(); err != nil {
			return err
		}
	}
	return nil
}

// tornReads makes one client write the same value to two keys, while another reads both with one command, and
// counts the reads that returned two values.
func (b *bench) tornReads(ctx context.Context, write func(context.Context, *redis.Client, []string, int) error, writes int) (reads, torn int, err error) {
	cs, err := b.clients(ctx, 2)
	if err != nil {
		return 0, 0, err
	}
	keys := []string{b.key("first"), b.key("second")}
	if err := writeOneByOne(ctx, cs[0], keys, 0); err != nil {
		return 0, 0, err
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for i := range writes {
			if err = write(ctx, cs[0], keys, i); err != nil {
				break
			}
		}
		written <- err
	}()
	for {
		select {
		case err := <-written:
			return reads, torn, err
		default:
		}
		both, err := cs[1].MGet(ctx, keys...).Result()
		if err != nil {
			return reads, torn, errors.Join(err, <-written)
		}
		reads++
		if both[0] != both[1] {
			torn++
		}
	}
}

// rollsBack reports whether the first write of a script is undone when the second fails.
func (b *bench) rollsBack(ctx context.Context) (bool, error) {
	c, err := b.client(ctx)
	if err != nil {
		return false, err
	}
	key := b.key("half")
	_, err = eval(ctx, c, `redis.call('SET', KEYS[1], 'x') return redis.call('INCR', KEYS[1])`, []string{key})
	said, err := refusal(err)
	if err != nil {
		return false, err
	}
	if said == "" {
		return false, errors.New("INCR of a text was not refused")
	}
	n, err := c.Exists(ctx, key).Result()
	return n == 0, err
}

// restarted reports whether a script is cached, and whether it and data survive a restart.
func (b *bench) restarted(ctx context.Context, t *server.Target) (cached, data, cache bool, err error) {
	c, err := b.client(ctx)
	if err != nil {
		return false, false, false, err
	}
	const script = `return 'cached'`
	key := b.key("kept")
	if err := errors.Join(c.Set(ctx, key, "x", 0).Err(), c.Eval(ctx, script, nil).Err()); err != nil {
		return false, false, false, err
	}
	if cached, err = finds(ctx, c, rediscmd.SHA1(script)); err != nil {
		return false, false, false, err
	}
	if err := errors.Join(t.Kill(1), t.Start(ctx, 1, false)); err != nil {
		return false, false, false, err
	}
	if c, err = b.client(ctx); err != nil { // the old connection is closed
		return false, false, false, err
	}
	n, err := c.Exists(ctx, key).Result()
	if err != nil {
		return false, false, false, err
	}
	cache, err = finds(ctx, c, rediscmd.SHA1(script))
	return cached, n == 1, cache, err
}

// finds reports whether EVALSHA finds the script with this SHA.
func finds(ctx context.Context, c *redis.Client, sha string) (bool, error) {
	err := c.EvalSha(ctx, sha, nil).Err()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return false, nil
	}
	return err == nil, err
}

// runsAtomically decides C13.
func runsAtomically(f atomicity) string {
	switch {
	case f.reads == 0 || f.tornCommands == 0 || !f.dataSurvives:
		return reports.Inconclusive // the reader never hits the right moment, or the server lost more than scripts
	case f.torn > 0 || !f.cached || f.cacheSurvives:
		return reports.Refuted
	}
	return reports.Confirmed
}

// growth is the effect of scripts on the server's memory.
type growth struct {
	sent    int     // scripts
	scripts int     // additional scripts in the cache
	bytes   float64 // additional memory
}

// inlined measures C14.
func inlined(ctx context.Context, b *bench) (a answer, err error) {
	t, err := b.server(ctx)
	if err != nil {
		return a, err
	}
	n := b.times(10000, 4000)
	if b.spec.IsAddress() {
		n = 1000 // scripts stay in the cache of a given server
	}
	c, err := b.client(ctx)
	if err != nil {
		return a, err
	}
	key := b.key("inlined")
	bare := func(i int) error {
		return c.Eval(ctx, fmt.Sprintf("return redis.call('SET', '%s', 'order-%d')", key, i), nil).Err()
	}
	passed := func(i int) error {
		return c.Eval(ctx, "return redis.call('SET', KEYS[1], ARGV[1])", []string{key}, fmt.Sprintf("order-%d", i)).Err()
	}
	var first, second, params growth
	for _, x := range []struct {
		g    *growth
		from int
		send func(int) error
	}{{&params, 0, passed}, {&first, 0, bare}, {&second, n, bare}} {
		if *x.g, err = sendScripts(ctx, c, x.from, n, x.send); err != nil {
			return a, err
		}
	}
	a.is, a.plain = grows(first, second, params), true
	a.says = fmt.Sprintf("On Redis %s, %s calls with the values inlined left %s scripts and %s more memory, and as many again %s and %s; with KEYS and ARGV they left %d and %s.",
		t.ServerVersion, reports.Thousands(int64(n)), reports.Thousands(int64(first.scripts)), kilobytes(first.bytes), reports.Thousands(int64(second.scripts)), kilobytes(second.bytes), params.scripts, kilobytes(params.bytes))
	a.also = "Other versions than this server's: Redis 7.4 is said to keep 500 scripts that came with EVAL, and to drop the least recently used (redis.io on EVAL; redis/redis pull request 13108)."
	a.numbers = []reports.Quantity{
		number("scripts sent, each time", n, ""),
		number("in the cache after the first", first.scripts, "more"),
		number("in the cache after the second", second.scripts, "more"),
		number("memory after the first", math.Round(first.bytes/1024), "KB more"),
		number("memory after the second", math.Round(second.bytes/1024), "KB more"),
		number("a script with inlined values", math.Round(first.bytes/float64(first.sent)), "bytes"),
		number("in the cache with KEYS and ARGV", params.scripts, "more"),
		number("memory with KEYS and ARGV", math.Round(params.bytes/1024), "KB more"),
	}
	return a, nil
}

func kilobytes(bytes float64) string {
	return reports.Thousands(int64(math.Round(bytes/1024))) + " KB"
}

// sendScripts sends n scripts and returns their effect.
func sendScripts(ctx context.Context, c *redis.Client, from, n int, send func(int) error) (growth, error) {
	scripts, bytes, err := scriptMemory(ctx, c)
	if err != nil {
		return growth{}, err
	}
	for i := range n {
		if err := send(from + i); err != nil {
			return growth{}, err
		}
	}
	moreScripts, moreBytes, err := scriptMemory(ctx, c)
	return growth{sent: n, scripts: moreScripts - scripts, bytes: moreBytes - bytes}, err
}

// scriptMemory returns the number of cached scripts, and the memory of the cache and the interpreter.
func scriptMemory(ctx context.Context, c *redis.Client) (scripts int, bytes float64, err error) {
	info, err := infoOf(ctx, c, "memory")
	if err != nil {
		return 0, 0, err
	}
	if scripts, err = strconv.Atoi(info["number_of_cached_scripts"]); err != nil {
		return 0, 0, fmt.Errorf("the server does not tell number_of_cached_scripts: %w", err)
	}
	// The first name of each line is from Redis 7.0 on, the second from before.
	for _, names := range [][2]string{{"used_memory_vm_eval", "used_memory_lua"}, {"used_memory_scripts_eval", "used_memory_scripts"}} {
		value, ok := info[names[0]]
		if !ok {
			value = info[names[1]]
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the server does not tell %s: %w", names[0], err)
		}
		bytes += x
	}
	return scripts, bytes, nil
}

// infoOf reads a section of INFO.
func infoOf(ctx context.Context, c *redis.Client, section string) (map[string]string, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// grows decides C14 for the measured server by scripts with inlined values, as many again, and the same with
// parameters.
func grows(first, second, params growth) string {
	unbounded := func(g growth) bool { return g.scripts >= g.sent*95/100 && g.bytes > float64(g.sent)*50 }
	switch {
	case params.scripts > params.sent/100:
		return reports.Refuted // parameters do not help
	case unbounded(first) && unbounded(second):
		return reports.Confirmed
	case second.scripts <= second.sent/100 && second.bytes < first.bytes/4:
		return reports.Refuted // the server bounds the cache
	}
	return reports.Inconclusive
}

// costs is the cost of a call with EVAL and with EVALSHA.
type costs struct {
	script int     // bytes of its text
	eval   float64 // bytes sent per call
	sha    float64 // the same
	times  contest // durations of EVAL and EVALSHA
}

// releaseText is the corrected release script of [variant.TextScripts].
const releaseText = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`

// padded returns a script of this length that does the same as releaseText.
func padded(bytes int) string {
	return releaseText + "\n--" + strings.Repeat("x", max(0, bytes-len(releaseText)-3))
}

// scriptSizes are the lengths of the scripts of C15: the release script, one of a few dozen lines, and a large one.
var scriptSizes = []int{len(releaseText), 2 << 10, 64 << 10}

// bySHA measures C15.
func bySHA(ctx context.Context, b *bench) (a answer, err error) {
	var all []costs
	for _, size := range scriptSizes {
		c, err := b.evalCosts(ctx, size)
		if err != nil {
			return a, err
		}
		all = append(all, c)
		name := fmt.Sprintf("%s bytes of script", reports.Thousands(int64(c.script)))
		a.numbers = append(a.numbers,
			number(name+": sent with EVAL", c.eval, "bytes a call"),
			number(name+": sent with EVALSHA", c.sha, "bytes a call"),
			c.times.quantity(name+": time of EVAL relative to EVALSHA"))
	}
	small, large := all[0], all[len(all)-1]
	a.is = savesSpeed(small, large)
	a.says = fmt.Sprintf("With the release script (%d bytes), EVALSHA sent %.0f instead of %.0f bytes a call, and EVAL took %s as long; with %s of script it sent as little, and EVAL took %s as long.",
		small.script, small.sha, small.eval, times(small.times.ratio()), kilobytes(float64(large.script)), times(large.times.ratio()))
	a.on = "the length of the script: the server hashes the whole text at every EVAL. For a lock's script that takes little time; for tens of kilobytes it takes much."
	return a, nil
}

// evalCosts compares EVAL and EVALSHA of a script of this size.
func (b *bench) evalCosts(ctx context.Context, size int) (costs, error) {
	var sent counter
	t, err := b.server(ctx)
	if err != nil {
		return costs{}, err
	}
	c := redis.NewClient(sent.counting(t.Options(0, server.ConnOptions{})))
	b.closers = append(b.closers, c.Close)
	script := padded(size)
	keys := []string{b.key("order")}
	byEval := func() error { return c.Eval(ctx, script, keys, "token").Err() }
	bySHA := func() error { return c.EvalSha(ctx, rediscmd.SHA1(script), keys, "token").Err() }
	if err := byEval(); err != nil { // connects and fills the cache
		return costs{}, err
	}
	found := costs{script: len(script)}
	for _, x := range []struct {
		call  func() error
		bytes *float64
	}{{byEval, &found.eval}, {bySHA, &found.sha}} {
		before := sent.bytes.Load()
		if err := x.call(); err != nil {
			return costs{}, err
		}
		*x.bytes = float64(sent.bytes.Load() - before)
	}
	// A pipeline, so that the measurement includes sending, checking and running the script, but not a wake-up for
	// each reply.
	const calls = 20
	often := func(call func(redis.Pipeliner)) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			return timed(func() error {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range calls {
						call(p)
					}
					return nil
				})
				return err
			})
		}
	}
	taken, err := inTurns(ctx, b.times(250, 150),
		often(func(p redis.Pipeliner) { p.Eval(ctx, script, keys, "token") }),
		often(func(p redis.Pipeliner) { p.EvalSha(ctx, rediscmd.SHA1(script), keys, "token") }))
	if err != nil {
		return costs{}, err
	}
	found.times = contest{taken[0], taken[1]}
	return found, nil
}

// muchSpeed is the ratio from which a difference in speed counts as large.
const muchSpeed = 1.3

// savesSpeed decides C15 by a small script and a large one.
func savesSpeed(small, large costs) string {
	much := func(c costs) bool { return c.times.ratio() >= muchSpeed }
	switch {
	case small.times.ratio() == 0 || large.times.ratio() == 0:
		return reports.Inconclusive
	case small.times.swayed(muchSpeed) || large.times.swayed(muchSpeed):
		return reports.Inconclusive // too noisy
	case small.sha >= small.eval || large.sha >= large.eval || much(small) && much(large):
		return reports.Refuted // it saves no bandwidth, or much time in any case
	case much(large):
		return reports.Depends
	}
	return reports.Confirmed
}

// batch is one comparison of C16: the same commands in a script and in a pipeline.
type batch struct {
	name   string
	n      int // commands
	script string
	keys   func(n int) []string
	args   func(n int) []any
	queue  func(ctx context.Context, p redis.Pipeliner, key string)

	times contest // durations of the pipeline and of the script
}

// pipelined measures C16.
func pipelined(ctx context.Context, b *bench) (a answer, err error) {
	var all []*batch
	for _, n := range []int{3, 30, 300} {
		all = append(all,
			&batch{name: "GET of as many keys", n: n,
				script: `for i = 1, #KEYS do redis.call('GET', KEYS[i]) end`,
				keys:   b.batchKeys, args: noArgs,
				queue: func(ctx context.Context, p redis.Pipeliner, key string) { p.Get(ctx, key) }},
			&batch{name: "SET of as many keys", n: n,
				script: `for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i]) end`,
				keys:   b.batchKeys, args: func(n int) []any { return slicesOf(n, "some value") },
				queue: func(ctx context.Context, p redis.Pipeliner, key string) { p.Set(ctx, key, "some value", 0) }},
			&batch{name: "INCR of one key, counted in the script", n: n,
				script: `for i = 1, ARGV[1] do redis.call('INCR', KEYS[1]) end`,
				keys:   func(int) []string { return b.batchKeys(1) }, args: func(n int) []any { return []any{n} },
				queue: func(ctx context.Context, p redis.Pipeliner, _ string) { p.Incr(ctx, b.key("batch-0")) }},
		)
	}
	c, err := b.client(ctx)
	if err != nil {
		return a, err
	}
	for _, x := range all {
		if err := c.Del(ctx, b.batchKeys(x.n)...).Err(); err != nil {
			return a, err
		}
		if err := x.compare(ctx, b, c); err != nil {
			return a, err
		}
		a.numbers = append(a.numbers, x.times.quantity(fmt.Sprintf("%d × %s: time of the pipeline relative to the script", x.n, x.name)))
	}
	least, most := all[0], all[0]
	var factors []float64
	for _, x := range all {
		f := x.times.ratio()
		factors = append(factors, f)
		if f < least.times.ratio() {
			least = x
		}
		if f > most.times.ratio() {
			most = x
		}
	}
	a.is = aThirdFaster(factors)
	a.says = fmt.Sprintf("The script took between %s (%d × %s) and %s (%d × %s) of the time of a pipeline of the same commands: the factor varies.",
		percent(1/most.times.ratio()), most.n, most.name, percent(1/least.times.ratio()), least.n, least.name)
	a.on = "the number of commands, and the amount of data that a script avoids sending: a few commands, or keys and values that are sent to the script as well, gain nothing; hundreds of commands that the script generates, or replies that it does not return, do."
	return a, nil
}

func noArgs(int) []any { return nil }

// slicesOf returns n copies of an argument.
func slicesOf(n int, arg any) []any {
	args := make([]any, n)
	for i := range args {
		args[i] = arg
	}
	return args
}

// batchKeys returns n keys.
func (b *bench) batchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = b.key(fmt.Sprintf("batch-%d", i))
	}
	return keys
}

// compare times the script and the pipeline in turns.
func (x *batch) compare(ctx context.Context, b *bench, c *redis.Client) error {
	if err := c.ScriptLoad(ctx, x.script).Err(); err != nil {
		return err
	}
	keys, args, sha := x.keys(x.n), x.args(x.n), rediscmd.SHA1(x.script)
	all := b.batchKeys(x.n)
	calls := max(1, 40/x.n)
	byScript := func(context.Context) (time.Duration, error) {
		return timed(func() error {
			for range calls {
				if err := c.EvalSha(ctx, sha, keys, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
					return err
				}
			}
			return nil
		})
	}
	byPipeline := func(context.Context) (time.Duration, error) {
		return timed(func() error {
			for range calls {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for i := range x.n {
						x.queue(ctx, p, all[i])
					}
					return nil
				})
				if err != nil && !errors.Is(err, redis.Nil) {
					return err
				}
			}
			return nil
		})
	}
	taken, err := inTurns(ctx, b.times(100, 50), byPipeline, byScript)
	if err != nil {
		return err
	}
	x.times = contest{taken[0], taken[1]}
	return nil
}

// A script that is 30 to 40 % faster takes 60 to 70 % of the time, or does 1.3 to 1.4 times as much in the same
// time: the pipeline takes 1.3 to 1.67 times as long. The range has a tolerance of a tenth.
const (
	thirdLow  = 1.3 / 1.1
	thirdHigh = 1.67 * 1.1
)

// aThirdFaster decides C16 by the ratios of pipeline to script durations, in all comparisons.
func aThirdFaster(factors []float64) string {
	within, faster := 0, 0
	for _, f := range factors {
		if f >= thirdLow {
			faster++
			if f <= thirdHigh {
				within++
			}
		}
	}
	switch {
	case len(factors) == 0:
		return reports.Inconclusive
	case within == len(factors):
		return reports.Confirmed
	case faster == 0:
		return reports.Refuted
	}
	return reports.Depends
}

// stall is the result of C22, in milliseconds by round.
type stall struct {
	script  []float64 // how long the script took
	ping    []float64 // the longest PING of each other client; the shortest of these
	without []float64 // the same without a script
}

// stalled measures C22.
func stalled(ctx context.Context, b *bench) (a answer, err error) {
	cs, err := b.clients(ctx, 5)
	if err != nil {
		return a, err
	}
	loops, err := loopsFor(ctx, cs[0], scriptLength)
	if err != nil {
		return a, err
	}
	var s stall
	for range b.times(7, 5) {
		for _, x := range []struct {
			loops int
			took  *[]float64
			ping  *[]float64
		}{{loops, &s.script, &s.ping}, {0, nil, &s.without}} {
			took, ping, err := longestPing(ctx, cs, x.loops)
			if err != nil {
				return a, err
			}
			if x.took != nil {
				*x.took = append(*x.took, reports.InMS(took))
			}
			*x.ping = append(*x.ping, reports.InMS(ping))
		}
	}
	a.is = stallsOthers(s)
	a.says = fmt.Sprintf("While a script ran for %.0f ms, each of four other clients waited up to %.0f ms for a PING (the shortest wait of the four, median of %d rounds); without it, %.1f ms.",
		stats.Median(s.script), stats.Median(s.ping), len(s.ping), stats.Median(s.without))
	a.numbers = []reports.Quantity{
		repeated("the script", s.script, "ms"),
		repeated("longest PING of each of four others; the shortest of these", s.ping, "ms"),
		repeated("the same without a script", s.without, "ms"),
	}
	return a, nil
}

// scriptLength is the duration of C22's script: far below the five seconds after which the server replies BUSY.
const scriptLength = 200 * time.Millisecond

// busyScript is an empty loop.
const busyScript = `local x = 0 for i = 1, ARGV[1] do x = x + 1 end return x`

// loopsFor returns how many iterations of busyScript take about d on an idle machine.
func loopsFor(ctx context.Context, c *redis.Client, d time.Duration) (int, error) {
	for loops := 500_000; ; {
		fastest := time.Duration(math.MaxInt64)
		for range 3 {
			took, err := timed(func() error { return c.Eval(ctx, busyScript, nil, loops).Err() })
			if err != nil {
				return 0, err
			}
			fastest = min(fastest, took)
		}
		if fastest > d*2/3 {
			return loops, nil
		}
		loops = int(float64(loops) * min(4, float64(d)/float64(max(fastest, time.Millisecond))))
	}
}

// longestPing makes the first client run a script (none: wait as long) while the others send PING after PING. It
// takes the longest of each, and returns the shortest of these.
func longestPing(ctx context.Context, cs []*redis.Client, loops int) (script, ping time.Duration, err error) {
	during, end := context.WithCancel(ctx)
	defer end()
	type found struct {
		longest time.Duration
		err     error
	}
	others := make(chan found, len(cs))
	for _, c := range cs[1:] {
		go func() {
			var f found
			for during.Err() == nil && f.err == nil {
				var d time.Duration
				d, f.err = timed(func() error { return c.Ping(ctx).Err() })
				f.longest = max(f.longest, d)
				time.Sleep(time.Millisecond) // leave the CPU to the server
			}
			others <- f
		}()
	}
	time.Sleep(20 * time.Millisecond) // the others have started
	script, err = timed(func() error {
		if loops == 0 {
			time.Sleep(scriptLength)
			return nil
		}
		return cs[0].Eval(ctx, busyScript, nil, loops).Err()
	})
	end()
	ping = time.Duration(math.MaxInt64)
	for range cs[1:] {
		f := <-others
		err = errors.Join(err, f.err)
		ping = min(ping, f.longest)
	}
	return script, ping, err
}

// stallsOthers decides C22: the stall must take most of the script's duration, and must not occur without the
// script.
func stallsOthers(s stall) string {
	script, ping, without := stats.Median(s.script), stats.Median(s.ping), stats.Median(s.without)
	switch {
	case len(s.ping) == 0 || script < reports.InMS(scriptLength)/4 || without > script/4:
		return reports.Inconclusive // the script is short, or others wait without it
	case ping > script/2:
		return reports.Confirmed
	case ping < script/4:
		return reports.Refuted
	}
	return reports.Inconclusive
}

// globals is the result of C23.
type globals struct {
	assign, read, function string  // the server's error replies
	local                  bool    // the same with local works
	times                  contest // durations of reading a global and a local
}

// localOnly measures C23.
func localOnly(ctx context.Context, b *bench) (a answer, err error) {
	c, err := b.client(ctx)
	if err != nil {
		return a, err
	}
	var g globals
	for _, x := range []struct {
		script string
		said   *string
	}{{`x = 1 return x`, &g.assign}, {`return y`, &g.read}, {`function f() return 1 end return f()`, &g.function}} {
		_, err := eval(ctx, c, x.script, nil)
		if *x.said, err = refusal(err); err != nil {
			return a, err
		}
	}
	got, err := eval(ctx, c, `local function f() local x = 1 return x end return f()`, nil)
	if err != nil {
		return a, err
	}
	g.local = got == int64(1)
	loop := func(body string) func(context.Context) (time.Duration, error) {
		script := fmt.Sprintf(`local keep = tonumber local x = 0 for i = 1, 100000 do local f = %s x = x + 1 end return x`, body)
		return func(context.Context) (time.Duration, error) {
			return timed(func() error { return c.Eval(ctx, script, nil).Err() })
		}
	}
	taken, err := inTurns(ctx, b.times(21, 11), loop("tonumber"), loop("keep"))
	if err != nil {
		return a, err
	}
	g.times = contest{taken[0], taken[1]}
	a.is = mustBeLocal(g)
	a.says = fmt.Sprintf("Assigning a global is refused (%q), a global function %s, reading an unknown global %s; with local all of it works. A loop that reads a built-in global takes %s as long as with a local copy of it.",
		short(g.assign), tooOrNot(g.function), tooOrNot(g.read), times(g.times.ratio()))
	a.numbers = []reports.Quantity{
		yes("assigning a global is refused", g.assign != ""),
		yes("a global function is refused", g.function != ""),
		yes("reading an unknown global is refused", g.read != ""),
		yes("the same with local works", g.local),
		g.times.quantity("time of a loop that reads a built-in global, relative to a local"),
	}
	return a, nil
}

// short returns an error of a script without its position.
func short(said string) string {
	for _, mark := range []string{" script: ", " stack traceback", ", on @"} {
		said, _, _ = strings.Cut(said, mark)
	}
	return said
}

// tooOrNot describes a further error.
func tooOrNot(said string) string {
	if said == "" {
		return "is not"
	}
	return "too"
}

// mustBeLocal decides C23: globals fail or are slower.
func mustBeLocal(g globals) string {
	switch {
	case !g.local || g.times.ratio() == 0:
		return reports.Inconclusive // such scripts fail for another reason
	case g.assign != "" && g.function != "":
		return reports.Confirmed
	case g.times.ratio() > 1.1:
		return reports.Confirmed
	}
	return reports.Refuted
}

// argument is the result of C24 for ARGV[1], sent as the number 10.
type argument struct {
	kind     string // its Lua type
	equal    bool   // ARGV[1] == 10
	number   bool   // tonumber(ARGV[1]) == 10
	asText   bool   // '10' < '9', which is true only for strings
	compared string // the error of ARGV[1] < 9
}

// argumentsAreText measures C24.
func argumentsAreText(ctx context.Context, b *bench) (a answer, err error) {
	c, err := b.client(ctx)
	if err != nil {
		return a, err
	}
	got, err := eval(ctx, c, `return {type(ARGV[1]), tostring(ARGV[1] == 10), tostring(tonumber(ARGV[1]) == 10), tostring(ARGV[1] < ARGV[2])}`, nil, 10, 9)
	if err != nil {
		return a, err
	}
	parts, ok := got.([]any)
	if !ok || len(parts) != 4 {
		return a, fmt.Errorf("the script answers %v", got)
	}
	found := argument{kind: fmt.Sprint(parts[0]), equal: parts[1] == "true", number: parts[2] == "true", asText: parts[3] == "true"}
	_, err = eval(ctx, c, `return tostring(ARGV[1] < 9)`, nil, 10)
	if found.compared, err = refusal(err); err != nil {
		return a, err
	}
	a.is = arriveAsText(found)
	a.says = fmt.Sprintf("The number 10 arrives as a %s: ARGV[1] == 10 is %v, 10 compares less than 9, and ARGV[1] < 9 is an error; after tonumber() it is 10.", found.kind, found.equal)
	a.numbers = []reports.Quantity{
		yes("type(ARGV[1]) is string", found.kind == "string"),
		yes("ARGV[1] == 10", found.equal),
		yes("tonumber(ARGV[1]) == 10", found.number),
		yes("ARGV[1] < ARGV[2], for 10 and 9", found.asText),
		yes("ARGV[1] < 9 is refused", found.compared != ""),
	}
	return a, nil
}

// arriveAsText decides C24.
func arriveAsText(f argument) string {
	switch {
	case !f.number:
		return reports.Inconclusive // something else arrived
	case f.kind == "string" && !f.equal && f.asText && f.compared != "":
		return reports.Confirmed
	}
	return reports.Refuted
}

// identity is the result of C25 for a script, the same text again and one changed byte.
type identity struct {
	same     bool // SCRIPT LOAD of the same text gives the same SHA
	ours     bool // equal to the SHA-1 of the text
	found    bool // EVALSHA with it works
	changed  bool // one more space gives another SHA
	noscript bool // EVALSHA does not find that SHA
	loaded   bool // and finds it after a load
}

// byteByByte measures C25.
func byteByByte(ctx context.Context, b *bench) (a answer, err error) {
	c, err := b.client(ctx)
	if err != nil {
		return a, err
	}
	script := fmt.Sprintf(`return '%s'`, b.prefix) // unique to this measurement
	changed := script + " "
	var shas [2]string
	for i := range shas {
		if shas[i], err = c.ScriptLoad(ctx, script).Result(); err != nil {
			return a, err
		}
	}
	f := identity{same: shas[0] == shas[1], ours: shas[0] == rediscmd.SHA1(script), changed: rediscmd.SHA1(changed) != shas[0]}
	if f.found, err = finds(ctx, c, shas[0]); err != nil {
		return a, err
	}
	known, err := finds(ctx, c, rediscmd.SHA1(changed))
	if err != nil {
		return a, err
	}
	f.noscript = !known
	sha, err := c.ScriptLoad(ctx, changed).Result()
	if err != nil {
		return a, err
	}
	if f.loaded, err = finds(ctx, c, sha); err != nil {
		return a, err
	}
	a.is = namedByContent(f)
	a.says = fmt.Sprintf("Two loads of one text gave one SHA (%s…), the SHA-1 of the text; with one more space EVALSHA replied NOSCRIPT until that text was loaded, too.", shas[0][:8])
	a.numbers = []reports.Quantity{
		yes("the same text has the same SHA", f.same),
		yes("it is the SHA-1 of the text", f.ours),
		yes("one more space gives another SHA", f.changed),
		yes("which EVALSHA does not know (NOSCRIPT)", f.noscript),
		yes("and knows after a load", f.loaded),
	}
	return a, nil
}

// namedByContent decides C25.
func namedByContent(f identity) string {
	switch {
	case !f.found || !f.loaded:
		return reports.Inconclusive // EVALSHA finds nothing at all
	case f.same && f.ours && f.changed && f.noscript:
		return reports.Confirmed
	}
	return reports.Refuted
}
