package foreign

import (
	"strings"
	"testing"

	"oversell/checker"
)

// refusal returns the error with which a text, or its model, is refused, or "" if it is accepted.
func refusal(text, model string) string {
	h, err := parseJepsen(text)
	if err != nil {
		return err.Error()
	}
	h.Path = "h.edn"
	if _, err := FindModel(model, h); err != nil {
		return err.Error()
	}
	return ""
}

// TestLogOrEDN checks that EDN in which a log is quoted is still read as EDN.
func TestLogOrEDN(t *testing.T) {
	bad := events("0i:read 0o:read=7")
	for name, text := range map[string]string{
		"a comment that quotes a log": "\n;; INFO jepsen.util - 0 :invoke :write 1\n" + bad,
		"a byte order mark":           "\ufeff#jepsen.history.Op" + bad,
		"a mark and a comment":        "\ufeff; jepsen\n" + bad,
		"no commas":                   "#jepsen.history.Op" + strings.ReplaceAll(bad, ",", ""),
		"a namespace":                 "#:jepsen" + bad,
		"a record left out":           "#_ {:process 0 :type :info :f :jepsen}\n" + bad,
		"metadata":                    `^{:x "jepsen"} [` + bad + "]",
		"a vector with a log in it":   "[ ; 2016 INFO jepsen.util - 0 :invoke :write 1\n" + bad + "]",
		"no commas in a vector":       "[{:process :nemesis :type :info :f :start :value \"jepsen - 0 :invoke :write 1\"}" + strings.ReplaceAll(bad, ",", "") + "]",
		"a log":                       "INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:ok\t:read\t7\n",
		"a log with a bracket":        "[2017-04-05 17:21:04,123] INFO jepsen.util - 0\t:invoke\t:read\tnil\n[2017] INFO  jepsen.util - 0\t:ok\t:read\t7\n",
		"a log that begins otherwise": "Running tests\nINFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:ok\t:read\t7\n",
	} {
		h, err := parseJepsen(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m, err := FindModel("register", h); err != nil || Judge(h, m, Limits{Time: 1e9})[0].Result != checker.Violated {
			t.Errorf("%s: %v, it holds: %+v", name, err, h.Ops)
		}
	}
}

// TestTextsOfKV checks that the values of a kv must be texts.
func TestTextsOfKV(t *testing.T) {
	for short, want := range map[string]string{
		"0i:put=[1] 0o:put=[1] 1i:get 1o:get=[2]":           "a kv puts [1]: want a text",
		"0i:append=:a 0o:append=:a":                         "a kv appends :a: want a text",
		"0i:put=\"1\" 0o:put=\"1\" 1i:get 1o:get=1":         "a get of a kv returned 1: want a text",
		"0i:get 0o:get":                                     "a get of a kv returned nil: want a text",
		"0i:put=\"1\" 0n:put=\"1\" 1i:get 1n:get=:timeout":  "",
		"0i:put=[k,\"1\"] 0o:put=[k,\"1\"] 0i:get=[k,nil]":  "",
		"0i:put=nil 0f:put=nil 1i:get 1f:get=:unavailable ": "a kv puts nil: want a text",
	} {
		text := strings.ReplaceAll(events(short), "[k,", "[k ")
		if got := refusal(text, ""); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\n%s, want\n%s", short, got, want)
		}
	}
}

// TestTasksThatMayBeThere checks that a task counts as lost only if a drain of its queue came after it, and nobody
// can have taken it.
func TestTasksThatMayBeThere(t *testing.T) {
	for _, c := range []struct {
		history string
		want    checker.Result
	}{
		{"0i:drain 0o:drain=[] 1i:enqueue=1 1o:enqueue=1", checker.Unknown},
		{"0i:enqueue=1 1i:drain 0o:enqueue=1 1o:drain=[]", checker.Unknown},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain=[]", checker.Violated},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain=[] 0i:enqueue=1 0o:enqueue=1", checker.Violated},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain=[1] 0i:enqueue=1 0o:enqueue=1", checker.Unknown},
		{"0i:enqueue=1 0o:enqueue=1 1i:dequeue 1n:dequeue 2i:drain 2o:drain=[]", checker.Unknown},
		{"0i:enqueue=1 0o:enqueue=1 1i:dequeue 2i:drain 2o:drain=[]", checker.Unknown},
		{"0i:enqueue=1 0o:enqueue=1 0i:enqueue=2 0o:enqueue=2 1i:dequeue 1n:dequeue 2i:drain 2o:drain=[]", checker.Violated},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1n:drain 2i:drain 2o:drain=[]", checker.Unknown},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1f:drain 2i:drain 2o:drain=[]", checker.Violated},
		{"0i:enqueue=[1,5] 0o:enqueue=[1,5] 1i:drain=[2,nil] 1o:drain=[2,[]]", checker.Unknown},
		{"0i:enqueue=[1,5] 0o:enqueue=[1,5] 1i:drain=[1,nil] 1o:drain=[1,[]]", checker.Violated},
		{"0i:enqueue=[1,5] 0o:enqueue=[1,5] 1i:drain=[1,nil] 1o:drain=[1,[5]]", checker.Holds},
		{"0i:enqueue=[1,5] 0o:enqueue=[1,5] 1i:dequeue=[2,nil] 1n:dequeue=[2,nil] 1i:drain=[1,nil] 1o:drain=[1,[]]", checker.Violated},
	} {
		_, vs := judged(t, strings.NewReplacer("[1,", "[1 ", "[2,", "[2 ").Replace(events(c.history)), "queue", "")
		if vs[0].Result != c.want {
			t.Errorf("%s: %v, want %v: %s", c.history, vs[0].Result, c.want, vs[0].Why)
		}
	}
	if _, vs := judged(t, events("0i:dequeue 0o:dequeue=1 0i:enqueue=1 0o:enqueue=1"), "", ""); vs[1].Result != checker.Violated {
		t.Errorf("a task came out before anybody enqueued it: %+v", vs[1])
	}
}

