# `make demo` and `make test` need nothing but Python 3.11 or newer and a package index; the tests also a Chromium (`browser`).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# uv installs in seconds what takes pip minutes. Where it cannot be had, or does not find what pip is told to find, pip
# does it.
UV := VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet -c constraints.txt

# The tests start many interpreters. Where this is set, as in many containers, each would compile all that it imports
# anew: uv leaves that to the first import.
unexport PYTHONDONTWRITEBYTECODE

AS_ROOT := $(shell test "$$(id -u)" = 0 || echo sudo -n)

.PHONY: demo app browser system-browser set-up test test-fast lint format bars torture docs docs-site release space clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch goes first and by exact version: that is the CPU build.
$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --no-compile "$$(grep '^torch==' constraints.txt)"
	-$(PIP) uv
	$(UV) -e ".[plot,nli]" || $(PIP) -e ".[plot,nli]"
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(UV) -e ".[dev]" || $(PIP) -e ".[dev]"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/spinformer demo

app: $(VENV)/.core
	$(UV) -e ".[app]" || $(PIP) -e ".[app]"
	$(BIN)/spinformer app

# The tests of the web page drive a Chromium: the one that SPINFORMER_CHROMIUM names or the system's; where there is none
# it is installed as a package of the system or, where that fails, as playwright's own.
CHROMIUM := test -n "$$SPINFORMER_CHROMIUM" || command -v chromium || command -v chromium-browser || command -v google-chrome

system-browser:
	@$(CHROMIUM) || { $(AS_ROOT) apt-get update -qq && $(AS_ROOT) apt-get install -y -qq chromium; } || true

browser: system-browser $(VENV)/.dev
	@$(CHROMIUM) || $(BIN)/python -m playwright install chromium

# The packages and the browser, at the same time.
set-up:
	@$(MAKE) --no-print-directory --jobs=2 browser

test: set-up
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The benchmarks that the documents quote; each writes research/results/NAME.json.
bars: $(VENV)/.dev
	$(BIN)/spinformer bench all

# Everything that we know to do against the library, in some hours; writes research/results/torture.json.
torture: set-up
	$(BIN)/spinformer torture --resume

# Fill README.md and docs/ with the figures in research/results, and draw the pictures of exactness.
docs: $(VENV)/.core
	$(BIN)/python -m research.tools.render
	$(BIN)/python -m research.tools.draw

# The documentation as a site in build/site, with a notebook of each tutorial. It needs no network to be built or read.
docs-site: $(VENV)/.core
	$(UV) -e ".[docs]" || $(PIP) -e ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -q -d build/site-cache docs build/site
	$(BIN)/python -m research.site.check build/site
	@echo "build/site/index.html"

# Wheel and sdist in dist/, built and checked with the site and the model cards. To publish: `twine upload dist/*`.
release: $(VENV)/.dev docs-site
	$(UV) -e ".[release]" || $(PIP) -e ".[release]"
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m research.tools.render --check
	$(BIN)/python -m research.tools.release

# The folder that a Hugging Face Space is made of: see docs/app.md.
space:
	rm -rf build/space
	mkdir -p build/space
	cp -r spaces/. src/spinformer build/space/
	find build/space -name __pycache__ -prune -exec rm -r {} +

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache test-output
