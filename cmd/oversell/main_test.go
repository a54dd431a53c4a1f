package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/database/databasetest"
	"oversell/internal/guard"
	"oversell/internal/servertest"
	"oversell/reports"
)

// asOversell is an environment variable that makes the test binary behave as the program, for tests that need it in a
// process of its own.
const asOversell = "TEST_AS_OVERSELL"

func TestMain(m *testing.M) {
	if os.Getenv(asOversell) != "" {
		main()
	}
	// Under nohup SIGHUP is ignored, and children inherit that; they do not if this process handles the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(databases.Run(m))
}

var databases databasetest.Servers // started when first asked for

// cli runs the command line within this process.
func cli(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = execute(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestBadInputIsOneLineAndExit2(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--lock", "lua-relase"}, `did you mean lua-release`},
		{[]string{"run", "--lock", "xyz"}, "it is one of none, php-lock-printed"},
		{[]string{"run", "--sale", "plian"}, "did you mean plain"},
		{[]string{"run", "--scenario", "mutx"}, "did you mean mutex"},
		{[]string{"run", "--scenario", "mutex", "--sale", "plain"}, "leave out --sale: in scenario mutex"},
		{[]string{"run", "--scenario", "mutex", "--resend", "0.5"}, "leave out --resend: in scenario mutex"},
		{[]string{"run", "--resend", "NaN"}, "--resend NaN: must be 0 to 1"},
		{[]string{"run", "--quantity", "0"}, "--quantity 0: must be 1 to 1000000"},
		{[]string{"run", "--lock", ""}, "empty name"},
		{[]string{"run", "--scenario", "queue", "--queue", "zset-atomic", "--lock", "lua-release"}, "takes no lock"},
		{[]string{"run", "--scenario", "queue", "--queue", "streams", "--delay", "1s"}, "cannot delay"},
		{[]string{"run", "--sale", "sql-plain", "--lock", "none", "--sql", "oracle://x"}, "sqlite"},
		{[]string{"run", "--clients", "0"}, "--clients 0: must be 1 to 100000"},
		{[]string{"run", "--clients", "-5"}, "--clients -5: must be 1 to"},
		{[]string{"run", "--clients", "many"}, "--clients many: must be a whole number, 1 to 100000"},
		{[]string{"run", "--stock", "-1"}, "--stock -1: must be 0 to"},
		{[]string{"run", "--ttl", "1us"}, "Redis counts in whole milliseconds"},
		{[]string{"run", "--lock", "php-lock", "--ttl", "100ms"}, "whole seconds"},
		{[]string{"run", "--lock", "redlock", "--topology", "single"}, "--topology masters:5"},
		{[]string{"run", "--lock", "lua-release", "--sale", "fenced"}, "--lock fenced"},
		{[]string{"run", "--waiting", "spin"}, "--waiting spin: waiting strategy"},
		{[]string{"run", "--target", "nowhere"}, "unknown target"},
		{[]string{"run", "--topology", "ring"}, "unknown topology"},
		{[]string{"run", "--target", "redis://192.0.2.1:6379"}, "--allow-remote"},
		{[]string{"run", "--target", "redis://127.0.0.1:99999"}, "address redis://127.0.0.1:99999: the port must be 1 to 65535"},
		{[]string{"run", "--timeout", "1ns"}, "--timeout 1ns: must be 1ms to 1h"},
		{[]string{"run", "--lock", "none,lua-release,none"}, "--lock none is given twice"},
		{[]string{"compare", "--lock", "none,none"}, "--lock none is given twice"},
		{[]string{"explore", "--lock", "none,none"}, "--lock none is given twice"},
		{[]string{"run", "--target", "embedded", "--lock", "none", "--out", os.DevNull}, os.DevNull + " is not a directory: choose another --out"},
		{[]string{"run", "--target", "embedded", "--lock", "none", "--out", filepath.Join(os.DevNull, "x")}, os.DevNull + " is not a directory: choose another --out"},
		{[]string{"explore", "--lock", "lua-release", "--out", os.DevNull}, os.DevNull + " is not a directory: choose another --out"},
		{[]string{"run", "--no-such-flag"}, "no-such-flag"},
		{[]string{"run", "--secnario", "seckill"}, "unknown flag: --secnario: did you mean --scenario?"},
		{[]string{"run", "and", "more"}, `unexpected argument "and": the usage is "oversell run [flags]"`},
		{[]string{"run", "--lock", "LUA-Relase"}, "did you mean lua-release?"},
		{[]string{"gate", file("two.yaml", "{a: 1}\n{b: 2}\n")}, "two.yaml:2:1: this is not YAML: "},
		{[]string{"rnu"}, "rnu"},
		{[]string{"proxy", "--listen", "127.0.0.1:99999"}, "--listen 127.0.0.1:99999: the port must be 0 to 65535"},
		{[]string{"proxy", "--allow-remote", "--to", "127.0.0.1:0"}, "--to 127.0.0.1:0: the port must be 1 to 65535"},
		{[]string{"check"}, "an argument is missing"},
		{[]string{"check", filepath.Join(dir, "missing")}, "no such file"},
		{[]string{"check", empty}, "holds no history.bin"},
		{[]string{"check", file("text.bin", "hello, this is no history\n")}, "not a history"},
		{[]string{"check", file("zero.bin", "")}, "the file is empty"},
		{[]string{"check", file("future.bin", "OVSHIST\x63........")}, "version"},
		{[]string{"check", file("cut.bin", "OVSHIST\x02H")}, "header"},
	} {
		code, stdout, stderr := cli(t, c.args...)
		if code != reports.ExitUsage {
			t.Errorf("%q exits with %d; want 2\n%s", c.args, code, stderr)
		}
		if !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "oversell: ") {
			t.Errorf("%q says %q; want one line that says %q", c.args, stderr, c.want)
		}
		if stdout != "" {
			t.Errorf("%q prints %q on stdout", c.args, stdout)
		}
	}
}

