# All targets run in the project's virtual environment. They create it, and update it when a lock
# file changes.
#
#   make serve                        start the server on http://127.0.0.1:8123
#   make serve ARGS="--port 9000"     pass ARGS to the command of a target
#   make test PYTHON=python3.12       create the environment with PYTHON (3.11 or newer)
#   make test SEED=7                  draw other random numbers than by default

# For `pipefail`.
SHELL := /bin/bash

PYTHON ?= python3
ARGS ?=
SEED ?= 1

VENV := .venv
PY := $(VENV)/bin/python
# The lock files pin setuptools too. An isolated build would fetch an unpinned version.
# Print the name of each package, because the first installation takes most of a minute.
NAMES = awk '/^Collecting / { printf "  %s\n", $$2; fflush() } /^(ERROR|WARNING)/ { print; fflush() }'
PIP = $(PY) -m pip install --disable-pip-version-check --progress-bar off
# The lock is complete. To resolve it again, pip would ask for releases that have no hash in it.
INSTALL_LOCK = set -o pipefail; $(PIP) --require-hashes --no-deps -r
INSTALL_SELF = $(PIP) --quiet --no-deps --no-build-isolation -e .
# Tests of a file share servers, so they stay in one process. Four processes suit two cores too,
# because tests wait half of the time.
SPREAD = -n 4 --dist loadfile
PACKAGES = $(wildcard threadhold langgraph_runtime_sql hooks my_agent server tools)
# The lock has the library with every extra, and the packages of `server`, `hooks` and `my_agent`.
LOCK = $(VENV)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--all-extras --group app --group build --generate-hashes --no-emit-index-url --no-header $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help setup serve dev web test lint format docs bench history audit floors canary upstream wheel release image lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.dev-stamp ## create the environment: runtime, tests, linters

serve: $(VENV)/.runtime-stamp web ## start the server (make serve ARGS="--port 9000")
	$(PY) -m server serve $(ARGS)

dev: $(VENV)/.runtime-stamp ## start it with reload and print the LangGraph Studio link
	$(PY) -m server dev $(ARGS)

web: $(VENV)/.runtime-stamp ## build the web app, if Node 20 or later is there and it has changed
	@$(PY) -m tools.web

test: $(VENV)/.dev-stamp ## run the tests (make test ARGS="tests/unit -k store")
	THREADHOLD_SEED=$(SEED) PYTHONHASHSEED=$(SEED) $(PY) -m pytest $(SPREAD) $(ARGS)

lint: $(VENV)/.dev-stamp ## check style, formatting, types and the import rules
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(PACKAGES)
	$(VENV)/bin/lint-imports --no-logo

format: $(VENV)/.dev-stamp ## fix style and formatting
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(VENV)/.dev-stamp ## check the documentation and build it as a site in site/
	$(PY) -m tools.reference --check
	$(PY) -m zensical build --strict --clean
	$(PY) -m tools.offline site

bench: $(VENV)/.dev-stamp ## measure side by side with stock `langgraph dev`
	$(PY) -m bench $(ARGS)

history: $(VENV)/.dev-stamp ## inject faults into several servers and check their guarantees
	$(PY) -m tests.history $(ARGS)

audit: $(VENV)/.dev-stamp ## check licences, write build/sbom.cdx.json; ARGS=--advisories asks the index
	$(PY) -m tools.audit $(ARGS)

floors: $(VENV)/.dev-stamp ## test the lowest versions of all packages, and resolve with neighbours; ARGS=--short
	$(PY) -m tools.floors $(ARGS)

canary: $(VENV)/.dev-stamp ## try the newest releases of what we stand on, write docs/reference/compatibility.md
	$(PY) -m tests.canary $(ARGS)

upstream: $(VENV)/.dev-stamp ## run the tests of langgraph, its agents and its SDK on our saver and server; ARGS=--short
	$(PY) -m tests.upstream $(ARGS)

wheel: $(VENV)/.dev-stamp ## build the wheel, install it in a clean environment and serve with it
	$(PY) -m tests.package $(ARGS)

release: $(VENV)/.dev-stamp ## build wheel and sdist of the tag into dist/, and check them with each Python
	$(PY) -m tools.release $(ARGS)

image: $(VENV)/.dev-stamp ## build both images step by step with buildah, without a daemon, and serve with them
	$(PY) -m tests.image $(ARGS)

lock: $(VENV)/.dev-stamp ## update the lock files (make lock ARGS=--upgrade)
	$(LOCK) -o requirements.lock
	$(LOCK) --group dev -c requirements.lock -o requirements-dev.lock

clean: ## remove the environment and all caches; keep data/
	rm -rf $(VENV) build dist site *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Threadhold needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
		echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime-stamp: requirements.lock pyproject.toml | $(PY)
	@echo "Installing requirements.lock into $(VENV)"
	@$(INSTALL_LOCK) requirements.lock | $(NAMES)
	@$(INSTALL_SELF)
	@touch $@

# The development lock contains the runtime lock, pin for pin.
$(VENV)/.dev-stamp: requirements-dev.lock requirements.lock pyproject.toml | $(PY)
	@echo "Installing requirements-dev.lock into $(VENV)"
	@$(INSTALL_LOCK) requirements-dev.lock | $(NAMES)
	@$(INSTALL_SELF)
	@touch $(VENV)/.runtime-stamp $@
