package redismodel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// luaWriter writes random Lua programs, which return what they have computed. Their variables are a to e, as locals of the
// function and of the functions around it.
type luaWriter struct {
	*rand.Rand
	out   strings.Builder
	depth int
	loops int
}

func (w *luaWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

func (w *luaWriter) variable() string { return w.pick("a", "b", "c", "d", "e") }

// place returns something that can be assigned to.
func (w *luaWriter) place() string {
	return w.pick(w.variable(), w.variable(), w.variable(), "t.x", "t[1]", "t[num("+w.variable()+")]", "t.t.y", "t["+w.pick("'x'", "'z'", "2")+"]")
}

// expr returns an expression of any type.
func (w *luaWriter) expr() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return w.pick("nil", "false", "true", "0", "1", "2.5", "'x'", "''", "'10'", w.variable(), w.variable(), w.place())
	}
	defer func() { w.depth-- }()
	switch w.IntN(16) {
	case 0, 1, 2:
		return w.expr() + " and " + w.expr()
	case 3, 4, 5:
		return w.expr() + " or " + w.expr()
	case 6:
		return "(" + w.expr() + ")"
	case 7:
		return "not (" + w.expr() + ")"
	case 8:
		return "not " + w.variable()
	case 9:
		return "(" + w.expr() + ") " + w.pick("==", "~=") + " (" + w.expr() + ")"
	case 10:
		return "num(" + w.expr() + ") " + w.pick("<", "<=", ">", ">=", "+", "-", "*") + " num(" + w.expr() + ")"
	case 11:
		return "'' .. num(" + w.expr() + ")"
	case 12:
		return w.pick("id", "two", "none", "say", "rest") + "(" + w.exprs(3) + ")"
	case 13:
		return "({" + w.exprs(3) + "})[" + w.pick("1", "2", "num("+w.variable()+")") + "]"
	case 14:
		return "#{" + w.expr() + " and 1 or 2, 5}"
	}
	return w.variable()
}

func (w *luaWriter) exprs(most int) string {
	var all []string
	for range 1 + w.IntN(most) {
		all = append(all, w.expr())
	}
	return strings.Join(all, ", ")
}

func (w *luaWriter) block(n int) {
	w.depth++
	for range 1 + w.IntN(n) {
		w.stmt()
	}
	w.depth--
}

func (w *luaWriter) stmt() {
	put := func(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }
	n := w.IntN(15)
	if w.depth > 3 {
		n %= 7
	}
	switch n {
	case 0, 1, 2:
		put("%s = %s", w.place(), w.expr())
	case 3:
		put("%s, %s = %s", w.place(), w.place(), w.exprs(3))
	case 4:
		put("local %s = %s", w.variable(), w.expr())
	case 5:
		put("local %s, %s = %s", w.variable(), w.variable(), w.exprs(3))
	case 6:
		put("say(%s)", w.exprs(3))
	case 7, 8:
		put("if %s then", w.expr())
		w.block(3)
		if w.IntN(3) == 0 {
			put("elseif %s then", w.expr())
			w.block(2)
		}
		if w.IntN(2) == 0 {
			put("else")
			w.block(3)
		}
		put("end")
	case 9:
		w.loops++
		put("local n%d = 0 while %s do n%[1]d = n%[1]d + 1 if n%[1]d > 3 then break end", w.loops, w.expr())
		w.block(3)
		put("end")
	case 10:
		w.loops++
		n := w.loops
		put("local n%d = 0 repeat n%[1]d = n%[1]d + 1", n)
		w.block(3)
		put("until n%d > 3 or (%s)", n, w.expr())
	case 11:
		put("for %s = num(%s), %d do", w.variable(), w.expr(), w.IntN(5))
		w.block(3)
		put("end")
	case 12:
		put("for _, %s in ipairs({%s}) do", w.variable(), w.exprs(3))
		w.block(2)
		put("end")
	case 13:
		name := w.variable()
		put("local function f(%s, %s)", w.variable(), w.variable())
		w.block(3)
		put("return %s end", w.exprs(2))
		put("%s = f(%s)", name, w.exprs(3))
	case 14:
		put("do")
		w.block(3)
		put("end")
	}
}

const luaHead = `local out, left = {}, 200
local function num(x) return type(x) == 'number' and x > -9 and x < 99 and x or type(x) == 'string' and #x or x and 1 or 0 end
local function say(...)
  for i = 1, select('#', ...) do
    local x = select(i, ...)
    left = left - 1
    if left > 0 then out[#out + 1] = type(x) == 'number' and 'n' .. x or type(x) == 'string' and 's' .. x or type(x) == 'boolean' and (x and 'true' or 'false') or type(x) end
  end
  return ...
end
local function id(x) return x end
local function two(x, y) return y, x end
local function none() end
local function rest(_, ...) return ... end
local t = {x = 1, t = {}}
local a, b, c = 1, 'x', nil
local function run(d, e)
`

// TestRandomLua checks that random Lua programs return the same from the model as from Redis.
func TestRandomLua(t *testing.T) {
	c := startServer(t).conns[0]
	programs, known := 2000, 0
	if os.Getenv("OVERSELL_LONG") != "" {
		programs = 100_000
	}
	for seed := range programs {
		w := &luaWriter{Rand: rand.New(rand.NewPCG(7, uint64(seed)))}
		w.out.WriteString(luaHead)
		for range 3 + w.IntN(5) {
			w.stmt()
		}
		w.out.WriteString("say(a, b, c, d, e, t.x, t[1], t[2])\nend\nrun(2, nil)\nsay(a, b, c)\nreturn out")
		if agree(t, c, w.out.String()) {
			known++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if known < programs/2 {
		t.Errorf("the model knew %d of %d programs, want at least half", known, programs)
	}
}
