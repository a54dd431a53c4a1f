package lua

import (
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// chunk is Redis' name for a script in its messages.
const chunk = "user_script"

// Compile compiles a script. unknown says why it cannot.
//
// gopher-lua formats and parses numbers in its own way, and the Lua of Redis as C does. So
// operators that do either are replaced by calls of functions of this package, under names that no
// script can use. The constant nil is also replaced by a call: gopher-lua merges instructions that
// set registers to nil, and then also sets those between them.
func Compile(text string) (p *Program, unknown string) {
	if what := refused(text); what != "" {
		return nil, what
	}
	stmts, err := parse.Parse(strings.NewReader(text), chunk)
	if err != nil {
		return nil, "a script that does not compile: " + strings.TrimSpace(err.Error())
	}
	if weak(text) {
		return nil, "a weak Lua table"
	}
	r := rewriter{layouts: needsLayouts(text), metatables: mayHaveMetatables(text)}
	r.stmts(stmts)
	if r.changes() {
		r.unknown = "a Lua table constructor in which a value may change the key"
	}
	if r.unknown != "" {
		return nil, r.unknown
	}
	proto, err := lua.Compile(stmts, chunk)
	if err != nil {
		return nil, "a script that does not compile: " + strings.TrimSpace(err.Error())
	}
	if large(proto) {
		return nil, "a Lua function with many upvalues"
	}
	return &Program{proto, r.layouts}, ""
}

// Lua 5.1 limits a function to 60 upvalues and the nesting to 200 levels. gopher-lua has other
// limits, so a script with more than mostUpvalues or mostNested is unknown. gopher-lua allows fewer
// local variables than Lua 5.1, and does not compile scripts with more.
const (
	mostUpvalues = 60
	mostNested   = 150
)

// large reports whether a function, or one nested in it, has more upvalues than Lua 5.1 allows.
func large(f *lua.FunctionProto) bool {
	return int(f.NumUpvalues) > mostUpvalues || slices.ContainsFunc(f.FunctionPrototypes, large)
}

// hidden begins the names of our operators.
const hidden = "\x00"

type rewriter struct {
	unknown string
	nested  int // how many statements and expressions are around the present one
	// layouts: tables need a layout.
	layouts bool
	// metatables: tables may have one.
	metatables bool
	functions  int      // how many functions are around the present statement
	changed    []string // the variables to which functions assign
	keys       []string // the variables that are keys in constructors
}

// enter notes that a statement or an expression begins; the result notes that it ends.
func (r *rewriter) enter() (leave func()) {
	if r.nested++; r.nested > mostNested {
		r.unknown = "a deeply nested Lua script"
	}
	return func() { r.nested-- }
}

// call returns an expression that calls the operator with this name.
func call(at ast.PositionHolder, name string, args ...ast.Expr) ast.Expr {
	fn := &ast.IdentExpr{Value: hidden + name}
	e := &ast.FuncCallExpr{Func: fn, Args: args}
	for _, p := range []ast.PositionHolder{fn, e} {
		p.SetLine(at.Line())
		p.SetLastLine(at.LastLine())
	}
	return e
}

func (r *rewriter) stmts(all []ast.Stmt) {
	for i, s := range all {
		r.stmt(s)
		switch s := s.(type) {
		case *ast.AssignStmt:
			if len(s.Lhs) > 1 || misplaced(s.Rhs[0]) {
				all[i] = separate(s)
			}
		case *ast.GenericForStmt:
			all[i] = evaluated(s)
		}
	}
}

// evaluated makes a generic for loop take its function, state and first control value from three variables. gopher-lua
// evaluates only as many expressions as the loop has names.
func evaluated(s *ast.GenericForStmt) ast.Stmt {
	block, values := &ast.DoBlockStmt{}, &ast.LocalAssignStmt{Exprs: s.Exprs}
	for _, p := range []ast.PositionHolder{block, values} {
		p.SetLine(s.Line())
		p.SetLastLine(s.LastLine())
	}
	s.Exprs = nil
	for _, name := range []string{"function", "state", "control"} {
		e := &ast.IdentExpr{Value: hidden + name}
		e.SetLine(s.Line())
		e.SetLastLine(s.LastLine())
		s.Exprs = append(s.Exprs, e)
		values.Names = append(values.Names, e.Value)
	}
	block.Stmts = []ast.Stmt{values, s}
	return block
}

// several reports whether an expression may have more or less than one value.
func several(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// misplaced reports whether gopher-lua may fail to store the value of an expression in the variable to which it is
// assigned.
func misplaced(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		return true
	case *ast.FuncCallExpr:
		return e.AdjustRet
	case *ast.Comma3Expr:
		return e.AdjustRet
	}
	return false
}

// separate makes an assignment evaluate all expressions before it assigns to any variable. gopher-lua does not: in a, b = 1, a
// it assigns the new a to b, and a = t.x and 5 leaves a unchanged if t.x is nil.
func separate(s *ast.AssignStmt) ast.Stmt {
	block := &ast.DoBlockStmt{}
	line := func(p ast.PositionHolder) {
		p.SetLine(s.Line())
		p.SetLastLine(s.LastLine())
	}
	variable := func(name string) ast.Expr {
		e := &ast.IdentExpr{Value: hidden + name}
		line(e)
		return e
	}
	local := func(names []string, exprs []ast.Expr) {
		hiddenNames := make([]string, len(names))
		for i, name := range names {
			hiddenNames[i] = hidden + name
		}
		l := &ast.LocalAssignStmt{Names: hiddenNames, Exprs: exprs}
		line(l)
		block.Stmts = append(block.Stmts, l)
	}
	var values []string
	var assigned []ast.Stmt
	for i, target := range s.Lhs {
		n := strconv.Itoa(i)
		if field, ok := target.(*ast.AttrGetExpr); ok {
			local([]string{"table" + n, "key" + n}, []ast.Expr{field.Object, field.Key})
			field.Object, field.Key = variable("table"+n), variable("key"+n)
		}
		values = append(values, "value"+n)
		a := &ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{variable("value" + n)}}
		line(a)
		assigned = append(assigned, a)
	}
	local(values, s.Rhs)
	slices.Reverse(assigned) // as Lua does
	block.Stmts = append(block.Stmts, assigned...)
	line(block)
	return block
}

