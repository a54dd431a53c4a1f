package faults

import (
	"slices"
	"time"

	"oversell/server"
	"oversell/variant"
	"oversell/wire"
)

// Errorf returns an error about a part of the fault's sentence, with its position. It
// points at the first word if the sentence lacks the part.
func (f Fault) Errorf(p Part, format string, args ...any) error {
	r := &reader{sentence: f.Text, words: wordsOf(f.Text)}
	at, _ := r.raw()
	if parts, err := r.parts(); err == nil {
		if named := find(parts, p); named != nil {
			at = named.word
		}
	}
	return r.errorAt(at, format, args...)
}

// FitsServers returns nil if the fault can matter on these servers, or names none of
// them. others are the faults of the run, and masters is how many independent masters its clients use; 0: all.
func (f Fault) FitsServers(all []server.Member, others []Fault, masters int) error {
	n := f.Where.Node
	if n == 0 {
		return nil
	}
	if n > len(all) {
		return f.Errorf(TakesNode, "names node %d, and the servers are node 1 to node %d", n, len(all))
	}
	independent := !slices.ContainsFunc(all, func(s server.Member) bool { return s.Role != server.Master })
	helped := slices.ContainsFunc(others, func(o Fault) bool { return o.Kind.Level == OnServer && o.Text != f.Text })
	switch role := all[n-1].Role; {
	case slices.Contains(f.Kind.Provokes(f, forGood), variant.Failover): // it names a master by any of its servers
	case role == server.Sentinel && f.Kind.Level == OnWire:
		return f.Errorf(TakesNode, "names node %d, a sentinel: commands go to masters", n)
	case role != server.Master && !helped:
		return f.Errorf(TakesNode, "names node %d, a %s: no command goes there, unless another fault makes it a master", n, role)
	case independent && masters > 0 && n > masters:
		return f.Errorf(TakesNode, "names node %d, and the clients of this run use node 1 only", n)
	}
	return nil
}

// NeedsCommand reports whether the fault fires only at commands. The others fire at times, or at any client that holds
// a lock.
func (f Fault) NeedsCommand() bool {
	switch {
	case f.Kind.timed():
		return false
	case f.Kind.Disrupt == nil:
		return true
	}
	disruption := f.Kind.Disrupt(f)
	if disruption.Clock != 0 {
		return false
	}
	w := f.Where
	return disruption.needsCommand() || w.State != Holding || w.Moment != AnyMoment || w.Command != "" || w.Key != ""
}

// OfThread reports whether the fault spares a client's background threads, such
// as a renewal.
func (f Fault) OfThread() bool { return f.Kind.Disrupt != nil && f.Kind.Disrupt(f).ofThread() }

// Lateness is how late a command reaches the server after its client has given up
// on it; 0 for other faults.
func (f Fault) Lateness() time.Duration {
	if f.Kind.Rule == nil || f.Kind.Rule(f).Verb != wire.Late {
		return 0
	}
	return f.Amount
}
