package variant

// Fault names a fault that is injected into a run or happens in it.
type Fault string

// The faults that flaws refer to.
const (
	// NoFault: load alone.
	NoFault Fault = "none"
	// Overrun: a critical section that outlives its lease, because it is long,
	// or because the client was paused or cut off.
	Overrun Fault = "overrun"
	// Resend: the same request sent twice, at once or after a lost reply.
	Resend Fault = "resend"
	// Crash: a client that dies between two of its commands.
	Crash Fault = "crash"
	// DropReply: a command that was applied and whose reply was lost.
	DropReply Fault = "drop-reply"
	// Retry: a driver that sends a command again by itself, and returns the second answer.
	Retry Fault = "retry"
	// LateRequest: a command that the server executes after its client gave up.
	LateRequest Fault = "late-request"
	// FreezeRenewal: a pause that also stops a background renewal.
	FreezeRenewal Fault = "freeze-renewal"
	// Failover: a replica promoted before it had all the writes.
	Failover Fault = "failover"
	// RestartEmpty: a server that comes back without its data.
	RestartEmpty Fault = "restart-empty"
	// ClockSkew: a client with a clock that is ahead of the others, or behind them.
	ClockSkew Fault = "clock-skew"
	// ClockJump: a step of one server's clock.
	ClockJump Fault = "clock-jump"
	// Evict: the server dropped the lock's key for lack of memory.
	Evict Fault = "evict"
)

// Faults lists all faults but [NoFault], in the order of reports.
var Faults = []Fault{Overrun, Resend, Crash, DropReply, Retry, LateRequest, FreezeRenewal, Failover, RestartEmpty, ClockSkew, ClockJump, Evict}
