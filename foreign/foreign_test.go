package foreign

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oversell/checker"
	"oversell/checker/monitor"
)

// events expands a short form of a history, in which each word is an event: process, type (i, o, f, or n for :info),
// operation and value, such as "0i:read", "1o:write=4" or "2o:cas=[1,2]".
func events(short string) string {
	types := map[byte]string{'i': "invoke", 'o': "ok", 'f': "fail", 'n': "info"}
	var b strings.Builder
	for i, word := range strings.Fields(short) {
		f, value, told := strings.Cut(word[3:], "=")
		if !told {
			value = "nil"
		}
		fmt.Fprintf(&b, "{:process %c, :type :%s, :f :%s, :value %s, :time %d, :index %d}\n", word[0], types[word[1]], f, value, 1000*i+1, i)
	}
	return b.String()
}

// judged reads and judges a text, and returns the name of its model.
func judged(t testing.TB, text, model, initial string) (string, []checker.Verdict) {
	t.Helper()
	h, err := parseJepsen(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := FindModel(model, h)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = m.From(initial); err != nil {
		t.Fatal(err)
	}
	return m.Name, Judge(h, m, Limits{Time: 2 * time.Minute})
}

func TestModels(t *testing.T) {
	for _, c := range []struct {
		history, model string
		want           checker.Result
	}{
		// Registers; nil at first.
		{"0i:read 0o:read 1i:write=2 1o:write=2", "register", checker.Holds},
		{"0i:read 0o:read=1 1i:write=1 1o:write=1", "register", checker.Violated},
		{"0i:write=1 0o:write=1 1i:read 1o:read=1", "register", checker.Holds},
		{"0i:write=1 0o:write=1 1i:read 1o:read=0", "register", checker.Violated},
		{"0i:write=0 0o:write=0 0i:write=1 1i:read 1o:read=1 2i:read 2o:read=0 0o:write=1", "register", checker.Violated},
		{"0i:write=0 0o:write=0 0i:write=1 1i:read 2i:read 1o:read=1 2o:read=0 0o:write=1", "register", checker.Holds},
		// A read that returned nil did not report what it read.
		{"0i:write=1 0o:write=1 1i:read 1o:read", "register", checker.Holds},
		{"0i:write=nil 0o:write=nil 1i:read 1o:read=1", "register", checker.Violated},
		{"0i:write=nil 0o:write=nil 1i:cas=[1,2] 1o:cas=[1,2]", "register", checker.Violated},
		{"0i:write=0 0o:write=0 0i:write=1 0n:write=1 1i:read 1o:read=0 1i:read 1o:read=1", "register", checker.Holds},
		{"0i:write=0 0o:write=0 0i:write=1 0n:write=1 1i:read 1o:read=1 1i:read 1o:read=0", "register", checker.Violated},
		{"0i:write=1 0f:write=1 1i:read 1o:read=1", "register", checker.Violated},
		{"0i:write=1 0o:write=1 1i:cas=[1,2] 1o:cas=[1,2] 2i:read 2o:read=2", "register", checker.Holds},
		{"0i:write=1 0o:write=1 1i:cas=[2,3] 1o:cas=[2,3]", "register", checker.Violated},
		{"0i:write=1 0o:write=1 1i:cas=[1,3] 1f:cas=[1,3] 1i:read 1o:read=1", "register", checker.Holds},
		{"0i:write=1 0o:write=1 1i:cas=[1,3] 1n:cas=[1,3] 2i:read 2o:read=3", "register", checker.Holds},
		{"0i:write=1 0o:write=1 1i:cas=[2,3] 1n:cas=[2,3] 2i:read 2o:read=3", "register", checker.Violated},
		{"0i:write=1 0o:write=1 1i:read", "register", checker.Holds},
		{"0i:write=#{1,2} 0o:write=#{1,2} 1i:read 1o:read=#{2,1}", "register", checker.Holds},
		// Independent registers.
		{"0i:write=[x,1] 0o:write=[x,1] 1i:read=[y,nil] 1o:read=[y,nil] 1i:read=[x,nil] 1o:read=[x,1]", "register", checker.Holds},
		{"0i:write=[x,1] 0o:write=[x,1] 1i:read=[x,nil] 1o:read=[x,2]", "register", checker.Violated},
		{"0i:write=[x,1] 0o:write=nil 1i:read=[y,nil] 1o:read=[y,nil] 1i:read=[x,nil] 1o:read=[x,1]", "register", checker.Holds},
		{"0i:write=[x,1] 0o:write=nil 1i:write=[y,2] 1o:write=[y,2] 1i:read=[x,nil] 1o:read=[x,1] 1i:read=[y,nil] 1o:read=[y,2]", "register", checker.Holds},
		{"0i:acquire=[a,nil] 0o:acquire 1i:acquire=[b,nil] 1o:acquire", "mutex", checker.Holds},
		// Values that Clojure considers equal.
		{"0i:write=(1,2) 0o:write=(1,2) 1i:read 1o:read=[1,2]", "register", checker.Holds},
		{"0i:write=#:a{:b,1} 0o:write=#:a{:b,1} 1i:read 1o:read=#:c{:b,1}", "register", checker.Violated},
		{"0i:write=#:a{:b,1} 0o:write=#:a{:b,1} 1i:read 1o:read={:a/b,1}", "register", checker.Holds},
		{"0i:write=16 0o:write=16 1i:read 1o:read=0x10", "register", checker.Holds},
		{"0i:add=(1) 0o:add=(1) 1i:read 1o:read=#{[1]}", "set", checker.Holds},
		{"0i:write=[x,1] 0o:write=[x,1] 1i:cas=[x,[1,2]] 1o:cas=[x,[1,2]] 1i:cas=[x,[2,3]] 1o:cas=[x,[2,3]]", "register", checker.Holds},
		{"0i:write=[x,1] 0o:write=[x,1] 1i:cas=[y,[1,2]] 1o:cas=[y,[1,2]]", "register", checker.Violated},
		// Mutexes.
		{"0i:acquire 0o:acquire 0i:release 0o:release 1i:acquire 1o:acquire", "mutex", checker.Holds},
		{"0i:acquire 0o:acquire 1i:acquire 1o:acquire", "mutex", checker.Violated},
		{"0i:acquire 1i:acquire 0o:acquire 1f:acquire", "mutex", checker.Holds},
		{"0i:acquire 0o:acquire 1i:acquire 0i:release 1o:acquire 0o:release", "mutex", checker.Holds},
		{"0i:release 0o:release", "mutex", checker.Violated},
		{"0i:release 0f:release", "mutex", checker.Holds},
		{"0i:acquire 0n:acquire 1i:acquire 1o:acquire", "mutex", checker.Holds},
		{"0i:acquire 0n:acquire 1i:release 1o:release", "mutex", checker.Holds},
		{"0i:acquire 0o:acquire 0i:release 0n:release 1i:acquire 1o:acquire", "mutex", checker.Holds},
		{"0i:acquire 0o:acquire 0i:release 0n:release 1i:acquire 1o:acquire 2i:acquire 2o:acquire", "mutex", checker.Violated},
		{"0i:acquire=[a,nil] 0o:acquire=[a,nil] 1i:acquire=[b,nil] 1o:acquire=[b,nil]", "mutex", checker.Holds},
		{"0i:acquire=[a,nil] 0o:acquire=[a,nil] 1i:acquire=[a,nil] 1o:acquire=[a,nil]", "mutex", checker.Violated},
		// Locks with fencing tokens.
		{"0i:acquire 0o:acquire={:fence,1} 0i:release 0o:release 1i:acquire 1o:acquire={:fence,2}", "fenced-mutex", checker.Holds},
		{"0i:acquire 0o:acquire={:fence,2} 0i:release 0o:release 1i:acquire 1o:acquire={:fence,2}", "fenced-mutex", checker.Violated},
		{"0i:acquire 0o:acquire={:fence,2} 0i:release 0o:release 1i:acquire 1o:acquire={:fence,1}", "fenced-mutex", checker.Violated},
		{"0i:acquire 0o:acquire={:fence,1} 1i:release 1o:release", "fenced-mutex", checker.Violated},
		{"0i:acquire 0o:acquire=7 0i:release 0o:release 1i:acquire 1n:acquire 2i:acquire 2o:acquire=8", "fenced-mutex", checker.Holds},
		{"0i:acquire 0o:acquire={:fence,1,:client,:a} 1i:release={:client,:a} 1o:release={:client,:a}", "fenced-mutex", checker.Holds},
		{"0i:acquire 0o:acquire={:fence,1} 1i:acquire 1o:acquire={:fence,2}", "fenced-mutex", checker.Violated},
		{"0i:acquire 0o:acquire=7 0i:release 0o:release 1i:acquire 1o:acquire=-3", "fenced-mutex", checker.Violated},
		{"0i:acquire 0o:acquire=-3 0i:release 0o:release 1i:acquire 1o:acquire=-2", "fenced-mutex", checker.Holds},
		{"0i:acquire 0o:acquire=-2 0i:release 0o:release 1i:acquire 1o:acquire=-3", "fenced-mutex", checker.Violated},
		{"0i:acquire 0o:acquire=7 0i:release 0o:release 1i:acquire 1o:acquire=0 1i:release 1o:release 0i:acquire 0o:acquire=8", "fenced-mutex", checker.Holds},
		{"0i:acquire 0o:acquire=7 0i:release 0o:release 1i:acquire 1o:acquire=0 1i:release 1o:release 0i:acquire 0o:acquire=6", "fenced-mutex", checker.Violated},
		// Counters.
		{"0i:add=1 0o:add=1 1i:read 1o:read=1", "counter", checker.Holds},
		{"0i:add=1 0o:add=1 1i:read 1o:read=0", "counter", checker.Violated},
		{"0i:add=1 1i:read 1o:read=0 0o:add=1", "counter", checker.Holds},
		{"0i:add=1 1i:read 1o:read=1 2i:read 2o:read=0 0o:add=1", "counter", checker.Violated},
		{"0i:add=5 0n:add=5 1i:read 1o:read=0 1i:read 1o:read=5", "counter", checker.Holds},
		{"0i:add=5 0f:add=5 1i:read 1o:read=5", "counter", checker.Violated},
		{"0i:add=-2 0o:add=-2 1i:add=3 1o:add=3 2i:read 2o:read=1", "counter", checker.Holds},
		{"0i:add=2 1i:add=3 2i:read 2o:read=4 0o:add=2 1o:add=3", "counter", checker.Violated},
		// Sets.
		{"0i:add=1 0o:add=1 1i:read 1o:read=#{1}", "set", checker.Holds},
		{"0i:add=1 0o:add=1 1i:read 1o:read=#{}", "set", checker.Violated},
		{"0i:add=1 0n:add=1 1i:read 1o:read=#{}", "set", checker.Holds},
		{"0i:add=1 0n:add=1 1i:read 1o:read=[1]", "set", checker.Holds},
		{"0i:add=1 0o:add=1 1i:read 1o:read=#{1,2}", "set", checker.Violated},
		{"0i:add=1 0o:add=1 1i:read 1o:read=#{} 1i:read 1o:read=#{1}", "set", checker.Holds},
		{"0i:add=1 1i:read 0o:add=1 1o:read=#{}", "set", checker.Unknown}, // acknowledged during the last read
		{"0i:read 0o:read=#{1} 1i:add=1 1o:add=1", "set", checker.Violated},
		// Queues.
		{"0i:enqueue=1 0o:enqueue=1 1i:dequeue 1o:dequeue=1", "queue", checker.Holds},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain=[1]", "queue", checker.Holds},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain=[]", "queue", checker.Violated},
		{"0i:enqueue=1 0o:enqueue=1 1i:dequeue 1f:dequeue", "queue", checker.Unknown},
		{"0i:enqueue=1 0n:enqueue=1 1i:drain 1o:drain=[]", "queue", checker.Holds},
		{"0i:enqueue=1 0n:enqueue=1 1i:drain 1o:drain=[1]", "queue", checker.Holds},
		{"0i:enqueue=1 0o:enqueue=1 1i:drain 1o:drain=[1,2]", "queue", checker.Violated},
		{"0i:enqueue=1 0o:enqueue=1 1i:dequeue 1o:dequeue=1 2i:dequeue 2o:dequeue=1", "queue", checker.Holds},
		// Texts by key (kv).
		{"0i:put=\"x\" 0o:put=\"x\" 1i:append=\"y\" 1o:append=\"y\" 0i:get 0o:get=\"xy\"", "kv", checker.Holds},
		{"0i:append=\"x\" 0o:append=\"x\" 1i:append=\"y\" 1o:append=\"y\" 0i:get 0o:get=\"yx\"", "kv", checker.Violated},
		{"0i:append=\"x\" 1i:append=\"y\" 0o:append=\"x\" 1o:append=\"y\" 0i:get 0o:get=\"yx\"", "kv", checker.Holds},
		// Transactions.
		{"0i:txn=[[:w,:x,1],[:w,:y,1]] 0o:txn=[[:w,:x,1],[:w,:y,1]] 1i:txn=[[:r,:x,nil],[:r,:y,nil]] 1o:txn=[[:r,:x,1],[:r,:y,1]]", "multi-register", checker.Holds},
		{"0i:txn=[[:w,:x,1],[:w,:y,1]] 1i:txn=[[:r,:x,nil],[:r,:y,nil]] 1o:txn=[[:r,:x,1],[:r,:y,2]] 0o:txn=[[:w,:x,1],[:w,:y,1]]", "multi-register", checker.Violated},
		{"0i:txn=[[:w,:x,1]] 0o:txn 1i:txn=[[:r,:x,nil]] 1o:txn=[[:r,:x,1]]", "multi-register", checker.Holds},
		{"0i:txn=[[:w,:x,1]] 0o:txn 1i:txn=[[:r,:x,nil]] 1o:txn=[[:r,:x,2]]", "multi-register", checker.Violated},
		{"0i:txn=[[:w,:x,1]] 0o:txn=[[:w,:x,1]] 1i:txn=[[:r,:x,nil]] 1o:txn=[[:r,:x,nil]]", "multi-register", checker.Holds},
		// Numbers.
		{"0i:generate 0o:generate=1 1i:generate 1o:generate=2", "ids", checker.Holds},
		{"0i:generate 0o:generate=1 1i:generate 1o:generate=1", "ids", checker.Violated},
	} {
		text := strings.NewReplacer(",", " ").Replace(events(strings.ReplaceAll(c.history, "},", "} ")))
		model, vs := judged(t, text, "", "")
		var promised []checker.Result
		for _, v := range vs[:min(len(vs), 2)] {
			if v.Opportunities > 0 || v.Result != checker.Holds {
				promised = append(promised, v.Result)
			}
		}
		if got := monitor.Merge(promised...); model != c.model || got != c.want && !(len(promised) == 0 && c.want == checker.Holds) {
			t.Errorf("%s: %s %v, want %s %v: %+v", c.history, model, got, c.model, c.want, vs)
		}
	}
}

