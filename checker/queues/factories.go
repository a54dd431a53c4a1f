// Package queues judges histories of task queues: which tasks were lost, delivered or
// executed twice, delivered early or out of order, and whether one order of the operations
// explains all answers.
package queues

import (
	"oversell/checker/monitor"
	"oversell/variant"
)

// Factories lists the monitors of task queues.
var Factories = []monitor.Factory{
	{Of: variant.Queue, Property: variant.NoLostTask, New: queueJudge(variant.NoLostTask, (*queue).lost)},
	{Of: variant.Queue, Property: variant.NoDuplicateDelivery, New: queueJudge(variant.NoDuplicateDelivery, (*queue).duplicates)},
	{Of: variant.Queue, Property: variant.EffectOnce, New: queueJudge(variant.EffectOnce, (*queue).effectsOnce)},
	{Of: variant.Queue, Property: variant.NotEarly, New: queueJudge(variant.NotEarly, (*queue).early)},
	{Of: variant.Queue, Property: variant.InOrder, New: queueJudge(variant.InOrder, (*queue).inOrder)},
	{Of: variant.Queue, Property: variant.OneEntryPerID, New: queueJudge(variant.OneEntryPerID, (*queue).oneEntry)},
	{Of: variant.Queue, Property: variant.Progress, New: queueJudge(variant.Progress, (*queue).progress)},
	{Of: variant.Queue, Property: variant.Linearizable, New: queueJudge(variant.Linearizable, (*queue).linear)},
}
