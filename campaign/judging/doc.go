// Package judging makes the report of a run from its history: verdicts, latencies, work done, phases around faults,
// server load, and the reason why a run is inconclusive.
package judging
