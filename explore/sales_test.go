package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"oversell/explore/rules"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/stockimpl"
	"oversell/variant"
)

// forgetful is a sale that cannot say what it holds.
type forgetful struct{ stockimpl.Sale }

func (forgetful) State(context.Context) (stockimpl.State, error) {
	return stockimpl.State{}, errors.New("nothing here")
}

// TestErrorOfState checks that the error of a sale that cannot say what it holds names the call.
func TestErrorOfState(t *testing.T) {
	c := sought{scenario: "seckill", lock: "none", sale: "lua", bounds: reports.Bounds{Tries: 1}}.config(t)
	first := c.Run.Sale.New
	c.Run.Sale.New = func(env variant.Env, product string) stockimpl.Sale { return forgetful{first(env, product)} }
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "read the state of the sale: nothing here") {
		t.Errorf("the error is %v", err)
	}
}

// TestSalesBreakAsDeclaredWithoutAReply searches sales in which one message of any command is lost or late, and a buyer
// without an answer sends the order again. It checks that every promise that breaks then is a declared flaw of the
// sale, and that a declared flaw by which a dropped reply loses pieces is found.
func TestSalesBreakAsDeclaredWithoutAReply(t *testing.T) {
	for _, v := range stockimpl.Variants {
		if v.Needs.SQL {
			continue
		}
		lock := "lua-release"
		if v.Needs.Fence {
			lock = "fenced"
		}
		bounds := []reports.Bounds{{Clients: 1, Tries: 2, Lost: 1, Resends: 1}, {Clients: 1, Tries: 2, Late: 1, Resends: 1}}
		if os.Getenv("OVERSELL_LONG") != "" {
			bounds = append(bounds, reports.Bounds{Clients: 2, Tries: 1, Lost: 1, Resends: 1}, reports.Bounds{Clients: 2, Tries: 1, Late: 1, Resends: 1})
		}
		for _, b := range bounds {
			b.MemoryMB, b.TimeMS = 8, 8_000 // clients of a ticket machine poll it without end
			declared := func(p variant.Property) bool {
				return slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
					return f.Property == p && f.Under == "" && slices.Contains(faultsIn(b), f.Fault)
				})
			}
			// What is not declared is searched for at once, since nothing of it must be found.
			var sound []history.Promise
			look := map[string][]history.Promise{}
			for _, p := range v.Promises {
				switch promise := (history.Promise{Of: variant.Sale, Property: p}); {
				case !rules.CanJudge(variant.Sale, p):
				case declared(p):
					look[string(p)] = []history.Promise{promise}
				default:
					sound = append(sound, promise)
				}
			}
			if sound != nil {
				look["the other promises"] = sound
			}
			for name, promises := range look {
				t.Run(fmt.Sprintf("%s/%s/%d clients, %d lost, %d late", v.Name, name, b.Clients, b.Lost, b.Late), func(t *testing.T) {
					t.Parallel()
					c := sought{scenario: "seckill", lock: lock, sale: v.Name, stock: 2, bounds: b}.config(t)
					c.Look = promises
					r, err := Run(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					breaks := declared(promises[0].Property)
					if cx := r.Counterexample; cx != nil && (!breaks || r.Expected != reports.Violated) {
						t.Errorf("no flaw declares it (expected: %s): %s", r.Expected, cx.Sentence)
					} else if cx == nil && r.Verdict == reports.Violated {
						t.Errorf("%s, but there is no schedule: %s", r.Verdict, r.Why)
					}
					vanishes := slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
						return f.Property == variant.NoUndersell && f.Fault == variant.DropReply
					})
					if r.Counterexample == nil && vanishes && slices.ContainsFunc(promises, func(p history.Promise) bool { return p.Property == variant.NoUndersell }) {
						t.Errorf("no schedule breaks it: %s %s", r.Verdict, r.Why)
					}
				})
			}
		}
	}
}

// packed is a sale whose stock is a number of 32 bits without a sign, by BITFIELD. An overflow of WRAP begins again at
// the highest number when the stock runs out; one of FAIL refuses.
type packed struct {
	stockimpl.Sale
	env      variant.Env
	overflow string
	// opened and read are sent by Open and State first.
	opened, read []any
}

func (s packed) Open(ctx context.Context, stock int64) error {
	if s.opened != nil {
		if err := s.env.Redis[0].Do(ctx, s.opened...).Err(); err != nil {
			return err
		}
	}
	return s.env.Redis[0].BitField(ctx, "packed", "SET", "u32", 0, stock).Err()
}

func (s packed) Buy(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	left, err := s.env.Redis[0].Do(ctx, "BITFIELD", "packed", "OVERFLOW", s.overflow, "INCRBY", "u32", 0, -o.Quantity).Slice()
	if err != nil {
		return 0, err
	}
	n, ok := left[0].(int64)
	if !ok {
		return 0, stockimpl.ErrSoldOut
	}
	return n, nil
}

func (s packed) State(ctx context.Context) (stockimpl.State, error) {
	if s.read != nil {
		if err := s.env.Redis[0].Do(ctx, s.read...).Err(); err != nil {
			return stockimpl.State{}, err
		}
	}
	left, err := s.env.Redis[0].Do(ctx, "BITFIELD_RO", "packed", "GET", "u32", 0).Slice()
	if err != nil {
		return stockimpl.State{}, err
	}
	return stockimpl.State{Left: left[0].(int64)}, nil
}

// TestPackedStock checks that a sale by BITFIELD is judged, and that one that begins or ends with a command that the
// model does not know is inconclusive and names it.
func TestPackedStock(t *testing.T) {
	geo := []any{"GEOADD", "shops", 1, 1, "a"}
	for _, c := range []struct {
		sale         packed
		look         variant.Property
		verdict, why string
	}{
		{packed{overflow: "FAIL"}, variant.NoOversell, reports.Pass, ""},
		{packed{overflow: "WRAP"}, variant.NoOversell, reports.Violated, ""},
		{packed{overflow: "FAIL", opened: geo}, variant.NoOversell, reports.Inconclusive, "open the scenario: the model of Redis does not know the command GEOADD"},
		{packed{overflow: "FAIL", read: geo}, variant.NoUndersell, reports.Inconclusive, "the model of Redis does not know the command GEOADD"},
	} {
		s := sought{scenario: "seckill", lock: "none", sale: "lua", stock: 1, bounds: reports.Bounds{Clients: 2, Tries: 1}, look: c.look, of: variant.Sale}
		config := s.config(t)
		config.Run.Sale.New = func(env variant.Env, _ string) stockimpl.Sale { c.sale.env = env; return c.sale }
		r, err := Run(t.Context(), config)
		if err != nil || r.Verdict != c.verdict || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s, opened by %v, read by %v: %s, %q, %v; want %s, %q", c.sale.overflow, c.sale.opened, c.sale.read, r.Verdict, r.Why, err, c.verdict, c.why)
		}
	}
}