// TestKeys checks when a value [key value] counts as that of an independent object: where nothing else explains it,
// or where the user says so.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		history string
		keys    Keys
		want    string // the key and the argument of the first operation
	}{
		{"0i:txn=[1_[[:r_:a_nil]]] 0o:txn=[1_[[:r_:a_nil]]]", "", "1 [[:r :a nil]]"},
		{"0i:txn=[1_[[:w_:a_1]_[:w_:b_1]]] 0o:txn", "", "1 [[:w :a 1] [:w :b 1]]"},
		{"0i:txn=[1_[]] 1i:txn=[1_[[:w_:a_1]]]", "", "1 []"},
		{"0i:txn=[[:w_:a_1]_[:w_:b_1]]", "", " [[:w :a 1] [:w :b 1]]"},
		{"0i:txn=[[:w_:a_1]_[:w_:b_1]] 1i:txn=[[:w_:a_1]]", "", " [[:w :a 1] [:w :b 1]]"},
		{"0i:put=[k_\"x\"] 0o:put 1i:append=[k_\"x\"]", "", "\"k\" \"x\""},
		{"0i:write=[k_1] 0o:write=[k_1]", "", "k 1"},
		{"0i:add=[k_1] 0o:add=[k_1]", "", "k 1"},
		{"0i:add=[k_1] 0o:add=[k_1] 1i:read 1o:read=#{[k_1]}", "", " [k 1]"},
		{"0i:cas=[1_2] 1i:write=[1_2]", "", " [1 2]"},
		{"0i:cas=[k_[1_2]] 1i:write=[k_2]", "", "k [1 2]"},
		{"0i:cas=[1_2] 1i:write=[1_2]", "yes", "1 2"},
		{"0i:write=[1_2] 1i:write=[1_2]", "no", " [1 2]"},
		{"0i:write=[1_2] 1i:read=[1_nil]", "no", " [1 2]"},
	} {
		h, err := parseWith(strings.ReplaceAll(events(c.history), "_", " "), c.keys)
		if err != nil {
			t.Fatal(c.history, err)
		}
		if got, want := h.Ops[0].Key+" "+h.Ops[0].Arg.String(), strings.ReplaceAll(c.want, "\"k\"", "k"); got != want {
			t.Errorf("%s: %s, want %s", c.history, got, want)
		}
	}
}

