# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet -c constraints.txt

.PHONY: demo test check bench slow coverage clean
.DELETE_ON_ERROR:

# Trains the n-gram smoothings on the embedded corpus, prints the table and some sentences, writes the report.
demo: .venv/.all
	$(BIN)/nextword compare --set model.order=3 --out runs/demo
	$(BIN)/nextword generate runs/demo/ngram-good-turing --prompt "We must" --samples 3 --max-tokens 30 --seed 1

test: .venv/.dev
	$(BIN)/python -m pytest -q -m "not slow and not network"

slow: .venv/.dev
	$(BIN)/python -m pytest -q -m "not network"

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: .venv/.dev
	$(BIN)/python -m pytest -q -m "not slow and not network" --cov --cov-report=term-missing:skip-covered

bench: .venv/.dev
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.all: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[all]'
	touch $@

# The peers are compiled here; without a compiler the tests that compare with them are skipped, with the reason.
.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	$(INSTALL) -e '.[peers]' || echo "note: kenlm or infini-gram cannot be built here; tests that compare with them are skipped"
	touch $@

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
