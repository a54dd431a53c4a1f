package queuerules

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// The limits of the rule. Many short walks find more than a few long ones, and their histories are easier to read.
const (
	walksFor  = 6 * time.Second
	mostWalks = 160
	longest   = 30 // calls of a walk
)

// sign is a placeholder in steps for the tag of the walk, so that another walk can repeat them under its own tag.
const sign = "§"

// step is a call, or a wait. It names tasks by id, so that it can be repeated without some of the steps before it.
type step struct {
	call          string
	client, queue int
	ids           []string // most calls have one
	count         int
	after         time.Duration // the delay, or how much time passes
	// until says how long a wait lasts: until the claim on the task ends ("end"), half as long ("half"), or until the task is due
	// ("due"), and then for after.
	until   string
	request string
	age     int  // which delivery of the task is meant: how many later ones there were
	wrong   bool // a dequeue has a wrong score; a reclaim is preceded by a look at the state
	within  bool // the call is one of queueimpl.Timed
}

// plan holds the clients and queues of a walk. Two walks with the same plan and steps make the same calls.
type plan struct {
	seed    uint64
	options []queueimpl.Options // of each client
	queues  int
}

// walks is the state that all walks of one rule share.
type walks struct {
	b       queueclient.Bench
	envs    []variant.Env
	made    int // the number of walks
	calls   int
	replays int
	// sameTimeout gives all clients the same visibility timeout, because the queue ends a claim by the timeout of the client that pops next.
	sameTimeout bool
	// entersClaimed says that the queue enters an id while its task is claimed. It may, so walks no longer enqueue such ids.
	entersClaimed bool
}

// walk is one walk.
type walk struct {
	*walks
	plan
	tag      string
	rand     *rand.Rand
	clients  []*queueclient.Client
	queues   []*model
	requests map[string]*request
	start    time.Time
	ids      []string
	refused  map[string]bool // ids that the queue does not take
	most     int             // the largest count that the queue accepts in a pop
	// scene holds the next planned steps, which are on queue number at. sent counts the requests of all scenes.
	scene  []step
	at     int
	sent   int
	learns bool // it will use fields and members of the queue's keys as ids; see learn
	steps  []step
	log    []string
	// unclear ends the walk: too much is unknown after an answer that left the outcome open.
	unclear bool
}

// request is a PopAs that returned tasks.
type request struct {
	client, count int
	name          string
	tasks         []queueimpl.Task
}

// Walkable reports whether random walks can judge a queue: it gives a task to one consumer at a time, and has acks if it delivers a task
// again.
func Walkable(v queueimpl.Variant) bool {
	return queueclient.Lends(v) || !v.AtLeastOnce && queueclient.Keeps(v, variant.NoDuplicateDelivery)
}

// RandomWalks makes random calls one after the other, on the emulation and its clock, and compares each answer with a model of the contract.
// If one is wrong, it looks for the shortest history that shows it. OVERSELL_SEED sets the seed of the first walk.
func RandomWalks(ctx context.Context, b queueclient.Bench) error {
	return walksOf(ctx, b, firstSeed(), mostWalks, walksFor)
}

// walksOf makes up to most walks, with the seeds from first on, within a time.
func walksOf(ctx context.Context, b queueclient.Bench, first uint64, most int, within time.Duration) error {
	all := &walks{}
	err := b.OnVirtualClock(func(queueclient.Bench) error { return nil }, func(b queueclient.Bench) error {
		*all = walks{b: b}
		for range 3 {
			all.envs = append(all.envs, b.Env())
		}
		return all.walkAll(ctx, first, most, time.Now().Add(within))
	})
	if err == nil && all.made > 0 {
		text := fmt.Sprintf("%d random walks made %d calls, and all answers were right by the contract", all.made, all.calls)
		if all.sameTimeout {
			text += "; all clients had the same visibility timeout, since the queue ends a claim by that of the client which looks"
		}
		err = &suitetest.Remark{Text: text}
	}
	return err
}

// firstSeed is the seed of the first walk.
func firstSeed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("OVERSELL_SEED"), 10, 64)
	if err != nil {
		return 1
	}
	return n
}