// TestDuplicatesOfAQueue checks that a task that came out twice is reported.
func TestDuplicatesOfAQueue(t *testing.T) {
	_, vs := judged(t, events("0i:enqueue=1 0o:enqueue=1 1i:dequeue 1o:dequeue=1 2i:drain 2o:drain=[1]"), "", "")
	if vs[2].Result != checker.Violated || vs[0].Result != checker.Holds || vs[1].Result != checker.Holds {
		t.Errorf("%+v", vs)
	}
}

// TestForms reads one history in all the forms in which histories are published.
func TestForms(t *testing.T) {
	const want = "register violated: up to line 3 there is a legal order"
	for name, text := range map[string]string{
		"a vector": "[{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n{:process 1, :type :invoke, :f :read, :value nil}\n{:process 1, :type :ok, :f :read, :value 2}]",
		"a stream": "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n{:process 1, :type :invoke, :f :read, :value nil}\n{:process 1, :type :ok, :f :read, :value 2}",
		"records":  "#jepsen.history.Op{:index 0, :time 1, :type :invoke, :process 0, :f :write, :value 1}\n#jepsen.history.Op{:index 1, :time 2, :type :ok, :process 0, :f :write, :value 1}\n#jepsen.history.Op{:type :invoke, :process 1, :f :read, :value nil}\n#jepsen.history.Op{:type :ok, :process 1, :f :read, :value 2, :error #object[x.Y 0x1f \"a\"]}",
		"names":    "({:op/process 0, :op/type :jepsen/invoke, :op/f :op/write, :op/value 1}\n#:op{:process 0, :type :ok, :f :write, :value 1}\n{\"process\" 1, \"type\" \"invoke\", \"f\" \"read\"}\n{:process 1, :type :ok, :f :read, :value 2})",
		"nemesis":  "{:process :nemesis, :type :info, :f :start, :value nil} {:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n{:process 1, :type :invoke, :f :read, :value nil}\n{:process 1, :type :ok, :f :read, :value 2}",
		"a log":    "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:ok\t:write\t1\nINFO  jepsen.util - 1\t:invoke\t:read\tnil\nINFO  jepsen.util - 1\t:ok\t:read\t2\n",
		"core":     "2016-02-01 17:21:04,123 INFO  jepsen.core - 0 :invoke :write 1\r\n2016-02-01 INFO  jepsen.core - 0 :ok :write 1\r\nINFO [2017-04-05 17:21:04,123] jepsen worker 1 - jepsen.util 1 :invoke :read nil\r\nINFO  jepsen.core - 1 :ok :read 2\r\nINFO  jepsen.core - :nemesis :info :stop nil\nINFO  jepsen.core - Worker 1 done\n",
	} {
		model, vs := judged(t, text, "", "")
		if got := fmt.Sprintf("%s %v: %s", model, vs[0].Result, vs[0].Why); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":    `1:1: there are no operations: a history has events such as {:process 0, :type :invoke, :f :read, :value nil}`,
		"[1]": `1:2: 1 is not an event: want a map such as {:process 0, :type :invoke, :f :read, :value nil}`,
		"{:process 0, :type :invoke, :f :read}\n{:process 0, :type :okay, :f :read}": `2:1: the event has the type "okay": want :invoke, :ok, :fail or :info`,
		"{:type :invoke, :f :read}":                                           `1:1: an event without :process, such as :process 0; it has :type :f`,
		"{:process 0, :f :read}":                                              `1:1: an event without :type, such as :type :invoke; it has :process :f`,
		"{:process 0, :type 7, :f :read}":                                     `1:20: :type is 7: want a keyword, such as :type :invoke`,
		"{:process 0, :type :ok, :f :read}":                                   `1:1: process 0 completes read, and it never invoked anything`,
		events("0i:read 0i:read"):                                             `2:1: process 0 invokes read while its read of line 1 has no completion: a process does one thing at a time`,
		events("0i:read 0o:write=1"):                                          `2:1: process 0 completes write, and what it invoked on line 1 is read`,
		events("0i:read 0o:read 0o:read"):                                     `3:1: process 0 completes read, and it has no invocation open`,
		events("0i:write=[1,5] 0o:write=[1,5] 0i:read=[1,nil] 0o:read=[2,5]"): `4:42: read on key 1, invoked on line 3, is answered with the key 2: want the same key`,
		events("0i:read=[1,nil] 0o:read=5"):                                   `2:42: read on key 1 is answered with 5: want [key value], or nil`,
		events("0i:write=[1,5] 0o:write=[1,5] 0i:read=[1,nil] 0o:read=[1,5] 0i:read 0o:read=5"):  `5:46: read is invoked with nil, and read on line 3 with a key and a value: want [key value] in all operations, or in none`,
		"INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:well\t:read\tnil\n": `2:24: the event has the type "well": want :invoke, :ok, :fail or :info`,
		"INFO  jepsen.util - 0\t:invoke\t:write\t[1\n":                                           "1:38: the value \"[1\" is not EDN: 1:1: [ is not closed: ] is missing at the end of the file",
	} {
		if _, err := parseJepsen(text); err == nil || err.Error() != want {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		events("0i:jump"):                              `h.edn:1: no model: none has all of the operations jump: give --model (`,
		events("0i:cas=3"):                             `h.edn:1:45: a cas has the value 3: want a vector of two, what is expected and what is set, such as [1 2]`,
		events("1i:read 1o:read=0 0i:add=x"):           `h.edn:3:45: a counter adds x: want a whole number`,
		events("0i:drain 0o:drain=7"):                  `h.edn:2:43: a drain returned 7: want a vector of what was dequeued, such as [1 2]`,
		events("0i:read 0o:read=1"):                    `h.edn:1: no model: reads alone do not determine one: give --model (register, counter, set)`,
		events("0i:write=1 0o:write=2"):                `h.edn:2:43: write is answered with 2, and was invoked on line 1 with 1: want the same value, or nil`,
		events("0i:txn=5 0o:txn=6"):                    `h.edn:1:45: a transaction is 5: want a vector of [:read key value] and [:write key value]`,
		events("0i:txn={:r,1}"):                        `h.edn:1:45: a transaction is {:r 1}: want a vector of [:read key value] and [:write key value]`,
		events("0i:txn=[[:w,1,5]] 0o:txn=[[:w,2,6]]"):  `h.edn:2:41: a transaction is answered with [[:w 2 6]], and was invoked on line 1 with [[:w 1 5]]: want the same steps, or nil`,
		events("0i:txn=[] 0o:txn=5"):                   `h.edn:2:41: a transaction is 5: want a vector`,
		events("0i:add=4611686018427387904 1i:add=-1"): `h.edn:1:45: a counter that begins as 0 adds 4611686018427387904: want a sum of less than 2^62`,
		events("0i:txn=[[:x,1]]"):                      `h.edn:1:46: a transaction does [:x 1]: want [:read key value] or [:write key value]`,
		events("0i:read 0o:read=7 0i:add"):             `h.edn:3:45: a counter adds nil: want a whole number`,
	} {
		h, err := parseJepsen(text)
		if err != nil {
			t.Fatal(err)
		}
		h.Path = "h.edn"
		if _, err := FindModel("", h); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
}

// brute decides by trying all orders of a few operations. An operation without an answer may be left out.
func brute(s *sequential, ops []*Op, state any) bool {
	must := false
	for i, op := range ops {
		if op.Outcome == OK {
			must = true
		}
		first := true
		for _, other := range ops {
			first = first && other.Return > op.Call
		}
		if !first {
			continue
		}
		next, right := s.step(state, op)
		if right && brute(s, append(append([]*Op{}, ops[:i]...), ops[i+1:]...), next) {
			return true
		}
	}
	return !must
}

// TestAgainstBruteForce compares the search, with its shortcuts, with a trial of all orders.
func TestAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() (string, string, string){
		"register": func() (f, arg, result string) {
			switch rng.IntN(3) {
			case 0:
				return "read", "nil", []string{"nil", "0", "1", "2"}[rng.IntN(4)]
			case 1:
				v := fmt.Sprint(rng.IntN(3))
				return "write", v, v
			}
			v := fmt.Sprintf("[%d %d]", rng.IntN(3), rng.IntN(3))
			return "cas", v, v
		},
		"mutex": func() (f, arg, result string) { return []string{"acquire", "release"}[rng.IntN(2)], "nil", "nil" },
		"owner-mutex": func() (f, arg, result string) {
			return []string{"acquire", "release"}[rng.IntN(2)], "nil", "nil"
		},
		"counter": func() (f, arg, result string) {
			if rng.IntN(2) == 0 {
				return "read", "nil", fmt.Sprint(rng.IntN(4))
			}
			return "add", fmt.Sprint(1 + rng.IntN(2)), "nil"
		},
	} {
		count := map[string]int{}
		for range 3000 {
			h, err := parseJepsen(random(rng, draw))
			if err != nil {
				t.Fatal(err)
			}
			m, err := FindModel(name, h)
			if err != nil {
				t.Fatal(err)
			}
			_, groups := byKey(h)
			want := "holds"
			if !brute(m.linear, groups[""], m.begin) {
				want = "violated"
			}
			count[want]++
			if got := Judge(h, m, Limits{Time: time.Minute})[0]; got.Result.String() != want {
				t.Fatalf("%s: %v, want %s: %+v", name, got, want, h.Ops)
			}
		}
		if count["holds"] < 100 || count["violated"] < 100 {
			t.Errorf("%s: %v: too one-sided to tell anything", name, count)
		}
	}
}

// TestBeginning checks which initial values each model accepts.
func TestBeginning(t *testing.T) {
	for _, c := range []struct{ model, initial, want string }{
		{"register", "(1 0x10)", ""}, {"register", "nil", ""}, {"register", "[1", "[ is not closed"}, {"register", "1 2", "2 follows the value 1: want one value"},
		{"register", " ", "there is no value"}, {"counter", "007", ""}, {"counter", "abc", "want a whole number"}, {"counter", "1.5", "want a whole number"},
		{"counter", "9223372036854775807", "want a whole number of less than 2^62"}, {"multi-register", "0", ""},
		{"kv", "1", "leave out --initial"}, {"mutex", "true", "leave out --initial"}, {"set", "#{1}", "leave out --initial"}, {"ids", "1", "leave out --initial"},
	} {
		for _, m := range Models {
			if m.Name != c.model {
				continue
			}
			_, err := m.From(c.initial)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: %v, want %q", c.model, c.initial, err, c.want)
			}
		}
	}
	if _, vs := judged(t, events("0i:read 0o:read=[1] 1i:write=1 1o:write=1"), "register", " (01)"); vs[0].Result != checker.Holds {
		t.Errorf("%+v", vs)
	}
}

