package checker

import "oversell/history"

// taskMonitors are the monitors of queues, of number generators and of
// dispatch, for the scenarios that are about them; the locks under them, and the
// sale behind a queue, are judged besides.
func taskMonitors(h *history.Header) []Monitor {
	switch h.Scenario {
	case "queue", "seckill-queued":
		return queueMonitors(h)
	case "ids", "floors":
		return idMonitors(h)
	case "dispatch":
		return dispatchMonitors(h)
	}
	return nil
}
