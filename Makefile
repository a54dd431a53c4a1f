# make setup   install what a machine lacks (Debian packages)
# make test    everything that CI checks
# make long    the long cross-validation: checkers against porcupine, the model of
#              Redis against a real one, rules against checkers, schedules replayed
# make bench   the benchmarks
# make matrix  every failure with ten seeds, and docs/faults.md from what came of it
# make image   a small Redis image from Debian packages, for
#              machines without a registry; IMAGE=name:tag names it

GO ?= go
IMAGE ?= oversell-redis:local

.PHONY: setup test check-format vet long bench matrix image

setup:
	./setup.sh

test: check-format vet
	$(GO) test -race -p 1 -parallel 4 -timeout 15m ./...
	$(GO) test -p 1 -timeout 5m ./explore ./examples/... # searches that are too large under the race detector

check-format:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt'd:" $$bad; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

long:
	OVERSELL_LONG=1 $(GO) test -p 1 -timeout 60m ./checker ./internal/redismodel ./explore

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./history ./checker ./internal/coro ./internal/redismodel ./explore

image:
	./image/build.sh $(IMAGE)

matrix:
	OVERSELL_MATRIX=10 $(GO) test -timeout 120m -parallel 3 -run '^TestMatrix$$' -v ./campaign
