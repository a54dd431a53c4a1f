package stocktest

// A sale may take one piece per order, such as one for each customer. Rules that make one call after the other are tried on
// it with several orders in place of one; rules that interfere with one call are tried with orders of one piece.

// oneAfterTheOther are the rules that make one call after the other, with small numbers of orders and pieces.
var oneAfterTheOther = []string{
	"refuses more than is left", "a refund returns to the stock", "the books add up", "a resent order has one effect",
	"a refunded order stays used up", "two products do not mix", "what other clients do counts", "an hour later", "a year later", "minutes, hours and days of the server's clock later",
	"products with similar names do not mix", "products with unlike names do not mix",
}

// several returns how many pieces an order of a rule has: n, or 1 if the sale takes one piece per order.
func (b bench) several(n int) int {
	if b.single {
		return 1
	}
	return n
}
