# Needs only make and a Python >= 3.10: each stack's packages are installed into .venv/STACK.
#   ranking  TensorFlow 2.15 with TF-Ranking (Python 3.10 or 3.11)
#   latest   the newest TensorFlow, with Keras 3 and no TF-Ranking
# Where no Python <= 3.11 is found, `latest` runs alone, and a line says so (tools/stack.sh).

PYTHON ?= python3
VENV ?= .venv
OUTPUT ?= output/demo
ARGS ?=
JOBS ?= 2

export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export TF_CPP_MIN_LOG_LEVEL = 2

STACK = sh tools/stack.sh
SUBMAKE = $(MAKE) --no-print-directory
# Bazel 4 downloads these even for Python rules, which make no use of them.
BAZEL_OFFLINE = $(foreach name,rules_cc rules_java remote_coverage_tools,\
	--override_repository=$(name)=$(CURDIR)/tools/bazel_offline)
EXTRAS_ranking = ranking,all,test
EXTRAS_latest = all,test,dev,docs

.PHONY: help train test test-ranking test-latest docs plots lint wheel bazel-test clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "%-26s%s\n", $$1, $$2}' Makefile | sort

train:  ## train, evaluate and export a ranker (OUTPUT=folder, ARGS=more flags)
	@stacks=$$($(STACK) list) && set -- $$stacks && \
	$(SUBMAKE) $(VENV)/$$1/.installed && set -x && \
	$(VENV)/$$1/bin/python examples/train_letor.py --output_dir=$(OUTPUT) $(ARGS)

test: lint  ## lint, check types, and run the tests on every stack this machine can run
	@stacks=$$($(STACK) list) && \
	for stack in $$stacks; do $(SUBMAKE) test-$$stack || exit 1; done && \
	echo "All tests passed on: $$stacks"

test-ranking test-latest: test-%: $(VENV)/%/.installed  ## run the tests on that stack (JOBS=at once, ARGS=pytest's)
	@echo "== Tests on the stack '$*'"
	$(VENV)/$*/bin/python -m pytest --numprocesses=$(JOBS) --dist=loadfile $(ARGS)

lint: $(VENV)/latest/.installed  ## run ruff and mypy
	$(VENV)/latest/bin/ruff check .
	$(VENV)/latest/bin/ruff format --check .
	$(VENV)/latest/bin/mypy

docs: $(VENV)/latest/.installed  ## build the documentation's site into output/site (ARGS=MkDocs's)
	NO_MKDOCS_2_WARNING=1 $(VENV)/latest/bin/python -m mkdocs build --strict $(ARGS)

plots: $(VENV)/latest/.installed  ## draw the documentation's plots again, into docs/images (ARGS=the script's)
	$(VENV)/latest/bin/python tools/plot_relaxations.py $(ARGS)

# By way of the source archive: building in the tree makes build/, which macOS takes for BUILD.
wheel: $(VENV)/latest/.installed  ## build the wheel and the source archive into dist/
	$(VENV)/latest/bin/python -m build

bazel-test: $(VENV)/latest/.installed  ## run the tests under Bazel (OFFLINE=1 without network)
	PATH="$(abspath $(VENV))/latest/bin:$$PATH" bazel test $(if $(OFFLINE),$(BAZEL_OFFLINE)) //...

# Always from scratch, and the stamp last: an interrupted installation is done again in full.
$(VENV)/%/.installed: pyproject.toml
	@python=$$($(STACK) python $*) && \
	echo "== Installing the stack '$*' into $(VENV)/$* (a few minutes, once)" && \
	"$$python" -m venv --clear $(VENV)/$*
	$(VENV)/$*/bin/python -m pip install --quiet --editable '.[$(EXTRAS_$*)]'
	@touch $@

clean:  ## remove what the other targets made
	rm -rf $(VENV) dist output *.egg-info .mypy_cache .pytest_cache .ruff_cache
