package clients

import (
	"context"
	"time"
)

// Repeat executes the code again, so that choices which it makes at random show: along all lists of observations to which no other was
// added, over and over, until most executions have been started, or at least some and the time has come. It returns an error if one
// behaved differently.
func (t *Trie) Repeat(ctx context.Context, least, most int64, until time.Time) error {
	if !t.checked {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for leaves := t.leaves(); len(leaves) > 0; {
		for _, id := range leaves {
			if n := t.Executions(); n >= most || n >= least && time.Now().After(until) || ctx.Err() != nil {
				return nil
			}
			r, err := t.replay(id, 0, false)
			if err != nil {
				return err
			}
			r.Code.Close()
		}
	}
	return nil
}

// leaves returns the nodes without a child.
func (t *Trie) leaves() (all []uint32) {
	parents := map[uint32]bool{}
	for id := uint32(1); id < uint32(t.nodes.len()); id++ {
		parents[t.nodes.get(id).parent] = true
	}
	for id := range uint32(t.nodes.len()) {
		if !parents[id] && (id == 0 || id != t.end && id != t.died) {
			all = append(all, id)
		}
	}
	return all
}
