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
DEMO_PROGRAMS := salt salt-key salt-run salt-master salt-minion salt-module brine-executor brine-compiler
PROGRAMS := salt salt-cp salt-key salt-receipt salt-run salt-call salt-master salt-minion salt-sandbox salt-api salt-module
# The release line of Python Salt that the tests run against, and those that `make interop` runs against.
SALT_LINE ?= 3008
INTEROP_LINES ?= 3008 3007 3006
VENV    := $(TARGET)/venv/salt-$(SALT_LINE)
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)
# What links no wasmtime, with its tests. Cargo unifies the features of a dependency within a selection of packages: with one selection
# for all tests each crate is compiled once. (The feature is a program of its own, which changes nothing in the others.)
TESTED  := --workspace --exclude brine-engine --exclude brine-executor --exclude brine-compiler --features brine-master/guard
RUN_TESTS := $(if $(NEXTEST),cargo nextest run --no-fail-fast,cargo test --no-fail-fast)
# Tests across processes mostly wait for each other's programs: five of them at a time on two processors, which are busy for nine tenths of
# the time then.
RUN_ALL := $(RUN_TESTS)$(if $(NEXTEST), --profile waits --test-threads $(shell expr 5 '*' `nproc` / 2))

export BRINE_PYTHON = $(VENV)/bin/python

.PHONY: help setup build console browser modules venv demo test lint wasm docs engines programs test-executor test-rest interop formulas soak bench bench-scale bench-compare bench-parts bench-guard settings install audit clean

help: ## list the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1 - \2/p' $(MAKEFILE_LIST)

setup: ## install what the build needs from Debian's packages
	@tools/setup.sh

# One cargo call for what links no wasmtime, and one for each of the two programs that do: cargo unifies features
# within a call, and the executor must not get the compiler's.
build: setup console modules engines ## build everything
	cargo build --locked --profile $(PROFILE)

engines: setup
	cargo build --locked --profile $(PROFILE) -p brine-executor
	cargo build --locked --profile $(PROFILE) -p brine-compiler

console: setup ## fetch what salt-api's console takes from npm
	tools/console.sh $(TARGET)/console

# What the tests of the console need besides: Chromium, and a checker of accessibility.
browser: setup
	@tools/setup.sh browser || echo "setup: no Chromium here: the tests that need it do nothing" >&2
	tools/console.sh $(TARGET)/console-tests tests

modules: setup ## build the standard modules and the examples as components
	BRINE_GUEST_RUSTC_DIR=$(TARGET)/guest-rustc PROFILE=$(PROFILE) SALT_MODULE=$(SALT_MODULE) tools/build-modules.sh $(MODULES)

venv: setup ## install Python Salt and pepper, the peers of the interop tests
	@tools/setup.sh peers || echo "setup: no minisign or PostgreSQL here: the tests that need them do nothing" >&2
	@tools/salt-venv.sh $(SALT_LINE) $(VENV)
	@tools/pepper-venv.sh $(TARGET)/venv/pepper || echo "venv: no pepper here: the tests that need it do nothing" >&2

# Only what tools/demo.sh starts and calls, beside each other in target/demo. One cargo call, so that every crate is compiled
# once; the price is that this executor is linked with wasmtime's compiler, as the shipped one never is. The master is without its
# optional parts.
demo: setup ## see it work: master, minion, `salt '*' test.ping` from the sandbox
	cargo build --locked --profile demo --no-default-features $(addprefix --bin ,$(DEMO_PROGRAMS)) \
	  -p brine-cli -p brine-master -p brine-minion -p brine-executor -p brine-compiler -p brine-author
	BRINE_GUEST_RUSTC_DIR=$(TARGET)/guest-rustc BRINE_GUEST_TARGET_DIR=$(TARGET)/guests SALT_MODULE=$(TARGET)/demo/salt-module \
	  tools/build-modules.sh $(TARGET)/demo/modules test sys saltutil examples/hello examples/spin
	@BRINE_BIN=$(TARGET)/demo BRINE_EXAMPLES=$(TARGET)/demo/examples tools/demo.sh

# Clippy's driver is the compiler of the workspace's crates here: it looks at them while it builds them for the tests. `make lint`
# compiles everything a second time for that. As an option of cargo, because what the tests themselves build inherits the environment.
test: export CHECKED := --config 'build.rustc-workspace-wrapper="clippy-driver"'
test: export CLIPPY_ARGS := -Dwarnings
test: layout wasm test-executor test-rest ## all tests, and what `make lint` checks

layout: setup
	cargo fmt --all --check
	tools/check-imports.py

# One pass over all packages: which features they unify to does not matter to clippy.
lint: layout ## formatting, imports that run one way, and clippy without warnings
	cargo clippy --locked --workspace --all-targets --features brine-master/guard -- -D warnings

# Components link it, so it has to build for them: no I/O, no clock, no threads.
wasm: setup ## check that the renderers build for wasm32-unknown-unknown
	RUSTC=$$(BRINE_GUEST_RUSTC_DIR=$(TARGET)/guest-rustc tools/guest-rustc.sh) \
	  cargo check --locked -p brine-render --target wasm32-unknown-unknown --target-dir $(TARGET)/wasm-check

docs: setup ## the API documentation, in target/doc, without warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps

