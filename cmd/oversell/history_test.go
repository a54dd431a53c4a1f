package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

// shopDir copies examples/history to a temporary directory.
func shopDir(t *testing.T) string {
	t.Helper()
	servertest.Python(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "history"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPythonShop runs the writer of docs/history.md and checks its histories: the flawed shop is violated, with the
// orders named, and the other one passes.
func TestPythonShop(t *testing.T) {
	dir := shopDir(t)
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"sound.jsonl"}, reports.ExitPass, []string{"100/100", "history: pass", `note: the header has no "promises": no-oversell of the sale is assumed to be promised`}},
		{[]string{"flawed.jsonl", "flawed"}, reports.ExitViolated, []string{"/100", "history: violated", "both sold down to"}},
	} {
		shop := exec.CommandContext(t.Context(), servertest.Python(t), append([]string{"shop.py"}, c.args...)...)
		shop.Dir = dir
		if said, err := shop.CombinedOutput(); err != nil || len(said) > 0 {
			t.Fatalf("shop.py %v: %v: %s", c.args, err, said)
		}
		code, stdout, stderr := cli(t, "check", filepath.Join(dir, c.args[0]))
		for _, want := range c.want {
			if code != c.code || !strings.Contains(stdout, want) || stderr != "" {
				t.Errorf("%v: exit code %d, want %d and %q:\n%s%s", c.args, code, c.code, want, stdout, stderr)
			}
		}
	}
	code, stdout, _ := cli(t, "check", "--json", filepath.Join(dir, "flawed.jsonl"))
	if code != reports.ExitViolated || strings.Count(stdout, `"arg": "order-`) < 2 {
		t.Errorf("exit code %d, and the orders are not named:\n%s", code, stdout)
	}
}

// TestPythonGate runs both shops in a gate. The plan is green, because its control is caught, and red when the flawed
// shop takes the place of the sound one.
func TestPythonGate(t *testing.T) {
	dir := shopDir(t)
	plan := filepath.Join(dir, "gate.yaml")
	code, stdout, stderr := cli(t, "gate", plan, "--out", filepath.Join(dir, "green"))
	for _, want := range []string{"GREEN: pass (1 passed)", "which broke no-oversell) was caught 3 of 3 times", "no-oversell of the sale is assumed to be promised"} {
		if code != reports.ExitPass || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want 0 and %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plan, []byte(strings.Replace(string(text), "sound.jsonl]", "sound.jsonl, flawed]", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = cli(t, "gate", plan, "--out", filepath.Join(dir, "red"))
	for _, want := range []string{"RED: violated (1 violated)", "no-oversell of the sale", "both sold down to", "buy order-"} {
		if code != reports.ExitViolated || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want 1 and %q:\n%s%s", code, want, stdout, stderr)
		}
	}
}

// TestHistoriesOfStrangers checks histories as programs write them whose authors have read no more than the smallest
// example.
func TestHistoriesOfStrangers(t *testing.T) {
	const header = `{"schema":"oversell-history/1","stock":2}`
	op := func(client int, kind, arg, outcome string, call, ret int64, more string) string {
		answer := fmt.Sprintf(`,"return_ns":%d`, ret)
		if outcome == "unknown" {
			answer = ""
		}
		return fmt.Sprintf(`{"client":%d,"kind":%q,"arg":%q,"outcome":%q,"call_ns":%d%s%s}`, client, kind, arg, outcome, call, answer, more)
	}
	buys := func(more ...string) (lines []string) { // four overlapping purchases, of which the stock allows two
		for i := range 4 {
			outcome, reason := "ok", more[i%len(more)]
			if i > 1 {
				outcome, reason = "refused", reason+`,"reason":"sold-out"`
			}
			lines = append(lines, op(i, "buy", fmt.Sprint("o", i), outcome, int64(10+i), int64(50+i), reason))
		}
		return lines
	}
	one := op(9, "buy", "late", "ok", 60, 90, "")
	beside := op(8, "buy", "beside", "refused", 55, 95, `,"reason":"sold-out"`)
	reversed := append(buys(""), one)
	slices.Reverse(reversed)
	epoch := strings.NewReplacer(`_ns":`, `_ns":17640000000000000`)
	for _, c := range []struct {
		what   string
		header string
		lines  []string
		code   int
		want   string
	}{
		{"sound", header, buys(""), 0, "pass"},
		{"one too many", header, append(buys(""), one), 1, "order late"},
		{"in another order", header, reversed, 1, "order late"},
		{"the same order again, told so", header, append(buys(""), op(9, "buy", "o0", "ok", 60, 90, `,"reason":"repeated"`)), 0, "pass"},
		{"the same order again", header, append(buys(""), op(9, "buy", "o0", "ok", 60, 90, "")), 1, "sold 3 of 2"},
		{"refunded, and sold again", header, append(buys(""), op(0, "refund", "o0", "ok", 55, 58, ""), one, beside), 0, "pass"},
		{"refunded, and sold twice", header, append(buys(""), op(0, "refund", "o0", "ok", 55, 58, ""), one, op(7, "buy", "more", "ok", 61, 91, "")), 1, "beyond the stock"},
		{"one too many, perhaps", header, append(buys(""), op(9, "buy", "lost", "unknown", 60, 0, "")), 3, "oversell is possible"},
		{"several pieces", header, []string{op(1, "buy", "a", "ok", 1, 9, `,"amount":2`), op(2, "buy", "b", "ok", 2, 8, `,"amount":3`)}, 1, "sold 5 of 2"},
		{"each product has the stock", header, buys(`,"key":"shoe"`, `,"key":"hat"`), 3, "2/4"},
		{"too many of one product", header, append(buys(`,"key":"shoe"`, `,"key":"hat"`), op(7, "buy", "x", "ok", 60, 70, `,"key":"hat"`), op(8, "buy", "y", "ok", 60, 70, `,"key":"hat"`)), 1, "sold 3 of 2"},
		{"times since 1970", header, strings.Split(epoch.Replace(strings.Join(append(buys(""), one), "\n")), "\n"), 1, "all times here count from it"},
		{"a name and no promises", `{"schema":"oversell-history/1","stock":2,"sale":"ours","scenario":"our shop"}`, append(buys(""), one), 1, "our shop, sale ours: violated"},
		{"one after the other", header, []string{op(1, "buy", "a", "ok", 1, 2, ""), op(2, "buy", "b", "ok", 3, 4, "")}, 3, "too few opportunities"},
	} {
		text := strings.Join(append(append([]string{c.header}, c.lines...), fmt.Sprintf(`{"trailer":{"operations":%d}}`, len(c.lines))), "\n") + "\n"
		for how, written := range map[string]string{"as it is": text, "with CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "with a byte order mark": "\ufeff" + text} {
			path := filepath.Join(t.TempDir(), "theirs.jsonl")
			if err := os.WriteFile(path, []byte(written), 0o644); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := cli(t, "check", path)
			if code != c.code || !strings.Contains(stdout, c.want) || stderr != "" {
				t.Errorf("%s, %s: exit code %d, want %d and %q:\n%s%s%s", c.what, how, code, c.code, c.want, text, stdout, stderr)
			}
		}
	}
}
