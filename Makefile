# Two commands for everybody (make demo, make test) and some for those who build.
# Each sets up what it needs: a virtual environment in .venv with the versions pinned
# in constraints.txt. After that nothing here uses a network.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The constraints bind build environments too, so that a build is as pinned as a run.
export PIP_CONSTRAINT = constraints.txt

.PHONY: demo test lint types tests docs bench browser clean

demo: $(BASE)
	$(BIN)/python examples/demo.py

test: lint types tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

tests: $(READY) browser
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadgroup

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir out/site
	@echo "The site is in out/site/index.html. With search: $(BIN)/python -m http.server --directory out/site"

# Reports are looked at as a reader would: in a browser. Installed where this may be done.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Installing Chromium, for the tests of reports." && \
	  { apt-get install -qq -y chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium >/dev/null; }; }; } || { \
	  echo "The tests of reports need Chromium: install it (on Debian: apt-get install chromium) and run make again."; exit 2; }

reproduce: $(READY)
	$(BIN)/noiseshape reproduce --all --out docs

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) out build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The demo needs what users need; tests need the tools and the peers as well.
$(BASE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Noiseshape needs Python 3.11 or later, and $(PYTHON) is not: install it, or say make PYTHON=python3.12."; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: install them (on Debian: apt-get install python3-venv) and run make again."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV), once."
	@$(BIN)/pip install --quiet -e .
	@touch $(BASE)

$(READY): $(BASE)
	@echo "Setting up what the tests need, once: this may take some minutes."
	@$(BIN)/pip install --quiet -e ".[dev]"
	@touch $(READY)
