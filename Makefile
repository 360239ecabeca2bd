# Every target does its own set-up: Python 3.11 or newer, make and git are all that a machine needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help reproduce serve test crash compat lint bench bench-service docs lock clean

help: ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

reproduce: $(READY) ## run every experiment and draw every figure into results/
	$(BIN)/albatross reproduce

serve: $(READY) ## start the decision service on 127.0.0.1:8000 with an example model, in albatross-service/
	$(BIN)/albatross serve

test: $(READY) ## run the tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder

compat: ## run a short part of the tests on the oldest and the newest versions that are allowed
	$(PYTHON) tests/compat.py

lint: $(READY) ## check style, types and layers
	! git grep -nE '^(<<<<<<<|>>>>>>>) '  # an unfinished merge
	$(BIN)/ruff check --no-cache .  # its cache does not notice that a module has moved
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

crash: $(READY) ## kill the service a hundred times under load, and fold a log of 50,000 events
	$(BIN)/python tests/service/crashing.py 100
	$(BIN)/python tests/service/replaying.py 50000

bench: $(READY) ## measure speed as ratios to plain NumPy
	$(BIN)/python benchmarks/run.py

bench-service: $(READY) ## measure what a durable decision costs
	$(BIN)/python benchmarks/service.py

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
