package faults

import (
	"slices"
	"strings"

	"oversell/internal/limits"
	"oversell/internal/rediscmd"
)

// Parse reads a sentence: a verb, and then the parts that its kind takes, in any
// order. The error is a [*ParseError].
//
//	[before|after] COMMAND    the command and the side of it; without a side, a client is hit after it
//	key PATTERN               its first key, with * and ?
//	in OPERATION              what the client is about: acquire, buy, pop, …
//	holder, waiter            of the lock
//	client N, node N          counted from 1
//	D                         how long, how late, how far: 80ms, 3s, -2s
//	after D, empty            of a restart: how long it takes, and without data
//	requests, replies         one direction only
//	at D, every D             since the start of the load
//	for D, for good           how long it lasts
//	nth N, P%, always         which of the opportunities
//	times N, once             how often at most
//
// Keywords may be in capitals, commands in small letters, and the words a, an, of, on, the and then are allowed between
// parts. A fault without a number of times fires once, or without limit if it
// has every, P% or always.
func Parse(sentence string) (Fault, error) {
	r := &reader{sentence: sentence, words: wordsOf(sentence)}
	verb, ok := r.raw()
	if !ok {
		return Fault{}, &ParseError{Sentence: sentence, Message: "says nothing: a fault is like crash after SETNX 1%"}
	}
	kinds := kindsOf(verb)
	if len(kinds) == 0 {
		return Fault{}, r.errorAt(verb, "is not a fault: %s", nearestOr(verb.lower(), verbs()))
	}
	parts, err := r.parts()
	if err != nil {
		return Fault{}, err
	}
	f := Fault{Text: plain(r.words), Kind: choose(kinds, parts)}
	if err := r.check(f.Kind, verb, parts); err != nil {
		return Fault{}, err
	}
	for _, p := range parts {
		p.set(&f)
	}
	return f, r.complete(&f, parts)
}

// String returns the sentence.
func (f Fault) String() string { return f.Text }

// MarshalText implements encoding.TextMarshaler, for JSON and YAML.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.Text), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Fault) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*f = parsed
	return nil
}

