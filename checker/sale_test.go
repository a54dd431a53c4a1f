package checker

import (
	"testing"
	"time"

	"oversell/history"
)

func lostBuyOp(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Buy, client, order, call, ret, history.Unknown, history.NoReason)
}

func repeated(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Buy, client, order, call, ret, history.OK, history.Repeated)
}

func refunded(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Refund, client, order, call, ret, history.OK, history.NoReason)
}

func pieces(op history.Op, n int32) history.Op { op.Amount = n; return op }

func told(op history.Op, left int64) history.Op { op.Result = history.Int(left); return op }

func TestAcceptTokens(t *testing.T) {
	stale := func(client int32, f int64, call, ret time.Duration) history.Op {
		return withFence(saleOp(history.Buy, client, int64(client), call, ret, history.Refused, history.Stale), f)
	}
	ok := func(client int32, f int64, call, ret time.Duration) history.Op {
		return withFence(bought(client, int64(client), call, ret), f)
	}
	runCases(t, func(*history.Header) Monitor { return newAcceptTokens() }, []verdictCase{
		{"none", history.Header{}, []history.Op{bought(1, 1, 1, 2)}, Unknown, "no operation"},
		{"falling", history.Header{}, []history.Op{ok(2, 8, 3, 4), ok(1, 7, 5, 6)}, Violated, "after it had accepted 8"},
		{"falling, but perhaps at once", history.Header{}, []history.Op{ok(2, 8, 3, 5), ok(1, 7, 5, 6)}, Holds, "2 tokens"},
		{"equal", history.Header{}, []history.Op{ok(2, 8, 3, 4), ok(1, 8, 5, 6)}, Holds, ""},
		{"a repetition accepts nothing", history.Header{}, []history.Op{ok(2, 8, 3, 4), withFence(repeated(1, 1, 5, 6), 7)}, Holds, ""},
		{"a lost answer accepts nothing for certain", history.Header{}, []history.Op{withFence(lostBuyOp(2, 2, 3, 4), 8), ok(1, 7, 5, 6)}, Holds, ""},
		{"refused without a newer one", history.Header{}, []history.Op{ok(2, 7, 1, 2), stale(1, 7, 3, 4)}, Violated, "nobody had shown it a newer one"},
		{"refused, a newer one was called in time", history.Header{}, []history.Op{ok(2, 8, 4, 9), stale(1, 7, 3, 4)}, Holds, ""},
		{"refused, a newer one was called too late", history.Header{}, []history.Op{ok(2, 8, 5, 9), stale(1, 7, 3, 4)}, Violated, ""},
		{"a newer one without an answer will do", history.Header{}, []history.Op{ok(3, 6, 1, 2), withFence(lostBuyOp(2, 2, 1, 2), 8), stale(1, 7, 3, 4)}, Holds, ""},
	})
}

func TestNoOversell(t *testing.T) {
	one := history.Header{Stock: 1}
	runCases(t, func(h *history.Header) Monitor { return newNoOversell(h) }, []verdictCase{
		{"nothing", one, nil, Unknown, "nothing was sold"},
		{"certain", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4)}, Violated, "sold 2 of 1: the purchase of 1 piece by client 2"},
		{"impossible", one, []history.Op{bought(1, 1, 1, 2), soldOutTo(2, 2, 3, 4)}, Holds, "sold 1 of 1: oversell is impossible"},
		{"possible", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4)}, Unknown, "sold 1 to 2 of 1: oversell is possible"},
		{"settled by the final state", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), read("left", 0, 5)}, Holds, "the final state shows 1 piece taken"},
		{"not settled by an earlier state", one, []history.Op{bought(1, 1, 1, 2), read("left", 0, 3), lostBuyOp(2, 2, 3, 9)}, Unknown, ""},
		{"not settled by a state that lost a piece", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), read("left", 1, 5)}, Unknown, ""},
		{"a lost update", history.Header{Stock: 412}, []history.Op{pieces(told(bought(1, 1, 1, 2), 412), 411), told(bought(3, 2, 3, 5), 411), told(bought(9, 3, 4, 6), 411)}, Violated, "client 3 and client 9 both sold down to 411 left"},
		{"pieces", history.Header{Stock: 4}, []history.Op{pieces(bought(1, 1, 1, 2), 3), pieces(bought(2, 2, 3, 4), 2)}, Violated, "sold 5 of 4"},
		{"a refund in time", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 4, 9), bought(2, 2, 3, 4)}, Holds, ""},
		{"a refund too late", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 5, 9), bought(2, 2, 3, 4)}, Violated, ""},
		{"a repetition shows what was sold", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), repeated(2, 2, 5, 6)}, Violated, "sold 2 of 1"},
		{"a repetition of a success shows nothing new", one, []history.Op{bought(1, 1, 1, 2), repeated(1, 1, 3, 4)}, Holds, ""},
		{"a repetition may mean the success still to come", one, []history.Op{bought(1, 7, 1, 9), lostBuyOp(2, 7, 1, 2), repeated(3, 7, 3, 4)}, Unknown, "sold 1 to 2 of 1"},
		{"a repetition before its success", one, []history.Op{repeated(1, 1, 3, 4), bought(1, 1, 1, 5)}, Holds, "sold 1 of 1"},
	})
}

