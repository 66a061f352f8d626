# Every target works on a fresh clone: it sets up .venv first, and again only when pyproject.toml or requirements/ change.
#   make demo [FOR=20s]   make test   make lint   make format
#   make simulate [SEEDS=1000]   make soak   make bench   make bench-peers [QUICK=1]   make requirements   make clean

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
SEEDS ?= 1000
# More than there are cores: many tests wait for a process, not for the processor.
WORKERS ?= 4
FOR ?=

BIN := .venv/bin
STAMP := .venv/.set-up
PEERS := build/peers-venv
CODE := $(wildcard src tests benchmarks soak examples)

# $(call timed,name,command): one line per check; a failing check prints its own output.
timed = @started=$$(date +%s%N); if output=$$($(2) 2>&1); then \
	awk -v n='$(1)' -v s=$$started -v e=$$(date +%s%N) 'BEGIN {printf "%-14s ok %7.1f s\n", n, (e - s) / 1e9}'; \
	else status=$$?; printf '%s\n%-14s FAILED\n' "$$output" '$(1)'; exit $$status; fi

# What the tests need of the system beside Python.
PACKAGES := tmux

.PHONY: demo test packages lint format simulate soak bench bench-peers requirements clean

demo: $(STAMP)
	@$(BIN)/python examples/demo.py $(if $(FOR),--for $(FOR))

test: lint packages
	@$(BIN)/python -m pytest -n $(WORKERS) tests

# Installed where we may (Debian, root); elsewhere the tests that need one are skipped, and name it.
packages:
	@for package in $(PACKAGES); do \
	  if command -v $$package >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then continue; fi; \
	  echo "installing the package $$package"; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $$package; } \
	    >/dev/null 2>&1 || echo "could not install the package $$package"; \
	done

lint: $(STAMP)
	$(call timed,ruff check,$(BIN)/ruff check --quiet --output-format concise $(CODE))
	$(call timed,ruff format,$(BIN)/ruff format --quiet --diff $(CODE))
	$(call timed,mypy,$(BIN)/mypy --no-error-summary $(CODE))
	$(call timed,layers,$(BIN)/lint-imports --no-cache)

format: $(STAMP)
	@$(BIN)/ruff check --quiet --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

simulate: $(STAMP)
	@$(BIN)/python -m wakeful.testing.simulate --seeds $(SEEDS)

soak: $(STAMP)
	@$(BIN)/python -m pytest -p no:xdist soak

bench: $(STAMP)
	@mkdir -p build
	@$(BIN)/python -m benchmarks

# The peers live in an environment of their own; one that cannot be installed is a line of the table.
bench-peers: $(STAMP) $(PEERS)/.set-up
	@$(BIN)/python -m benchmarks.peers $(if $(QUICK),--quick) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only '$(ONLY)')

$(PEERS)/.set-up: requirements/peers.txt
	@echo "setting up $(PEERS)"
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(PEERS); \
	  install="env VIRTUAL_ENV=$$PWD/$(PEERS) uv pip install --quiet --no-deps"; \
	else \
	  $(PYTHON) -m venv $(PEERS); \
	  install="$(PEERS)/bin/python -m pip --disable-pip-version-check -qq install --no-deps"; \
	fi; \
	$$install -r $< || grep -v '^#' $< | while read -r package; do \
	  $$install "$$package" || echo "could not install $$package"; \
	done
	@touch $@

# Hashes, no hosts: what is installed is the same everywhere, wherever it is fetched from. Needs uv.
requirements:
	@{ echo "# Made by 'make requirements' from pyproject.toml. Do not edit."; \
	   uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	     --upgrade --no-header --no-annotate --quiet; } > requirements/dev.new
	@mv requirements/dev.new requirements/dev.txt

clean:
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "wakeful needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1) (name another: make PYTHON=python3.12)"; exit 1; }
	@echo "setting up .venv"
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" .venv; \
	  export VIRTUAL_ENV="$$PWD/.venv"; \
	  uv pip install --quiet --require-hashes -r requirements/dev.txt; \
	  uv pip install --quiet --no-deps --no-build-isolation -e .; \
	else \
	  $(PYTHON) -m venv .venv; \
	  $(BIN)/python -m pip --disable-pip-version-check -qq install --require-hashes -r requirements/dev.txt; \
	  $(BIN)/python -m pip --disable-pip-version-check -qq install --no-deps --no-build-isolation -e .; \
	fi
	@touch $@
