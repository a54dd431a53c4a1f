package mux

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// batch is the number of commands at which a pipeline is full; the last request may exceed it. More commands would add
// latency but no throughput.
const batch = 64

// wakes is the number of places in a batch reserved for clients whose pause has ended, if there are any. Without
// it, clients that keep sending would starve those that wait.
const wakes = batch / 2

// pollPipes is the number of connections from a worker to a server for clients that hold no lock. While the server
// executes one batch, the replies of another are delivered and the next is filled. With one connection the server
// and the worker wait for each other, and reach two thirds of the throughput. With three, each
// command takes longer, because more are under way, and the throughput is the same.
const pollPipes = 2

// PipesPerNode is the number of connections from a worker to each server.
const PipesPerNode = pollPipes + 1

// backlog is the number of queued requests at which clients whose pause has ended are no longer resumed: their
// requests would only queue, and their intervals become wider.
const backlog = batch

// lane is a shared path from some of the clients of a worker to one server.
type lane struct {
	w *worker
	// poll: the lane is for clients that hold no lock. Clients whose pause has ended are resumed to fill its
	// batches.
	poll bool

	replied fifo[*request] // from clients that had a reply
	woken   fifo[*request] // from clients whose pause had ended

	pipes []*pipe
	busy  int // pipes with a batch in flight
}

// pipe is one connection, with one batch in flight at a time.
type pipe struct {
	lane  *lane
	conn  redis.UniversalClient // without the hook, with one connection
	busy  bool
	reqs  []*request // in flight
	cmds  []redis.Cmder
	begin chan struct{} // closed at the end
}

// lane creates a lane.
func (w *worker) lane(poll bool, conns ...redis.UniversalClient) *lane {
	l := &lane{w: w, poll: poll}
	for _, c := range conns {
		p := &pipe{lane: l, conn: c, begin: make(chan struct{}, 1)}
		l.pipes = append(l.pipes, p)
		go p.serve()
	}
	return l
}

// serve executes batches.
func (p *pipe) serve() {
	for range p.begin {
		batch := p.conn.Pipeline()
		_ = batch.BatchProcess(context.Background(), p.cmds...) // cannot fail
		_, _ = batch.Exec(context.Background())                 // each command holds its own error
		p.lane.w.post(mail{done: p})
	}
}

// ask queues a request.
func (l *lane) ask(r *request) {
	l.w.asked++
	if r.co.fresh {
		r.co.fresh = false
		l.woken.push(r)
	} else {
		l.replied.push(r)
	}
}

// fills reports whether there are enough requests for a full batch.
func (l *lane) fills() bool { return l.replied.len()+l.woken.len() >= batch }

// sends reports whether the lane may send a batch: a connection is free and there are requests, enough for a full
// batch if another batch is in flight.
func (l *lane) sends() bool {
	if l.busy == len(l.pipes) {
		return false
	}
	waiting := l.replied.len() + l.woken.len()
	if l.poll && !l.w.crowded() {
		waiting += l.w.due.len()
	}
	return waiting >= batch || waiting > 0 && l.busy == 0
}

// send sends as many batches as the lane may.
func (l *lane) send() {
	for l.sends() && l.fill() {
	}
}

// fill sends one batch. It reports whether there were any requests.
func (l *lane) fill() bool {
	p := l.free()
	p.reqs, p.cmds = p.reqs[:0], p.cmds[:0]
	kept := 0
	if l.poll {
		kept = min(wakes, l.woken.len()+l.w.due.len())
	}
	p.take(&l.replied, batch-kept)
	p.take(&l.woken, batch)
	for tries := 0; l.poll && len(p.cmds) < batch && tries < 2*batch && !l.w.crowded(); tries++ {
		co, any := l.w.due.pop()
		if !any {
			break
		}
		l.w.resume(co)
		p.take(&l.woken, batch)
	}
	p.take(&l.replied, batch)
	if len(p.cmds) == 0 {
		return false
	}
	l.w.sent += int64(len(p.cmds))
	p.busy = true
	l.busy++
	p.begin <- struct{}{}
	return true
}

// free returns a connection without a batch in flight.
func (l *lane) free() *pipe {
	for _, p := range l.pipes {
		if !p.busy {
			return p
		}
	}
	return nil
}

// take moves requests into the batch until it has most commands. The last request is not split.
func (p *pipe) take(from *fifo[*request], most int) {
	for len(p.cmds) < most {
		r, any := from.pop()
		if !any {
			return
		}
		p.lane.w.asked--
		if r.abandoned {
			continue
		}
		p.reqs = append(p.reqs, r)
		if r.one != nil {
			p.cmds = append(p.cmds, r.one)
		} else {
			p.cmds = append(p.cmds, r.many...)
		}
	}
}

// fifo is a queue in a growing ring buffer.
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
