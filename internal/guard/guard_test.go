package guard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a Keeper that remembers its duties, and fails to undo the one called "stuck".
type memory struct {
	duties map[int64]string
	undone []string
}

func (m *memory) Begin(_ context.Context, id int64, body json.RawMessage) error {
	var what string
	if err := json.Unmarshal(body, &what); err != nil {
		return err
	}
	if what == "refused" {
		return errors.New("not this")
	}
	m.duties[id] = what
	return nil
}

func (m *memory) End(_ context.Context, id int64) { delete(m.duties, id) }

func (m *memory) Undo(_ context.Context, id int64) (string, error) {
	if m.duties[id] == "stuck" {
		return "free it", errors.New("it is stuck")
	}
	m.undone = append(m.undone, m.duties[id])
	return "undo " + m.duties[id], nil
}

func (m *memory) Close() {}

// TestWhatIsLeftIsUndone checks that a guard undoes the duties that were begun and not ended, and nothing else, and that
// it gives up in the end on a duty that cannot be undone, and says so in its log.
func TestWhatIsLeftIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, m := t.TempDir(), &memory{duties: map[int64]string{}}
		in := `{"do":"hello","role":"memory"}
{"do":"log","body":` + string(must(json.Marshal(dir))) + `}
{"do":"begin","id":1,"body":"left"}
{"do":"begin","id":2,"body":"ended"}
{"do":"begin","id":3,"body":"refused"}
{"do":"end","id":2}
{"do":"begin","id":4,"body":"stuck"}
{"do":"begin","id":5,"body":"cut`
		var out bytes.Buffer
		s := &service{
			roles: Roles{"memory": func(json.RawMessage) (Keeper, error) { return m, nil }},
			in:    bufio.NewReader(strings.NewReader(in)), out: &out, patience: time.Minute,
		}
		begin := time.Now()
		if code := s.run(); code != 1 {
			t.Errorf("exit code %d; want 1, for one duty is stuck", code)
		}
		if took := time.Since(begin); took < time.Minute || took > time.Minute+5*time.Second {
			t.Errorf("it gives up after %v; want 1m", took)
		}
		if strings.Join(m.undone, " ") != "left" {
			t.Errorf("it undoes %q; want what was left", m.undone)
		}
		if want := "{}\n{}\n{}\n{}\n{\"error\":\"not this\"}\n{}\n{}\n"; out.String() != want {
			t.Errorf("it answers %q; want %q", out.String(), want)
		}
		log, err := os.ReadFile(filepath.Join(dir, "guard.log"))
		if err != nil || !strings.Contains(string(log), "undo left") || !strings.Contains(string(log), "could not free it within 1m0s: it is stuck") {
			t.Errorf("it tells %q (%v)", log, err)
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestWithoutAGuard checks that, without a call of With, Start starts no guard and returns no error, and that the methods
// of the nil guard do nothing.
func TestWithoutAGuard(t *testing.T) {
	g, err := Start(t.Context(), "memory", nil)
	if g != nil || err != nil {
		t.Fatalf("Start returned a guard or an error: %v, %v", g, err)
	}
	done, err := g.Intend("something")
	if err != nil {
		t.Fatal(err)
	}
	done()
	g.Log(t.TempDir())
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
