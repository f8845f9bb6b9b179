# Everything a contributor runs. Needs `cargo` from rustup and a C linker; targets fetch or name the rest.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
BENTPIPE := $(TARGET)/release/bentpipe
XTASK := $(CARGO) run --quiet --package xtask --
TEST_ARGS ?=
VALIDATE_ARGS ?=
# of each of the three fuzzers
FUZZ_SECONDS ?= 60
FUZZ_HEADERS_ARGS ?=
FUZZ_GATEWAY_ARGS ?=
FUZZ_ADVICE_ARGS ?=
PYTHON ?= python3
# the environment of Python in which the package is built and tested
VENV := $(TARGET)/python
PYTEST_ARGS ?=
# all crates but the library that Python loads, which is built and checked by targets of its own
CRATES := --workspace --exclude bentpipe-python
AREA ?= engine
PARTS ?=
LONG ?=

.PHONY: help build demo test check fmt clippy rustdoc tidy deny unused examples bench validate pages accept mutants docs fuzz bpf wheel python-install python-test python-check need-cargo need-lints

help:
	@printf '%s\n' \
	  'make build      release build, leaves $(BENTPIPE)' \
	  'make demo       build, then a gateway with and without, live, in about a minute' \
	  'make test       all tests' \
	  'make check      format, lints, rustdoc, style limits, licences, unused dependencies' \
	  'make validate   compare with reference simulators and closed forms' \
	  'make examples   the commands in the documents run and print what is shown' \
	  'make pages      the pages bentpipe writes, looked at in Chromium' \
	  'make bench      speed and memory beside ns-2, live links beside the kernel' \
	  'make fuzz       $(FUZZ_SECONDS) s each of random packets against the header code, conversations through the gateway, signalling of rates' \
	  'make mutants    mutants of the lines that a change touches, 2 minutes at most' \
	  'make accept AREA=engine|links|emulation|gateway|senders|field|rate|papers|reach [PARTS="..."]   acceptance list, one line per item; LONG=1 takes hours' \
	  'make wheel      the Python package, in target/wheels; needs python3 with venv, and fetches maturin' \
	  'make python-test, python-check   tests, and types and lints, of the Python package' \
	  'make bpf        lints and tests of the congestion control in BPF; needs clang, libelf and zlib with headers, and root' \
	  'make docs       the book, in target/book'

build: need-cargo
	$(CARGO) build --release

demo: build
	$(BENTPIPE) demo --out target/demo

test: need-cargo
	$(CARGO) test $(CRATES) --no-fail-fast $(TEST_ARGS)
	$(CARGO) test --release $(CRATES) --test golden $(TEST_ARGS)

check: fmt clippy rustdoc tidy deny unused

fmt: need-lints
	$(CARGO) fmt --all --check

clippy: need-lints
	$(CARGO) clippy --quiet $(CRATES) --all-targets -- -D warnings

rustdoc: need-cargo
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --quiet $(CRATES) --no-deps --document-private-items

tidy: need-cargo
	$(XTASK) tidy

# Without the advisories, which need the network: `cargo deny check advisories` has them.
deny: need-cargo
	@if command -v cargo-deny >/dev/null 2>&1; then $(CARGO) deny --offline --workspace check bans licenses sources; \
	else echo 'deny: licences and sources NOT checked: cargo install --locked cargo-deny' >&2; fi

unused: need-cargo
	@if command -v cargo-machete >/dev/null 2>&1; then $(CARGO) machete; \
	else echo 'unused: unused dependencies NOT checked: cargo install --locked cargo-machete' >&2; fi

examples: need-cargo
	$(XTASK) examples

bench: need-cargo
	$(XTASK) bench

validate: need-cargo
	$(CARGO) run --quiet --release --bin bentpipe-validate -- $(VALIDATE_ARGS)

pages: need-cargo
	$(XTASK) pages

accept: need-cargo
	$(XTASK) accept $(AREA) $(PARTS) $(if $(LONG),--long)

mutants: need-cargo
	$(XTASK) mutants

fuzz: need-cargo
	$(CARGO) run --quiet --release --bin fuzz-headers -- --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS) $(FUZZ_HEADERS_ARGS)
	$(CARGO) run --quiet --release --bin fuzz-gateway -- --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS) $(FUZZ_GATEWAY_ARGS)
	$(CARGO) run --quiet --release --bin fuzz-advice -- --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS) $(FUZZ_ADVICE_ARGS)

bpf: need-lints
	$(CARGO) clippy --quiet --package bentpipe-kernel-rate --features bpf --all-targets -- -D warnings
	$(CARGO) clippy --quiet --package bentpipe-agent --features bpf --all-targets -- -D warnings
	$(CARGO) test --package bentpipe-kernel-rate --features bpf $(TEST_ARGS)
	$(CARGO) test --package bentpipe-cli --features bpf --test kernel $(TEST_ARGS)

# The console script is in it, so the command needs no second copy of the engine.
wheel: need-cargo $(VENV)/maturin
	rm -f target/wheels/bentpipe-*.whl
	$(VENV)/bin/maturin build --manifest-path python/Cargo.toml --profile wheel --out target/wheels

python-install: wheel $(VENV)/tools
	$(VENV)/bin/pip install --quiet --force-reinstall --no-deps target/wheels/bentpipe-*.whl

python-test: python-install
	cd python && $(abspath $(VENV))/bin/pytest -p no:cacheprovider $(PYTEST_ARGS)

python-check: need-lints $(VENV)/tools
	$(CARGO) clippy --quiet --package bentpipe-python -- -D warnings
	cd python && $(abspath $(VENV))/bin/mypy && $(abspath $(VENV))/bin/pyright --pythonpath $(abspath $(VENV))/bin/python

$(VENV)/maturin:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet 'maturin>=1.16,<2'
	touch $@

# the libraries that take tables over and spread runs are optional: tests skip those that are not there
$(VENV)/tools: $(VENV)/maturin python/requirements-test.txt
	$(VENV)/bin/pip install --quiet --requirement python/requirements-test.txt
	touch $@

docs:
	@if command -v mdbook >/dev/null 2>&1; then mdbook build docs; \
	else echo 'docs: needs mdbook: cargo install --locked mdbook'; exit 1; fi

need-cargo:
	@command -v $(CARGO) >/dev/null 2>&1 || { \
	  echo 'cargo is missing: install Rust from https://rustup.rs (and a C linker: apt-get install build-essential)'; exit 1; }

need-lints: need-cargo
	@$(CARGO) clippy --version >/dev/null 2>&1 && $(CARGO) fmt --version >/dev/null 2>&1 || rustup component add clippy rustfmt
