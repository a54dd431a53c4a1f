package queueimpl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/server/opentest"
	"oversell/variant"
)

func TestDeclarationsOfQueues(t *testing.T) {
	for _, v := range queueimpl.Variants {
		for _, f := range v.Flaws {
			if strings.Contains(f.Under, variant.Unserialized) && !v.Locked {
				t.Errorf("%s has a flaw under a lock, and takes none: %+v", v.Name, f)
			}
		}
		if v.Control && !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
			return f.Fault == variant.NoFault && slices.Contains(v.Promises, f.Property)
		}) {
			t.Errorf("control %s keeps what it promises as long as nothing is done to it, so nothing can catch it", v.Name)
		}
	}
}

func TestWhatEachCanDo(t *testing.T) {
	want := map[string]string{
		"zset-locked":      "delay time-out-per-call dedupe dequeue peek",
		"zset-atomic":      "delay dedupe dequeue peek journal",
		"reliable":         "delay dedupe dequeue peek ack extend reclaim dead-letters journal",
		"streams":          "ack dead-letters",
		"range-run-remove": "delay dedupe dequeue peek ack",
	}
	for _, v := range queueimpl.Variants {
		if got := strings.Join(v.Can(), " "); got != want[v.Name] {
			t.Errorf("%s can %q; want %q", v.Name, got, want[v.Name])
		}
	}
}

func TestOptionsThatAQueueWouldIgnoreAreRefused(t *testing.T) {
	lock, _ := lockimpl.Find("lua-release")
	tests := []struct {
		what    string
		o       queueimpl.Options
		accepts string // the queues that accept these options
	}{
		{"nothing", queueimpl.Options{}, "zset-locked zset-atomic reliable streams range-run-remove"},
		{"a lock", queueimpl.Options{Lock: lock.New}, "zset-locked"},
		{"times of a lock", queueimpl.Options{LockOptions: lockimpl.Options{TTL: time.Second}}, "zset-locked"},
		{"a negative time", queueimpl.Options{LockOptions: lockimpl.Options{Wait: -1}}, ""},
		{"overwriting", queueimpl.Options{Overwrite: true}, "zset-locked zset-atomic reliable range-run-remove"},
		{"a visibility timeout", queueimpl.Options{Visibility: time.Second}, "reliable streams"},
		{"less than a millisecond", queueimpl.Options{Visibility: time.Microsecond}, ""},
		{"a negative timeout", queueimpl.Options{Visibility: -1}, ""},
		{"attempts", queueimpl.Options{MaxAttempts: 3}, "reliable streams"},
		{"negative attempts", queueimpl.Options{MaxAttempts: -1}, ""},
	}
	for _, tt := range tests {
		for _, v := range queueimpl.Variants {
			err := v.Accepts(tt.o)
			if want := slices.Contains(strings.Fields(tt.accepts), v.Name); want != (err == nil) {
				t.Errorf("%s with %s: %v", v.Name, tt.what, err)
			}
			if err != nil && !errors.Is(err, queueimpl.ErrBadCall) {
				t.Errorf("%s with %s: %v is no ErrBadCall", v.Name, tt.what, err)
			}
		}
	}
}

func TestPrintedQueueRefusesWhatPHPTakesForEmpty(t *testing.T) {
	_, server := opentest.Virtual(t)
	v, _ := queueimpl.Find("zset-locked")
	q := v.New(opentest.Env(t, server, clock.Real{}), queueimpl.Options{})
	ctx, name := t.Context(), newName()
	d := q.(queueimpl.Dequeuer)
	_, enqueueName := q.Enqueue(ctx, "0", "a")
	_, enqueueID := q.Enqueue(ctx, name, "0")
	for what, err := range map[string]error{
		"enqueue into 0":   enqueueName,
		"enqueue of 0":     enqueueID,
		"dequeue of 0":     d.Dequeue(ctx, name, "0", 1),
		"dequeue of score": d.Dequeue(ctx, name, "a", 0),
	} {
		if !errors.Is(err, queueimpl.ErrBadCall) {
			t.Errorf("%s answered %v; want %v", what, err, queueimpl.ErrBadCall)
		}
	}
	in, err := q.Enqueue(ctx, name, "0", "1") // "0" counts as an empty id only when it is alone
	if err != nil || len(in) != 2 {
		t.Errorf(`enqueue of "0" among others answered %v, %v`, in, err)
	}
	impatient := v.New(opentest.Env(t, server, clock.Real{}), queueimpl.Options{LockOptions: lockimpl.Options{Wait: -1}})
	if _, err := impatient.Enqueue(ctx, name, "a"); !errors.Is(err, queueimpl.ErrBadCall) {
		t.Errorf("enqueue with a timeout below zero answered %v", err)
	}
}

func TestErrorsSayWhatWasAttempted(t *testing.T) {
	_, server := opentest.Virtual(t)
	for _, v := range queueimpl.Variants {
		t.Run(v.Name, func(t *testing.T) {
			name := newName()
			q := v.New(opentest.Env(t, server, clock.Real{}), queueimpl.Options{})
			dead, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := q.Pop(dead, name, 1)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("pop under a cancelled context = %v; it does not wrap the cause", err)
			}
			for _, part := range []string{"pop", name} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not mention %q", err, part)
				}
			}
			_, err = q.Pop(t.Context(), name, -3)
			for _, part := range []string{"pop", name, "-3"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not mention %q", err, part)
				}
			}
		})
	}
}

func TestStreamsRefuseAForeignReceipt(t *testing.T) {
	_, server := opentest.Virtual(t)
	v, _ := queueimpl.Find("streams")
	q := v.New(opentest.Env(t, server, clock.Real{}), queueimpl.Options{}).(queueimpl.Acker)
	for _, receipt := range []string{"7", "1-1/x/c", "1-1/1/"} {
		err := q.Ack(t.Context(), newName(), queueimpl.Task{ID: "a", Receipt: receipt})
		if !errors.Is(err, queueimpl.ErrBadCall) {
			t.Errorf("ack with the receipt %q answered %v; want %v", receipt, err, queueimpl.ErrBadCall)
		}
	}
}
