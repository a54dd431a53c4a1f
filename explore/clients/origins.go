package clients

import (
	"reflect"

	"oversell/explore/rules"
	"oversell/history"
	"oversell/internal/coro"
)

// A command belongs to the operation that its client has under way. A lock may also send commands in the background, after the
// operation that began them has returned: a release that deletes the key in a goroutine of its own has done that as a release.

// During returns the kind of the operation to which a pending request belongs: the innermost that has not returned or, for one that was
// made in the background, a release or an extension that has.
func (n *Node) During(which int) history.Kind {
	if n.origins == nil {
		return n.innermost()
	}
	return n.origins[which]
}

// innermost returns the kind of the innermost operation that has not returned.
func (n *Node) innermost() history.Kind {
	if len(n.under) == 0 {
		return history.NoKind
	}
	return n.under[len(n.under)-1]
}

// concernsHolder reports whether an operation is made by a client that has been granted the lock.
func concernsHolder(k history.Kind) bool { return k == history.Release || k == history.Extend }

// origins returns what During returns for each request of a new node; nil if all belong to the innermost operation. which is the request
// of its parent that was answered, and events are those since.
func (t *Trie) origins(n, parent *Node, which int, events []rules.Event) []history.Kind {
	inner := n.innermost()
	if parent == nil || concernsHolder(inner) {
		return nil
	}
	began := history.NoKind // the last release or extension on the way here
	for _, e := range events {
		if concernsHolder(e.Op.Kind) {
			began = e.Op.Kind
		}
	}
	kinds, differ := make([]history.Kind, len(n.Pending)), false
	for i := range n.Pending {
		kinds[i] = t.origin(n, parent, i, which, began)
		differ = differ || kinds[i] != inner
	}
	if !differ {
		return nil
	}
	return kinds
}

// origin is origins for request i.
func (t *Trie) origin(n, parent *Node, i, which int, began history.Kind) history.Kind {
	r := &n.Pending[i]
	inner, before := n.innermost(), ThreadAt(parent.Pending, r.Thread)
	beside := t.checked && r.Thread > 0 // in bubbles, numbers do not tell a client's own thread
	switch {
	case before >= 0 && before != which && reflect.DeepEqual(parent.Pending[before], *r):
		return parent.During(before) // it waits for an answer still
	case !beside && (r.Kind == coro.Pause || r.Kind == coro.Boundary):
		return inner // only a client's own thread has those
	case began != history.NoKind && (inner == history.NoKind || beside && before < 0):
		return began
	case before == which && (beside || inner == history.NoKind):
		return parent.During(which)
	}
	return inner
}