// TestSums checks that every sum that a counter can reach from its initial value must be below 2^62.
func TestSums(t *testing.T) {
	const most = "4611686018427387903"
	for _, c := range []struct{ history, initial, want string }{
		{"0i:add=" + most, "", ""},
		{"0i:add=" + most, "0", ""},
		{"0i:add=" + most, "1", "a counter that begins as 1 adds " + most + ": want a sum of less than 2^62"},
		{"0i:add=1", "-" + most, "a counter that begins as -" + most + " adds 1"},
		{"0i:add=-9223372036854775808", "", "a counter that begins as 0 adds -9223372036854775808"},
		{"0i:read 0o:read=0 0i:add=1 0f:add=1", most, ""},
		{"0i:add=1", "4611686018427387904", "want a whole number of less than 2^62"},
		{"0i:add=1", "-4611686018427387904", "want a whole number of less than 2^62"},
	} {
		h, err := parseJepsen(events(c.history))
		if err != nil {
			t.Fatal(err)
		}
		m, err := FindModel("counter", h)
		if err == nil {
			_, err = m.Begin(c.initial, h)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s from %s: %v, want %q", c.history, c.initial, err, c.want)
		}
	}
}

// random returns a history of three processes with at most seven operations.
func random(rng *rand.Rand, draw func() (f, arg, result string)) string {
	type open struct{ f, arg, result string }
	var b strings.Builder
	busy := map[int]open{}
	ids := []int{0, 1, 2}
	for range 2 + rng.IntN(12) {
		at := rng.IntN(3)
		p := ids[at]
		if o, is := busy[p]; is {
			kind, value := "ok", o.result
			switch rng.IntN(6) {
			case 0:
				kind, value = "fail", o.arg
			case 1:
				kind, value = "info", o.arg
				ids[at] += 3
			}
			fmt.Fprintf(&b, "{:process %d, :type :%s, :f :%s, :value %s}\n", p, kind, o.f, value)
			delete(busy, p)
			continue
		}
		f, arg, result := draw()
		busy[p] = open{f, arg, result}
		fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :%s, :value %s}\n", p, f, arg)
	}
	return b.String()
}