// kindsOf returns the kinds that begin with a verb: at most two.
func kindsOf(verb word) (kinds []Kind) {
	for _, k := range Kinds {
		if verb.is(k.verb()) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// verbs returns the words with which sentences begin.
func verbs() (all []string) {
	for _, k := range Kinds {
		if !slices.Contains(all, k.verb()) {
			all = append(all, k.verb())
		}
	}
	return all
}

// choose picks the kind that acts on a client or the one that acts on a node.
func choose(kinds []Kind, parts []part) Kind {
	node := slices.ContainsFunc(parts, func(p part) bool { return p.takes == TakesNode })
	for _, k := range kinds {
		if (k.Level == OnServer) == node {
			return k
		}
	}
	return kinds[0]
}

// parts reads everything behind the verb.
func (r *reader) parts() (parts []part, err error) {
	for {
		w, ok := r.take()
		if !ok {
			return parts, nil
		}
		some, err := r.part(w)
		if err != nil {
			return nil, err
		}
		for _, p := range some {
			if i := slices.IndexFunc(parts, func(q part) bool { return q.takes == p.takes }); i >= 0 {
				return nil, r.errorAt(p.word, "repeats %q, which may be given once", parts[i].word.text)
			}
			parts = append(parts, p)
		}
	}
}

// check returns an error if the parts do not fit the kind or each other.
func (r *reader) check(k Kind, verb word, parts []part) error {
	for _, p := range parts {
		if !k.takes(p.takes) {
			return r.meaningless(k, p)
		}
	}
	for _, needed := range k.Requires {
		if find(parts, needed) == nil {
			return r.errorAt(verb, "needs %s: %s", needed, k.Syntax)
		}
	}
	return r.contradictions(parts)
}

func (k Kind) takes(p Part) bool {
	switch p {
	case TakesAt:
		return true
	case partEvery, partTimes:
		return k.repeats()
	}
	return slices.Contains(k.Takes, p)
}

// meaningless returns the error about a part that the kind does not take.
func (r *reader) meaningless(k Kind, p part) error {
	if p.takes == TakesFor && k.takes(TakesAmount) {
		return r.errorAt(p.word, `means nothing here; the duration stands alone, without "for": %s`, k.Syntax)
	}
	return r.errorAt(p.word, "means nothing here: %s", k.Syntax)
}

// contradictions finds two parts that exclude each other.
func (r *reader) contradictions(parts []part) error {
	for _, pair := range [][2]Part{
		{TakesNth, TakesChance}, {TakesNth, partEvery}, {TakesNth, partTimes},
	} {
		if a, b := find(parts, pair[0]), find(parts, pair[1]); a != nil && b != nil {
			return r.clash(a, b)
		}
	}
	chance, often := find(parts, TakesChance), find(parts, partTimes)
	if chance != nil && chance.word.is(always) {
		for _, other := range []*part{often, find(parts, partEvery)} {
			if other != nil {
				return r.clash(chance, other)
			}
		}
	}
	if every := find(parts, partEvery); every != nil && often != nil && often.word.is("once") {
		return r.clash(every, often)
	}
	return nil
}

// clash points at the later of two parts.
func (r *reader) clash(a, b *part) error {
	if a.word.offset > b.word.offset {
		a, b = b, a
	}
	return r.errorAt(b.word, "does not go with %q", a.word.text)
}

func find(parts []part, kind Part) *part {
	if i := slices.IndexFunc(parts, func(p part) bool { return p.takes == kind }); i >= 0 {
		return &parts[i]
	}
	return nil
}

// complete fills in missing parts, and checks the fault as a whole.
func (r *reader) complete(f *Fault, parts []part) error {
	if amount := find(parts, TakesAmount); amount != nil {
		if err := r.checkAmount(f, amount); err != nil {
			return err
		}
	}
	if f.Kind.Complete != nil {
		f.Kind.Complete(f)
	}
	if f.Kind.timed() {
		return r.timetable(f, parts)
	}
	return nil
}

// timetable completes and checks the times of a fault that fires at times.
func (r *reader) timetable(f *Fault, parts []part) error {
	at, every, often := find(parts, TakesAt), find(parts, partEvery), find(parts, partTimes)
	switch {
	case often != nil && every == nil && f.When.Times > 1:
		return r.errorAt(often.word, "needs to know how often, as in: every 5s times 3")
	case f.When.ForGood && every != nil:
		if lasting := find(parts, TakesFor); lasting != nil {
			return r.clash(every, lasting)
		}
		return r.meaningless(f.Kind, *every)
	case at != nil:
	case every != nil:
		f.When.At = f.When.Every
	default:
		f.When.At = firstScheduled
	}
	return nil
}

// checkAmount: a clock's step may be negative, a restart may take no time, and every other duration is positive.
func (r *reader) checkAmount(f *Fault, amount *part) error {
	limit := "time"
	if f.Kind.verb() == kindClock.Name {
		limit = "clock"
	}
	if err := limits.Fault.Within(limit, float64(f.Amount)); err != nil && (f.Amount > 0 || limit == "clock") {
		return r.errorAt(amount.word, "%v", err)
	}
	switch {
	case f.Kind.verb() == kindClock.Name && f.Amount == 0:
		return r.errorAt(amount.word, "moves no clock")
	case f.Kind.verb() == kindClock.Name, amount.word.is("after"):
		return nil
	case f.Amount < 0:
		return r.errorAt(amount.word, "is negative")
	case f.Amount == 0 && f.Kind.Name != kindRestart.Name:
		return r.errorAt(amount.word, "is too short")
	}
	return nil
}

// commandNames returns the known commands, in capitals.
func commandNames() (names []string) {
	for _, c := range rediscmd.All() {
		if !strings.Contains(c.Name, "|") {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}
