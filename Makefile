# `make` alone lists what there is. Every target sets up by itself; only python3 is needed.
PYTHON ?= python3
WORKERS ?= 2# test processes; one torch thread each

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install -qq --no-input --disable-pip-version-check -c constraints.txt
PYTEST := $(PY) -m pytest -n $(WORKERS)
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help setup demo check format test test-slow bench docs notebook dist lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## a virtual environment in .venv with turnout and its tools (a minute, once)

demo: setup ## eight methods on a world where clients stay away: a table and plots, in two minutes
	$(PY) -m turnout demo

check: setup ## lint, format and types, without changing anything
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy --strict src

format: setup ## put code into the form that `make check` wants
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

test: setup ## the tests, and the examples in docstrings (WORKERS=n processes)
	$(PYTEST)

test-slow: setup ## the tests that take minutes
	$(PYTEST) -m slow

bench: $(VENV)/.bench ## turnout beside its peers, into benchmarks/results.md (ten minutes; QUICK=1: two)
	$(PY) -m turnout bench $(if $(QUICK),--quick,--out benchmarks/results.md)

docs: setup ## the documentation as a site in site/; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

notebook: setup ## play examples/tour.ipynb anew, with its pictures
	$(VENV)/bin/jupyter execute --inplace examples/tour.ipynb

# The wheel is built from the sdist, and tried where nothing else of this checkout is in reach.
dist: setup ## sdist and wheel in dist/, the wheel tried in an environment of its own
	rm -rf dist build/dist
	$(PY) -m build
	$(PYTHON) -m venv build/dist
	build/dist/bin/python -m pip install -qq --no-input -c constraints.txt dist/*.whl
	cd build/dist && bin/python -c "from importlib.resources import files; \
		assert (files('turnout') / 'py.typed').is_file()"
	cd build/dist && bin/turnout --help && rm -rf smoke \
		&& bin/turnout demo --set run.rounds=3 --set run.seeds=[0] --out smoke && test -s smoke/report.html

# Torch comes first: asked for exactly, pip takes a build that is already at hand.
# The file's heading is kept; of torch's version only what every build of it shares.
LOCK := build/lock/bin/python -m pip
lock: ## resolve every extra and the benchmarks' peers anew into constraints.txt
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	$(LOCK) install -qq torch==2.13.0
	$(LOCK) install -qq torch==2.13.0 'click<8.5' hatchling datasets \
		-r benchmarks/requirements.txt '.[hub,dev]'
	$(LOCK) check
	{ grep '^#' constraints.txt; $(LOCK) freeze --exclude turnout \
		| grep -vE '^(nvidia|cuda|triton)' | sed -E 's/^(torch==[0-9.]+)\+.*/\1/'; } > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## remove what was built; keep .venv and runs/
	rm -rf build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an installation runs again only when what it was made from has changed.
$(VENV)/.dev: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "turnout needs Python 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Setting up $(VENV): a minute or so, most of it for torch"
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev benchmarks/requirements.txt
	$(PIP) -r benchmarks/requirements.txt
	@touch $@
