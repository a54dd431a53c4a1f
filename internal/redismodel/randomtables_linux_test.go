package redismodel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

// tableWriter writes random Lua programs that build tables, change them, and list them. The tables are a, b and c.
type tableWriter struct {
	*rand.Rand
	out strings.Builder
	// any allows keys that JSON does not have, such as true and 1/0.
	any bool
}

func (w *tableWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

func (w *tableWriter) table() string { return w.pick("a", "a", "a", "b", "c") }

// name returns a text that is a key, without quotation marks. Some have the same hash in small tables.
func (w *tableWriter) name() string {
	switch w.IntN(12) {
	case 0:
		return strings.Repeat(w.pick("token-", "id"), 5+w.IntN(20)) + w.pick("1", "2")
	case 1:
		return w.pick("", "1", "2", "é", "with space", "err_", "\\0", "true")
	case 2, 3:
		return fmt.Sprintf("k%d", w.IntN(40))
	}
	return w.pick("a", "b", "c", "d", "e", "f", "x", "y", "owner", "count", "id", "price", "user", "ttl", "status", "stock")
}

func (w *tableWriter) number() string {
	switch w.IntN(8) {
	case 0:
		return w.pick("0", "-1", "-7", "0.5", "2.5", "-0.25", "1e15", "2147483647", "2147483648", "4294967296", "9007199254740991", "1e300", map[bool]string{true: "1/0", false: "7e-3"}[w.any], "3.0", "0.1", "123456.789")
	case 1:
		return fmt.Sprint(w.IntN(200))
	}
	return fmt.Sprint(1 + w.IntN(9))
}

// key returns an expression that is a key.
func (w *tableWriter) key() string {
	switch w.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		return "'" + w.name() + "'"
	case 6:
		if !w.any {
			break
		}
		return w.pick("true", "false", "1 == 1", "not i")
	case 7:
		return w.pick("'k' .. i", "i", "i + 1", "ARGV[1]", "KEYS[1]", "#ARGV", "ARGV[2]", "tostring(i)", "a[1] or 'z'", "#a", "#b + 1", "two()", "-i")
	case 8:
		if w.any && w.IntN(20) == 0 {
			return w.pick("nil", "{}", "two", "0/0", "none()")
		}
	}
	return w.number()
}

// value returns an expression that is a value.
func (w *tableWriter) value(depth int) string {
	switch w.IntN(12) {
	case 0, 1:
		return "nil"
	case 2:
		return w.pick("two()", "none()", "...", "unpack({7, 8, nil, 9}, 1, 4)", "(two())", "(...)", "i", "ARGV[1]", "ARGV[9]", "true and two()", "nil or nil", "i and nil")
	case 3:
		return w.pick("true", "false", "'text'", "1.5", "'' .. i")
	case 4, 5:
		if depth > 0 {
			return w.constructor(depth - 1)
		}
	}
	return fmt.Sprint(w.IntN(100))
}

var identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// constructor returns a constructor with up to 12 fields, now and then with more.
func (w *tableWriter) constructor(depth int) string {
	n := w.IntN(6)
	switch w.IntN(12) {
	case 0:
		n = w.IntN(13)
	case 1:
		if depth > 0 {
			n = 15 + w.IntN(110)
		}
	}
	list := w.IntN(4) // how many of four fields belong to the list
	var fields []string
	for range n {
		name := w.name()
		switch {
		case w.IntN(4) < list:
			fields = append(fields, w.value(depth))
		case w.IntN(2) == 0 && identifier.MatchString(name) && name != "true":
			fields = append(fields, name+" = "+w.value(depth))
		default:
			fields = append(fields, "["+w.key()+"] = "+w.value(depth))
		}
	}
	return "{" + strings.Join(fields, ", ") + w.pick("", "", "", map[bool]string{true: ",", false: ""}[n > 0]) + "}"
}

