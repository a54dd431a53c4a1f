package names

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNotOpaque reports that a program's behaviour depends on how its names are spelled.
var ErrNotOpaque = errors.New("what the client does depends on how names are spelled")

// spelled is an ErrNotOpaque with the seed of the spelling that made the difference.
type spelled struct {
	seed uint64
	err  error
}

func (e *spelled) Error() string { return ErrNotOpaque.Error() + ": " + e.err.Error() }

func (e *spelled) Unwrap() []error { return []error{ErrNotOpaque, e.err} }

// Spelled returns an ErrNotOpaque with the seed of b, whose spelling of the names made the difference.
func (b *Dictionary) Spelled(err error) error { return &spelled{b.seed, err} }

// ShownBy is the seed of the spelling in which an ErrNotOpaque showed; ok is false if it is not known.
func ShownBy(err error) (seed uint64, ok bool) {
	var s *spelled
	if !errors.As(err, &s) || s.seed == 0 {
		return 0, false
	}
	return s.seed, true
}

// ErrChance reports that a program behaved differently after the same observations, and
// that the difference is not a name.
var ErrChance = errors.New("it did not do the same again")

// ErrTaken reports that a program produced a text of its own with the form of a canonical name.
var ErrTaken = errors.New("a text of the program's own is spelled like the names that a search gives")

// taken is ErrTaken if the run says a canonical name though it has been shown none.
func (s *Stand) taken() error {
	if s.Book.seed == 0 || s.Book.scheme.Naming >= Concrete {
		return nil
	}
	return Taken(s.Texts)
}

// Taken is ErrTaken, and ErrNotOpaque, if there is a canonical name in one of the texts, which a program made up.
func Taken(texts []string) error {
	own := ""
	for _, t := range texts {
		Scan(t, func(begin, _, end int) { own = t[begin:end] })
		scanNumbers(t, func(begin int) { own = t[begin : begin+numberWidth] })
	}
	if own == "" {
		return nil
	}
	return fmt.Errorf("%w: %w: %s", ErrNotOpaque, ErrTaken, own)
}

// Stand is where a run stands: what it says there.
type Stand struct {
	Book *Dictionary
	// Shape is the part of the output that cannot hold names.
	Shape string
	// Texts are the texts of the output, in the names of the run.
	Texts []string
	// Says prints what the run is about to do; nil: no output.
	Says func() string
}

func (s *Stand) canonical() []string {
	texts := make([]string, len(s.Texts))
	for i, t := range s.Texts {
		texts[i] = s.Book.Canonical(t)
	}
	return texts
}

// differs says in what two runs differ; "": only in names.
func (s *Stand) differs(t *Stand) string {
	if s.Shape != t.Shape {
		return fmt.Sprintf("its next step was once %s, and another time %s", s.said(), t.said())
	}
	a, b := s.canonical(), t.canonical()
	for i := range a {
		if a[i] != b[i] {
			return saidBoth(a[i], b[i])
		}
	}
	return ""
}

func (s *Stand) said() string {
	if s.Says == nil {
		return fmt.Sprintf("%q", s.canonical())
	}
	return s.Book.Canonical(s.Says())
}

// samples is how many runs are compared to find the random parts of a text. The last digit of 16 random bytes in
// base64 has only four forms: it is the same in all of them once in 4^15 times.
const samples = 16

// Settle returns the canonical form of the output of runs with the same observations. more brings another run with the
// spelling of the first one to this place; known is how many values the program has drawn so far. It returns the texts
// and the new values.
func Settle(stands []*Stand, known int, more func() (*Stand, error)) (texts []string, drawn []Value, err error) {
	for _, s := range stands {
		if err := s.taken(); err != nil {
			return nil, nil, err
		}
	}
	a, unlike, shown := stands[0], "", stands[0].Book
	runs := stands[:1:1] // that spell names like a
	for _, b := range stands[1:] {
		if unlike == "" {
			unlike, shown = a.differs(b), b.Book
		}
		if a.Book.seed == b.Book.seed {
			if a.Shape != b.Shape {
				return nil, nil, fmt.Errorf("%w: %s", ErrChance, unlike)
			}
			runs = append(runs, b)
		}
	}
	if unlike == "" {
		return a.canonical(), nil, nil
	}
	for chance := len(runs) > 1; len(runs) < samples; {
		if !chance && len(runs) > samples/2 {
			return nil, nil, shown.Spelled(errors.New(unlike))
		}
		r, err := more()
		if err != nil {
			return nil, nil, err
		}
		if a.Shape != r.Shape {
			return nil, nil, fmt.Errorf("%w: %s", ErrChance, a.differs(r))
		}
		chance = chance || a.differs(r) != ""
		runs = append(runs, r)
	}
	for i := range a.Texts {
		if err := learn(runs, i, known, &drawn); err != nil {
			return nil, nil, err
		}
	}
	if err := a.Book.scheme.Seen.few(); err != nil {
		return nil, nil, err
	}
	texts = a.canonical()
	is := &Stand{Book: a.Book, Shape: a.Shape, Texts: texts}
	for _, b := range stands[1:] {
		if follow(b, is, drawn) != nil {
			return nil, nil, b.Book.Spelled(errors.New(unlike))
		}
	}
	return texts, drawn, nil
}

