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

// pollPipes is how many connections a worker has to a server for clients that hold no lock.
// While the server executes what came by one, replies of another are handed out and the next
// batch is gathered. With one alone, the server and the worker wait for one another, and reach
// two thirds of the commands.
const pollPipes = 3

// PipesPerNode is how many connections a worker has to each server.
const PipesPerNode = pollPipes + 1

// backlog is how many requests may wait in a worker's lanes before nobody is resumed whose
// pause is over: what clients ask then would only wait in a line, and its interval would be
// the wider for it.
const backlog = 4 * batch

// lane is what some of the clients of a worker share to one server.
type lane struct {
	w *worker
	// poll: the lane is for clients that hold no lock. Clients whose pause is over are resumed
	// to fill its batches.
	poll bool

	replied fifo[*request] // asked by those who had a reply
	woken   fifo[*request] // asked by those whose pause was over

	pipes []*pipe
	busy  int // how many of them have a batch under way
}

// pipe is one connection, with one batch under way at a time.
type pipe struct {
	lane  *lane
	conn  redis.UniversalClient // without the hook, and with one connection
	busy  bool
	reqs  []*request // under way
	cmds  []redis.Cmder
	begin chan struct{} // closed at the end
}

// lane makes one of these connections.
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
		_, _ = batch.Exec(context.Background())                 // each command holds its error
		p.lane.w.post(mail{done: p})
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

// sends reports whether the lane may begin a batch: there is a connection for it and anything
// to send, which is enough for a whole batch if another one is under way.
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

// send begins batches, as many as the lane may.
func (l *lane) send() {
	for l.sends() && l.fill() {
	}
}

// fill begins one batch. It reports whether there was anything for it.
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

// free is a connection without a batch under way.
func (l *lane) free() *pipe {
	for _, p := range l.pipes {
		if !p.busy {
			return p
		}
	}
	return nil
}

// take moves requests into the batch, up to a size of it.
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
