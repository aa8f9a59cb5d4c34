# make test is what a change has to pass. The other targets are its parts, and what takes longer.

TOOL = go tool -modfile=tools/go.mod

.PHONY: test format vet lint tidy unit examples fuzz bench

test: format vet lint tidy unit examples

format:
	@files=$$($(TOOL) gofumpt -modpath dsh -l .); test -z "$$files" || { echo "run gofumpt on:"; echo "$$files"; exit 1; }

vet:
	GOOS=linux go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...

lint:
	$(TOOL) staticcheck ./...

tidy:
	go mod tidy -diff
	cd tools && go mod tidy -diff
	cd examples/custom-module && go mod tidy -diff

unit:
	go test -race -timeout 20m ./...

# What stands outside of this module, as others' modules do.
examples:
	cd examples/custom-module && go vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./... && go test -race -timeout 10m ./...

# Each fuzz target for FUZZTIME, from the committed seeds on.
FUZZTIME = 20s
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz $$pkg $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -parallel 2 $$pkg; \
	  done; \
	done

# Ratios against the plain thing, measured in the same run; fails where one is far over its budget.
bench:
	go run ./bench -check
