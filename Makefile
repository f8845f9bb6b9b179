# Everything a contributor runs. Needs `cargo` from rustup and a C linker; targets fetch, offer or name what is missing.

CARGO ?= cargo
# where rustup puts programs, also before the next login
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin
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
# of the program in packages, as in `make deb FEATURES=bpf`
FEATURES ?=
# release builds of packages depend on no folder and no clock
RELEASE = packaging/reproducibly $(CARGO) build --release --locked --package bentpipe-cli $(if $(FEATURES),--features '$(FEATURES)')
PACKAGING = $(TARGET)/release/packaging
MUSL := $(shell uname -m)-unknown-linux-musl
# those for which there are wheels
WHEELS ?= x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl
# answers the questions of targets that offer to install something
YES ?=
export YES

.PHONY: help build demo test check fmt clippy rustdoc tidy deny unused examples bench validate pages accept mutants docs fuzz bpf deb static reproducible sbom crates wheel wheels python-install python-test python-check need-cargo need-lints

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
	  'make accept AREA=engine|links|emulation|gateway|senders|field|rate|papers|reach|speed [PARTS="..."]   acceptance list, one line per item; LONG=1 takes hours' \
	  'make wheel      the Python package, in target/wheels; needs python3 with venv, and fetches maturin' \
	  'make wheels     the same for x86-64 and aarch64, glibc and musl; fetches Zig as a compiler of C' \
	  'make deb        the Debian package, in target/debian; fetches cargo-deb' \
	  'make static     a program that needs no library, in target/static' \
	  'make sbom, crates, reproducible   list of components; packages of the crates; two builds, same bytes' \
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

# Zig brings the headers and the C library of each target.
wheels: need-cargo $(VENV)/zig
	rm -f target/wheels/bentpipe-*.whl
	for target in $(WHEELS); do rustup target add $$target && \
	  PATH="$(abspath $(VENV))/bin:$$PATH" packaging/reproducibly $(VENV)/bin/maturin build --manifest-path python/Cargo.toml \
	    --profile wheel --zig --target $$target --out target/wheels || exit 1; done

$(VENV)/zig: $(VENV)/maturin
	$(VENV)/bin/pip install --quiet 'ziglang>=0.13'
	touch $@

deb: need-cargo $(TARGET)/tools/bin/cargo-deb
	$(RELEASE)
	rm -rf $(PACKAGING) target/debian
	$(BENTPIPE) generate man $(PACKAGING)/man
	for shell in bash zsh fish; do $(BENTPIPE) generate completions $$shell >$(PACKAGING)/bentpipe.$$shell || exit 1; done
	cp CHANGELOG.md $(PACKAGING)/changelog
	gzip --best --no-name $(PACKAGING)/man/*.1 $(PACKAGING)/changelog
	strip -o $(PACKAGING)/bentpipe $(BENTPIPE)
	packaging/reproducibly $(TARGET)/tools/bin/cargo-deb deb --no-build --package bentpipe-cli --output target/debian/ $(DEB_ARGS)

static: need-cargo
	rustup target add $(MUSL)
	$(RELEASE) --target $(MUSL)
	mkdir -p target/static
	strip -o target/static/bentpipe $(TARGET)/$(MUSL)/release/bentpipe

reproducible: need-cargo
	packaging/compare-builds

sbom: need-cargo $(TARGET)/tools/bin/cargo-cyclonedx
	packaging/sbom $(TARGET)/tools/bin/cargo-cyclonedx target/sbom

# `--no-verify`: each alone is built from its package only when those that it needs are in the registry
crates: need-cargo
	$(CARGO) package --locked --no-verify --allow-dirty --workspace $(addprefix --exclude ,bentpipe-field bentpipe-validate bentpipe-python lab fuzz xtask)

$(TARGET)/tools/bin/%:
	$(CARGO) install --quiet --locked --root $(TARGET)/tools $*

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
	@sh packaging/need-rust '$(CARGO)'

need-lints: need-cargo
	@$(CARGO) clippy --version >/dev/null 2>&1 && $(CARGO) fmt --version >/dev/null 2>&1 || rustup component add clippy rustfmt
