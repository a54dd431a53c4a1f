package checker

import (
	"slices"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
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

func refundedBefore(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Refund, client, order, call, ret, history.OK, history.Repeated)
}

func lostRefund(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Refund, client, order, call, ret, history.Unknown, history.NoReason)
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
	h9 := history.Header{Stock: 9}
	runCases(t, func(h *history.Header) Monitor { return saleOf(h, variant.Fencing) }, []verdictCase{
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
		{"accepted after a refusal that shows a newer one", history.Header{}, []history.Op{withFence(lostBuyOp(3, 3, 1, 2), 9), stale(2, 7, 3, 4), ok(1, 8, 5, 6)}, Violated, "refused the token 7 of client 2"},
		{"accepted after all that can explain a refusal had ended", history.Header{}, []history.Op{withFence(soldOutTo(2, 2, 8, 9), 4), stale(3, 3, 11, 12), ok(1, 2, 12, 13)}, Violated, "so it had registered 4 or a newer one by 0.000 ms"},
		{"the same, and the refusal came last", history.Header{}, []history.Op{withFence(soldOutTo(2, 2, 1, 2), 4), ok(1, 2, 5, 6), stale(3, 3, 11, 12)}, Violated, "so it had registered 4"},
		{"the same, and the other has no answer", history.Header{}, []history.Op{withFence(lostBuyOp(2, 2, 1, 2), 4), ok(1, 2, 5, 6), stale(3, 3, 11, 12)}, Holds, ""},
		{"two explain a refusal, and each excludes what was accepted", history.Header{}, []history.Op{withFence(soldOutTo(2, 2, 1, 2), 4), withFence(soldOutTo(4, 4, 10, 11), 9), ok(1, 3, 5, 6), stale(3, 3, 12, 20), ok(5, 5, 21, 22)}, Violated, "it had registered 9"},
		{"two explain a refusal, and one of them excludes nothing", history.Header{}, []history.Op{withFence(soldOutTo(2, 2, 1, 2), 4), withFence(soldOutTo(4, 4, 10, 11), 5), ok(1, 3, 5, 6), stale(3, 3, 12, 20), ok(5, 5, 21, 22)}, Holds, ""},
		{"refunded, so its token was accepted by then", h9, []history.Op{withFence(bought(1, 1, 1, 100), 5), refunded(2, 1, 10, 20), ok(3, 2, 30, 40)}, Violated, "accepted the token 2 from client 3 between 0.000 ms and 0.000 ms, after it had accepted 5"},
		{"the same, and the other was asked for before", h9, []history.Op{withFence(bought(1, 1, 1, 100), 5), refunded(2, 1, 10, 20), ok(3, 2, 20, 40)}, Holds, ""},
		{"the same, and another try of the order is given up later", h9, []history.Op{withFence(bought(1, 1, 1, 100), 5), refunded(2, 1, 10, 20), ok(3, 2, 30, 40), withFence(lostBuyOp(4, 1, 2, 500), 1)}, Holds, ""},
		{"the same, and it showed the same token", h9, []history.Op{withFence(bought(1, 1, 1, 100), 5), refunded(2, 1, 10, 20), ok(3, 2, 30, 40), withFence(lostBuyOp(4, 1, 2, 500), 5)}, Violated, ""},
		{"the same, and it showed no token", h9, []history.Op{withFence(bought(1, 1, 1, 100), 5), lostBuyOp(4, 1, 1, 2), refunded(2, 1, 10, 20), ok(3, 2, 30, 40)}, Holds, ""},
		{"the same, and the other came after its answer", h9, []history.Op{withFence(bought(1, 1, 1, 25), 5), refunded(2, 1, 10, 20), ok(3, 2, 30, 40)}, Violated, "after it had accepted 5 from client 1 by"},
		{"refunded, and it was never answered", h9, []history.Op{withFence(lostBuyOp(1, 1, 1, 5), 5), refunded(2, 1, 10, 20), ok(3, 2, 30, 40)}, Violated, "as the answer to client 2"},
		{"the same, and its token was older", h9, []history.Op{ok(3, 5, 1, 2), withFence(lostBuyOp(1, 1, 3, 5), 2), refunded(2, 1, 10, 20)}, Violated, "had accepted 5 from client 3"},
		{"the same, and perhaps it came before", h9, []history.Op{ok(3, 5, 1, 3), withFence(lostBuyOp(1, 1, 3, 5), 2), refunded(2, 1, 10, 20)}, Holds, ""},
		{"the same, and that of another order long before had been shown by its refund", h9, []history.Op{refunded(2, 8, 2, 3), withFence(lostBuyOp(3, 7, 4, 5), 2), withFence(lostBuyOp(1, 8, 1, 30), 5), ok(4, 6, 40, 50), ok(5, 7, 60, 70), refunded(2, 7, 100, 110)}, Violated, "had accepted 5 from client 1"},
		{"called counted, so its token was accepted by then", h9, []history.Op{withFence(lostBuyOp(1, 1, 1, 5), 5), withFence(repeated(1, 1, 10, 20), 5), ok(3, 2, 30, 40)}, Violated, "as the answer to client 1"},
		{"the same, and the try that was called counted may have been the one", h9, []history.Op{withFence(lostBuyOp(1, 1, 1, 5), 5), withFence(repeated(1, 1, 10, 20), 1), ok(3, 2, 30, 40)}, Holds, ""},
		{"a refund without an answer that is called counted", h9, []history.Op{bought(1, 1, 1, 2), withFence(lostRefund(1, 1, 3, 4), 5), withFence(refundedBefore(1, 1, 10, 20), 5), ok(3, 2, 30, 40)}, Violated, "after it had accepted 5"},
		{"refunded before its answer, without tokens", h9, []history.Op{bought(1, 1, 1, 100), refunded(2, 1, 10, 20), bought(3, 3, 30, 40)}, Unknown, "no operation of the sale showed a token"},
		{"accepted perhaps before it", history.Header{}, []history.Op{withFence(lostBuyOp(3, 3, 1, 2), 9), stale(2, 7, 3, 5), ok(1, 8, 5, 6)}, Holds, ""},
		{"accepted after a refusal that a lesser one explains", history.Header{}, []history.Op{withFence(lostBuyOp(3, 3, 1, 2), 9), stale(2, 7, 3, 10), ok(1, 9, 11, 12), withFence(lostBuyOp(4, 4, 8, 13), 8)}, Holds, ""},
	})
}

