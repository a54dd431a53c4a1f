package system

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// answering returns a system whose process answers each request except init with a text, in which %d stands for the
// request's id.
func answering(t *testing.T, object, text, more string) (*System, func() variant.Env) {
	t.Helper()
	return behaving(t, object, "says:"+text, more)
}

// TestAnswersThatLack checks that an answer that lacks a field that its operation needs, or has an impossible value, does
// not count as an answer: the outcome is unknown, and the process is killed.
func TestAnswersThatLack(t *testing.T) {
	for _, c := range []struct{ object, op, text, more, want string }{
		{"ids", "next", `{"id":%d,"ok":true}`, "", `an ok answer to next has "number"`},
		{"ids", "next", `{"id":%d,"ok":true,"number":null}`, "", `an ok answer to next has "number"`},
		{"ids", "next", `{"id":%d,"ok":true,"number":0}`, "", ""},
		{"ids", "last", `{"id":%d,"ok":true}`, "", `an ok answer to last has "number"`},
		{"queue", "pop", `{"id":%d,"ok":true}`, "", `an ok answer to pop has "tasks"`},
		{"queue", "pop", `{"id":%d,"ok":true,"tasks":[{"score":1}]}`, "", `a task has an id`},
		{"queue", "pop", `{"id":%d,"ok":true,"tasks":[""]}`, "", `a task has an id`},
		{"queue", "pop", `{"id":%d,"ok":true,"tasks":[null]}`, "", `a task has an id`},
		{"queue", "pop", `{"id":%d,"ok":true,"tasks":[{"id":"a","ID":"b"}]}`, "", `unknown field "ID"`},
		{"queue", "pop", `{"id":%d,"ok":true,"tasks":["a"]}`, "", ""},
		{"queue", "state", `{"id":%d,"ok":true}`, "", `an ok answer to state has "tasks"`},
		{"queue", "state", `{"id":%d,"ok":true,"tasks":[]}`, "", ""},
		{"queue", "state", `{"id":%d,"ok":true,"tasks":["a"],"claimed":[{"id":"b"}]}`, "", ""},
		{"sale", "state", `{"id":%d,"ok":true,"sold":3}`, "", `an ok answer to state has "left"`},
		{"lock", "acquire", `{"id":%d,"ok":true}`, "", ""},
		{"lock", "acquire", `{"id":%d,"ok":true}`, "fences: true", `an ok answer to acquire has "fence"`},
		{"lock", "acquire", `{"id":%d,"refused":"held"}`, "fences: true", ""},
		{"lock", "acquire", `{"id":%d,"ok":true,"until_ms":0}`, "", "until_ms 0: want milliseconds since 1970"},
		{"lock", "acquire", `{"id":%d,"ok":true,"until_ms":-5}`, "", "until_ms -5: want milliseconds since 1970"},
		{"lock", "acquire", `{"id":%d,"ok":true,"until_ms":1767285225}`, "", "until_ms 1767285225 looks like seconds: want milliseconds since 1970"},
		{"lock", "acquire", `{"id":%d,"ok":true,"until_ms":1767285225.25}`, "", "looks like seconds"},
		{"lock", "acquire", `{"id":%d,"ok":true,"until_ms":60000}`, "", "until_ms 60000: want milliseconds since 1970"},
		{"lock", "acquire", `{"id":%d,"ok":true,"valid_ms":0}`, "", "valid_ms 0: want more than 0"},
		{"lock", "acquire", `{"id":%d,"ok":true,"valid_ms":-1}`, "", "valid_ms -1: want more than 0"},
		{"lock", "acquire", `{"id":%d,"ok":true,"valid_ms":1e300}`, "", "valid_ms 1e+300: want at most"},
		{"lock", "acquire", `{"id":%d,"ok":true,"valid_ms":30000}`, "", ""},
		{"lock", "acquire", `{"id":%d,"ok":true}]`, "", "is not an answer"},
		{"lock", "acquire", `{"id":%d,"ok":true}}`, "", "is not an answer"},
		{"lock", "acquire", `{"id":%d,"ok":true,"ok":true}`, "", `"ok" appears twice`},
		{"lock", "acquire", `{"id":%d,"OK":true}`, "", `unknown field "OK"`},
		{"lock", "acquire", `{"ID":%d,"ok":true}`, "", `unknown field "ID"`},
		{"lock", "acquire", `{"id":%d,"ok":true,"lock":{"ID":[1,{"OK":2}]}}`, "", ""},
	} {
		s, env := answering(t, c.object, c.text, "limit: 20s\n"+c.more)
		err := calls[c.object+" "+c.op](t, s, env())
		failed := err != nil && !strings.Contains(told(err), "refused: ")
		if (c.want != "") != failed || failed && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s: %v; want %q", c.op, c.text, c.more, err, c.want)
		}
	}
}

