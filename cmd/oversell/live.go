package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/rivo/uniseg"

	"oversell/campaign"
	"oversell/history"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
	"oversell/watch"
)

// about identifies the current run: number i of n, counted from 0.
type about struct {
	i, n int
	c    scenarios.Config
}

// number is the run's place among all runs, counted from 1.
func (a about) number() string { return fmt.Sprintf("%2d/%d ", a.i+1, a.n) }

// title describes the run as its report does.
func (a about) title() string {
	c := campaign.ContenderOf(a.c)
	return reports.Run{Scenario: a.c.Scenario.Name, Lock: c.Lock, Sale: c.Sale, Queue: c.Queue, IDs: c.IDs, Dispatch: c.Dispatch}.Title()
}

// broken describes a violation.
func (a about) broken(v watch.Violation) string {
	return fmt.Sprintf("%s%s of the %s broken within %s: %s", a.number(), v.Property, v.Of, span(v.Within), v.Why)
}

// done returns the completed share, from 0 to 1, and describes it: by pieces sold, or else by the run's limit of
// steps or time.
func (a about) done(f watch.Figures) (part float64, words string) {
	switch c := a.c; {
	case c.Scenario.Uses(variant.Sale) && c.Stock > 0:
		return float64(f.Sold) / float64(c.Stock), fmt.Sprintf("sold %s of %s", humanize.Comma(f.Sold), humanize.Comma(c.Stock))
	case c.Ops > 0:
		rounds := min(f.Rounds, c.Ops)
		if takes := c.Takes(); takes >= longRun { // the number of steps alone would not show progress
			return min(f.Elapsed.Seconds()/takes.Seconds(), 0.99),
				fmt.Sprintf("step %s of %s, of about %s", humanize.Comma(rounds), humanize.Comma(c.Ops), span(takes))
		}
		return float64(rounds) / float64(c.Ops), fmt.Sprintf("step %s of %s", humanize.Comma(rounds), humanize.Comma(c.Ops))
	case c.Duration > 0:
		return f.Elapsed.Seconds() / c.Duration.Seconds(), "of " + c.Duration.String()
	}
	return 0, ""
}

// fired describes how often a fault has fired.
func fired(c history.FaultCount) string {
	s := "has not fired"
	switch {
	case c.Fired == 1:
		s = "fired once"
	case c.Fired > 1:
		s = fmt.Sprintf("fired %s times", humanize.Comma(c.Fired))
	}
	s += ": " + c.Name
	if c.Failed != "" {
		s += "; failed: " + c.Failed
	}
	return s
}

// span formats a duration to three digits.
func span(d time.Duration) string {
	switch ms := float64(d) / 1e6; {
	case ms < 999.5:
		return number(ms) + " ms"
	case d < 100*time.Second:
		return number(d.Seconds()) + " s"
	}
	return d.Round(time.Second).String()
}

// number formats a number to three digits, at most three after the point.
func number(x float64) string {
	digits := 0
	if x > 0 {
		digits = 2 - int(math.Floor(math.Log10(x*1.0005))) // of the rounded value
	}
	return fmt.Sprintf("%.*f", min(max(digits, 0), 3), x)
}

func perSecond(rate float64) string { return humanize.Comma(int64(math.Round(rate))) + " ops/s" }

// quantiles returns the name and the latencies of the run's main operation; empty if none ended recently.
func quantiles(f watch.Figures) (of, text string) {
	if f.P50 == 0 {
		return "", ""
	}
	return f.Main.String() + " ", fmt.Sprintf("p50 %s, p99 %s", span(f.P50), span(f.P99))
}

// plain remembers what has been reported of a run when the output is not a terminal.
type plain struct {
	faults   map[string]bool
	unjudged bool
	last     time.Duration // when the last line of figures was due
}

// figuresEvery is the interval between lines of figures.
const figuresEvery = 5 * time.Second

// lines returns new information since the last call: a fault's first injection and, for long runs, figures.
func (p *plain) lines(a about, f watch.Figures) (lines []string) {
	for _, c := range f.Faults {
		if c.Fired > 0 && !p.faults[c.Name] {
			if p.faults == nil {
				p.faults = map[string]bool{}
			}
			p.faults[c.Name] = true
			lines = append(lines, fmt.Sprintf("%sfault %q first fired within %s of the start", a.number(), c.Name, span(f.Elapsed)))
		}
	}
	if f.Unjudged != "" && !p.unjudged {
		p.unjudged = true
		lines = append(lines, a.number()+unjudged(f))
	}
	if f.Elapsed-p.last < figuresEvery {
		return lines
	}
	p.last = f.Elapsed.Truncate(figuresEvery)
	parts := []string{span(f.Elapsed)}
	if _, words := a.done(f); words != "" {
		parts[0] += " " + words
	}
	parts = append(parts, humanize.Comma(f.Ops)+" operations", perSecond(f.Rate))
	if of, q := quantiles(f); q != "" {
		parts = append(parts, of+q)
	}
	return append(lines, a.number()+a.title()+": "+strings.Join(parts, ", "))
}