// walkAll makes walks with the seeds from this one on. It ends after most walks, at the time end, or with the first breach.
func (all *walks) walkAll(ctx context.Context, seed uint64, most int, end time.Time) error {
	if err := all.impatient(ctx); err != nil {
		return err
	}
	all.compare(ctx)
	for ; all.made < most && time.Now().Before(end) && ctx.Err() == nil; seed++ {
		w := all.newWalk(all.planOf(seed))
		err := w.run(ctx)
		all.made++
		if breach := w.judged(err); breach != nil {
			if found := w.shrunk(ctx, breach); found != nil {
				return found
			}
		} else if err != nil && !errors.As(err, new(*suitetest.Breach)) {
			return err
		}
	}
	return nil
}

// judged returns err as a breach of a promise that the queue makes, or nil.
func (w *walk) judged(err error) *suitetest.Breach {
	b := new(suitetest.Breach)
	if !errors.As(err, &b) {
		return nil
	}
	switch b.Promise {
	case queueclient.TheInterface, variant.NoDuplicateDelivery:
		return b
	}
	if queueclient.Keeps(w.b.Variant, b.Promise) {
		return b
	}
	return nil
}

// compare sets sameTimeout: it tests whether a pop by a client with a short timeout ends the claim of one with a long timeout, as in a
// consumer group.
func (all *walks) compare(ctx context.Context) {
	if !queueclient.Lends(all.b.Variant) {
		return
	}
	b := all.b
	b.Queue += "-compared"
	c, other := b.Client(func(o *queueimpl.Options) { o.Visibility = time.Hour }), b.Client(func(o *queueimpl.Options) { o.Visibility = time.Second })
	if _, err := c.Given(ctx, queueclient.TheInterface); err == nil { // other rules test that
		b.Pass(time.Minute)
		got, err := other.Take(ctx, 1)
		all.sameTimeout = len(got) > 0 || err != nil
	}
}

// impatient calls EnqueueWithin with a timeout of 0, which the queue must refuse.
func (all *walks) impatient(ctx context.Context) error {
	c := all.b.Client()
	t, ok := c.Queue.(queueimpl.Timed)
	if !ok {
		return nil
	}
	in, err := t.EnqueueWithin(ctx, c.Name+"-impatient", 0, 0, "a")
	if err == nil {
		return suitetest.Broken(queueclient.TheInterface, "enqueue with a timeout of 0 (EnqueueWithin) entered %q; want that it is refused, since the timeout is not positive", queueclient.IDsOf(in))
	}
	return nil
}

// planOf chooses the clients, their options, and the number of queues.
func (all *walks) planOf(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, queues: 1 + r.IntN(2)}
	var o queueimpl.Options
	timeouts := []time.Duration{30 * time.Second, 2500 * time.Millisecond, 777 * time.Millisecond, 300 * time.Millisecond, time.Hour}
	lends := queueclient.Lends(all.b.Variant)
	if lends {
		o.Visibility = pick(r, timeouts)
	}
	if lends && queueclient.Can[queueimpl.DeadLetters](all.b.Variant) {
		o.MaxAttempts = pick(r, []int{0, 1, 2, 2, 3, 3})
	}
	o.Overwrite = queueclient.Can[queueimpl.Deduper](all.b.Variant) && r.IntN(2) == 0
	differ := lends && !all.sameTimeout && r.IntN(3) == 0
	for range 2 + r.IntN(2) {
		if differ {
			o.Visibility = pick(r, timeouts)
		}
		p.options = append(p.options, o)
	}
	return p
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (all *walks) newWalk(p plan) *walk {
	all.replays++
	w := &walk{walks: all, plan: p, tag: fmt.Sprintf("w%d", all.replays), rand: rand.New(rand.NewPCG(p.seed, 3)), requests: map[string]*request{}, refused: map[string]bool{}, most: 1000}
	for i, o := range p.options {
		w.clients = append(w.clients, &queueclient.Client{Queue: all.b.Variant.New(all.envs[i], o), Bench: all.b, Env: all.envs[i]})
	}
	for i := range p.queues {
		w.queues = append(w.queues, newModel(fmt.Sprintf("%s-%s-%d", all.b.Queue, w.tag, i+1), p.options[0].MaxAttempts))
	}
	w.start = w.now()
	some := []string{"b", "c", "1", "a:r", "a:1", "b|1", "a:b", "1:2", "a|c"}
	w.rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	w.ids = append([]string{"a"}, some[:2+w.rand.IntN(2)]...)
	w.learns = w.rand.IntN(4) == 0
	return w
}

