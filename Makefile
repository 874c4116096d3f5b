# Everything a developer runs. `make` alone lists the targets; a machine needs git, a C toolchain, Rust and Python 3.11+, nothing else.

PYTHON ?= python3
VENV   ?= $(CURDIR)/.venv
BIN    := $(VENV)/bin
RUST   := $(wildcard Cargo.toml Cargo.lock rust/*/Cargo.toml) $(shell find rust -name '*.rs' 2>/dev/null)

export VIRTUAL_ENV := $(VENV)
export PYO3_PYTHON := $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help env build demo test lint bench wheel docs clean

help:  ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Isometry needs Python 3.11 or later, found " + sys.version)'
	$(PYTHON) -m venv "$(VENV)"
	"$(BIN)/python" -m pip install --quiet --upgrade pip
	"$(BIN)/python" -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*p["dependencies"], *(r for e in ("train", "test", "dev") for r in p["optional-dependencies"][e]), sep="\n")' > "$(VENV)/requirements.txt"
	"$(BIN)/python" -m pip install --progress-bar off -r "$(VENV)/requirements.txt"
	touch "$@"

$(VENV)/.built: $(VENV)/.installed $(RUST)
	"$(BIN)/maturin" develop --release
	touch "$@"

env: $(VENV)/.installed  ## the virtual environment with torch and all tools

build: $(VENV)/.built  ## the package in that environment, Rust in release mode

demo: build  ## train a scoRNN and an LSTM on the copying problem with delay 1000; about three minutes
	"$(BIN)/python" examples/copying_problem.py

test: lint  ## lint, then every Rust test on every instruction set of this processor, then every Python test
	paths=$$("$(BIN)/python" -c 'import isometry._core as c; print(*c.config()["simd_available"])') && \
	for path in $$paths; do \
		echo "ISOMETRY_SIMD=$$path" && ISOMETRY_SIMD=$$path cargo test --locked -p isometry-core --lib || exit 1; \
	done
	ISOMETRY_TEST_WHEEL=1 "$(BIN)/python" -m pytest -q

lint: build  ## rustfmt, clippy, ruff, mypy
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings
	"$(BIN)/ruff" check python tests examples benches
	"$(BIN)/ruff" format --check python tests examples benches
	"$(BIN)/mypy"

bench: build  ## speed against torch, side by side in one process, then the Rust benches
	"$(BIN)/isometry" bench
	cargo bench --locked -p isometry-core

wheel: env  ## an abi3 wheel and an sdist in dist/
	"$(BIN)/maturin" build --release --sdist --out dist

docs: build  ## the documentation is plain Markdown: check its links and run its examples
	"$(BIN)/python" -m pytest -q tests/test_examples.py tests/test_docs.py

clean:  ## remove what was built; the environment stays
	cargo clean
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f "$(VENV)/.built"
