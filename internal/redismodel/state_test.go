package redismodel

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/internal/rediscmd"
)

// after returns the state after some commands of connection 0, none of which may fail or be unknown.
func after(t *testing.T, s *State, cmds ...string) *State {
	t.Helper()
	for _, c := range cmds {
		next, reply, info := s.Do(start, 0, strings.Fields(c))
		if info.Unknown != "" || reply[0] == '-' {
			t.Fatalf("%s: %q, %+v", c, reply, info)
		}
		s = next
	}
	return s
}

// TestKeyIsCanonical checks that a state has the same key in whatever way it was reached, and that different states have
// different keys.
func TestKeyIsCanonical(t *testing.T) {
	same := [][]string{
		{"SET a 1|SET b 2", "SET b 2|SET a 1", "MSET a 3 b 2|SET a 1", "SET c 1|MSET a 1 b 2|DEL c", "SET c 1|COPY c a DB 0|SET b 2|DEL c"},
		{"SET a 1 PX 2000", "SET a 1|EXPIRE a 2", "SET a 2 EX 9|SET a 1 EX 2", "SETEX a 1 1|PEXPIRE a 2000"},
		{"SET a 1", "SET a 1 PX 100|PERSIST a", "SET a 1 PX 100|SET a 1", "INCR a"},
		{"HSET h x 1 y 2", "HSET h y 2|HSET h x 1", "HSET h x 1 z 3 y 2|HDEL h z"},
		{"ZADD z 1 a 2 b 2 c", "ZADD z 2 c 2 b 1 a", "ZADD z 5 c 2 b 1 a|ZADD z 2.0 c"},
		{"SADD s a b c", "SADD s c b a", "SADD s c b|SADD s a d|SREM s d"},
		{"", "SET a 1|DEL a", "SADD s a|SREM s a", "HSET h a 1|HDEL h a", "RPUSH l a|LPOP l", "ZADD z 1 a|ZREM z a", "SET a 1|PEXPIRE a 0", "WATCH a|UNWATCH"},
		{"WATCH a b", "WATCH b a", "WATCH a|WATCH b|WATCH a"},
		{"WATCH a|SET a 1", "SET a 1|WATCH a|SET a 1", "WATCH a b|SET a 1", "WATCH a|SET a 1|WATCH c"},
		{"RPUSH l a b", "LPUSH l b a", "RPUSH l b|LPUSH l a"},
		{"XADD x 5-1 f v|XDEL x 5-1", "XADD x 5-1 g long|XDEL x 5-1"},
		{"XADD x 5-1 f v", "XADD x 5-0 f v|DEL x|XADD x 5-1 f v"},
	}
	seen := map[string]string{}
	for _, ways := range same {
		keys := map[string]bool{}
		for _, way := range ways {
			keys[after(t, Empty(), commandsOf(way)...).Key()] = true
		}
		if len(keys) != 1 {
			t.Errorf("%q lead to %d different states", ways, len(keys))
		}
		for k := range keys {
			if other, ok := seen[k]; ok {
				t.Errorf("%q and %q are taken for the same state", other, ways[0])
			}
			seen[k] = ways[0]
		}
	}
}

func commandsOf(way string) []string {
	return slices.DeleteFunc(strings.Split(way, "|"), func(s string) bool { return s == "" })
}

// TestTimeIsRelative checks that the same situation at another time is the same state.
func TestTimeIsRelative(t *testing.T) {
	a := after(t, Empty(), "SET a 1 PX 1500")
	b := after(t, Empty(), "SET a 1 PX 2000").Tick(500 * time.Millisecond)
	if a.Key() != b.Key() || a.Key() == b.Tick(time.Millisecond).Key() {
		t.Errorf("keys %q and %q", a.Key(), b.Key())
	}
	if left, ok := a.NextExpiry(); !ok || left != 1500*time.Millisecond {
		t.Errorf("the next expiry is in %v, %v", left, ok)
	}
	if _, _, exists := a.Tick(1499 * time.Millisecond).Value("a"); !exists {
		t.Error("the key is gone too early")
	}
	if gone := a.Tick(1500 * time.Millisecond); gone.Key() != Empty().Key() {
		t.Errorf("at its expiry the key is still there: %s", gone.Text(nil))
	}
	if _, ok := Empty().NextExpiry(); ok {
		t.Error("nothing expires in an empty server")
	}
}

// randomSteps returns how many commands a test executes that needs only the model.
func randomSteps() int {
	if raceDetector {
		return 1_500
	}
	return 10_000
}

