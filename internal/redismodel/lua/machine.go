package lua

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Redis is the server that runs a script: it executes the script's commands, and takes its reply
// part by part.
type Redis interface {
	// Call executes a command and returns its reply, which is valid until the next call.
	Call(args []string) (reply []byte)
	// Unknown reports something that the model does not know: then the script ends without an effect. Stopped returns
	// the first report, or "".
	Unknown(what string)
	Stopped() string
	// Hashed reports a key of a Lua table whose hash, with those of others, determined an order
	// that the script saw.
	Hashed(key string)

	// The parts of a reply.
	Simple(text string)
	Err(text string)
	Int(n int64)
	Bulk(text string)
	Array(n int)
	Null()
}

// Program is a compiled script.
type Program struct {
	proto   *lua.FunctionProto
	layouts bool // it may ask for the order of a table
}

// Machine is a Lua interpreter with the libraries of Redis. It runs one script at a time. Scripts
// cannot change its globals, so it can be used again.
type Machine struct {
	l       *lua.LState
	globals *lua.LTable // what scripts see as global variables, read-only to them
	x       Redis       // the server of the running script
	sha     string      // SHA-1 of the running script
	calls   int
	// raised is the last error that a function of ours threw, and line where. own: its text is ours, and Redis may word it
	// differently.
	raised lua.LValue
	line   string
	own    bool
	// layouts are those of the tables of the running script, nil if it does not need them.
	layouts map[*lua.LTable]*layout
	spare   map[*lua.LTable]*layout // for the next script
	tracked *lua.LTable             // the metatable of tables with a layout
	onEvent map[string]*lua.LFunction
	parts   map[lua.LValue]bool         // functions that implement the language, not a library
	seen    map[*lua.LTable]*lua.LTable // from a script's metatable to the one that gopher-lua uses
	fronts  map[*lua.LTable]*lua.LTable // from a read-only table to the one behind it
	null    *lua.LUserData              // cjson.null
	// libraryNames are those of the tables in front of libraries.
	libraryNames map[*lua.LTable]string
	given        [2]given     // the keys and the arguments
	pending      []lua.LValue // room for the next constructor's
}

// maxCalls bounds a script's calls of Redis and loop iterations, in case it does not end.
const maxCalls = 20_000

func (m *Machine) count() {
	if m.calls++; m.calls > maxCalls {
		m.unknown("a script that does not end")
	}
}

// ownLimit reports an error as unknown if it is about a limit of gopher-lua: Redis has other
// limits.
func (m *Machine) ownLimit(thrown *lua.ApiError) {
	if text, ok := thrown.Object.(lua.LString); ok && strings.HasSuffix(string(text), "overflow") {
		m.x.Unknown("a Lua script that needs a large stack")
	}
}

// New returns a machine that has run no script.
func New() *Machine {
	m := &Machine{l: lua.NewState(lua.Options{
		SkipOpenLibs: true, RegistrySize: 1024, RegistryMaxSize: 1 << 20, CallStackSize: 200, MinimizeStackMemory: true,
	})}
	m.tracked = m.l.NewTable()
	m.tracked.RawSetString("__newindex", m.l.NewFunction(m.newIndex))
	m.onEvent, m.seen, m.fronts = map[string]*lua.LFunction{}, map[*lua.LTable]*lua.LTable{}, map[*lua.LTable]*lua.LTable{}
	m.parts = map[lua.LValue]bool{}
	for name, f := range m.events() {
		m.onEvent[name] = m.part(f)
	}
	m.libraryNames = map[*lua.LTable]string{}
	m.null = m.l.NewUserData()
	m.globals = m.l.NewTable()
	for _, functions := range []map[string]lua.LGFunction{m.base(), m.metaLibrary()} {
		for name, f := range functions {
			m.globals.RawSetString(name, m.l.NewFunction(f))
		}
	}
	m.globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	m.globals.RawSetString("_G", m.l.G.Global)
	for name, lib := range m.libraries() {
		t := m.l.NewTable()
		for f, fn := range lib {
			t.RawSetString(f, m.l.NewFunction(fn))
		}
		for constant, v := range m.constants()[name] {
			t.RawSetString(constant, v)
		}
		t.Metatable = m.behind(func(l *lua.LState) int {
			m.noField(name, l.Get(2))
			l.Push(lua.LNil) // such as the field err of a text
			return 1
		})
		front := m.front(t)
		m.libraryNames[front] = name
		m.globals.RawSetString(name, front)
		if name == "string" {
			mt := m.l.NewTable()
			mt.RawSetString("__index", t)
			m.l.SetMetatable(lua.LString(""), mt)
		}
	}
	m.globals.Metatable = m.behind(m.missingGlobal)
	m.l.G.Global.Metatable = m.front(m.globals).Metatable
	m.fronts[m.l.G.Global] = m.globals
	for name, f := range m.operators() {
		m.l.G.Global.RawSetString(hidden+name, m.part(f))
	}
	return m
}

