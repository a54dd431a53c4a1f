package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rivo/uniseg"

	"oversell/checker"
	"oversell/history"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
	"oversell/watch"
)

func seckillOf(stock int64) about {
	s, _ := scenarios.Find("seckill")
	c := scenarios.Config{Scenario: s, Stock: stock, Clients: 16, Sale: stockimpl.Variant{Name: "plain"}}
	c.Lock.Name = "php-lock-printed"
	return about{i: 2, n: 20, c: c}
}

func someFigures() watch.Figures {
	return watch.Figures{
		Begun: true, Elapsed: 1234 * time.Millisecond, Ops: 45678, Sold: 250, Rate: 12345, Rates: []float64{0, 5000, 10000, 12345},
		Main: history.Acquire, P50: 1230 * time.Microsecond, P99: 98700 * time.Microsecond,
		Faults: []history.FaultCount{{Name: "freeze holder 3s every 2s", Fired: 3}, {Name: "reset 1%", Failed: "no proxy"}},
		Broken: []watch.Violation{{Verdict: checker.Verdict{Of: variant.Sale, Property: variant.NoOversell}}},
	}
}

func TestLinesOfTheView(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{79, ` 3/20 seckill, lock php-lock-printed, sale plain
      ###############...............  sold 250 of 500, 1.2 s
      12,345 ops/s _=%#  acquire p50 1.23 ms, p99 98.7 ms
      fired 3 times: freeze holder 3s every 2s
      has not fired: reset 1%; failed: no proxy
      broken: no-oversell`},
		{39, ` 3/20 seckill, lock php-lock-printed, sale plain
  ######.......  sold 250 of 500, 1.2 s
  12,345 ops/s  p50 1.23 ms, p99 98.7 ms
  fired 3 times: freeze holder 3s every 2s
  has not fired: reset 1%; failed: no proxy
  broken: no-oversell`},
	} {
		got := strings.Join(style{width: c.width, glyphs: asciiGlyphs}.lines(seckillOf(500), someFigures()), "\n")
		if got != c.want {
			t.Errorf("width %d:\n%s\nwant\n%s", c.width, got, c.want)
		}
	}
	for width := range 200 { // no width is too small
		for _, f := range []watch.Figures{{}, {Begun: true}, someFigures()} {
			lines := style{width, unicodeGlyphs, true}.lines(seckillOf(0), f)
			if w := visible(lines[1]); width >= 60 && w > width {
				t.Errorf("width %d: %q", width, lines[1])
			}
		}
	}
}

func TestHowMuchIsDone(t *testing.T) {
	a := seckillOf(500)
	f := watch.Figures{Sold: 600, Rounds: 30, Elapsed: time.Second}
	mutex, _ := scenarios.Find("mutex")
	timed, limited, endless := a, a, a
	timed.c = scenarios.Config{Scenario: mutex, Duration: 4 * time.Second}
	limited.c = scenarios.Config{Scenario: mutex, Duration: 4 * time.Second, Ops: 20}
	endless.c = scenarios.Config{Scenario: mutex}
	for _, c := range []struct {
		a     about
		part  float64
		words string
	}{{a, 1.2, "sold 600 of 500"}, {timed, 0.25, "of 4s"}, {limited, 1, "step 20 of 20"}, {endless, 0, ""}} {
		if part, words := c.a.done(f); part != c.part || words != c.words {
			t.Errorf("%v, %q; want %v, %q", part, words, c.part, c.words)
		}
	}
}