// learn makes names of the parts in which one text differs between runs.
func learn(runs []*Stand, text, known int, drawn *[]Value) error {
	said := make([]string, len(runs))
	for i, r := range runs {
		said[i] = r.Book.Canonical(r.Texts[text])
	}
	for _, parts := range varying(said) {
		if why := notName(parts); why != "" {
			return fmt.Errorf("%w: %s: %s", ErrChance, varied(said), why)
		}
		if parts[0] == runs[0].Book.Canonical(parts[0]) { // otherwise it is a name by now: it is there twice
			width := len(parts[0])
			if slices.ContainsFunc(parts, func(p string) bool { return len(p) != width || allDigits(p) }) {
				width = 0 // a number is sometimes shorter
			}
			v := runs[0].Book.scheme.random(known+len(*drawn), width)
			*drawn = append(*drawn, v)
			for i, r := range runs {
				r.Book.bind(v.Name, parts[i])
				r.Book.scheme.Seen.add(v.Name, parts[i], r.Book)
			}
		}
	}
	for _, r := range runs[1:] {
		if r.Book.Canonical(r.Texts[text]) != runs[0].Book.Canonical(runs[0].Texts[text]) {
			return fmt.Errorf("%w: %s", ErrChance, varied(said))
		}
	}
	return nil
}

// context is how much of two long texts is shown before and after the part in which they differ.
const context = 40

// saidBoth names two texts, and of long ones the part in which they differ.
func saidBoth(a, b string) string {
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	part := func(s string) string {
		from, to := max(0, begin-context), min(len(s), len(s)-end+context)
		if from > 0 {
			s, to = "…"+s[from:], to-from+len("…")
		}
		if to < len(s) {
			s = s[:to] + "…"
		}
		return s
	}
	return fmt.Sprintf("once it said %q, and then %q", part(a), part(b))
}

// varied names two different texts, of those that several runs have in one place.
func varied(said []string) string {
	other := slices.IndexFunc(said, func(text string) bool { return text != said[0] })
	if other < 0 {
		return fmt.Sprintf("it said %q", said[0])
	}
	return saidBoth(said[0], said[other])
}

// uuids are UUIDs as RFC 9562 writes them, or without hyphens.
var uuids = regexp.MustCompile(`(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[1-8][0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}`)

// isUUID reports whether a text is a UUID, and nothing else: most long random texts have the look of one in them.
func isUUID(text string) bool { return uuids.FindString(text) == text }

// inUUID widens the differing part of texts, after a beginning and before an end of these lengths, to the UUID that
// contains it in all of them, if there is one. A UUID is a new name by definition: two of one moment with a time and a
// node in them differ in only a few bits.
func inUUID(texts []string, begin, end int) (wideBegin, wideEnd int, is bool) {
	for _, at := range uuids.FindAllStringIndex(texts[0], -1) {
		if at[0] > begin || at[1] < len(texts[0])-end {
			continue
		}
		if !slices.ContainsFunc(texts, func(t string) bool {
			return len(t) != len(texts[0]) || uuids.FindString(t[at[0]:at[1]]) != t[at[0]:at[1]]
		}) {
			return at[0], len(texts[0]) - at[1], true
		}
	}
	return begin, end, false
}