// TestEachDequeue checks that every dequeue is judged, in whatever order they were invoked.
func TestEachDequeue(t *testing.T) {
	for history, want := range map[string][2]checker.Result{
		// Process 0 asked first and was answered last; the answer to process 1 came too early.
		"0i:dequeue 1i:dequeue 1o:dequeue=1 2i:enqueue=1 2o:enqueue=1 2i:drain 2o:drain=[] 0o:dequeue=1":      {checker.Violated, checker.Violated},
		"0i:dequeue 2i:enqueue=1 1i:dequeue 1o:dequeue=1 2o:enqueue=1 2i:drain 2o:drain=[] 0o:dequeue=1":      {checker.Holds, checker.Violated},
		"0i:enqueue=1 0o:enqueue=1 1i:dequeue 1o:dequeue=1 1i:dequeue 1o:dequeue=1 0i:enqueue=1 0o:enqueue=1": {checker.Holds, checker.Violated},
		"0i:enqueue=1 0o:enqueue=1 1i:dequeue 1o:dequeue=1 1i:dequeue 0i:enqueue=1 1o:dequeue=1 0o:enqueue=1": {checker.Holds, checker.Holds},
	} {
		_, vs := judged(t, events(history), "queue", "")
		if got := [2]checker.Result{vs[1].Result, vs[2].Result}; got != want {
			t.Errorf("%s: %v, want %v: %s; %s", history, got, want, vs[1].Why, vs[2].Why)
		}
	}
}

// TestNilTellsNothing checks that an answer of nil, which does not say what was found, accuses nobody.
func TestNilTellsNothing(t *testing.T) {
	for _, c := range []struct {
		model, history string
		want           [2]checker.Result
	}{
		{"set", "0i:add=1 0o:add=1 1i:read 1o:read", [2]checker.Result{checker.Unknown, checker.Holds}},
		{"set", "0i:add=1 0o:add=1 1i:read 1o:read=#{} 1i:read 1o:read", [2]checker.Result{checker.Violated, checker.Holds}},
		{"set", "0i:add=1 0o:add=1 1i:read 1o:read=#{1} 1i:read 1o:read", [2]checker.Result{checker.Holds, checker.Holds}},
		{"queue", "0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain", [2]checker.Result{checker.Unknown, checker.Holds}},
		{"queue", "0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain 1i:drain 1o:drain=[]", [2]checker.Result{checker.Unknown, checker.Holds}},
		{"queue", "0i:enqueue=1 0o:enqueue=1 1i:dequeue 1o:dequeue 1i:drain 1o:drain=[]", [2]checker.Result{checker.Unknown, checker.Holds}},
		{"queue", "0i:enqueue=1 0o:enqueue=1 0i:enqueue=2 0o:enqueue=2 1i:dequeue 1o:dequeue 1i:drain 1o:drain=[]", [2]checker.Result{checker.Violated, checker.Holds}},
		{"ids", "0i:generate 0o:generate 1i:generate 1o:generate", [2]checker.Result{checker.Holds}},
		{"ids", "0i:generate 0o:generate 1i:generate 1o:generate=1 1i:generate 1o:generate=1", [2]checker.Result{checker.Violated}},
	} {
		_, vs := judged(t, events(c.history), c.model, "")
		got := [2]checker.Result{vs[0].Result}
		if len(vs) > 1 {
			got[1] = vs[1].Result
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v: %s", c.history, got, c.want, vs[0].Why)
		}
	}
}
