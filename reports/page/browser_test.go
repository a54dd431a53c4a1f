package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// shots is a directory for screenshots of the pages, for people to look at. It is empty in most runs.
var shots = os.Getenv("OVERSELL_SHOTS")

// browse starts a browser that ends with the test, or skips the test where there is no browser.
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
		chromedp.UserDataDir(profile(t)), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(2*time.Minute)) // on a busy machine a browser takes long to start
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium requires this for root
	}
	ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(end)
	ctx, end = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end, before its files are removed
		end()
	})
	return ctx
}

// profile returns a directory for a browser. The browser's helper processes may write there for a moment after it has
// ended, so removing it can take several attempts.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "oversell-browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 1000 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("the browser's directory is still there: %v", err)
	})
	return dir
}

// overheard collects the requests and the errors of a page.
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

// heard returns the requests and errors since the last call.
func (o *overheard) heard() (requests, trouble []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	requests, trouble = o.requests, o.trouble
	o.requests, o.trouble = nil, nil
	return requests, trouble
}

// measured is what measure finds out about a page on a screen.
type measured struct {
	Overflow  int      // pixels by which the document is wider than the screen
	Below     []string // elements that should be visible without scrolling and are not
	Unnamed   int      // steps and pictures without a name
	Covered   []string // words of a timeline that cover each other
	Steps     int
	Pale      []string // texts whose contrast is below 4.5
	Diagrams  int
	Unclipped int // pixels by which a diagram is wider than its box
}

// measure runs in the page. Contrast is that of each text with its background; a text in the diagram has the card or
// a box of its own as background.
const measure = `(() => {
  const shown = e => e.getClientRects().length > 0;
  const all = q => [...document.querySelectorAll(q)].filter(shown);
  const lum = c => { const v = c.match(/[\d.]+/g).slice(0, 3).map(x => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4 }); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2] };
  const contrast = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + .05) / (y + .05) };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!c.startsWith('rgba(0, 0, 0, 0')) return c } return 'rgb(255,255,255)' };
  const pale = [];
  const boxOf = e => e.matches('.pill text') ? e.parentElement.querySelector('rect') : e.matches('.badge text') ? e.parentElement.querySelector('circle') : e.matches('.item text') ? e.parentElement.querySelector('.body') : null;
  for (const e of all('h1, h2, p, li, th, td, dt, dd, code, small, .tag, caption, svg text, summary, button, figcaption, .unit, .names span, .result, .note, .number, .time, .text, .value, .name, output')) {
    if (!e.textContent.trim()) continue;
    const s = getComputedStyle(e), box = boxOf(e), fill = box && getComputedStyle(box).fill;
    const ink = e.matches('svg text') ? s.fill : s.color;
    const ratio = contrast(ink, fill && fill.startsWith('rgb') ? fill : behind(e));
    if (ratio < 4.5) pale.push(e.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  const below = [];
  for (const q of ['#verdict', '#sentence', '#breaking', '.edge']) {
    for (const e of all(q)) { const r = e.getBoundingClientRect(); if (r.bottom > innerHeight || r.top < 0 || r.right > innerWidth) below.push(q) }
  }
  const covered = [], seen = [];
  for (const e of all('.plot .tick, .plot .pill')) {
    const r = e.getBoundingClientRect(), plot = e.closest('.plot');
    for (const [q, o] of seen) if (o === plot && q.left < r.right - 1 && r.left < q.right - 1 && q.top < r.bottom - 1 && r.top < q.bottom - 1) covered.push(e.textContent);
    seen.push([r, plot]);
    const card = e.closest('.chart')?.getBoundingClientRect();
    if (card && (r.left < card.left || r.right > card.right)) covered.push(e.textContent + ' beyond its card');
  }
  for (const e of all('.timeline .item:not(.tight) text')) {
    const r = e.getBoundingClientRect(), item = e.closest('.item');
    for (const o of all('.timeline .item .body, .timeline .badge circle, .timeline .lease path')) {
      const q = o.getBoundingClientRect(), after = item.compareDocumentPosition(o) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (after && !item.contains(o) && q.left < r.right - 1 && r.left < q.right - 1 && q.top < r.bottom - 3 && r.top < q.bottom - 3) covered.push(e.textContent + ' under ' + (o.closest('[aria-label]')?.getAttribute('aria-label') ?? o.tagName));
    }
  }
  return {
    Covered: covered,
    Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    Below: below, Pale: pale,
    Steps: all('.hot').length,
    Unnamed: all('.hot').filter(a => !a.getAttribute('aria-label')).length + all('svg[role=img]').filter(a => !a.getAttribute('aria-label')).length,
    Diagrams: all('.stage').length,
    Unclipped: Math.max(0, ...all('.stage').map(e => e.parentElement.scrollWidth - e.parentElement.clientWidth)),
  };
})()`

