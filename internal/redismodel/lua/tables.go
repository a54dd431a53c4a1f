package lua

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// Tables of scripts that may ask for the order of their entries have a layout. Scripts create them with an operator of
// ours, and gopher-lua calls newIndex when they assign to a key that has no value.

// asks matches scripts that may ask for the order of a table, or for the length of one.
var asks = regexp.MustCompile(`\b(pairs|next|cjson|unpack|table)\b|#`)

// needsLayouts reports whether a script may ask for the order of a table. One that may have a list of 50 values needs
// layouts, too: gopher-lua stores lists in such pieces, and wrongly if more fields follow.
func needsLayouts(text string) bool {
	return asks.MatchString(text) || strings.Count(text, ",")+strings.Count(text, ";") >= listPiece-1
}

// listPiece is how many values of a constructor's list Lua stores at once (LFIELDS_PER_FLUSH).
const listPiece = 50

// given is a table that holds the keys or the arguments of a script. Its layout is made when it is needed.
type given struct {
	t *lua.LTable
	n int
}

// newTable returns an empty table with room for list elements (array) and other entries (hash).
func (m *Machine) newTable(array, hash int) *lua.LTable {
	t := m.l.CreateTable(array, hash)
	if m.layouts != nil {
		m.track(sized(t, array, hash))
	}
	return t
}

// list returns a table whose values were appended one by one to an empty one.
func (m *Machine) list(t *lua.LTable, n int) *lua.LTable {
	if m.layouts != nil {
		m.track(appended(t, n))
	}
	return t
}

func (m *Machine) track(a *layout) {
	a.t.Metatable = m.tracked
	m.layouts[a.t] = a
}

// layout returns the layout of a table, or nil if it is not known.
func (m *Machine) layout(t *lua.LTable) *layout {
	a := m.layouts[t]
	if a == nil && m.layouts != nil {
		for _, g := range m.given {
			if g.t == t {
				a = appended(t, g.n)
				m.layouts[t] = a
			}
		}
	}
	if a == nil || a.unsure {
		return nil
	}
	return a
}

// place checks a key of a table, and makes a place for it before something is assigned to it.
func (m *Machine) place(t *lua.LTable, key lua.LValue) {
	if what := wrongKey(key); what != "" {
		m.fail(what)
	}
	if a := m.layout(t); a != nil {
		a.add(key)
	}
}

// set assigns to a field of a table, whatever its metatable says.
func (m *Machine) set(t *lua.LTable, key, value lua.LValue) {
	if m.fronts[t] != nil {
		m.failHere(readOnly)
	}
	m.place(t, key)
	t.RawSet(key, value)
}

// newIndex is called when a script assigns to a field that has no value.
func (m *Machine) newIndex(l *lua.LState) int {
	m.set(l.Get(1).(*lua.LTable), l.Get(2), l.Get(3))
	return 0
}

// nextEntry returns the entry after that of a key, or the first one after nil. Without a layout,
// the order of two or more entries is unknown.
func (m *Machine) nextEntry(t *lua.LTable, key lua.LValue) (k, v lua.LValue) {
	if a := m.layout(t); a != nil {
		m.tell(a)
		k, v, known := a.next(key)
		if !known {
			m.unknown("the Lua function next with a key that the table does not have")
		}
		return k, v
	}
	entries := 0
	k, v = lua.LNil, lua.LNil
	t.ForEach(func(only, value lua.LValue) {
		entries++
		k, v = only, value
	})
	switch {
	case entries > 1 || m.fronts[t] != nil: // a library
		m.unknown("the order of the fields of a Lua table")
	case key == lua.LNil:
	case key == k:
		return lua.LNil, lua.LNil
	default:
		m.unknown("the Lua function next with a key that the table does not have")
	}
	return k, v
}

