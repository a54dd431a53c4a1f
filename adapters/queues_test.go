//go:build unix

package adapters

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/history"
	"oversell/internal/servertest"
	"oversell/reports"
)

const (
	workers = 3
	amount  = 60
	// patience is how long nothing may happen before a test gives up the tasks that are not done. Celery needs longest,
	// 110 s: a worker looks for tasks past their timeout 10 s after its start, and then every 100 s. asynq has a lease
	// of 30 s, and looks once a minute for leases that are over.
	patience = 150 * time.Second
)

// noted is a line of a worker's log.
type noted struct {
	At     int64  `json:"t"`
	Worker int    `json:"worker"`
	Event  string `json:"event"`
	Task   string `json:"task"`
}

// underWorkers has workers do tasks and judges the history. If dying is set, every tenth task kills its worker once.
// count says what became of the tasks. The verdict is inconclusive if the tasks did not come to rest, or if fewer tasks
// were done, or fewer workers died, than must.
func underWorkers(t *testing.T, p peer, dying bool) (r reports.Run, count, command string) {
	t.Helper()
	if p.module != "" {
		build(t)
	}
	addr, _ := servertest.Start(t)
	log := filepath.Join(t.TempDir(), "log")
	p.env = append(slices.Clone(p.env), "REDIS_URL=redis://"+addr, "LOG="+log)
	if dying {
		p.env = append(p.env, "DIE=1")
	}
	began := time.Now()
	if out, err := commandIn(t.Context(), p, "produce", fmt.Sprint(amount)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	produced := time.Now()
	end := make(chan struct{})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { supervise(t, p, log, end) })
	}
	rests := await(t, p, log)
	close(end)
	all.Wait()
	left, err := commandIn(t.Context(), p, "left").Output()
	if err != nil {
		t.Fatal(err)
	}
	noted, kept := logOf(t, log), strings.Fields(string(left))
	deaths, _ := filepath.Glob(log + ".died*")
	r = judging.Judge(historyOf(t, began, produced, noted, kept)).Run
	done := doneIn(noted)
	what := "load"
	count = fmt.Sprintf("%d done, %d kept", len(done), len(kept))
	if dying {
		what = "crash"
		count += fmt.Sprintf(", %d deaths", len(deaths))
	}
	switch wanted := amount / 10; {
	case r.Verdict == reports.Violated:
	case !rests:
		r.Verdict, r.Why = reports.Inconclusive, fmt.Sprintf("after %v without an event %s", patience, count)
	case !dying && len(done) < amount:
		r.Verdict, r.Why = reports.Inconclusive, fmt.Sprintf("%s, and nobody died", count)
	case dying && len(deaths) < wanted:
		r.Verdict, r.Why = reports.Inconclusive, fmt.Sprintf("%s, and %d were to be", count, wanted)
	}
	return r, count, fmt.Sprintf("OVERSELL_PEERS=1 OVERSELL_PEERS_OF='%s' go test -timeout 30m -run 'TestPeers/all/.*%s' -v ./adapters", p.name, what)
}

// doneIn returns the tasks that are done.
func doneIn(log []noted) map[string]bool {
	done := map[string]bool{}
	for _, n := range log {
		if n.Event == "done" {
			done[n.Task] = true
		}
	}
	return done
}

// supervise keeps a worker running until the end, as an operator's supervisor does. If workers end before any has begun a
// task, something other than the library is wrong, and the test fails.
func supervise(t *testing.T, p peer, log string, end chan struct{}) {
	var said bytes.Buffer
	for starts := 0; ; starts++ {
		if _, err := os.Stat(log); starts == 3 && err != nil {
			t.Errorf("workers end before they begin a task: %s", said.String())
			return
		}
		said.Reset()
		cmd := commandIn(t.Context(), p, "work")
		cmd.Stderr, cmd.WaitDelay = &said, time.Second // the worker's children may hold it open
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		gone := make(chan struct{})
		go func() { _ = cmd.Wait(); close(gone) }()
		select {
		case <-gone:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the worker's children
		case <-end:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-gone
			return
		}
	}
}

// await waits until all tasks are done, or until the library has nothing left to do. It returns false if nothing happens
// for too long before that.
func await(t *testing.T, p peer, log string) bool {
	t.Helper()
	var size int64
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now(); time.Since(last) < patience; {
		<-tick.C
		info, err := os.Stat(log)
		if err == nil && info.Size() > size {
			size, last = info.Size(), time.Now()
			continue
		}
		done := len(doneIn(logOf(t, log)))
		// A task that the library has lost, or has given up, does not come back.
		if done == amount || time.Since(last) > 3*time.Second && settled(t, p, done) {
			return true
		}
	}
	return false
}

// settled reports whether the library knows of no task that is still to be done. It asks several times, because one answer
// may miss a task that is being moved from one list to another.
func settled(t *testing.T, p peer, done int) bool {
	for range 3 {
		left, err := commandIn(t.Context(), p, "left").Output()
		if err != nil {
			t.Fatal(err)
		}
		known := len(strings.Fields(string(left)))
		if known > 0 && !(p.name == "RQ" && done+known == amount) { // RQ keeps the task of a killed worker in its registry
			return false
		}
		time.Sleep(500 * time.Millisecond)
	}
	return true
}

func logOf(t *testing.T, path string) (all []noted) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // no task was begun
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var n noted
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// historyOf returns the history that oversell judges: the tasks that were enqueued, those that workers were given and did,
// and those that the library still knows.
func historyOf(t *testing.T, began, produced time.Time, log []noted, left []string) *history.History {
	t.Helper()
	var b bytes.Buffer
	n := 0
	line := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
		n++
	}
	line(map[string]any{"schema": history.Schema, "scenario": "peers", "promises": []any{map[string]string{"of": "queue", "property": "no-lost-task"}}})
	call, answered := began.UnixNano(), produced.UnixNano()
	for i := range amount {
		line(map[string]any{"client": i, "kind": "enqueue", "arg": fmt.Sprint(i), "outcome": "ok", "call_ns": call, "return_ns": answered})
	}
	last := answered
	client := amount
	sessions := map[string]string{}
	for _, e := range log {
		last = max(last, e.At)
		client++
		if e.Event == "start" {
			session := fmt.Sprintf("%s/%d", e.Task, client)
			sessions[fmt.Sprint(e.Worker, " ", e.Task)] = session
			line(map[string]any{"client": client, "kind": "pop", "result": e.Task, "session": session, "outcome": "ok", "call_ns": max(e.At-1000, answered+1), "return_ns": max(e.At, answered+2)})
			continue
		}
		at := max(e.At, answered+3)
		line(map[string]any{"client": client, "kind": "effect", "arg": e.Task, "outcome": "ok", "call_ns": at, "return_ns": at + 1})
	}
	last += int64(time.Second)
	for _, task := range left {
		client++
		line(map[string]any{"client": client, "kind": "read-state", "arg": "waiting", "result": task, "outcome": "ok", "call_ns": last, "return_ns": last + 1})
	}
	client++
	line(map[string]any{"client": client, "kind": "read-state", "arg": "audit", "result": len(left), "outcome": "ok", "call_ns": last, "return_ns": last + 1})
	operations := n - 1
	line(map[string]any{"trailer": map[string]int{"operations": operations}})
	h, err := history.ReadJSONL(&b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