// Histories in which one unanswered operation, or one refund, must not explain two things.
var (
	refundedLost = []history.Op{lostBuyOp(1, 1, 10, 15), refunded(2, 1, 30, 40), bought(10, 10, 50, 60), bought(11, 11, 50, 60), bought(12, 12, 50, 60),
		bought(13, 13, 50, 60), bought(14, 14, 50, 60), read("left", 0, 70)}
	refundedTwice   = []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), refunded(1, 1, 5, 6), bought(2, 2, 7, 8), bought(3, 3, 7, 9), read("left", 0, 10)}
	lostRefundTwice = []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), refunded(1, 1, 5, 6),
		bought(2, 2, 7, 8), bought(3, 3, 7, 9), read("left", 0, 10)}
	// The unanswered refund made room for order 2, and each repetition means the operation before it.
	// repeatedBeforeEnd is the same history with a refund whose end is not known, and a reading.
	repeatedBeforeLost = []history.Op{bought(1, 1, 0, 10), bought(3, 2, 25, 35), refundedBefore(4, 1, 30, 38), repeated(1, 1, 32, 42), lostRefund(2, 1, 20, 100)}
	repeatedBeforeEnd  = []history.Op{bought(1, 1, 2, 13), refundedBefore(4, 1, 25, 39), repeated(1, 1, 32, 42), bought(3, 2, 17, 36), read("left", 0, 54), lostRefund(2, 1, 11, 500)}
	lostEitherWay      = []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 1, 3), soldOutTo(3, 3, 4, 5), read("left", 1, 6)}
)

func TestNoOversell(t *testing.T) {
	one, two := history.Header{Stock: 1}, history.Header{Stock: 2}
	runCases(t, func(h *history.Header) Monitor { return saleOf(h, variant.NoOversell) }, []verdictCase{
		{"nothing", one, nil, Unknown, "nothing was sold"},
		{"certain", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4)}, Violated, "sold 2 of 1: the purchase of 1 piece by client 2"},
		{"a refund of which only an answer tells that it was before", one, []history.Op{bought(1, 1, 1, 2), refundedBefore(1, 1, 3, 4), bought(2, 2, 5, 6)}, Unknown, "an answer says that 1 piece had been refunded before"},
		{"refunded while it was bought, by some time, and no more was ordered", two, []history.Op{pieces(bought(1, 1, 0, 2), 2), lostRefund(1, 1, 1, 9)}, Holds, "no more than 2 were asked for"},
		{"called sold, by an earlier attempt of its own, before a lost try", one, []history.Op{repeated(2, 2, 0, 9), soldOutTo(3, 3, 1, 2), lostBuyOp(4, 2, 3, 12)}, Unknown, ""},
		{"the same, and it was asked for only when both were sold", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4), refundedBefore(1, 1, 5, 6)}, Violated, "sold 2 of 1"},
		{"the same, and the sale counts too many as sold", one, []history.Op{bought(1, 1, 1, 2), refundedBefore(1, 1, 3, 4), bought(2, 2, 5, 6), read("sold", 2, 7)}, Violated, "sold 2 of 1"},
		{"impossible", one, []history.Op{bought(1, 1, 1, 2), soldOutTo(2, 2, 3, 4)}, Holds, "sold 1 of 1: no oversell seen in 0 contended operations"},
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
		{"the server counted more sold than there were", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), read("left", 0, 5), read("sold", 2, 5)}, Violated, "the sale itself counted 2 pieces as sold"},
		{"the server counted it in the middle", one, []history.Op{bought(1, 1, 1, 2), read("sold", 2, 3), lostBuyOp(2, 2, 3, 9)}, Violated, "the sale itself counted 2 pieces as sold"},
		{"the server's own count settles it", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), read("left", 0, 5), read("sold", 1, 5)}, Holds, "the final state shows 1 piece taken"},
		{"a reading that a purchase overlapped settles nothing", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 7), read("left", 0, 6), bought(3, 3, 8, 9), refunded(1, 1, 4, 5)}, Unknown, "oversell is possible"},
		{"settled after refunds", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), lostBuyOp(2, 2, 5, 6), lostBuyOp(3, 3, 5, 6), read("left", 0, 7)}, Unknown, "oversell is possible"},
		{"settled after refunds: nothing more was taken", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), lostBuyOp(2, 2, 5, 6), lostBuyOp(3, 3, 5, 6), read("left", 1, 7)}, Holds, "0 pieces taken"},
		{"set aside is not sold", one, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4), read("left", -1, 5), read("reserved", 1, 5)}, Unknown, ""},
		{"refunded, so the lost one had taken it", history.Header{Stock: 4}, refundedLost, Violated, "sold 5 of 4"},
		{"refunded twice, one piece bought", one, refundedTwice, Violated, "sold 2 of 1"},
		{"refunded twice, the first time without an answer", one, lostRefundTwice, Violated, "sold 2 of 1"},
		{"refunded without an answer, and both repeated before it was given up", one, repeatedBeforeLost, Holds, ""},
		{"the same, and it was not given up", one, repeatedBeforeEnd, Holds, ""},
		{"the same, and the refund was called too late", one, []history.Op{bought(1, 1, 0, 10), bought(3, 2, 25, 35), refundedBefore(4, 1, 36, 38), repeated(1, 1, 32, 42), lostRefund(2, 1, 36, 100)}, Violated, "sold 2 of 1"},
		{"the same, and only the answer that it was refunded was asked for in time", one, append(repeatedBeforeLost[:4:4], lostRefund(2, 1, 36, 100)), Unknown, ""},
		{"told to be refunded before a lost refund, and bought by any of two lost tries", one, []history.Op{refundedBefore(3, 1, 18, 26), lostBuyOp(1, 1, 9, 42), lostRefund(2, 1, 8, 500), lostBuyOp(5, 1, 33, 501)}, Unknown, ""},
		{"refunded, bought again, and the first purchase was lost", history.Header{Stock: 2}, []history.Op{refunded(1, 1, 16, 18), lostRefund(3, 1, 23, 26), bought(4, 1, 31, 32), lostBuyOp(2, 1, 7, 500)}, Holds, ""},
		{"a refund that was called first, of which the answer came last", one, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 8, 9, history.Unknown, history.NoReason), bought(2, 2, 3, 5), refunded(1, 1, 4, 10)}, Holds, ""},
		{"nobody knows how long one was sold that only its refund shows", one, []history.Op{lostBuyOp(1, 1, 10, 15), bought(2, 2, 20, 25), refunded(1, 1, 30, 40)}, Violated, "at no moment before"},
		{"refunded while it was bought, of nothing", history.Header{}, []history.Op{refunded(2, 1, 4, 5), bought(1, 1, 2, 6)}, Violated, "at no moment before"},
		{"the same, and the refund returned last", history.Header{}, []history.Op{bought(1, 1, 2, 6), refunded(2, 1, 4, 9)}, Violated, "at no moment before"},
		{"the same, and the purchase has no answer", history.Header{}, []history.Op{lostBuyOp(1, 1, 2, 3), refunded(2, 1, 4, 9)}, Violated, "at no moment before"},
		{"the same, and the refund has no answer", history.Header{}, []history.Op{saleOp(history.Refund, 2, 1, 4, 5, history.Unknown, history.NoReason), bought(1, 1, 2, 6)}, Violated, "at no moment before"},
		{"two refunded while they were bought, one after the other", one, []history.Op{refunded(2, 1, 4, 5), bought(1, 1, 2, 6), refunded(3, 2, 4, 6), bought(4, 2, 2, 7)}, Holds, ""},
		{"refunded while it was bought, beside one without an answer", one, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 3, 8), refunded(3, 2, 5, 6)}, Unknown, "and on when pieces were sold that were refunded"},
		{"the same, and the refund has no answer", one, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 3, 8), lostRefund(3, 2, 5, 6)}, Unknown, "oversell is possible"},
		{"the same, and it was given up late", one, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 3, 8), lostRefund(3, 2, 5, 60)}, Unknown, "oversell is possible"},
		{"the same, and the one without an answer was not sold", one, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 3, 8), refunded(3, 2, 5, 6), read("left", 1, 9)}, Holds, ""},
		{"the same, and another was bought later", one, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 3, 8), refunded(3, 2, 5, 6), bought(4, 4, 9, 10), read("left", 0, 11)}, Holds, ""},
		{"refunded while it was bought, before the other was", one, []history.Op{refunded(2, 1, 4, 5), bought(1, 1, 2, 6), bought(3, 3, 3, 7)}, Holds, ""},
		{"refunded while it was bought, after the other was", one, []history.Op{bought(3, 3, 1, 3), refunded(2, 1, 4, 5), bought(1, 1, 2, 6)}, Violated, "order 1 of 1 piece"},
		{"refunded while it was bought, when the other was refunded", one, []history.Op{bought(3, 3, 1, 3), refunded(2, 1, 4, 8), bought(1, 1, 2, 9), refunded(3, 3, 7, 10)}, Holds, ""},
		{"refunded while it was bought, before the other was refunded", one, []history.Op{bought(3, 3, 1, 3), refunded(2, 1, 4, 6), bought(1, 1, 2, 9), refunded(3, 3, 7, 10)}, Violated, ""},
		{"repeated, then a success called later: two effects", one, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), bought(1, 7, 5, 6)}, Violated, "sold 2 of 1"},
	})
}

