# Developer commands; `make` alone lists the targets. Requirements: git, a C toolchain, Rust and Python 3.11+.

PYTHON ?= python3
VENV   ?= $(CURDIR)/.venv
BIN    := $(VENV)/bin
RUST   := $(wildcard Cargo.toml Cargo.lock rust/*/Cargo.toml) $(shell find rust -name '*.rs' -o -name '*.wgsl' 2>/dev/null)

# What takes long is listed at the end of every run.
SLOW   := --durations 20 --durations-min 5
ALONE  := $(shell grep -rl --include='test_*.py' 'mark\.alone' tests)

export VIRTUAL_ENV := $(VENV)
export PYO3_PYTHON := $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help env build demo test test-ci test-all test-gpu shaders gpu-widths gpu-tests gpu-laws gpu-proof gpu-barriers gpu-races test-cuda rust-tests python-tests rust-lint python-lint extra-tests oldest-tests gpu-report valgrind miri miri-short races test-aarch64 lint exports object cell bench measurements figures reliability wheel licences site docs docs-serve clean

help:  ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

$(BIN)/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Isometry needs Python 3.11 or later, found " + sys.version)'
	$(PYTHON) -m venv "$(VENV)"
	"$(BIN)/python" -m pip install --quiet uv
	"$(BIN)/uv" pip install --quiet -r pyproject.toml --extra dev

$(VENV)/.installed: pyproject.toml | $(BIN)/uv
	"$(BIN)/uv" pip install --quiet -r pyproject.toml --extra train --extra test --extra dev
	touch "$@"

# The extension is compiled while torch is downloaded, then installed.
$(VENV)/.compiled: pyproject.toml $(RUST) | $(BIN)/uv
	"$(BIN)/maturin" develop --release --skip-install
	touch "$@"

$(VENV)/.built: pyproject.toml $(RUST) | $(BIN)/uv
	$(MAKE) --no-print-directory -j2 "$(VENV)/.installed" "$(VENV)/.compiled"
	"$(BIN)/maturin" develop --release
	touch "$@"

env: $(VENV)/.installed  ## the virtual environment with torch and all tools

build: $(VENV)/.built  ## the package in that environment, Rust in release mode

demo: build  ## train a scoRNN and an LSTM on the copying problem with delay 1000; half a minute once built
	"$(BIN)/python" examples/copying_problem.py

test: build  ## lint, the Rust tests on this machine's instruction set and the quick Python tests: what a change is tried with
	$(MAKE) lint rust-tests PATHS=
	"$(BIN)/python" -m pytest -q $(SLOW) --brief -n 2 --dist worksteal -m "not alone and not long and not extra"

test-ci: lint rust-tests shaders python-tests  ## required for every change: every instruction set and dtype, slow tests, and those that need the machine alone

test-all: lint rust-tests shaders  ## also what takes minutes: wheel and sdist, the whole fuzz, training, every transform, valgrind
	"$(BIN)/python" -m pytest -q -n 2 --dist worksteal -m "not alone and not extra"
	"$(BIN)/python" -m pytest -q -m "alone and not extra" $(ALONE)
	$(MAKE) extra-tests
	$(MAKE) oldest-tests
	$(MAKE) gpu-widths
	$(MAKE) gpu-races
	$(MAKE) gpu-barriers
	$(MAKE) gpu-proof GPU_PROOF=arithmetic
	$(MAKE) valgrind

# Tests run the shipped kernels: the profile and the features of the extension, hence the same build of all dependencies.
WITH_GPU := --release --locked -p isometry-gpu -p isometry-py --features isometry-py/gpu

# The instruction sets; none: the machine's.
PATHS ?= $(shell "$(BIN)/python" -c 'import isometry._core as c; print(*c.config()["simd_available"])')

rust-tests: build
	cargo test --release --locked -p isometry-core --tests --no-run
	for path in $(or $(PATHS),""); do \
		echo "ISOMETRY_SIMD=$$path" && ISOMETRY_SIMD=$$path cargo test --release --locked -q -p isometry-core --lib -- --skip threads:: || exit 1; \
	done
	cargo test --release --locked -q -p isometry-core --lib threads::  # no instructions of their own: once
	cargo test --release --locked -q -p isometry-core --test '*'
	cargo test --release --locked -q -p isometry-core --doc

shaders: export ISOMETRY_SHADERS := $(CURDIR)/target/shaders
shaders: build  ## every shader is valid, for naga and for Tint, the compiler of Chromium: needs no GPU
	rm -rf "$(ISOMETRY_SHADERS)" && mkdir -p "$(ISOMETRY_SHADERS)"
	cargo test $(WITH_GPU) -q --tests -- shader::
	"$(BIN)/python" -m pytest -q tests/test_shaders.py

python-tests: build
	"$(BIN)/python" -m pytest -q $(SLOW) -n 2 --dist worksteal -m "not alone and not long and not extra"
	"$(BIN)/python" -m pytest -q $(SLOW) -m "alone and not long and not extra" $(ALONE)

extra-tests: build  ## against other packages (PEFT, transformers, ONNX Runtime, sb3-contrib, TorchRL, ...), which it installs
	"$(BIN)/uv" pip install --quiet -r pyproject.toml --extra extra --extra rl
	"$(BIN)/python" -m pytest -q $(SLOW) -n 2 --dist worksteal -m extra

# Without a GPU on the software adapter: ISOMETRY_GPU_ADAPTER=llvmpipe (apt install mesa-vulkan-drivers libvulkan1).
test-gpu: gpu-tests gpu-laws  ## the GPU backend, on the adapter that ISOMETRY_GPU_ADAPTER names

gpu-widths:  ## its Rust tests and tests/gpu on llvmpipe with subgroups of 8 and 16; those of 4 are in gpu-proof
	for width in 256 512; do LP_NATIVE_VECTOR_WIDTH=$$width ISOMETRY_GPU_ADAPTER=llvmpipe $(MAKE) gpu-tests || exit 1; done

gpu-tests gpu-laws gpu-barriers gpu-races: export ISOMETRY_REQUIRE_GPU := 1

gpu-tests: build
	cargo test $(WITH_GPU) -q --tests -- --skip shader::  # those are `make shaders`
	"$(BIN)/python" -m pytest -q $(SLOW) -n 2 --dist worksteal tests/gpu

gpu-laws: build
	"$(BIN)/python" -m pytest -q $(SLOW) -n 2 --dist worksteal tests/laws --backend gpu

# The extension in which ISOMETRY_GPU_PROOF has a meaning (rust/gpu/src/proof); tests load it where ISOMETRY_EXTENSION names it.
PROOF := $(CURDIR)/target/proof/_core.so

GPU_PROOF ?= reversed unwritten limits

gpu-barriers gpu-races: export LP_NATIVE_VECTOR_WIDTH := 128
gpu-barriers gpu-races: export ISOMETRY_GPU_ADAPTER := llvmpipe
gpu-proof: build shaders  ## test-gpu on llvmpipe as another GPU may compute: the other order, NaN in memory, the least limits
	cargo build --release --locked -p isometry-py --features isometry-py/gpu,isometry-py/proof
	mkdir -p "$(dir $(PROOF))" && cp target/release/lib_core.so "$(PROOF)"
	ISOMETRY_EXTENSION="$(PROOF)" ISOMETRY_GPU_PROOF="$(GPU_PROOF)" ISOMETRY_GPU_ADAPTER=llvmpipe LP_NATIVE_VECTOR_WIDTH=128 $(MAKE) test-gpu

gpu-races: export ISOMETRY_GPU_PROOF := races
gpu-races: build  ## the Rust tests of the GPU with a detector of races and of indices outside of arrays
	cargo test $(WITH_GPU) -q --tests -- --skip shader:: --skip more_matrices  # of those the detector notes each of 32,768 workgroups

gpu-barriers: build  ## every barrier of the shaders removed in turn, and the Rust test that fails without it
	tests=$$(cargo test $(WITH_GPU) -p isometry-gpu --lib --no-run --message-format json | sed -n 's/.*"executable":"\([^"]*isometry_gpu[^"]*\)".*/\1/p') && \
	"$(BIN)/python" .ci/barriers.py $$tests

test-cuda: build  ## tensors on CUDA: layers, graphs, waits, and the laws of the torch face there
	ISOMETRY_REQUIRE_CUDA=1 "$(BIN)/python" -m pytest -q -n 2 --dist worksteal tests/cuda
	"$(BIN)/python" -m pytest -q -n 2 --dist worksteal tests/laws --device cuda

gpu-report: build  ## what there is to know of a GPU, in some ten minutes: laws, counts, times, tiles, the calls on CUDA
	"$(BIN)/python" benches/gpu_report.py

# What torch 2.8 itself lacks: torch.compile of products of objects and of torch.func, dynamic sizes and torch's own RNNs in
# torch.export, complex numbers through gloo, checks of some arguments of torch.nn.RNN, sparse weights of it, and two calls of a DDP
# model with buffers before a backward pass.
oldest-tests: build  ## the torch tests on the oldest torch and NumPy that are supported, in an environment of its own (6 GB)
	$(PYTHON) -m venv "$(VENV)-oldest"
	"$(BIN)/uv" pip install --quiet --python "$(VENV)-oldest/bin/python" torch==2.8.0 "numpy==1.26.*" "scipy<1.16" "matplotlib<3.10" pytest pytest-timeout pytest-xdist hypothesis safetensors
	PYTHONPATH="$(CURDIR)/python" "$(VENV)-oldest/bin/python" -m pytest -q -n 2 --dist worksteal -m "not alone and not long and not extra" tests/torch -k "not (test_expressions and compiled) and not compiled_before_of_what_is_trained and not exported_layer_serves and not exported_programs and not two_processes and not (test_modes and test_layers) and not divided_weights and not errors_and_warnings_of_the_constructor and not (test_ways and sparse)"

valgrind:  ## the Rust tests with small sizes, and those at the limits, under valgrind, portable and AVX2 (it does not support AVX-512); some half an hour; TESTS="NAME ...": some
	@command -v valgrind > /dev/null || { echo "make valgrind needs valgrind (apt install valgrind)"; exit 1; }
	tests=$$(cargo test --release --locked -p isometry-core --lib --test limits --no-run --message-format json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p') && \
	for path in scalar avx2; do for test in $$tests; do \
		ISOMETRY_SIMD=$$path ISOMETRY_TEST_WORK=4000 valgrind -q --fair-sched=yes --error-exitcode=9 "$$test" --test-threads 1 --skip parallel:: $(TESTS) || exit 1; \
	done; done

# Neither of the two has a model of forks of threads and of limits of memory. Miri flushes no denormals, is too slow for tests that wait for
# threads of their own accord, and would take hours for many threads, for every cell and for every size of an operator.
# Guarded scratch memory leaks its records; rayon needs addresses that are numbers, which Stacked Borrows refuses; sums are held bit by bit.
MIRI := cargo +nightly miri test --locked -p isometry-core

miri miri-short: export ISOMETRY_SIMD := scalar
miri miri-short: export ISOMETRY_TEST_WORK := 300
miri miri-short: export MIRIFLAGS := -Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-deterministic-floats
miri:  ## the Rust tests with the smallest sizes under Miri, portable; TESTS="NAME ...": some, as all take hours
	$(MIRI) --lib -- --skip forked --skip denormals --skip threads --skip raised_flag --skip memory_that_ends --skip parts_of_a_stack_change \
		--skip preempted --skip every_member_runs_once --skip follows_the_t --skip follow_the_table --skip cotangents_of \
		--skip arrays_lengths --skip long_plans --skip functions_of_skew --skip products_of_ --skip their_products $(TESTS)

miri-short: export RUSTUP_AUTO_INSTALL := 0
miri-short:  ## some of them and examples of the crate, in two minutes, where there is a nightly Rust with miri and rust-src
	@if cargo +nightly miri --version 2> /dev/null && test -d "$$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library"; then \
		$(MIRI) --lib -- a_few_steps adopted:: && $(MIRI) --doc -- recurrence; \
	else echo "make miri-short: there is no nightly Rust with miri and rust-src, so nothing is run"; fi

races: export RUSTFLAGS := -Zsanitizer=thread
races: export ISOMETRY_TEST_WORK := 4000
races:  ## the Rust tests of threads under ThreadSanitizer
	cargo +nightly test -Zbuild-std --target "$$(rustc --print host-tuple)" --release --locked -p isometry-core --lib -- --test-threads 1 --skip forked --skip where_no_threads parallel:: recurrence:: batch::

test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-aarch64: export ISOMETRY_TEST_WORK := 4000
test-aarch64:  ## clippy and the Rust tests with small sizes on an emulated aarch64, NEON and portable
	@command -v aarch64-linux-gnu-gcc > /dev/null || { echo "make test-aarch64 needs aarch64-linux-gnu-gcc (apt install gcc-aarch64-linux-gnu)"; exit 1; }
	@command -v qemu-aarch64 > /dev/null || { echo "make test-aarch64 needs qemu-aarch64 (apt install qemu-user)"; exit 1; }
	@test -d "$$(rustc --print target-libdir --target aarch64-unknown-linux-gnu)" || { echo "make test-aarch64 needs Rust's library for aarch64 (rustup target add aarch64-unknown-linux-gnu)"; exit 1; }
	cargo clippy --release --locked -p isometry-kernels -p isometry-core --target aarch64-unknown-linux-gnu -- -D warnings
	for path in neon scalar; do \
		echo "ISOMETRY_SIMD=$$path" && ISOMETRY_SIMD=$$path cargo test --release --locked -p isometry-core --lib --target aarch64-unknown-linux-gnu -- --skip adopted:: --skip forked --skip where_no_threads || exit 1; \
	done  # neither forks of threads nor limits of memory are emulated

lint: build  ## rustfmt, clippy, ruff, mypy, the licences of all crates, the workflows
	$(MAKE) --no-print-directory -j2 -O rust-lint python-lint

rust-lint: build
	cargo fmt --all --check
	rustfmt --check rust/core/src/operators/*/*.rs  # modules that a macro declares, which cargo fmt does not see
	cargo clippy --release --locked --workspace --all-targets --features isometry-py/gpu -- -D warnings
	cargo clippy --release --locked -p isometry-py -- -D warnings  # the extension without the GPU
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked -q -p isometry-core -p isometry-kernels --no-deps

python-lint: build
	"$(BIN)/ruff" check python tests examples benches docs/conf.py docs/_site .ci
	"$(BIN)/ruff" format --check python tests examples benches docs/conf.py docs/_site .ci
	"$(BIN)/mypy"
	"$(BIN)/python" .ci/licences.py --check
	"$(BIN)/zizmor" --quiet --offline --persona pedantic .github

object cell:  ## write the new files of an operator or a cell and print the entries to make: make object NAME=rotation
	@PYTHONPATH=tests:tests/support $(PYTHON) tests/make_stubs.py $@ "$(NAME)"

exports: build  ## after an object or a cell was added: its names in the packages that export them
	PYTHONPATH=tests:tests/support "$(BIN)/python" tests/exports.py

bench: build  ## speed against torch, side by side in one process
	"$(BIN)/python" benches/bench.py

measurements: build  ## measure what the README shows, some ten minutes on an idle machine, and draw it; also: pip install geotorch
	"$(BIN)/python" benches/measure.py
	$(MAKE) figures

figures: build  ## draw the README's pictures and write its tables from the measured files in docs/figures
	"$(BIN)/python" benches/figures.py

reliability: build  ## everything that is tried to break the package, in full, most of a day: docs/reliability.md
	"$(BIN)/python" benches/reliability.py

wheel: env  ## an abi3 wheel and an sdist in dist/, checked, and the wheel tried in an empty environment
	"$(BIN)/python" .ci/wheel.py build
	"$(BIN)/python" .ci/wheel.py sdist
	"$(BIN)/python" .ci/wheel.py try

licences: env  ## write LICENSE-THIRD-PARTY, the licences of the crates in the extension
	"$(BIN)/python" .ci/licences.py

$(VENV)/.docs: $(VENV)/.installed
	"$(BIN)/uv" pip install --quiet -r pyproject.toml --extra docs
	touch "$@"

site: build $(VENV)/.docs  ## the documentation as a site in build/site; a warning is an error
	"$(BIN)/python" docs/_site/pages.py build/pages
	"$(BIN)/python" -m sphinx -q -W --keep-going -b html -c docs -d build/doctrees build/pages build/site

docs: site  ## the site, its links, its examples and (with Chromium) its widths on a telephone checked
	"$(BIN)/python" -m pytest -q -n 2 --dist worksteal tests/test_examples.py tests/test_docs.py tests/test_site.py tests/site

docs-serve: site  ## the site at http://localhost:8000
	"$(BIN)/python" -m http.server --bind 127.0.0.1 --directory build/site 8000

clean:  ## remove build outputs; keeps the environment
	cargo clean
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f "$(VENV)/.built" "$(VENV)/.compiled"
