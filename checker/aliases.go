package checker

import "oversell/checker/monitor"

// What the monitors are made of, and what they say, is in package monitor; these are its
// names for those who only ask for a judgement.
type (
	Result  = monitor.Result
	Verdict = monitor.Verdict
	Monitor = monitor.Monitor
	Judged  = monitor.Judged
	Shared  = monitor.Shared
)

// The results.
const (
	Unknown  = monitor.Unknown
	Holds    = monitor.Holds
	Violated = monitor.Violated
)