func TestNoUndersell(t *testing.T) {
	one, two := history.Header{Stock: 1}, history.Header{Stock: 2}
	runCases(t, func(h *history.Header) Monitor { return saleOf(h, variant.NoUndersell) }, []verdictCase{
		{"not read", one, []history.Op{bought(1, 1, 1, 2)}, Unknown, "was not read"},
		{"balanced", two, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3)}, Holds, "of 2, 1 sold, 1 left"},
		{"vanished", two, []history.Op{bought(1, 1, 1, 2), read("left", 0, 3)}, Violated, "1 piece vanished"},
		{"set aside", two, []history.Op{bought(1, 1, 1, 2), read("left", 0, 3), read("reserved", 1, 3)}, Holds, ""},
		{"with a lost answer", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 0, 3)}, Holds, "if 1 piece without an answer"},
		{"lost answers of one order count once", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(1, 1, 3, 4), read("left", 0, 5)}, Violated, "1 piece vanished"},
		{"a repetition accounts for what was lost", two, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), read("left", 0, 5)}, Violated, "1 piece vanished"},
		{"more vanished than was lost", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 0, 3)}, Violated, "even if"},
		{"oversold", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 0, 3)}, Violated, "1 piece too many: of 1, 2 sold, 0 left"},
		{"a refund that vanished", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), read("left", 0, 5)}, Violated, "1 returned"},
		{"a refund", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), read("left", 1, 5)}, Holds, ""},
		{"an earlier state does not count", two, []history.Op{read("left", 2, 1), bought(1, 1, 2, 3)}, Unknown, ""},
		{"refused for nothing", one, []history.Op{soldOutTo(1, 1, 1, 2)}, Violated, "though at least 1 was left"},
		{"refused, a purchase was called in time", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 2, 9), read("left", 0, 10)}, Holds, ""},
		{"refused, a purchase was called too late", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 3, 9)}, Violated, ""},
		{"refused after a refund", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 5, 6)}, Violated, ""},
		{"refused as a refund returned", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 4, 6), read("left", 1, 7)}, Holds, ""},
		{"refused between a refund and another purchase", two, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 10), bought(2, 2, 11, 12), soldOutTo(3, 3, 8, 15), read("left", 1, 16)}, Violated, "though at least 1 was left at every moment"},
		{"refused before a refund, or after another purchase", two, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 11), bought(2, 2, 11, 12), soldOutTo(3, 3, 8, 15), read("left", 1, 16)}, Holds, ""},
		{"refused between refunds, and a lost purchase was called too late", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 3), refunded(1, 1, 4, 10), lostBuyOp(4, 4, 11, 12), soldOutTo(3, 3, 8, 15), read("left", 1, 16)}, Violated, "though at least 1 was left at every moment"},
		{"refused between refunds, and a lost purchase was called in time", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 3), refunded(1, 1, 4, 10), lostBuyOp(4, 4, 9, 12), soldOutTo(3, 3, 8, 15), read("left", 1, 16)}, Holds, ""},
		{"refused more than was left", two, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(2, 2, 3, 4), 2), read("left", 1, 7)}, Holds, ""},
		{"sold and still there", two, []history.Op{bought(1, 1, 1, 2), read("left", 2, 3)}, Violated, "1 piece too many: of 2, 1 sold, 2 left"},
		{"returned twice to the stock", two, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), read("left", 3, 5)}, Violated, "1 piece too many"},
		{"a refund without an answer may be there", two, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), read("left", 2, 5)}, Holds, "if 1 piece without an answer came back"},
		{"a purchase without an answer had no effect", two, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 1, 5)}, Holds, "the books balance if none of 1 piece without an answer changed hands"},
		{"a purchase without an answer had its effect", two, []history.Op{lostBuyOp(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 0, 5)}, Holds, "the books balance if 1 piece without an answer changed hands"},
		{"one of two purchases without an answer had its effect", two, []history.Op{lostBuyOp(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 1, 5)}, Holds, "the books balance if 1 of 2 pieces without an answer changed hands"},
		{"a refund without an answer had no effect", two, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), read("left", 1, 5)}, Holds, "the books balance if none of 1 piece without an answer came back"},
		{"a purchase and a refund without an answer", two, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), lostBuyOp(2, 2, 1, 2), read("left", 1, 5)}, Holds, "the books balance if, without an answer, as many pieces changed hands as came back"},
		{"a refund without an answer, and a purchase that had no effect", two, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), lostBuyOp(2, 2, 1, 2), read("left", 2, 5)}, Holds, "the books balance if, without an answer, 1 piece more came back than changed hands"},
		{"a reading that a refund overlapped is not final", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), read("left", 0, 3)}, Unknown, "had been made before"},
		{"a part called refunded vouches for its own amount", history.Header{Stock: 4}, []history.Op{pieces(bought(1, 1, 1, 5), 2), pieces(lostRefund(1, 1, 6, 20), 1), pieces(refundedBefore(2, 1, 30, 40), 2), read("left", 4, 50)}, Holds, ""},
		{"the same, and fewer came back", history.Header{Stock: 4}, []history.Op{pieces(bought(1, 1, 1, 5), 2), pieces(lostRefund(1, 1, 6, 20), 1), pieces(refundedBefore(2, 1, 30, 40), 2), read("left", 3, 50)}, Violated, "1 piece vanished"},
		{"two readings that contradict each other", two, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 2, 3), read("left", 0, 3)}, Violated, "the final readings contradict each other: 2 left"},
		{"the same, the other way round", two, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 0, 3), read("left", 2, 3)}, Violated, "too many"},
		{"the same, of what was sold", two, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 1, 2), read("left", 0, 3), read("sold", 1, 3), read("sold", 2, 5)}, Violated, "contradict"},
		{"the same number twice", two, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3), read("left", 1, 5)}, Holds, ""},
		{"two readings, and one without an answer between them", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 1, 3), read("left", 0, 5)}, Unknown, "two final readings of one number differ"},
		{"two readings, and it cannot have put a piece back", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 0, 3), read("left", 1, 5)}, Violated, "contradict"},
		{"the same, at one time", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), read("left", 0, 3), read("left", 1, 3)}, Unknown, ""},
		{"a refusal that one without an answer explains, by one of two readings", two, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), soldOutTo(3, 3, 3, 4), read("left", 1, 5), read("left", 0, 7)}, Unknown, ""},
		{"two readings, and what was set aside was put back", two, []history.Op{bought(1, 1, 1, 2), read("left", 0, 3), read("reserved", 1, 3), read("left", 1, 5), read("reserved", 0, 5)}, Unknown, "two final readings of one number differ"},
		{"the server's own count does not balance", two, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3), read("sold", 0, 3)}, Violated, "1 piece vanished"},
		{"the server counts what is still there", two, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3), read("sold", 2, 3)}, Violated, "1 piece too many"},
		{"refunded, so the lost one had taken it", history.Header{Stock: 4}, refundedLost, Violated, "1 piece too many"},
		{"refunded twice, one piece bought", one, refundedTwice, Violated, "1 piece too many"},
		{"refunded twice, the first time without an answer", one, lostRefundTwice, Violated, "1 piece too many"},
		{"one lost purchase explains a refusal or what is left", two, lostEitherWay, Violated, "no more than 0 pieces without an answer can have been sold"},
		{"less than nothing was sold", two, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), read("left", 1, 5), read("sold", -1, 7)}, Violated, "1 piece vanished"},
		{"called sold, by an earlier attempt of its own, before a lost try", one, []history.Op{repeated(2, 2, 0, 9), soldOutTo(3, 3, 1, 2), lostBuyOp(4, 2, 3, 12), read("left", 0, 13)}, Holds, ""},
		{"the same, and a lost try was called before both", one, []history.Op{repeated(2, 2, 4, 9), soldOutTo(3, 3, 5, 6), lostBuyOp(4, 2, 3, 12), read("left", 0, 13)}, Holds, ""},
		{"called sold twice, the one called first last, and a lost try was called in between", one, []history.Op{soldOutTo(3, 3, 2, 3), lostBuyOp(4, 2, 4, 5), repeated(2, 2, 6, 7), repeated(5, 2, 1, 9), read("left", 0, 13)}, Holds, ""},
		{"sold by a program that sent it again by itself", history.Header{Stock: 3}, []history.Op{repeated(1, 7, 1, 2), read("left", 2, 3)}, Holds, ""},
		{"called sold, and nobody sold it", history.Header{Stock: 3}, []history.Op{repeated(1, 7, 1, 2), read("left", 3, 3)}, Violated, "too many"},
		{"returned by a program that refunded it again by itself", history.Header{Stock: 3}, []history.Op{bought(1, 7, 1, 2), saleOp(history.Refund, 1, 7, 3, 4, history.OK, history.Repeated), read("left", 3, 5)}, Holds, ""},
		{"called returned, and nobody returned it", history.Header{Stock: 3}, []history.Op{bought(1, 7, 1, 2), saleOp(history.Refund, 1, 7, 3, 4, history.OK, history.Repeated), read("left", 2, 5)}, Violated, "vanished"},
		{"called sold, and a lost try sold it", history.Header{Stock: 3}, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), read("left", 2, 5)}, Holds, ""},
		{"a piece vanished between two readings", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 4), bought(2, 2, 2, 5), lostBuyOp(3, 3, 3, 6), read("left", 0, 7), read("sold", 2, 9)}, Violated, ""},
		{"half of a lost order, and another order", history.Header{Stock: 4}, []history.Op{bought(1, 1, 1, 4), bought(2, 2, 2, 5), pieces(lostBuyOp(3, 3, 3, 6), 2), read("left", 0, 7), read("sold", 3, 9)}, Violated, ""},
		{"half of a lost order", history.Header{Stock: 4}, []history.Op{bought(1, 1, 1, 4), bought(2, 2, 2, 5), pieces(lostBuyOp(3, 3, 3, 6), 2), read("left", 1, 7)}, Violated, ""},
		{"a lost order of two between the readings", history.Header{Stock: 4}, []history.Op{bought(1, 1, 1, 4), bought(2, 2, 2, 5), pieces(lostBuyOp(3, 3, 3, 6), 2), read("left", 2, 7), read("sold", 4, 9)}, Holds, ""},
		{"two lost orders of two, and three of them sold", history.Header{Stock: 4}, []history.Op{pieces(lostBuyOp(1, 1, 3, 5), 2), pieces(lostBuyOp(3, 3, 3, 6), 2), read("left", 0, 7), read("sold", 5, 9)}, Violated, ""},
		{"a lost order of three, and a lost refund of it", history.Header{Stock: 3}, []history.Op{pieces(lostBuyOp(1, 1, 3, 4), 3), pieces(lostRefund(1, 1, 5, 6), 3), read("left", 2, 7)}, Violated, "no choice of the operations without an answer"},
		{"the same, and all of it is back", history.Header{Stock: 3}, []history.Op{pieces(lostBuyOp(1, 1, 3, 4), 3), pieces(lostRefund(1, 1, 5, 6), 3), read("left", 3, 7)}, Holds, ""},
		{"a late purchase between two readings", one, []history.Op{lostBuyOp(1, 1, 1, 2), read("left", 1, 3), read("sold", 1, 5)}, Holds, ""},
	})
}

