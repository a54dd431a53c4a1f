# make help    this list
# make setup   install what the tests need (Debian packages)
# make test    the tests of every package, without those that take longest
# make slow    those, which CI runs as well: every failure in real runs, container servers, builds of
#              releases, the largest searches, samples of other people's code
# make long    the long cross-validation: checkers against porcupine, the model of
#              Redis against a real one, rules against checkers, schedules replayed;
#              1M tampered histories, every fault in every scenario, 200 kills;
#              a renamed copy of the module, a release for all platforms;
#              the libraries of docs/peers.md, which it rewrites; fuzzing of the readers
# make bench   the benchmarks
# make performance  benchmarks that compare oversell with other tools, in tables (bench)
# make trials  the gate, 100 times with a lock that is slower by 30 % and 100 times without
# make matrix  every failure with ten seeds; writes docs/faults.md
# make image   a small Redis image from Debian packages, for
#              machines without a registry; IMAGE=name:tag names it
# make rename  MODULE=example.com/you/oversell: changes the module's path everywhere
# make release static binaries for linux and darwin, amd64 and arm64, and checksums, in dist
# make docker  an image of oversell, with the linux binary for this machine's architecture
# make man     man pages in dist/man

GO ?= go
PACKAGES = $(shell $(GO) list ./...)
# Packages whose tests run without the race detector: code without goroutines, searches, tests that mostly wait, and
# other libraries. RACED_TESTS, or tests of other packages, cover the shared tables of a search, concurrent judging, the
# variants, and the suites with the race detector.
UNRACED = oversell/lockimpl oversell/lockimpl/lockfinding oversell/lockimpl/lockload oversell/lockimpl/lockrules oversell/lockimpl/locksearch oversell/lockimpl/locktest \
	oversell/queueimpl oversell/queueimpl/queuerules oversell/queueimpl/queuetest oversell/stockimpl oversell/stockimpl/stockrules oversell/stockimpl/stocktest \
	oversell/adapters/... oversell/campaign/judging oversell/checker/... oversell/examples/... oversell/explore/... oversell/foreign oversell/history/marks oversell/load/arrival oversell/reports/... oversell/variant \
	oversell/internal/alike oversell/internal/closed oversell/internal/edn oversell/internal/errclass oversell/internal/exactjson oversell/internal/freeport oversell/internal/hugepages oversell/internal/inpieces oversell/internal/jsonscan \
	oversell/internal/keyname oversell/internal/layout oversell/internal/limits oversell/internal/loopback oversell/internal/mutants oversell/internal/names oversell/internal/numset oversell/internal/phrase oversell/internal/printable \
	oversell/internal/rediscmd oversell/internal/redismodel/... oversell/internal/release oversell/internal/stats oversell/internal/workdir oversell/internal/yamlfile
