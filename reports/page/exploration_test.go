package page

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"oversell/reports"
	"oversell/reports/reportstest"
)

// TestDiagramsStayInside checks that everything drawn is inside the picture and that the lifelines are in order,
// however many clients and nodes there are.
func TestDiagramsStayInside(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for clients := 1; clients <= 4; clients++ {
		for _, masters := range []int{1, 3, 5} {
			c := reports.Counterexample{}
			for i := range clients {
				c.Clients = append(c.Clients, fmt.Sprint("client ", i))
				for _, kind := range []string{reports.StepStart, reports.StepCommand, reports.StepLost, reports.StepNoReply, reports.StepLate, reports.StepArrive, reports.StepAdvance, reports.StepCrash, reports.StepEnd} {
					c.Steps = append(c.Steps, reports.Step{Kind: kind, Client: i, Node: i % masters, Text: long + " -> " + long, Marks: []string{reports.MarkEnter, "SOLD 1"}, Redis: long + kind})
				}
			}
			for _, d := range []diagram{counterexample{c}.draw(masters, wide), counterexample{c}.draw(masters, narrow)} {
				inside(t, fmt.Sprintf("%s, %d clients, %d masters", d.ID, clients, masters), d)
			}
		}
	}
}

func inside(t *testing.T, name string, d diagram) {
	t.Helper()
	at := func(what string, xs ...int) {
		for _, x := range xs {
			if x < 0 || x > d.Width {
				t.Errorf("%s: %s at %d of %d", name, what, x, d.Width)
			}
		}
	}
	before := 0
	for _, l := range d.Lines {
		at("a line", l.X1, l.X2)
		if strings.HasPrefix(l.Class, "life") {
			if l.X1 < before+20 {
				t.Errorf("%s: a lifeline at %d follows one at %d", name, l.X1, before)
			}
			before = l.X1
		}
	}
	for _, a := range d.Arrows {
		at("an arrow", a.X1, a.X2)
	}
	for _, p := range d.Pills {
		at("the box of "+p.Text, p.X, p.X+p.W)
	}
	for _, r := range slices.Concat(d.Under, d.Over) {
		at("a rectangle", r.X, r.X+r.W)
		if r.H < 0 || r.Y+r.H > d.Height {
			t.Errorf("%s: a rectangle from %d, %d high, of %d", name, r.Y, r.H, d.Height)
		}
	}
}

func TestOverlapsAreThoseOfTwoOrMore(t *testing.T) {
	got := overlaps([]bar{{client: 0, from: 0, to: 10}, {client: 1, from: 5, to: 20}, {client: 2, from: 8, to: 9}, {client: 3, from: 20, to: 30}})
	want := []shared{{[]int{0, 1}, 5, 8}, {[]int{0, 1, 2}, 8, 9}, {[]int{0, 1}, 9, 10}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("overlaps: %v; want %v", got, want)
	}
}

// TestPagesStandByThemselves checks that nothing that clients send becomes markup, and that a page refers to no other
// file.
func TestPagesStandByThemselves(t *testing.T) {
	e := reportstest.Takeover()
	e.Counterexample.Steps[2].Text = `get <script>alert(1)</script> -> "&`
	e.Command = `oversell explore --lock "<b>"`
	var b bytes.Buffer
	if err := Exploration(&b, e, "oversell explore --replay 'my runs/explore-01.json' --target process"); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>alert", "<b>\"", "http://", "https://", "src=", "ZgotmplZ", "@import"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"<html lang=\"en\">", "default-src 'none'", "&lt;script&gt;", "violated: mutual-exclusion of lock php-lock-printed, in 5 steps", "both inside", "oversell explore --replay &#39;my runs/explore-01.json&#39; --target process</code>", `class="copy"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
