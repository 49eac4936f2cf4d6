# `make demo` and `make test` do all set-up themselves; nothing leaves this directory but package caches.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
CLASSES := $(VENV)/.classes
# Tests start a thousand Pythons, each of which would compile ordercast for itself.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup java browser demo test lint types docs clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/'

setup: $(STAMP)  ## create .venv with everything that is needed

$(STAMP): pyproject.toml setup.py src/ordercast/runtime/_taking.c constraints.txt scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup $(VENV)
	@touch $(STAMP)

java:
	@scripts/java

$(CLASSES): $(STAMP) | java
	@$(BIN)/python -m ordercast.pipeline.classes || echo "setup: Spark starts without them, in twice the time" >&2
	@touch $(CLASSES)

demo: $(STAMP) java  ## three real processes, causal order, verified on Spark, with a report
	$(BIN)/ordercast run --order causal --processes 3 --messages 8
	@$(MAKE) --no-print-directory $(CLASSES)

browser: | java
	@scripts/browser

test: $(STAMP) java $(CLASSES) browser  ## run the tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadscope

lint: $(STAMP)  ## style, formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## strict types
	$(BIN)/mypy

docs: $(STAMP)  ## make the pictures and tables of the documentation anew
	$(BIN)/python scripts/docs

clean:  ## remove what set-up and runs have made
	rm -rf $(VENV) build src/*.egg-info src/ordercast/runtime/*.so runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find benchmarks scripts src tests -name __pycache__ -prune -exec rm -rf {} +
