# Two commands for a newcomer, `make test` and `make demo`. Both first set up what is missing.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
READY := .venv/.ready
SOURCES := algocapture tests $(wildcard benchmarks docs)

# One thread per test process: two processes on two cores do not fight.
ONE_THREAD := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.PHONY: help setup test test-all check demo browser clean

help:
	@echo "make test      set up, lint, types, the default suite"
	@echo "make test-all  the same with the slow tests"
	@echo "make check     lint and types only"
	@echo "make demo      set up, then run the quickstart: its verdict and its page"
	@echo "make clean     remove the environment and all caches"

setup: $(READY)

# The stamp is older than these files when they change: then, and only then, pip runs again.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12"; exit 1; }
	@echo "Setting up .venv (about a minute)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq -e '.[dev]' -c constraints.txt
	@touch $@

# Browser tests need Chromium. As root on Debian it is installed; elsewhere they skip, except in CI.
browser:
	@.ci/chromium

check: $(READY)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

test: check browser
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not gpu"
	@.ci/chromium --report

test-all: check browser
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not gpu"
	@.ci/chromium --report

demo: $(READY)
	$(BIN)/algocapture run quickstart --out runs/quickstart

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