func (r *rewriter) stmt(s ast.Stmt) {
	defer r.enter()()
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.assigned(s.Lhs...)
		r.exprs(s.Lhs)
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
		if n := len(s.Exprs); n < len(s.Names) && (n == 0 || !several(s.Exprs[n-1])) {
			s.Exprs = append(s.Exprs, call(s, "nil"))
		}
		if s.LastLine() == 0 && len(s.Names) == 1 && len(s.Exprs) == 1 {
			// gopher-lua compiles local f = function like local function f, whose body refers to
			// the new f.
			s.Names = append(s.Names, hidden+"none")
		}
	case *ast.FuncCallStmt:
		if f, ok := s.Expr.(*ast.FuncCallExpr); ok && f.AdjustRet {
			r.unknown = "a Lua statement in parentheses"
		}
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.stmts(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Stmts)
		s.Stmts = counted(s.Condition, s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Stmts)
		s.Stmts = counted(s.Condition, s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Then)
		r.stmts(s.Else)
	case *ast.NumberForStmt:
		s.Init = r.bound(s.Init, "initial")
		s.Limit = r.bound(s.Limit, "limit")
		if s.Step != nil {
			s.Step = r.bound(s.Step, "step")
		}
		r.stmts(s.Stmts)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.stmts(s.Stmts)
		s.Stmts = counted(s, s.Stmts)
	case *ast.FuncDefStmt:
		r.assigned(s.Name.Func)
		r.function(s.Func)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	case *ast.BreakStmt:
	default: // goto, which Redis' Lua does not have
		r.unknown = "a Lua statement that Redis does not have"
	}
}

func (r *rewriter) function(f *ast.FunctionExpr) {
	r.functions++
	r.stmts(f.Stmts)
	r.functions--
}

// counted returns the body of a loop that might not end, after a call that counts its iterations.
// The call also keeps the body from beginning with a jump: gopher-lua would jump back to a wrong
// instruction.
func counted(at ast.PositionHolder, body []ast.Stmt) []ast.Stmt {
	s := &ast.FuncCallStmt{Expr: call(at, "loop")}
	s.SetLine(at.Line())
	s.SetLastLine(at.LastLine())
	return slices.Insert(body, 0, ast.Stmt(s))
}

// bound returns a bound of a for loop, which may be a number in a text.
func (r *rewriter) bound(e ast.Expr, what string) ast.Expr {
	if _, ok := e.(*ast.NumberExpr); ok {
		return e
	}
	return call(e, "for", r.expr(e), &ast.StringExpr{Value: what})
}