# The executor's own tests link a compiler, to make what they run; the shipped executor takes the tested one's place
# afterwards. In one call with the compiler, so that Cranelift is built once for both.
test-executor: setup
	cargo build $(CHECKED) --locked --bins --tests --benches -p brine-engine -p brine-executor -p brine-compiler
	$(RUN_TESTS) $(CHECKED) --locked -p brine-executor -p brine-compiler
	cargo build $(CHECKED) --locked -p brine-executor
	tools/check-executor.sh $(BIN)

# All else: crates, across processes, interop with the newest Python Salt. What that needs comes while the programs are built.
test-rest: setup browser
	@$(MAKE) venv & venv=$$!; $(MAKE) programs; built=$$?; wait $$venv && exit $$built
	$(RUN_ALL) $(CHECKED) --locked $(TESTED)
	$(if $(NEXTEST),cargo test $(CHECKED) --locked --doc $(TESTED))
	tools/check-modules.sh $(MODULES)

programs: setup console
	cargo build $(CHECKED) --locked --bins --tests --benches --examples $(TESTED)
	$(MAKE) modules SALT_MODULE=$(BIN)/salt-module

# `make test` runs the same against the newest line only, some of it in a shorter form.
interop: programs engines ## interop with Python Salt 3008, 3007 and 3006, as masters, minions and clients, and modules in all languages: the long forms
	@tools/pepper-venv.sh $(TARGET)/venv/pepper
	@for line in $(INTEROP_LINES); do \
	  echo "interop: Python Salt $$line"; \
	  tools/salt-venv.sh $$line $(TARGET)/venv/salt-$$line && \
	  BRINE_LONG=yes BRINE_PYTHON=$(TARGET)/venv/salt-$$line/bin/python $(RUN_ALL) --locked $(TESTED) --test interop || exit 1; \
	done
	BRINE_LONG=yes $(RUN_ALL) --locked $(TESTED) --test languages

# FORMULAS has a folder for each repository of tests/formulas/formulas.tsv, at its commit. V=-v prints each difference.
formulas: setup ## compile public formulas and compare with stock Salt; FORMULAS=folder
	@test -d "$(FORMULAS)" || { echo "make formulas FORMULAS=folder of the formulas that tests/formulas/formulas.tsv names" >&2; exit 2; }
	cargo build --locked --release -p brine-formulas
	tests/formulas/run.py $(TARGET)/release/brine-formulas $(FORMULAS) $(TARGET)/formulas $(V)

# The short form of the same test is in `make test`.
soak: setup ## a million malformed requests to a master: minutes, and a check of its memory
	BRINE_SOAK_REQUESTS=1000000 cargo test --locked -p brine-master --test master cve_2023_20897 -- --nocapture

# BENCH are options of brine-bench: --quick, --no-python, --drift JOBS, --write docs/benchmarks.md.
bench: venv ## measure Brine beside Python Salt: one table; BENCH=--quick for fewer runs
	$(MAKE) build PROFILE=release
	BRINE_BIN=$(TARGET)/release tools/bench.sh $(BENCH)

bench-compare: venv ## compare two builds in one run: A=folder of programs B=folder (each with ../modules); BENCH="--only files --repeat 9"
	@test -n "$(A)" && test -n "$(B)" || { echo "usage: make bench-compare A=FOLDER B=FOLDER" >&2; exit 2; }
	cargo build --release --locked -p brine-tests --bin brine-bench
	$(TARGET)/release/brine-bench --compare $(abspath $(A)) $(abspath $(B)) $(BENCH)

bench-parts: setup ## measure the parts, with criterion
	cargo bench --locked -p brine-protocol -p brine-master -p brine-zmtp -p brine-receipts
	cargo bench --locked -p brine-minion --bench receipts
	cargo bench --locked -p brine-executor --bench parts

bench-guard: setup ## count the instructions of hot paths; RECORD=yes writes the counts down
	@tools/setup.sh guard
	cargo build --release --locked --features brine-master/guard --bin brine-guard
	$(TARGET)/release/brine-guard $(if $(RECORD),--record)

bench-scale: ## measure a master with 100, 1,000 and 10,000 simulated minions (docs/scale.md); the first time makes their keys
	cargo build --locked --release -p brine-master -p brine-cli -p brine-swarm
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
	# To be read: the programs have the same files within them.
	install -d $(DESTDIR)$(PREFIX)/lib/brine/profiles
	install -m 644 sandbox/src/settings/profiles/*.yaml $(DESTDIR)$(PREFIX)/lib/brine/profiles
	# The programs answer shells themselves; these files only tell the shells to ask.
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	for program in $(PROGRAMS); do \
	  BRINE_MAN_PAGES=$(DESTDIR)$(PREFIX)/share/man/man1 $(TARGET)/release/$$program && \
	  echo "source <(COMPLETE=bash $$program)" >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program && \
	  printf '#compdef %s\nsource <(COMPLETE=zsh %s)\n' $$program $$program >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$program && \
	  echo "COMPLETE=fish $$program | source" >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$program.fish || exit 1; \
	done
	install -d $(DESTDIR)$(UNITS)
	for unit in salt-master.service salt-api.service salt-minion.service salt-minion@.service; do \
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
