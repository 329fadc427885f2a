# Needs only make and a Python >= 3.10: each stack's packages are installed into .venv/STACK.
#   latest        the newest TensorFlow, with Keras 3 and no TF-Ranking
#   ranking       the newest TensorFlow, with Keras 2 and TF-Ranking
#   ranking-2.15  TensorFlow 2.15 with TF-Ranking (Python 3.10 or 3.11), for `make test-all` alone
# Where no Python <= 3.11 is found, the last one does not run, and a line says so (tools/stack.sh).

PYTHON ?= python3
VENV ?= .venv
OUTPUT ?= output/demo
ARGS ?=
JOBS ?= 2
# Which tests: those that `make test-all` alone runs are marked slow.
MARKS ?= not slow
# These run one after another and then all others together, each time in new processes: what
# TensorFlow traces and XLA compiles stays in memory until its process ends.
APART_1 = tests/ops tests/functional tests/losses tests/metrics
APART_2 = tests/test_modes.py tests/test_numerics.py tests/test_keras_users.py
APART = $(APART_1) $(APART_2)
# These do not depend on Keras, so one stack of each TensorFlow runs them.
WITHOUT_KERAS = tests/ops tests/functional tests/data tests/evaluation tests/test_packaging.py tests/test_project.py
# And these touch Keras in few places: among the fast tests, the stack with Keras 3 runs them.
BARELY_KERAS = tests/examples tests/study tests/text
LEFT_OUT = $(if $(filter $*,ranking),$(WITHOUT_KERAS) $(if $(findstring or,$(MARKS)),,$(BARELY_KERAS)))
PARTS = $(if $(ARGS),"","$(filter-out $(LEFT_OUT),$(APART_1))" "$(APART_2) --dist=worksteal" \
	"$(patsubst %,--ignore=%,$(APART) $(filter-out $(APART),$(LEFT_OUT)))")
BAZEL_TESTS ?= //...

export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export TF_CPP_MIN_LOG_LEVEL = 2

STACK = sh tools/stack.sh
SUBMAKE = $(MAKE) --no-print-directory
# Bazel 4 would download these for Python rules, which make no use of them.
UNUSED_REPOSITORIES = $(foreach name,rules_cc rules_java remote_coverage_tools,\
	--override_repository=$(name)=$(CURDIR)/tools/bazel_offline)
EXTRAS_latest = all,test,dev,docs
EXTRAS_ranking = legacy-keras,all,test
EXTRAS_ranking-2.15 = ranking,all,test
# Its metadata asks for TensorFlow < 2.16.
NO_DEPS_ranking = tensorflow-ranking==0.5.5

.PHONY: help train test test-all test-latest test-ranking test-ranking-2.15 docs notebooks plots stubs lint wheel check-wheel bazel-test clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9. -]+:.*## / {printf "%-44s%s\n", $$1, $$2}' Makefile | sort

train: $(VENV)/latest/.installed  ## train, evaluate and export a ranker (OUTPUT=folder, ARGS=more flags)
	$(VENV)/latest/bin/python examples/train_letor.py --output_dir=$(OUTPUT) $(ARGS)

test: lint  ## lint, check types, and run the fast tests on every stack this machine can run
	@stacks=$$($(STACK) list) && \
	for stack in $$stacks; do $(SUBMAKE) test-$$stack || exit 1; done && \
	echo "The tests '$(MARKS)' passed on: $$stacks"

# Two light tests show that Bazel runs tests; what the others say, pytest has said.
test-all:  ## the same with all tests, the fast ones on TensorFlow 2.15, and Bazel where it is installed
	@$(SUBMAKE) test MARKS="slow or not slow"
	@stacks=$$($(STACK) list all) && case "$$stacks" in *2.15) $(SUBMAKE) test-ranking-2.15 ;; esac
	@if command -v bazel >/dev/null; \
	then $(SUBMAKE) bazel-test BAZEL_TESTS="//:test_packaging //:data_test_dense_text"; \
	else echo "NOTE: not run: Bazel, which is not installed"; fi

