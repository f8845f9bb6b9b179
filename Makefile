# Everything a contributor runs. Needs `cargo` from rustup and a C linker; targets fetch or name the rest.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
BENTPIPE := $(TARGET)/release/bentpipe
XTASK := $(CARGO) run --quiet --package xtask --
TEST_ARGS ?=
VALIDATE_ARGS ?=
# of each of the two fuzzers
FUZZ_SECONDS ?= 60
ISSUE ?= spine
LONG ?=

.PHONY: help build demo test check fmt clippy rustdoc tidy deny examples bench validate pages accept docs fuzz need-cargo need-lints

help:
	@printf '%s\n' \
	  'make build      release build, leaves $(BENTPIPE)' \
	  'make demo       build, then a gateway with and without, live, in about a minute' \
	  'make test       all tests' \
	  'make check      format, lints, rustdoc, style limits, licences' \
	  'make validate   compare with reference simulators and closed forms' \
	  'make examples   the commands in the documents run and print what is shown' \
	  'make pages      the pages bentpipe writes, looked at in Chromium' \
	  'make bench      speed and memory beside ns-2, live links beside the kernel' \
	  'make fuzz       $(FUZZ_SECONDS) s of random packets against the header code, as long of conversations through the gateway' \
	  'make accept ISSUE=spine   the acceptance list of an issue, one line per item; LONG=1 takes hours' \
	  'make docs       the book, in target/book'

build: need-cargo
	$(CARGO) build --release

demo: build
	$(BENTPIPE) demo --out target/demo

test: need-cargo
	$(CARGO) test --workspace --no-fail-fast $(TEST_ARGS)
	$(CARGO) test --release --package bentpipe-sim --test golden $(TEST_ARGS)

check: fmt clippy rustdoc tidy deny

fmt: need-lints
	$(CARGO) fmt --all --check

clippy: need-lints
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings

rustdoc: need-cargo
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --quiet --workspace --no-deps --document-private-items

tidy: need-cargo
	$(XTASK) tidy
	$(XTASK) licences

# The licence list is checked above in any case; cargo-deny adds advisories and duplicates where it is installed.
deny:
	@if command -v cargo-deny >/dev/null 2>&1; then $(CARGO) deny --workspace check; \
	else echo 'deny: not installed, advisories not checked (cargo install --locked cargo-deny)'; fi

examples: need-cargo
	$(XTASK) examples

bench: need-cargo
	$(XTASK) bench

validate: need-cargo
	$(CARGO) run --quiet --release --package bentpipe-validate -- $(VALIDATE_ARGS)

pages: need-cargo
	$(XTASK) pages

accept: need-cargo
	$(XTASK) accept $(ISSUE) $(if $(LONG),--long)

fuzz: need-cargo
	$(CARGO) run --quiet --release --package bentpipe-wire --example fuzz -- --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)
	$(CARGO) run --quiet --release --package bentpipe-accelerate --example fuzz_gateway -- --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

docs:
	@if command -v mdbook >/dev/null 2>&1; then mdbook build docs; \
	else echo 'docs: needs mdbook: cargo install --locked mdbook'; exit 1; fi

need-cargo:
	@command -v $(CARGO) >/dev/null 2>&1 || { \
	  echo 'cargo is missing: install Rust from https://rustup.rs (and a C linker: apt-get install build-essential)'; exit 1; }

need-lints: need-cargo
	@$(CARGO) clippy --version >/dev/null 2>&1 && $(CARGO) fmt --version >/dev/null 2>&1 || rustup component add clippy rustfmt
