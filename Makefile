# make demo | test | setup: each does all its own set-up in .venv on a fresh machine with Python 3.11 to 3.13.
# `make setup` installs what haptera needs to run; `make setup-dev` adds tests, documentation, extras and peers.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
LEAN := .venv/.lean
READY := .venv/.ready
RESULTS := docs/evidence/results
PATIENT := --timeout=7200 -o faulthandler_timeout=0  # for tests that train for minutes

.PHONY: setup setup-dev demo test lint test-long test-slow test-real wheel docs evidence guides notebooks gallery accessibility house benchmarks experiments clean

setup: $(LEAN)

setup-dev: $(READY)

$(LEAN): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable .
	touch $@

$(READY): $(LEAN)
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: $(LEAN)
	$(BIN)/haptera demo --out haptera-demo

test: $(READY) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile --durations=10

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: $(READY)  # built, installed into a clean environment that borrows this one's libraries, and used from there; PYTHONS= for others
	$(BIN)/python tools/wheel.py $(PYTHONS)

test-long: $(READY)  # kill tests, the browser, guides and examples: what CI runs besides `make test`
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile -m "long and not real" $(PATIENT)

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m "slow and not real" $(PATIENT)

test-real: $(READY)
	$(BIN)/python -m pytest -q -m real $(PATIENT)

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build
	$(BIN)/python tools/links.py docs/_build

evidence: $(READY)  # the pages of docs/evidence/sources, from the rows beside them; and what pages show of other files
	$(BIN)/python tools/evidence.py
	$(BIN)/python tools/shown.py

guides: $(READY)  # what the commands of docs/questions print; some minutes
	$(BIN)/python tools/guides.py

notebooks: $(READY)  # what the cells of docs/tutorials show; a minute or two
	$(BIN)/python tools/notebooks.py

gallery: $(READY)  # pictures of all figures; needs Chromium, some minutes
	$(BIN)/python experiments/gallery.py

accessibility: $(READY)  # axe-core on the report of the demo, with its size and first paint; needs npm and Chromium
	$(BIN)/haptera demo --quick --out haptera-demo --quiet
	$(BIN)/python tools/accessibility.py haptera-demo/report.html

house: $(READY)  # BEFORE=path of another checkout, to see both side by side
	$(BIN)/python tools/house.py $(BEFORE) .

benchmarks: $(READY)  # all that measures speed; best on a machine that does nothing else
	$(BIN)/python benchmarks/loop.py > $(RESULTS)/loop.txt
	$(BIN)/python benchmarks/report.py > $(RESULTS)/report.txt
	$(BIN)/python benchmarks/page_size.py
	$(BIN)/python benchmarks/studies.py > $(RESULTS)/studies.txt
	$(BIN)/python benchmarks/growth.py > $(RESULTS)/growth.txt
	$(BIN)/python benchmarks/demo.py
	$(BIN)/python benchmarks/imports.py $(BEFORE)
	$(BIN)/python benchmarks/trends.py
	$(BIN)/python benchmarks/trends.py whole > $(RESULTS)/trends_whole.txt
	$(BIN)/python benchmarks/attribute.py
	$(BIN)/python benchmarks/guard.py
	$(BIN)/python benchmarks/shifts.py > $(RESULTS)/shifts.txt
	$(BIN)/python benchmarks/peers.py > $(RESULTS)/peers.txt
	$(BIN)/python benchmarks/ccc.py > $(RESULTS)/ccc.txt
	$(BIN)/python benchmarks/reading.py > $(RESULTS)/reading.txt
	$(BIN)/python benchmarks/adapters.py speed > $(RESULTS)/adapters.txt
	$(BIN)/python benchmarks/adapters.py catalog > $(RESULTS)/adapters_catalog.txt
	$(BIN)/python benchmarks/adapters.py long > $(RESULTS)/adapters_long.txt
	$(BIN)/python benchmarks/diagnose.py > $(RESULTS)/diagnose.txt
	$(BIN)/python benchmarks/dependencies.py > $(RESULTS)/dependencies.txt
	$(BIN)/python benchmarks/dependencies.py stability > $(RESULTS)/dependencies_stability.txt
	$(BIN)/python benchmarks/stability.py > $(RESULTS)/stability.txt
	$(BIN)/python benchmarks/embed.py > $(RESULTS)/embed.txt
	$(BIN)/python benchmarks/compat_cebra.py script > $(RESULTS)/compat_cebra.txt
	$(BIN)/python benchmarks/compat_cebra.py files > $(RESULTS)/compat_cebra_files.txt
	$(BIN)/python benchmarks/embed_first_look.py > $(RESULTS)/embed_first_look.txt
	$(BIN)/python benchmarks/pose.py > $(RESULTS)/pose.txt
	$(BIN)/python benchmarks/pose_video.py > $(RESULTS)/pose_video.txt
	$(if $(DEEPLABCUT),$(BIN)/python benchmarks/pose_snapshots.py $(DEEPLABCUT))  # a checkout of its repository
	$(if $(DEEPLABCUT_RUN),$(BIN)/python benchmarks/pose_deeplabcut.py compare $(DEEPLABCUT_RUN) > $(RESULTS)/pose_deeplabcut.txt)  # what its verb train left
	$(BIN)/python benchmarks/device.py

