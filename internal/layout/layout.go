// Package layout lists the packages of this module by level. Its test fails if an import does not go strictly downward;
// the one exception is that variant imports clock.
package layout

// Levels lists the packages by level, from the bottom. A package may import only packages of lower levels, so packages
// of one level are independent. Test files may import any.
var Levels = [][]string{
	{"clock", "variant", "internal/printable", "internal/mark", "internal/names", "internal/errclass", "internal/loopback", "internal/freeport", "internal/closed", "internal/rename", "internal/rediscmd", "internal/phrase", "internal/stats", "internal/realtime", "internal/edn", "internal/hugepages", "internal/testlog", "internal/cputime", "internal/standstill"},
	{"internal/suitetest", "internal/child", "internal/digest", "history/marks", "internal/prefetch", "internal/numset", "internal/jsonscan", "internal/exactjson", "explore/table"},
	{"history", "internal/yamlfile", "internal/guard", "internal/workdir", "internal/limits", "internal/stepped", "internal/interrupt", "internal/keyname", "internal/alike", "internal/mutants/entry", "internal/coro", "internal/redismodel/lua", "internal/servertest", "internal/preload", "lockimpl/leases"},
	{"internal/redismodel", "internal/remote", "load/arrival", "load/mux"},
	{"server/instance"},
	{"server/container", "server/topology"},
	{"lockimpl", "server", "database", "wire"},
	{"checker/say", "lockimpl/lockclient", "adapters/golocks", "internal/emulated", "server/opentest"},
	{"checker/monitor", "lockimpl/lockfinding"},
	{"checker/linear", "checker/monitor/packtest", "lockimpl/lockrules"},
	{"checker/locks", "checker/sales", "checker/queues", "checker/ids", "checker/dispatch"},
	{"stockimpl", "queueimpl", "idimpl", "dispatchimpl", "checker", "load", "faults"},
	{"internal/mutants/sales", "internal/mutants/queues", "internal/inpieces", "queueimpl/queueclient", "stockimpl/stockmodel"},
	{"scenarios", "system", "reports", "foreign", "internal/mutants"},
	{"reports/page/chart"},
	{"explore/rules", "explore/servers", "reports/text", "reports/page", "reports/ci", "reports/reportstest"},
	{"explore/clients"},
	{"explore/replay", "explore/bubbletest"},
	{"explore", "watch", "campaign/judging"},
	{"lockimpl/locksearch", "lockimpl/lockload", "queueimpl/queuerules", "queueimpl/queueload", "stockimpl/stockrules"},
	{"campaign", "lockimpl/locktest", "stockimpl/stocktest", "queueimpl/queuetest", "database/databasetest"},
	{"gate", "compare", "claims"},
	{"cmd/oversell", "examples/shop", "adapters", "adapters/golang", "adapters/asynq", "bench"},
}