// redrawn waits until the page is drawn in its new size.
const redrawn = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// look measures the open page on a screen of some size.
func look(t *testing.T, ctx context.Context, name, scheme string, size [2]int64) (m measured) {
	t.Helper()
	actions := []chromedp.Action{
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.EmulateViewport(size[0], size[1]),
		chromedp.Evaluate(redrawn, nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
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

// legible fails the test if the page breaks a rule that holds for all pages.
func (m measured) legible(t *testing.T) {
	t.Helper()
	if m.Overflow > 0 {
		t.Errorf("the document is %d pixels wider than the screen", m.Overflow)
	}
	if len(m.Pale) > 0 {
		t.Errorf("texts with too little contrast: %q", m.Pale)
	}
	if len(m.Covered) > 0 {
		t.Errorf("words that cover others: %q", m.Covered)
	}
	if m.Unnamed > 0 {
		t.Errorf("%d pictures have no name", m.Unnamed)
	}
}

// TestPages looks at all pages in one browser, as people do.
func TestPages(t *testing.T) {
	ctx := browse(t)
	var o overheard
	chromedp.ListenTarget(ctx, o.hear)
	if err := chromedp.Run(ctx, network.Enable(), runtime.Enable(), log.Enable()); err != nil {
		t.Fatal(err)
	}
	t.Run("exploration", func(t *testing.T) { explorationPages(t, ctx, &o) })
	for name, write := range pagesForTest(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name+".html")
			f, err := os.Create(path)
			if err == nil {
				err = write(f)
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			if err := chromedp.Run(ctx, chromedp.Navigate("file://"+path)); err != nil {
				t.Fatal(err)
			}
			for _, scheme := range []string{"light", "dark"} {
				for _, size := range [][2]int64{{1400, 900}, {390, 844}} {
					m := look(t, ctx, name, scheme, size)
					m.legible(t)
					if len(m.Below) > 0 {
						t.Errorf("at %d pixels, not seen without scrolling: %q", size[0], m.Below)
					}
				}
			}
			if name == "seckill" {
				page := driven{t, ctx}
				t.Run("hover", page.hovers)
				t.Run("zoom", page.zooms)
				t.Run("keys", page.keys)
				t.Run("read", page.reads)
				t.Run("copy", page.copies)
			}
			if name == "comparison" {
				t.Run("unfold", driven{t, ctx}.unfolds)
			}
			if requests, trouble := o.heard(); len(trouble) > 0 || len(requests) != 1 {
				t.Errorf("it asked for %q and complained of %q; want itself and nothing", requests, trouble)
			}
		})
	}
}

// driven is a page that a test uses with mouse and keyboard.
type driven struct {
	t   *testing.T
	ctx context.Context
}

func (d driven) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(d.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// text evaluates an expression and returns its value as a text.
func (d driven) text(t *testing.T, expression string) (s string) {
	t.Helper()
	d.do(t, chromedp.Evaluate("String("+expression+")", &s))
	return s
}

// until waits until an expression is true.
func (d driven) until(t *testing.T, expression string) {
	t.Helper()
	ctx, end := context.WithTimeout(d.ctx, time.Minute)
	defer end()
	if err := chromedp.Run(ctx, chromedp.Poll(expression, nil)); err != nil {
		t.Fatalf("%s never holds: %v", expression, err)
	}
}

// middle returns the middle of an element on the screen.
func (d driven) middle(t *testing.T, query string) (x, y float64) {
	t.Helper()
	var at []float64
	d.do(t, chromedp.EmulateViewport(1400, 900), chromedp.Evaluate(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({ block: 'center' });
		const r = e.getBoundingClientRect();
		return [r.left + r.width / 2, r.top + r.height / 2];
	})()`, query), &at))
	return at[0], at[1]
}

func (d driven) hovers(t *testing.T) {
	x, y := d.middle(t, ".item.hold.k1, .item.hold.c1")
	d.do(t, input.DispatchMouseEvent(input.MouseMoved, x, y))
	d.until(t, `!document.querySelector('.bubble').hidden`)
	if s := d.text(t, `document.querySelector('.bubble').textContent`); !strings.Contains(s, "by SET after TTL -1") {
		t.Errorf("who points at the second holder is told %q; it lacks the command", s)
	}
	if s := d.text(t, `(r => r.left >= 0 && r.right <= innerWidth && r.top >= 0)(document.querySelector('.bubble').getBoundingClientRect())`); s != "true" {
		t.Error("what is told does not fit the screen")
	}
	d.do(t, input.DispatchMouseEvent(input.MouseMoved, 2, 2))
	d.until(t, `document.querySelector('.bubble').hidden`)
}

func (d driven) zooms(t *testing.T) {
	const shownRange = `document.querySelector('.range').textContent`
	const wide = `Math.round(document.querySelector('.scroll .plot').getBoundingClientRect().width / document.querySelector('.scroll').clientWidth)`
	whole := d.text(t, shownRange)
	d.do(t, chromedp.Click(`[data-do="in"]`, chromedp.ByQuery), chromedp.Click(`[data-do="in"]`, chromedp.ByQuery))
	near := d.text(t, shownRange)
	if near == whole || d.text(t, wide) != "4" {
		t.Errorf("zoomed in twice, the timeline is %s times as wide and shows %s, of %s", d.text(t, wide), near, whole)
	}
	if n := d.text(t, `document.querySelectorAll('.ticks text').length`); n == "0" || n == "1" {
		t.Errorf("zoomed in, there are %s marks on the scale", n)
	}
	d.do(t, chromedp.Click(`[data-do="on"]`, chromedp.ByQuery))
	d.until(t, shownRange+" !== '"+near+"'")
	x, y := d.middle(t, ".scroll")
	left := d.text(t, `document.querySelector('.scroll').scrollLeft`)
	d.do(t, input.DispatchMouseEvent(input.MousePressed, x, y).WithButton(input.Left).WithClickCount(1),
		input.DispatchMouseEvent(input.MouseMoved, x+200, y).WithButton(input.Left),
		input.DispatchMouseEvent(input.MouseReleased, x+200, y).WithButton(input.Left).WithClickCount(1))
	d.until(t, `document.querySelector('.scroll').scrollLeft < `+left)
	d.do(t, input.DispatchMouseEvent(input.MouseWheel, x, y).WithDeltaX(0).WithDeltaY(-120).WithModifiers(input.ModifierCtrl))
	d.until(t, wide+" > 4")
	d.do(t, chromedp.Click(`[data-do="all"]`, chromedp.ByQuery))
	if s := d.text(t, shownRange); s != whole {
		t.Errorf("all of it is %s, and was %s", s, whole)
	}
}

func (d driven) keys(t *testing.T) {
	const focused = `document.activeElement.getAttribute('aria-label')`
	d.do(t, chromedp.Focus(".scroll", chromedp.ByQuery), chromedp.KeyEvent("+"))
	d.until(t, `document.querySelector('.scroll .plot').style.width === '200%'`)
	d.do(t, chromedp.KeyEvent("\r"))
	d.until(t, `document.activeElement.matches('.item.told')`)
	first := d.text(t, focused)
	if s := d.text(t, `document.querySelector('.bubble').textContent`); s != first {
		t.Errorf("focused is %q, and told %q", first, s)
	}
	d.do(t, chromedp.KeyEvent(kb.ArrowDown))
	if s := d.text(t, focused); s == first {
		t.Errorf("the arrow keys stay at %q", s)
	}
	d.do(t, chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("0"))
	d.until(t, `document.querySelector('.scroll .plot').style.width === '100%'`)
}

func (d driven) reads(t *testing.T) {
	x, y := d.middle(t, ".chart .area")
	d.do(t, input.DispatchMouseEvent(input.MouseMoved, x, y))
	d.until(t, `/sold \d+/.test(document.querySelector('.readout').textContent)`)
	d.do(t, chromedp.Focus(".chart .area", chromedp.ByQuery))
	before := d.text(t, `document.querySelector('.readout').textContent`)
	d.do(t, chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	if s := d.text(t, `document.querySelector('.readout').textContent`); s == before || s == "" {
		t.Errorf("the arrow keys leave the values at %q", s)
	}
}

func (d driven) copies(t *testing.T) {
	d.do(t, chromedp.Click(".copy", chromedp.ByQuery))
	d.until(t, `document.querySelector('.copy').textContent !== 'copy'`)
}

func (d driven) unfolds(t *testing.T) {
	d.do(t, chromedp.Click(".matrix a", chromedp.ByQuery))
	d.until(t, `location.hash !== '' && document.querySelector(location.hash).open`)
}