// unjudged names the promises that are judged only at the end.
func unjudged(f watch.Figures) string {
	return "judged at the end only: " + f.Unjudged
}

// glyphs are the characters that bars and curves are drawn with.
type glyphs struct {
	full, empty string
	curve       []rune
}

var (
	unicodeGlyphs = glyphs{"█", "░", []rune("▁▂▃▄▅▆▇█")}
	asciiGlyphs   = glyphs{"#", ".", []rune("_.-=+*%#")}
)

// glyphsOf chooses the characters that the locale can show.
func glyphsOf(env func(string) string) glyphs {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first one that is set decides
		if value := strings.ToUpper(env(name)); value != "" {
			if strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8") {
				return unicodeGlyphs
			}
			break
		}
	}
	return asciiGlyphs
}

// style is the width of the view and the characters it is drawn with.
type style struct {
	width int
	glyphs
	colour bool
}

// mostFaults bounds the number of lines for faults.
const mostFaults = 5

// lines draws the view of a run at one moment.
func (s style) lines(a about, f watch.Figures) []string {
	lines := []string{a.number() + a.title(), s.indented(s.bar(a, f)), s.indented(s.pace(f))}
	for i, c := range f.Faults {
		if i == mostFaults {
			lines = append(lines, s.indented(fmt.Sprintf("and %d more faults", len(f.Faults)-i)))
			break
		}
		lines = append(lines, s.indented(fired(c)))
	}
	if len(f.Broken) > 0 {
		names := make([]string, len(f.Broken))
		for i, v := range f.Broken {
			names[i] = string(v.Property)
		}
		lines = append(lines, s.as(loudly, s.indented("broken: "+strings.Join(names, ", "))))
	}
	if f.Unjudged != "" {
		lines = append(lines, s.as(dimly, s.indented(unjudged(f))))
	}
	return lines
}

func (s style) as(style, line string) string {
	if !s.colour {
		return line
	}
	return styled(style, line)
}

// indented indents a line below the title if there is room.
func (s style) indented(line string) string {
	if s.width < 60 {
		return "  " + line
	}
	return "      " + line
}

// room is the width that indented leaves.
func (s style) room() int { return s.width - uniseg.StringWidth(s.indented("")) }

// Widths of the parts of a line.
const (
	leastBar, mostBar = 5, 30
	mostCurve         = 30
)

// bar draws the completed share.
func (s style) bar(a about, f watch.Figures) string {
	if !f.Begun {
		return fmt.Sprintf("connecting %s clients", humanize.Comma(int64(a.c.Clients)))
	}
	part, words := a.done(f)
	clock := fmt.Sprintf("%.1f s", f.Elapsed.Seconds())
	if words == "" {
		return clock
	}
	text := words + ", " + clock
	if strings.HasPrefix(words, "of ") {
		text = clock + " " + words
	}
	return s.gauge(part, text, s.room())
}

// pace draws the current rate, and more if there is room.
func (s style) pace(f watch.Figures) string {
	rate := perSecond(f.Rate)
	of, q := quantiles(f)
	left := s.room() - uniseg.StringWidth(rate+"  "+q)
	if left >= len(of) {
		q, left = of+q, left-len(of)
	}
	if curve := s.curveOf(f.Rates, min(left-1, mostCurve)); curve != "" {
		rate += " " + curve
	}
	return strings.TrimRight(rate+"  "+q, " ")
}

// curveOf draws the most recent rates, as many as fit.
func (s style) curveOf(rates []float64, width int) string {
	if width < leastBar {
		return ""
	}
	rates = rates[max(0, len(rates)-width):]
	top := 0.0
	for _, r := range rates {
		top = max(top, r)
	}
	var b strings.Builder
	for _, r := range rates {
		i := 0
		if top > 0 {
			i = int(math.Round(r / top * float64(len(s.curve)-1)))
		}
		b.WriteRune(s.curve[max(0, i)])
	}
	return b.String()
}
