// Package limits holds the least and the most of every number that a user may choose, in one table for each command.
// Flags, their help, their errors, plans of a gate, fault sentences and the libraries below take them from here, so
// that every number is checked before anything starts.
package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/internal/printable"
)

// Unit is the unit of a number.
type Unit uint8

// The units.
const (
	Count Unit = iota // a whole number
	Span              // a duration; numbers are nanoseconds
	Share             // a probability
	Seed              // a whole number of 64 bits without a sign
)

// Limit is the least and the most of one number.
type Limit struct {
	// Name is the name of the flag, without dashes.
	Name        string
	Unit        Unit
	Least, Most float64
	// Below says that Most itself is not allowed.
	Below bool
	// Whole is the unit of which durations must be a multiple; 0: any.
	Whole time.Duration
	// Why gives the reason for the limit in a clause.
	Why string
}

// Table holds the limits of a command.
type Table []Limit

// Find returns the limit of a number, and whether it has one.
func (t Table) Find(name string) (Limit, bool) {
	for _, l := range t {
		if l.Name == name {
			return l, true
		}
	}
	return Limit{}, false
}

// Check returns an error, with the name of the flag, if a number is out of its limits; durations are in nanoseconds.
func (t Table) Check(name string, v float64) error {
	l, ok := t.Find(name)
	if !ok || l.holds(v) {
		return nil
	}
	return fmt.Errorf("--%s %s: %w", name, l.format(v), l.must())
}

// Within is Check for a number without a flag: the error begins with "must be".
func (t Table) Within(name string, v float64) error {
	if l, ok := t.Find(name); ok && !l.holds(v) {
		return l.must()
	}
	return nil
}

// Range returns the least and the most in words: "0 to 10000", "1ms to 24h".
func (l Limit) Range() string {
	below := ""
	if l.Below {
		below = "below "
	}
	return l.format(l.Least) + " to " + below + l.format(l.Most)
}

// Read parses a number as flags do, and returns an error if it is out of the limits.
func (l Limit) Read(text string) (float64, error) {
	v, err := l.parse(text)
	switch {
	case err != nil:
		return 0, l.form()
	case !l.holds(v):
		return 0, l.must()
	}
	return v, nil
}

func (l Limit) parse(text string) (float64, error) {
	switch l.Unit {
	case Span:
		d, err := time.ParseDuration(text)
		return float64(d), err
	case Share:
		return strconv.ParseFloat(text, 64)
	case Seed:
		n, err := strconv.ParseUint(text, 0, 64)
		return float64(n), err
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if errors.Is(err, strconv.ErrRange) {
		return float64(n), nil // the nearest number, which no limit allows
	}
	return float64(n), err
}

// holds reports whether a number is within the limits. NaN is not.
func (l Limit) holds(v float64) bool {
	return v >= l.Least && v <= l.Most && !(l.Below && v == l.Most) && (l.Whole == 0 || time.Duration(v)%l.Whole == 0)
}

func (l Limit) must() error {
	if l.Whole > 0 {
		return fmt.Errorf("must be %s, a multiple of %v: %s", l.Range(), l.Whole, l.Why)
	}
	return fmt.Errorf("must be %s: %s", l.Range(), l.Why)
}

// form returns the error about a value that is not a number.
func (l Limit) form() error {
	switch l.Unit {
	case Span:
		return fmt.Errorf("must be a duration like 80ms or 3s, %s", l.Range())
	case Share:
		return fmt.Errorf("must be a number like 0.05, %s", l.Range())
	}
	return fmt.Errorf("must be a whole number, %s", l.Range())
}

func (l Limit) format(v float64) string {
	switch l.Unit {
	case Span:
		return duration(time.Duration(v))
	case Share:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case Seed:
		return strconv.FormatUint(saturated(v), 10)
	}
	return strconv.FormatInt(int64(v), 10)
}

func saturated(v float64) uint64 {
	if v >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(v)
}

// duration returns a time in the shortest form for ParseDuration: 24h for 24h0m0s.
func duration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Bind makes the flags of a set refuse values out of their limits, and adds the limits to their help. Flags without
// limits are unchanged.
func (t Table) Bind(f *pflag.FlagSet) {
	f.VisitAll(func(flag *pflag.Flag) {
		l, ok := t.Find(flag.Name)
		if _, already := flag.Value.(*bounded); !ok || already {
			return
		}
		flag.Value = &bounded{flag.Value, l}
		if flag.DefValue == "0s" {
			flag.DefValue = "0" // for which no default is shown
		}
		if l.Unit != Seed {
			flag.Usage += "; " + l.Range()
		}
	})
}

// bounded is the value of a flag with a limit.
type bounded struct {
	pflag.Value
	limit Limit
}

// Set implements pflag.Value.
func (b *bounded) Set(text string) error {
	if _, err := b.limit.Read(text); err != nil {
		return err
	}
	if b.Value.Set(text) != nil {
		return b.limit.form()
	}
	return nil
}

// Explain adds to an error about a flag's value the name of the flag, the value, and the allowed range: "--pool
// 100000000: must be 0 to 10000: …". It returns other errors unchanged.
func Explain(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	return fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, printable.Word(invalid.GetValue()), form(invalid))
}

// form returns the cause, without the names of functions of the standard library.
func form(e *pflag.InvalidValueError) error {
	cause := e.Unwrap()
	if cause == nil || errors.As(cause, new(*strconv.NumError)) {
		return fmt.Errorf("must be a %s", e.GetFlag().Value.Type())
	}
	return cause
}