// tell reports to Redis the keys whose hashes determined an order.
func (m *Machine) tell(a *layout) {
	for _, key := range a.placed() {
		switch key := key.(type) {
		case lua.LString:
			m.x.Hashed(string(key))
		case lua.LNumber:
			m.x.Hashed(FormatG(float64(key), 17))
		}
	}
}

// listLen returns the length of a list. If it has holes, that depends on the layout.
func (m *Machine) listLen(t *lua.LTable) int {
	n := t.Len()
	for i := 1; i <= n; i++ {
		if t.RawGetInt(i) == lua.LNil {
			if a := m.layout(t); a != nil {
				m.tell(a)
				return a.length()
			}
			m.unknown("the length of a Lua list with holes")
		}
	}
	return n
}

// The operator "table" creates a table, and "fields" adds to one. Their arguments are the two sizes
// of the new table or else the table, a string of steps, one of these letters for each, and the
// values.
const (
	listItem = 'l' // a value of the list
	keyed    = 'k' // a key and its value
	restList = 'r' // all other values, of the list
	flush    = 'f' // stores the values of the list
)

func (m *Machine) construct(l *lua.LState) int {
	t := m.newTable(constructorSize(l.CheckInt(1)), constructorSize(l.CheckInt(2)))
	return m.fields(t, l.CheckString(3), 4)
}

// fields does steps of a constructor with the arguments from arg on.
func (m *Machine) fields(t *lua.LTable, steps string, arg int) int {
	a := m.layouts[t]
	if a.pending == nil {
		a.pending, m.pending = m.pending, nil
	}
	for _, step := range []byte(steps) {
		switch step {
		case listItem:
			a.pending = append(a.pending, m.l.Get(arg))
			arg++
		case keyed:
			m.set(t, m.l.Get(arg), m.l.Get(arg+1))
			arg += 2
		case restList:
			for ; arg <= m.l.GetTop(); arg++ {
				a.pending = append(a.pending, m.l.Get(arg))
			}
		case flush:
			a.flush()
		}
	}
	if len(a.pending) == 0 {
		m.pending, a.pending = a.pending, nil
	}
	m.l.Push(t)
	return 1
}

// mostFields is the number of values after which a call of a constructor ends and another one
// begins.
const mostFields = 40

// constructor is the constructor of a table while it is rewritten to calls.
type constructor struct {
	table ast.Expr // the call so far
	name  string   // of the next call
	first []ast.Expr
	steps []byte
	args  []ast.Expr
	items int // list values that are not stored yet
}

// end ends the current call. The next one gets its result.
func (c *constructor) end(at ast.PositionHolder) {
	c.table = call(at, c.name, slices.Concat(c.first, []ast.Expr{&ast.StringExpr{Value: string(c.steps)}}, c.args)...)
	c.name, c.first, c.steps, c.args = "fields", []ast.Expr{c.table}, nil, nil
}

// table rewrites a constructor to calls, which assign to the fields in the order of Lua's compiler (constructor, lparser.c).
// A call ends where Lua may throw an error because of a key.
func (r *rewriter) table(e *ast.TableExpr) ast.Expr {
	n := len(e.Fields)
	named, open := 0, n > 0 && e.Fields[n-1].Key == nil && several(e.Fields[n-1].Value)
	for _, f := range e.Fields {
		if f.Key != nil {
			named++
		}
	}
	listed := n - named
	if open {
		listed--
	}
	size := func(n int) ast.Expr { return &ast.NumberExpr{Value: strconv.Itoa(n)} }
	c := constructor{name: "table", first: []ast.Expr{size(listed), size(named)}}
	for i, f := range e.Fields {
		if c.items == listPiece {
			c.steps, c.items = append(c.steps, flush), 0
		}
		if f.Key != nil {
			r.changedKey(f)
			fixed := literal(f.Key)
			c.args = append(c.args, r.expr(f.Key), one(r.expr(f.Value)))
			if c.steps = append(c.steps, keyed); !fixed || len(c.args) >= mostFields {
				c.end(positioned(f.Value, e))
			}
			continue
		}
		c.items++
		if open && i == n-1 {
			c.args, c.steps = append(c.args, r.expr(f.Value)), append(c.steps, restList)
			continue
		}
		c.args, c.steps = append(c.args, one(r.expr(f.Value))), append(c.steps, listItem)
		if len(c.args) >= mostFields {
			c.end(e)
		}
	}
	if c.items > 0 {
		c.steps = append(c.steps, flush)
	}
	if len(c.steps) > 0 || c.table == nil {
		c.end(e)
	}
	return c.table
}

