package checker

import "oversell/checker/monitor"

// Package monitor defines the parts of a monitor and its verdicts. With these aliases a caller that only needs a
// judgement imports only package checker.
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
