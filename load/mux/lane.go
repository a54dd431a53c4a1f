package mux

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// batch is how many commands go into one pipeline: more adds latency and no throughput.
const batch = 64

// wakes is how many places of a batch are kept for clients whose pause is over, while
// there are any: without, clients that go on asking would keep those who wait from ever
// asking again.
const wakes = batch / 2

// LanesPerNode is how many connections a worker has to each server: one for clients that
// hold a lock, and one for all others.
const LanesPerNode = 2

// backlog is how many requests may wait in a worker's lanes before nobody is resumed whose
// pause is over: what clients ask then would only wait in a line, and its interval would be
// the wider for it.
const backlog = 4 * batch

// lane is one connection of a worker to one server, with one batch under way at a time.
type lane struct {
	w    *worker
	conn redis.UniversalClient // without the hook, and with one connection
	// poll: the lane is for clients that hold no lock. Clients whose pause is over are resumed
	// to fill its batches.
	poll bool

	replied fifo[*request] // asked by those who had a reply
	woken   fifo[*request] // asked by those whose pause was over

	busy  bool
	reqs  []*request // under way
	spare []*request // an empty slice for the next batch
	cmds  []redis.Cmder
	begin chan struct{} // closed at the end
}

func (w *worker) lane(conn redis.UniversalClient, poll bool) *lane {
	l := &lane{w: w, conn: conn, poll: poll, begin: make(chan struct{}, 1)}
	go l.serve()
	return l
}

// serve executes batches.
func (l *lane) serve() {
	for range l.begin {
		p := l.conn.Pipeline()
		_ = p.BatchProcess(context.Background(), l.cmds...) // cannot fail
		_, _ = p.Exec(context.Background())                 // each command holds its error
		l.w.post(mail{done: l})
	}
}

// ask enters a request.
func (l *lane) ask(r *request) {
	l.w.asked++
	if r.co.fresh {
		r.co.fresh = false
		l.woken.push(r)
	} else {
		l.replied.push(r)
	}
}

// fills reports whether there is enough for a whole batch.
func (l *lane) fills() bool { return l.replied.len()+l.woken.len() >= batch }

// send begins a batch, if the lane is free and anything is to be sent.
func (l *lane) send() {
	if l.busy {
		return
	}
	l.reqs, l.cmds = l.reqs[:0], l.cmds[:0]
	kept := 0
	if l.poll {
		kept = min(wakes, l.woken.len()+l.w.due.len())
	}
	l.take(&l.replied, batch-kept)
	l.take(&l.woken, batch)
	for tries := 0; l.poll && len(l.cmds) < batch && tries < 2*batch && !l.w.crowded(); tries++ {
		co, any := l.w.due.pop()
		if !any {
			break
		}
		l.w.resume(co)
		l.take(&l.woken, batch)
	}
	l.take(&l.replied, batch)
	if len(l.cmds) == 0 {
		return
	}
	l.w.sent += int64(len(l.cmds))
	l.busy = true
	l.begin <- struct{}{}
}

// take moves requests into the batch, up to a size of it.
func (l *lane) take(from *fifo[*request], most int) {
	for len(l.cmds) < most {
		r, any := from.pop()
		if !any {
			return
		}
		l.w.asked--
		if r.abandoned {
			continue
		}
		l.reqs = append(l.reqs, r)
		if r.one != nil {
			l.cmds = append(l.cmds, r.one)
		} else {
			l.cmds = append(l.cmds, r.many...)
		}
	}
}

// fifo is a queue in a ring that grows.
type fifo[T any] struct {
	ring  []T
	first int
	n     int
}

func (f *fifo[T]) len() int { return f.n }

func (f *fifo[T]) push(v T) {
	if f.n == len(f.ring) {
		grown := make([]T, max(64, 2*len(f.ring)))
		copied := copy(grown, f.ring[f.first:])
		copy(grown[copied:], f.ring[:f.first])
		f.ring, f.first = grown, 0
	}
	f.ring[(f.first+f.n)%len(f.ring)] = v
	f.n++
}

func (f *fifo[T]) pop() (v T, any bool) {
	if f.n == 0 {
		return v, false
	}
	var none T
	v, f.ring[f.first] = f.ring[f.first], none
	f.first = (f.first + 1) % len(f.ring)
	f.n--
	return v, true
}