func TestNoServerIsExit5(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for _, c := range []struct{ url, want string }{
		{"redis://127.0.0.1:1", "refused"},
		{strings.Replace(web.URL, "http:", "redis:", 1), "not in the Redis protocol"},
	} {
		code, _, stderr := cli(t, "run", "--lock", "lua-release", "--target", c.url, "--out", t.TempDir())
		if code != reports.ExitEnvironment || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q; want 5 and one line that says %q", c.url, code, stderr, c.want)
		}
	}
}

// TestControlIsCaughtAndSoundSalePasses checks the whole point of the program, on the embedded emulation, which
// everybody has. A flawed sale has more stock than one client sells before the others start on a busy machine.
func TestControlIsCaughtAndSoundSalePasses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--lock", "none", "--sale", "plain", "--stock", "3000"}, reports.ExitViolated},
		{[]string{"--lock", "none", "--sale", "lua"}, reports.ExitPass},
		{[]string{"--lock", "lua-release"}, reports.ExitPass},
		{[]string{"--lock", "fenced"}, reports.ExitPass},
		{[]string{"--lock", "none,lua-release", "--sale", "plain", "--stock", "3000"}, reports.ExitViolated},
		{[]string{"--lock", "lua-release", "--clients", "1"}, reports.ExitInconclusive},
	} {
		args := append([]string{"run", "--target", "embedded", "--clients", "16", "--stock", "60", "--seed", "3", "--out", t.TempDir()}, c.args...)
		code, stdout, stderr := cli(t, args...)
		if code != c.code {
			t.Errorf("%q exits with %d; want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
}

// TestASweepIsADemonstration checks that, without a named lock or queue, flawed locks count as declared whether they
// break or not, so that the run exits with 0. The verdicts of the histories do not change.
func TestASweepIsADemonstration(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	code, stdout, stderr := cli(t, "run", "--scenario", "queue", "--target", "embedded", "--clients", "8", "--ops", "100", "--out", dir)
	want := reports.ExitPass
	if !strings.Contains(stdout, " violated, 0 inconclusive") {
		want = reports.ExitInconclusive // a very busy machine decides little
	}
	if code != want || strings.Contains(stdout, "not as declared") {
		t.Errorf("exit %d; want %d, as all is declared\n%s%s", code, want, stdout, stderr)
	}
	page := filepath.Join(dir, "report.html")
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(stderr, "page: "+page+"\n") || !bytes.Contains(html, []byte("known to break under: overrun")) {
		t.Errorf("the page of all runs: %v\n%s", err, stderr)
	}
	if code, _, stderr := cli(t, "check", dir); code != reports.ExitViolated {
		t.Errorf("check exits with %d; want 1\n%s", code, stderr)
	}
}

// TestCheckGivesTheSameBytes checks that check prints the same document as the run.
func TestCheckGivesTheSameBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	code, first, stderr := cli(t, "run", "--target", "embedded", "--clients", "8", "--stock", "40",
		"--lock", "none,php-lock-printed,lua-release,fair", "--jsonl", "--json", "--out", dir)
	if code != reports.ExitViolated && code != reports.ExitPass && code != reports.ExitInconclusive { // on a busy machine no flaw need show
		t.Fatalf("exit %d: %s", code, stderr)
	}
	again, second, stderr := cli(t, "check", "--json", dir)
	if again != code || second != first {
		t.Errorf("check exits with %d (run: %d), %s; documents differ: %v", again, code, stderr, first != second)
	}
	var d reports.Document
	if err := json.Unmarshal([]byte(first), &d); err != nil {
		t.Fatal(err)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "*-*"))
	if err != nil || len(runs) != len(d.Runs) {
		t.Fatalf("%d run directories, %v; want %d", len(runs), err, len(d.Runs))
	}
	for i, run := range runs {
		var want bytes.Buffer
		if err := reports.WriteJSON(&want, d.Runs[i]); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(run, "verdict.json"))
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: verdict.json differs from the run's entry (%v)", run, err)
		}
		for _, f := range []string{"run.json", "latency.hgrm", "history.jsonl"} {
			if info, err := os.Stat(filepath.Join(run, f)); err != nil || info.Size() == 0 {
				t.Errorf("%s lacks %s", run, f)
			}
		}
		_, exported, stderr := cli(t, "check", "--json", filepath.Join(run, "history.jsonl"))
		_, original, _ := cli(t, "check", "--json", run)
		if exported != original {
			t.Errorf("%s: the exported history is judged differently: %s", run, stderr)
		}
	}
	// A path that is not a history does not keep the others from being judged.
	bad := filepath.Join(t.TempDir(), "bad.bin")
	if err := os.WriteFile(bad, []byte("hello, this is no history\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	again, second, stderr = cli(t, "check", "--json", bad, dir, missing)
	if again != code || second != first {
		t.Errorf("beside what is no history, check exits with %d (alone: %d); documents differ: %v", again, code, second != first)
	}
	if lines := strings.Split(stderr, "\n"); len(lines) != 3 || !strings.Contains(lines[0], "not a history") || !strings.Contains(lines[1], missing) {
		t.Errorf("what could not be judged is told as %q; want a line for each", stderr)
	}
	for i, run := range runs {
		if d.Runs[i].Verdict != reports.Pass {
			continue
		}
		if code, stdout, stderr := cli(t, "check", run, bad); code != reports.ExitUsage || !strings.Contains(stdout, d.Runs[i].Lock) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("a history that passes, and what is none: exit %d, %s%s; want 2 and both", code, stdout, stderr)
		}
	}
}

