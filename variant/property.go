package variant

// Property is the name of a property. Names are stable: JSON documents, JUnit files and plans of a gate contain them.
type Property string

// The properties that the checkers judge.
const (
	MutualExclusion  Property = "mutual-exclusion"
	OwnerOnlyRelease Property = "owner-only-release"
	Progress         Property = "progress"
	FIFO             Property = "fifo"
	Fencing          Property = "fencing"
	NoOversell       Property = "no-oversell"
	NoUndersell      Property = "no-undersell"
	OncePerOrder     Property = "once-per-order"
	Linearizable     Property = "linearizable"
	UniqueIDs        Property = "unique-ids"
	NoGaps           Property = "no-gaps"
	RealTimeOrder    Property = "real-time-order"

	NoLostTask          Property = "no-lost-task"
	NoDuplicateDelivery Property = "no-duplicate-delivery"
	EffectOnce          Property = "effect-once"
	NotEarly            Property = "not-early"
	InOrder             Property = "in-order"
	OneEntryPerID       Property = "one-entry-per-id"

	OneHolderPerTask Property = "one-holder-per-task"
	HolderCommits    Property = "holder-commits"
	TaskReturns      Property = "task-returns"
)

// Object is the kind of thing that a promise is about and whose operations are judged. A lock makes promises about
// holders, a sale about stock; both can promise to be linearizable, each for itself.
type Object string

// The objects.
const (
	Lock Object = "lock"
	Sale Object = "sale"
	// IDs is an id generator.
	IDs Object = "ids"
	// Queue is a task queue; the effects are its consumers'.
	Queue Object = "queue"
	// Dispatch is a pool of tasks of which each user holds one at a time.
	Dispatch Object = "dispatch"
)

// Objects lists all objects, in the order of the command list.
var Objects = []Object{Lock, Sale, Queue, IDs, Dispatch}

// PropertyInfo describes a property of an object.
type PropertyInfo struct {
	Of   Object   `json:"of"`
	Name Property `json:"name"`
	// Promise is the property in one sentence.
	Promise string `json:"promise"`
}

// Properties lists every property of every object in the order in which
// reports show them.
var Properties = []PropertyInfo{
	{Sale, NoOversell, "accepted sales never exceed the stock"},
	{Sale, NoUndersell, "initial = sold - returned + reserved + remaining, and no order is refused while stock was surely left"},
	{Sale, OncePerOrder, "one order id has one effect, however often it is sent"},
	{Sale, Fencing, "the sale never accepts an older fencing token after a newer one"},
	{Sale, Linearizable, "every answer of the sale fits one legal order of purchases, refunds and refusals"},
	{IDs, UniqueIDs, "no number is given out twice"},
	{IDs, NoGaps, "every number up to the highest is given out"},
	{IDs, RealTimeOrder, "no number is lower than one that was given out before it was asked for"},
	{IDs, Linearizable, "every number fits one legal order of a counter's steps"},
	{Queue, NoLostTask, "every task that was enqueued is handed out and done, or still there at the end"},
	{Queue, NoDuplicateDelivery, "no task is handed out twice"},
	{Queue, EffectOnce, "every task has its effect once, however often it is handed out"},
	{Queue, NotEarly, "no task is handed out before it is due"},
	{Queue, InOrder, "tasks are first handed out in the order in which they are due"},
	{Queue, OneEntryPerID, "an id is in the queue at most once"},
	{Queue, Progress, "while consumers look, a task that is due is handed out within a grace"},
	{Queue, Linearizable, "every entry, delivery, withdrawal and empty answer of the queue fits one legal order; refused calls are not judged"},
	{Dispatch, OneHolderPerTask, "no task is held by two users at once"},
	{Dispatch, HolderCommits, "a task is submitted once, and only by the user who holds it"},
	{Dispatch, TaskReturns, "a task held longer than the limit returns to the pool"},
	{Lock, MutualExclusion, "no two clients hold the lock at once within the validity each was promised"},
	{Lock, OwnerOnlyRelease, "no release or extend changes a lock that another client holds"},
	{Lock, Fencing, "fencing tokens rise from grant to grant"},
	{Lock, FIFO, "the client that joined the line first is served first"},
	{Lock, Progress, "while clients try, somebody obtains the lock within its lease plus a grace; none is stuck for good"},
	{Lock, Linearizable, "every answer of the lock fits one legal order of grants, refusals and releases"},
}

// PropertiesOf returns the properties of one object, in the order of reports.
func PropertiesOf(o Object) (ps []Property) {
	for _, info := range Properties {
		if info.Of == o {
			ps = append(ps, info.Name)
		}
	}
	return ps
}