func TestOncePerOrder(t *testing.T) {
	h := history.Header{Stock: 5}
	text := func(op history.Op) history.Op { op.Arg = history.Text("order-7"); return op }
	runCases(t, func(h *history.Header) Monitor { return saleOf(h, variant.OncePerOrder) }, []verdictCase{
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
		{"called counted, and counted after that", h, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), bought(1, 7, 5, 6)}, Violated, "order 7 was counted twice: as told to client 1 between"},
		{"refunded in parts", h, []history.Op{pieces(bought(1, 7, 1, 2), 3), refunded(1, 7, 3, 4), refunded(1, 7, 5, 6)}, Holds, ""},
		{"refunded in parts, while it was bought", h, []history.Op{pieces(bought(1, 7, 0, 9), 2), refunded(2, 7, 1, 2), refunded(3, 7, 3, 4)}, Holds, ""},
		{"refunded in parts, and the purchase has no answer", h, []history.Op{pieces(lostBuyOp(1, 7, 0, 9), 2), refunded(2, 7, 1, 2), refunded(3, 7, 3, 4), bought(4, 8, 5, 6)}, Holds, ""},
		{"refunded in too many parts, while it was bought", h, []history.Op{pieces(bought(1, 7, 0, 9), 2), refunded(2, 7, 1, 2), refunded(3, 7, 3, 4), refunded(4, 7, 5, 6)}, Violated, "refunded twice"},
		{"refunded, and counted after that", h, []history.Op{lostBuyOp(1, 7, 1, 2), refunded(1, 7, 3, 4), bought(1, 7, 5, 6)}, Violated, "order 7 was counted twice: as refunded to client 1 between"},
		{"called counted while it was", h, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), bought(2, 7, 4, 6)}, Unknown, "may have been counted twice"},
		{"the server counts one order twice", h, []history.Op{bought(1, 7, 1, 2), read("left", 3, 3), read("sold", 2, 3)}, Violated, "the sale counts 2 pieces as sold in the end, but all orders, each once, come to 1"},
		{"the server counts a try without an answer", h, []history.Op{bought(1, 7, 1, 2), lostBuyOp(2, 8, 1, 2), lostBuyOp(2, 8, 3, 4), read("left", 3, 5), read("sold", 2, 5)}, Unknown, ""},
		{"the server counts it twice", h, []history.Op{bought(1, 7, 1, 2), lostBuyOp(2, 8, 1, 2), lostBuyOp(2, 8, 3, 4), read("left", 2, 5), read("sold", 3, 5)}, Violated, "come to 2"},
		{"the readings disagree", h, []history.Op{lostBuyOp(1, 7, 1, 2), bought(1, 7, 3, 4), read("left", 4, 5), read("sold", 0, 5)}, Unknown, ""},
	})
}

