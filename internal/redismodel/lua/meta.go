package lua

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// This file implements the metatables of scripts, with the metamethods of Lua 5.1.
//
// gopher-lua is not given the script's metatable but a table of our own functions, each of which looks up the metamethod in the
// script's metatable when it is called. So a table whose layout is tracked, which needs a metatable of ours, can have one of the
// script's, too. The operators are compiled to calls of our functions, which look up their metamethods themselves.

// mostLinks is how long a chain of __index or __newindex may be (MAXTAGLOOP in Lua).
const mostLinks = 100

// events returns our functions for the metamethods that gopher-lua calls.
func (m *Machine) events() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"__index": func(l *lua.LState) int {
			l.Push(m.index(m.fail, l.Get(1), l.Get(2)))
			return 1
		},
		"__newindex": func(l *lua.LState) int {
			m.setIndex(l.Get(1), l.Get(2), l.Get(3))
			return 0
		},
		"__call": func(l *lua.LState) int {
			f, ok := m.event(l.Get(1), "__call").(*lua.LFunction)
			if !ok {
				return m.fail("attempt to call a table value")
			}
			l.Insert(f, 1)
			l.Call(l.GetTop()-1, lua.MultRet)
			return l.GetTop()
		},
		"__eq": func(l *lua.LState) int {
			return m.compare("__eq", l.Get(1), l.Get(2))
		},
		"__lt": func(l *lua.LState) int {
			return m.compare("__lt", l.Get(1), l.Get(2))
		},
		"__le": func(l *lua.LState) int {
			return m.compare("__le", l.Get(1), l.Get(2))
		},
	}
}

// metatable returns the metatable that a script has given to a table, or nil.
func (m *Machine) metatable(t *lua.LTable) *lua.LTable {
	seen, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	mt, ok := seen.Metatable.(*lua.LTable)
	if !ok || m.seen[mt] != seen {
		return nil
	}
	return mt
}

// setMetatable gives a table a metatable, or takes it away if that is nil.
func (m *Machine) setMetatable(t, mt *lua.LTable) {
	switch {
	case mt == nil && m.layouts != nil:
		t.Metatable = m.tracked
	case mt == nil:
		t.Metatable = lua.LNil
	default:
		seen := m.seen[mt]
		if seen == nil {
			seen = m.l.NewTable()
			for name, f := range m.onEvent {
				seen.RawSetString(name, f)
			}
			seen.Metatable = mt
			m.seen[mt] = seen
		}
		t.Metatable = seen
	}
}

// event returns a metamethod of a value, or nil.
func (m *Machine) event(v lua.LValue, name string) lua.LValue {
	if t, ok := v.(*lua.LTable); ok {
		if mt := m.metatable(t); mt != nil {
			return mt.RawGetString(name)
		}
	}
	return lua.LNil
}

// invoke calls a value with one result.
func (m *Machine) invoke(fail thrower, f lua.LValue, args ...lua.LValue) lua.LValue {
	_, isFunction := f.(*lua.LFunction)
	if _, ok := m.event(f, "__call").(*lua.LFunction); !isFunction && !ok {
		fail("attempt to call a " + f.Type().String() + " value")
	}
	m.l.Push(f)
	for _, v := range args {
		m.l.Push(v)
	}
	m.l.Call(len(args), 1)
	v := m.l.Get(-1)
	m.l.Pop(1)
	return v
}

// operate calls the metamethod for an operator, of the first operand or else of the second (call_binTM in Lua); ok is false if
// neither has one.
func (m *Machine) operate(event string, a, b lua.LValue) (v lua.LValue, ok bool) {
	f := m.event(a, event)
	if f == lua.LNil {
		f = m.event(b, event)
	}
	if f == lua.LNil {
		return lua.LNil, false
	}
	return m.invoke(m.fail, f, a, b), true
}

// frontField returns a field of a table that scripts cannot change. strict: a global variable that does not exist is an
// error.
func (m *Machine) frontField(front *lua.LTable, key lua.LValue, strict bool) lua.LValue {
	field := m.fronts[front].RawGet(key)
	switch {
	case field != lua.LNil:
	case front != m.l.G.Global:
		m.noField(m.libraryNames[front], key)
	case strict || unknownGlobal(key):
		m.noGlobal(key)
	}
	return field
}