// json returns a text in JSON.
func (w *tableWriter) json(depth int) string {
	kind := w.IntN(9)
	switch depth {
	case 0:
		kind = 8
	case 3:
		kind %= 5
	}
	var parts []string
	switch kind {
	case 0:
		for range w.IntN(12) {
			parts = append(parts, w.json(depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case 1, 2, 3, 4:
		for range w.IntN(9) {
			parts = append(parts, `"`+strings.ReplaceAll(w.name(), "\\0", "0")+`":`+w.json(depth-1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return w.pick("1", "2.5", "true", "false", `"x"`, "-3")
}

// made returns an expression that is a new table.
func (w *tableWriter) made() string {
	switch w.IntN(10) {
	case 0, 1:
		return "cjson.decode('" + w.json(3) + "')"
	case 2:
		return w.pick("redis.call('LRANGE', 'list', 0, -1)", "redis.call('MGET', 'no', 'none', 'not')", "redis.call('HMGET', KEYS[1], 'f', 'no', 'g')", "redis.pcall('GET', KEYS[1])",
			"redis.pcall('GET')", "redis.pcall('SET', 'x')", "redis.status_reply('FINE')", "redis.error_reply('BAD thing')", "redis.call('SET', 'other', 1)", "KEYS", "ARGV", "redis.call('TIME')", "{redis.call('TIME')[3]}", "redis.pcall()", "cjson.decode(cjson.encode({x = 1, y = {2, 3}, z = 'z'}))")
	case 3:
		return w.pick("{}", "{}", "{...}", "{two(), two()}", "{none()}", "{n = 1, ...}", "{..., n = 1}", "{unpack(ARGV)}")
	}
	return w.constructor(2)
}

// change writes a statement that changes a table.
func (w *tableWriter) change() string {
	t := w.table()
	switch w.IntN(16) {
	case 0:
		return fmt.Sprintf("%s = %s", t, w.made())
	case 1:
		return fmt.Sprintf("for i = 1, %d do %s[%s] = %s end", w.IntN(40), t, w.pick("i", "i", "'k' .. i", "i * 2", "-i", "41 - i", "i % 7", "i / 2", "i % 2 == 0"), w.pick("i", "i", "true", "i % 3 ~= 0 and i or nil", "nil"))
	case 2:
		return fmt.Sprintf("for i = %d, 1, -1 do %s[%s] = %s end", w.IntN(20), t, w.pick("i", "'k' .. i"), w.pick("i", "nil"))
	case 3:
		return fmt.Sprintf("%s[#%[1]s + 1] = %s", t, w.value(1))
	case 4:
		return fmt.Sprintf("table.insert(%s, %s)", t, w.pick("1", "'v'", "1, 'first'", "#"+t+" + 1, 'last'", "nil", "i"))
	case 5:
		return "table.remove(" + t + w.pick("", "", ", 1", ", 2", ", #"+t) + ")"
	case 6:
		return fmt.Sprintf("for k, v in pairs(%s) do if %s then %[1]s[k] = %s end end", t, w.pick("type(k) == 'string'", "type(k) == 'number'", "v == 1", "true", "type(v) == 'number' and v > 20"), w.pick("nil", "nil", "1", "false"))
	case 7:
		return "for i = 1, 30 do local text = ('x'):rep(20000) .. i end" // collects garbage
	case 8:
		return fmt.Sprintf("local n%d = 0 for k in pairs(%s) do n%[1]d = n%[1]d + 1 if n%[1]d > 5 then break end %[2]s['k' .. n%[1]d] = %[3]s end", w.IntN(9), t, w.pick("1", "nil"))
	case 9, 10, 11:
		return fmt.Sprintf("%s[%s] = nil", t, w.key())
	}
	return fmt.Sprintf("%s[%s] = %s", t, w.key(), w.value(1))
}

// list writes a statement that lists a table.
func (w *tableWriter) list() string {
	t := w.table()
	return "say(" + w.pick("show("+t+")", "show("+t+")", "show("+t+")", "#"+t, "table.getn("+t+")", "select('#', unpack("+t+"))", "(next("+t+"))", "(next("+t+", (next("+t+"))))", "next("+t+", "+w.pick("nil", "nil", "nil", w.key())+") == nil") + ")"
}

const tablesHead = `local out, i = {}, 3
local function say(x) out[#out + 1] = tostring(x) end
local function show(t)
  local s = '{'
  for k, v in pairs(t) do s = s .. type(k) .. ' ' .. tostring(k) .. '=' .. (type(v) == 'table' and show(v) or tostring(v)) .. '; ' end
  return s .. '} ' .. #t
end
local function two() return 'p', 'q' end
local function none() end
local a, b, c = {}, {}, {}
local function run(...)
`

func (w *tableWriter) program() string {
	w.out.WriteString(tablesHead)
	fmt.Fprintf(&w.out, "a = %s\nb = %s\n", w.made(), w.made())
	for range w.IntN(12) {
		w.out.WriteString(w.change() + "\n")
		if w.IntN(4) == 0 {
			w.out.WriteString(w.list() + "\n")
		}
	}
	w.out.WriteString("say(show(a)) say(show(b)) say(#a) say(#c)\nend\nrun('v', nil, 3)\n")
	if !w.any {
		w.out.WriteString(w.pick("say(cjson.encode(a))\n", "say(cjson.encode(b))\n", "say(cjson.encode({a, b, c, x = a, y = c}))\n", "say(table.concat(a, ','))\n"))
	}
	w.out.WriteString("return out")
	return w.out.String()
}

// TestRandomTables checks that the entries of tables are in the order of a real server.
func TestRandomTables(t *testing.T) {
	server := startServer(t).conns[0]
	state := Empty()
	for _, cmd := range [][]string{{"HSET", "h1", "f", "1", "g", "2"}, {"RPUSH", "list", "one", "two", "3"}} {
		server.ask(cmd...)
		state, _, _ = state.Do(start, 0, cmd)
	}
	programs, known, errors := 900, 0, 0
	if os.Getenv("OVERSELL_LONG") != "" {
		programs *= 50
	}
	unknown := map[string]int{}
	for seed := range programs {
		w := &tableWriter{Rand: rand.New(rand.NewPCG(11, uint64(seed))), any: seed%2 == 0}
		s := step{cmds: [][]string{{"EVAL", w.program(), "1", "h1", "arg", "5", "third"}}}
		_, reply, info := s.do(state, start)
		if info.Unknown != "" {
			unknown[info.Unknown]++
			continue
		}
		if known++; reply[0] == '-' {
			errors++
		}
		if real := server.ask(s.cmds[0]...); string(real) != string(reply) && !sameReply(s, reply, real) {
			t.Fatalf("seed %d: %s:\nthe model replies %q\nRedis replies     %q", seed, s.cmds[0][1], reply, real)
		}
	}
	if known-errors < programs*3/4 {
		t.Errorf("the model knew %d of %d programs, of which %d fail; others: %v", known, programs, errors, unknown)
	}
	t.Logf("%d of %d programs were known, of which %d fail; others: %v", known, programs, errors, unknown)
}

// TestRemovedTexts removes a key from a table and assigns to it again. In between, the garbage collector may forget where it
// was, and in Redis it does here.
func TestRemovedTexts(t *testing.T) {
	c := startServer(t).conns[0]
	known := 0
	for first := range 3 {
		for removed := range 8 {
			script := fmt.Sprintf("local t, o = {}, {} for i = %d, %d do t['k' .. i] = 1 end local key = 'k%d' t[key] = nil", first*8, first*8+7, first*8+removed) +
				" for i = 1, 300 do local s = ('x'):rep(20000) .. i end t[key] = 2 for k in pairs(t) do o[#o + 1] = k end return o"
			if agree(t, c, script) {
				known++
			}
		}
	}
	if known == 0 || known == 24 {
		t.Errorf("the model knew %d orders of 24", known)
	}
}
