// Package layout states how the packages of this module are stacked. Its test
// fails when an import does not run strictly downward.
package layout

// Levels lists the packages by level, from the bottom. A package may import
// packages of lower levels only, so packages of one level know nothing of each
// other. Test files and the conformance suites' own tests may look anywhere.
var Levels = [][]string{
	{"clock", "variant", "internal/printable", "internal/mark", "internal/names", "internal/errclass", "internal/loopback", "internal/freeport", "internal/child", "internal/rename", "internal/rediscmd", "internal/phrase", "internal/stats", "internal/realtime", "internal/edn", "internal/hugepages"},
	{"internal/exactjson", "explore/table"},
	{"history", "internal/yamlfile", "internal/guard", "internal/workdir", "internal/limits", "internal/stepped", "internal/interrupt", "internal/keyname", "internal/alike", "internal/mutants/entry", "internal/coro", "internal/redismodel/lua", "internal/servertest", "internal/preload"},
	{"internal/redismodel", "internal/remote", "load/arrival", "load/mux"},
	{"server/instance"},
	{"server/container", "server/topology"},
	{"lockimpl", "server", "database", "wire"},
	{"checker/say", "lockimpl/lockclient"},
	{"checker/monitor", "lockimpl/lockfinding"},
	{"checker/linear"},
	{"checker/locks", "checker/sales", "checker/queues", "checker/ids", "checker/dispatch"},
	{"stockimpl", "queueimpl", "idimpl", "dispatchimpl", "checker", "load", "faults"},
	{"internal/mutants/sales"},
	{"scenarios", "system", "reports", "foreign", "internal/mutants"},
	{"reports/page/chart"},
	{"explore/rules", "explore/servers", "reports/text", "reports/page", "reports/ci", "reports/reportstest"},
	{"explore/clients"},
	{"explore/replay", "explore/bubbletest"},
	{"explore", "watch", "campaign/judging"},
	{"lockimpl/locksearch", "lockimpl/lockload"},
	{"campaign", "lockimpl/locktest", "stockimpl/stocktest", "queueimpl/queuetest", "database/databasetest", "adapters/golocks"},
	{"gate", "compare", "claims"},
	{"cmd/oversell", "examples/shop", "adapters", "adapters/golang", "adapters/asynq", "bench"},
}