// thrower is a function that throws a Lua error: fail, whose message begins with the script and line, or failHere, whose message
// does not.
type thrower func(text string) int

// failHere throws an error without a position, as Redis does in library functions.
func (m *Machine) failHere(text string) int { return m.raise(lua.LString(text), true) }

// index looks up a field by way of __index, for a value that has no such field itself (luaV_gettable in Lua).
func (m *Machine) index(fail thrower, v, key lua.LValue) lua.LValue {
	for range mostLinks {
		f := lua.LValue(lua.LNil)
		switch t := v.(type) {
		case *lua.LTable:
			if m.fronts[t] != nil {
				return m.frontField(t, key, true)
			}
			if field := t.RawGet(key); field != lua.LNil {
				return field
			}
			if f = m.event(t, "__index"); f == lua.LNil {
				return lua.LNil
			}
		case lua.LString:
			return m.l.GetTable(t, key)
		default:
			fail("attempt to index a " + v.Type().String() + " value")
		}
		if _, ok := f.(*lua.LFunction); ok {
			return m.invoke(fail, f, v, key)
		}
		v = f
	}
	fail("loop in gettable")
	return lua.LNil
}

// setIndex assigns to a field, by way of __newindex (luaV_settable in Lua). Like Lua, it adds the key to the table's layout before
// it looks for __newindex.
func (m *Machine) setIndex(v, key, value lua.LValue) {
	for range mostLinks {
		t, ok := v.(*lua.LTable)
		if !ok {
			m.fail("attempt to index a " + v.Type().String() + " value")
		}
		if m.fronts[t] != nil {
			m.fail(readOnly)
		}
		m.place(t, key)
		f := m.event(t, "__newindex")
		if f == lua.LNil || t.RawGet(key) != lua.LNil {
			t.RawSet(key, value)
			return
		}
		if _, ok := f.(*lua.LFunction); ok {
			m.invoke(m.fail, f, v, key, value)
			return
		}
		v = f
	}
	m.fail("loop in settable")
}

// compare pushes the result of a comparison of two tables that both have a metatable.
func (m *Machine) compare(event string, a, b lua.LValue) int {
	same := func(event string) lua.LValue {
		if f := m.event(a, event); f == m.event(b, event) {
			return f
		}
		return lua.LNil
	}
	push := func(truth bool) int {
		m.l.Push(lua.LBool(truth))
		return 1
	}
	f := same(event)
	switch {
	case f != lua.LNil:
		return push(lua.LVAsBool(m.invoke(m.fail, f, a, b)))
	case event == "__eq":
		return push(false)
	}
	if f = same("__lt"); event == "__le" && f != lua.LNil {
		return push(!lua.LVAsBool(m.invoke(m.fail, f, b, a)))
	}
	return m.fail("attempt to compare two table values")
}

// readOnly is the error of Redis for an assignment to one of its read-only tables.
const readOnly = "Attempt to modify a readonly table"

// metaLibrary returns the functions of the base library for metatables, for raw access to fields,
// and xpcall.
func (m *Machine) metaLibrary() map[string]lua.LGFunction {
	needs := func(n int) {
		if m.l.GetTop() < n {
			m.badArgument(n, "value")
		}
	}
	return map[string]lua.LGFunction{
		"setmetatable": func(l *lua.LState) int {
			t := m.tableArg(1)
			mt, ok := l.Get(2).(*lua.LTable)
			if !ok && (l.Get(2) != lua.LNil || l.GetTop() < 2) {
				return m.fail("bad argument #2 to 'setmetatable' (nil or table expected)")
			}
			switch {
			case m.event(t, "__metatable") != lua.LNil:
				return m.fail("cannot change a protected metatable")
			case m.fronts[t] != nil:
				return m.failHere(readOnly)
			case mt != nil && (m.fronts[mt] != nil || mt.RawGetString("__mode") != lua.LNil):
				return m.unknown("a metatable of this kind")
			}
			m.setMetatable(t, mt)
			l.Push(t)
			return 1
		},
		"getmetatable": func(l *lua.LState) int {
			needs(1)
			t, isTable := l.Get(1).(*lua.LTable)
			if _, text := l.Get(1).(lua.LString); text || isTable && t == m.l.G.Global {
				return m.unknown("the metatable of a string or of the global variables")
			}
			switch protected := m.event(l.Get(1), "__metatable"); {
			case protected != lua.LNil:
				l.Push(protected)
			case isTable && m.metatable(t) != nil:
				l.Push(m.metatable(t))
			default:
				l.Push(lua.LNil)
			}
			return 1
		},
		"rawequal": func(l *lua.LState) int {
			needs(1)
			needs(2)
			l.Push(lua.LBool(l.RawEqual(l.Get(1), l.Get(2))))
			return 1
		},
		"rawget": func(l *lua.LState) int {
			t := m.tableArg(1)
			needs(2)
			if key := l.Get(2); m.fronts[t] != nil {
				l.Push(m.frontField(t, key, false))
			} else {
				l.Push(t.RawGet(key))
			}
			return 1
		},
		"rawset": func(l *lua.LState) int {
			t := m.tableArg(1)
			needs(2)
			needs(3)
			key := l.Get(2)
			if what := wrongKey(key); m.fronts[t] == nil && what != "" {
				return m.failHere(what)
			}
			m.set(t, key, l.Get(3))
			l.Push(t)
			return 1
		},
		"xpcall": m.xpcall,
	}
}

