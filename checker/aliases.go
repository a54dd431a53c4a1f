package checker

import "oversell/checker/monitor"

// Package monitor defines the parts of a monitor and its verdicts. These aliases let a
// caller who only wants a judgement import package checker alone.
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
