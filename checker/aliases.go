package checker

import "oversell/checker/monitor"

// These aliases name types of package monitor, so that a caller that only needs a judgement imports only package
// checker.
type (
	Result  = monitor.Result
	Verdict = monitor.Verdict
	Monitor = monitor.Monitor
	Factory = monitor.Factory
	Shared  = monitor.Shared
)

// The results.
const (
	Unknown  = monitor.Unknown
	Holds    = monitor.Holds
	Violated = monitor.Violated
)