// TestAnswersInOtherLetters checks that a line that is not UTF-8 does not count as an answer.
func TestAnswersInOtherLetters(t *testing.T) {
	if _, err := parse([]byte("{\"id\":1,\"ok\":true,\"lock\":\"\xff\"}")); err == nil || !strings.Contains(err.Error(), "it is not UTF-8") {
		t.Errorf("%v; want that it is not UTF-8", err)
	}
}

// TestNumbersInOtherSpellings checks that whole numbers of an answer are read as numbers of JSON, and that a lock is kept
// as it is spelled.
func TestNumbersInOtherSpellings(t *testing.T) {
	a, err := parse([]byte(`{"id":1.0,"ok":true,"left":0.0,"sold":1E+2,"reserved":10.00,"fence":9007199254740993.0,"number":1e1,"tasks":[{"id":"a","attempt":2.0,"score":1e1}],"lock":{"n":[1.0,2e1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(*a.ID, *a.Left, *a.Sold, a.Reserved, a.Fence, a.Number, a.Tasks, string(a.Lock))
	if want := `1 0 100 10 9007199254740993 10 [{a 10 2  0}]{"n":[1.0,2e1]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, text := range []string{`"left":0.5`, `"fence":1e-1`, `"number":1e400`, `"number":9223372036854775808.0`} {
		if _, err := parse([]byte(`{"id":1,"ok":true,` + text + `}`)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// calls holds, for each operation, a function that calls it.
var calls = map[string]func(*testing.T, *System, variant.Env) error{
	"ids next": func(t *testing.T, s *System, env variant.Env) error {
		_, err := s.IDs().New(env, "c").Next(t.Context(), "r", lockimpl.Lock{})
		return err
	},
	"ids last": func(t *testing.T, s *System, env variant.Env) error {
		_, err := s.IDs().New(env, "c").Last(t.Context())
		return err
	},
	"queue pop": func(t *testing.T, s *System, env variant.Env) error {
		_, err := s.Queue().New(env, queueimpl.Options{}).Pop(t.Context(), "q", 1)
		return err
	},
	"queue state": func(t *testing.T, s *System, env variant.Env) error {
		_, err := s.Queue().New(env, queueimpl.Options{}).State(t.Context(), "q")
		return err
	},
	"sale state": func(t *testing.T, s *System, env variant.Env) error {
		_, err := s.Sale().New(env, "p").State(t.Context())
		return err
	},
	"lock acquire": func(t *testing.T, s *System, env variant.Env) error {
		_, err := s.Lock().New(env).Acquire(t.Context(), "k", lockimpl.Options{TTL: time.Minute})
		return err
	},
}

// TestProcessesThatLeaveOthers checks that the end of a process is reported, even if another process that it started still
// holds its output open, and that this other process is ended, too.
func TestProcessesThatLeaveOthers(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	s, env := behaving(t, "lock", "leaves:"+pid, "limit: 20s")
	l := s.Lock().New(env())
	began := time.Now()
	_, err := l.Acquire(t.Context(), "k", lockimpl.Options{TTL: time.Minute})
	if want := "it ended with exit status 4"; err == nil || !strings.Contains(err.Error(), want) || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v; want %q", err, time.Since(began), want)
	}
	var id int
	text, err := os.ReadFile(pid)
	if _, scanned := fmt.Sscan(string(text), &id); err != nil || scanned != nil {
		t.Fatal(err, scanned)
	}
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("what the process has started is still there")
}

// TestOperationsWithoutADefiniteAnswer checks that an operation that a program says it lacks counts as not supported, with
// faults and without, and that an operation that is never answered definitely is reported if no fault can be the reason.
func TestOperationsWithoutADefiniteAnswer(t *testing.T) {
	for _, c := range []struct {
		says             string
		unsupported      bool
		quiet, disturbed bool // whether it is reported in a run without faults, and in one with faults
	}{
		{`{"id":%d,"unknown":"refund is not implemented"}`, true, true, true},
		{`{"id":%d,"unknown":"?"}`, false, true, false},
		{`{"id":%d,"refused":"never"}`, false, true, false},
		{`{"id":%d,"refused":"stale"}`, false, false, false},
		{`{"id":%d,"ok":true}`, false, false, false},
	} {
		s, env := answering(t, "sale", c.says, "")
		s.Begin()
		_, err := s.Sale().New(env(), "phone").Refund(t.Context(), stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{})
		if errors.Is(err, errors.ErrUnsupported) != c.unsupported {
			t.Errorf("%s: %v", c.says, err)
		}
		if quiet, disturbed := s.Silent(false), s.Silent(true); (quiet != nil) != c.quiet || (disturbed != nil) != c.disturbed {
			t.Errorf("%s: %v without faults, %v with faults", c.says, quiet, disturbed)
		}
		s.End()
	}
}
