# Brine's commands. Each does its own set-up on a Debian machine with the Rust toolchain; `make help` lists them.
SHELL := /bin/sh
.DEFAULT_GOAL := help

TARGET  := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),$(CURDIR)/target)
PROFILE ?= dev
PROFILE_DIR := $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
BIN     := $(TARGET)/$(PROFILE_DIR)
MODULES := $(TARGET)/modules
PREFIX  ?= /usr/local
UNITS   ?= $(PREFIX)/lib/systemd/system
# Where the programs look for their configuration.
SYSCONF := /etc/salt
PROGRAMS := salt salt-cp salt-key salt-run salt-call salt-master salt-minion salt-module
# The release line of Python Salt that the tests run against, and those that `make interop` runs against.
SALT_LINE ?= 3008
INTEROP_LINES ?= 3008 3007 3006
VENV    := $(TARGET)/venv/salt-$(SALT_LINE)
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)
RUN_TESTS := $(if $(NEXTEST),cargo nextest run --no-fail-fast,cargo test --no-fail-fast)

export BRINE_PYTHON = $(VENV)/bin/python

.PHONY: help setup build modules venv demo test lint test-executor test-unit test-e2e interop soak bench bench-scale bench-parts bench-guard settings install audit clean

help: ## list the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1 - \2/p' $(MAKEFILE_LIST)

setup: ## install what the build needs from Debian's packages
	@tools/setup.sh

# One cargo call for what links no wasmtime, and one for each of the two programs that do: cargo unifies features
# within a call, and the executor must not get the compiler's.
build: setup modules ## build everything
	cargo build --locked --profile $(PROFILE)
	cargo build --locked --profile $(PROFILE) -p brine-executor
	$(if $(HAVE_COMPILER),,cargo build --locked --profile $(PROFILE) -p brine-compiler)

modules: setup ## build the standard modules and the examples as components
	BRINE_GUEST_RUSTC_DIR=$(TARGET)/guest-rustc PROFILE=$(PROFILE) tools/build-modules.sh $(MODULES)

venv: setup ## install Python Salt, the peer of the interop tests
	@tools/setup.sh peers || echo "setup: no minisign or PostgreSQL here: the tests that need them do nothing" >&2
	@tools/salt-venv.sh $(SALT_LINE) $(VENV)

demo: build ## see it work: master, minion, `salt '*' test.ping` from the sandbox
	@BRINE_BIN=$(BIN) BRINE_EXAMPLES=$(TARGET)/examples tools/demo.sh

test: lint test-unit ## all tests
	$(MAKE) test-e2e HAVE_COMPILER=yes

lint: setup
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets -p brine-tests -p brine-swarm -- -D warnings
	cargo clippy --locked --all-targets -p brine-engine -p brine-executor -p brine-compiler -- -D warnings

# The executor's own tests link a compiler, to make what they run; so they come first, and `build` puts the shipped
# executor back in its place. In one call with the compiler, so that Cranelift is built once for both.
test-executor: setup
	cargo build --locked --bins --tests -p brine-executor -p brine-compiler
	$(RUN_TESTS) --locked -p brine-executor -p brine-compiler
	$(MAKE) build HAVE_COMPILER=yes
	tools/check-executor.sh $(BIN)

test-unit: test-executor venv ## unit and integration tests of each crate
	$(RUN_TESTS) --locked
	tools/check-modules.sh $(MODULES)

test-e2e: build venv ## across processes: end to end, and interop with Python Salt
	$(RUN_TESTS) --locked -p brine-tests -p brine-swarm

# `make test` runs the same against the newest line only.
interop: build ## interop with Python Salt 3008, 3007 and 3006, as masters, minions and clients
	@for line in $(INTEROP_LINES); do \
	  echo "interop: Python Salt $$line"; \
	  tools/salt-venv.sh $$line $(TARGET)/venv/salt-$$line && \
	  BRINE_PYTHON=$(TARGET)/venv/salt-$$line/bin/python $(RUN_TESTS) --locked -p brine-tests --test interop || exit 1; \
	done

# The short form of the same test is in `make test`.
soak: setup ## a million malformed requests to a master: minutes, and a check of its memory
	BRINE_SOAK_REQUESTS=1000000 cargo test --locked -p brine-master --test master cve_2023_20897 -- --nocapture

# BENCH are options of brine-bench: --quick, --no-python, --drift JOBS, --write docs/benchmarks.md.
bench: venv ## measure Brine beside Python Salt: one table; BENCH=--quick for fewer runs
	$(MAKE) build PROFILE=release
	BRINE_BIN=$(TARGET)/release tools/bench.sh $(BENCH)

bench-parts: setup ## measure the parts, with criterion
	cargo bench --locked -p brine-protocol -p brine-master -p brine-zmtp
	cargo bench --locked -p brine-executor --bench parts

bench-guard: setup ## count the instructions of hot paths; RECORD=yes writes the counts down
	@tools/setup.sh guard
	cargo build --release --locked --features brine-master/guard --bin brine-guard
	$(TARGET)/release/brine-guard $(if $(RECORD),--record)

bench-scale: ## measure a master with 100, 1,000 and 10,000 simulated minions (docs/scale.md); the first time makes their keys
	cargo build --locked --release -p brine-master -p brine-client -p brine-swarm
	BRINE_BIN=$(TARGET)/release tools/bench-scale.sh

settings: ## write docs/settings.md, pkg/master and pkg/minion from the table of settings
	BRINE_WRITE_SETTINGS=yes cargo test --locked -p brine-protocol --lib generated_files

install: ## build for release and install under PREFIX (default /usr/local)
	$(MAKE) build PROFILE=release
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/brine/modules $(DESTDIR)$(PREFIX)/lib/brine/python
	install -m 755 $(addprefix $(TARGET)/release/,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(TARGET)/release/brine-executor $(TARGET)/release/brine-compiler $(TARGET)/release/brine-pam $(DESTDIR)$(PREFIX)/lib/brine
	rm -f $(DESTDIR)$(PREFIX)/lib/brine/modules/standard.pub
	install -m 644 $(MODULES)/*.wasm $(MODULES)/*.wasm.minisig $(DESTDIR)$(PREFIX)/lib/brine/modules
	install -m 644 $(MODULES)/standard.pub $(DESTDIR)$(PREFIX)/lib/brine/modules
	# The programs answer shells themselves; these files only tell the shells to ask.
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	for program in $(PROGRAMS); do \
	  BRINE_MAN_PAGES=$(DESTDIR)$(PREFIX)/share/man/man1 $(TARGET)/release/$$program && \
	  echo "source <(COMPLETE=bash $$program)" >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program && \
	  printf '#compdef %s\nsource <(COMPLETE=zsh %s)\n' $$program $$program >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$program && \
	  echo "COMPLETE=fish $$program | source" >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$program.fish || exit 1; \
	done
	install -d $(DESTDIR)$(UNITS)
	for unit in salt-master.service salt-minion.service salt-minion@.service; do \
	  sed 's|@PREFIX@|$(PREFIX)|' pkg/$$unit >$(DESTDIR)$(UNITS)/$$unit || exit 1; \
	done
	install -m 644 client/python/brine.py $(DESTDIR)$(PREFIX)/lib/brine/python
	# Samples with every line commented out. What is there stays.
	install -d $(DESTDIR)$(SYSCONF)
	for file in master minion; do \
	  test -e $(DESTDIR)$(SYSCONF)/$$file || install -m 644 pkg/$$file $(DESTDIR)$(SYSCONF)/$$file || exit 1; \
	done

audit: ## advisories, licences and banned crates
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny check

clean: ## remove what was built
	cargo clean