func TestWhichExitCodeCounts(t *testing.T) {
	order := []int{5, 1, 3, 4, 2, 0}
	for i, a := range order {
		for _, b := range order[i:] {
			if weightier(a, b) != a || weightier(b, a) != a {
				t.Errorf("of %d and %d, %d and %d count; want %d", a, b, weightier(a, b), weightier(b, a), a)
			}
		}
	}
}

func TestRunRefusesToOverwrite(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "--target", "embedded", "--clients", "4", "--stock", "60", "--lock", "lua-release", "--out", dir}
	if code, _, stderr := cli(t, args...); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := cli(t, args...); code != reports.ExitUsage || !strings.Contains(stderr, "--out") {
		t.Errorf("the second run into one directory exits with %d: %q", code, stderr)
	}
}

// TestNobodyReadsTheOutput checks that a run goes on to its end when the reader of its output has gone.
func TestNobodyReadsTheOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "run", "--target", "embedded", "--scenario", "mutex", "--lock", "lua-release", "--duration", "200ms", "--out", dir)
	cmd.Env = append(os.Environ(), asOversell+"=1")
	cmd.Stdout, cmd.Stderr = w, w
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != reports.ExitEnvironment {
		t.Errorf("it ended with %v; want exit code %d", err, reports.ExitEnvironment)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*", "verdict.json")); len(found) != 1 {
		t.Errorf("it has saved %v; want a verdict", found)
	}
}