func TestPlainLines(t *testing.T) {
	a, f := seckillOf(500), someFigures()
	var p plain
	tell := func(elapsed time.Duration) string {
		f.Elapsed = elapsed
		return strings.Join(p.lines(a, f), "\n")
	}
	for _, c := range []struct {
		elapsed time.Duration
		want    string
	}{
		{1200 * time.Millisecond, ` 3/20 fault "freeze holder 3s every 2s" first fired within 1.20 s of the start`},
		{1400 * time.Millisecond, ""},
		{5100 * time.Millisecond, " 3/20 seckill, lock php-lock-printed, sale plain: 5.10 s sold 250 of 500, 45,678 operations, 12,345 ops/s, acquire p50 1.23 ms, p99 98.7 ms"},
		{9900 * time.Millisecond, ""},
		{10 * time.Second, " 3/20 seckill, lock php-lock-printed, sale plain: 10.0 s sold 250 of 500, 45,678 operations, 12,345 ops/s, acquire p50 1.23 ms, p99 98.7 ms"},
	} {
		if got := tell(c.elapsed); got != c.want {
			t.Errorf("after %v: %q\nwant %q", c.elapsed, got, c.want)
		}
	}
	f.Unjudged = "too fast"
	if got := tell(11 * time.Second); got != " 3/20 judged at the end only: too fast" {
		t.Errorf("%q", got)
	}
	if got := tell(12 * time.Second); got != "" {
		t.Errorf("told again: %q", got)
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 900: "0.001 ms", 12300 * time.Nanosecond: "0.012 ms", 1234 * time.Microsecond: "1.23 ms", 98765 * time.Microsecond: "98.8 ms",
		999 * time.Millisecond: "999 ms", 999900 * time.Microsecond: "1.00 s", 12345 * time.Millisecond: "12.3 s", 90 * time.Minute: "1h30m0s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q; want %q", d, got, want)
		}
	}
}

func TestGlyphsFollowTheLocale(t *testing.T) {
	for _, c := range []struct {
		all, lang string
		unicode   bool
	}{{"", "de_DE.UTF-8", true}, {"", "C.utf8", true}, {"C", "de_DE.UTF-8", false}, {"", "", false}} {
		env := map[string]string{"LC_ALL": c.all, "LANG": c.lang}
		if got := glyphsOf(func(name string) string { return env[name] }); (got.full == unicodeGlyphs.full) != c.unicode {
			t.Errorf("%+v: %q", c, got.full)
		}
	}
}

// TestWhatIsNotConfirmedIsTakenBack checks that a violation that the final judgement does not confirm is reported.
// This should never happen.
func TestWhatIsNotConfirmedIsTakenBack(t *testing.T) {
	broken := []watch.Violation{
		{Verdict: checker.Verdict{Of: variant.Sale, Property: variant.NoOversell}},
		{Verdict: checker.Verdict{Of: variant.Lock, Property: variant.Linearizable}},
	}
	r := reports.Run{Properties: []reports.Property{
		{Of: variant.Sale, Name: variant.NoOversell, Result: reports.Broken},
		{Of: variant.Sale, Name: variant.Linearizable, Result: reports.Broken},
		{Of: variant.Lock, Name: variant.Linearizable, Result: reports.Unknown},
	}}
	if vs := unconfirmed(broken, r); len(vs) != 1 || vs[0].Of != variant.Lock {
		t.Errorf("%+v", vs)
	}
}

// onTerminal runs the program with stderr on a terminal of some width, and calls each with the screen as output
// arrives, until the program ends.
func onTerminal(t *testing.T, width int, env []string, each func(cmd *exec.Cmd, screen *screen), args ...string) (code int, s *screen, raw string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 50, Cols: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asOversell+"=1", "LC_ALL=C.UTF-8", "TERM=xterm", "NO_COLOR="), env...)
	cmd.Dir, cmd.Stderr = t.TempDir(), slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	stop := sync.OnceFunc(func() { cmd.Process.Kill() })
	t.Cleanup(stop)
	deadline := time.AfterFunc(time.Minute, stop)
	defer deadline.Stop()
	s = newScreen(width)
	s.long = []string{"page: ", "judge again: ", "seed "} // lines to copy, which the program does not break
	var all bytes.Buffer
	for b := make([]byte, 1<<16); ; {
		n, err := master.Read(b)
		all.Write(b[:n])
		s.Write(b[:n])
		if s.problem != "" {
			t.Fatalf("a terminal of %d columns was given %s", width, s.problem)
		}
		if each != nil {
			each(cmd, s)
		}
		if err != nil {
			if !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF) { // how reading ends once nobody has the terminal open
				t.Error(err)
			}
			break
		}
	}
	cmd.Wait()
	return cmd.ProcessState.ExitCode(), s, all.String()
}

