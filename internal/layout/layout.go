// Package layout states how the packages of this module are stacked. Its test
// fails when an import does not run strictly downward.
package layout

// Levels lists the packages by level, from the bottom. A package may import
// packages of lower levels only, so packages of one level know nothing of each
// other. Test files and the conformance suites' own tests may look anywhere.
var Levels = [][]string{
	{"clock", "variant", "internal/printable", "internal/mark", "internal/names", "internal/errclass", "internal/loopback", "internal/child", "internal/rename", "internal/rediscmd", "internal/phrase", "internal/stats", "internal/realtime"},
	{"history", "internal/yamlfile", "internal/guard", "internal/workdir", "internal/limits", "internal/stepped", "internal/interrupt", "internal/keyname", "internal/coro", "internal/redismodel/lua", "internal/servertest"},
	{"internal/redismodel"},
	{"server/instance"},
	{"server/container", "server/topology"},
	{"lockimpl", "server", "database", "wire"},
	{"stockimpl", "queueimpl", "idimpl", "dispatchimpl", "checker", "load", "faults"},
	{"scenarios", "system", "reports", "internal/mutants"},
	{"explore/rules", "reports/text", "reports/page", "reports/ci", "reports/reportstest"},
	{"explore", "watch"},
	{"campaign", "lockimpl/locktest", "stockimpl/stocktest", "queueimpl/queuetest", "database/databasetest"},
	{"gate", "claims"},
	{"cmd/oversell", "examples/shop"},
}
