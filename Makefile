# make demo    set up, then train the digits on four ranks, one of them slow, and name it (DEMO_RANK=2, a rank, random, none)
# make test    set up, then the C++ tests, against the torch in .venv, and the Python tests
# make setup   only the set-up: .venv with torch (TORCH=), the build tools and the project, for PYTHON=
# make lint    clang-format, clang-tidy, ruff, mypy; `make format` rewrites what the two formatters would
# make conformance   torch's own distributed tests on gloo and through the wrapper, at 2 and 4 processes, compared
# make bench   the micro benches of the core
# make bench-mitigation   late ranks with mitigation and without, and peers: hours (BENCH_OPTIONS=--quick: minutes)
# make scoreboard   real runs with known culprits, scored, beside other tools' rules: three hours (BOARD_OPTIONS=--quick: minutes)
# make clean   remove what builds and tests made; .venv stays

SHELL := /bin/bash
PYTHON ?=
TORCH ?= torch
DEMO_RANK ?= 2
BENCH_OPTIONS ?= --rounds 7
BOARD_OPTIONS ?=
export PYTHON TORCH DEMO_RANK

.PHONY: demo test conformance setup lint format bench bench-mitigation scoreboard clean

demo: setup
	@.venv/bin/python examples/demo.py

test: setup
	@tooling/core_tests.sh c10d
	@.venv/bin/python -m pytest tests --ignore=tests/gpu

conformance: setup
	@.venv/bin/python tests/conformance/conformance.py

setup:
	@tooling/setup.sh

lint: setup
	@tooling/lint.sh

format: setup
	@tooling/lint.sh --rewrite

bench:
	@tooling/build.sh bench
	@build/bench/bench/micro/straggler_micro_bench

bench-mitigation: setup
	@for group in bench peers; do .venv/bin/python tooling/requirements.py $$group; done | \
	  xargs -d '\n' .venv/bin/python -m pip install --quiet
	@.venv/bin/python bench/mitigation/mitigation.py $(BENCH_OPTIONS)
	@.venv/bin/python bench/mitigation/healthy.py $(if $(findstring --quick,$(BENCH_OPTIONS)),--rounds 60,--json \
	  bench/mitigation/results/healthy.json)

scoreboard: setup
	@.venv/bin/python tooling/requirements.py bench | xargs -d '\n' .venv/bin/python -m pip install --quiet
	@.venv/bin/python bench/scoreboard/scoreboard.py $(BOARD_OPTIONS)

clean:
	rm -rf build .hypothesis .mypy_cache .pytest_cache .ruff_cache
