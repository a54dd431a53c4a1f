package sales

import "oversell/checker/monitor"

// The kinds of orders that take the least memory, and all others.
const (
	onlySent = iota // it was sent, and nothing else is known of it
	usual           // it had one effect of one piece, reported by its own answer
	other
)

// packOrder writes or reads the differences of an order from the last one with an effect.
func packOrder(c *monitor.Packer, _ int32, o, before *order) {
	kind := o.packedAs(before)
	if monitor.Number(c, &kind); kind == onlySent {
		*o = order{product: before.product, sent: true}
		return
	}
	monitor.Since(c, &o.call, before.call)
	monitor.Since(c, &o.ret, o.call)
	monitor.Number(c, &o.client)
	if kind == usual {
		o.product, o.pieces, o.effects, o.sent, o.fresh = before.product, 1, 1, true, true
	} else {
		c.Bits(&o.sent, &o.fresh, &o.told)
		monitor.Number(c, &o.product)
		monitor.Number(c, &o.tried)
		monitor.Number(c, &o.pieces)
		monitor.Number(c, &o.back)
		monitor.Number(c, &o.effects)
	}
	if o.effects > 0 {
		*before = *o
	}
}

// packedAs returns how an order is packed: onlySent, usual or other.
func (o *order) packedAs(before *order) uint8 {
	switch {
	case !o.sent || o.told || o.product != before.product || o.tried != 0 || o.back != 0:
	case o.effects == 1 && o.pieces == 1 && o.fresh:
		return usual
	case *o == order{product: before.product, sent: true}:
		return onlySent
	}
	return other
}
