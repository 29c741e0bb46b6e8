.DEFAULT_GOAL := help
# What needs more than the library does is a module of its own.
# These two are tested nightly and before a release, by the part adapters of make proof: they need a hundred other modules.
NIGHTLY := examples/adapters examples/service
EXAMPLES := $(filter-out $(NIGHTLY),$(patsubst %/go.mod,%,$(wildcard examples/*/go.mod)))
# go.work ties them together, and has the same list.
MODULES := bench cmd/turnstile internal/tests/databases saslkrb5 $(EXAMPLES)

.PHONY: help
help: ## Show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: test
test: ## Run the quick tests, and list what was left out; LONG=1 runs all, the long ones too
ifdef LONG
	TURNSTILE_LONG=1 go test -timeout 30m ./...
else
	@log=$$(mktemp); go test -v ./... >$$log 2>&1; status=$$?; \
	grep -E '^(ok|FAIL|panic:|\? )|^ *--- FAIL' $$log; \
	if [ $$status -ne 0 ]; then echo "whole output: $$log"; exit $$status; fi; \
	if grep -q '^ *--- SKIP' $$log; then \
		echo; echo "Left out: long tests, which 'make test LONG=1' runs, and tests that need a real ZooKeeper where there is none"; \
		echo "('make deps' installs Debian's, ZOOKEEPER_HOME names another, and ZOOKEEPER_UPGRADE a second one):"; \
		grep -E '^ *--- SKIP' $$log | sed -E 's/^ *--- SKIP: ([^ ]*).*/  \1/'; \
	fi; rm -f $$log
endif

.PHONY: race
race: ## Run the quick tests with the race detector, as CI does: no server may be missing
	ZKTEST_REQUIRE_REAL=1 go test -race ./...

.PHONY: proof
proof: ## All proofs in full, and a table of them; PROOF=sim,faults for some, PROOF=list for their names; TABLE=1 writes docs/measured/proof.md
	@FUZZ='$(FUZZ)' VERSIONS='$(VERSIONS)' TESTS='$(TESTS)' TABLE='$(TABLE)' .ci/proof $(PROOF)

# -count=1: some of these tests read files outside their module, whose changes the cache of results does not see.
.PHONY: examples
examples: ## Run every example that is a program, and test those that are modules of their own
	@for d in $(EXAMPLES); do (cd $$d && go test -count=1 -race ./...) || exit 1; done
	@for d in $(filter-out $(NIGHTLY:%=%/),$(dir $(wildcard examples/*/main.go))); do echo; echo "$$d:"; (cd $$d && go run .) || exit 1; done

.PHONY: bench
bench: ## Measure zk.Lock, Curator, kazoo and etcd beside us, and write docs/measured/rivals.md and README.md; BEFORE=commit: beside that state and the limits; HOT=regexp: micro-benchmarks beside BEFORE's
ifdef HOT
	@.ci/hot '$(or $(BEFORE),HEAD~1)' '$(HOT)'
else ifdef BEFORE
	cd bench && go run ./rivals -before $(BEFORE) -rivals limit
else
	@command -v etcd >/dev/null || { echo "etcd is missing: make deps BENCH=1"; exit 1; }
	cd bench && go run ./rivals -write
endif

.PHONY: flow
flow: ## Count the functions that run in one Lock, Unlock, TryLock and wake-up; CALL="-l lock" lists those of a Lock
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cd bench && \
		go build -cover -covermode=atomic -coverpkg=github.com/turnstile-go/turnstile/... -o "$$dir/flow" ./flow && GOCOVERDIR=$$dir "$$dir/flow" $(CALL)

SEEDS ?= 500

RUN_SEEDS = go test -count=1 -timeout 0 -v ./internal/tests/proofs/simulation -seeds $(SEEDS) $(if $(FIRST),-first $(FIRST)) -keep

.PHONY: sim
sim: ## Simulate the lock protocol with SEEDS seeds, 500 unless given; FIRST=501, KIND=everything
	$(RUN_SEEDS) -run 'TestSeeds$$' $(if $(KIND),-kind $(KIND))
ifeq ($(KIND),)
	$(RUN_SEEDS) -run TestLeaseSeeds
endif

.PHONY: mutants
mutants: ## Break the code in one place at a time, and see that a test notices; MUTANT='some words of its name' for one
	go test -count=1 -timeout 1h -p 1 -v -run 'TestMutants$$' ./internal/tests/proofs/mutants $(if $(MUTANT),-mutant '$(MUTANT)')

.PHONY: models
models: ## The lease clock as a theorem that z3 proves, and the decisions of a contender; WRITE=1 puts the results into docs
	TURNSTILE_LONG=1 ZKTEST_REQUIRE_REAL=1 go test -count=1 -v ./internal/tests/proofs/clockmodel $(WRITTEN)
	TURNSTILE_LONG=1 go test -count=1 -v -run TestExplore ./queue

# Figures go into docs/ with WRITE=1: nobody wants those of a busy machine there.
WRITTEN := $(if $(WRITE),-write)

NEMESIS = $(if $(SCHEDULE),-schedule '$(SCHEDULE)') $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED)) $(if $(LOCK),-locks $(LOCK)) \
	$(if $(RIVAL),-rival) $(if $(TICK),-tick $(TICK))

.PHONY: nemesis
nemesis: ## Real servers under faults, a short form of each schedule; SCHEDULE=name,name in full; FOR=15m, SEED=n, LOCK=name,name, RIVAL=1, TICK=2s, WRITE=1
	ZKTEST_REQUIRE_REAL=1 go test -count=1 -timeout 0 -v -run TestNemesis ./internal/tests/proofs/nemesis $(NEMESIS) $(WRITTEN)

.PHONY: api
api: ## Write the lists of the exported API in internal/tests/conformance/exportedapi/testdata anew
	go test -count=1 ./internal/tests/conformance/exportedapi -update

# The last version that builds with Go 1.25. Building it from source takes three minutes of two cores, once for each
# version of Go: the go command keeps the binary in its build cache.
# Its cache holds paths of the checkout, so each checkout has its own.
GOLANGCI := GOLANGCI_LINT_CACHE=$(CURDIR)/.golangci-cache go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
# golangci-lint has it too, but reads only Go files.
MISSPELL := go run github.com/golangci/misspell/cmd/misspell@v0.8.0

.PHONY: lint
lint: ## gofmt, golangci-lint (see .golangci.yml), go.mod files, spelling, links and names; QUICK=1, as in CI: of the other modules the command's only
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt would change these"; exit 1; }
	$(GOLANGCI) run --timeout 20m ./... $(if $(QUICK),./cmd/turnstile/...,$(MODULES:%=./%/...))
	@GOWORK=off go mod tidy -diff || { echo "go mod tidy would change this"; exit 1; }
	@for d in $(MODULES); do .ci/tidy -diff $$d || { echo "$$d: .ci/tidy would change this"; exit 1; }; done
	@git ls-files | xargs $(MISSPELL) -error
	go test -run . ./internal/tests/conformance/pages ./internal/tests/conformance/exportedapi ./internal/tests/conformance/release

.PHONY: release
release: ## Check that this commit can be released as VERSION, and print the tags; it tags and pushes nothing
	@.ci/release '$(VERSION)'

PACKAGES := zookeeper libcurator-recipes-java python3-kazoo chromium libfaketime prometheus \
	postgresql mariadb-server-core mariadb-client-core rpm man-db bash-completion z3 gcc libc6-dev \
	krb5-kdc krb5-admin-server krb5-user

.PHONY: deps
deps: ## Install what the tests use (Debian, as root); BENCH=1: and what the comparison with others uses besides
	@dpkg -s $(PACKAGES) >/dev/null 2>&1 || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PACKAGES); }
	@command -v javac >/dev/null || apt-get install -y --no-install-recommends default-jdk-headless
ifdef BENCH
	@command -v etcd >/dev/null || apt-get install -y --no-install-recommends etcd-server
endif