// TestLiveOnATerminal reads what terminals of several widths show: no line reaches the edge, the view is there while
// the run goes on, a violation stays above it, and Ctrl-C leaves the line of the run and nothing of the view.
func TestLiveOnATerminal(t *testing.T) {
	for _, c := range []struct {
		width  int
		env    []string
		colour bool
	}{{80, nil, true}, {40, []string{"NO_COLOR=1"}, false}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "runs")
			shown, stopped := "", false
			code, s, raw := onTerminal(t, c.width, c.env, func(cmd *exec.Cmd, s *screen) {
				text := s.text()
				ready := strings.Contains(text, "broken: mutual-exclusion") && strings.Contains(text, "ops/s") && strings.Contains(text, "pause holder") && strings.Contains(text, "p99")
				if ready && !stopped {
					shown, stopped = text, true
					cmd.Process.Signal(os.Interrupt)
				}
			}, "run", "--target", "embedded", "--scenario", "mutex", "--lock", "php-lock-printed", "--clients", "8", "--duration", "1h",
				"--fault", "pause holder 5ms 1%", "--out", dir)
			if code != reports.ExitViolated || !stopped {
				t.Fatalf("exit %d\n%s", code, s.text())
			}
			if strings.Contains(raw, "\x1b[1;31m") != c.colour {
				t.Errorf("colours: %v", !c.colour)
			}
			lines := strings.Split(s.text(), "\n")
			for _, line := range strings.Split(shown, "\n") {
				if w := uniseg.StringWidth(line); w > c.width-1 {
					t.Errorf("%q takes %d columns of %d", line, w, c.width)
				}
			}
			text := strings.Join(strings.Fields(s.text()), " ")
			for _, want := range []string{"1/1 mutual-exclusion of the lock broken within ", "1/1 mutex, lock php-lock-printed: violated, broke mutual-exclusion", "histories in"} {
				if !strings.Contains(text, want) {
					t.Errorf("what stays lacks %q:\n%s", want, s.text())
				}
			}
			for _, left := range []string{"ops/s", "fired", "broken: ", "█", "░"} {
				if strings.Contains(s.text(), left) {
					t.Errorf("%q of the view is left:\n%s", left, s.text())
				}
			}
			if s.col != 0 || lines[len(lines)-1] != "" {
				t.Errorf("the cursor is in column %d after %q", s.col, lines[len(lines)-1])
			}
		})
	}
}

// TestLiveInPlainLines checks that stderr gets plain lines where it is not a terminal, and that stdout gets none of
// them.
func TestLiveInPlainLines(t *testing.T) {
	code, stdout, stderr := cli(t, "run", "--target", "embedded", "--scenario", "mutex", "--lock", "php-lock-printed", "--clients", "8", "--duration", "2s",
		"--fault", "pause holder 5ms 1%", "--json", "--out", t.TempDir())
	if code != reports.ExitViolated || !strings.HasPrefix(stdout, "{") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{
		" 1/1 mutual-exclusion of the lock broken within ",
		` 1/1 fault "pause holder 5ms 1%" first fired within `,
		" 1/1 mutex, lock php-lock-printed: violated, broke mutual-exclusion",
	} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("stderr says %q %d times; want once:\n%s", want, strings.Count(stderr, want), stderr)
		}
	}
	if strings.ContainsAny(stderr, "\x1b\r") {
		t.Errorf("stderr holds what only a terminal understands: %q", stderr)
	}
}