# Tests of other packages that compute much in one goroutine.
SEQUENTIAL_TESTS = TestAcceptedIsValid|TestStreamIsWhatReadReads|TestCutALargeFile|TestFollowSaysWhatReadSays|TestRoundTrip
SEQUENTIAL = oversell/history
RACED_TESTS = '^(TestVisited|TestMemoGrows|TestInconclusive|TestThreadCancelled|TestJudgeIsDeterministicAndAdvancingChangesNothing|TestNamesFirst|TestGoroutinesShareAState)$$'
# More of them, which need servers that answer in time.
TIMED_TESTS = '^(TestCounterexamplesReplay|TestExample|TestDoubt|TestAgain|TestBusy|TestReplayFailsWhileTheBugIsThere|TestLineOutlivesItsHastyWaiters)$$'
# Unraced packages that use one CPU for long, and wait for nothing; they run beside the tests that wait for servers.
BESIDE = oversell/checker/... oversell/foreign oversell/internal/names oversell/internal/redismodel/... oversell/load/arrival
# Packages that load a server to its limit run one at a time.
LOADED = oversell/campaign oversell/compare oversell/claims oversell/gate oversell/cmd/oversell
# Containers check their health for themselves, which fails if the machine is busy.
CONTAINERS = oversell/server/container
# Of cmd/oversell only these run with the race detector: without it clients are too fast for their lock to break.
SLOW_CLIENTS = TestStopOnViolation.*
# Of campaign, which mostly waits for runs, these run with the race detector: some runs of each engine, a run that is
# interrupted, and several at a time. All of it runs without.
RACED_CAMPAIGN = '^(TestMux|TestQueues|TestDispatch|TestInterruptedCampaignLeavesOutTheRest|TestCheckStops)$$/^((1|6|9|11|14|16|18) |zset-locked with|reliable with|sqlite none|mariadb lua|postgres fair)'
# Of gate, compare and claims, which mostly wait for runs or compute in one goroutine, these run with the race detector. All of
# them run without.
RACED_COMPARISONS = '^(TestStopped|TestJudgingIsStopped|TestServersOfTheBaseline|TestSlowerOnRedis|TestComparison|TestStoppedComparison|TestEarlierHistoriesAreKept|TestInterrupted)$$'
# Tests that make test leaves to make slow: whole packages, and tests of others. A test belongs here if it takes more than some five
# seconds of one CPU, and a smaller test of its package, or of a package below it, covers the code.
SLOW = oversell/internal/release oversell/adapters $(CONTAINERS)
SLOW_TESTS = TestMatrix|TestExploreExamples|TestExploreSystems|TestLeasesByTheirLength|TestSystemsAreJudged|TestSectionsThatOutliveTheirLease|TestExploreNotices|TestEveryFaultInEveryScenario|TestSoundCombinationsPass|TestCommandMakesTheSameRun|TestTheStartIsNoLoad|TestWhoReadsTheServersClockSaysSo|TestNoPassWithoutOpportunity|TestSystemsInAGate|TestRealBuilds|TestDocumentedSearches|TestKilledAtAnyMoment|TestStateThatShowsLater|TestClientsHaveNumbers|TestLeaseLastsFromItsAnswer|TestProgramThatNeverGetsIn|TestGoesOnAtRandom|TestProgramsThatLeadOut|TestCounterexamplesReplay|TestClientsThatSleepUntil|TestUUIDOfATime|TestEachRule|TestManyRenewals|TestExploreSale|TestPanic|TestFlawedSalesAreCaught|TestUnsaidReservations|TestSQLConformance|TestSample|TestManyUsersAtOnce
SLOW_TESTS_OF = oversell/dispatchimpl oversell/explore oversell/lockimpl/locktest oversell/stockimpl oversell/stockimpl/stocktest oversell/internal/mutants
IMAGE ?= oversell-redis:local
DOCKER_IMAGE ?= oversell

# Tests need no DWARF tables, and a compiler that seldom collects garbage takes less processor time and more memory. Both
# together halve the time to compile go-redis with -race.
FAST = -gcflags=all=-dwarf=false '-toolexec=env GOGC=400'
# A program with the race detector waits for a second before it exits, unless it is told not to.
RACE = GORACE=atexit_sleep_ms=0 GOFLAGS="$$($(GO) env GOFLAGS) $(FAST)"
# Compiles like a release. Everything without the race detector is compiled like this, so
# that libraries are compiled only once.
STATIC = CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath $(FAST)"

.PHONY: help setup test served raced beside slow slow-served slow-beside commands check-format vet long bench performance trials matrix image rename release docker man

help:
	@sed -n '/^# make/,/^$$/s/^# //p' Makefile

setup:
	./setup.sh

# vet runs all checks, so go test need not.
test: check-format
	$(MAKE) -j 2 served beside

slow:
	$(MAKE) -j 2 slow-served slow-beside

# Tests with servers wait for much of their time, which leaves the CPU to the tests beside them. served first compiles with
# the race detector, and beside without it, so that no library is compiled twice at the same time.
served: raced
	$(RACE) $(GO) test -vet=off -race -p 2 -timeout 10m -run $(TIMED_TESTS) ./explore ./lockimpl ./lockimpl/locksearch ./lockimpl/locktest ./queueimpl/queuetest ./stockimpl/stocktest
	$(STATIC) $(GO) test -vet=off -p 3 -timeout 15m -skip '^($(SLOW_TESTS))$$' $(filter-out $(SLOW) $(shell $(GO) list $(BESIDE)),$(shell $(GO) list $(UNRACED)))
	$(RACE) $(GO) test -vet=off -race -p 1 -parallel 4 -timeout 15m -run $(RACED_COMPARISONS) $(filter-out oversell/campaign oversell/cmd/oversell,$(LOADED))
	$(RACE) $(GO) test -vet=off -race -parallel 4 -timeout 15m -run '^($(SLOW_CLIENTS))$$' ./cmd/oversell
	$(STATIC) $(GO) test -vet=off -p 1 -parallel 4 -timeout 15m -skip '^($(SLOW_TESTS)|$(SLOW_CLIENTS))$$' $(LOADED)

