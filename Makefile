# make setup   install what a machine lacks (Debian packages)
# make test    everything that CI checks
# make long    the long cross-validation of the checkers
# make bench   the benchmarks

GO ?= go

.PHONY: setup test check-format vet long bench

setup:
	./setup.sh

test: check-format vet
	$(GO) test -race -p 1 -parallel 4 -timeout 15m ./...

check-format:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt'd:" $$bad; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

long:
	OVERSELL_LONG=1 $(GO) test -timeout 60m ./checker

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./history ./checker