func (r *rewriter) exprs(all []ast.Expr) {
	for i, e := range all {
		all[i] = r.expr(e)
	}
}

func (r *rewriter) expr(e ast.Expr) ast.Expr {
	defer r.enter()()
	if v, ok := constant(e); ok && v == 0 && math.Signbit(v) {
		r.unknown = "a script with the constant -0, which Lua 5.1 confuses with 0"
	}
	switch e := e.(type) {
	case *ast.NilExpr:
		return call(e, "nil")
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
	case *ast.TableExpr:
		if r.layouts {
			return r.table(e)
		}
		for _, f := range e.Fields {
			if f.Key != nil {
				f.Key = r.expr(f.Key)
			}
			f.Value = r.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = r.expr(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = r.expr(e.Receiver)
		}
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
		return decided(e)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.compared(e.Lhs), r.compared(e.Rhs)
	case *ast.StringConcatOpExpr:
		return call(e, "..", r.expr(e.Lhs), r.expr(e.Rhs))
	case *ast.ArithmeticOpExpr:
		return call(e, e.Operator, r.expr(e.Lhs), r.expr(e.Rhs))
	case *ast.UnaryMinusOpExpr:
		if _, ok := e.Expr.(*ast.NumberExpr); !ok {
			return call(e, "neg", r.expr(e.Expr))
		}
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
		if truth, known := truth(e.Expr); known {
			return boolean(e, !truth)
		}
	case *ast.UnaryLenOpExpr:
		return call(e, "#", r.expr(e.Expr))
	case *ast.FunctionExpr:
		r.function(e)
	}
	return e
}

// compared rewrites an operand of a comparison. There, the constant nil does no harm.
func (r *rewriter) compared(e ast.Expr) ast.Expr {
	if _, ok := e.(*ast.NilExpr); ok {
		return e
	}
	return r.expr(e)
}

// decided returns the result of a logical operator whose left operand is a constant, or the
// expression itself. A condition that begins with a constant would be compiled to a jump, and
// gopher-lua would jump back to a wrong instruction.
func decided(e *ast.LogicalOpExpr) ast.Expr {
	truth, known := truth(e.Lhs)
	switch {
	case !known:
		return e
	case truth == (e.Operator == "or"):
		return e.Lhs
	}
	switch right := e.Rhs.(type) { // one value, not all
	case *ast.FuncCallExpr:
		right.AdjustRet = true
	case *ast.Comma3Expr:
		right.AdjustRet = true
	}
	return e.Rhs
}

// truth returns the truth value of a constant. known is false for other expressions.
func truth(e ast.Expr) (truth, known bool) {
	switch e := e.(type) {
	case *ast.FalseExpr:
		return false, true
	case *ast.FuncCallExpr: // nil has become a call
		fn, ok := e.Func.(*ast.IdentExpr)
		return false, ok && fn.Value == hidden+"nil"
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true, true
	}
	return false, false
}

// boolean returns the constant true or false.
func boolean(at ast.PositionHolder, truth bool) ast.Expr {
	var e ast.Expr = &ast.FalseExpr{}
	if truth {
		e = &ast.TrueExpr{}
	}
	e.SetLine(at.Line())
	e.SetLastLine(at.LastLine())
	return e
}

// constant returns the value of an expression that Lua's compiler folds. The compiler stores equal
// constants once, and 0 equals -0: so 1/0 may be negative in a script that contains 0 * -1.
func constant(e ast.Expr) (float64, bool) {
	switch e := e.(type) {
	case *ast.NumberExpr:
		v, err := strconv.ParseFloat(e.Value, 64)
		return v, err == nil
	case *ast.UnaryMinusOpExpr:
		v, ok := constant(e.Expr)
		return -v, ok
	case *ast.ArithmeticOpExpr:
		a, ok1 := constant(e.Lhs)
		b, ok2 := constant(e.Rhs)
		if !ok1 || !ok2 || b == 0 && (e.Operator == "/" || e.Operator == "%") {
			return 0, false
		}
		v := map[string]float64{"+": a + b, "-": a - b, "*": a * b, "/": a / b, "%": a - math.Floor(a/b)*b, "^": math.Pow(a, b)}[e.Operator]
		return v, !math.IsNaN(v)
	}
	return 0, false
}
