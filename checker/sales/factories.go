// Package sales judges histories of sales: whether more or less was sold than there was, each
// order had its effect once, tokens rose, and one order of the operations explains all
// answers.
package sales

import (
	"oversell/checker/monitor"
	"oversell/variant"
)

// The units of counts; see [monitor.Verdict].
const (
	inPieces   = "piece"
	inOrders   = "order"
	inRefusals = "refusal"
)

// Factories lists the monitors of sales.
var Factories = []monitor.Factory{
	{Of: variant.Sale, Property: variant.NoOversell, New: saleJudge(variant.NoOversell, "nothing was sold", noOversell)},
	{Of: variant.Sale, Property: variant.NoUndersell, New: saleJudge(variant.NoUndersell, "nothing was ordered", noUndersell)},
	{Of: variant.Sale, Property: variant.OncePerOrder, New: saleJudge(variant.OncePerOrder, "nothing was ordered", oncePerOrder)},
	{Of: variant.Sale, Property: variant.Fencing, OnlyPromised: true, New: saleJudge(variant.Fencing, "no operation of the sale showed a token", acceptTokens)},
	{Of: variant.Sale, Property: variant.Linearizable, New: saleJudge(variant.Linearizable, "nothing was ordered", saleLinear)},
}
