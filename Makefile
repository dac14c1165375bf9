# Agent Squad. `make help` lists the words; CI says the same ones.
SHELL       := /bin/bash
export CGO_ENABLED := 0
BIN         := bin
CACHE       := .cache
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS     := -s -w -X agentsquad/internal/app.Version=$(VERSION)
GO_PACKAGES := ./...
DATA        ?= $(CURDIR)/.squad
# golangci-lint remembers findings by absolute path: a cache shared between checkouts reports
# files that are no longer there. Each checkout has its own.
export GOLANGCI_LINT_CACHE := $(CURDIR)/$(CACHE)/golangci
LISTEN      ?= 127.0.0.1:7777

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

##@ Use

.PHONY: run
run: build ## build page and binary, start the demo on http://127.0.0.1:7777
	$(BIN)/squad up --demo --listen $(LISTEN) --data $(DATA)

.PHONY: build
build: $(CACHE)/web.stamp envd runsc ## build the page, the sandbox daemon and bin/squad
	go build -trimpath -tags embedweb,embedrunsc -ldflags '$(LDFLAGS)' -o $(BIN)/squad ./cmd/squad

.PHONY: envd
envd: # the daemon inside sandboxes: small, so that each exec inside is fast
	go build -trimpath -ldflags '-s -w' -o internal/gvisor/envd.bin ./cmd/envd

.PHONY: runsc
runsc: # gVisor alone: a sandbox starts it several times, and a small program starts faster
	go build -trimpath -ldflags '-s -w' -o internal/gvisor/runsc.bin ./internal/gvisor/runsc
	gzip -nc1 internal/gvisor/runsc.bin > internal/gvisor/runsc.bin.gz

##@ Work on it

.PHONY: dev
dev: envd ## server on :7777 without the built page, Vite with hot reload on :5173
	go build -o $(BIN)/squad ./cmd/squad
	trap 'kill $$(jobs -p)' EXIT; $(BIN)/squad up --demo --listen $(LISTEN) --data $(DATA) & npm --prefix web run dev

.PHONY: test
test: setup build ## everything: page, Go, sandboxes, SDK conformance, browser (installs what it needs)
	npm --prefix web test
	SQUAD_BIN=$(CURDIR)/$(BIN)/squad go test -timeout 25m $(GO_PACKAGES)

.PHONY: test-race
test-race: setup build ## Go tests with the race detector (needs gcc)
	CGO_ENABLED=1 SQUAD_BIN=$(CURDIR)/$(BIN)/squad go test -race -tags embedrunsc -timeout 40m $(GO_PACKAGES)

.PHONY: test-vm
test-vm: build ## limits, cgroup version 2 and the systemd unit, in an emulated Debian (as root, 5 minutes)
	test/vm/run

.PHONY: lint
lint: $(CACHE)/golangci-lint $(CACHE)/npm.stamp ## gofmt, vet, golangci, TypeScript
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run gofmt -w'; exit 1; }
	go vet ./...
	$(CACHE)/golangci-lint run ./...
	npm --prefix web run lint

.PHONY: gen
gen: ## regenerate Connect code and the page's API types
	go generate ./...
	npm --prefix web run gen

.PHONY: bench
bench: setup build ## speed as ratios to a floor measured in the same run (docs/BENCHMARKS.md)
	SQUAD_BIN=$(CURDIR)/$(BIN)/squad go test -p 1 -tags embedrunsc -run '^$$' -bench . -benchtime 1x -timeout 30m ./... | grep -E '^(Benchmark|pkg:|cpu:|FAIL|ok)'

.PHONY: setup
setup: ## install what tests need: Debian packages (as root) and npm packages
	scripts/setup

.PHONY: clean
clean: ## remove what was built (not your data)
	rm -rf $(BIN) $(CACHE) web/node_modules internal/gvisor/*.bin internal/gvisor/*.bin.gz

# --- pieces ---------------------------------------------------------------
# npm install and not npm ci: a registry mirror may lack optional packages of other
# platforms, which ci calls a broken lock file. Versions come from the lock file.

$(CACHE)/npm.stamp: web/package.json web/package-lock.json
	@mkdir -p $(CACHE)
	cd web && npm install --no-audit --no-fund --loglevel=error
	@touch $@

$(CACHE)/web.stamp: $(CACHE)/npm.stamp $(shell git ls-files web 2>/dev/null | grep -vE '^web/(dist|dev)/')
	npm --prefix web run build
	@touch $@

$(CACHE)/golangci-lint: tools/go.mod
	@mkdir -p $(CACHE)
	cd tools && go build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