func TestSaleLinear(t *testing.T) {
	one := history.Header{Stock: 1}
	open := func(h *history.Header) Monitor { return saleOf(h, variant.Linearizable) }
	twice := []history.Op{repeated(1, 7, 1, 3), lostBuyOp(2, 7, 5, 6), repeated(3, 7, 6, 7), bought(4, 7, 0, 8)}
	spec := []history.Op{lostBuyOp(2, 2, 3, 16), soldOutTo(4, 4, 7, 16), lostBuyOp(1, 1, 17, 20), repeated(5, 1, 18, 20), lostBuyOp(3, 1, 3, 205)}
	late := slices.Clone(spec)
	late[4].Call = 17
	long := []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4), refunded(1, 1, 5, 6)}
	own := []history.Op{bought(1, 1, 1, 2), refundedBefore(1, 1, 3, 4), bought(2, 2, 5, 6)}
	for i := range time.Duration(10_000) { // more than are kept for a search
		long = append(long, soldOutTo(3, 10+int64(i), 10+2*i, 11+2*i))
		if i < 600 { // more than the oracle takes
			own = append(own, soldOutTo(3, 10+int64(i), 10+2*i, 11+2*i))
		}
	}
	runCases(t, open, []verdictCase{
		{"two readings that contradict each other", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 10), bought(2, 2, 1, 10), bought(3, 3, 1, 10), soldOutTo(4, 4, 2, 11), read("left", 2, 20), read("left", 0, 20)}, Violated, "the final readings contradict each other"},
		{"the same, of what was sold", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 10), bought(2, 2, 1, 10), bought(3, 3, 1, 10), read("sold", 1, 20), read("sold", 3, 20)}, Violated, "the final readings contradict each other"},
		{"of several tries without an answer the one called first counts", history.Header{Stock: 2}, spec, Holds, ""},
		{"unless it was called too late, too", history.Header{Stock: 2}, late, Violated, "sent only after that"},
		{"the one called first, with amounts", history.Header{Stock: 2, Quantity: 2}, slices.Concat(spec, []history.Op{pieces(soldOutTo(6, 6, 206, 207), 2)}), Holds, ""},
		{"refunded without an answer, and both repeated before it was given up", one, repeatedBeforeLost, Holds, ""},
		{"the same, and the refund was called too late", one, []history.Op{bought(1, 1, 0, 10), bought(3, 2, 25, 35), refundedBefore(4, 1, 36, 38), repeated(1, 1, 32, 42), lostRefund(2, 1, 36, 100)}, Violated, "sold 2 of 1"},
		{"the same, and only the answer that it was refunded was asked for in time", one, append(repeatedBeforeLost[:4:4], lostRefund(2, 1, 36, 100)), Holds, ""},
		{"a purchase needs the lost refund, and the final state does not", one,
			[]history.Op{bought(1, 1, 1, 2), bought(2, 2, 5, 6), refunded(2, 2, 7, 8), lostRefund(1, 1, 3, 10), read("left", 0, 20)}, Violated, "no order explains"},
		{"a purchase needs the lost refund, and the final state does, too", one,
			[]history.Op{bought(1, 1, 1, 2), bought(2, 2, 5, 6), refunded(2, 2, 7, 8), lostRefund(1, 1, 3, 10), read("left", 1, 20)}, Holds, ""},
		{"read before the last one ended", one, []history.Op{bought(1, 1, 1, 2), read("left", 99, 5), lostBuyOp(2, 2, 1, 9)}, Unknown, "in 1 reading, was not judged"},
		{"the same, next to sold-out answers and amounts", one, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(3, 3, 1, 3), 2), read("left", 99, 5), lostBuyOp(2, 2, 1, 9)}, Unknown, "in 1 reading, was not judged"},
		{"the same, next to sold-out answers and refunds", one, []history.Op{bought(1, 1, 1, 2), soldOutTo(3, 3, 3, 4), refunded(1, 1, 5, 6), read("left", 99, 8), lostBuyOp(2, 2, 1, 9)}, Unknown, "in 1 reading, was not judged"},
		{"nothing", one, nil, Unknown, "nothing was ordered"},
		{"too many", one, []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4)}, Violated, "sold 2 of 1"},
		{"sold out too early", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 3, 4)}, Violated, "nothing was left"},
		{"sold out at the same time", one, []history.Op{soldOutTo(1, 1, 1, 2), bought(2, 2, 2, 4)}, Holds, ""},
		{"sold out with a piece left", one, []history.Op{soldOutTo(1, 1, 1, 2)}, Violated, "only 0 of 1"},
		{"a lost answer took it", one, []history.Op{lostBuyOp(2, 2, 1, 2), soldOutTo(1, 1, 1, 2)}, Holds, ""},
		{"a lost answer came too late", one, []history.Op{soldOutTo(1, 1, 1, 2), lostBuyOp(2, 2, 3, 4)}, Violated, ""},
		{"repeated, by a program that sent it again by itself", one, []history.Op{repeated(1, 7, 1, 9), soldOutTo(2, 8, 3, 4)}, Holds, ""},
		{"the same, called after the refusal", one, []history.Op{soldOutTo(2, 8, 3, 4), repeated(1, 7, 5, 9)}, Violated, "sent only after that"},
		{"the same, and another has the piece", one, []history.Op{repeated(1, 7, 1, 9), bought(2, 8, 3, 4)}, Violated, "sold 2 of 1"},
		{"two that were sent again by themselves: the one called first counts", one, []history.Op{soldOutTo(2, 8, 3, 4), repeated(1, 7, 5, 6), repeated(3, 7, 1, 9)}, Holds, ""},
		{"repeated, its effect called in time", one, []history.Op{repeated(1, 7, 1, 2), bought(2, 7, 2, 4)}, Holds, ""},
		{"repeated, its effect called too late", one, []history.Op{repeated(1, 7, 1, 2), bought(2, 7, 3, 4)}, Violated, ""},
		{"repeated, so the lost one took it", one, []history.Op{lostBuyOp(1, 7, 1, 2), repeated(1, 7, 3, 4), bought(2, 8, 5, 6)}, Violated, ""},
		{"repeated twice round a lost one, meaning a success still to come", one, twice, Holds, ""},
		{"the same with a refund", one, append(twice[:4:4], refunded(5, 7, 20, 21)), Holds, ""},
		{"a purchase must leave room for one that reaches a low stock", history.Header{Stock: 7, Quantity: 5}, []history.Op{pieces(bought(3, 3, 0, 1), 5),
			bought(1, 1, 2, 10), pieces(bought(2, 2, 2, 20), 2), pieces(refunded(3, 3, 2, 30), 5), soldOutTo(4, 4, 2, 40)}, Holds, ""},
		{"oversold, where a search is not possible", one, long, Violated, "sold 2 of 1 at the most at one time"},
		{"a refund of which only an answer tells that it was before", one, own, Unknown, ""},
		{"the same, and more are sold than it explains", one, append(own[:3:3], append([]history.Op{bought(4, 4, 7, 8)}, own[3:]...)...), Violated, "sold 3 of 1"},
		{"read in between that too much was sold", history.Header{}, []history.Op{read("sold", 1, 10), lostBuyOp(1, 1, 1, 20)}, Violated, "counted 1 piece as sold"},
		{"told that fewer than none are left", history.Header{Stock: 9}, []history.Op{told(bought(1, 1, 1, 2), -7)}, Violated, "client 1 was told at 0.000 ms that -7 pieces were left after order 1"},
		{"the same, with refunds", history.Header{Stock: 9}, []history.Op{told(bought(1, 1, 1, 2), -7), refunded(1, 1, 3, 4)}, Violated, "-7 pieces were left"},
		{"told nothing", history.Header{Stock: 9}, []history.Op{told(bought(1, 1, 1, 2), -1)}, Holds, ""},
		{"stale has no effect", one, []history.Op{saleOp(history.Buy, 1, 1, 1, 2, history.Refused, history.Stale), bought(2, 2, 3, 4)}, Holds, ""},
		{"amounts: two refused, two left", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(2, 2, 3, 4), 2)}, Violated, ""},
		{"amounts: three refused, two left", history.Header{Stock: 3}, []history.Op{bought(1, 1, 1, 2), pieces(soldOutTo(2, 2, 3, 4), 3)}, Holds, ""},
		{"a refund makes room", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 4, 9), bought(2, 2, 3, 4)}, Holds, ""},
		{"a refund comes too late", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 5, 9), bought(2, 2, 3, 4)}, Violated, "all refunds called by then deducted"},
		{"sold out after a refund", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 5, 6)}, Violated, "fits no order"},
		{"sold out as a refund returned", one, []history.Op{bought(1, 1, 1, 2), refunded(1, 1, 3, 4), soldOutTo(2, 2, 4, 6)}, Holds, ""},
		{"refunded, so the lost one had taken it", history.Header{Stock: 4}, refundedLost, Violated, "sold 5 of 4"},
		{"refunded twice, one piece bought", one, refundedTwice, Violated, "no more than 1 was bought of it"},
		{"refunded twice, the first time without an answer", one, lostRefundTwice, Violated, "sold 2 of 1"},
		{"refunded twice, both bought", history.Header{Stock: 2}, []history.Op{bought(1, 1, 1, 2), lostBuyOp(1, 1, 3, 4), refunded(1, 1, 5, 6), refunded(1, 1, 7, 8)}, Holds, ""},
		{"refunded in parts", history.Header{Stock: 3}, []history.Op{pieces(bought(1, 1, 1, 2), 3), refunded(1, 1, 3, 4), refunded(1, 1, 5, 6), pieces(bought(2, 2, 7, 8), 2), read("left", 0, 9)}, Holds, ""},
		{"refunded before it was bought, and an answer that it was bought refers to that", history.Header{Stock: 3}, []history.Op{refunded(2, 0, 38, 48), bought(1, 0, 52, 57), repeated(3, 0, 46, 67)}, Violated, "nothing that it sent before"},
		{"refunded before it was bought", one, []history.Op{refunded(1, 1, 1, 2), bought(1, 1, 3, 4)}, Violated, "was refunded, but nothing that it sent before"},
		{"refunded while it was bought", one, []history.Op{refunded(1, 1, 2, 3), bought(2, 1, 1, 4), bought(3, 3, 5, 6)}, Holds, ""},
		{"called refunded by a program that refunded it again by itself", one, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.OK, history.Repeated)}, Holds, ""},
		{"called refunded after a lost refund", one, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), saleOp(history.Refund, 1, 1, 5, 6, history.OK, history.Repeated), bought(2, 2, 7, 8)}, Holds, ""},
		{"a lost refund of a lost purchase", history.Header{Stock: 1}, []history.Op{lostBuyOp(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), bought(2, 2, 5, 6), read("left", 0, 7)}, Holds, ""},
		{"there was no moment for what was refunded", one, []history.Op{lostBuyOp(1, 1, 10, 15), bought(2, 2, 20, 25), refunded(1, 1, 30, 40)}, Violated, ""},
		{"one lost purchase explains a refusal or what is left", history.Header{Stock: 2}, lostEitherWay, Violated, "nothing was left, but only 1 of 2"},
		{"it explains the refusal", history.Header{Stock: 2}, []history.Op{bought(1, 1, 1, 2), lostBuyOp(2, 2, 1, 2), soldOutTo(3, 3, 3, 4), read("left", 0, 5), read("sold", 2, 7)}, Holds, ""},
		{"the final state shows too much", one, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3)}, Violated, "fits no order"},
		{"less than nothing was sold", history.Header{Stock: 2}, []history.Op{bought(1, 1, 1, 2), saleOp(history.Refund, 1, 1, 3, 4, history.Unknown, history.NoReason), read("left", 2, 5), read("sold", -1, 7)}, Violated, "fits no order"},
		{"half an order was sold", history.Header{Stock: 2}, []history.Op{pieces(lostBuyOp(1, 1, 1, 2), 2), soldOutTo(2, 2, 3, 4), read("left", 0, 5), read("sold", 1, 7)}, Violated, "fits no order"},
		{"a lost purchase between the readings", history.Header{Stock: 2}, []history.Op{lostBuyOp(1, 1, 1, 2), read("left", 2, 5), read("sold", 1, 7)}, Holds, ""},
		{"sold less and less", history.Header{Stock: 2}, []history.Op{lostBuyOp(1, 1, 1, 2), read("left", 1, 5), read("sold", 0, 7)}, Violated, "fits no order"},
		{"amounts that no lost purchases come to", history.Header{Stock: 9}, []history.Op{pieces(lostBuyOp(1, 1, 1, 2), 4), pieces(lostBuyOp(2, 2, 1, 2), 3), read("left", 4, 5)}, Violated, "fits no order"},
		{"amounts that lost purchases come to", history.Header{Stock: 9}, []history.Op{pieces(lostBuyOp(1, 1, 1, 2), 4), pieces(lostBuyOp(2, 2, 1, 2), 3), read("left", 6, 5), read("sold", 7, 9)}, Holds, ""},
		// A monitor that only counts accepts this one: at every moment the numbers alone are right.
		{"sold out twice round one purchase", history.Header{Stock: 1}, []history.Op{
			bought(1, 1, 1, 2), refunded(1, 1, 3, 10), soldOutTo(2, 2, 11, 12), bought(3, 3, 13, 14)}, Violated, ""},
	})
}