// part returns a function that carries out an operation of the language, such as indexing. It does not show in the stack of the
// script.
func (m *Machine) part(f lua.LGFunction) *lua.LFunction {
	fn := m.l.NewFunction(f)
	m.parts[fn] = true
	return fn
}

// behind returns a metatable that calls missing for a name that its table does not have.
func (m *Machine) behind(missing lua.LGFunction) *lua.LTable {
	mt := m.l.NewTable()
	mt.RawSetString("__index", m.l.NewFunction(missing))
	return mt
}

// front returns an empty table that gives read-only access to another one.
func (m *Machine) front(t *lua.LTable) *lua.LTable {
	mt, front := m.l.NewTable(), m.l.NewTable()
	mt.RawSetString("__index", t)
	mt.RawSetString("__newindex", m.l.NewFunction(func(*lua.LState) int {
		return m.fail(readOnly)
	}))
	front.Metatable = mt
	m.fronts[front] = t
	return front
}

// unknownFunctions are the library functions of Redis that the model does not implement.
var unknownFunctions = map[string]string{
	"string": " dump gfind ",
	"table":  " foreach foreachi maxn setn ",
	"math":   " acos asin atan atan2 cos cosh deg exp frexp ldexp log log10 mod pow rad random randomseed sin sinh tan tanh ",
	"cjson": " _NAME _VERSION decode_invalid_numbers decode_max_depth encode_invalid_numbers encode_keep_buffer encode_max_depth" +
		" encode_number_precision encode_sparse_array new ",
	"redis": " acl_check_cmd debug ",
}

// unknownGlobals are the global variables of Redis that the model does not implement.
const unknownGlobals = " struct cmsgpack coroutine load loadstring collectgarbage gcinfo __redis__err__handler "

// unknownGlobal reports whether Redis has a global variable that the model does not have.
func unknownGlobal(name lua.LValue) bool {
	text, ok := name.(lua.LString)
	return ok && strings.Contains(unknownGlobals, " "+string(text)+" ")
}

func (m *Machine) missingGlobal(l *lua.LState) int { return m.noGlobal(l.Get(2)) }

// noGlobal throws an error about a global variable that does not exist.
func (m *Machine) noGlobal(name lua.LValue) int {
	if unknownGlobal(name) {
		return m.missing("", name)
	}
	switch name.(type) {
	case lua.LString, lua.LNumber:
	default:
		return m.fail("Second argument to luaProtectedTableError must be a string or number")
	}
	return m.fail("Script attempted to access nonexistent global variable '" + m.tostring(name) + "'")
}

// noField stops the script as unknown if Redis has this field of a library and the model does not.
func (m *Machine) noField(library string, name lua.LValue) {
	if field, ok := name.(lua.LString); ok && strings.Contains(unknownFunctions[library], " "+string(field)+" ") {
		m.missing(library+".", name)
	}
}

func (m *Machine) missing(library string, name lua.LValue) int {
	return m.unknown("the Lua function " + library + name.String())
}

// unknown ends the script, because it needs something that the model does not know.
func (m *Machine) unknown(what string) int {
	m.x.Unknown(what)
	m.l.Error(lua.LString("unknown"), 0)
	return 0
}