// TestTenThousand checks that a history of ten thousand operations can be judged.
func TestTenThousand(t *testing.T) {
	text := lawful(10_000, 10)
	start := time.Now()
	_, vs := judged(t, text, "", "0")
	t.Logf("%v", time.Since(start))
	if vs[0].Result != checker.Holds {
		t.Errorf("%+v", vs[0])
	}
	text = lawful(1_000, 10) // it takes longer to find that no order is legal
	broken := text[:len(text)/2] + strings.Replace(text[len(text)/2:], ":type :ok, :f :read, :value 3}", ":type :ok, :f :read, :value 99}", 1)
	if broken == text {
		t.Fatal("there is no read of 3")
	}
	if _, vs := judged(t, broken, "", "0"); vs[0].Result != checker.Violated || !strings.Contains(vs[0].Why, ":read 99") {
		t.Errorf("%+v", vs[0])
	}
}

// lawful returns a correct history of a register.
func lawful(n, processes int) string {
	rng := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	value := 0
	pending := map[int]func(){}
	for range 2 * n {
		p := rng.IntN(processes)
		if end, open := pending[p]; open {
			end()
			delete(pending, p)
			continue
		}
		if rng.IntN(2) == 0 {
			fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :read, :value nil}\n", p)
			pending[p] = func() { fmt.Fprintf(&b, "{:process %d, :type :ok, :f :read, :value %d}\n", p, value) }
			continue
		}
		v := rng.IntN(5)
		fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :write, :value %d}\n", p, v)
		pending[p] = func() { value = v; fmt.Fprintf(&b, "{:process %d, :type :ok, :f :write, :value %d}\n", p, v) }
	}
	return b.String()
}