// TestNothingChangesAState checks that neither commands nor other calls change an existing state.
func TestNothingChangesAState(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(7, 7)), now: start}
	empty := Empty()
	s := empty
	for range randomSteps() {
		key := s.Key()
		cmd := g.command()
		next, reply, info := s.Do(g.now, g.IntN(3), cmd)
		if s.Key() != key {
			t.Fatalf("%q changed the state before it", cmd)
		}
		if !info.Touched && info.Unknown == "" && next.Key() != key {
			t.Fatalf("%q changed the state without saying so", cmd)
		}
		again, reply2, info2 := s.Do(g.now, 0, cmd)
		third, reply3, info3 := s.Do(g.now, 0, cmd)
		if again.Key() != third.Key() || string(reply2) != string(reply3) || !reflect.DeepEqual(info2, info3) {
			t.Fatalf("%q has two outcomes", cmd)
		}
		if info.Unknown == "" && string(reply) != string(reply2) {
			t.Fatalf("%q is answered differently on another connection: %q, %q", cmd, reply, reply2)
		}
		s.Tick(time.Second)
		s.Map(strings.ToUpper, func(c int) int { return c })
		if s.Key() != key {
			t.Fatal("passing time or renaming changed a state")
		}
		if s = next; g.IntN(300) == 0 {
			s = empty
		}
	}
}

// TestClockIsSaid checks that a command whose outcome depends on the time says that it read the clock.
func TestClockIsSaid(t *testing.T) {
	scripts := loadShipped(t)
	g := &generator{Rand: rand.New(rand.NewPCG(8, 8)), now: start}
	empty := Empty()
	for _, script := range scripts {
		empty.Load(script.text)
	}
	s := empty
	for i := range randomSteps() {
		cmd := g.command()
		if i%3 == 0 {
			g.state = s
			cmd = g.shipped(scripts)
		}
		next, reply, info := s.Do(g.now, 0, cmd)
		later, reply2, info2 := s.Do(g.now+1234*time.Millisecond, 0, cmd)
		if differ := next.Key() != later.Key() || string(reply) != string(reply2); differ && !info.Clock && !info2.Clock {
			t.Fatalf("%q depends on the time and does not say so: %q, %q", cmd, reply, reply2)
		}
		if s = next; g.IntN(300) == 0 {
			s = empty
		}
	}
}

// exchange is a renaming that exchanges some words for each other: the consumers as whole texts, as a script that writes
// the length of a text behind a c makes something like their names, and the others wherever they occur.
func exchange(text string) string {
	switch text {
	case "c1":
		return "c2"
	case "c2":
		return "c1"
	}
	return exchangedWords.Replace(text)
}

var exchangedWords = strings.NewReplacer("token", "tokem", "tokem", "token", "s1", "s2", "s2", "s1", "h1", "h3", "h3", "h1")

// TestMapCommutes checks that renaming a state and executing a renamed command leads to the same state as executing the
// command and renaming afterwards, and that exchanging words twice changes nothing.
func TestMapCommutes(t *testing.T) {
	conns := func(c int) int { return []int{1, 0, 2}[c] }
	scripts := loadShipped(t)
	g := &generator{Rand: rand.New(rand.NewPCG(9, 9)), now: start}
	empty := Empty()
	for _, script := range scripts {
		empty.Load(script.text)
	}
	s := empty
	for i := range randomSteps() {
		cmd, conn := g.command(), g.IntN(3)
		if i%3 == 0 {
			g.state = s
			cmd = g.shipped(scripts)
		}
		if strings.HasPrefix(cmd[0], "EVAL") && len(cmd) > 1 && strings.Contains(cmd[1], "local a, b") {
			continue // names in the text of a script cannot be exchanged
		}
		if slices.Contains([]string{"SETBIT", "SETRANGE", "BITFIELD", "BITOP"}, strings.ToUpper(cmd[0])) {
			continue // it may change a part of a name
		}
		mapped := make([]string, len(cmd))
		for j, w := range cmd {
			mapped[j] = exchange(w)
		}
		if strings.HasPrefix(cmd[0], "EVAL") && len(cmd) > 1 {
			mapped[1] = cmd[1]
		}
		next, _, _ := s.Do(g.now, conn, cmd)
		other, _, _ := s.Map(exchange, conns).Do(g.now, conns(conn), mapped)
		if next.Map(exchange, conns).Key() != other.Key() {
			t.Fatalf("%q: %s\nrenamed: %s", cmd, next.Map(exchange, conns).Text(nil), other.Text(nil))
		}
		if next.Map(exchange, conns).Map(exchange, conns).Key() != next.Key() {
			t.Fatal("renaming twice is not the same as doing nothing")
		}
		if s = next; g.IntN(300) == 0 {
			s = empty
		}
	}
}

