package clients

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Histories of a client are merged where its objects hold the same, or its threads have observed the same. The client's
// next step has been compared by then; later steps have been tried after only one of the histories. So when a search
// has found nothing, the code is executed with the others too, up to the client's end. A program with memory that its
// objects do not show, such as a process that counts its refusals, behaves differently after one of them.

// Compared says how many of the merged histories were executed.
type Compared struct{ done, all float64 }

// Add adds the counts.
func (c Compared) Add(d Compared) Compared { return Compared{c.done + d.done, c.all + d.all} }

// Sentence says which histories were not executed; "" if all were.
func (c Compared) Sentence() string {
	if c.done >= c.all {
		return ""
	}
	return fmt.Sprintf("whether a client remembers more than its variant's objects hold: only %.0f of %.4g merged histories were executed to their ends", c.done, c.all)
}

// histories are all ways to the nodes of a trie.
type histories struct {
	trie *Trie
	// into and onward are the edges to and from each node. merged are the edges by which their node was not made.
	into, onward [][]edgeKey
	merged       []edgeKey
	ends         []uint32 // nodes without onward edges
	counts       []float64
}

func (t *Trie) histories() *histories {
	h := &histories{trie: t, into: make([][]edgeKey, t.nodes.len()), onward: make([][]edgeKey, t.nodes.len())}
	for key, to := range t.children {
		h.into[to.node] = append(h.into[to.node], key)
		h.onward[key.From] = append(h.onward[key.From], key)
		if n := t.nodes.get(to.node); n.by != key {
			h.merged = append(h.merged, key)
		}
	}
	for id := range h.into {
		slices.SortFunc(h.into[id], byEdge)
		slices.SortFunc(h.onward[id], byEdge)
		if len(h.onward[id]) == 0 && len(h.into[id]) > 0 {
			h.ends = append(h.ends, uint32(id))
		}
	}
	slices.SortFunc(h.merged, byEdge)
	h.counts = make([]float64, len(h.into))
	for _, end := range h.ends {
		h.count(end)
	}
	return h
}

func byEdge(a, b edgeKey) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Which, b.Which), cmp.Compare(a.Answer, b.Answer), cmp.Compare(a.Now, b.Now), cmp.Compare(a.Looks, b.Looks))
}

// count returns how many ways there are to a node.
func (h *histories) count(to uint32) float64 {
	if to == 0 {
		return 1
	}
	if h.counts[to] == 0 {
		for _, key := range h.into[to] {
			h.counts[to] += h.count(key.From)
		}
	}
	return h.counts[to]
}

// path returns way number k of those to a node.
func (h *histories) path(to uint32, k float64) []edgeKey {
	var path []edgeKey
	for to != 0 {
		into := h.into[to]
		i := 0
		for ; i < len(into)-1 && k >= h.count(into[i].From); i++ {
			k -= h.count(into[i].From)
		}
		path = append(path, into[i])
		to = into[i].From
	}
	slices.Reverse(path)
	return path
}

// sample returns a random history that passes a merged edge.
func (h *histories) sample(r *rand.Rand) []edgeKey {
	by := h.merged[r.IntN(len(h.merged))]
	path := append(h.path(by.From, r.Float64()*h.count(by.From)), by)
	for at := h.trie.children[by].node; len(h.onward[at]) > 0; {
		next := h.onward[at][r.IntN(len(h.onward[at]))]
		path = append(path, next)
		at = h.trie.children[next].node
	}
	return path
}

// own reports whether the nodes of a path were made along it.
func (h *histories) own(path []edgeKey) bool {
	return !slices.ContainsFunc(path, func(key edgeKey) bool { return h.trie.nodes.get(h.trie.children[key].node).by != key })
}

// Compare executes merged histories to their ends with so many workers, all of them if there are at most most, until
// ctx ends. The search must have ended.
func (t *Trie) Compare(ctx context.Context, most, workers int) (c Compared, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.histories()
	if len(h.merged) == 0 {
		return c, nil
	}
	before := []float64{} // ways to the ends before each
	for _, end := range h.ends {
		before = append(before, c.all)
		c.all += h.count(end)
	}
	r := rand.New(rand.NewPCG(1, uint64(len(h.merged))))
	number := func(k float64) []edgeKey {
		i, exact := slices.BinarySearch(before, k)
		if !exact {
			i--
		}
		return h.path(h.ends[i], k-before[i])
	}
	next := func(i int) []edgeKey {
		if i%2 == 0 {
			return h.sample(r) // rare ways as well
		}
		return number(r.Float64() * c.all)
	}
	if c.all <= float64(most) {
		order := r.Perm(int(c.all))
		most = len(order)
		next = func(i int) []edgeKey { return number(float64(order[i])) }
	}
	var mu sync.Mutex // guards what follows
	taken, failed := 0, most
	take := func() (i int, path []edgeKey) {
		mu.Lock()
		defer mu.Unlock()
		if i = taken; i >= failed || ctx.Err() != nil {
			return i, nil
		}
		taken++
		return i, next(i)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i, path := take(); path != nil; i, path = take() {
				if h.own(path) {
					continue
				}
				if bad := t.follow(path); bad != nil {
					mu.Lock()
					if i < failed {
						failed, err = i, bad // always the first, however many workers search
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	c.done = float64(min(taken, failed))
	return c, err
}

// follow executes a history and compares it with the nodes on its way.
func (t *Trie) follow(path []edgeKey) error {
	r := t.run(0)
	defer func() { r.Code.Close() }()
	err := t.same(r, t.nodes.get(0))
	for i := 0; i < len(path) && err == nil; i++ {
		to := t.children[path[i]]
		n := t.nodes.get(to.node)
		r.Resume(int(path[i].Which), t.observation(t.nodes.get(path[i].From), path[i]))
		if err = r.failed(); err == nil {
			err = t.sameAfter(r, n, slices.Concat(t.segments.Get(to.events), t.segments.Get(n.Held)))
		}
		if err != nil {
			return t.merging(to.node, err)
		}
	}
	return err
}
