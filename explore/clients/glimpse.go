package clients

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/rediscmd"
	"oversell/internal/redismodel"
)

// What a client does after a look at the clock is a step function of the time. The steps are found by running the
// client at several times and comparing its actions: all must be the same, except values that move with the clock, like
// the end of a lease that begins then. A value moves if it changes as the clock does, in whatever unit; such numbers
// are compared by their distance from the time of the look, and all others literally. Values that differ between two
// executions at one time are random.

// glimpse is the actions of a client after it has read the clock at a time, until others can notice one.
type glimpse struct {
	at     time.Duration
	frame  string          // all that is neither a text nor a time
	times  []time.Duration // ends of waits and of promises
	fields []field
}

// field is a text in a client's actions: the name of a key, or another argument.
type field struct {
	key  bool
	text string
}

// glimpse runs a client that reads the clock at a time.
func (t *Trie) glimpse(k lookAt, now time.Duration) *glimpse {
	g := &glimpse{at: now}
	if t.probes++; t.probes > probeLimit {
		t.blind.Store(true)
		return g
	}
	x, err := t.again(k.from, 0)
	if err != nil {
		g.frame = "error"
		return g
	}
	defer x.Code.Close()
	var frame strings.Builder
	x.Resume(int(k.which), coro.Observation{Now: now})
	for {
		for _, e := range x.Came {
			g.event(&frame, x, e)
		}
		ps := x.Code.Pending()
		if len(ps) != 1 || x.Code.Err() != nil || !Private(ps[0]) && ps[0].Kind != coro.Boundary {
			break
		}
		x.Resume(0, coro.Observation{Now: now})
	}
	if x.Code.Err() != nil {
		return &glimpse{at: now, frame: "error"}
	}
	g.requests(&frame, x)
	if !t.sparse {
		t.further(g, &frame, x)
	}
	g.frame = frame.String()
	return g
}

// requests notes the requests of a run.
func (g *glimpse) requests(frame *strings.Builder, x *Run) {
	for _, r := range x.Code.Pending() {
		fmt.Fprintf(frame, "%d %d %t ", r.Kind, r.Node, r.Tx)
		g.time(frame, r.Until)
		g.time(frame, r.Deadline)
		g.say(false, recalled(x.book.Canonical(r.Label)))
		for _, cmd := range r.Commands {
			fmt.Fprintf(frame, " %d", len(cmd))
			keys := keysOf(cmd)
			for i, arg := range cmd {
				g.say(slices.Contains(keys, i), x.book.Canonical(arg))
			}
		}
		frame.WriteByte(';')
	}
}

// furtherLimit is how many commands a client is followed after a look at the clock.
const furtherLimit = 3

// further follows a client to the end of an operation: its use of the time may show only after a command. The answers
// are those of servers that were empty.
func (t *Trie) further(g *glimpse, frame *strings.Builder, x *Run) {
	on := map[int]*redismodel.State{}
	for range furtherLimit {
		ps := x.Code.Pending()
		if len(ps) != 1 || ps[0].Kind != coro.Command || slices.ContainsFunc(x.Came, func(e rules.Event) bool { return e.End }) {
			return
		}
		r := ps[0]
		if on[r.Node] == nil {
			on[r.Node] = t.servers.Empty
		}
		t.servers.Load(r.Commands)
		next, reply, info := t.servers.Do(on[r.Node], g.at, servers.Call{Node: r.Node, Commands: r.Commands, Tx: r.Tx, Conn: r.Conn})
		if info.Unknown != "" {
			return
		}
		on[r.Node] = next
		x.Code.Resume(0, coro.Observation{Now: g.at, Reply: string(reply)})
		x.look()
		if x.Code.Err() != nil {
			return
		}
		for _, e := range x.Came {
			g.event(frame, x, e)
		}
		g.requests(frame, x)
	}
}

func (g *glimpse) event(frame *strings.Builder, x *Run, e rules.Event) {
	if e.Op.Kind == history.Join {
		return
	}
	fmt.Fprintf(frame, "%t %d %d %d %d %d ", e.End, e.Op.Kind, e.Op.Outcome, e.Op.Reason, e.Op.Amount, e.Op.Fence)
	g.time(frame, e.Op.Until)
	for _, v := range []history.Value{e.Op.Key, e.Op.Arg, e.Op.Result} {
		g.say(false, x.book.Canonical(v.String()))
	}
	frame.WriteByte(';')
}