raced:
	$(RACE) $(GO) test -vet=off -race -p 3 -parallel 4 -timeout 15m -skip '^($(SEQUENTIAL_TESTS)|$(SLOW_TESTS))$$' $(filter-out $(LOADED) $(SLOW) $(shell $(GO) list $(UNRACED)),$(PACKAGES))

beside:
	nice -n 19 $(MAKE) vet
	$(STATIC) nice -n 19 $(GO) test -vet=off -p 1 -timeout 15m $(BESIDE)
	$(STATIC) nice -n 19 $(GO) test -vet=off -timeout 15m -run '^($(SEQUENTIAL_TESTS))$$' $(SEQUENTIAL)
	$(RACE) nice -n 19 $(GO) test -vet=off -race -p 1 -timeout 10m -run $(RACED_TESTS) ./explore ./explore/table ./checker ./internal/redismodel

slow-served:
	$(RACE) $(GO) test -vet=off -race -parallel 3 -timeout 15m $(CONTAINERS)
	$(RACE) $(GO) test -vet=off -race -parallel 4 -timeout 15m -run $(RACED_CAMPAIGN) ./campaign
	$(STATIC) $(GO) test -vet=off -p 2 -timeout 15m -run '^($(SLOW_TESTS))$$' $(SLOW_TESTS_OF)
	$(STATIC) $(GO) test -vet=off -p 1 -parallel 4 -timeout 15m -run '^($(SLOW_TESTS))$$' $(LOADED)

slow-beside:
	$(STATIC) nice -n 19 $(GO) test -vet=off -p 1 -timeout 15m $(filter-out $(CONTAINERS),$(SLOW))

check-format:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt'd:" $$bad; exit 1; fi

# With GOGC=400, staticcheck needs a quarter less processor time, and twice the memory.
vet:
	$(STATIC) $(GO) vet ./...
	$(STATIC) GOGC=400 $(GO) tool staticcheck ./...

long:
	OVERSELL_LONG=1 $(GO) test -p 1 -timeout 60m ./checker/... ./internal/redismodel ./explore/... ./wire ./internal/release ./adapters/golocks ./lockimpl/locktest ./queueimpl ./stockimpl ./internal/mutants
	OVERSELL_LONG=1 $(GO) test -p 1 -timeout 90m -run '^(TestTampered|TestEveryFaultInEveryScenario|TestNoPassWithoutOpportunity|TestServersOfOthersAreLeftAsTheyWere|TestCommandsOfTheDocumentsRun|TestDocumentedSearches|TestMux|TestFaultyPrograms|TestEmittedTestsFailWhileTheBugIsThere)$$' ./campaign ./cmd/oversell
	OVERSELL_LOSSES=2 $(GO) test -timeout 60m -parallel 3 -run '^TestLossesAreDeclared$$' ./campaign
	OVERSELL_PEERS=1 $(GO) test -timeout 60m -run '^Test(Peers|Searched)$$' ./adapters
	$(GO) test -run '^$$' -fuzz FuzzRead -fuzztime 2m ./internal/edn
	$(GO) test -run '^$$' -fuzz FuzzJepsen -fuzztime 2m ./foreign
	$(GO) test -run '^$$' -fuzz FuzzMap -fuzztime 2m ./foreign

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./history ./checker/... ./load/... ./scenarios ./internal/coro ./internal/redismodel ./explore/...

performance:
	$(GO) run ./bench

image:
	./image/build.sh $(IMAGE)

trials:
	OVERSELL_TRIALS=100 $(GO) test -timeout 90m -run '^TestTrials$$' -v ./gate

matrix:
	OVERSELL_MATRIX=10 $(GO) test -timeout 120m -parallel 3 -run '^TestMatrix$$' -v ./campaign

rename:
	@$(GO) run ./internal/rename "$(MODULE)"

release:
	GO="$(GO)" ./release.sh

# Directories in an image keep the permissions of the copied ones.
docker:
	PLATFORMS=linux/$$($(GO) env GOARCH) GO="$(GO)" ./release.sh
	rm -rf dist/root && mkdir -p dist/root/tmp dist/root/work dist/root/etc/ssl/certs && chmod 1777 dist/root/tmp dist/root/work
	@if [ -e /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt dist/root/etc/ssl/certs/; fi
	docker build --build-arg TARGETARCH=$$($(GO) env GOARCH) --tag $(DOCKER_IMAGE) .

man:
	$(STATIC) $(GO) run ./cmd/oversell man dist/man
