// Package layout states how the packages of this module are stacked. Its test
// fails when an import does not run strictly downward.
package layout

// Levels lists the packages by level, from the bottom. A package may import
// packages of lower levels only, so packages of one level know nothing of each
// other. Test files and the conformance suites' own tests may look anywhere.
var Levels = [][]string{
	{"clock", "variant"},
	{"history", "internal/stepped", "internal/coro", "internal/redismodel"},
	{"lockimpl", "target", "database", "wire"},
	{"stockimpl", "queueimpl", "idimpl", "dispatchimpl", "checker", "load", "faults"},
	{"scenarios", "reports"},
	{"explore", "watch"},
	{"campaign", "lockimpl/locktest", "stockimpl/stocktest", "queueimpl/queuetest", "database/databasetest"},
	{"campaign/gate", "campaign/claims"},
	{"cmd/oversell"},
}
