# Requires only make and Python >= 3.10. The packages of each stack are installed in .venv/STACK.
#   latest        the newest TensorFlow with Keras 3, without TF-Ranking
#   ranking       the newest TensorFlow with Keras 2 and TF-Ranking
#   engines       `latest` with Spark, Dask and Ray; Spark needs Java
#   ranking-2.15  the oldest TensorFlow with TF-Ranking, and the oldest allowed version of each other package, for Python
#                 3.10 and 3.11: make test-ranking-2.15 PYTHON=python3.11

PYTHON ?= python3
VENV ?= .venv
STACKS ?= latest ranking
OUTPUT ?= output/demo
ARGS ?=
JOBS ?= 2
# The tests to run. Those that only `make test-all` runs are marked slow.
MARKS ?= not slow
ALL_MARKS = slow or not slow
# On the stack ranking: what depends on the version of Keras or on TF-Ranking. Of these, `make test` and `make test-all`
# run the tests marked keras_2, one of each kind: compile, fit, save and restore, resume, export.
KERAS_2 = tests/tf_ranking tests/losses/test_keras_contract.py tests/losses/test_keras_users.py \
	tests/metrics/test_properties.py tests/models tests/training tests/serving tests/columns \
	tests/ranker/test_ranker.py tests/recommendation/test_export.py tests/recommendation/test_recommender.py \
	tests/project tests/test_extras.py tests/test_keras_ranking.py \
	tfr_smooth/losses tfr_smooth/metrics tfr_smooth/tf_ranking
TESTS_ranking = $(KERAS_2)
TESTS_engines = tests/serving/test_engines.py tests/examples/test_train_on_workers.py
ONLY_ranking = keras_2 and
BAZEL_TESTS ?= //...
VERSION ?=
# Those of the packages that the wheel is checked with. The lowest ones need Python 3.10 or 3.11.
VERSIONS ?= newest

export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Without compiled files, each start of TensorFlow takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

SUBMAKE = $(MAKE) --no-print-directory
# Bazel 4 would download these for Python rules, which do not use them.
UNUSED_REPOSITORIES = $(foreach name,rules_cc rules_java remote_coverage_tools,\
	--override_repository=$(name)=$(CURDIR)/tools/bazel_offline)
EXTRAS_latest = all,test,dev,docs
EXTRAS_ranking = legacy-keras,test
EXTRAS_engines = dask,ray,spark,evaluation,test
EXTRAS_ranking-2.15 = ranking,test
# Without dependencies: its metadata requires TensorFlow < 2.16.
NO_DEPS_ranking = tensorflow-ranking==0.5.5
UV_ranking-2.15 = --resolution lowest-direct
# uv is faster than pip, and the stacks share the installed files. It ignores pip's settings, such as a mirror, so pip
# installs what uv cannot, but not the oldest versions, which pip cannot choose.
INSTALL = $(VENV)/$*/bin/python -m uv pip install --quiet $(UV_$*) --python $(VENV)/$* $(1) \
	$(if $(UV_$*),,|| $(VENV)/$*/bin/python -m pip install --quiet $(1))

.PHONY: help train test test-all test-changed test-keras-2 test-latest test-ranking test-engines test-ranking-2.15 coverage docs notebooks plots lint wheel check-wheel release release-notes bazel-test clean
.DELETE_ON_ERROR:
# The tests of one stack use all cores.
.NOTPARALLEL:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9. -]+:.*## / {printf "%-44s%s\n", $$1, $$2}' Makefile | sort

train: $(VENV)/latest/.installed  ## train, evaluate and export a ranker (OUTPUT=folder, ARGS=flags)
	$(VENV)/latest/bin/python examples/train_letor.py --output_dir=$(OUTPUT) $(ARGS)

test: lint $(STACKS:%=test-%)  ## lint, check types, and run the fast tests (STACKS=names of stacks)

# The fast and the slow tests of a file share what it fits. Those of the folders that changed on the last day come first.
# A failure does not stop the rest. The engines come last: beside other tests, they use their processor time. Two light
# tests show that Bazel can run tests; pytest has run the others.
test-all: export TESTS_FIRST = $(shell $(PYTHON) tools/changed_tests.py $$(git rev-list -1 --before='1 day ago' HEAD))
test-all:  ## like test, with all tests, also slow ones, those on workers, and Bazel's if it is installed
	rm -rf output/tests
	@failed=0; \
	$(SUBMAKE) lint || failed=1; \
	for stack in $(STACKS) engines; do \
	$(SUBMAKE) test-$$stack MARKS='$(ALL_MARKS)' || failed=1; \
	done; \
	if command -v bazel >/dev/null; \
	then $(SUBMAKE) bazel-test BAZEL_TESTS="//:project_test_packaging //:data_test_text_files" || failed=1; \
	else echo "NOTE: Bazel is not installed; its tests did not run"; fi; \
	$(PYTHON) tools/report_tests.py output/tests || failed=1; \
	exit $$failed

test-changed: CHANGED = $(shell $(PYTHON) tools/changed_tests.py)
test-changed:  ## run all tests, also slow ones, of the folders that differ from the last commit on the main branch
	$(if $(CHANGED),$(SUBMAKE) test-latest MARKS='$(ALL_MARKS)' ARGS='$(CHANGED)',@echo "Nothing has changed")

test-keras-2:  ## run all tests, also slow ones, of what depends on the version of Keras on the stack ranking
	$(SUBMAKE) test-ranking MARKS='$(ALL_MARKS)' ARGS='$(KERAS_2)'

