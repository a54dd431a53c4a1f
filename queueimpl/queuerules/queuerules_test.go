package queuerules

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/mutants/queues"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// plain is a queue in a sorted set of due times. A pop looks, and then removes what it has seen, by its id alone.
type plain struct{ env variant.Env }

func (q plain) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return q.EnqueueAfter(ctx, name, 0, ids...)
}

func (q plain) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) (in []queueimpl.Task, err error) {
	for _, id := range ids {
		us := q.env.Clock.Now().Add(after).UnixMicro()
		if err := q.env.Redis[0].ZAdd(ctx, name, redis.Z{Score: float64(us), Member: id}).Err(); err != nil {
			return in, err
		}
		in = append(in, queueimpl.Task{ID: id, Score: float64(us) / 1e6})
	}
	return in, nil
}

func (q plain) Pop(ctx context.Context, name string, _ int) ([]queueimpl.Task, error) {
	for {
		got, err := q.env.Redis[0].ZRangeWithScores(ctx, name, 0, 0).Result()
		if err != nil {
			return nil, err
		}
		if len(got) == 0 || got[0].Score > float64(q.env.Clock.Now().UnixMicro()) {
			return nil, queueimpl.ErrEmpty
		}
		id := got[0].Member.(string)
		if n, err := q.env.Redis[0].ZRem(ctx, name, id).Result(); err != nil || n == 1 {
			return []queueimpl.Task{{ID: id, Score: got[0].Score / 1e6}}, err
		}
	}
}

func (q plain) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	got, err := q.env.Redis[0].ZRangeWithScores(ctx, name, 0, -1).Result()
	for _, z := range got {
		s.Waiting = append(s.Waiting, queueimpl.Task{ID: z.Member.(string), Score: z.Score / 1e6})
	}
	return s, err
}

// lists is a queue in two lists. A pop looks at one after the other, and the next pop of the client begins with the other one.
type lists struct {
	env  variant.Env
	pops *int
}

var parts = []string{"-even", "-odd"}

func part(id string) string { return parts[id[len(id)-1]%2] }

func (q lists) Enqueue(ctx context.Context, name string, ids ...string) (in []queueimpl.Task, err error) {
	for _, id := range ids {
		if err := q.env.Redis[0].RPush(ctx, name+part(id), id).Err(); err != nil {
			return in, err
		}
		in = append(in, queueimpl.Task{ID: id})
	}
	return in, nil
}

func (q lists) Pop(ctx context.Context, name string, _ int) ([]queueimpl.Task, error) {
	*q.pops++
	for i := range parts {
		id, err := q.env.Redis[0].LPop(ctx, name+parts[(i+*q.pops)%2]).Result()
		if !errors.Is(err, redis.Nil) {
			return []queueimpl.Task{{ID: id}}, err
		}
	}
	return nil, queueimpl.ErrEmpty
}

func (q lists) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	for _, part := range parts {
		ids, err := q.env.Redis[0].LRange(ctx, name+part, 0, -1).Result()
		if err != nil {
			return s, err
		}
		for _, id := range ids {
			s.Waiting = append(s.Waiting, queueimpl.Task{ID: id})
		}
	}
	return s, nil
}

// full has all methods of the queue "reliable" that these rules use.
type full interface {
	queueimpl.Queue
	queueimpl.Delayer
	queueimpl.Dequeuer
	queueimpl.Acker
	queueimpl.DeadLetters
}

// marking only marks what is withdrawn, for a day.
type marking struct {
	full
	env variant.Env
}

func (q marking) Dequeue(ctx context.Context, name, id string, _ float64) error {
	return q.env.Redis[0].Set(ctx, name+"-withdrawn-"+id, 1, day).Err()
}

func (q marking) marked(ctx context.Context, name string, t queueimpl.Task) bool {
	return q.env.Redis[0].Exists(ctx, name+"-withdrawn-"+t.ID).Val() == 1
}

func (q marking) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	for {
		got, err := q.full.Pop(ctx, name, 1)
		if err != nil || !q.marked(ctx, name, got[0]) {
			return got, err
		}
		if err := q.Ack(ctx, name, got[0]); err != nil {
			return nil, err
		}
	}
}

