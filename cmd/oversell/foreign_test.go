package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/reports"
)

// TestHistoriesFromElsewhere checks histories of Jepsen and of a production log.
func TestHistoriesFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	event := func(process, kind, f, value string) string {
		return "{:process " + process + ", :type :" + kind + ", :f :" + f + ", :value " + value + "}\n"
	}
	write := event("0", "invoke", "write", "1") + event("0", "ok", "write", "1")
	read := event("1", "invoke", "read", "nil") + event("1", "ok", "read", "1")
	lawful := file("lawful.edn", write+read+read+read)
	stale := file("stale.edn", write+read+event("1", "invoke", "read", "nil")+event("1", "ok", "read", "2"))
	pairs := file("pairs.edn", strings.ReplaceAll(write+read+read+read, ":value 1", ":value [1 2]"))
	short := file("short.edn", write+read)
	wrong := file("wrong.edn", write+"{:process 1, :type :okay, :f :read}\n")
	logged := file("etcd.log", "INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:ok\t:read\t2\n")
	orders := file("orders.csv", "user,order,began,took,status\nann,o1,1767225600000,12,201\nbob,o2,1767225600004,9,201\n")
	with := file("orders.yaml", "stock: 1\nfields:\n  client: user\n  kind: {value: buy}\n  arg: order\n  call: {column: began, unit: ms}\n  duration: {column: took, unit: ms}\noutcome: {column: status, ok: [\"201\"], else: unknown}\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--format", "jepsen-edn", lawful}, reports.ExitPass, "1 passed"},
		{[]string{"--format", "jepsen-edn", stale}, reports.ExitViolated, "none that has the answer of line 6"},
		{[]string{"--format", "jepsen-edn", lawful, stale}, reports.ExitViolated, "1 passed, 1 violated"},
		{[]string{"--format", "jepsen-edn", short}, reports.ExitInconclusive, "too few opportunities"},
		{[]string{"--format", "jepsen-edn", "--initial", "2", "--model", "register", lawful}, reports.ExitPass, "1 passed"},
		{[]string{"--format", "jepsen-edn", "--initial", "[1", lawful}, reports.ExitUsage, `a register cannot begin with "[1": 1:1: [ is not closed`},
		{[]string{"--format", "porcupine-log", logged}, reports.ExitUsage, "reads alone do not determine one: give --model"},
		{[]string{"--format", "jepsen-edn", wrong}, reports.ExitUsage, wrong + ":3:1: the event has the type \"okay\""},
		{[]string{"--format", "jepsen-edn", "--model", "mutex", lawful}, reports.ExitUsage, "a mutex has no operation write"},
		{[]string{"--format", "jepsen-edn", "--model", "abacus", lawful}, reports.ExitUsage, `model "abacus" is not known`},
		{[]string{"--format", "porcupine-log", "--model", "register", logged}, reports.ExitViolated, "`:ok :read 2`"},
		{[]string{lawful}, reports.ExitUsage, "histories of Jepsen need --format jepsen-edn"},
		{[]string{"--format", "xml", lawful}, reports.ExitUsage, `--format "xml" is not known: it is one of jsonl, jepsen-edn, porcupine-log`},
		{[]string{"--map", with, orders}, reports.ExitViolated, "no-oversell"},
		{[]string{"--map", orders, orders}, reports.ExitUsage, orders + ":1:"},
		{[]string{"--map", with, lawful}, reports.ExitUsage, lawful + ":1:"},
		{[]string{"--format", "jepsen-edn", "--model", "register", "--keys", "no", pairs}, reports.ExitPass, "1 passed"},
		{[]string{"--format", "jepsen-edn", "--model", "register", "--keys", "yes", pairs}, reports.ExitUsage, pairs + ":3:46: read is invoked with nil: with --keys yes, want [key value] in all operations"},
		{[]string{"--format", "jepsen-edn", "--keys", "perhaps", pairs}, reports.ExitUsage, `--keys "perhaps" is not known: it is one of auto, yes, no`},
		{[]string{"--keys", "yes", lawful}, reports.ExitUsage, "--keys is for histories of Jepsen"},
		{[]string{"--format", "porcupine-log", "../../examples/elsewhere/register.log"}, reports.ExitPass, "1 passed"},
		{[]string{"--format", "jepsen-edn", "../../examples/elsewhere/lock.edn"}, reports.ExitViolated, "1 violated"},
		{[]string{"--map", "../../examples/elsewhere/orders.yaml", "../../examples/elsewhere/orders.csv"}, reports.ExitViolated, "sold 3 to 4 of 2"},
		{[]string{"--model", "register", lawful}, reports.ExitUsage, "--model is for histories of Jepsen"},
		{[]string{"--export", "h.txt", lawful}, reports.ExitUsage, "ends in .edn"},
	} {
		code, stdout, stderr := cli(t, append([]string{"check"}, c.args...)...)
		if all := strings.Join(strings.Fields(stdout+stderr), " "); code != c.code || !strings.Contains(all, c.want) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}
}

// TestExportedRun checks that an exported run has the same verdict when it is read back.
func TestExportedRun(t *testing.T) {
	dir := t.TempDir()
	edn := filepath.Join(dir, "run.edn")
	out := filepath.Join(dir, "out")
	code, stdout, stderr := cli(t, "run", "--target", "embedded", "--lock", "lua-release", "--clients", "8", "--stock", "50", "--ttl", "20ms", "--hold", "30ms", "--out", out)
	if code != reports.ExitViolated && code != reports.ExitPass && code != reports.ExitInconclusive {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	wasCode, was, stderr := cli(t, "check", "--json", "--export", edn, out)
	if stderr != "" {
		t.Fatal(stderr)
	}
	if code, _, stderr := cli(t, "check", "--format", "jepsen-edn", "--model", "mutex", edn); code != reports.ExitUsage || !strings.Contains(stderr, "--model, --initial and --keys are for histories that Jepsen recorded") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	isCode, is, stderr := cli(t, "check", "--json", "--format", "jepsen-edn", edn)
	if was != is || wasCode != isCode {
		t.Errorf("exit code %d, was %d; %s:\n%.2000s\nwas\n%.2000s", isCode, wasCode, stderr, is, was)
	}
	for name, c := range map[string]struct{ alter, want string }{
		"there is a file": {"", "the file exists"},
		"damaged":         {`"history_sha256": "`, "written for another history"},
	} {
		files, err := filepath.Glob(filepath.Join(out, "*", "run.json"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		to := edn
		if c.alter != "" {
			text, err := os.ReadFile(files[0])
			if err != nil || !strings.Contains(string(text), c.alter) {
				t.Fatalf("%v\n%s", err, text)
			}
			if err := os.WriteFile(files[0], []byte(strings.Replace(string(text), c.alter, c.alter+"0", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			to = filepath.Join(dir, "damaged.edn")
			_, _, _ = cli(t, "check", "--export", to, out)
			code, stdout, stderr := cli(t, "check", "--json", "--format", "jepsen-edn", to)
			if code != reports.ExitInconclusive || !strings.Contains(stdout, c.want) {
				t.Errorf("%s: read back: exit code %d, %s\n%.2000s", name, code, stderr, stdout)
			}
			continue
		}
		if code, _, stderr := cli(t, "check", "--export", to, out); code != reports.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
}