// TestUnknownIsNamed checks that the model names what it does not know, and that nothing changes then.
func TestUnknownIsNamed(t *testing.T) {
	long := strings.Repeat("v", 2000)
	s := after(t, Empty(), "SET a 1", "SADD s b c", "ZADD z 1 a 2 b", "ZADD u 1e17 a", "ZADD v 9 a", "ZADD w 9 a", "XADD x 5-1 f v", "XGROUP CREATE x g 0", "XADD big 5-1 f "+long, "XADD big 5-2 f "+long)
	for cmd, want := range map[string]string{
		"SETRANGE a 5000 x":                            "SETRANGE",
		"OBJECT ENCODING a":                            "OBJECT",
		"SCRIPT KILL":                                  "SCRIPT KILL",
		"SCRIPT FLUSH ASYNC":                           "SCRIPT FLUSH",
		"XADD x MAXLEN ~ 5 LIMIT 2 * f v":              "MAXLEN",
		"XADD x MAXLEN 5 LIMIT 2 * f v":                "MAXLEN",
		"XADD x MINID 5 * f v":                         "MINID",
		"XTRIM x MINID 5":                              "MINID",
		"XTRIM big MAXLEN ~ 1":                         "MAXLEN ~ of a stream that may have several nodes",
		"SETBIT a 100000 1":                            "a string of bits",
		"BITFIELD a SET u8 100000 1":                   "a string of bits",
		"INCRBYFLOAT a 1e3":                            "the number 1e3",
		"SPOP s":                                       "SPOP of several members",
		"SPOP s 2":                                     "SPOP with a count",
		"SRANDMEMBER s":                                "SRANDMEMBER of several members",
		"EVAL return(redis.call('SINTER','s','s')) 0":  "the order of a hash or a set",
		"XREADGROUP GROUP g c BLOCK 0 STREAMS x >":     "BLOCK",
		"XREAD BLOCK 0 STREAMS x 0":                    "BLOCK",
		"ZRANGE z [a [b BYLEX":                         "a range by name of members with different scores",
		"ZMPOP 9223372036854775807 z MIN":              "so many keys of ZMPOP",
		"LPOS l a RANK -9223372036854775808":           "LPOS with this RANK",
		"ZUNION 3 u v w":                               "the order in which the server adds scores",
		"HEXPIRE h 5 FIELDS 1 f":                       "the command HEXPIRE",
		"JSON.GET a":                                   "the command JSON.GET",
		"POST / HTTP/1.1":                              "the command POST",
		"XGROUP NOSUCH x":                              "the command XGROUP NOSUCH",
		"MULTI":                                        "MULTI",
		"EXEC":                                         "EXEC",
		"SET a 1 EX 9000000000000":                     "an expiry",
		"EVAL return(struct.pack('b',1)) 0":            "the Lua function struct",
		"EVAL return(coroutine.wrap) 0":                "the Lua function coroutine",
		"EVAL return(cjson.new) 0":                     "the Lua function cjson.new",
		"EVAL return(getmetatable('')) 0":              "the metatable of a string",
		"EVAL return(setmetatable({},{__mode='k'})) 0": "a weak Lua table",
		"EVAL xpcall(error,error) 0":                   "an error in the function that xpcall calls",
		"EVAL error(setmetatable({},{})) 0":            "a Lua error with a metatable",
		"EVAL string.gsub('a','a',error) 0":            "the place of a Lua error",
		"EVAL return(string.dump(1)) 0":                "the Lua function string.dump",
		"EVAL return(math.random()) 0":                 "the Lua function math.random",
		"EVAL return(redis.setresp(3)) 0":              "the Lua function redis.setresp with the protocol 3",
		"EVAL return(redis.call('GEOADD','a')) 0":      "the command GEOADD",
		"EVAL return(pcall(redis.call,'GEOADD')) 0":    "the command GEOADD",
		"EVAL return{redis.pcall('GEOADD')} 0":         "the command GEOADD",
		"EVAL return{pcall(function()local\tt;return\tt.x\tend)} 0":            "the text of a Lua error",
		"EVAL return{pcall(string.rep)} 0":                                     "the text of a Lua error",
		"EVAL return{pcall(cjson.decode,'')} 0":                                "the text of a Lua error",
		"EVAL return{pcall(function()return\t1+{}\tend)} 0":                    "the text of a Lua error",
		"EVAL table.sort({1,'x'}) 0":                                           "values without an order",
		"EVAL return{pcall(nil)} 0":                                            "the text of a Lua error",
		"XAUTOCLAIM x g c 0 0 COUNT 2000000":                                   "a COUNT for which the server may lack memory",
		"EVAL for(k)do 0":                                                      "does not compile",
		"EVAL redis.call('SET','a',2)for(k,v)in(pairs({x=1,y=2}))do(f)()end 0": "does not compile",
		"EVAL redis.call('SET','a',2)next({[{}]=1,[{}]=2}) 0":                  "order of the fields",
		"EVAL redis.call('SET','a',2);return(tostring({})) 0":                  "the string form of a table",
		"EVAL while(true)do(type)(1)end 0":                                     "does not end",
		"EVAL repeat(pcall)(type,1)until(false) 0":                             "does not end",
		"EVAL local(f)=1 0":                                                    "does not compile",
		"EVAL local\tt={};t.f=function(x)return\t1+t.f(x)end;t.f(1) 0":         "overflow",
		"EVAL return(0/0) 0":                                                   "a script's reply",
		"EVAL local\ta=0*-1;return(tostring(1/0)) 0":                           "the constant -0",
		"EVAL return(1/-0) 0":                                                  "the constant -0",
	} {
		next, reply, info := s.Do(start, 0, strings.Split(cmd, " "))
		if !strings.Contains(info.Unknown, want) || next != s || reply != nil {
			t.Errorf("%s: %+v, %q; want it unknown because of %q", cmd, info, reply, want)
		}
	}
	cmds := [][]string{{"SET", "a", "2"}, {"GEOADD", "l"}}
	if next, reply, info := s.Transaction(start, 0, cmds); next != s || reply != nil || !strings.Contains(info.Unknown, "GEOADD") {
		t.Errorf("in a transaction: %q, %+v", reply, info)
	}
}