// process starts this test binary as the program.
func process(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asOversell+"=1", familyOf(cmd))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, &out
}

// familyOf returns an environment variable that marks a process and its descendants.
func familyOf(cmd *exec.Cmd) string { return "TEST_FAMILY=" + cmd.Dir }

// family returns the pids of a process and its descendants, even after the process itself has ended.
func family(cmd *exec.Cmd) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		text, err := os.ReadFile(f) // empty for a process that has ended
		if err == nil && slices.Contains(strings.Split(string(text), "\x00"), familyOf(cmd)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// awaitFamily waits until a process and its descendants have ended. A guard process goes on for a minute at most.
func awaitFamily(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	late := time.AfterFunc(2*guard.Patience, func() {
		t.Errorf("the program has not ended %v after its signal", 2*guard.Patience)
		cmd.Process.Kill()
	})
	cmd.Wait()
	late.Stop()
	for end := time.Now().Add(2 * guard.Patience); len(family(cmd)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the processes %v have outlived the program", family(cmd))
		}
	}
}

// recorded reports whether the history in dir has grown to some size.
func recorded(dir string) func() bool {
	return func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*", "history.bin"))
		if len(files) == 0 {
			return false
		}
		info, err := os.Stat(files[0])
		return err == nil && info.Size() > 10_000
	}
}

// children lists the processes whose parent is pid.
func children(pid int) (pids []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue
		}
		after := string(b[bytes.LastIndexByte(b, ')')+1:])
		var state string
		var parent int
		if fmt.Sscan(after, &state, &parent); parent == pid && state != "Z" {
			pids = append(pids, filepath.Base(filepath.Dir(s)))
		}
	}
	return pids
}

func alive(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// TestSignals checks that Ctrl-C ends the run in order and kill -9 ends it at once, and that both leave a history
// that can be judged, and no server.
func TestSignals(t *testing.T) {
	servertest.NeedServer(t)
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		check  string
	}{
		{syscall.SIGINT, reports.ExitInconclusive, "stopped before its end"},
		{syscall.SIGTERM, reports.ExitInconclusive, "stopped before its end"},
		{syscall.SIGHUP, reports.ExitInconclusive, "stopped before its end"},
		{syscall.SIGQUIT, reports.ExitInconclusive, "stopped before its end"},
		{syscall.SIGKILL, -1, "incomplete"},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "runs")
			cmd, out := process(t, "run", "--target", "process", "--scenario", "mutex", "--lock", "lua-release", "--duration", "1h", "--out", dir)
			servertest.Await(t, "operations have been saved", recorded(dir))
			servers := children(cmd.Process.Pid)
			if len(servers) != 1 {
				t.Errorf("the program has children %v; want one server", servers)
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit %d; want %d\n%s", code, c.code, out)
			}
			for _, pid := range servers {
				servertest.Await(t, "the server is gone", func() bool { return !alive(pid) })
			}
			code, stdout, stderr := cli(t, "check", dir)
			if code != reports.ExitInconclusive || !strings.Contains(stdout, c.check) {
				t.Errorf("check exits with %d: %s%s; want 3 and %q", code, stdout, stderr, c.check)
			}
		})
	}
}

