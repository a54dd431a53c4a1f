package faults

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/history"
	"oversell/internal/limits"
	"oversell/internal/rediscmd"
	"oversell/variant"
	"oversell/wire"
)

// part is a parsed part of a sentence.
type part struct {
	takes Part
	// word is the word to which errors about the part point.
	word word
	set  func(*Fault)
}

// Parts that are in no list of Kind.Takes: they concern the time, and have rules of their own.
const (
	partEvery Part = "every D"
	partTimes Part = "how often"
)

// always is "P%" with probability 1. The word distinguishes it from 100%.
const always = "always"

// keywords begin a part or are one.
var keywords = []string{
	"before", "after", "key", "in", "holder", "waiter", "client", "node", "empty", "requests", "replies",
	"at", "every", "for", "nth", "times", "once", always,
}

// part reads the part that begins with w. Some words are two parts: "after SETNX".
func (r *reader) part(w word) ([]part, error) {
	switch w.lower() {
	case "before":
		return r.side(w, Before)
	case "after":
		if r.atDuration() {
			return r.downtime(w)
		}
		return r.side(w, After)
	case "key":
		return r.key(w)
	case "in":
		return r.during(w)
	case "holder", "waiter":
		return one(TakesState, w, func(f *Fault) { f.Where.State = State(w.lower()) })
	case "client":
		return r.number(TakesClient, w, func(f *Fault, n int64) { f.Where.Client = int(n) })
	case "node":
		return r.number(TakesNode, w, func(f *Fault, n int64) { f.Where.Node = int(n) })
	case "empty":
		return one(TakesEmpty, w, func(f *Fault) { f.Empty = true })
	case "requests", "replies":
		return one(TakesDirection, w, func(f *Fault) { f.Where.Direction = wire.Direction(w.lower()) })
	case "at":
		return r.time(TakesAt, w, 0, func(f *Fault, d time.Duration) { f.When.At = d })
	case "every":
		return r.time(partEvery, w, briefest, func(f *Fault, d time.Duration) { f.When.Every = d })
	case "for":
		return r.lasting(w)
	case "nth":
		return r.number(TakesNth, w, func(f *Fault, n int64) { f.When.Nth = n })
	case "times":
		return r.number(partTimes, w, func(f *Fault, n int64) { f.When.Times = n })
	case "once":
		return one(partTimes, w, func(f *Fault) { f.When.Times = 1 })
	case always:
		return one(TakesChance, w, func(f *Fault) { f.When.Chance = 1 })
	}
	return r.bare(w)
}

func one(p Part, w word, set func(*Fault)) ([]part, error) { return []part{{p, w, set}}, nil }

// bare reads a part without a keyword: a duration, a percentage or a command.
func (r *reader) bare(w word) ([]part, error) {
	switch {
	case strings.HasSuffix(w.text, "%"):
		p, err := r.percentage(w)
		return []part{{TakesChance, w, func(f *Fault) { f.When.Chance = p }}}, err
	case strings.ContainsRune("+-.0123456789", rune(w.text[0])):
		d, err := r.duration(w)
		if err == nil && d != 0 && d.Abs() < briefest {
			err = r.errorAt(w, "is too short: %v at least", briefest)
		}
		return []part{{TakesAmount, w, func(f *Fault) { f.Amount = d }}}, err
	}
	name, err := r.command(w)
	return []part{{TakesCommand, w, func(f *Fault) { f.Where.Command = name }}}, err
}

// side reads "before COMMAND" and "after COMMAND".
func (r *reader) side(w word, m Moment) ([]part, error) {
	c, ok := r.take()
	if !ok {
		return nil, r.errorAt(w, "needs a command behind it, as in: %s SETNX", m)
	}
	name := ""
	if k, known := rediscmd.Find(c.text); known { // CLIENT, say, which is a keyword elsewhere
		name = k.Name
	} else {
		var err error
		if name, err = r.command(c); err != nil {
			return nil, err
		}
	}
	return []part{
		{TakesMoment, w, func(f *Fault) { f.Where.Moment = m }},
		{TakesCommand, c, func(f *Fault) { f.Where.Command = name }},
	}, nil
}