// TestTextsHaveNoFields checks that a field of a text, such as the err that a script looks for in a reply, is nil.
func TestTextsHaveNoFields(t *testing.T) {
	_, reply, info := Empty().Do(start, 0, []string{"EVAL", "return tostring(ARGV[1].err)", "0", "text"})
	if string(reply) != "$3\r\nnil\r\n" || info.Unknown != "" {
		t.Errorf("%q, unknown: %q; want nil", reply, info.Unknown)
	}
}

// TestUnknownTeachesNothing checks that a script that met something unknown does not count as loaded.
func TestUnknownTeachesNothing(t *testing.T) {
	s, text := Empty(), "return math.random()"
	if _, _, info := s.Do(start, 0, []string{"EVAL", text, "0"}); info.Unknown == "" {
		t.Fatal("random numbers are known")
	}
	if _, reply, _ := s.Do(start, 0, []string{"EVALSHA", rediscmd.SHA1(text), "0"}); !strings.HasPrefix(string(reply), "-NOSCRIPT") {
		t.Errorf("EVALSHA replies %q", reply)
	}
	s.Load("return 1")
	if _, reply, _ := s.Do(start, 0, []string{"EVALSHA", rediscmd.SHA1("return 1"), "0"}); string(reply) != ":1\r\n" {
		t.Errorf("after Load, EVALSHA replies %q", reply)
	}
}

// TestText checks the text of a state.
func TestText(t *testing.T) {
	s := after(t, Empty(), "SET Lock:order token PX 1000", "ZADD Queue:x 1.5 a", "RPUSH l a b", "SADD s b a", "HSET h f v", "SET e \xff")
	s = after(t, s, "XADD x 5-1 id 7", "XGROUP CREATE x g 0", "XREADGROUP GROUP g c STREAMS x >").Tick(400 * time.Millisecond)
	want := `Lock:order=token (600 ms) Queue:x={a:1.5} e="\xff" h={f:v} l=[a b] s={a b} x=[5-1:{id:7}] g:{5-1->c/1 since 400 ms}`
	if got := s.Text(nil); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got := s.Text(func(key string) bool { return key == "h" }); got != "h={f:v}" {
		t.Errorf("of h alone: %s", got)
	}
	if v, left, ok := s.Value("Lock:order"); v != "token" || left != 600*time.Millisecond || !ok {
		t.Errorf("the lock is %s, %v, %v", v, left, ok)
	}
	if v, left, ok := s.Value("h"); v != "{f:v}" || left >= 0 || !ok {
		t.Errorf("h is %s, %v, %v", v, left, ok)
	}
}

// TestGoroutinesShareAState checks that several goroutines may use the same state.
func TestGoroutinesShareAState(t *testing.T) {
	s := after(t, Empty(), "SET a 1")
	done := make(chan string)
	for range 4 {
		go func() {
			m := s
			for range 200 {
				m, _, _ = m.Do(start, 0, []string{"EVAL", "return redis.call('INCR', KEYS[1])", "1", "a"})
			}
			done <- m.Text(nil)
		}()
	}
	for range 4 {
		if text := <-done; text != "a=201" {
			t.Errorf("a goroutine got %s", text)
		}
	}
}
