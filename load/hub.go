package load

import (
	"container/list"
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// hub receives releases on one subscription for all clients of the engine. A release wakes the waiter that came first:
// waking all would cause a thundering herd in which all but one try in vain.
type hub struct {
	sub *redis.PubSub
	all bool // a release wakes every waiter, because the lock itself chooses the next

	mu      sync.Mutex
	waiting map[string]*list.List // of chan struct{}, by lock, in order of arrival
	unheard map[string]bool       // locks released while no client waited: the next waiter tries at once
}

func newHub(ctx context.Context, c redis.UniversalClient, all bool) (*hub, error) {
	h := &hub{all: all, sub: c.PSubscribe(ctx, wakeChannel("*")), waiting: map[string]*list.List{}, unheard: map[string]bool{}}
	if _, err := h.sub.Receive(ctx); err != nil { // the confirmation
		h.sub.Close()
		return nil, err
	}
	messages := h.sub.Channel(redis.WithChannelSize(1024))
	go func() {
		for m := range messages {
			h.wake(lockOf(m.Channel))
		}
	}()
	return h, nil
}

// publish announces a release. A lost message costs one waiter its retry interval, so the error is ignored.
func (h *hub) publish(ctx context.Context, c redis.UniversalClient, name string) {
	c.Publish(ctx, wakeChannel(name), "")
}

// wait queues for the next release of the lock. leave must be called.
func (h *hub) wait(name string) (woken <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.waiting[name]
	if l == nil {
		l = list.New()
		h.waiting[name] = l
	}
	ch := make(chan struct{})
	if h.unheard[name] {
		h.unheard[name] = false
		close(ch)
		return ch, func() {}
	}
	e := l.PushBack(ch)
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		l.Remove(e)
	}
}

func (h *hub) wake(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.waiting[name]
	if l == nil || l.Len() == 0 {
		h.unheard[name] = true
		return
	}
	for l.Len() > 0 {
		close(l.Remove(l.Front()).(chan struct{}))
		if !h.all {
			return
		}
	}
}

func (h *hub) close() { h.sub.Close() }
