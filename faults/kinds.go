package faults

import (
	"slices"
	"strings"
	"time"
)

// Kinds lists all types of faults, in the order in which help texts list them.
var Kinds = []Kind{
	kindCrash,
	kindCancel,
	kindPause,
	kindFreeze,
	kindSlow,
	kindClock,
	kindResend,

	kindDelay,
	kindDropRequest,
	kindDropReply,
	kindLate,
	kindReset,
	kindHalfOpen,
	kindTrickle,
	kindCut,

	kindKill,
	kindRestart,
	kindFreezeNode,
	kindFailover,
	kindSplitBrain,
	kindScriptFlush,
	kindClientKill,
	kindClientPause,
	kindEvict,
	kindOOM,
	kindReadOnly,
	kindClockNode,
}

// Common parts of Kind.Syntax.
const (
	whoSyntax  = " [key PATTERN] [in OPERATION] [holder|waiter] [client N]"
	nodeSyntax = " [node N]"
	whenSyntax = " [at D] [every D] [nth N|P%] [times N|once|always]"
)

// anyCommand lists the parts of a fault that hits clients at their commands.
var anyCommand = []Part{TakesMoment, TakesCommand, TakesKey, TakesDuring, TakesState, TakesClient, TakesChance, TakesNth}

// onTheWire lists the parts of a fault that hits commands on the wire.
var onTheWire = append(without(anyCommand, TakesMoment), TakesNode)

func withAmount(parts []Part) []Part { return slices.Concat(parts, []Part{TakesAmount}) }

func without(parts []Part, part Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p == part })
}

func amount(f Fault) time.Duration { return f.Amount }

// verb returns the first word of sentences of this kind. Two kinds may share a verb: one that acts on a client and one
// that acts on a node.
func (k Kind) verb() string { return strings.TrimSuffix(k.Name, "-node") }

// timed reports whether faults of this kind fire at times, and not at commands.
func (k Kind) timed() bool { return k.Level == OnServer || k.Cuts }

// repeats reports whether a fault of this kind can hit the same client a second
// time. Only clock cannot: a client's clock is moved only once.
func (k Kind) repeats() bool { return k.Disrupt == nil || k.Disrupt(Fault{Amount: 1}).Clock == 0 }