// TestSaleOpportunities checks the opportunities and verdicts that [Judge] gives: without an opportunity, a verdict
// is unknown.
func TestSaleOpportunities(t *testing.T) {
	other := func(op history.Op) history.Op { op.Key = history.Text("tablet"); return op }
	under := func(op history.Op, session int64) history.Op { op.Session = history.Int(session); return op }
	fence := withFence
	left := func(n int64) history.Op { return read("left", n, 100) }
	type want map[variant.Property]int64
	all := func(n int64) want {
		return want{variant.NoOversell: n, variant.NoUndersell: n, variant.OncePerOrder: 0, variant.Linearizable: n} // no order is sent again
	}
	for _, c := range []struct {
		name  string
		stock int64
		ops   []history.Op
		want  want
	}{
		{"two at once, one piece", 1, []history.Op{bought(1, 1, 1, 4), soldOutTo(2, 2, 2, 5), left(0)}, all(1)},
		{"three at once, two pieces", 2, []history.Op{bought(1, 1, 1, 4), bought(2, 2, 2, 5), soldOutTo(3, 3, 3, 6), left(0)}, all(2)},
		{"the refusal first", 1, []history.Op{soldOutTo(2, 2, 2, 3), bought(1, 1, 1, 4), left(0)}, all(1)},
		{"one client after the other", 1, []history.Op{bought(1, 1, 1, 2), soldOutTo(2, 2, 3, 5), left(0)}, all(0)},
		{"one client", 1, []history.Op{bought(1, 1, 1, 2), soldOutTo(1, 2, 2, 5), left(0)}, all(0)},
		{"two products", 1, []history.Op{bought(1, 1, 1, 4), other(bought(2, 2, 2, 5)), left(0), other(left(0))}, all(0)},
		{"no answers", 1, []history.Op{lostBuyOp(1, 1, 1, 4), lostBuyOp(2, 2, 2, 5), left(0)}, all(0)},
		{"one answer", 1, []history.Op{bought(1, 1, 1, 4), lostBuyOp(2, 2, 2, 5), left(0)}, all(0)},
		{"refusals only", 0, []history.Op{soldOutTo(1, 1, 1, 4), soldOutTo(2, 2, 2, 5), left(0)}, all(0)},
		{"stopped", 1, []history.Op{bought(1, 1, 1, 4), saleOp(history.Buy, 2, 2, 2, 5, history.Refused, history.Stopped), left(0)}, all(0)},
		{"enough for everybody", 5, []history.Op{bought(1, 1, 1, 4), bought(2, 2, 2, 5), left(3)},
			want{variant.NoOversell: 0, variant.NoUndersell: 1, variant.OncePerOrder: 0, variant.Linearizable: 0}},
		{"not read", 1, []history.Op{bought(1, 1, 1, 4), soldOutTo(2, 2, 2, 5)},
			want{variant.NoOversell: 1, variant.OncePerOrder: 0, variant.Linearizable: 1}},
		{"sent again", 1, []history.Op{bought(1, 1, 1, 2), repeated(1, 1, 3, 4)}, want{variant.OncePerOrder: 1}},
		{"sent again after a lost try", 1, []history.Op{lostBuyOp(1, 1, 1, 2), repeated(1, 1, 3, 4)}, want{variant.OncePerOrder: 1}},
		{"sent again after a refusal", 1, []history.Op{soldOutTo(1, 1, 1, 2), bought(1, 1, 1, 4)}, want{variant.OncePerOrder: 0}},
		{"sent again without any answer", 1, []history.Op{lostBuyOp(1, 1, 1, 2), lostBuyOp(1, 1, 3, 4), left(1)}, want{variant.OncePerOrder: 0}},
		{"one waits for the lock of the other", 1, []history.Op{
			acquired(1, 1, 1, 2, 50), acquired(2, 2, 3, 8, 50), under(bought(1, 1, 4, 5), 1), under(soldOutTo(2, 2, 9, 10), 2), left(0)}, all(1)},
		{"one was refused the lock, and tries again", 1, []history.Op{
			acquired(1, 1, 1, 2, 50), held(2, 2, 3, 4), under(bought(1, 1, 4, 5), 1), acquired(2, 3, 7, 8, 50), under(soldOutTo(2, 2, 9, 10), 3), left(0)}, all(1)},
		{"one comes for the lock when the other has bought", 1, []history.Op{
			acquired(1, 1, 1, 2, 50), under(bought(1, 1, 4, 5), 1), acquired(2, 2, 7, 8, 50), under(soldOutTo(2, 2, 9, 10), 2), left(0)}, all(0)},
		{"tokens of two clients at once", 5, []history.Op{fence(bought(1, 1, 1, 4), 1), fence(bought(2, 2, 2, 5), 2)}, want{variant.Fencing: 1}},
		{"the same token", 5, []history.Op{fence(bought(1, 1, 1, 4), 1), fence(bought(2, 2, 2, 5), 1)}, want{variant.Fencing: 0}},
		{"tokens one after the other", 5, []history.Op{fence(bought(1, 1, 1, 2), 1), fence(bought(2, 2, 3, 5), 2)}, want{variant.Fencing: 0}},
		{"a stale token", 5, []history.Op{fence(bought(2, 2, 1, 2), 2), fence(saleOp(history.Buy, 1, 1, 3, 4, history.Refused, history.Stale), 1)}, want{variant.Fencing: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Sale}, Stock: c.stock}, Trailer: &history.Trailer{}, Ops: complete(c.ops)}
			h.Header.Promises = []history.Promise{{Of: variant.Sale, Property: variant.Fencing}}
			for _, v := range Judge(h).Verdicts {
				n, asked := c.want[v.Property]
				if !asked {
					continue
				}
				result := Holds
				if n == 0 {
					result = Unknown
				}
				if v.Opportunities != n || v.Result != result {
					t.Errorf("%s: %v with %d opportunities (%s), want %v with %d", v.Property, v.Result, v.Opportunities, v.Why, result, n)
				}
			}
		})
	}
}

// TestOrdersSentAgainLate checks that an order sent again is recognized, and that the witness holds the answer of its
// first effect, however many other orders came in between.
func TestOrdersSentAgainLate(t *testing.T) {
	const n = 40_000
	h := history.Header{Stock: 2 * n}
	var ops []history.Op
	for i := range 2 * n {
		ops = append(ops, bought(int32(i%7), int64(i%n), time.Duration(2*i+1), time.Duration(2*i+2)))
	}
	m := saleOf(&h, variant.OncePerOrder)
	for i := range ops {
		m.Observe(&ops[i])
	}
	v := m.Verdict()
	if v.Result != Violated || v.Count != n || len(v.Witness) != 2 || v.Witness[0].Return != 2 || v.Witness[1].Return != 2*n+2 {
		t.Errorf("%+v", v)
	}
}