// halfEscape is the beginning of an escape sequence at the end of a text: of random bytes that are quoted,
// most begin with one.
var halfEscape = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(\\(?:x[0-9a-fA-F]?|u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?)$`)

// separators separate values in a text.
const separators = ":|;, \"{}[]()"

// varying returns the differing parts of texts, each with all its alternatives.
func varying(texts []string) (parts [][]string) {
	begin, end := common(texts)
	if begin < 0 {
		return nil
	}
	if half := halfEscape.FindStringSubmatch(texts[0][:begin]); half != nil {
		begin -= len(half[1])
	}
	if b, e, is := inUUID(texts, begin, end); is {
		begin, end = b, e
	} else if t := texts[0]; allDigits(t[begin : len(t)-end]) { // a number is one value
		for begin > 0 && isDigit(t[begin-1]) {
			begin--
		}
		for end > 0 && isDigit(t[len(t)-end]) {
			end--
		}
	}
	middle := make([]string, len(texts))
	fields := make([][]string, len(texts))
	split := func(r rune) bool { return strings.ContainsRune(separators, r) }
	separator := func(r rune) rune {
		if split(r) {
			return r
		}
		return -1 // leave it out
	}
	several := true
	for i, t := range texts {
		middle[i] = t[begin : len(t)-end]
		fields[i] = strings.FieldsFunc(middle[i], split)
		several = several && len(fields[i]) == len(fields[0]) && len(fields[i]) > 1 && strings.Map(separator, middle[i]) == strings.Map(separator, middle[0])
	}
	if !several {
		return [][]string{middle}
	}
	for f := range fields[0] {
		var part []string
		for i := range fields {
			part = append(part, fields[i][f])
		}
		parts = append(parts, varying(part)...)
	}
	return parts
}

func allDigits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// common returns the lengths of the texts' common beginning and, apart from that, their common end; -1 if they are all
// the same.
func common(texts []string) (begin, end int) {
	first := texts[0]
	same := true
	begin, end = len(first), len(first)
	for _, t := range texts[1:] {
		same = same && t == first
		n := 0
		for n < min(begin, len(t)) && t[n] == first[n] {
			n++
		}
		begin = n
	}
	if same {
		return -1, 0
	}
	for _, t := range texts[1:] {
		n := 0
		for n < min(end, len(t)-begin, len(first)-begin) && t[len(t)-1-n] == first[len(first)-1-n] {
			n++
		}
		end = n
	}
	return begin, end
}

// leastRandom is the least number of random characters that make a value unique.
const leastRandom = 8

// notName says why the alternatives of one place in several runs cannot be values that are new each time.
func notName(parts []string) string {
	grows := true
	for i, p := range parts {
		switch {
		case len(p) < leastRandom:
			return "too short to be new each time"
		case slices.Contains(parts[:i], p) && !isUUID(p):
			return "it draws the same value twice"
		}
		if i > 0 {
			before := parts[i-1]
			// Of random values, beginnings and ends do not both rise.
			grows = grows && !isUUID(p) && before < p && before[len(before)-leastRandom:] <= p[len(p)-leastRandom:]
		}
	}
	if grows {
		return "a clock or a counter of its own"
	}
	return ""
}

// Follow compares a run with what it should say, in canonical names, and notes its
// spellings of the values that are new there. The error is ErrChance or, of a run with
// another spelling than the canonical one, ErrNotOpaque or ErrTaken.
func Follow(s, want *Stand, drawn []Value) error {
	if err := s.taken(); err != nil {
		return err
	}
	err := follow(s, want, drawn)
	if few := s.Book.scheme.Seen.few(); few != nil {
		return few
	}
	if err != nil && s.Book.seed != 0 {
		return s.Book.Spelled(err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChance, err)
	}
	return nil
}

func follow(s, want *Stand, drawn []Value) error {
	if s.Shape != want.Shape || len(s.Texts) != len(want.Texts) {
		return fmt.Errorf("its next step was once %s, and another time %s", want.said(), s.said())
	}
	for i, t := range want.Texts {
		said := s.Book.Canonical(s.Texts[i])
		if said != t && !s.Book.match(t, said, drawn) {
			return fmt.Errorf("once it said %q, and then %q", t, said)
		}
	}
	return nil
}

// Values returns the random values in a program's output, by their canonical names.
func Values(texts []string) (all []Value) {
	for _, t := range texts {
		Scan(t, func(begin, letter, end int) {
			if t[begin:letter] == RandomPrefix && t[letter] == Self {
				v := Value{Name: t[begin:end]}
				if end-begin > leastWidth {
					v.Width = end - begin
				}
				all = append(all, v)
			}
		})
	}
	return all
}

// match reads new values from a text.
func (b *Dictionary) match(canonical, said string, drawn []Value) bool {
	for canonical != "" {
		at, v := first(canonical, drawn)
		if !strings.HasPrefix(said, canonical[:at]) {
			return false
		}
		said, canonical = said[at:], canonical[at:]
		if v.Name == "" {
			break
		}
		canonical = canonical[len(v.Name):]
		if b.knows(v.Name) { // and so it is canonical by now
			if !strings.HasPrefix(said, v.Name) {
				return false
			}
			said = said[len(v.Name):]
			continue
		}
		size := v.Width
		if size == 0 { // it ends where the next part begins
			size = len(said) - len(canonical)
			if next, another := first(canonical, drawn); another.Name != "" {
				size = strings.Index(said, canonical[:next])
			}
		}
		if size < leastRandom || size > len(said) {
			return false
		}
		b.bind(v.Name, said[:size])
		b.scheme.Seen.add(v.Name, said[:size], b)
		said = b.Canonical(said[size:])
	}
	return said == ""
}

// first returns the value whose name comes first in a text, and its position.
func first(text string, drawn []Value) (at int, v Value) {
	at = len(text)
	for _, d := range drawn {
		if i := strings.Index(text, d.Name); i >= 0 && i < at {
			at, v = i, d
		}
	}
	return at, v
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func decimal(n int) string { return strconv.Itoa(n) }