func TestNoUndersell(t *testing.T) {
	one, two := history.Header{Stock: 1}, history.Header{Stock: 2}
	runCases(t, func(h *history.Header) Monitor { return newNoUndersell(h) }, []verdictCase{
		{"not read", one, []history.Op{bought(1, 1, 1, 2)}, Unknown, "was not read"},
		{"balanced", two, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3)}, Holds, "of 2, 1 sold, 1 left"},
		{"vanished", two, []history.Op{bought(1, 1, 1, 2), read("left", 0, 3)}, Violated, "1 piece vanished"},
		{"set aside", two, []history.Op{bought(1, 1, 1, 2), read("left", 0, 3), read("reserved", 1, 3)}, Holds, ""},
		{"with a lost answer", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 0, 3)}, Holds, "if 1 piece without an answer"},
		{"lost answers of one order count once", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(1, 1, 3, 4), read("left", 0, 5)}, Violated, "1 piece vanished"},
		{"a repetition accounts for what was lost", two, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), read("left", 0, 5)}, Violated, "1 piece vanished"},
		{"more vanished than was lost", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 0, 3)}, Violated, "even if"},
		{"oversold", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 0, 3)}, Holds, "1 piece too many"},
		{"a refund that vanished", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), read("left", 0, 5)}, Violated, "1 returned"},
		{"a refund", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), read("left", 1, 5)}, Holds, ""},
		{"an earlier state does not count", two, []history.Op{read("left", 2, 1), bought(1, 1, 2, 3)}, Unknown, ""},
		{"refused for nothing", one, []history.Op{soldOutTo(1, 1, 1, 2)}, Violated, "though at least 1 was left"},
		{"refused, a purchase was called in time", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 2, 9), read("left", 0, 10)}, Holds, ""},
		{"refused, a purchase was called too late", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 3, 9)}, Violated, ""},
		{"refused after a refund", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 5, 6)}, Violated, ""},
		{"refused as a refund returned", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 4, 6), read("left", 1, 7)}, Holds, ""},
		{"refused more than was left", two, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(2, 2, 3, 4), 2), read("left", 1, 7)}, Holds, ""},
	})
}

func TestOncePerOrder(t *testing.T) {
	h := history.Header{Stock: 5}
	text := func(op history.Op) history.Op { op.Arg = history.Text("order-7"); return op }
	runCases(t, func(h *history.Header) Monitor { return newOncePerOrder(h) }, []verdictCase{
		{"nothing", h, nil, Unknown, ""},
		{"once", h, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 2)}, Holds, "no order was sent twice"},
		{"twice", h, []history.Op{bought(1, 7, 1, 2), bought(1, 7, 3, 4)}, Violated, "order 7 was counted twice"},
		{"twice, by a text", h, []history.Op{text(bought(1, 0, 1, 2)), text(bought(1, 0, 3, 4))}, Violated, "order order-7"},
		{"repeated", h, []history.Op{bought(1, 7, 1, 2), repeated(1, 7, 3, 4)}, Holds, "sent again once"},
		{"refused, then bought", h, []history.Op{soldOutTo(1, 7, 1, 2), bought(1, 7, 3, 4)}, Holds, "sent again once"},
		{"perhaps twice", h, []history.Op{lostBuyOp(1, 7, 1, 2), bought(1, 7, 3, 4)}, Unknown, "1 order may have been counted twice"},
		{"perhaps twice, both lost", h, []history.Op{lostBuyOp(1, 7, 1, 2), lostBuyOp(1, 7, 3, 4)}, Unknown, "1 order may have been counted twice"},
		{"nothing was read", history.Header{Stock: 1}, []history.Op{lostBuyOp(1, 7, 1, 2), bought(1, 7, 3, 4)}, Unknown, ""},
		{"the final state tells", h, []history.Op{lostBuyOp(1, 7, 1, 2), bought(1, 7, 3, 4), read("left", 4, 5)}, Holds, "each known order once"},
		{"the final state tells of one more", h, []history.Op{lostBuyOp(1, 7, 1, 2), bought(1, 7, 3, 4), read("left", 3, 5)}, Unknown, ""},
		{"lost, then repeated", h, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4)}, Holds, ""},
		{"refunded twice", h, []history.Op{bought(1, 7, 1, 2), refunded(1, 7, 3, 4), refunded(1, 7, 5, 6)}, Violated, "refunded twice"},
	})
}

