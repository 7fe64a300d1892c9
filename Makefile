# make demo | test | setup: each does all its own set-up in .venv on a fresh machine with Python 3.11.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test lint test-slow test-real docs benchmarks picture clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/holdfast demo --out holdfast-demo

test: $(READY) lint
	$(BIN)/python -m pytest -q --durations=10

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m slow

test-real: $(READY)
	$(BIN)/python -m pytest -q -m real

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build

benchmarks: $(READY)
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/shifts.py
	$(BIN)/python benchmarks/demo.py

picture: demo
	$(BIN)/python docs/picture.py holdfast-demo/report.html docs/report.png

clean:
	rm -rf .venv docs/_build holdfast-demo
