# Every target does its own set-up: Python 3.11 or newer, make and git are all that a machine needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help reproduce test compat lint bench docs lock clean

help: ## say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

reproduce: $(READY) ## run every experiment and draw every figure into results/
	$(BIN)/albatross reproduce

test: $(READY) ## run the tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup

compat: ## run a short part of the tests on the oldest and the newest versions that are allowed
	$(PYTHON) tests/compat.py

lint: $(READY) ## check style, types and layers
	$(BIN)/ruff check --no-cache .  # its cache does not notice that a module has moved
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) ## measure speed as ratios to plain NumPy
	$(BIN)/python benchmarks/run.py

docs: $(READY) ## build the pages into docs/_build/html
	$(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html

lock: ## write requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate -o requirements.lock

clean: ## remove the virtual environment and all results
	rm -rf .venv results docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# --no-build-isolation: the build tools are in the lock as well, so that nothing comes in without a hash.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(READY)
