package queueimpl

import (
	"cmp"
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts, one file each. They run by their SHA and are loaded on demand.
var (
	//go:embed common.lua
	commonLua string

	//go:embed zset_enqueue.lua
	zsetEnqueueLua    string
	zsetEnqueueScript = redis.NewScript(commonLua + zsetEnqueueLua)

	//go:embed zset_dequeue.lua
	zsetDequeueLua    string
	zsetDequeueScript = redis.NewScript(zsetDequeueLua)

	//go:embed zset_peek.lua
	zsetPeekLua    string
	zsetPeekScript = redis.NewScript(commonLua + zsetPeekLua)

	//go:embed zset_pop.lua
	zsetPopLua    string
	zsetPopScript = redis.NewScript(commonLua + zsetPopLua)

	//go:embed reliable_common.lua
	reliableCommonLua string

	//go:embed reliable_enqueue.lua
	reliableEnqueueLua    string
	reliableEnqueueScript = redis.NewScript(commonLua + reliableCommonLua + reliableEnqueueLua)

	//go:embed reliable_dequeue.lua
	reliableDequeueLua    string
	reliableDequeueScript = redis.NewScript(commonLua + reliableCommonLua + reliableDequeueLua)

	//go:embed reliable_pop.lua
	reliablePopLua    string
	reliablePopScript = redis.NewScript(commonLua + reliableCommonLua + reliablePopLua)

	//go:embed reliable_ack.lua
	reliableAckLua    string
	reliableAckScript = redis.NewScript(commonLua + reliableCommonLua + reliableAckLua)

	//go:embed reliable_extend.lua
	reliableExtendLua    string
	reliableExtendScript = redis.NewScript(commonLua + reliableCommonLua + reliableExtendLua)

	//go:embed reliable_reclaim.lua
	reliableReclaimLua    string
	reliableReclaimScript = redis.NewScript(commonLua + reliableCommonLua + reliableReclaimLua)

	//go:embed streams_ack.lua
	streamsAckLua    string
	streamsAckScript = redis.NewScript(streamsAckLua)

	//go:embed streams_bury.lua
	streamsBuryLua    string
	streamsBuryScript = redis.NewScript(streamsBuryLua)
)

// flag returns a bool as a script's argument.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scoreArg returns a score as a script's argument: exactly this number.
func scoreArg(score float64) string { return strconv.FormatFloat(score, 'g', -1, 64) }

// enter runs a script that enters tasks and replies their score and the ids that it entered.
func (b base) enter(ctx context.Context, s *redis.Script, keys []string, after time.Duration, ids []string) ([]Task, error) {
	args := []any{after.Microseconds(), flag(b.o.Overwrite)}
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := s.Run(ctx, b.rdb(), keys, args...).StringSlice()
	if err != nil {
		return nil, err
	}
	if len(reply) == 0 {
		return nil, errors.New("a script replied nothing")
	}
	score, err := strconv.ParseFloat(reply[0], 64)
	if err != nil {
		return nil, fmt.Errorf("a script replied the score %q", reply[0])
	}
	return entered(score, reply[1:]), nil
}

// fields is the number of texts for one task in a script's reply: its id, its score, its attempt and its receipt.
const fields = 4

// tasksIn reads a script's reply or a journal's entry. Claims are counted from start.
func (b base) tasksIn(reply []string, start time.Time) ([]Task, error) {
	if len(reply)%fields != 0 {
		return nil, fmt.Errorf("a script replied %q: want a list of tasks", reply)
	}
	var tasks []Task
	for ; len(reply) > 0; reply = reply[fields:] {
		score, err := strconv.ParseFloat(reply[1], 64)
		if err != nil {
			return nil, fmt.Errorf("a script replied the score %q", reply[1])
		}
		attempt, err := strconv.Atoi(reply[2])
		if err != nil {
			return nil, fmt.Errorf("a script replied the attempt %q", reply[2])
		}
		t := Task{ID: reply[0], Score: score, Attempt: attempt, Receipt: reply[3]}
		if t.Receipt != "" {
			t.Until = start.Add(b.o.Visibility)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// list runs a script that replies tasks.
func (b base) list(ctx context.Context, s *redis.Script, keys []string, args ...any) ([]Task, error) {
	start := b.env.Clock.Now()
	reply, err := s.Run(ctx, b.rdb(), keys, args...).StringSlice()
	if err != nil {
		return nil, err
	}
	return b.tasksIn(reply, start)
}

// did runs a script that replies 1, or 0 for the declared answer no.
func (b base) did(ctx context.Context, no error, s *redis.Script, keys []string, args ...any) error {
	n, err := s.Run(ctx, b.rdb(), keys, args...).Int64()
	if err == nil && n == 0 {
		return no
	}
	return err
}

func requested(request string) error {
	if request == "" {
		return badCall("a request id must not be empty")
	}
	return nil
}

// popped is Popped for the queues whose scripts keep a journal.
func (b base) popped(ctx context.Context, name, request string) ([]Task, error) {
	if err := cmp.Or(named(name), requested(request)); err != nil {
		return nil, failed("journal of", name, err)
	}
	note, err := b.rdb().HGet(ctx, journalOf(name), request).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	var reply []string
	if err == nil {
		reply, err = noted(note)
	}
	if err != nil {
		return nil, failed("journal of", name, err)
	}
	tasks, err := b.tasksIn(reply, time.Time{})
	for i := range tasks {
		tasks[i].Until = time.Time{} // no claim was promised
	}
	return tasks, failed("journal of", name, err)
}

// noted reads a note of the journal: fields, each behind its length and a colon.
func noted(note string) (fields []string, err error) {
	for note != "" {
		digits, rest, _ := strings.Cut(note, ":")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || n > len(rest) {
			return nil, fmt.Errorf("a journal has the note %q: want a length, a colon, and so many bytes", note)
		}
		fields, note = append(fields, rest[:n]), rest[n:]
	}
	return fields, nil
}