func (q marking) State(ctx context.Context, name string) (queueimpl.State, error) {
	s, err := q.full.State(ctx, name)
	var waiting []queueimpl.Task
	for _, t := range s.Waiting {
		if !q.marked(ctx, name, t) {
			waiting = append(waiting, t)
		}
	}
	s.Waiting = waiting
	return s, err
}

// forgetful shows no dead letter that was seen first ninety days ago.
type forgetful struct {
	full
	env  variant.Env
	mu   *sync.Mutex
	seen map[string]time.Time
}

func (q forgetful) Dead(ctx context.Context, name string) (dead []queueimpl.Task, _ error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, err := q.full.Dead(ctx, name)
	for _, t := range all {
		if q.seen[t.ID].IsZero() {
			q.seen[t.ID] = q.env.Clock.Now()
		}
		if q.env.Clock.Now().Sub(q.seen[t.ID]) < 90*day {
			dead = append(dead, t)
		}
	}
	return dead, err
}

// hasty answers an enqueue under a context that is over with success, without a command.
type hasty struct{ full }

func (q hasty) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	if ctx.Err() == nil {
		return q.full.Enqueue(ctx, name, ids...)
	}
	return []queueimpl.Task{{ID: ids[0], Score: 1}}, nil
}

// minds no context: its library takes none.
type minds struct {
	full
	late bool // it answers with the context's error when it has done what it was asked for
}

func (q minds) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return answer(ctx, q.late)(q.full.Enqueue(context.WithoutCancel(ctx), name, ids...))
}

func (q minds) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	return answer(ctx, q.late)(q.full.Pop(context.WithoutCancel(ctx), name, count))
}

func (q minds) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	_, err := answer(ctx, q.late)(nil, q.full.Ack(context.WithoutCancel(ctx), name, t))
	return err
}

func (q minds) State(ctx context.Context, name string) (queueimpl.State, error) {
	return q.full.State(context.WithoutCancel(ctx), name)
}

func answer(ctx context.Context, late bool) func([]queueimpl.Task, error) ([]queueimpl.Task, error) {
	return func(tasks []queueimpl.Task, err error) ([]queueimpl.Task, error) {
		if late && err == nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return tasks, err
	}
}

// answering makes a pop under a context that is over, and gives another answer.
type answering struct {
	minds
	err error // nil: success, without the task
}

func (q answering) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if ctx.Err() == nil {
		return q.minds.Pop(ctx, name, count)
	}
	if q.err == nil {
		_, _ = q.minds.Pop(ctx, name, count)
	}
	return nil, q.err
}

// TestEnded checks that a queue is not accused if its calls mind no context, or only when they have done their work, but if
// an answer is untrue.
func TestEnded(t *testing.T) {
	reliable, _ := queueimpl.Find("reliable")
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	for name, tt := range map[string]struct {
		of   func(minds) queueimpl.Queue
		says string
	}{
		"minds no context":         {func(q minds) queueimpl.Queue { return q }, ""},
		"minds it when all's done": {func(q minds) queueimpl.Queue { q.late = true; return q }, ""},
		"keeps what it hands out":  {func(q minds) queueimpl.Queue { return answering{q, nil} }, `pop under a cancelled context answered success with []; want [`},
		"says that it is empty":    {func(q minds) queueimpl.Queue { return answering{q, queueimpl.ErrEmpty} }, "a declared answer; want success or another error"},
	} {
		v := reliable
		v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
			return tt.of(minds{full: reliable.New(env, o).(full)})
		}
		err := Ended(t.Context(), queueclient.Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting(""))
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("a queue that %s: %v; want %q", name, err, tt.says)
		}
	}
}

// roundedOff withdraws a task if its score and the given one are in the same 50 ms.
type roundedOff struct{ full }

func (q roundedOff) Dequeue(ctx context.Context, name, id string, score float64) error {
	s, err := q.State(ctx, name)
	if err != nil {
		return err
	}
	for _, t := range s.Waiting {
		if t.ID == id && math.Floor(t.Score*20) == math.Floor(score*20) {
			score = t.Score
		}
	}
	return q.full.Dequeue(ctx, name, id, score)
}

// clearing forgets all requests when a task is withdrawn: later ones have other names in the journal.
type clearing struct {
	full
	cleared *string
}

