package reports

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/rivo/uniseg"

	"oversell/internal/phrase"
	"oversell/variant"
)

// Thousands formats a number with separators.
func Thousands(n int64) string { return humanize.Comma(n) }

// InMS returns a duration in milliseconds, the unit of documents.
func InMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// FromMS returns a number of milliseconds as a duration.
func FromMS(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Rate formats a rate per second, a small one with one decimal. All rates are rounded here, so that they are the
// same everywhere.
func Rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 9.95 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return Thousands(int64(math.Round(perSecond)))
}

// Count formats a number with its noun, in the plural unless it is one.
func Count(n int64, noun string) string { return phrase.Count(n, noun) }

// Short formats milliseconds with three significant digits.
func Short(ms float64) string {
	switch {
	case ms >= 100:
		return Thousands(int64(math.Round(ms)))
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 2, 64)
}

// Percent formats a share in percent, with two significant digits.
func Percent(x float64) string {
	switch size := math.Abs(x) * 100; {
	case size == 0:
		return "0 %"
	case size >= 10:
		return strconv.FormatFloat(x*100, 'f', 0, 64) + " %"
	case size >= 1:
		return strconv.FormatFloat(x*100, 'f', 1, 64) + " %"
	}
	digits := 1 - int(math.Floor(math.Log10(math.Abs(x)*100)))
	return strconv.FormatFloat(x*100, 'f', digits, 64) + " %"
}

// Positive formats x; empty if it is not above 0, which stands for not measured.
func Positive(x float64, format string) string {
	if x <= 0 {
		return ""
	}
	return fmt.Sprintf(format, x)
}

// Figures3 formats a ratio with at most three digits, unless it is 1,000 or more.
func Figures3(x float64) string {
	switch {
	case x < 0.095:
		return fmt.Sprintf("%.3f", x)
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func significant(x float64) string {
	if x >= 1000 {
		return Thousands(int64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// figure formats a number with at most three significant digits after the point, and with separators if it is
// large.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1000 || x == math.Trunc(x):
		return Thousands(int64(math.Round(x)))
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Extent describes how often the property was broken, or by how much.
func (p Property) Extent() string { return extent(p.Count, p.Unit, p.Name) }

// Extent describes how often the property was broken in all runs, or by how much.
func (p BrokenPromise) Extent() string { return extent(p.Count, p.Unit, p.Property) }

// extent describes a count with its unit. Documents of earlier versions have no units; there, no-oversell counts pieces.
func extent(n int, unit string, p variant.Property) string {
	if unit == "" && p == variant.NoOversell {
		unit = "piece"
	}
	switch unit {
	case "":
		return times(n)
	case "piece", "number":
		return ", by " + Count(int64(n), unit)
	}
	return ", in " + Count(int64(n), unit)
}

func times(n int) string {
	if n == 1 {
		return ", once"
	}
	return fmt.Sprintf(", %s times", Thousands(int64(n)))
}

// Millis formats milliseconds, to the microsecond.
func Millis(ms float64) string { return humanize.Commaf(math.Round(ms*1000)/1000) + " ms" }

// MillisFigure is the same without unit and separators, for narrow columns.
func MillisFigure(ms float64) string {
	return strconv.FormatFloat(math.Round(ms*1000)/1000, 'f', -1, 64)
}

// Seconds formats a measured duration.
func Seconds(ms float64) string {
	switch {
	case ms < 1000:
		return strconv.FormatFloat(ms, 'g', 3, 64) + " ms"
	case ms < 60_000:
		return strconv.FormatFloat(ms/1000, 'g', 3, 64) + " s"
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Second).String()
}

// Chance formats a tiny probability.
func Chance(p float64) string { return strconv.FormatFloat(p, 'e', 1, 64) }

// Size formats the memory per state.
func Size(bytes float64) string { return strconv.FormatFloat(bytes, 'f', 0, 64) + " bytes" }

// PercentilesOf formats p50/p99/p99.9 of a latency, in milliseconds; empty without one.
func PercentilesOf(l *Latency) string {
	if l == nil {
		return ""
	}
	return Short(l.Call.P50) + "/" + Short(l.Call.P99) + "/" + Short(l.Call.P999)
}

// Joined joins the parts that are not empty.
func Joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), by)
}

// Width returns how many columns a text takes on a terminal: two for a Chinese character or an emoji, none for a
// colour.
func Width(text string) int {
	if strings.Contains(text, "\x1b") {
		text = colours.ReplaceAllString(text, "")
	}
	return uniseg.StringWidth(text)
}

// colours matches ANSI colour sequences.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Folded breaks text into lines of at most width columns, at spaces and between Chinese characters. It breaks no
// word: one that is wider than width is alone on its line. A number stays with its unit if both fit.
func Folded(text string, width int) (lines []string) {
	line := ""
	for _, word := range Words(text) {
		if Width(word) > width {
			word = strings.ReplaceAll(word, " ", "\n")
		}
		for part := range strings.SplitSeq(word, "\n") {
			between := " "
			for _, piece := range Pieces(part) {
				if line != "" && Width(line+between+piece) > width {
					lines = append(lines, line)
					line = ""
				}
				line = Joined(between, line, piece)
				between = ""
			}
		}
	}
	return append(lines, line)
}

// Words splits a text into words, with a number and its unit as one.
func Words(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		if n := len(words); n > 0 && aUnit.MatchString(word) && aNumber.MatchString(words[n-1]) {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

var (
	aNumber = regexp.MustCompile(`[0-9]$`)
	aUnit   = regexp.MustCompile(`^(%|ns|µs|us|ms|s|min|h|bytes?|[KMG]i?B)[]).,;:!?]*$`)
)

// Pieces splits a word where a line may end. Only words with wide characters, such as Chinese, which is written
// without spaces, have more than one piece.
func Pieces(word string) (pieces []string) {
	if !strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return []string{word}
	}
	state, wide := -1, false // wide: the last character is wide
	for rest := word; rest != ""; {
		var segment string
		segment, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
		first, _, width, _ := uniseg.FirstGraphemeClusterInString(segment, -1)
		if len(pieces) > 0 && !wide && width < 2 {
			pieces[len(pieces)-1] += segment // after a hyphen, for example
		} else {
			pieces = append(pieces, segment)
		}
		for more := segment[len(first):]; more != ""; {
			_, more, width, _ = uniseg.FirstGraphemeClusterInString(more, -1)
		}
		wide = width > 1
	}
	return pieces
}

// Cut shortens text to a number of columns with an ellipsis in its middle, where commands and tokens differ least.
func Cut(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	var ends []int // ends of the characters
	for g := uniseg.NewGraphemes(text); g.Next(); {
		_, end := g.Positions()
		ends = append(ends, end)
	}
	left, right := 0, len(text)
	for _, end := range ends {
		if Width(text[:end]) > width/2 {
			break
		}
		left = end
	}
	for _, end := range slices.Backward(ends) {
		if Width(text[end:]) > width-1-Width(text[:left]) {
			break
		}
		right = end
	}
	return text[:left] + "…" + text[right:]
}
