# Set-up and the main jobs. On a host with a GPU: make setup CUDA=1; on a TPU: make setup TPU=1.
# Another Python has an environment of its own: make test PYTHON=python3.12 VENV=.venv-3.12
PYTHON ?= python3
VENV ?= .venv
SCALE ?= quick
WORKDIR ?= runs/$(SCALE)

comma := ,
BIN := $(VENV)/bin
EXTRAS := test$(if $(CUDA),$(comma)cuda)$(if $(TPU),$(comma)tpu)
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
BENCH_STAMP := $(VENV)/.installed-bench
DOCS_STAMP := $(VENV)/.installed-docs
SOURCES := setup.py setup.cfg pyproject.toml constraints.txt

.PHONY: setup figures test test-browser docs docs-check bench lint clean

setup: $(STAMP)

$(STAMP): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "compgen_jax needs Python 3.11 or newer, and this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS),bench]'
	@touch $@

$(DOCS_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS),docs]'
	@touch $@

figures: setup
	$(BIN)/python -m figures.make --scale=$(SCALE) --workdir=$(WORKDIR)

test: setup
	$(BIN)/python -m pytest -n logical --maxprocesses=8 --dist=loadfile --no-loadscope-reorder

# the site, in build/site; the variable stills the theme's notice that it gets no updates after
# May 2027, and that Zensical, its successor, reads the same mkdocs.yml
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# pages and their scripts in headless Chromium (apt-get install chromium chromium-driver)
test-browser: setup
	$(BIN)/python -m pytest tests/browser

# the generated pages are what their sources print
docs-check: setup
	$(BIN)/python -m figures.pages --check

bench: $(BENCH_STAMP)
	$(BIN)/python -m launch.benchmark --suite=all

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf .venv .venv-* build *.egg-info
