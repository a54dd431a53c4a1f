// Package judging makes the report of a run from its history: verdicts, latencies, the work that
// was done, phases around faults, the load of servers, and why a run decides nothing.
package judging
