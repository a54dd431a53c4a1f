// Package ids judges histories of id generators: whether numbers are unique, without gaps, rising in real time, and
// linearizable.
package ids

import (
	"oversell/checker/monitor"
	"oversell/variant"
)

// Factories lists the monitors of id generators.
var Factories = []monitor.Factory{
	{Of: variant.IDs, Property: variant.UniqueIDs, New: counterJudge(variant.UniqueIDs, (*counter).unique)},
	{Of: variant.IDs, Property: variant.NoGaps, New: counterJudge(variant.NoGaps, (*counter).noGaps)},
	{Of: variant.IDs, Property: variant.RealTimeOrder, New: counterJudge(variant.RealTimeOrder, (*counter).inRealTime)},
	{Of: variant.IDs, Property: variant.Linearizable, New: counterJudge(variant.Linearizable, (*counter).linear)},
}