func TestSaleLinear(t *testing.T) {
	one := history.Header{Stock: 1}
	open := func(h *history.Header) Monitor { return newSaleLinear(h) }
	twice := []history.Op{repeated(1, 7, 1, 3), lostBuyOp(2, 7, 5, 6), repeated(3, 7, 6, 7), bought(4, 7, 0, 8)}
	runCases(t, open, []verdictCase{
		{"nothing", one, nil, Unknown, "nothing was ordered"},
		{"too many", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4)}, Violated, "sold 2 of 1"},
		{"sold out too early", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 3, 4)}, Violated, "nothing was left"},
		{"sold out at the same time", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 2, 4)}, Holds, ""},
		{"sold out with a piece left", one, []history.Op{soldOutTo(1, 1, 1, 2)}, Violated, "only 0 of 1"},
		{"a lost answer took it", one, []history.Op{lostBuyOp(2, 2, 1, 2), soldOutTo(1, 1, 1, 2)}, Holds, ""},
		{"a lost answer came too late", one, []history.Op{soldOutTo(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4)}, Violated, ""},
		{"repeated without an effect", one, []history.Op{repeated(1, 7, 1, 2)}, Violated, "order 7 had been counted before"},
		{"repeated, its effect called in time", one, []history.Op{repeated(1, 7, 1, 2), bought(2, 7, 2, 4)}, Holds, ""},
		{"repeated, its effect called too late", one, []history.Op{repeated(1, 7, 1, 2), bought(2, 7, 3, 4)}, Violated, ""},
		{"repeated, so the lost one took it", one, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), bought(2, 8, 5, 6)}, Violated, ""},
		{"repeated twice round a lost one, meaning a success still to come", one, twice, Holds, ""},
		{"the same with a refund", one, append(twice[:4:4], refunded(5, 9, 20, 21)), Holds, ""},
		{"a purchase must leave room for one that reaches a low stock", history.Header{Stock: 2, Quantity: 5}, []history.Op{
			bought(1, 1, 0, 10), pieces(bought(2, 2, 0, 20), 2), pieces(refunded(3, 3, 0, 30), 5), soldOutTo(4, 4, 0, 40)}, Holds, ""},
		{"stale has no effect", one, []history.Op{saleOp(history.Buy, 1, 1, 1, 2, history.Refused, history.Stale), bought(2, 2, 3, 4)}, Holds, ""},
		{"amounts: two refused, two left", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(2, 2, 3, 4), 2)}, Violated, ""},
		{"amounts: three refused, two left", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(2, 2, 3, 4), 3)}, Holds, ""},
		{"a refund makes room", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 4, 9), bought(2, 2, 3, 4)}, Holds, ""},
		{"a refund comes too late", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 5, 9), bought(2, 2, 3, 4)}, Violated, "all refunds called by then deducted"},
		{"sold out after a refund", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 5, 6)}, Violated, "fits no order"},
		{"sold out as a refund returned", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 4, 6)}, Holds, ""},
		// The count test of spec/checking.md accepts this one: at no moment is anything wrong by numbers alone.
		{"sold out twice round one purchase", history.Header{Stock: 1}, []history.Op{
			bought(1, 1, 1, 2), refunded(1, 1, 3, 10), soldOutTo(2, 2, 11, 12), bought(3, 3, 13, 14)}, Violated, ""},
	})
}
