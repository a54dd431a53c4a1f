package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"oversell/reports"
	"oversell/reports/reportstest"
)

// explorationPages looks at the pages of explorations as people do.
func explorationPages(t *testing.T, ctx context.Context, o *overheard) {
	for name, e := range reportstest.Explorations() {
		url := "file://" + explorationFile(t, name, e)
		if err := chromedp.Run(ctx, chromedp.Navigate(url)); err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"light", "dark"} {
			for _, size := range [][2]int64{{1400, 900}, {390, 844}} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, scheme, size[0]), func(t *testing.T) {
					look(t, ctx, name, scheme, size).judge(t, e, size[0])
				})
			}
		}
		t.Run(name+"-in-full", func(t *testing.T) { showsStep(t, ctx) })
		if requests, trouble := o.heard(); len(trouble) > 0 || len(requests) != 1 || requests[0] != url {
			t.Errorf("%s asked for %q and complained of %q; want itself and nothing", name, requests, trouble)
		}
	}
}

// showsStep checks that a step that has the focus is shown in full within the diagram's box.
func showsStep(t *testing.T, ctx context.Context) {
	t.Helper()
	const tip = `(() => {
		const hot = [...document.querySelectorAll('.hot')].filter(e => e.getClientRects().length > 0);
		return hot.map(h => {
			h.focus();
			const tip = h.querySelector('.tip'), r = tip.getBoundingClientRect(), box = h.closest('.box').getBoundingClientRect();
			return r.height > 0 && r.top >= box.top && r.bottom <= box.bottom && r.left >= 0 && r.right <= innerWidth ? '' : h.getAttribute('aria-label');
		}).filter(s => s);
	})()`
	var hidden []string
	var picture []byte
	actions := []chromedp.Action{chromedp.KeyEvent("\t"), chromedp.Evaluate(tip, &hidden)}
	if shots != "" {
		actions = append(actions, chromedp.FullScreenshot(&picture, 100))
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
	if len(hidden) > 0 {
		t.Errorf("steps that are not shown in full when they are focused: %q", hidden)
	}
	if shots != "" {
		if err := os.WriteFile(filepath.Join(shots, filepath.Base(t.Name())+"-focus.png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// judge fails the test if something is wrong with the page of an exploration.
func (m measured) judge(t *testing.T, e reports.Exploration, width int64) {
	steps, diagrams := 0, 0
	if e.Counterexample != nil {
		steps, diagrams = len(e.Counterexample.Steps), 1
	}
	m.legible(t)
	if m.Unclipped > 0 {
		t.Errorf("a diagram is %d pixels wider than its box", m.Unclipped)
	}
	if m.Steps != steps || m.Unnamed > 0 || m.Diagrams != diagrams {
		t.Errorf("%d steps in %d diagrams, %d without a name; want %d in %d, all named", m.Steps, m.Diagrams, m.Unnamed, steps, diagrams)
	}
	for _, what := range m.Below {
		// A long schedule does not fit a screen. The text above tells its last step.
		if width > 1000 && (what != ".edge" || steps <= 6) {
			t.Errorf("%s is not seen without scrolling", what)
		}
	}
}

// explorationFile writes the page of an exploration and returns its path.
func explorationFile(t *testing.T, name string, e reports.Exploration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Exploration(f, e, "oversell explore --replay explore-01.json --target process"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
