//go:build unix

package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oversell/reports"
)

// TestOnlyFilesInARunDirectory checks that a pipe in a run directory is refused, as reading it could block for ever.
// A pipe that the user named is read.
func TestOnlyFilesInARunDirectory(t *testing.T) {
	const header = `{"schema":"oversell-history/1"}` + "\n"
	pipe := func(path string) string {
		t.Helper()
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noHistory, noRun := t.TempDir(), t.TempDir()
	history, run := pipe(filepath.Join(noHistory, HistoryFile)), pipe(filepath.Join(noRun, runFile))
	if err := os.WriteFile(filepath.Join(noRun, HistoryFile), []byte(header), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, wrong := range map[string]string{noHistory: history, noRun: run} {
		for _, path := range []string{dir, dir + "/"} {
			if _, err := Check(t.Context(), path); err == nil || err.Error() != wrong+" is not a regular file" {
				t.Errorf("check %s: %v", path, err)
			}
			if _, err := Report([]string{path}, ""); err == nil || !strings.HasSuffix(err.Error(), wrong+" is not a regular file") {
				t.Errorf("report %s: %v", path, err)
			}
		}
	}
	named := pipe(filepath.Join(t.TempDir(), "named"))
	go func() { _ = os.WriteFile(named, []byte(header), 0o600) }()
	if d, err := Check(t.Context(), named); err != nil || len(d.Runs) != 1 {
		t.Errorf("a named pipe: %+v, %v", d, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Check(ctx, history); !errors.Is(err, ErrStopped) {
		t.Errorf("a pipe that nobody writes to, stopped: %v", err)
	}
}

// TestEachHistoryOnce checks that a history that is named by several paths is judged once.
func TestEachHistoryOnce(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, HistoryFile), filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(file, []byte(`{"schema":"oversell-history/1"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	d, err := Check(t.Context(), dir, dir, dir+"/.", file, link)
	if err != nil || len(d.Runs) != 1 {
		t.Errorf("%d runs, %v", len(d.Runs), err)
	}
}

// TestBoundToItsRun checks that a run directory is judged only with the history that it was written for. Any other
// history gives neither a pass nor a violation.
func TestBoundToItsRun(t *testing.T) {
	for _, lock := range []string{"lua-release", "none"} {
		p, d := ran(t, options(lock))
		dir := filepath.Join(p.Dir, runName(0, p.Runs[0]))
		if again, err := Check(t.Context(), dir); err != nil || again.Runs[0].Verdict != d.Runs[0].Verdict {
			t.Errorf("%s: as it was: %+v, %v; want %s", lock, again, err, d.Runs[0].Verdict)
		}
		file := filepath.Join(dir, HistoryFile)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		damaged := func(what string) {
			t.Helper()
			d, err := Check(t.Context(), dir)
			if err != nil || d.Runs[0].Verdict != reports.Inconclusive || !strings.Contains(d.Runs[0].Why, "damaged") {
				t.Errorf("%s, %s: %+v, %v", lock, what, d, err)
				return
			}
			for _, p := range d.Runs[0].Properties {
				if p.Measured == "violated" || p.Result == "holds" {
					t.Errorf("%s, %s: %s %s is %s", lock, what, p.Of, p.Name, p.Measured)
				}
			}
		}
		put := func(path string, b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		put(file, whole[:len(whole)-1])
		damaged("cut")
		p2, _ := ran(t, options(lock))
		foreign, err := os.ReadFile(filepath.Join(p2.Dir, runName(0, p2.Runs[0]), HistoryFile))
		if err != nil {
			t.Fatal(err)
		}
		put(file, foreign)
		damaged("another's")
		headless := append([]byte(nil), whole...)
		headless[40] ^= 1
		put(file, headless)
		damaged("header")
		put(file, whole)
		put(filepath.Join(dir, runFile), []byte("{"))
		damaged("run.json")
		if err := os.Remove(filepath.Join(dir, runFile)); err != nil {
			t.Fatal(err)
		}
		alone, err := Check(t.Context(), dir)
		if err != nil || alone.Runs[0].Verdict != d.Runs[0].Verdict || !strings.Contains(strings.Join(alone.Runs[0].Notes, " "), "there is no run.json") {
			t.Errorf("%s: without run.json: %+v, %v", lock, alone, err)
		}
	}
}

// TestHistoryOfAnotherRun checks that a run whose history was replaced while it ran is not judged by the other one.
func TestHistoryOfAnotherRun(t *testing.T) {
	p, _ := ran(t, options("lua-release"))
	other := p.Runs[0]
	other.Seed++
	j, err := file(filepath.Join(p.Dir, runName(0, p.Runs[0])), false, other)
	if err != nil || j.Run.Verdict != reports.Inconclusive || !strings.Contains(j.Run.Why, "was put in the place of one of seckill with seed") {
		t.Errorf("%+v, %v", j.Run, err)
	}
}

// TestCheckStops checks that a check stops even while it waits for a file that never ends.
func TestCheckStops(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if d, err := Check(ctx, pipe); !errors.Is(err, ErrStopped) || len(d.Runs) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if w, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // lets the blocked reader end
		w.Close()
	}
}

// TestModesAreTheUmasks checks that the umask decides who may read the files of a run.
func TestModesAreTheUmasks(t *testing.T) {
	mask := syscall.Umask(0o002)
	defer syscall.Umask(mask)
	p, _ := ran(t, options("lua-release"))
	dir := filepath.Join(p.Dir, runName(0, p.Runs[0]))
	for path, want := range map[string]os.FileMode{dir: 0o775, filepath.Join(dir, HistoryFile): 0o664, filepath.Join(dir, runFile): 0o664} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", path, info.Mode(), err, want)
		}
	}
}
