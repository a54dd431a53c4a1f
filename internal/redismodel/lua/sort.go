package lua

import (
	"cmp"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// sort is table.sort for lists of strings or of numbers. With a comparison function, the order of
// equal elements depends on the algorithm, so that is unknown.
func (m *Machine) sort(l *lua.LState) int {
	t := m.tableArg(1)
	if l.Get(2) != lua.LNil {
		return m.unknown("the Lua function table.sort with a comparison function")
	}
	all := make([]lua.LValue, m.listLen(t))
	for i := range all {
		if all[i] = t.RawGetInt(i + 1); all[i].Type() != all[0].Type() {
			return m.unknown("the Lua function table.sort of values without an order") // the error names those that are compared first
		}
	}
	if len(all) > 1 && all[0].Type() != lua.LTString && all[0].Type() != lua.LTNumber {
		return m.unknown("the Lua function table.sort of values without an order")
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
