# `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.

SHELL := /bin/sh
CARGO ?= cargo
# Passed on to the program or to the test runner: make demo ARGS="--documents 8", make test ARGS="crash::".
ARGS ?=
# How many seeds `make simulate` runs.
SEEDS ?= 1000
# What `make release` builds for.
TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl

# The demo needs neither Bedrock's SDK nor a renderer of pages, which take minutes to build.
lean := --locked --no-default-features --bin tidegate
# The tools that setup found or fetched, for whatever starts an embedded stack.
with_tools = TIDEGATE_TEMPORAL_CLI="$$(scripts/setup.sh --temporal-cli)"
# How many tests run at once: fewer where other processes want the cores, because fleets that starve run into time-outs.
threads = $$({ cat /proc/loadavg || sysctl -n vm.loadavg | tr -d '{}'; } 2>/dev/null | awk -v cores="$$(getconf _NPROCESSORS_ONLN)" \
	'{ load = $$1 } END { count = int(12 - load / cores); print (count < 4 ? 4 : count) }')
scripts := scripts/*.sh deploy/image/*.sh .ci/run

.DEFAULT_GOAL := help
.PHONY: help setup tools sdks demo test python door manifests release browser simulate mutate lint bench clean distclean
# The steps of a target are meant to run one after the other, under `make -j` too.
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## install what is missing (Temporal CLI, Redis) and say where everything is
	@scripts/setup.sh --report

# The same in silence, in front of the targets that need it.
tools:
	@scripts/setup.sh

# The vendors' SDKs, for two tests.
sdks:
	@scripts/setup.sh --sdks

demo: tools ## build, then process the sample documents through a simulated provider
	@$(CARGO) build $(lean)
	@$(with_tools) $(CARGO) run --quiet $(lean) -- demo $(ARGS)

test: tools sdks lint ## formatting, lints and every test, on a real dev server and a real Redis
	@$(with_tools) TIDEGATE_REQUIRE_SERVICES=1 RUST_TEST_THREADS="$${RUST_TEST_THREADS:-$(threads)}" $(CARGO) test --workspace --locked $(ARGS)

python: tools ## build the Python package and run its tests, with tools that setup fetches
	@scripts/setup.sh --python
	@# The program as `make test` builds it, so that what is there is not built in another way.
	@$(CARGO) build --workspace --locked --test end_to_end
	@$(with_tools) scripts/python.sh

door: tools ## the examples of the Temporal door on Temporal's own SDKs of Python and TypeScript
	@scripts/setup.sh --python
	@scripts/typescript.sh
	@$(with_tools) TIDEGATE_REQUIRE_DOOR=1 TIDEGATE_REQUIRE_SERVICES=1 $(CARGO) test --workspace --locked --test end_to_end -- --nocapture door::sdks $(ARGS)

manifests: ## render and check deploy/ and a release, offline, with tools that setup fetches
	@scripts/setup.sh --deploy
	@scripts/check-deploy.sh

release: ## the files of a release for Linux in target/distrib (docs/releasing.md); slow
	@scripts/setup.sh --release
	@scripts/release.sh $(TARGETS)
	@scripts/release.sh --sums

browser: tools ## the page in headless Chromium, if there is one; leaves pictures in target/pictures
	@$(with_tools) TIDEGATE_REQUIRE_SERVICES=1 $(CARGO) test --workspace --locked --test end_to_end -- --nocapture browser:: $(ARGS)

simulate: tools ## the limiter in virtual time under faults, a thousand seeds (SEEDS=…)
	@TIDEGATE_REQUIRE_SERVICES=1 TIDEGATE_SEEDS=$(SEEDS) $(CARGO) test --locked -p tidegate-quota --test simulation -- --nocapture $(ARGS)

mutate: tools ## each number of the limiter halved and doubled, and the test or simulated row that notices
	@$(CARGO) run --locked --release --quiet -p tidegate-quota --example mutate -- $(ARGS)

lint: ## formatting, clippy, scripts, samples, figures of the code; licences where cargo-deny is installed
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@# What `make demo` builds.
	$(CARGO) check $(lean)
	@# The Python package has a lock of its own, which a new dependency here makes old.
	$(CARGO) metadata --locked --format-version 1 --manifest-path clients/python/Cargo.toml >/dev/null
	@if shellcheck=$$(PATH="$$PATH:.tools/deploy/bin" command -v shellcheck); then \
	echo "shellcheck $$(echo $(scripts))"; "$$shellcheck" $(scripts); \
	else echo "SKIPPED shellcheck: not installed (the scripts were not linted; 'make manifests' fetches it)" >&2; fi
	@if python3 -c '' >/dev/null 2>&1; then echo "samples/generate.py --check"; python3 samples/generate.py --check; \
	else echo "SKIPPED samples/generate.py --check: no python3 (the samples were not compared)" >&2; fi
	@if python3 -c '' >/dev/null 2>&1; then python3 scripts/figures.py; \
	else echo "SKIPPED scripts/figures.py: no python3 (the figures of the code were not printed)" >&2; fi
	@if python3 -c '' >/dev/null 2>&1; then echo "scripts/door_stubs.py --check"; python3 scripts/door_stubs.py --check; \
	else echo "SKIPPED scripts/door_stubs.py --check: no python3 (types for other languages were not compared)" >&2; fi
	@if command -v cargo-deny >/dev/null 2>&1; then echo "cargo deny check"; $(CARGO) deny --locked check; \
	else echo "SKIPPED cargo deny check: not installed (licences and advisories were not checked)" >&2; fi

bench: tools ## the benchmarks
	@$(with_tools) $(CARGO) bench --workspace --locked $(ARGS)

clean: ## remove what was built and what the demo wrote
	@$(CARGO) clean
	@rm -rf out

distclean: clean ## clean, and remove the fetched tools
	@rm -rf .tools
