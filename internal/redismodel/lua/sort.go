package lua

import (
	"cmp"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// sort is table.sort for lists of texts or of numbers. With a script's own order the result for equal elements depends
// on the algorithm, so that is unknown.
func (m *Machine) sort(l *lua.LState) int {
	t := m.tableArg(1)
	if l.Get(2) != lua.LNil {
		return m.unknown("the Lua function table.sort with an order")
	}
	all := make([]lua.LValue, m.listLen(t))
	for i := range all {
		if all[i] = t.RawGetInt(i + 1); all[i].Type() != all[0].Type() {
			return m.fail("attempt to compare " + all[0].Type().String() + " with " + all[i].Type().String())
		}
	}
	if len(all) > 1 && all[0].Type() != lua.LTString && all[0].Type() != lua.LTNumber {
		return m.fail("attempt to compare two " + all[0].Type().String() + " values")
	}
	slices.SortFunc(all, func(a, b lua.LValue) int {
		if s, ok := a.(lua.LString); ok {
			return cmp.Compare(s, b.(lua.LString))
		}
		return cmp.Compare(a.(lua.LNumber), b.(lua.LNumber))
	})
	for i, v := range all {
		t.RawSetInt(i+1, v)
	}
	return 0
}