// positioned returns e if it has a line number, and otherwise the other argument.
func positioned(e ast.Expr, otherwise ast.PositionHolder) ast.PositionHolder {
	if e.Line() > 0 {
		return e
	}
	return otherwise
}

// one makes an expression have one value.
func one(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

// literal reports whether a key is a constant that is not nil.
func literal(key ast.Expr) bool {
	switch key.(type) {
	case *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr:
		return true
	}
	_, ok := constant(key)
	return ok
}

// changedKey notes a variable that is the key of a field, if the value may change it. Lua reads the
// key after it has evaluated the value, and our calls read it before.
func (r *rewriter) changedKey(f *ast.Field) {
	if key, ok := f.Key.(*ast.IdentExpr); ok && !r.harmless(f.Value) {
		r.keys = append(r.keys, key.Value)
	}
}

// assigned notes the variables that a function assigns to.
func (r *rewriter) assigned(targets ...ast.Expr) {
	for _, e := range targets {
		if v, ok := e.(*ast.IdentExpr); ok && r.functions > 0 {
			r.changed = append(r.changed, v.Value)
		}
	}
}

// changes reports whether the value of a field in a constructor may change its key.
func (r *rewriter) changes() bool {
	return slices.ContainsFunc(r.keys, func(key string) bool { return slices.Contains(r.changed, key) })
}

// harmless reports whether an expression certainly calls no function of the script. With metatables, a field or an operator
// may call one.
func (r *rewriter) harmless(all ...ast.Expr) bool {
	for _, e := range all {
		ok := true
		switch e := e.(type) {
		case *ast.AttrGetExpr:
			ok = !r.metatables && r.harmless(e.Object, e.Key)
		case *ast.FuncCallExpr:
			ok = r.library(e.Func) && r.harmless(e.Args...)
		case *ast.LogicalOpExpr:
			ok = r.harmless(e.Lhs, e.Rhs)
		case *ast.RelationalOpExpr:
			ok = !r.metatables && r.harmless(e.Lhs, e.Rhs)
		case *ast.StringConcatOpExpr:
			ok = !r.metatables && r.harmless(e.Lhs, e.Rhs)
		case *ast.ArithmeticOpExpr:
			ok = !r.metatables && r.harmless(e.Lhs, e.Rhs)
		case *ast.UnaryMinusOpExpr:
			ok = !r.metatables && r.harmless(e.Expr)
		case *ast.UnaryNotOpExpr:
			ok = r.harmless(e.Expr)
		case *ast.UnaryLenOpExpr:
			ok = r.harmless(e.Expr)
		case *ast.TableExpr:
			for _, f := range e.Fields {
				ok = ok && (f.Key == nil || r.harmless(f.Key)) && r.harmless(f.Value)
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// library reports whether an expression looks like the name of a function that calls no other.
func (r *rewriter) library(e ast.Expr) bool {
	if f, ok := e.(*ast.AttrGetExpr); ok {
		lib, ok := f.Object.(*ast.IdentExpr)
		name, named := f.Key.(*ast.StringExpr)
		return ok && named && name.Value != "gsub" && strings.Contains(" redis string math cjson bit ", " "+lib.Value+" ")
	}
	f, ok := e.(*ast.IdentExpr)
	return ok && strings.Contains(" tonumber type unpack select ", " "+f.Value+" ") || ok && f.Value == "tostring" && !r.metatables
}