// wrongKey says why no value can be assigned to a key, or "".
func wrongKey(key lua.LValue) string {
	if n, ok := key.(lua.LNumber); ok && n != n {
		return "table index is NaN"
	}
	if key == lua.LNil {
		return "table index is nil"
	}
	return ""
}

// protected calls a function that is on the stack below its arguments, and leaves its results there. thrown is what it threw
// if it failed.
func (m *Machine) protected(args int) (thrown lua.LValue, failed bool) {
	err := m.l.PCall(args, lua.MultRet, nil)
	if err == nil {
		return nil, false
	}
	e, ok := err.(*lua.ApiError)
	if m.x.Stopped() != "" || !ok || e.Type != lua.ApiErrorRun {
		m.unknown("a Lua error")
	}
	m.ownLimit(e)
	if m.own || m.raised != e.Object {
		m.unknown("the text of a Lua error that a script catches") // the interpreters word it differently
	}
	return e.Object, true
}

// pcall is the pcall of Redis. For an error that is a table, it returns the field err if that is a
// string or a number; otherwise the table and the field.
func (m *Machine) pcall(l *lua.LState) int {
	if l.GetTop() == 0 {
		m.badArgument(1, "value")
	}
	thrown, failed := m.protected(l.GetTop() - 1)
	if !failed {
		l.Insert(lua.LTrue, 1)
		return l.GetTop()
	}
	l.Push(lua.LFalse)
	t, ok := thrown.(*lua.LTable)
	if !ok {
		l.Push(thrown)
		return 2
	}
	if m.metatable(t) != nil || m.fronts[t] != nil {
		return m.unknown("a Lua error with a metatable")
	}
	switch text := t.RawGetString("err"); text.Type() {
	case lua.LTString, lua.LTNumber:
		l.Push(text)
		return 2
	default:
		l.Push(thrown)
		l.Push(text)
		return 3
	}
}

// xpcall calls its second argument with what the first one throws. In Redis an error in the second one calls it again, until
// the stack is full.
func (m *Machine) xpcall(l *lua.LState) int {
	if l.GetTop() < 2 {
		m.badArgument(2, "value")
	}
	l.SetTop(2)
	handler := l.Get(2)
	l.Push(l.Get(1))
	thrown, failed := m.protected(0)
	if !failed {
		l.Remove(1)
		l.Replace(1, lua.LTrue)
		return l.GetTop()
	}
	l.SetTop(2)
	if _, ok := handler.(*lua.LFunction); !ok {
		l.Push(lua.LFalse)
		l.Push(lua.LString("error in error handling"))
		return 2
	}
	l.Push(handler)
	l.Push(thrown)
	if err := l.PCall(1, 1, nil); err != nil {
		return m.unknown("an error in the function that xpcall calls with an error")
	}
	result := l.Get(-1)
	l.Push(lua.LFalse)
	l.Push(result)
	return 2
}

// weak reports whether a script may create weak tables, from which the garbage collector removes
// entries.
func weak(text string) bool { return strings.Contains(text, "__mode") }

// mayHaveMetatables reports whether a script may give a table a metatable.
func mayHaveMetatables(text string) bool {
	return strings.Contains(text, "setmetatable") || strings.Contains(text, "_G")
}