experiments: $(READY)  # all tables and pictures of the evidence; some hours
	$(BIN)/python experiments/report_picture.py
	$(BIN)/python experiments/page_pictures.py
	$(BIN)/python examples/contact_sheet.py docs/pictures
	$(BIN)/python experiments/accuracy_by_severity.py
	$(BIN)/python experiments/ccc_walk.py
	$(BIN)/python experiments/layouts.py
	$(BIN)/python experiments/small_batches.py > $(RESULTS)/small_batches.txt
	$(BIN)/python experiments/adaptation_on_images.py
	$(BIN)/python experiments/cifar_networks.py
	$(BIN)/python experiments/adaptation_on_cifar.py
	$(BIN)/python experiments/adaptation_on_photographs.py
	$(BIN)/python experiments/bytes_on_photographs.py
	$(BIN)/python experiments/diagnosis_on_images.py
	$(BIN)/python experiments/live_alarms.py
	$(BIN)/python experiments/live_accuracy.py
	$(BIN)/python experiments/live_safety.py cifar
	$(BIN)/python experiments/live_safety.py fashion --images 200
	$(BIN)/python experiments/preflight.py
	$(BIN)/python experiments/gate_power.py
	$(BIN)/python experiments/trends_of_published_models.py
	$(BIN)/python experiments/accuracy_without_labels.py
	$(BIN)/python experiments/accuracy_of_networks.py
	$(BIN)/python experiments/dependencies_on_images.py
	$(BIN)/python experiments/dependencies_verdict.py
	$(BIN)/python experiments/stability_on_images.py
	$(BIN)/python experiments/stability_panels.py
	$(BIN)/python experiments/stripes.py
	$(BIN)/python experiments/synthetic_latents.py
	$(BIN)/python experiments/synthetic_latents.py --quick
	$(BIN)/python experiments/head_direction.py
	$(BIN)/python experiments/topology_null.py --kept build/topology
	$(BIN)/python experiments/calcium.py
	$(BIN)/python experiments/attribution_maps.py
	$(BIN)/python experiments/attribution_command.py
	$(BIN)/python experiments/attribution_temperature.py
	$(BIN)/python experiments/sessions_command.py
	$(BIN)/python experiments/identify.py rows limit pictures > $(RESULTS)/identify.txt
	$(BIN)/python experiments/identify.py missed wanted > $(RESULTS)/identify_missed.txt
	$(BIN)/python experiments/identify.py box > $(RESULTS)/identify_box.txt
	$(BIN)/haptera identify examples/identify_small.toml --out build/identify --quiet > $(RESULTS)/identify_small.txt
	$(BIN)/haptera identify examples/identify_pictures.toml --out build/pictures --quiet > $(RESULTS)/identify_pictures.txt
	$(BIN)/python experiments/pose_on_drawn_animals.py
	$(BIN)/python experiments/pose_confidence.py
	$(BIN)/python experiments/pose_out_of_domain.py
	$(BIN)/python experiments/pose_backbones.py
	$(BIN)/python experiments/pose_species.py
	$(BIN)/python experiments/pose_corruptions.py
	$(BIN)/python experiments/pose_pseudo_labels.py
	$(BIN)/python experiments/pose_prior.py
	$(if $(OPENFIELD),$(BIN)/python experiments/pose_openfield.py $(OPENFIELD))  # DeepLabCut's example project
	$(if $(OPENFIELD),$(BIN)/python experiments/pose_prior.py --openfield $(OPENFIELD))
	$(BIN)/python experiments/twenty_adapters.py build/twenty_adapters
	$(BIN)/python experiments/gallery.py

clean:
	rm -rf .venv docs/_build docs/jupyter_execute haptera-demo
