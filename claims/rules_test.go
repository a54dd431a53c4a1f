package claims

import (
	"math/rand/v2"
	"testing"
	"time"

	"oversell/reports"
)

// decided is a case of a rule: the answer that it gave to made-up numbers, and the one that it must give.
type decided struct {
	name, got, want string
}

// searched returns a search that ended with this verdict.
func searched(verdict string, steps int) reports.Exploration {
	e := reports.Exploration{Verdict: verdict}
	if steps > 0 {
		e.Counterexample = &reports.Counterexample{Steps: make([]reports.Step, steps)}
	}
	return e
}

// TestRules checks with made-up numbers that every rule can say yes, no, and that it does not know.
func TestRules(t *testing.T) {
	const yes, no, maybe, unknown = reports.Confirmed, reports.Refuted, reports.Depends, reports.Inconclusive
	never, always, undecided := tally{broke: 0, runs: 3}, tally{broke: 3, runs: 3}, tally{runs: 3, unknown: 3}
	onTime := []*job{{renew: true, gap: 210 * time.Millisecond}}
	robbed := []*job{{renew: true, gap: 210 * time.Millisecond, entered: true}}
	late := []*job{{renew: true, gap: 1200 * time.Millisecond, entered: true}}
	lost, kept := []*job{{pause: jobPause, entered: true}}, []*job{{pause: jobPause}}
	wanted := job{entered: true}
	second, three := healing{lease: time.Second, after: 1010 * time.Millisecond}, healing{lease: 3 * time.Second, after: 3020 * time.Millisecond}
	found := [3]reports.Exploration{searched(reports.Violated, 5), searched(reports.Violated, 6), searched(reports.Pass, 0)}
	some, nothing, clean := taken{1000, 30}, taken{}, taken{1000, 0}
	moved, ignored := entries{1, true}, entries{1, false}
	atomic := atomicity{reads: 1000, tornCommands: 50, cached: true, dataSurvives: true}
	big, flat, one := growth{1000, 1000, 700e3}, growth{1000, 0, 2e3}, growth{1000, 1, 0}
	often := func(ratios ...float64) (c contest) { // a contest of some hundred rounds
		for range 20 {
			for _, r := range ratios {
				c.a, c.b = append(c.a, 100*r), append(c.b, 100)
			}
		}
		return c
	}
	fast := costs{eval: 165, sha: 107, times: often(1.02, 4, 0.99, 1.01, 1.03)}
	slow := costs{eval: 65000, sha: 107, times: often(2.1, 0.7, 2, 1.9, 2.2)}
	for _, c := range []decided{
		{"C1", oversells(always, never, never), yes},
		{"C1, nothing sold twice", oversells(never, never, never), no},
		{"C1, one buyer oversells", oversells(always, never, tally{broke: 1, runs: 1}), unknown},
		{"C1, a script oversells", oversells(always, tally{broke: 1, runs: 3}, never), unknown},
		{"C1, a script of which nobody knows", oversells(always, tally{runs: 3, unknown: 1}, never), unknown},
		{"C1, no run", oversells(tally{}, never, never), unknown},
		{"C1, nobody knows", oversells(undecided, never, never), unknown},

		{"C2, C3", prevents(always, always, never), no},
		{"C2, C3, once is enough", prevents(tally{broke: 1, runs: 3}, always, never), no},
		{"C2, C3, a lock that does", prevents(never, always, never), yes},
		{"C2, C3, nobody knows", prevents(undecided, always, never), unknown},
		{"C2, C3, once is enough, whatever the other runs did", prevents(tally{broke: 1, runs: 3, unknown: 2}, always, never), no},
		{"C2, C3, no load oversells", prevents(never, never, never), unknown},
		{"C2, C3, even the sound lock oversells", prevents(always, always, always), unknown},

		{"C4", onlyTheDead(900, 1), no},
		{"C4, no takeover of the living", onlyTheDead(0, 1), yes},
		{"C4, no takeover at all", onlyTheDead(0, 0), unknown},

		{"C5", garbage(second, three, healing{lease: time.Second}), maybe},
		{"C5, the printed lock heals, too", garbage(second, three, second), yes},
		{"C5, a long lease heals early", garbage(second, healing{lease: 3 * time.Second, after: time.Second}, second), no},
		{"C5, a short one never", garbage(healing{lease: time.Second}, three, second), unknown},
		{"C5, a long one never", garbage(second, healing{lease: 3 * time.Second}, second), unknown},

		{"C6", keepsLock(onTime, wanted, lost), maybe},
		{"C6, a pause does no harm", keepsLock(onTime, wanted, kept), yes},
		{"C6, robbed though on time", keepsLock(robbed, wanted, lost), no},
		{"C6, robbed because late", keepsLock(late, wanted, lost), unknown},
		{"C6, nobody wants the lock", keepsLock(onTime, job{}, lost), unknown},

		{"C7", oneEntry(ignored, moved, 0), no},
		{"C7, as the prose has it", oneEntry(moved, moved, 0), yes},
		{"C7, an id twice", oneEntry(moved, moved, 3), no},
		{"C7, nothing moves anything", oneEntry(ignored, ignored, 0), unknown},

		{"C8", keepsConsistent(some, underLock{some, 200}, underLock{clean, 0}, true, true), no},
		{"C8, a printed lock that keeps clients apart", keepsConsistent(some, underLock{clean, 0}, underLock{clean, 0}, true, true), yes},
		{"C8, no lock does", keepsConsistent(some, underLock{some, 200}, underLock{some, 0}, true, true), no},
		{"C8, a stale score is accepted", keepsConsistent(some, underLock{clean, 0}, underLock{clean, 0}, false, true), no},
		{"C8, the clients never meet", keepsConsistent(nothing, underLock{nothing, 0}, underLock{clean, 0}, true, true), unknown},
		{"C8, hardly anything under the correct lock", keepsConsistent(some, underLock{some, 200}, underLock{taken{3, 0}, 0}, true, true), unknown},

		{"C9", deadlocks(always, never, ""), yes},
		{"C9, it heals", deadlocks(never, never, ""), no},
		{"C9, nobody knows", deadlocks(undecided, never, ""), unknown},
		{"C9, any crash sticks", deadlocks(always, always, ""), unknown},
		{"C9, nobody crashed", deadlocks(never, never, "the fault fired 0 times"), unknown},

		{"C10", neverStuck(forcedOpen{tries: 5, stopped: true}), maybe},
		{"C10, forced open in any case", neverStuck(forcedOpen{tries: 5}), yes},
		{"C10, never forced open", neverStuck(forcedOpen{stopped: true}), no},
		{"C10, the crash blocks nothing", neverStuck(forcedOpen{tries: 1, plain: 1}), unknown},

		{"C11", cannotDeadlock(1, never, always, "", reports.Pass), yes},
		{"C11, two commands", cannotDeadlock(2, never, always, "", reports.Pass), no},
		{"C11, stuck", cannotDeadlock(1, tally{broke: 1, runs: 3}, always, "", reports.Pass), no},
		{"C11, a schedule sticks", cannotDeadlock(1, never, always, "", reports.Violated), no},
		{"C11, the search came to no end", cannotDeadlock(1, never, always, "", reports.Inconclusive), unknown},
		{"C11, the control does not stick", cannotDeadlock(1, never, never, "", reports.Pass), unknown},

		{"C12", removesAnothers(always, always, never, "", found), yes},
		{"C12, the script does, too", removesAnothers(always, always, tally{broke: 1, runs: 4}, "", found), no},
		{"C12, GET, DEL does not", removesAnothers(always, never, never, "", [3]reports.Exploration{found[0], searched(reports.Pass, 0), found[2]}), no},
		{"C12, nobody knows of the script", removesAnothers(always, always, undecided, "", found), unknown},
		{"C12, nobody knows of DEL", removesAnothers(undecided, always, never, "", [3]reports.Exploration{searched(reports.Inconclusive, 0), found[1], found[2]}), unknown},
		{"C12, nobody knows of GET, DEL", removesAnothers(always, undecided, never, "", [3]reports.Exploration{found[0], searched(reports.Inconclusive, 0), found[2]}), unknown},
		{"C12, a search knows of GET, DEL", removesAnothers(always, undecided, never, "", [3]reports.Exploration{found[0], searched(reports.Pass, 0), found[2]}), no},
		{"C12, no holder was late", removesAnothers(never, never, never, "the fault fired 0 times", found), unknown},
		{"C12, a search without end", removesAnothers(always, always, never, "", [3]reports.Exploration{found[0], found[1], searched(reports.Inconclusive, 0)}), unknown},

		{"C13", runsAtomically(atomic), yes},
		{"C13, torn", runsAtomically(atomicity{reads: 1000, torn: 1, tornCommands: 50, cached: true, dataSurvives: true}), no},
		{"C13, the cache survives", runsAtomically(atomicity{reads: 1000, tornCommands: 50, cached: true, dataSurvives: true, cacheSurvives: true}), no},
		{"C13, the reader sees nothing", runsAtomically(atomicity{reads: 1000, cached: true, dataSurvives: true}), unknown},

		{"C14, a server that keeps all", grows(big, big, one), yes},
		{"C14, a server that drops scripts", grows(growth{1000, 499, 350e3}, flat, one), no},
		{"C14, parameters grow as well", grows(big, big, big), no},
		{"C14, neither", grows(big, growth{1000, 500, 300e3}, one), unknown},

		{"C15", savesSpeed(fast, slow), maybe},
		{"C15, never much", savesSpeed(fast, fast), yes},
		{"C15, always much", savesSpeed(slow, slow), no},
		{"C15, no bandwidth", savesSpeed(costs{eval: 100, sha: 107, times: fast.times}, slow), no},
		{"C15, no times", savesSpeed(costs{}, slow), unknown},
		{"C15, a busy machine", savesSpeed(fast, costs{eval: 65603, sha: 107, times: often(0.4, 0.5, 0.95, 1.29, 1.9)}), unknown},
		{"C15, too noisy", savesSpeed(costs{eval: 165, sha: 107, times: often(1, 1.9, 1.01, 1.8)}, slow), unknown},

		{"C16", aThirdFaster([]float64{0.9, 1.4, 1.9}), maybe},
		{"C16, always", aThirdFaster([]float64{1.25, 1.4, 1.8}), yes},
		{"C16, never", aThirdFaster([]float64{0.9, 1.0, 1.1}), no},
		{"C16, much more than that", aThirdFaster([]float64{0.9, 2.5}), maybe},
		{"C16, no times", aThirdFaster(nil), unknown},

		{"C17", lockingPays([]float64{1.25, 3}, []float64{0.3}), yes},
		{"C17, the other way round", lockingPays([]float64{0.8}, []float64{2}), no},
		{"C17, the lock wins always", lockingPays([]float64{0.8}, []float64{0.5}), maybe},
		{"C17, one of three", lockingPays([]float64{1.25, 0.7}, []float64{0.3}), maybe},
		{"C17, within the noise", lockingPays([]float64{1.01}, []float64{0.99}), unknown},
		{"C17, half of it makes no difference", lockingPays([]float64{1.3}, []float64{0.99}), maybe},
		{"C17, not measured", lockingPays(nil, []float64{0.5}), unknown},
		{"C17, a ratio of nothing", lockingPays([]float64{0}, []float64{0.5}), unknown},

		{"C18", keepsWorking(never, 300, 0, ""), yes},
		{"C18, in both ways", bothWays(yes, yes), yes},
		{"C18, in one way", bothWays(yes, no), maybe},
		{"C18, one way not measured", bothWays(yes, unknown), unknown},
		{"C18, nobody knows", keepsWorking(undecided, 300, 0, ""), unknown},
		{"C18, nobody knows, and no grants", keepsWorking(undecided, 0, 0, ""), no},
		{"C18, two holders", keepsWorking(tally{broke: 1, runs: 2}, 300, 0, ""), no},
		{"C18, no more grants", keepsWorking(never, 0, 0, ""), no},
		{"C18, a majority is not missed", keepsWorking(never, 300, 5, ""), unknown},
		{"C18, nobody was killed", keepsWorking(never, 300, 0, "the fault fired 0 times"), unknown},

		{"C19", oneHolder(dispatched{holders: 9}, []dispatched{{between: true}, {between: true}, {}}, dispatched{}), maybe},
		{"C19, every lock does", oneHolder(dispatched{holders: 9}, []dispatched{{}, {commits: 3}, {}}, dispatched{}), yes},
		{"C19, none does", oneHolder(dispatched{holders: 9}, []dispatched{{between: true}, {stuck: true}, {holders: 1}}, dispatched{}), no},
		{"C19, nobody competes", oneHolder(dispatched{}, []dispatched{{between: true}, {}, {}}, dispatched{}), unknown},
		{"C19, the control breaks", oneHolder(dispatched{holders: 9}, []dispatched{{}, {}, {}}, dispatched{stuck: true}), unknown},

		{"C20", neverCompete(serialised{8000, 8000, 900}, []float64{12, 14}), maybe},
		{"C20, no difference", neverCompete(serialised{8000, 8000, 900}, []float64{1.05, 0.98}), yes},
		{"C20, increments are lost", neverCompete(serialised{8000, 7999, 900}, []float64{12}), no},
		{"C20, nobody met", neverCompete(serialised{8000, 8000, 8000}, []float64{12}), unknown},
		{"C20, some", neverCompete(serialised{8000, 8000, 900}, []float64{1.5}), unknown},
		{"C20, sometimes", neverCompete(serialised{8000, 8000, 900}, []float64{1.1, 4}), unknown},
		{"C20, no times", neverCompete(serialised{8000, 8000, 900}, nil), unknown},

		{"C21", uniqueEnough(uniqueness{fast: drawn{1000, 700}, slow: drawn{100, 0}, random: drawn{1000, 0}, robbed: true}), maybe},
		{"C21, repeated and harmless", uniqueEnough(uniqueness{fast: drawn{1000, 700}, slow: drawn{100, 0}}), yes},
		{"C21, threads only", uniqueEnough(uniqueness{fast: drawn{1000, 0}, threads: drawn{1000, 900}, robbed: true}), maybe},
		{"C21, never twice", uniqueEnough(uniqueness{fast: drawn{1000, 0}}), yes},
		{"C21, even when slow", uniqueEnough(uniqueness{fast: drawn{1000, 700}, slow: drawn{100, 1}}), no},
		{"C21, random bits repeat", uniqueEnough(uniqueness{fast: drawn{1000, 700}, random: drawn{1000, 1}}), unknown},

		{"C22", stallsOthers(stall{[]float64{200}, []float64{195}, []float64{1}}), yes},
		{"C22, others go on", stallsOthers(stall{[]float64{200}, []float64{2}, []float64{1}}), no},
		{"C22, others wait anyway", stallsOthers(stall{[]float64{200}, []float64{195}, []float64{180}}), unknown},
		{"C22, a short script", stallsOthers(stall{[]float64{20}, []float64{19}, []float64{1}}), unknown},

		{"C23", mustBeLocal(globals{assign: "readonly", function: "readonly", local: true, times: slow.times}), yes},
		{"C23, allowed and slower", mustBeLocal(globals{local: true, times: slow.times}), yes},
		{"C23, allowed and as fast", mustBeLocal(globals{local: true, times: fast.times}), no},
		{"C23, nothing works", mustBeLocal(globals{assign: "syntax", function: "syntax", times: slow.times}), unknown},

		{"C24", arriveAsText(argument{kind: "string", number: true, asText: true, compared: "attempt to compare"}), yes},
		{"C24, numbers", arriveAsText(argument{kind: "number", equal: true, number: true}), no},
		{"C24, something else", arriveAsText(argument{kind: "nil"}), unknown},

		{"C25", namedByContent(identity{true, true, true, true, true, true}), yes},
		{"C25, found all the same", namedByContent(identity{true, true, true, true, false, true}), no},
		{"C25, two names for one text", namedByContent(identity{false, true, true, true, true, true}), no},
		{"C25, nothing is found", namedByContent(identity{true, true, false, true, true, true}), unknown},

		{"C26", survives(phpAnswer{Dropped: true}), no},
		{"C26, it survives", survives(phpAnswer{Dropped: true, Closed: true}), yes},
		{"C26, nothing survives", survives(phpAnswer{}), unknown},
		{"C26, anything survives", survives(phpAnswer{Dropped: true, Closed: true, Plain: true}), unknown},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s; want %s", c.name, c.got, c.want)
		}
	}
}

// TestValuesLieWithinTheirSpread checks, with random times, that the value of a quantity is its median and lies
// within its spread.
func TestValuesLieWithinTheirSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var c contest
		for range 1 + r.IntN(12) {
			c.a, c.b = append(c.a, r.ExpFloat64()), append(c.b, r.ExpFloat64())
		}
		for _, q := range []reports.Quantity{c.quantity("ratio"), repeated("times", c.a, "ms")} {
			if q.Value < q.Spread.Low || q.Value > q.Spread.High || q.Value != q.Spread.Median {
				t.Fatalf("%v: %s is %v, median %v, from %v to %v", c, q.Name, q.Value, q.Spread.Median, q.Spread.Low, q.Spread.High)
			}
		}
	}
}