# As many processes as cores: with more threads in each, TensorFlow's would get into each other's way.
test-latest test-ranking test-ranking-2.15: export TF_NUM_INTRAOP_THREADS = 1
test-latest test-ranking test-ranking-2.15: test-%: $(VENV)/%/.installed  ## run the fast tests on that stack (MARKS=others, JOBS=at once, ARGS=pytest's)
	@echo "== Tests on the stack '$*'"
	@for part in $(PARTS); do \
	(set -x; $(VENV)/$*/bin/python -m pytest --numprocesses=$(JOBS) --dist=loadfile -m '$(MARKS)' $$part $(ARGS)) || exit 1; \
	done

lint: $(VENV)/latest/.installed  ## run ruff and mypy
	$(VENV)/latest/bin/ruff check .
	$(VENV)/latest/bin/ruff format --check .
	$(VENV)/latest/bin/mypy

docs: $(VENV)/latest/.installed  ## build the documentation's site into output/site (ARGS=MkDocs's)
	NO_MKDOCS_2_WARNING=1 $(VENV)/latest/bin/python -m mkdocs build --strict $(ARGS)

notebooks: $(VENV)/latest/.installed $(VENV)/ranking/.installed  ## execute the documentation's notebooks and store them with their outputs
	$(VENV)/latest/bin/python tools/run_notebooks.py quickstart dataframe inside_a_relaxation
	$(VENV)/ranking/bin/python tools/run_notebooks.py migration

plots: $(VENV)/latest/.installed  ## draw the documentation's plots again, into docs/images (ARGS=the script's)
	$(VENV)/latest/bin/python tools/plot_relaxations.py $(ARGS)
	PYTHONPATH=. $(VENV)/latest/bin/python tools/plot_results.py

stubs: $(VENV)/latest/.installed  ## write the signatures of the named losses and metrics for editors and type checkers
	PYTHONPATH=. $(VENV)/latest/bin/python tools/write_stubs.py

# By way of the source archive: building in the tree makes build/, which macOS takes for BUILD.
wheel: $(VENV)/latest/.installed  ## build the wheel and the source archive into dist/
	rm -rf dist
	$(VENV)/latest/bin/python -m build

check-wheel: wheel  ## check the metadata of both, and run the README's quickstart in a new environment with the wheel
	$(VENV)/latest/bin/python -m twine check --strict dist/*
	python=$$($(STACK) python latest) && "$$python" -m venv --clear $(VENV)/wheel
	$(VENV)/wheel/bin/python -m pip install --quiet dist/*.whl
	$(VENV)/wheel/bin/python -I tools/quickstart.py

bazel-test: $(VENV)/latest/.installed  ## build all and run the tests under Bazel (BAZEL_TESTS=targets)
	PATH="$(abspath $(VENV))/latest/bin:$$PATH" bazel build $(UNUSED_REPOSITORIES) //...
	PATH="$(abspath $(VENV))/latest/bin:$$PATH" bazel test $(UNUSED_REPOSITORIES) $(BAZEL_TESTS)

# Always from scratch, and the stamp last: an interrupted installation is done again in full.
$(VENV)/%/.installed: pyproject.toml
	@python=$$($(STACK) python $*) && \
	echo "== Installing the stack '$*' into $(VENV)/$* (a few minutes, once)" && \
	"$$python" -m venv --clear $(VENV)/$*
	$(VENV)/$*/bin/python -m pip install --quiet --editable '.[$(EXTRAS_$*)]'
	$(if $(NO_DEPS_$*),$(VENV)/$*/bin/python -m pip install --quiet --no-deps $(NO_DEPS_$*))
	@touch $@

clean:  ## remove what the other targets made
	rm -rf $(VENV) dist output *.egg-info .mypy_cache .pytest_cache .ruff_cache