// symbol replaces the tag of the walk in a text by sign, and real replaces sign by the tag.
func (w *walk) symbol(text string) string { return strings.ReplaceAll(text, w.tag, sign) }
func (w *walk) real(text string) string   { return strings.ReplaceAll(text, sign, w.tag) }

func (w *walk) now() time.Time { return w.envs[0].Clock.Now() }

// run makes a random number of random steps, and then empties the queues.
func (w *walk) run(ctx context.Context) error {
	for range 5 + w.rand.IntN(longest-5) {
		if ctx.Err() != nil || w.unclear {
			return nil
		}
		s := w.choose(ctx)
		w.steps = append(w.steps, s)
		if err := w.do(ctx, s); err != nil {
			return err
		}
	}
	return w.drain(ctx)
}

// again repeats steps, and then empties the queues.
func (w *walk) again(ctx context.Context, steps []step) error {
	w.steps = steps
	for i, s := range steps {
		if ctx.Err() != nil || w.unclear {
			return nil
		}
		if err := w.do(ctx, s); err != nil {
			w.steps = steps[:i+1]
			return err
		}
	}
	return w.drain(ctx)
}

// choose returns the next step. Most steps belong to a scene, because some situations arise only after several calls for one task. The
// others are random.
func (w *walk) choose(ctx context.Context) step {
	if w.learns && len(w.steps) > 6 && (len(w.requests) > 0 || len(w.steps) > 12) {
		w.learns = false
		w.learn(ctx, w.queues[0])
	}
	if len(w.scene) == 0 {
		w.newScene()
	}
	if w.rand.IntN(6) == 0 {
		queue := w.rand.IntN(len(w.queues))
		return w.any(queue, pick(w.rand, w.ids), false)
	}
	s := w.scene[0]
	w.scene = w.scene[1:]
	return s
}

// newScene plans the steps of a scene: one to three tasks are enqueued, delivered up to three times, with a wait for the end of the claim
// each time, and then random calls are made for them.
func (w *walk) newScene() {
	w.at = min(w.rand.IntN(4), len(w.queues)) % len(w.queues)
	ids := slices.Clone(w.ids)
	w.rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	if w.rand.IntN(12) == 0 {
		w.crowd()
		return
	}
	ids = ids[:1+w.rand.IntN(min(3, len(ids)))]
	enters := step{call: "enqueue", client: w.rand.IntN(3), ids: ids, after: w.delay(), within: w.rand.IntN(2) == 0}
	if w.rand.IntN(8) == 0 {
		enters.ids = append(slices.Clone(ids), ids[0])
	}
	w.add(enters)
	if enters.after > 0 {
		if w.rand.IntN(3) == 0 {
			w.add(step{call: "pass", until: "due", ids: ids[:1], after: -fine}, w.any(w.at, ids[0], true))
		}
		w.add(step{call: "pass", until: "due", ids: ids[:1], after: slack + time.Millisecond})
	}
	if queueclient.Lends(w.b.Variant) {
		for range pick(w.rand, []int{0, 1, 1, 2, 2, 3, 3}) {
			w.life(ids)
		}
		if has(w.b.Variant, "reclaim") && w.rand.IntN(2) == 0 { // so that the tasks wait again
			w.add(step{call: "reclaim", client: w.rand.IntN(3), wrong: w.rand.IntN(2) == 0})
			w.add(step{call: pick(w.rand, []string{"ack", "dequeue", "state"}), client: w.rand.IntN(3), ids: []string{pick(w.rand, ids)}})
		}
	} else {
		w.add(w.pops())
	}
	for range 1 + w.rand.IntN(4) {
		w.add(w.any(w.at, pick(w.rand, ids), false))
	}
}

// add appends steps to the scene.
func (w *walk) add(steps ...step) {
	for _, s := range steps {
		s.queue = w.at
		w.scene = append(w.scene, s)
	}
}