func (q clearing) Dequeue(ctx context.Context, name, id string, score float64) error {
	*q.cleared += "again"
	return q.full.Dequeue(ctx, name, id, score)
}

func (q clearing) PopAs(ctx context.Context, name, request string, count int) ([]queueimpl.Task, error) {
	return q.full.(queueimpl.Journaler).PopAs(ctx, name, request+*q.cleared, count)
}

func (q clearing) Popped(ctx context.Context, name, request string) ([]queueimpl.Task, error) {
	return q.full.(queueimpl.Journaler).Popped(ctx, name, request+*q.cleared)
}

// TestRules checks that each rule catches a queue with a flaw of its kind, and passes a sound one.
func TestRules(t *testing.T) {
	reliable, ok := queueimpl.Find("reliable")
	if !ok {
		t.Fatal("there is no queue reliable")
	}
	with := func(change func(variant.Env, full) queueimpl.Queue) queueimpl.Variant {
		v := reliable
		v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
			return change(env, reliable.New(env, o).(full))
		}
		return v
	}
	atMostOnce := []variant.Property{variant.NoDuplicateDelivery, variant.NotEarly, variant.Linearizable}
	rules := map[string]func(context.Context, queueclient.Bench) error{"rescheduled": Rescheduled, "moving": Moving, "withdrawn": Withdrawn, "old letters": OldLetters, "ended": Ended, "earlier score": EarlierScore, "request after a withdrawal": RequestAfterWithdrawal}
	flawed := map[string]queueimpl.Variant{
		"rescheduled": {Name: "plain", Promises: atMostOnce, New: func(e variant.Env, _ queueimpl.Options) queueimpl.Queue { return plain{e} }},
		"moving":      {Name: "lists", Promises: atMostOnce, New: func(e variant.Env, _ queueimpl.Options) queueimpl.Queue { return lists{e, new(int)} }},
		"withdrawn":   with(func(e variant.Env, q full) queueimpl.Queue { return marking{q, e} }),
		"old letters": with(func(e variant.Env, q full) queueimpl.Queue {
			return forgetful{q, e, &sync.Mutex{}, map[string]time.Time{}}
		}),
	}
	flawed["earlier score"] = with(func(_ variant.Env, q full) queueimpl.Queue { return roundedOff{q} })
	flawed["request after a withdrawal"] = with(func(_ variant.Env, q full) queueimpl.Queue { return clearing{q, new(string)} })
	flawed["ended"] = with(func(_ variant.Env, q full) queueimpl.Queue { return hasty{q} })
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			try := func(v queueimpl.Variant) error {
				return rule(t.Context(), queueclient.Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting(""))
			}
			if err := try(reliable); err != nil {
				t.Errorf("a sound queue was accused: %v", err)
			}
			if err := try(flawed[name]); err == nil {
				t.Errorf("the rule found nothing in queue %s", flawed[name].Name)
			} else {
				t.Log(err)
			}
		})
	}
}