// where returns the line of the Lua code that called the running function.
func (m *Machine) where() string {
	level := 1
	for ; ; level++ {
		frame, ok := m.l.GetStack(level)
		if !ok {
			return ""
		}
		if f, err := m.l.GetInfo("f", frame, nil); err != nil || !m.parts[f] {
			break
		}
	}
	parts := strings.SplitN(m.l.Where(level), ":", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// throw throws a value that Redis throws, too.
func (m *Machine) throw(v lua.LValue) int { return m.raise(v, false) }

// fail throws an error of a library function, after its position. If the script catches it, the
// script ends as unknown, since Redis may word the message differently.
func (m *Machine) fail(text string) int { return m.raise(m.positioned(text), true) }

// failWith throws an error whose message the script gave, after its position. The script may catch
// it.
func (m *Machine) failWith(text string) int { return m.raise(m.positioned(text), false) }

func (m *Machine) raise(v lua.LValue, own bool) int {
	m.raised, m.line, m.own = v, m.where(), own
	m.l.Error(v, 0)
	return 0
}

// positioned puts the position of the Lua code that called the running function before a text. If pcall has called it,
// there is none.
func (m *Machine) positioned(text string) lua.LValue {
	line := strings.TrimSpace(m.where())
	if line == "" {
		return lua.LString(text)
	}
	return lua.LString(chunk + ":" + line + ": " + text)
}

// Run runs a program, whose text has this SHA-1, and replies its result or error.
func (m *Machine) Run(x Redis, p *Program, sha string, keys, argv []string) {
	m.x, m.sha, m.calls, m.raised, m.line = x, sha, 0, nil, ""
	m.begin(p, keys, argv)
	m.l.Push(m.l.NewFunctionFromProto(p.proto))
	err := m.l.PCall(0, 1, nil)
	switch {
	case x.Stopped() != "":
	case err != nil:
		m.replyError(err)
	default:
		m.reply(m.l.Get(-1), 0)
	}
	m.l.SetTop(0)
	m.x = nil
	clear(m.layouts)
	clear(m.seen)
}

// begin sets the global variables of a script and makes room for the layouts of its tables, if it needs them.
func (m *Machine) begin(p *Program, keys, argv []string) {
	if m.layouts = nil; p.layouts {
		if m.spare == nil {
			m.spare = map[*lua.LTable]*layout{}
		}
		m.layouts = m.spare
	}
	for i, all := range [][]string{keys, argv} {
		t := m.l.CreateTable(len(all), 0)
		for _, s := range all {
			t.Append(lua.LString(s))
		}
		if p.layouts {
			t.Metatable = m.tracked
		}
		m.given[i] = given{t, len(all)}
		m.globals.RawSetString([]string{"KEYS", "ARGV"}[i], t)
	}
}

// replyError replies what a script threw.
func (m *Machine) replyError(err error) {
	thrown, ok := err.(*lua.ApiError)
	if !ok || thrown.Object == nil || thrown.Type != lua.ApiErrorRun {
		text, _, _ := strings.Cut(err.Error(), "\n")
		m.x.Unknown("a Lua error: " + text)
		return
	}
	m.ownLimit(thrown)
	if m.raised == thrown.Object && m.line == "" {
		m.x.Unknown("the place of a Lua error in a function that another one of a library calls")
		return
	}
	text, line := "", m.line
	if t, ok := thrown.Object.(*lua.LTable); ok {
		if m.metatable(t) != nil || m.fronts[t] != nil {
			m.x.Unknown("a Lua error with a metatable")
			return
		}
		field, ok := t.RawGetString("err").(lua.LString)
		if !ok {
			m.x.Unknown("a Lua error that is a table without the field err")
			return
		}
		text = string(field)
	} else {
		text = m.tostring(thrown.Object)
		if m.raised != thrown.Object {
			line = lineIn(text)
		}
		text = "ERR " + text
	}
	m.x.Err(CString(text) + " script: " + m.sha + ", on @" + chunk + ":" + line + ".")
}

// lineIn returns the line at the beginning of a message of the interpreter, or "1" if there is
// none.
func lineIn(text string) string {
	rest, ok := strings.CutPrefix(text, chunk+":")
	if !ok {
		return "1"
	}
	line, _, _ := strings.Cut(rest, ":")
	return line
}

// maxDepth is how deep a reply or JSON may be nested. Anything deeper is unknown.
const maxDepth = 100

// reply replies what a script returned.
func (m *Machine) reply(v lua.LValue, depth int) {
	switch v := v.(type) {
	case lua.LString:
		m.x.Bulk(string(v))
	case lua.LNumber:
		n, ok := toInt(float64(v))
		if !ok {
			m.x.Unknown("a script's reply " + v.String())
		}
		m.x.Int(n)
	case lua.LBool:
		if v {
			m.x.Int(1)
		} else {
			m.x.Null()
		}
	case *lua.LTable:
		m.replyTable(v, depth)
	case *lua.LNilType:
		m.x.Null()
	default: // a function: as nil
		m.x.Null()
	}
}

func (m *Machine) replyTable(t *lua.LTable, depth int) {
	if depth > maxDepth {
		m.x.Unknown("a script's reply that is nested too deep")
		return
	}
	if m.fronts[t] != nil {
		m.x.Unknown("a script's reply that is a library")
		return
	}
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		if m.event(t, "__index") != lua.LNil {
			m.x.Unknown("an error reply with a metatable")
		}
		m.x.Err(CString(string(s)))
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		m.x.Simple(OneLine(CString(string(s))))
		return
	}
	for _, name := range []string{"double", "map", "set", "big_number", "verbatim_string"} {
		if t.RawGetString(name) != lua.LNil {
			m.x.Unknown("a script's reply with the field " + name)
			return
		}
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	m.x.Array(n)
	for i := range n {
		m.reply(t.RawGetInt(i+1), depth+1)
	}
}

// toInt converts a double that fits as C does.
func toInt(f float64) (int64, bool) {
	if !(math.Abs(f) < 1<<63) {
		return 0, false
	}
	return int64(f), true
}

// tostring returns the string form of a value, as in Lua. That of a table or a function is unknown:
// it contains an address.
func (m *Machine) tostring(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return m.formatNumber(float64(v), 14)
	case *lua.LNilType, lua.LBool:
		return v.String()
	case *lua.LUserData: // cjson.null
		return "userdata: (nil)"
	}
	m.unknown("the string form of a " + v.Type().String())
	return ""
}

func (m *Machine) formatNumber(f float64, precision int) string {
	if math.IsNaN(f) {
		m.unknown("the string form of NaN in Lua")
	}
	m.noMinusZero(f)
	if n := int64(f); f == float64(n) && n > -1e14 && n < 1e14 {
		return strconv.FormatInt(n, 10)
	}
	return FormatG(f, precision)
}

// noMinusZero ends the script as unknown if f is -0: Lua 5.1 stores the constants 0 and -0 of a
// script once, as whichever comes first, so either may be the other.
func (m *Machine) noMinusZero(f float64) {
	if f == 0 && math.Signbit(f) {
		m.unknown("a negative zero in Lua")
	}
}

// call is redis.call and redis.pcall.
func (m *Machine) call(protected bool) lua.LGFunction {
	return func(l *lua.LState) int {
		m.count()
		args, ok := m.command()
		if !ok {
			return m.callFailed("ERR Lua redis lib command arguments must be strings or integers", protected)
		}
		if len(args) == 0 {
			return m.callFailed("ERR Please specify at least one argument for this redis lib call", protected)
		}
		reply := m.x.Call(args)
		if what := m.x.Stopped(); what != "" {
			return m.unknown(what)
		}
		v, _ := m.value(reply)
		failed := len(reply) > 0 && reply[0] == '-'
		if failed && !protected {
			return m.throw(v)
		}
		l.Push(v)
		return 1
	}
}

func (m *Machine) callFailed(text string, protected bool) int {
	v := m.field("err", text)
	if !protected {
		return m.throw(v)
	}
	m.l.Push(v)
	return 1
}

// command returns the arguments of a script's call of Redis.
func (m *Machine) command() (args []string, ok bool) {
	n := m.l.GetTop()
	args = make([]string, n)
	for i := range args {
		switch v := m.l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = m.formatNumber(float64(v), 17)
		default:
			return nil, false
		}
	}
	return args, true
}

func (m *Machine) field(name, text string) *lua.LTable {
	t := m.newTable(0, 0)
	m.set(t, lua.LString(name), lua.LString(text))
	return t
}

// value turns the reply at the beginning of b into a Lua value, and returns the rest.
func (m *Machine) value(b []byte) (lua.LValue, []byte) {
	end := bytes.IndexByte(b, '\r')
	line, rest := string(b[1:end]), b[end+2:]
	switch b[0] {
	case '+':
		return m.field("ok", line), rest
	case '-':
		t := m.field("err", line)
		m.set(t, lua.LString("ignore_error_stats_update"), lua.LTrue)
		return t, rest
	}
	n, _ := strconv.ParseInt(line, 10, 64)
	switch {
	case b[0] == ':':
		return lua.LNumber(n), rest
	case n < 0:
		return lua.LFalse, rest
	case b[0] == '$':
		return lua.LString(rest[:n]), rest[n+2:]
	}
	t := m.l.CreateTable(int(n), 0)
	for range n {
		var v lua.LValue
		v, rest = m.value(rest)
		t.Append(v)
	}
	return m.list(t, int(n)), rest
}