// TestInterruptedAfterItsRuns checks that the exit code tells the verdict if the interrupt comes when all runs have ended.
func TestInterruptedAfterItsRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	cmd, out := process(t, "run", "--target", "embedded", "--lock", "none", "--sale", "lua", "--clients", "4", "--stock", "3000", "--out", dir)
	servertest.Await(t, "the run has ended", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*", "run.json"))
		return len(files) > 0
	})
	_ = cmd.Process.Signal(syscall.SIGINT) // it may be over
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != reports.ExitPass || strings.Contains(out.String(), "interrupted") {
		t.Errorf("exit %d; want 0\n%s", code, out)
	}
}

// TestExportOnAFullDisk checks that an export that cannot be written is an environment error.
func TestExportOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	cli(t, "run", "--target", "embedded", "--lock", "none", "--sale", "lua", "--clients", "4", "--stock", "3000", "--out", filepath.Join(dir, "runs"))
	for _, name := range []string{"x.edn", "x.jsonl"} {
		path := filepath.Join(dir, name)
		cmd := exec.Command("sh", "-c", `ulimit -f 16; exec "$0" check --export "$1" "$2"`, os.Args[0], path, filepath.Join(dir, "runs")) // no file above 8 KiB
		cmd.Env = append(os.Environ(), asOversell+"=1")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != reports.ExitEnvironment || !strings.Contains(string(out), "file too large") {
			t.Errorf("%s: exit %d; want 5\n%s", name, code, out)
		}
		if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	}
}

// TestEndOnInterrupt checks that the second interrupt ends the process, even if it was started with interrupts
// ignored.
func TestEndOnInterrupt(t *testing.T) {
	t.Cleanup(func() { signal.Reset(os.Interrupt) })
	ended := make(chan int)
	endOnInterrupt(func(code int) { ended <- code })
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// TestJoinedErrorsStandOnLinesOfTheirOwn checks that each of several joined errors has a line of its own, with the
// text of the errors around them, and that an error of several lines becomes one line.
func TestJoinedErrorsStandOnLinesOfTheirOwn(t *testing.T) {
	first, second := errors.New("the disk is full"), errors.New("the server\n\tis gone")
	full := func(name string) error { return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC} }
	for _, c := range []struct {
		err  error
		want []string
	}{
		{second, []string{"the server is gone"}},
		{errors.Join(first, second), []string{"the disk is full", "the server is gone"}},
		{environment{fmt.Errorf("run 01: %w (stopped)", errors.Join(first, second))}, []string{"run 01: the disk is full (stopped)", "run 01: the server is gone (stopped)"}},
		{errors.Join(first, fmt.Errorf("close: %w", errors.Join(first, second))), []string{"the disk is full", "close: the disk is full", "close: the server is gone"}},
		{errors.Join(first, first), []string{"the disk is full"}},
		{fmt.Errorf("%w: %w", first, second), []string{"the disk is full: the server is gone"}},
		{errors.Join(fmt.Errorf("run 01: %w", full("history.bin")), errors.Join(full("run.json"), second, full("page.html"))), []string{"run 01: write history.bin: no space left on device", "the server is gone"}},
	} {
		if got := errorLines(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%q is told as %q; want %q", c.err, got, c.want)
		}
	}
}