// TestTimeLimit checks that a history that cannot be decided in time is unknown.
func TestTimeLimit(t *testing.T) {
	var b strings.Builder
	for p := range 40 {
		fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :add, :value %d}\n", p, (1+p*p*p)*(1-p%2*2))
	}
	for p := range 40 {
		fmt.Fprintf(&b, "{:process %d, :type :ok, :f :add, :value %d}\n", p, (1+p*p*p)*(1-p%2*2))
	}
	b.WriteString("{:process 0, :type :invoke, :f :read, :value nil}\n{:process 0, :type :ok, :f :read, :value 3}\n")
	h, err := parseJepsen(b.String())
	if err != nil {
		t.Fatal(err)
	}
	m, _ := FindModel("", h)
	v := Judge(h, m, Limits{Time: 20 * time.Millisecond})[0]
	if v.Result != checker.Unknown || !strings.Contains(v.Why, "--time-limit") {
		t.Errorf("%+v", v)
	}
}

// TestPublished judges the histories in the directory OVERSELL_PUBLISHED, in the forms of porcupine and knossos; they
// are not part of this repository. A file whose name contains bad must be violated, any other must hold. Without the
// directory the test judges two histories of its own.
func TestPublished(t *testing.T) {
	dir := os.Getenv("OVERSELL_PUBLISHED")
	if dir == "" {
		dir = t.TempDir()
		for name, short := range map[string]string{"good.edn": "0i:write=1 0o:write=1 1i:read 1o:read=1", "bad.edn": "0i:write=1 0o:write=1 1i:read 1o:read=2"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(events(short)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, path := range files {
		h, err := ReadJepsen(path)
		if err != nil {
			t.Error(err)
			continue
		}
		m, err := FindModel("", h)
		if err != nil {
			t.Error(err)
			continue
		}
		want := checker.Holds
		if strings.Contains(filepath.Base(path), "bad") {
			want = checker.Violated
		}
		if m.Name == "multi-register" {
			if m, err = m.From("0"); err != nil {
				t.Fatal(err)
			}
		}
		if v := Judge(h, m, Limits{Time: time.Minute})[0]; v.Result != want {
			t.Errorf("%s: %v, want %v: %s", path, v.Result, want, v.Why)
		}
	}
	t.Logf("%d histories", len(files))
}

// FuzzJepsen checks that no text makes reading or judging panic or hang.
func FuzzJepsen(f *testing.F) {
	for _, short := range []string{"0i:read 0o:read=1", "0i:cas=[1] 0n:cas=[1]", "0i:add=1 0o:add=1 1i:read 1o:read=#{1}", "0i:txn=[[:w,1,2]] 0o:txn=nil", "0i:drain 0o:drain=[1]",
		"0i:acquire=[a,nil] 0o:acquire=[a,{:fence,1}] 0i:release=[a,nil]", "0i:enqueue=1 0n:enqueue=1 1i:dequeue 1o:dequeue=1", "0i:get 0o:get=\"x\"", "0i:generate 0o:generate=1"} {
		f.Add(strings.ReplaceAll(events(short), ",", " "))
	}
	f.Add("INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:ok\t:read\t:timed-out\n")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseJepsen(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Fatalf("more than a line: %v", err)
			}
			return
		}
		for _, name := range append(Names(), "") {
			if m, err := FindModel(name, h); err == nil {
				Judge(h, m, Limits{Time: 10 * time.Millisecond})
			}
		}
	})
}
