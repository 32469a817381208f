# Set-up and the main jobs. On a host with a GPU: make setup CUDA=1; on a TPU: make setup TPU=1.
PYTHON ?= python3
SCALE ?= quick
WORKDIR ?= runs/$(SCALE)

comma := ,
BIN := .venv/bin
EXTRAS := test$(if $(CUDA),$(comma)cuda)$(if $(TPU),$(comma)tpu)
STAMP := .venv/.installed-$(subst $(comma),-,$(EXTRAS))
BENCH_STAMP := .venv/.installed-bench
SOURCES := setup.cfg pyproject.toml constraints.txt

.PHONY: setup figures test bench lint clean

setup: $(STAMP)

$(STAMP): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "compgen_jax needs Python 3.11 or newer, and this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS),bench]'
	@touch $@

figures: setup
	$(BIN)/python -m figures.make --scale=$(SCALE) --workdir=$(WORKDIR)

test: setup
	$(BIN)/python -m pytest -n logical --maxprocesses=8 --dist=loadfile

bench: $(BENCH_STAMP)
	$(BIN)/python -m launch.benchmark --suite=all

lint: setup
	$(BIN)/ruff check .

clean:
	rm -rf .venv build *.egg-info