// downtime reads "after D", which is how long a restart takes.
func (r *reader) downtime(w word) ([]part, error) {
	d, err := r.durationBehind(w, 0)
	if err != nil {
		return nil, err
	}
	if !r.words[0].is(kindRestart.Name) {
		return nil, r.errorAt(w, "needs a command behind it; a duration that is not the downtime of a restart stands alone")
	}
	return one(TakesAmount, w, func(f *Fault) { f.Amount = d })
}

func (r *reader) key(w word) ([]part, error) {
	pattern, ok := r.raw()
	if !ok {
		return nil, r.errorAt(w, "needs a pattern behind it, as in: key Lock:*")
	}
	return one(TakesKey, w, func(f *Fault) { f.Where.Key = pattern.text })
}

// operations are the operations in which clients can be.
var operations = func() (names []string) {
	for k := history.NoKind + 1; !strings.HasPrefix(k.String(), "?"); k++ {
		if k != history.Fault {
			names = append(names, k.String())
		}
	}
	return names
}()

func (r *reader) during(w word) ([]part, error) {
	o, ok := r.take()
	if !ok {
		return nil, r.errorAt(w, "needs an operation behind it, as in: in acquire")
	}
	if !slices.Contains(operations, o.lower()) {
		return nil, r.errorAt(o, "is not an operation: %s", nearestOr(o.lower(), operations))
	}
	return one(TakesDuring, w, func(f *Fault) { f.Where.During = o.lower() })
}

func (r *reader) number(p Part, w word, set func(*Fault, int64)) ([]part, error) {
	v, ok := r.take()
	if !ok {
		return nil, r.errorAt(w, "needs a number behind it, as in: %s 3", w.lower())
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange): // n is the nearest number that exists
	case err != nil || n < 1:
		return nil, r.errorAt(v, "is not a number of 1 or more, as in: %s 3", w.lower())
	}
	if err := limits.Fault.Within(w.lower(), float64(n)); err != nil {
		return nil, r.errorAt(v, "%v", err)
	}
	return one(p, w, func(f *Fault) { set(f, n) })
}

// briefest is the shortest time that can matter: a command takes about as long.
const briefest = 100 * time.Microsecond

func (r *reader) time(p Part, w word, least time.Duration, set func(*Fault, time.Duration)) ([]part, error) {
	d, err := r.durationBehind(w, least)
	return []part{{p, w, func(f *Fault) { set(f, d) }}}, err
}

// lasting reads "for D" and "for good".
func (r *reader) lasting(w word) ([]part, error) {
	rest := *r
	if v, ok := rest.take(); ok && v.is("good") {
		*r = rest
		return one(TakesFor, w, func(f *Fault) { f.When.ForGood = true })
	}
	return r.time(TakesFor, w, briefest, func(f *Fault, d time.Duration) { f.When.For = d })
}

// atDuration reports whether the next word is a duration or looks like one.
func (r *reader) atDuration() bool {
	rest := *r
	w, ok := rest.take()
	return ok && strings.ContainsRune("+-.0123456789", rune(w.text[0])) && !strings.HasSuffix(w.text, "%")
}

// durationBehind reads a duration of at least least after a keyword.
func (r *reader) durationBehind(w word, least time.Duration) (time.Duration, error) {
	v, ok := r.take()
	if !ok {
		return 0, r.errorAt(w, "needs a duration behind it, as in: %s 5s", w.lower())
	}
	d, err := r.duration(v)
	if err == nil && d < least {
		err = r.errorAt(v, "is too short: %v at least", least)
		if d < 0 {
			err = r.errorAt(v, "is negative")
		}
	}
	if err == nil {
		if over := limits.Fault.Within("time", float64(d)); over != nil {
			err = r.errorAt(v, "%v", over)
		}
	}
	return d, err
}

