# make demo | test | setup: each does all its own set-up in .venv on a fresh machine with Python 3.11.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
PATIENT := --timeout=7200 -o faulthandler_timeout=0  # for tests that train for minutes

.PHONY: setup demo test lint test-long test-slow test-real docs benchmarks picture pictures tables clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/haptera demo --out haptera-demo

test: $(READY) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile --durations=10

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test-long: $(READY)  # of the slow tests, those that CI runs as well
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile -m slow $(PATIENT) tests/cli/test_killed.py \
		tests/cli/test_stopped.py tests/run/test_calibrate.py tests/run/test_cluster.py tests/test_demo.py \
		tests/test_examples.py tests/run/test_execute.py tests/test_runner.py tests/run/test_study.py

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m slow $(PATIENT)

test-real: $(READY)
	$(BIN)/python -m pytest -q -m real $(PATIENT)

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build

benchmarks: $(READY)
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/shifts.py
	$(BIN)/python benchmarks/ccc.py
	$(BIN)/python benchmarks/demo.py
	$(BIN)/python benchmarks/adapters.py
	$(BIN)/python benchmarks/dependencies.py
	$(BIN)/python benchmarks/diagnose.py
	$(BIN)/python benchmarks/trends.py
	$(BIN)/python benchmarks/stability.py
	$(BIN)/python benchmarks/embed.py
	$(BIN)/python benchmarks/attribute.py
	$(BIN)/python benchmarks/pose.py

picture: demo
	$(BIN)/python docs/picture.py haptera-demo/report.html docs/report.png

pictures: picture
	rm -rf build/severity  # cells do not know when the code of a shift of ours changes
	mkdir -p build/severity
	$(BIN)/python examples/contact_sheet.py docs
	$(BIN)/python examples/accuracy_by_severity.py build/severity > build/severity/accuracy_by_severity.txt
	cp build/severity/accuracy_by_severity.csv build/severity/accuracy_by_severity.txt docs
	$(BIN)/python docs/severity_picture.py docs/accuracy_by_severity.csv docs/accuracy_by_severity.svg
	rm -rf build/ccc
	mkdir -p build/ccc
	$(BIN)/python examples/ccc_on_a_trained_model.py build/ccc > build/ccc/ccc_walk.txt
	cp build/ccc/ccc_walk.csv build/ccc/ccc_walk.txt docs
	$(BIN)/python docs/walk_picture.py docs/ccc_walk.csv docs/ccc_walk.svg

tables: $(READY)  # those of the documentation; some hours, best on a machine that does nothing else
	$(BIN)/python benchmarks/shifts.py > docs/tables/shifts.txt
	$(BIN)/python benchmarks/ccc.py > docs/tables/ccc.txt
	$(BIN)/python benchmarks/adapters.py > docs/tables/adapters.txt
	$(BIN)/python benchmarks/diagnose.py > docs/tables/diagnose.txt
	$(BIN)/python benchmarks/dependencies.py > docs/tables/dependencies.txt
	$(BIN)/python benchmarks/embed.py > docs/tables/embed.txt
	$(BIN)/python benchmarks/synthetic_latents.py
	$(BIN)/python benchmarks/head_direction.py
	$(BIN)/python benchmarks/attribution_maps.py
	$(BIN)/python benchmarks/identify.py > docs/tables/identify.txt
	$(BIN)/haptera identify examples/identify_small.toml --out build/identify --quiet > docs/tables/identify_small.txt
	$(BIN)/python benchmarks/pose.py > docs/tables/pose.txt
	$(BIN)/python benchmarks/pose_on_drawn_animals.py
	$(BIN)/python benchmarks/dependencies_on_images.py
	$(BIN)/python benchmarks/diagnosis_on_images.py
	$(BIN)/python benchmarks/stability.py > docs/tables/stability.txt
	$(BIN)/python benchmarks/stability_on_images.py
	$(BIN)/python benchmarks/stripes.py
	rm -rf build/adaptation
	$(BIN)/python benchmarks/adaptation_on_images.py build/adaptation
	cp build/adaptation/adaptation.md build/adaptation/adaptation_long.md docs/tables

clean:
	rm -rf .venv docs/_build haptera-demo
