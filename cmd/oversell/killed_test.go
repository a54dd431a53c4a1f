package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/history"
	"oversell/internal/servertest"
)

// TestKilledAtAnyMoment checks that, however the program ends, no server, proxy or directory is left behind after its
// next start, and that the history it recorded can be read.
func TestKilledAtAnyMoment(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("finds processes in /proc")
	}
	servertest.NeedServer(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir() // holds the files of the program's servers
	runs := []string{
		"--lock lua-release --stock 100000",
		"--lock lua-release --stock 100000 --aof --fault 'kill at 100ms for 50ms every 200ms'",
		"--lock lua-release --stock 100000 --fault 'delay GET 1ms 5%' --fault 'drop-reply SET 1%'",
		"--lock redlock --topology masters:3 --stock 100000 --fault 'freeze node 2 100ms every 200ms'",
		"--lock watchdog --topology sentinel --stock 100000 --fault 'failover at 200ms'",
		"--lock lua-release --topology cluster --stock 100000",
	}
	const kills = 50
	random := rand.New(rand.NewPCG(1, 1))
	t.Run("kills", func(t *testing.T) {
		for i := range kills {
			after := time.Duration(random.IntN(1500)) * time.Millisecond
			t.Run(strconv.Itoa(i+1), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "runs")
				cmd := exec.Command(self, append([]string{"run", "--target", "process", "--out", dir}, words(runs[i%len(runs)])...)...)
				cmd.Env = append(os.Environ(), asOversell+"=1", "TMPDIR="+temp)
				var printed bytes.Buffer
				cmd.Stdout, cmd.Stderr = &printed, &printed
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after) // kill at a random moment
				children := childrenOf(t, cmd.Process.Pid)
				if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatalf("it ended before it was killed: %v; it printed: %s", err, printed.String())
				}
				cmd.Wait()
				for _, pid := range children {
					awaitGone(t, pid)
				}
				canBeRead(t, dir)
			})
		}
	})
	// Start the program once more, and let it end.
	cmd := exec.Command(self, "run", "--target", "process", "--lock", "lua-release", "--aof", "--out", filepath.Join(t.TempDir(), "runs"))
	cmd.Env = append(os.Environ(), asOversell+"=1", "TMPDIR="+temp)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, left := range under(t, temp) {
		if filepath.Base(left) != "lock" {
			t.Errorf("%s is left behind", left)
		}
	}
}

// words splits a command line at spaces, except within single quotes.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// childrenOf returns the descendants of a process.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(append(pids, pid), childrenOf(t, pid)...)
		}
	}
	return pids
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	t.Errorf("process %d has outlived the program: %s", pid, bytes.ReplaceAll(command, []byte{0}, []byte{' '}))
}

// canBeRead requires that every history under dir can be read and judged, and does not pass.
func canBeRead(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "history.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() == 0 {
			continue // killed before the first byte was written
		}
		h, err := history.Read(f)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if r := judging.Judge(h).Run; r.Verdict == "pass" {
			t.Errorf("%s: a history that was cut off passes", f)
		}
	}
}

// under returns the files below a directory.
func under(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
