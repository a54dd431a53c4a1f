package lua

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// bitArg returns an argument of the bit library: a number modulo 2^32, rounded as a double is (barg, lua_bit.c).
func (m *Machine) bitArg(n int) uint32 {
	f, ok := number(m.l.Get(n))
	if !ok || math.IsNaN(f) { // the bits of NaN differ in Go
		f = 0
	}
	b := uint32(math.Float64bits(f + (1<<52 + 1<<51)))
	if b == 0 && !ok {
		m.badArgument(n, "number")
	}
	return b
}

func (m *Machine) bitLibrary() map[string]lua.LGFunction {
	push := func(b uint32) int {
		m.l.Push(lua.LNumber(int32(b)))
		return 1
	}
	unary := func(f func(b uint32) uint32) lua.LGFunction {
		return func(*lua.LState) int { return push(f(m.bitArg(1))) }
	}
	all := func(f func(a, b uint32) uint32) lua.LGFunction {
		return func(l *lua.LState) int {
			b := m.bitArg(1)
			for i := l.GetTop(); i > 1; i-- {
				b = f(b, m.bitArg(i))
			}
			return push(b)
		}
	}
	shift := func(f func(b uint32, by int) uint32) lua.LGFunction {
		return func(*lua.LState) int { return push(f(m.bitArg(1), int(m.bitArg(2)&31))) }
	}
	return map[string]lua.LGFunction{
		"tobit":   unary(func(b uint32) uint32 { return b }),
		"bnot":    unary(func(b uint32) uint32 { return ^b }),
		"bswap":   unary(bits.ReverseBytes32),
		"band":    all(func(a, b uint32) uint32 { return a & b }),
		"bor":     all(func(a, b uint32) uint32 { return a | b }),
		"bxor":    all(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  shift(func(b uint32, by int) uint32 { return b << by }),
		"rshift":  shift(func(b uint32, by int) uint32 { return b >> by }),
		"arshift": shift(func(b uint32, by int) uint32 { return uint32(int32(b) >> by) }),
		"rol":     shift(bits.RotateLeft32),
		"ror":     shift(func(b uint32, by int) uint32 { return bits.RotateLeft32(b, -by) }),
		"tohex": func(l *lua.LState) int {
			b, n := m.bitArg(1), int64(8)
			if l.GetTop() > 1 {
				n = int64(int32(m.bitArg(2)))
			}
			if n == math.MinInt32 {
				return m.unknown("bit.tohex with so many digits")
			}
			text := fmt.Sprintf("%08x", b)
			if n < 0 {
				n, text = -n, strings.ToUpper(text)
			}
			l.Push(lua.LString(text[8-min(n, 8):]))
			return 1
		},
	}
}
