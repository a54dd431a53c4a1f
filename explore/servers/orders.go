package servers

import (
	"slices"
	"strings"

	"oversell/internal/redismodel"
)

// maxOrders is how many answers to one command that differ in their order are tried.
const maxOrders = 24

// alternatives returns all replies that a server might give if the order of this one is arbitrary, this one first. They
// are at most maxOrders and one.
func alternatives(reply string, info redismodel.Info) []string {
	all := []string{reply}
	for _, l := range info.Unordered {
		// All orders of a list have one length, so positions stay.
		header := strings.Index(reply[l.At:], "\r\n") + 2
		begin := l.At + header
		items, end := items(reply, begin, l)
		var more []string
		for _, r := range all {
			permute(items, func(order []string) bool {
				more = append(more, r[:begin]+strings.Join(order, "")+r[end:])
				return len(more) <= maxOrders
			})
		}
		all = more
	}
	return all
}

// items returns the items of a list that begins there, and its end.
func items(reply string, begin int, l redismodel.Unordered) (all []string, end int) {
	end = begin
	for range l.N {
		start := end
		for range l.Unit {
			_, rest := value(reply[end:])
			end = len(reply) - len(rest)
		}
		all = append(all, reply[start:end])
	}
	return all, end
}

// permute calls f with all orders of items, the present one first, until f returns false.
func permute(items []string, f func([]string) bool) {
	items = slices.Clone(items)
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(items) {
			return f(items)
		}
		for j := i; j < len(items); j++ {
			items[i], items[j] = items[j], items[i]
			more := place(i + 1)
			items[i], items[j] = items[j], items[i]
			if !more {
				return false
			}
		}
		return true
	}
	place(0)
}