// TestCompletion checks that the shell completes the names of variants, faults and so on, also after a comma.
func TestCompletion(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"run --lock lua-", "lua-release\tSET token NX EX"},
		{"run --lock lua-release,fair-", "lua-release,fair-no-reap\t"},
		{"explore --sale fenced-", "fenced-write\t"},
		{"compare --queue re", "reliable\t"},
		{"run --dispatch dispatch-", "dispatch-fenced\t"},
		{"run --ids get", "get-set\t"},
		{"compare --scenario sec", "seckill-queued\t"},
		{"run --fault fre", "freeze\tfreeze [before|after]"},
		{"proxy --fault dr", "drop-reply\t"},
		{"run --waiting pub", "pubsub"},
		{"run --topology sen", "sentinel"},
		{"run --target emb", "embedded"},
		{"claims C26", "C26\t"},
		{"list fau", "faults"},
		{"gate pl", "yaml\nyml\n:8"},
	} {
		code, stdout, stderr := cli(t, append([]string{"__complete"}, strings.Fields(test.line)...)...)
		if code != 0 || !strings.HasPrefix(stdout, test.want) && !strings.Contains(stdout, "\n"+test.want) {
			t.Errorf("%s: exit code %d, no %q in\n%s%s", test.line, code, test.want, stdout, stderr)
		}
	}
	if code, stdout, stderr := cli(t, "completion", "bash"); code != 0 || !strings.Contains(stdout, "__complete") {
		t.Errorf("completion bash: exit code %d\n%.200s%s", code, stdout, stderr)
	}
}

// TestManPages checks that each command has a man page with its text, flags and examples, whose date is that of
// SOURCE_DATE_EPOCH.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, stderr := cli(t, "man", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, name := range []string{"", "-run", "-compare", "-explore", "-check", "-gate", "-claims", "-list", "-report", "-proxy", "-version"} {
		page, err := os.ReadFile(filepath.Join(dir, "oversell"+name+".1"))
		if err != nil || !strings.Contains(string(page), `.TH "OVERSELL`) || !strings.Contains(string(page), `"Nov 2023"`) {
			t.Errorf("oversell%s.1: %v\n%.300s", name, err, page)
		}
	}
	page, _ := os.ReadFile(filepath.Join(dir, "oversell-run.1"))
	for _, want := range []string{".SH EXAMPLE", `\fB--lock\fP`, "oversell run --scenario queue --die 0.05", "With no flags: a flash sale"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("oversell-run.1 does not have %q:\n%s", want, page)
		}
	}
	if code, _, _ := cli(t, "man", "/proc/self/man"); code != reports.ExitEnvironment {
		t.Errorf("a directory that cannot be written: exit code %d", code)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if code, _, stderr := cli(t, "man", dir); code != reports.ExitUsage || !strings.Contains(stderr, "SOURCE_DATE_EPOCH") {
		t.Errorf("a wrong date: exit code %d: %s", code, stderr)
	}
}

// TestEarlierNamesOfLocks checks that commands take the earlier names of locks, and print the present ones on stderr.
func TestEarlierNamesOfLocks(t *testing.T) {
	dir := t.TempDir()
	plan := filepath.Join(dir, "gate.yaml")
	text := "safety:\n  - name: it breaks\n    expect: violated\n    explore: {lock: redislock-printed}\n"
	if err := os.WriteFile(plan, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "--lock", "redislock-printed", "--target", "embedded", "--scenario", "mutex", "--clients", "2", "--duration", "50ms"},
		{"explore", "--lock", "redislock-printed"},
		{"gate", plan},
	} {
		code, stdout, stderr := cli(t, append(args, "--json", "--out", filepath.Join(dir, args[0]))...)
		if code == reports.ExitUsage || code == reports.ExitEnvironment {
			t.Errorf("%s: exit code %d: %s", args[0], code, stderr)
		}
		if strings.Contains(stdout, `"redislock`) || !strings.Contains(stdout, "php-lock-printed") {
			t.Errorf("%s --json does not have the name of today:\n%s", args[0], stdout)
		}
		if !strings.Contains(stderr, "note: lock redislock-printed is called php-lock-printed now\n") {
			t.Errorf("%s says\n%s", args[0], stderr)
		}
	}
}
