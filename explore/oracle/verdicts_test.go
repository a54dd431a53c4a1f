package oracle

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oversell/explore"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// boundsOf parses bounds such as "t2 a1 s1 c1 l1 d1 hold three": tries, advances, stalls, crashes, lost and late
// messages, a section as long as the lease, three clients.
func boundsOf(text string) (b reports.Bounds, hold bool) {
	b = reports.Bounds{Clients: 2, Tries: 1, TimeMS: 20_000, MemoryMB: 400}
	for _, word := range strings.Fields(text) {
		switch word {
		case "hold":
			hold = true
			continue
		case "three":
			b.Clients = 3
			continue
		case "quick":
			b.TimeMS = 500
			continue
		case "masters":
			continue
		}
		n, err := strconv.Atoi(word[1:])
		if err != nil {
			panic(err)
		}
		switch word[0] {
		case 't':
			b.Tries = n
		case 'a':
			b.Advances = n
		case 's':
			b.Stalls = n
		case 'c':
			b.Crashes = n
		case 'l':
			b.Lost = n
		case 'd':
			b.Late = n
		case 'r':
			b.Resends = n
		default:
			panic(word)
		}
	}
	return b, hold
}

var letters = map[byte]variant.Property{'m': variant.MutualExclusion, 'o': variant.OwnerOnlyRelease, 'p': variant.Progress}

// config returns the configuration of a search that checks the promises look of a lock.
func config(v lockimpl.Variant, b reports.Bounds, hold bool, look ...variant.Property) explore.Config {
	mutex, _ := scenarios.Find("mutex")
	c := explore.Config{Run: scenarios.Config{Scenario: mutex, Lock: v, TTL: lease}, Bounds: b}
	if hold {
		c.Run.Hold = lease
	}
	for _, p := range look {
		c.Look = append(c.Look, history.Promise{Of: variant.Lock, Property: p})
	}
	return c
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for i := range programs {
		p := &programs[i]
		t.Run(fmt.Sprintf("%d %s", p.item, p.name), func(t *testing.T) {
			t.Parallel()
			if (slices.Contains([]int{2, 3, 9, 10}, p.item) && i%4 != 0 || slices.Contains(lengthy, p.name)) && !long {
				return
			}
			v := p.design.variant("program")
			for _, plain := range []bool{false, true} {
				if plain && i%4 != 0 && !long {
					break
				}
				looks := [][]variant.Property{v.Promises}
				want := reports.Pass
				if p.breaks != "" {
					looks, want = nil, reports.Violated
					for _, l := range []byte(p.breaks) {
						looks = append(looks, []variant.Property{letters[l]})
					}
				}
				b, hold := boundsOf(p.bounds)
				for _, look := range looks {
					c := config(v, b, hold, look...)
					c.Plain = plain
					if strings.Contains(p.bounds, "masters") {
						c.Masters = 3
					}
					r, err := explore.Run(t.Context(), c)
					judge(t, r, err, plain, want, look, p.bounds)
				}
			}
		})
	}
}

// limits returns the bounds of the program for both searches.
func (p *program) limits() (reports.Bounds, limits) {
	b, hold := boundsOf(p.bounds)
	l := limits{
		clients: b.Clients, rounds: b.Tries, crashes: b.Crashes, lost: b.Lost, late: b.Late, jumps: min(b.Advances, 2),
		extends: hold, states: 40_000, whole: true,
	}
	if b.Advances > 0 && b.Tries > 1 {
		l.jumps = 1
	}
	if long {
		l.states *= 10
	}
	return b, l
}

// lengthy are programs whose searches take seconds each.
var lengthy = []string{
	"a count of operations in a hash", "a count of operations, extended", "timestamps, DEL and SETNX", "a renewal that compares",
	"SET NX PX within a limit",
}

// long reports whether the long tests run.
var long = os.Getenv("OVERSELL_LONG") != ""

// TestProgramsByTheOracle checks that the oracle gives the verdicts that were found by reasoning.
func TestProgramsByTheOracle(t *testing.T) {
	t.Parallel()
	for i := range programs {
		p := &programs[i]
		if p.alone {
			continue
		}
		t.Run(fmt.Sprintf("%d %s", p.item, p.name), func(t *testing.T) {
			t.Parallel()
			if i%12 != 0 && !long {
				return
			}
			_, l := p.limits()
			start := time.Now()
			all := map[variant.Property]int{}
			traces := map[variant.Property][]string{}
			states, cut := 0, false
			for _, n := range namings[:cmp.Or(map[int]int{3: 4, 5: 4}[p.item], 1)] {
				r := enumerate(p.design.variant("program"), &p.design, l, n)
				if r.unknown != "" {
					t.Fatal(r.unknown)
				}
				for q, at := range r.broken {
					all[q], traces[q] = at, r.traces[q]
				}
				states += r.states
				cut = cut || r.cut
			}
			for _, letter := range []byte("mop") {
				q := letters[letter]
				want := strings.IndexByte(p.breaks, letter) >= 0
				if _, broken := all[q]; broken != want && (want || p.breaks == "") {
					t.Errorf("%s broken: %t, by hand %t (within %s, cut %t)\n%s", q, broken, want, p.bounds, cut, strings.Join(traces[q], "\n"))
				}
			}
			t.Logf("%v in %d situations, cut %t, %v", all, states, cut, time.Since(start).Round(time.Millisecond))
		})
	}
}

// namings are ways to name tokens. They differ in which client's tokens come first in order, and in what the tokens have
// in common.
var namings = []naming{
	func(client, n int) string { return sha(fmt.Sprintf("a%d.%d", client, n))[:32] },
	func(client, n int) string { return fmt.Sprintf("%02x%030x", 16*client+n, 77*n+client) },
	func(client, n int) string { return fmt.Sprintf("%02x%030x", 200-16*client-n, 77*n+client) },
	func(client, n int) string { return fmt.Sprintf("7a%02x%027xa", 8*n+client, 5*n+client) },
}
