package sales

import (
	"math/rand/v2"
	"testing"
	"time"

	"oversell/checker/monitor/packtest"
)

// TestPackOrder checks that orders keep the value of their last change when their pages are packed in between, and
// that most pages are packed.
func TestPackOrder(t *testing.T) {
	ps := newOrders()
	var all []order
	r := rand.New(rand.NewPCG(1, 2))
	change := func(number int32) {
		o := ps.at(number)
		if was := all[number-1]; *o != was {
			t.Fatalf("order %d is %+v, and was %+v", number, *o, was)
		}
		o.effects, o.sent, o.fresh, o.pieces = 1, true, true, 1
		o.call = time.Duration(number) * time.Microsecond
		o.ret, o.client = o.call+time.Duration(r.IntN(1e6)), int32(r.IntN(64))
		if r.IntN(10) == 0 {
			o.tried, o.back, o.effects, o.told, o.fresh = int32(r.IntN(1<<20)), int32(r.IntN(3)), uint8(r.IntN(256)), r.IntN(2) == 0, false
			o.pieces, o.call = int32(r.IntN(1<<30)), -1<<40
		}
		all[number-1] = *o
	}
	for range 300_000 {
		number := ps.add(int32(r.IntN(2)))
		all = append(all, order{product: ps.at(number).product})
		change(number)
		if r.IntN(100) == 0 {
			change(1 + int32(r.IntN(len(all))))
		}
	}
	packed, bytes := ps.list.Packed()
	if packed < len(all)/2 {
		t.Errorf("%d of %d orders are packed", packed, len(all))
	}
	if each := float64(bytes) / float64(packed); each > 16 {
		t.Errorf("%.1f bytes for each packed order", each)
	}
	for i := range all {
		if o := ps.at(int32(i + 1)); *o != all[i] {
			t.Fatalf("order %d is %+v, and was %+v", i+1, *o, all[i])
		}
	}
}

// TestPackEveryFieldOfAnOrder checks that packing loses no field of an order, whether it was only sent or had an effect.
func TestPackEveryFieldOfAnOrder(t *testing.T) {
	packtest.Fields(t, packOrder, func(i int32) order {
		o := order{sent: true}
		if at := time.Duration(i) * time.Microsecond; i%2 == 0 {
			o.call, o.ret, o.client, o.pieces, o.effects, o.fresh = at, at+5, i%64, 1, 1, true
		}
		return o
	})
}
