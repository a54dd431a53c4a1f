package redismodel

import (
	"math/big"
	"regexp"
	"strings"

	"oversell/internal/redismodel/lua"
)

// plainNumber is a decimal number that Redis and the model read alike.
var plainNumber = regexp.MustCompile(`^[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})$`)

// longDouble reads a number as the C type long double of x86-64, which has 64 bits of precision. ok is false if
// the text is no number, or one that the model does not know.
func (x *exec) longDouble(s, err string) (f *big.Float, ok bool) {
	if !plainNumber.MatchString(s) {
		if _, rest, number := lua.Strtod(s); number && rest == "" {
			x.Unknown("the number " + s + " in INCRBYFLOAT")
		} else {
			x.Err(err)
		}
		return nil, false
	}
	f, _, parsed := big.ParseFloat(s, 10, 64, big.ToNearestEven)
	return f, parsed == nil
}

// addFloat returns the sum as Redis writes it, with at most 17 decimals.
func addFloat(f, by *big.Float) string {
	sum := new(big.Float).SetPrec(64).SetMode(big.ToNearestEven).Add(f, by)
	text := sum.Text('f', 17)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

func incrbyfloat(x *exec, a []string) {
	v, ok := typed[str](x, a[1])
	if !ok {
		return
	}
	const wrong = "ERR value is not a valid float"
	old := new(big.Float)
	if x.get(a[1]) != nil {
		if old, ok = x.longDouble(string(v), wrong); !ok {
			return
		}
	}
	if by, ok := x.longDouble(a[2], wrong); ok {
		sum := addFloat(old, by)
		x.put(a[1], str(sum))
		x.Bulk(sum)
	}
}

func hincrbyfloat(x *exec, a []string) {
	by, ok := x.longDouble(a[3], "ERR value is not a valid float")
	if !ok {
		return
	}
	h, ok := typed[hash](x, a[1])
	if !ok {
		return
	}
	old := new(big.Float)
	if text, there := h.get(a[2]); there {
		if old, ok = x.longDouble(text, "ERR hash value is not a float"); !ok {
			return
		}
	}
	sum := addFloat(old, by)
	x.put(a[1], h.with(a[2], sum))
	x.Bulk(sum)
}
