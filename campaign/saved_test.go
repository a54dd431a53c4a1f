package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// TestSaved checks that a directory without a history is not offered for judging.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "01-mutex")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if Saved(dir) || Saved(filepath.Join(dir, "nowhere")) {
		t.Error("a history is saved where there is none")
	}
	if err := os.WriteFile(filepath.Join(run, HistoryFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !Saved(dir) {
		t.Error("a history is not found")
	}
}

// TestHistoriesBelow checks that histories are found at all depths of a directory together, and that a run directory
// without its history is an error, not silence.
func TestHistoriesBelow(t *testing.T) {
	dir := t.TempDir()
	put := func(parts ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := []string{put("a", HistoryFile), put("gate", "01-b", HistoryFile), put("gate", "02-c", HistoryFile)}
	put("gate", "02-c", runFile)
	got, err := historiesIn(dir)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	put("gate", "03-d", runFile)
	lost := filepath.Join(dir, "gate", "03-d", HistoryFile)
	got, err = historiesIn(dir)
	if err == nil || err.Error() != lost+" is missing: run.json is beside it" || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v, and that %s is missing", got, err, want, lost)
	}
}

// TestCheckOfALongHistory checks that a long history is judged in one pass over its file, and that a history which needs a second
// pass, here because an order of long ago is refunded, gets its verdict, too.
func TestCheckOfALongHistory(t *testing.T) {
	t.Parallel()
	const n = 1_000_100
	for _, refunded := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), HistoryFile)
		w, err := history.Create(path, history.Header{
			Scenario: "seckill", Clients: 100, Stock: n / 2, Objects: []variant.Object{variant.Sale},
			Promises: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var ops []history.Op
		writeSale(n, func(op history.Op) { ops = append(ops, op) })
		last := ops[n-1].Return
		if refunded {
			ops = append(ops, history.Op{Client: 7, Kind: history.Refund, Outcome: history.OK, Key: history.Text("item"), Arg: history.Int(0), Amount: 1, Result: history.Int(1), Due: last + 1, Call: last + 1, Return: last + 2})
		}
		w.Append(ops) //nolint:errcheck // Finish returns it
		if err := w.Finish(history.Trailer{Elapsed: last}); err != nil {
			t.Fatal(err)
		}
		_, err = judged(history.OpenUnchecked, path)
		if errors.Is(err, history.ErrUnchecked) != refunded {
			t.Errorf("refunded %t: judged while it is checked, it says %v", refunded, err)
		}
		d, err := Check(t.Context(), path)
		if err != nil || d.Runs[0].Verdict != reports.Pass || d.Runs[0].Operations != len(ops) {
			t.Errorf("refunded %t: %v, %+v", refunded, err, d.Runs)
		}
	}
}
