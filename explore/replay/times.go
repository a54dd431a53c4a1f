package replay

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/explore/servers"
	"oversell/internal/names"
	"oversell/reports"
)

// times moves points in time between the clock of a schedule, which starts at [servers.Epoch], and that of real servers,
// which is years ahead. It finds them in commands and replies, also within longer texts: numbers of seconds, milliseconds,
// microseconds or nanoseconds since 1970, and the ids of entries in streams.
type times struct {
	real, schedule map[string]string // how the other clock writes a time
}

func newTimes() *times { return &times{real: map[string]string{}, schedule: map[string]string{}} }

// number matches what may be a time: a number with or without a fraction or an exponent, or the id of a stream's entry.
var number = regexp.MustCompile(`\d+(?:\.\d+)?(?:e\+\d+)?(?:-\d+)?`)

// Times are moved if they lie at most so long before and after the start of the schedule.
const (
	mostBefore = time.Hour
	mostAfter  = 30 * 24 * time.Hour
)

// units are those of a point in time since 1970, by the number of its digits.
var units = map[int]time.Duration{10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond}

// moment is a point in time as it was written.
type moment struct {
	at       time.Duration // since the start of the schedule
	unit     time.Duration
	decimals int    // digits of the fraction
	exponent bool   // written with one
	entry    string // of a stream's id: what follows the time
}

// momentIn reads what number has matched. A clock that shows start at the start of the schedule wrote it.
func momentIn(text string, start time.Time) (m moment, is bool) {
	text, after, isID := strings.Cut(text, "-")
	if isID {
		m.entry = "-" + after
	}
	if m.exponent = strings.Contains(text, "e"); m.exponent {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return m, false
		}
		text = strconv.FormatFloat(value, 'f', 0, 64)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if m.unit, is = units[len(whole)]; !is || err != nil || isID && m.unit != time.Millisecond {
		return m, false
	}
	m.decimals = len(fraction)
	part, _ := strconv.ParseFloat("0."+fraction+"0", 64)
	m.at = time.Unix(0, n*int64(m.unit)).Sub(start) + time.Duration(part*float64(m.unit))
	return m, m.at >= -mostBefore && m.at <= mostAfter
}

// text writes the moment by a clock that shows start at the start of the schedule.
func (m moment) text(start time.Time) string {
	at, unit := start.Add(m.at).UnixNano(), int64(m.unit)
	if m.exponent {
		return strconv.FormatFloat(float64(at)/float64(unit), 'e', -1, 64)
	}
	text := strconv.FormatInt(at/unit, 10)
	if m.decimals > 0 {
		part := strconv.FormatFloat(float64(at%unit)/float64(unit), 'f', -1, 64)
		_, part, _ = strings.Cut(part, ".")
		text += "." + (part + strings.Repeat("0", m.decimals))[:m.decimals]
	}
	return text + m.entry
}

// pair notes that real servers write real where the schedule says schedule.
func (t *times) pair(real, schedule string) { t.real[schedule], t.schedule[real] = real, schedule }

// toServers writes the times in an argument of the schedule by the clock of the servers, which showed start at its start.
func (t *times) toServers(arg string, start time.Time) string {
	return number.ReplaceAllStringFunc(arg, func(text string) string {
		m, is := momentIn(text, servers.Epoch)
		if !is {
			return text
		}
		if t.real[text] == "" {
			t.pair(m.text(start), text)
		}
		return t.real[text]
	})
}

// toSchedule writes the times in replies of servers, whose clock showed start at the start of the schedule, by its own.
func (t *times) toSchedule(replies string, start time.Time) string {
	return names.MapReplies(replies, func(text string) string {
		return number.ReplaceAllStringFunc(text, func(text string) string {
			if known := t.schedule[text]; known != "" {
				return known
			}
			if m, is := momentIn(text, start); is {
				return m.text(servers.Epoch)
			}
			return text
		})
	})
}

// cut returns the times in replies, and the replies without them.
func cut(replies string, start time.Time) (all []string, at []moment, rest string) {
	rest = names.MapReplies(replies, func(text string) string {
		return number.ReplaceAllStringFunc(text, func(text string) string {
			m, is := momentIn(text, start)
			if !is {
				return text
			}
			all, at = append(all, text), append(at, m)
			return "time"
		})
	})
	return all, at, rest
}

// same reports whether replies of servers, whose clock showed start at the start of the schedule, are those that it says,
// but for times that nearly agree. It remembers these. The rest is compared by equal.
func (t *times) same(got, want string, start time.Time, equal func(got, want string) bool) bool {
	real, is, rest := cut(got, start)
	schedule, said, saidRest := cut(want, servers.Epoch)
	if !equal(rest, saidRest) || !slices.EqualFunc(is, said, near) {
		return false
	}
	for i := range real {
		t.pair(real[i], schedule[i])
	}
	return true
}

// near reports whether two moments are the same, as far as a real server can execute commands at the moments of a schedule.
func near(a, b moment) bool {
	return a.unit == b.unit && (a.at-b.at).Abs() <= mostRest*time.Millisecond+a.unit
}

// timed reports whether a schedule depends on the clock of servers, or tells them times.
func timed(steps []reports.Step) bool {
	return slices.ContainsFunc(steps, func(s reports.Step) bool {
		return s.Clock || slices.ContainsFunc(s.Commands, func(cmd []string) bool {
			return slices.ContainsFunc(cmd, func(arg string) bool {
				return slices.ContainsFunc(number.FindAllString(arg, -1), func(text string) bool {
					_, is := momentIn(text, servers.Epoch)
					return is
				})
			})
		})
	})
}