# Engines start processes themselves.
test-engines: JOBS = 1
# One thread per process, since one process per core already uses all cores. Threads of OpenMP, which LightGBM has, wait
# for each other in loops, which takes up to a hundred times as long on busy cores; its scikit-learn interface starts
# one per core whatever OMP_NUM_THREADS says, so they sleep instead.
test-latest test-ranking test-engines test-ranking-2.15: export TF_NUM_INTRAOP_THREADS = 1
test-latest test-ranking test-engines test-ranking-2.15: export OMP_NUM_THREADS = 1
test-latest test-ranking test-engines test-ranking-2.15: export OMP_WAIT_POLICY = PASSIVE
# A file runs in one process, in which its tests share what they fit.
test-latest test-ranking test-engines test-ranking-2.15: test-%: $(VENV)/%/.installed  ## run the fast tests on this stack (MARKS=markers, JOBS=processes, ARGS=pytest arguments)
	@echo "== Tests on the stack '$*'"
	$(VENV)/$*/bin/python -m pytest --numprocesses=$(JOBS) \
	$(if $(ARGS),--dist=worksteal,--dist=loadfile --no-loadscope-reorder --junitxml=output/tests/$*-$(words $(MARKS)).xml) \
	-m '$(if $(ARGS),,$(ONLY_$*) )($(MARKS))' $(or $(ARGS),$(TESTS_$*))

# By environment variables instead of a pytest plugin, so that imports and the programs of the tests count, too.
coverage: export COVERAGE_FILE = $(CURDIR)/output/coverage/.data
coverage: $(VENV)/latest/.installed  ## run the fast tests on the stack latest, and write their coverage to output/coverage
	rm -rf output/coverage
	mkdir -p output/coverage
	COVERAGE_PROCESS_START="$(CURDIR)/pyproject.toml" $(SUBMAKE) test-latest
	$(VENV)/latest/bin/python -m coverage combine --quiet
	$(VENV)/latest/bin/python -m coverage html --directory=output/coverage --skip-covered
	$(VENV)/latest/bin/python -m coverage report --skip-covered

lint: $(VENV)/latest/.installed  ## run ruff and mypy
	$(VENV)/latest/bin/ruff check .
	$(VENV)/latest/bin/ruff format --check .
	$(VENV)/latest/bin/mypy

docs: $(VENV)/latest/.installed  ## build the documentation site in output/site (ARGS=MkDocs arguments)
	NO_MKDOCS_2_WARNING=1 $(VENV)/latest/bin/python -m mkdocs build --strict $(ARGS)

notebooks: $(VENV)/latest/.installed $(VENV)/ranking/.installed  ## run the notebooks of the documentation and store their outputs
	$(VENV)/latest/bin/python tools/run_notebooks.py quickstart csv_to_service dataframe recommendation new_items sequences texts inside_a_relaxation
	$(VENV)/ranking/bin/python tools/run_notebooks.py migration

plots: $(VENV)/latest/.installed  ## redraw the plots of the documentation in docs/images (ARGS=flags)
	$(VENV)/latest/bin/python tools/plot_relaxations.py $(ARGS)
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_results.py
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_explanation.py
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_clicks.py
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_guides.py
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_ascent.py
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_ranker.py

wheel: $(VENV)/latest/.installed  ## build the wheel and the source archive in dist/
	rm -rf dist
	$(VENV)/latest/bin/python -m build

check-wheel: wheel  ## check the metadata of both, and run the README's quickstart with the wheel (VERSIONS=newest or lowest)
	$(VENV)/latest/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear $(VENV)/wheel
	$(if $(filter lowest,$(VERSIONS)),$(VENV)/latest/bin/python -m uv pip compile pyproject.toml --quiet \
	--extra=experiments --resolution=lowest-direct --python=$(PYTHON) --output-file=$(VENV)/wheel/versions.txt,touch $(VENV)/wheel/versions.txt)
	$(VENV)/wheel/bin/python -m pip install --quiet --constraint=$(VENV)/wheel/versions.txt \
	"$$(echo dist/*.whl)[evaluation]" pandas 'lightgbm[scikit-learn]'
	$(VENV)/wheel/bin/python -I tools/quickstart.py

release:  ## set the version and date, commit and tag (VERSION=X.Y.Z); pushing the tag publishes the release
	$(PYTHON) tools/release.py $(VERSION)

release-notes:  ## write the changelog of the current version to output/notes.md
	mkdir -p output
	$(PYTHON) tools/release.py --notes > output/notes.md

bazel-test: $(VENV)/latest/.installed  ## build everything and run the tests with Bazel (BAZEL_TESTS=targets)
	PATH="$(abspath $(VENV))/latest/bin:$$PATH" bazel build $(UNUSED_REPOSITORIES) //...
	PATH="$(abspath $(VENV))/latest/bin:$$PATH" bazel test $(UNUSED_REPOSITORIES) $(BAZEL_TESTS)

# Always from scratch, with the stamp last, so that an interrupted installation is repeated in full.
$(VENV)/%/.installed: pyproject.toml
	@echo "== Installing the stack '$*' into $(VENV)/$* (a few minutes, once)"
	$(PYTHON) -m venv --clear $(VENV)/$*
	$(VENV)/$*/bin/python -m pip install --quiet uv
	$(call INSTALL,--editable '.[$(EXTRAS_$*)]')
	$(if $(NO_DEPS_$*),$(call INSTALL,--no-deps $(NO_DEPS_$*)))
	@touch $@

clean:  ## remove the output of the other targets
	rm -rf $(VENV) dist output *.egg-info .mypy_cache .pytest_cache .ruff_cache
