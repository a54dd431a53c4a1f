package history

import (
	"testing"

	"oversell/internal/exactjson"
)

// TestScanTakesOurLines checks that lines written by this program are read by the fast scanner.
func TestScanTakesOurLines(t *testing.T) {
	for _, op := range loadOps(30, 3, 1) {
		line := appendOpLine(nil, &op)
		var f fields
		if !f.scan(line) {
			t.Fatalf("%s goes to package json", line)
		}
		if got, open, err := f.complete(); err != nil || open || *got != op {
			t.Fatalf("%s is read as %+v, %v", line, got, err)
		}
	}
}

// FuzzScan checks that package json reads a line in the same way as the fast scanner.
func FuzzScan(f *testing.F) {
	for _, op := range loadOps(3, 1, 1) {
		f.Add(string(appendOpLine(nil, &op)))
	}
	for _, line := range []string{
		`{"client":1,"outcome":"ok","Outcome":"unknown"}`, `{"client":1,"kind":"buy","kind":"buy"}`, `{"arg":7,"arg":null}`, `{"client":4294967297}`,
		`{"key":"7","arg":-0,"result":"-0","session":1.0}`, `{"key":"\ud800"}`, `{"reason":"","kind":""}`, "{\"key\":\"\u2028\"} ",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var fast fields
		if !fast.scan([]byte(line)) {
			return
		}
		var o opLine
		if err := exactjson.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%s\nis refused the slow way: %v", line, err)
		}
		slow := o.fields()
		slow.has |= fast.has & (fieldKind | fieldOutcome | fieldReason)
		if *slow != fast {
			t.Fatalf("%s\nis read the fast way as %+v\nand the slow way as %+v", line, fast, *slow)
		}
	})
}