func (r *reader) duration(w word) (time.Duration, error) {
	d, err := time.ParseDuration(w.text)
	switch _, number := strconv.ParseFloat(w.text, 64); {
	case err == nil && (d != 0 || strings.ContainsAny(w.text, "hms")):
		return d, nil
	case number == nil:
		return 0, r.errorAt(w, "is a number without a unit: a duration is like 80ms, 3s or 1m30s")
	case durationForm.MatchString(w.text): // out of range; callers say what the range is
		if strings.HasPrefix(w.text, "-") {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	return 0, r.errorAt(w, "is not a duration: one is like 80ms, 3s or 1m30s")
}

// percentage reads "P%" as a probability.
func (r *reader) percentage(w word) (float64, error) {
	digits := strings.TrimSuffix(w.text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.Trim(digits, "0123456789.") != "" {
		return 0, r.errorAt(w, "is not a percentage: one is like 1%% or 0.5%%")
	}
	if p /= 100; p <= 0 || p > 1 {
		return 0, r.errorAt(w, "is not a probability above 0%% and up to 100%%")
	}
	return p, nil
}

// durationForm matches what time.ParseDuration accepts if the number is not too large.
var durationForm = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+$`)

var commandForm = regexp.MustCompile(`^[A-Z][A-Z0-9.|_-]*$`)

// command reads the name of a command. Commands of modules and of newer servers are not known; to distinguish them from
// misspelt words they must be in capitals.
func (r *reader) command(w word) (string, error) {
	upper := strings.ToUpper(w.text)
	name, _, _ := strings.Cut(upper, "|")
	if !commandForm.MatchString(upper) {
		return "", r.notUnderstood(w)
	}
	if _, known := rediscmd.Find(name); known {
		return upper, nil
	}
	deliberate := strings.Contains(upper, ".") || upper == w.text
	if !deliberate || slices.Contains(verbs(), w.lower()) || len(w.text) > 3 && len(slip(w.lower(), keywords)) > 0 {
		return "", r.notUnderstood(w)
	}
	return upper, nil
}

// notUnderstood returns the error about a word that is not in the language, with a suggestion.
func (r *reader) notUnderstood(w word) error {
	if slices.Contains(verbs(), w.lower()) {
		return r.errorAt(w, "begins another fault: give each a sentence of its own")
	}
	switch meant := likeliest(w.text); meant {
	case "":
	case w.lower():
		return r.errorAt(w, "does not belong here")
	default:
		return r.errorAt(w, "is not understood: did you mean %s?", meant)
	}
	if commandForm.MatchString(strings.ToUpper(w.text)) {
		return r.errorAt(w, "is not understood; a command that is not known here must be in capitals")
	}
	return r.errorAt(w, "is not understood")
}

// likeliest returns the word of the language that is most like a misspelt one.
func likeliest(word string) string {
	lower, upper := strings.ToLower(word), strings.ToUpper(word)
	for _, in := range [][]string{slip(lower, keywords), slip(upper, commandNames()), nearest(lower, keywords), nearest(upper, commandNames())} {
		if len(in) > 0 {
			return in[0]
		}
	}
	return ""
}

// slip returns the names that differ from a word by one typing error.
func slip(word string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !oneSlip(word, n) })
}

// nearest returns the names most similar to a word, without names so short that they resemble any word.
func nearest(word string, names []string) []string {
	return variant.Nearest(word, slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return len(n) < 3 || max(len(n), len(word))-min(len(n), len(word)) > 2
	}))
}

// nearestOr proposes the names most like one, or else all.
func nearestOr(name string, names []string) string {
	if near := variant.Nearest(name, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "it is one of " + strings.Join(names, ", ")
}

// oneSlip reports whether two words differ by one letter, or by two that changed
// places.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i < len(a) && (a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}
