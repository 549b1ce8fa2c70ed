# `make demo` and `make test` need nothing but Python 3.11 or newer and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-fast lint format bars docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch goes first and by exact version: that is the CPU build.
$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e ".[dev]"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/spinformer demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The measurements that the documents quote; each writes results/<name>.json.
bars: $(VENV)/.dev
	$(BIN)/spinformer bench all

# Fill README.md and docs/*.md with the figures in results/.
docs: $(VENV)/.core
	$(BIN)/python tools/render.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