// time notes an instant, and whether it has passed.
func (g *glimpse) time(frame *strings.Builder, at time.Duration) {
	fmt.Fprintf(frame, "%t%t", at != 0, at > g.at)
	g.times = append(g.times, at)
}

func (g *glimpse) say(key bool, text string) {
	if !key {
		text = dates.ReplaceAllStringFunc(text, asNumber)
	}
	g.fields = append(g.fields, field{key, text})
}

// keysOf returns the places of the keys in a command.
func keysOf(cmd []string) []int {
	c, _ := rediscmd.Find(cmd[0])
	return c.Keys(len(cmd), func(i int) string { return cmd[i] })
}

// dates match instants in RFC 3339 or nearly so.
var dates = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?`)

// asNumber returns a date as a number of seconds, apart from what stands beside it.
func asNumber(date string) string {
	at, err := time.Parse("2006-01-02 15:04:05", strings.Replace(date, "T", " ", 1))
	if err != nil {
		return date
	}
	return " " + inSeconds(at) + " "
}

// inSeconds returns an instant as a number of seconds with as many decimal places as it takes.
func inSeconds(at time.Time) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()), "0"), ".")
}

// instantsIn matches the instants in a description by [remembered].
var instantsIn = regexp.MustCompile(`\{(\d{1,9}),(\d{11}),nil,\}`)

// recalled returns what objects hold, with instants as numbers.
func recalled(memory string) string {
	return instantsIn.ReplaceAllStringFunc(memory, func(text string) string {
		var nano, sec int64
		if n, _ := fmt.Sscanf(text, "{%d,%d,", &nano, &sec); n < 2 {
			return text
		}
		return inSeconds(time.Time{}.AddDate(0, 0, int(sec/86400)).Add(time.Duration(sec%86400)*time.Second + time.Duration(nano)))
	})
}

// chunks splits a text into runs of letters and digits, and the text between them. A decimal fraction stays with its
// number.
func chunks(text string) (all []string) {
	for i := 0; i < len(text); {
		end, digits := i, true
		for end < len(text) && word(text[end]) {
			digits = digits && isDigit(text[end])
			end++
		}
		if end == i {
			end++
		} else if fraction := fractionAt(text, end); digits && fraction > end {
			end = fraction
		}
		all = append(all, text[i:end])
		i = end
	}
	return all
}

// word reports whether a byte is a part of a word; every non-ASCII byte may be.
func word(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || c < ' ' || c == '~'
}

// fractionAt returns where the decimal fraction at that place ends, if there is one.
func fractionAt(text string, at int) int {
	if at >= len(text) || text[at] != '.' {
		return at
	}
	end := at + 1
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	if end == at+1 || end < len(text) && (word(text[end]) || text[end] == '.') {
		return at
	}
	return end
}

// parts splits a chunk into runs of digits and others.
func parts(chunk string) (all []string) {
	if strings.IndexByte(chunk, '.') >= 0 {
		return []string{chunk}
	}
	for i := 0; i < len(chunk); {
		end := i + 1
		for end < len(chunk) && isDigit(chunk[end]) == isDigit(chunk[i]) {
			end++
		}
		all = append(all, chunk[i:end])
		i = end
	}
	return all
}

// manner is how a chunk depends on the time.
type manner struct {
	drawn  bool  // at random, or in a way that is not understood: it is not compared
	drifts bool  // it changes all the time
	base   int   // the base of the number, if not 10
	slope  int64 // if it drifts otherwise than with the clock: by how much in a millisecond
}

// manners are the manners of a field's chunks. In a loose field only the first and the last few are compared.
type manners struct {
	of          []manner
	loose       bool
	first, last int
}

// unclear is called for a text whose change with the clock is none of the known manners.
type unclear func()

// learn finds out how the fields of a client's glimpses depend on the time: here, again at the same time, and a few at
// times that follow closely, microseconds and milliseconds apart.
func learn(here, again *glimpse, micro, milli []*glimpse, vague unclear) []manners {
	all := make([]manners, len(here.fields))
	near := func(gs []*glimpse) bool {
		return !slices.ContainsFunc(gs, func(g *glimpse) bool { return g.frame != here.frame || len(g.fields) != len(here.fields) })
	}
	for i, f := range here.fields {
		m := &all[i]
		texts := []string{f.text}
		if near([]*glimpse{again}) && again.fields[i].text != f.text {
			m.loosen(chunks(f.text), chunks(again.fields[i].text))
		}
		close := milli
		if f.key {
			// A number in a key's name that stays the same for a while denotes a period of time.
			close = micro
		}
		if m.loose || !near(close) {
			continue
		}
		for _, g := range close {
			texts = append(texts, g.fields[i].text)
		}
		if slices.Contains(texts[1:], texts[0]) || texts[1] == texts[2] {
			continue // it does not change each time
		}
		m.drift(texts, here, close, f.key, vague)
	}
	return all
}

// loosen limits the comparison to the common beginnings and ends of two.
func (m *manners) loosen(x, y []string) {
	if !m.loose {
		m.loose, m.first, m.last = true, math.MaxInt, math.MaxInt
	}
	shorter, n := min(len(x), len(y)), 0
	for n < min(shorter, m.first) && x[n] == y[n] {
		n++
	}
	for n > 0 && !separates(x[n-1]) {
		n--
	}
	m.first, n = n, 0
	for n < min(shorter-m.first, m.last) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	for n > 0 && !separates(x[len(x)-n]) {
		n--
	}
	m.last = n
}

// separates reports whether a chunk stands between values, and is not a part of a random one.
func separates(chunk string) bool {
	return len(chunk) == 1 && strings.Contains(":|;, \"{}[]()#@", chunk)
}

// drift notes how a chunk that changes all the time changes.
func (m *manners) drift(texts []string, here *glimpse, close []*glimpse, key bool, vague unclear) {
	var split [][]string
	for _, text := range texts {
		split = append(split, chunks(text))
	}
	for _, s := range split[1:] {
		if len(s) != len(split[0]) {
			m.loosen(split[0], s)
		}
	}
	if m.loose {
		vague()
		return
	}
	if m.of == nil {
		m.of = make([]manner, len(split[0]))
	}
	for c := range split[0] {
		x, y, z := split[0][c], split[1][c], split[2][c]
		if m.of[c].drawn || x == y || y == z {
			continue
		}
		fits := func(try manner) bool {
			return try.same(x, y, here.at-close[0].at, key) && try.same(x, z, here.at-close[1].at, key)
		}
		is := manner{drifts: true}
		if fits(is) {
			m.of[c] = is
			continue
		}
		p, errP := strconv.ParseInt(x, 10, 64)
		q, errQ := strconv.ParseInt(y, 10, 64)
		candidates := []manner{{drifts: true, base: 16}, {drifts: true, base: 32}, {drifts: true, base: 36}}
		if by := (close[0].at - here.at) / time.Millisecond; errP == nil && errQ == nil && by > 0 {
			candidates = append(candidates, manner{drifts: true, slope: (q - p) / int64(by)})
		}
		m.of[c] = manner{drawn: true}
		if i := slices.IndexFunc(candidates, fits); i >= 0 {
			m.of[c] = candidates[i]
		} else {
			vague()
		}
	}
}

// same reports whether a client does the same in two glimpses. how is how the fields of the first depend on the time.
func (g *glimpse) same(h *glimpse, how []manners) bool {
	if g.frame != h.frame || len(g.fields) != len(h.fields) || len(g.times) != len(h.times) {
		return false
	}
	by := g.at - h.at
	for i, at := range g.times {
		if !sameTime(at, h.times[i], by) {
			return false
		}
	}
	for i, f := range g.fields {
		if f.key != h.fields[i].key || !how[i].same(f.text, h.fields[i].text, by, f.key) {
			return false
		}
	}
	return true
}

// sameTime reports whether two instants are the same, or as far apart as the looks at the clock; less exactly if both
// were truncated to a coarse unit.
func sameTime(x, y, by time.Duration) bool {
	off := (x - y - by).Abs()
	if x == y || off < servers.TickUnit {
		return true
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if x%unit == 0 && y%unit == 0 {
			return off < unit
		}
	}
	return false
}

// same compares two texts of a field; by is how much later the first is.
func (m *manners) same(a, b string, by time.Duration, key bool) bool {
	if a == b {
		return true
	}
	x, y := chunks(a), chunks(b)
	if m.loose {
		if min(len(x), len(y)) < m.first+m.last {
			return false
		}
		return slices.EqualFunc(x[:m.first], y[:m.first], func(p, q string) bool { return manner{}.same(p, q, by, key) }) &&
			slices.EqualFunc(x[len(x)-m.last:], y[len(y)-m.last:], func(p, q string) bool { return manner{}.same(p, q, by, key) })
	}
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		how := manner{}
		if i < len(m.of) {
			how = m.of[i]
		}
		if !how.same(x[i], y[i], by, key) {
			return false
		}
	}
	return true
}

// same compares two chunks.
func (m manner) same(x, y string, by time.Duration, key bool) bool {
	if x == y || m.drawn {
		return true
	}
	if m.base != 0 {
		p, errP := strconv.ParseInt(x, m.base, 64)
		q, errQ := strconv.ParseInt(y, m.base, 64)
		return errP == nil && errQ == nil && m.moved(p, q, 0, by)
	}
	p, q := parts(x), parts(y)
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] && !m.sameNumber(p[i], q[i], by, key) {
			return false
		}
	}
	return true
}

// sameNumber compares two runs of digits that differ.
func (m manner) sameNumber(x, y string, by time.Duration, key bool) bool {
	if !isDigit(x[0]) || !isDigit(y[0]) || key && !m.drifts {
		return false
	}
	wholeX, x, _ := strings.Cut(x, ".")
	wholeY, y, _ := strings.Cut(y, ".")
	places := max(len(x), len(y))
	p, errP := strconv.ParseInt(wholeX+x+strings.Repeat("0", places-len(x)), 10, 64)
	q, errQ := strconv.ParseInt(wholeY+y+strings.Repeat("0", places-len(y)), 10, 64)
	return errP == nil && errQ == nil && m.moved(p, q, places, by)
}

// clockUnits are those in which programs count time.
var clockUnits = []time.Duration{time.Nanosecond, 100 * time.Nanosecond, time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// leastInstant is the least number that can be an instant if it does not change all the time.
const leastInstant = 1_000_000

// moved reports whether two numbers, with so many decimal places, differ by as much as the looks at the clock, in one
// of the units of time: instants, and what is left until one.
func (m manner) moved(p, q int64, places int, by time.Duration) bool {
	if (p == 0) != (q == 0) {
		return false
	}
	if m.slope != 0 {
		return math.Abs(float64(p-q)-float64(m.slope)*float64(by)/float64(time.Millisecond)) <= math.Abs(float64(m.slope))
	}
	scale := math.Pow10(places)
	if !m.drifts && math.Min(float64(p), float64(q)) < leastInstant*scale {
		return false
	}
	for _, unit := range clockUnits {
		if !m.drifts && unit < time.Millisecond {
			continue
		}
		exact := float64(unit) / scale
		if places > 0 {
			exact += float64(time.Microsecond) // fractions are rounded
		}
		moved := float64(p-q) * float64(unit) / scale
		if math.Abs(moved-float64(by)) < exact || math.Abs(moved+float64(by)) < exact {
			return true
		}
	}
	return false
}

// digitsIn matches the parts in which two glimpses of one place in a program may differ.
var digitsIn = regexp.MustCompile(`[^ -~]|[0-9A-Za-z~]*[0-9][0-9A-Za-z~]*`)

// kind returns a text that is mostly the same for glimpses of one place in a program.
func (g *glimpse) kind() string {
	var b strings.Builder
	b.WriteString(g.frame)
	for _, f := range g.fields {
		b.WriteString(" " + digitsIn.ReplaceAllString(f.text, "#"))
	}
	return b.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
