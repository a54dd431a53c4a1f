package testlog

import "testing"

type recorded struct{ lines int }

func (r *recorded) Logf(string, ...any) { r.lines++ }
func (r *recorded) Name() string        { return "TestX/y.z" }

func TestLog(t *testing.T) {
	var r recorded
	l := New(&r)
	l.Logf("one")
	l.Logf("%s", "one")
	l.Stop()
	l.Logf("two")
	if r.lines != 1 {
		t.Errorf("%d lines were logged; want the one before Stop, once", r.lines)
	}
	const want = "to repeat it: OVERSELL_SEED=7 go test -run '^TestX$/^y\\.z$'"
	if got := Seed(&r, 7); got != want {
		t.Errorf("Seed = %q; want %q", got, want)
	}
}