// life adds a pop to the scene, calls for the first task while its claim runs, and a wait for the end of the claim.
func (w *walk) life(ids []string) {
	id := ids[:1]
	w.add(w.pops())
	half := step{call: "pass", until: "half", ids: id}
	switch w.rand.IntN(8) {
	case 0, 1:
		w.add(w.any(w.at, ids[0], false), w.any(w.at, ids[0], true))
	case 2, 3:
		extend := step{call: "extend", client: w.rand.IntN(3), ids: id}
		for range 1 + w.rand.IntN(2) {
			w.add(half, extend)
		}
	case 4:
		w.add(half, w.any(w.at, ids[0], true))
	}
	if w.rand.IntN(3) == 0 {
		w.add(step{call: "pass", until: "end", ids: id, after: -queueclient.Grain - fine}, w.any(w.at, ids[0], true))
	}
	over := queueclient.Lateness + time.Millisecond
	w.add(step{call: "pass", until: "end", ids: []string{pick(w.rand, ids)}, after: pick(w.rand, []time.Duration{10 * time.Millisecond, over, over, over})})
	if w.rand.IntN(2) == 0 {
		w.add(w.any(w.at, ids[0], true))
	}
	if len(ids) > 2 && w.rand.IntN(3) == 0 { // this pop may end the claims of the others, which then wait again
		w.add(step{call: "pop", count: 1, client: w.rand.IntN(3)}, step{call: "ack", ids: []string{pick(w.rand, ids)}})
	}
}

// crowd plans a scene in which many tasks are delivered MaxAttempts times, and no claim is acknowledged.
func (w *walk) crowd() {
	ids := queueclient.Numbered(pick(w.rand, []int{8, 14, 14, 130}))
	w.add(step{call: "enqueue", ids: ids}, w.any(w.at, ids[0], true))
	if !queueclient.Lends(w.b.Variant) {
		return
	}
	for range max(1, w.options[0].MaxAttempts) {
		pop := w.pops()
		pop.count = 200
		w.add(pop, step{call: "pass", until: "end", ids: ids[:1], after: queueclient.Lateness + time.Millisecond})
	}
	w.add(step{call: "reclaim", wrong: w.rand.IntN(2) == 0}, w.any(w.at, ids[0], true))
}

// delay returns the delay of an enqueue. Most are 0.
func (w *walk) delay() time.Duration {
	if !queueclient.Can[queueimpl.Delayer](w.b.Variant) || w.rand.IntN(5) < 3 {
		return 0
	}
	return pick(w.rand, []time.Duration{50 * time.Millisecond, time.Second, 1500 * time.Millisecond, 10 * time.Second, time.Minute, 2 * time.Hour})
}

// pops returns a step that calls Pop or PopAs.
func (w *walk) pops() step {
	w.sent++
	s := step{call: "pop", client: w.rand.IntN(3), count: pick(w.rand, []int{1, 1, 2, 20, 200}), within: w.rand.IntN(2) == 0, request: fmt.Sprintf("%s-%d", sign, w.sent)}
	if has(w.b.Variant, "pop as") && w.rand.IntN(3) == 0 {
		s.call = "pop as"
	}
	return s
}

// chooseCall returns the name of a call that the queue supports. With look, it prefers calls that show where tasks are.
func (w *walk) chooseCall(look bool) string {
	var calls []string
	for _, c := range []struct {
		name          string
		weight, looks int
	}{{"enqueue", 8, 0}, {"pops", 7, 12}, {"pass", 6, 0}, {"state", 2, 2}, {"again", 4, 3}, {"popped", 1, 1}, {"ack", 9, 2}, {"extend", 5, 2}, {"reclaim", 3, 5}, {"dequeue", 6, 1}, {"peek", 2, 2}} {
		if look {
			c.weight = c.looks
		}
		if has(w.b.Variant, c.name) {
			calls = slices.Concat(calls, slices.Repeat([]string{c.name}, c.weight))
		}
	}
	return pick(w.rand, calls)
}