// TestRulesOnTheCatalogue checks rules on flawed and sound queues of the catalogue.
func TestRulesOnTheCatalogue(t *testing.T) {
	catalogue := map[string]queueimpl.Variant{}
	catalogue["reliable"], _ = queueimpl.Find("reliable")
	for _, q := range queues.All() {
		catalogue[q.Name] = q.Variant
	}
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	for _, tt := range []struct {
		name   string
		rule   func(context.Context, queueclient.Bench) error
		sound  string
		flawed []string
	}{
		{"attempts over days", AttemptsOverDays, "sound-letters", []string{"attempts-as-text", "attempts-for-ten-minutes"}},
		{"reclaim is no attempt", ReclaimIsNoAttempt, "sound-claims-reclaims", []string{"reclaim-counts"}},
		{"letter of the last", LetterOfLast, "sound-letters", []string{"letter-of-any-consumer", "letter-extended"}},
		{"dead twice", DeadTwice, "sound-letters", []string{"letter-once-only"}},
		{"extend of what is done", ExtendOfDone, "sound-claims", []string{"extend-of-what-is-done"}},
		{"slow extends", SlowExtends, "sound-claims", []string{"lent-extend-from-answer"}},
		{"ack after a reclaim", AckAfterReclaim, "sound-claims-reclaims", []string{"reclaim-voids-receipt"}},
		{"reclaims all", ReclaimsAll, "sound-claims-reclaims", []string{"reclaim-ends-ten"}},
		{"request of others", RequestOfOthers, "sound-claims-journal", []string{"journal-of-present-claim"}},
		{"large request", LargeRequest, "sound-claims-journal", []string{"journal-of-a-hundred"}},
		{"requests alike", RequestsAlike, "sound-claims-journal", []string{"requests-fold-case"}},
		{"ack after a late extend", LateExtendThenAck, "sound-claims", []string{"late-extend-voids-receipt"}},
		{"request after an ack", RequestAfterAck, "sound-claims-journal", []string{"ack-forgets-request"}},
		{"repeat of what is delayed", RepeatOfDelayed, "sound-claims", []string{"unique-among-due"}},
		{"repeat of what has run out", RepeatOfRunOut, "sound-claims", []string{"unique-until-its-claim-ends"}},
		{"state in order", StateInOrder, "sound-claims", []string{"state-newest-first"}},
		{"behind claims that go on", BehindLiveClaims, "sound-claims", []string{"claim-scan-of-ten"}},
		{"behind claims that are extended", BehindExtended, "sound-claims", []string{"claim-scan-of-first-hundred"}},
		{"behind tasks that are due later", BehindDelayed, "sound-claims", []string{"delayed-in-line"}},
		{"calls that have failed", Recovers, "sound-claims", []string{"pop-setup-error-kept"}},
		{"batches", Batches, "sound-claims", []string{"ack-of-the-batch", "extend-of-the-batch"}},
		{"odd names", ByName, "sound-claims", []string{"claims-by-pattern"}},
		{"delayed ids", Delayed, "sound-claims", []string{"delayed-ids-by-line", "delayed-is-an-attempt"}},
		{"journal later", JournalLater, "sound-claims-journal", []string{"journal-for-ten-minutes"}},
		{"withdrawn letter", WithdrawnLetter, "reliable", []string{"letter-withdrawn"}},
		{"other limit", OtherLimit, "sound-letters", []string{"letter-tells-the-limit", "attempts-must-equal"}},
		{"fine delay", FineDelay, "sound-claims", []string{"delay-cut-to-milliseconds"}},
		{"reclaims thousands", ReclaimsThousands, "sound-claims-reclaims", []string{"reclaim-ends-a-thousand"}},
		{"remains after calls", RemainsAfterCalls, "sound-claims-withdraws", []string{"dequeue-expires", "reclaim-expires", "extend-expires"}},
		{"late acks", LateAcks, "sound-claims", []string{"ack-within-a-day"}},
		{"refused calls", RefusedCalls, "sound-claims", []string{"refused-ack-marks"}},
		{"answers stay", AnswersStay, "sound-claims", []string{"pop-into-one-slice"}},
		{"large counts", LargeCounts, "sound-claims", []string{"count-of-16-bits"}},
		{"after empty", AfterEmpty, "sound-claims", []string{"empty-remembered"}},
		{"peeks often", PeeksOften, "sound-zset-peeks", []string{"third-peek-counts"}},
		{"near score", NearScore, "sound-claims-withdraws", []string{"dequeue-nearly"}},
		{"repeat of far", RepeatOfFar, "sound-claims", []string{"far-delays-apart"}},
		{"own ids", OwnIDs, "sound-claims", []string{"counter-among-tasks"}},
		{"peek of what is delayed", PeekOfDelayed, "sound-zset-peeks", []string{"peek-before-the-mover"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			try := func(name string) error {
				v, ok := catalogue[name]
				if !ok {
					t.Fatalf("the catalogue has no queue %s", name)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*queueclient.Patience)
				defer cancel()
				return tt.rule(ctx, queueclient.Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting(""))
			}
			if err := try(tt.sound); err != nil && !errors.As(err, new(*suitetest.Remark)) {
				t.Errorf("%s was accused: %v", tt.sound, err)
			}
			for _, name := range tt.flawed {
				err := try(name)
				w := new(suitetest.Breach)
				for again := 0; again < 3 && !errors.As(err, &w); again++ { // the machine was busy
					err = try(name)
				}
				if !errors.As(err, &w) {
					t.Errorf("%s: %v; want a breach", name, err)
				}
			}
		})
	}
}
