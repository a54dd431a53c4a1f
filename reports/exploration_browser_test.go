package reports

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// shots is a directory for pictures of the pages, for people to look at; empty in
// most runs.
var shots = os.Getenv("OVERSELL_SHOTS")

// browse starts a browser that ends with the test, or skips the test where there
// is none.
func browse(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
			t.Fatal("no chromium on PATH, and OVERSELL_REQUIRE_ALL=1")
		}
		t.Skip("no chromium on PATH (./setup.sh installs it)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own rule for root
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(end)
	ctx, end = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, whose files are removed next
		end()
	})
	return ctx
}

// overheard is what a page asked for and complained of.
type overheard struct {
	mu       sync.Mutex
	requests []string
	trouble  []string
}

func (o *overheard) hear(event any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		o.requests = append(o.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		o.trouble = append(o.trouble, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		o.trouble = append(o.trouble, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		o.trouble = append(o.trouble, e.Entry.Text)
	}
}

// heard returns what came since the last time.
func (o *overheard) heard() (requests, trouble []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	requests, trouble = o.requests, o.trouble
	o.requests, o.trouble = nil, nil
	return requests, trouble
}

// measured is what a page is like on a screen.
type measured struct {
	Overflow  int      // by how many pixels the document is wider than the screen
	Below     []string // what should be seen at once and is not
	Unnamed   int      // steps without a name
	Steps     int
	Pale      []string // texts whose contrast is below 4.5
	Diagrams  int
	Unclipped int // by how many pixels a diagram leaves its own box
}

// measure runs in the page. Contrast is that of each text with what is behind it;
// texts in the diagram stand on the card or on the box of their own.
const measure = `(() => {
  const shown = e => e.getClientRects().length > 0;
  const all = q => [...document.querySelectorAll(q)].filter(shown);
  const lum = c => { const v = c.match(/[\d.]+/g).slice(0, 3).map(x => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4 }); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2] };
  const contrast = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + .05) / (y + .05) };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!c.startsWith('rgba(0, 0, 0, 0')) return c } return 'rgb(255,255,255)' };
  const pale = [];
  for (const e of all('h1, h2, p, li, th, td, dt, dd, code, small, .tag, caption, svg text')) {
    const s = getComputedStyle(e), box = e.parentElement.matches('.pill') && e.parentElement.querySelector('rect');
    const ink = e.matches('svg text') ? s.fill : s.color;
    const ratio = contrast(ink, box ? getComputedStyle(box).fill : behind(e));
    if (ratio < 4.5) pale.push(e.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  const below = [];
  for (const q of ['#verdict', '#sentence', '#breaking', '.edge']) {
    for (const e of all(q)) { const r = e.getBoundingClientRect(); if (r.bottom > innerHeight || r.top < 0 || r.right > innerWidth) below.push(q) }
  }
  return {
    Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    Below: below, Pale: pale,
    Steps: all('.hot').length,
    Unnamed: all('.hot').filter(a => !a.getAttribute('aria-label')).length + all('svg[role=img]').filter(a => !a.getAttribute('aria-label')).length,
    Diagrams: all('.stage').length,
    Unclipped: Math.max(0, ...all('.stage').map(e => e.parentElement.scrollWidth - e.parentElement.clientWidth)),
  };
})()`

// TestExplorationPage looks at the pages as people do.
func TestExplorationPage(t *testing.T) {
	ctx := browse(t)
	var o overheard
	chromedp.ListenTarget(ctx, o.hear)
	if err := chromedp.Run(ctx, network.Enable(), runtime.Enable(), log.Enable()); err != nil {
		t.Fatal(err)
	}
	for name, e := range explorations() {
		url := "file://" + writePage(t, name, e)
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

// showsStep checks that who goes to a step by keyboard, or points at it, is
// shown all of it inside the diagram's box.
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

// judge says what is wrong with the page.
func (m measured) judge(t *testing.T, e Exploration, width int64) {
	steps, diagrams := 0, 0
	if e.Counterexample != nil {
		steps, diagrams = len(e.Counterexample.Steps), 1
	}
	if m.Overflow > 0 {
		t.Errorf("the document is %d pixels wider than the screen", m.Overflow)
	}
	if m.Unclipped > 0 {
		t.Errorf("a diagram is %d pixels wider than its box", m.Unclipped)
	}
	if m.Steps != steps || m.Unnamed > 0 || m.Diagrams != diagrams {
		t.Errorf("%d steps in %d diagrams, %d without a name; want %d in %d, all named", m.Steps, m.Diagrams, m.Unnamed, steps, diagrams)
	}
	if len(m.Pale) > 0 {
		t.Errorf("texts with too little contrast: %q", m.Pale)
	}
	for _, what := range m.Below {
		// A long schedule does not fit a screen; its last step is told in words above.
		if width > 1000 && (what != ".edge" || steps <= 6) {
			t.Errorf("%s is not seen without scrolling", what)
		}
	}
}

// writePage returns where the page is.
func writePage(t *testing.T, name string, e Exploration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.HTML(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// look measures the page that is open on a screen of some size.
func look(t *testing.T, ctx context.Context, name, scheme string, size [2]int64) (m measured) {
	t.Helper()
	actions := []chromedp.Action{
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.EmulateViewport(size[0], size[1]),
		chromedp.Evaluate(measure, &m),
	}
	var picture []byte
	if shots != "" {
		actions = append(actions, chromedp.FullScreenshot(&picture, 100))
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
	if shots != "" {
		file := filepath.Join(shots, fmt.Sprintf("%s-%s-%d.png", name, scheme, size[0]))
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return m
}