// has reports whether a queue supports a call.
func has(v queueimpl.Variant, call string) bool {
	switch call {
	case "pop as", "again", "popped":
		return queueclient.Can[queueimpl.Journaler](v)
	case "ack":
		return queueclient.Lends(v)
	case "extend":
		return queueclient.Lends(v) && queueclient.Can[queueimpl.Extender](v)
	case "reclaim":
		return queueclient.Lends(v) && queueclient.Can[queueimpl.Reclaimer](v)
	case "dequeue":
		return queueclient.Can[queueimpl.Dequeuer](v)
	case "peek":
		return queueclient.Can[queueimpl.Peeker](v)
	}
	return true
}

// any returns a step with a random call. Calls for a task are made for id.
func (w *walk) any(queue int, id string, look bool) step {
	s := step{call: w.chooseCall(look), client: w.rand.IntN(3), queue: queue, ids: []string{id}, within: w.rand.IntN(2) == 0}
	switch s.call {
	case "enqueue":
		if s.after = w.delay(); w.rand.IntN(4) == 0 {
			s.ids = append(s.ids, pick(w.rand, append(slices.Clone(w.ids), id, id)))
		}
	case "pops":
		client := s.client
		s = w.pops()
		s.client, s.queue = client, queue
	case "pass":
		w.choosePass(&s, w.queues[queue])
	case "again", "popped":
		w.chooseRequest(&s)
	case "peek":
		s.count = pick(w.rand, []int{1, 2, 3, 6, 7, 50})
	default:
		s.wrong = w.rand.IntN(4) == 0
		s.age = pick(w.rand, []int{0, 0, 0, 0, 1, 1, 2})
	}
	return s
}

// learn adds fields and members of the queue's keys to the ids of the walk: a queue may confuse an id with data of its own.
func (w *walk) learn(ctx context.Context, m *model) {
	names, err := namesIn(ctx, w.envs[0].Redis, m.name)
	if err != nil {
		return
	}
	known := map[string]bool{}
	for _, id := range w.ids {
		known[id] = true
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" || len(name) > 60 || known[name] })
	if len(names) == 0 {
		return
	}
	id := pick(w.rand, names)
	if ofRequests := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(name, w.tag) }); len(ofRequests) > 0 && w.rand.IntN(2) == 0 {
		id = pick(w.rand, ofRequests)
	}
	w.ids = append(w.ids, w.symbol(id))
	steps := []step{{call: "enqueue", ids: []string{w.symbol(id)}}, w.pops()}
	if len(w.requests) > 0 {
		for _, call := range []string{"popped", "again"} {
			s := step{call: call}
			w.chooseRequest(&s)
			steps = append(steps, s)
		}
	}
	w.scene = slices.Insert(w.scene, 0, steps...)
}

// choosePass chooses how long a wait lasts: mostly until shortly before or after a claim ends or a task is due.
func (w *walk) choosePass(s *step, m *model) {
	s.after, s.ids = time.Duration(1+w.rand.IntN(60))*time.Millisecond, nil
	now := w.now()
	some := m.those(func(e *entry) bool {
		return e.at == lent && !e.over(now) || e.at == waits && now.Before(e.late)
	})
	if len(some) == 0 || w.rand.IntN(4) == 0 {
		if w.rand.IntN(6) == 0 {
			s.after = pick(w.rand, []time.Duration{time.Minute, time.Hour, 26 * time.Hour})
		}
		return
	}
	e := pick(w.rand, some)
	s.ids = []string{w.symbol(e.id)}
	if e.at == waits {
		s.until, s.after = "due", pick(w.rand, []time.Duration{-fine, slack + time.Millisecond, slack + time.Millisecond})
		return
	}
	s.until, s.after = "end", pick(w.rand, []time.Duration{-queueclient.Grain - fine, -queueclient.Grain - fine, 10 * time.Millisecond, queueclient.Lateness + time.Millisecond, queueclient.Lateness + time.Millisecond})
}

// chooseRequest chooses an earlier PopAs.
func (w *walk) chooseRequest(s *step) {
	var all []string
	for key := range w.requests {
		all = append(all, key)
	}
	if len(all) == 0 {
		s.request = sign + "-none"
		return
	}
	slices.Sort(all)
	key := pick(w.rand, all)
	at, name, _ := strings.Cut(key, " ")
	s.queue, _ = strconv.Atoi(at)
	s.request = w.symbol(name)
}
