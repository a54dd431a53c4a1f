package history

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// childPath is an environment variable that makes this test binary record to the file that it names, until it is
// killed.
const childPath = "OVERSELL_HISTORY_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		recordUntilKilled(path)
	}
	os.Exit(m.Run())
}

const childClients = 4

// recordUntilKilled records to a file, and prints after every write how many operations the file has.
func recordUntilKilled(path string) {
	w, err := Create(path, testHeader())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	log := NewLog(time.Now())
	for c := range childClients {
		go func() {
			r := log.Recorder(int32(c))
			for i := range 250_000 {
				r.Record(&Op{Kind: Buy, Key: Text("order"), Arg: Int(int64(i)), Outcome: OK, Call: r.Now(), Return: r.Now()})
			}
		}()
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	written := 0
	err = log.DrainEvery(ctx, 0, func(ops []Op) error {
		err := w.Append(ops)
		written += len(ops)
		fmt.Println(written)
		return err
	})
	fmt.Println(err)
	os.Exit(1)
}

// TestKillNine kills a recording process with SIGKILL: every operation that was written by then must be in the file.
func TestKillNine(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.bin")
	child := exec.CommandContext(t.Context(), exe)
	child.Env = append(os.Environ(), childPath+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		if seen, err = strconv.Atoi(in.Text()); err != nil {
			t.Errorf("the child says %q", in.Text())
			break
		}
		if seen > 30_000 {
			break
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	h, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if h.Trailer != nil || !strings.HasPrefix(h.Cut, "cut off after ") {
		t.Errorf("trailer %v, cut %q", h.Trailer, h.Cut)
	}
	if len(h.Ops) < seen || seen <= 30_000 {
		t.Errorf("%d operations in the file, the child reported %d", len(h.Ops), seen)
	}
	var next [childClients]int64
	for _, op := range h.Ops {
		if op.Arg != Int(next[op.Client]) {
			t.Fatalf("client %d: operation %v where %d is due", op.Client, op.Arg, next[op.Client])
		}
		next[op.Client]++
	}
}
