# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Tests run side by side, one process a core; a file's tests may be taken over by another process.
PYTEST := $(BIN)/python -m pytest -q -n auto --dist worksteal
INSTALL := $(PIP) install --quiet -c constraints.txt

.PHONY: demo test check bench quality slow kills coverage conformance clean
.DELETE_ON_ERROR:

# The families side by side on the embedded corpus: the table, what each model writes, and the report.
demo: .venv/.all
	@echo "n-grams, five networks with half a minute each, and a mixture: this takes about 3 minutes on two cores"
	$(BIN)/nextword compare sotu --minutes 0.5 --out runs/demo

test: .venv/.dev
	$(PYTEST) -m "not slow and not network"

slow: .venv/.dev
	$(PYTEST) -m "not network"

# 200 trainings killed at any moment, each taken up again.
kills: .venv/.dev
	NEXTWORD_KILLS=200 $(BIN)/python -m pytest -q tests/cli/test_killed_trainings.py

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: .venv/.dev
	$(BIN)/python -m pytest -q -m "not slow and not network" --cov --cov-report=term-missing:skip-covered

# Speed; some minutes each. What is learnt per minute takes hours and is a target of its own, cell by cell.
bench: .venv/.dev
	for file in $(filter-out benchmarks/quality.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$file || exit 1; done

quality: .venv/.dev
	$(BIN)/python benchmarks/quality.py

# lm-evaluation-harness over HTTP and in process; its packages do not fit ours, so it has an environment of its own.
conformance: .venv/.dev .venv-conformance/.lm-eval
	NEXTWORD_LM_EVAL=.venv-conformance/bin/python $(BIN)/python -m pytest -q tests/agree/test_lm_eval.py tests/agree/test_openai_client.py

.venv-conformance/.lm-eval:
	$(PYTHON) -m venv .venv-conformance
	.venv-conformance/bin/python -m pip install --quiet --disable-pip-version-check 'lm-eval[api]' "$$(grep ^torch== constraints.txt)" -e '.[neural,serve]'
	touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.all: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[all]'
	touch $@

# The peers are compiled here; without a compiler the tests that compare with them are skipped, with the reason.
.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	$(INSTALL) -e '.[peers]' || echo "note: kenlm or infini-gram cannot be built here; tests that compare with them are skipped"
	if command -v java >/dev/null; then $(INSTALL) -e '.[spark]' || echo "note: pyspark cannot be installed here; its tests are skipped"; fi
	touch $@

clean:
	rm -rf .venv .venv-conformance build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
