package campaign

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
)

// shellWords splits a command line as a shell does; it knows only single quotes.
func shellWords(t *testing.T, line string) (words []string) {
	t.Helper()
	var w strings.Builder
	open, any := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			open, any = !open, true
		case r == ' ' && !open:
			if any || w.Len() > 0 {
				words = append(words, w.String())
			}
			w.Reset()
			any = false
		default:
			w.WriteRune(r)
		}
	}
	if open {
		t.Fatalf("%s: a quote is not closed", line)
	}
	return append(words, w.String())
}

// TestCommandMakesTheSameRun checks, for every scenario, that the command line of a history makes a run whose history
// has the same header.
func TestCommandMakesTheSameRun(t *testing.T) {
	for _, args := range [][]string{
		{"--lock", "lua-release", "--refund", "0.2", "--resend", "0.1", "--quantity", "3"},
		{"--lock", "fenced", "--hold", "1ms", "--waiting", "pubsub", "--pool", "2", "--fault", "pause holder 5ms nth 3"},
		{"--scenario", "mutex", "--lock", "redlock", "--topology", "masters:3", "--duration", "60ms"},
		{"--scenario", "mutex", "--lock", "set-nx-ex", "--ops", "20", "--ttl", "3s", "--wait", "2s", "--retry", "3ms"},
		{"--scenario", "queue", "--queue", "reliable", "--visibility", "300ms", "--attempts", "9", "--delay", "3ms", "--repeat", "0.1", "--die", "0.05", "--ops", "60"},
		{"--scenario", "queue", "--queue", "zset-atomic", "--batch", "3", "--withdraw", "0.2", "--peek", "0.5", "--ops", "40"},
		{"--lock", "none", "--sale", "watch", "--refuse-stale"},
		{"--lock", "lua-release", "--waiting", "fixed", "--retry", "2ms"},
		{"--scenario", "ids", "--lock", "lua-release", "--ids", "incr", "--ops", "30"},
		{"--scenario", "floors", "--lock", "lua-release", "--ops", "30", "--timeout", "4s"},
		{"--scenario", "dispatch", "--lock", "lua-release", "--ops", "20"},
		{"--lock", "none", "--sale", "lua", "--rate", "0.2k/s"},
		{"--lock", "none", "--sale", "lua", "--stages", "0:100,100ms:400", "--arrival", "poisson"},
		{"--scenario", "ids", "--lock", "none", "--ids", "incr", "--ops", "30", "--rate", "300"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			args = append(args, "--target", "embedded", "--clients", "4", "--seed", "11")
			if slices.Contains(args, "--lock") && !slices.Contains(args, "--scenario") {
				args = append(args, "--stock", "12")
			}
			first := headerOf(t, args)
			line := commandLine(first)
			words := shellWords(t, line)
			if len(words) < 3 || words[0] != "oversell" || words[1] != "run" {
				t.Fatalf("the command line is %q", line)
			}
			if second := headerOf(t, words[2:]); !reflect.DeepEqual(first, second) {
				t.Errorf("%s\nmakes a run of\n%+v\nwhich is not\n%+v", line, second, first)
			}
			for _, given := range []string{"--scenario seckill ", "--waiting poll", "--pool 0", "--ttl 10s", "--wait 10s"} {
				if strings.Contains(line, given) {
					t.Errorf("%s: %q is a default, and goes without saying", line, given)
				}
			}
		})
	}
}

// headerOf makes a run and returns its header without the start time.
func headerOf(t *testing.T, args []string) history.Header {
	t.Helper()
	o, err := Parse(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	p, _ := ran(t, *o)
	h, err := history.Read(filepath.Join(p.Dir, runName(0, p.Runs[0]), HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	h.Header.Started = time.Time{}
	return h.Header
}

// TestCommandOfAQueuedSale checks the one scenario that TestCommandMakesTheSameRun leaves out: its consumers wait
// long before they believe that the sale is over.
func TestCommandOfAQueuedSale(t *testing.T) {
	h := history.Header{Scenario: "seckill-queued", Queue: "zset-locked", Lock: "lua-release", Sale: "lua", Stock: 7, Quantity: 1, Clients: 6, Target: "process", Topology: "single", TTL: 10 * time.Second, Wait: time.Second, Seed: 3}
	o, err := Parse(shellWords(t, commandLine(h))[2:])
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(t.Context(), *o)
	if err != nil || len(p.Runs) != 1 {
		t.Fatalf("%s: %d runs, %v", commandLine(h), len(p.Runs), err)
	}
	c := p.Runs[0]
	if c.Scenario.Name != h.Scenario || c.Queue.Name != h.Queue || c.Lock.Name != h.Lock || c.Sale.Name != h.Sale || c.Stock != h.Stock || c.Clients != h.Clients || c.Wait != h.Wait || c.Seed != h.Seed {
		t.Errorf("%s makes a run of %+v", commandLine(h), c)
	}
}

// TestCommandOfWhatIsNotKnown checks that a command line has placeholders for the user where the history says
// nothing, and that there is none for a variant that is not shipped.
func TestCommandOfWhatIsNotKnown(t *testing.T) {
	h := history.Header{Scenario: "dispatch", Lock: "lua-release", Dispatch: "dispatch-locked", Target: "address", Topology: "cluster", SQL: "postgres 16.2", Clients: 64, Seed: 3, Abandon: 5, TTL: 2 * time.Second, Wait: 10 * time.Second}
	want := `oversell run --scenario dispatch --lock lua-release --dispatch dispatch-locked --target redis://HOST:PORT --topology cluster --sql postgres://USER:PASSWORD@HOST/DATABASE --seed 3`
	if got := commandLine(h); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, h := range []history.Header{{Scenario: "dispatch", Lock: "it's", Clients: 2}, {Scenario: "queue", Queue: "mine", Clients: 2}, {Scenario: "bank", Clients: 2}, {Scenario: "mutex", Lock: "fair"}, {}} {
		if got := commandLine(h); got != "" {
			t.Errorf("%+v is made again with %q; want nothing, since it is not shipped", h, got)
		}
	}
}
