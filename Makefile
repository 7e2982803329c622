# Needs only python >= 3.11 (with venv and pip), make and git. Everything else goes into .venv.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
LOCK_FLAGS ?=
PYTEST_FLAGS ?=
PROFILE ?= quick
RUN ?= auto

# Commands of the environment come first, in recipes and in whatever they start (dvc stages call `decima`).
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Where Python may not keep its bytecode, every process compiles all that it imports, TensorFlow for example.
export PYTHONDONTWRITEBYTECODE :=
# NumPy's products here are small: threads of its library would wait for each other longer than they compute.
export OPENBLAS_NUM_THREADS ?= 1

# The name of the stamp holds the content of the inputs and the place of the checkout (scripts in .venv carry
# absolute paths), so that neither a touched file nor a moved folder is mistaken for what was installed.
ENV_KEY := $(shell { cat requirements.lock pyproject.toml; pwd; } | cksum | tr ' ' '-')
STAMP := $(VENV)/.ready-$(ENV_KEY)

NOTEBOOKS := $(wildcard notebooks/*.ipynb notebooks/*/*.ipynb)
# One of each paper, which shows what others compute.
DAILY_NOTEBOOKS := notebooks/decima/02-motivation.ipynb $(wildcard notebooks/*/*-results.ipynb)

# uv installs everything else; pip installs uv itself, the release in the lock.
UV_ENTRY := sed -n '/^uv==/,/[^\\]$$/p' requirements.lock
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check --no-deps

# First interpreter that is new enough and can make environments; `make PYTHON=/path/to/python` overrides it.
PYTHON_CANDIDATES := python3.11 python3.12 python3.13 python3 /usr/bin/python3.11 /usr/bin/python3
PYTHON_CHECK := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
define find_python
	python="$(PYTHON)"; \
	for candidate in $${python:-$(PYTHON_CANDIDATES)}; do \
		if "$$candidate" -c '$(PYTHON_CHECK)' >/dev/null 2>&1; then python="$$candidate"; found=yes; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "error: no Python >= 3.11 with the modules venv and ensurepip found (tried: $${python:-$(PYTHON_CANDIDATES)});" \
			"install python3.11 with venv, or run make PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi
endef

.PHONY: help env reproduce site check-figures test test-all test-spark-versions test-torch test-bounds reliability field lint protocol lab lock wheel clean

help:
	@echo "make reproduce   environment, data, whole pipeline; prints where the report and the figures are (PROFILE=full: all)"
	@echo "make site        pages of the documentation and the executed notebooks, in build/site (RUN=tpch-full: of that run)"
	@echo "make check-figures draws the published figures anew from the published tables, and compares"
	@echo "make test        environment, linter, tests and notebooks (FAST=1: unit tests below 0.1 s, before a commit)"
	@echo "make test-all    those and what takes longer, as the continuous integration does: kills, random runs, a real Spark"
	@echo "make test-spark-versions the plugin compiled for, and run with, every release of Spark that it knows (1.7 GB of downloads)"
	@echo "make test-torch  the examples, among them policies in PyTorch, in an environment of its own (.venv-torch)"
	@echo "make test-bounds tests of the compiled core, every array index checked"
	@echo "make reliability hours of random runs, guard pages, kills and damaged inputs (docs/reliability.md)"
	@echo "make field       event logs of LOGS=FOLDER counted apart from the reader, and the reader's numbers beside that"
	@echo "make lab         open the notebooks in JupyterLab"
	@echo "make env         only build $(VENV) from requirements.lock"
	@echo "make lint        only the linters: style, and what may import what"
	@echo "make protocol    renew the Python code of the service's protocol after a change of scheduler.proto"
	@echo "make lock        renew requirements.lock after a change of pyproject.toml (LOCK_FLAGS=--upgrade for newer versions)"
	@echo "make wheel       the package as a file in dist, with compiled code for x86-64 processors with AVX2"
	@echo "make clean       remove $(VENV) and caches; data and results stay"

env: $(STAMP)

# No stamp at all means that an earlier build was cut short: start over. An old stamp: update in place.
# uv takes 20 seconds, pip three minutes. uv does not read pip's settings: where it reaches no index, pip steps in.
$(STAMP):
	@$(find_python); \
	set -e; \
	if ! ls $(VENV)/.ready-* >/dev/null 2>&1; then \
		echo "building $(VENV) with $$("$$python" --version), which takes from half a minute to four minutes"; \
		"$$python" -m venv --clear $(VENV); \
	fi; \
	rm -f $(VENV)/.ready-*; \
	$(UV_ENTRY) > $(VENV)/uv.txt; \
	$(BIN)/$(PIP_INSTALL) --require-hashes -r $(VENV)/uv.txt; \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements.lock || { \
		echo "uv did not install the packages (see above); pip does it now, which takes some minutes"; \
		$(BIN)/$(PIP_INSTALL) --require-hashes -r requirements.lock; \
	}; \
	$(BIN)/$(PIP_INSTALL) --no-build-isolation --editable .; \
	touch $@

reproduce: env
	@$(BIN)/decima reproduce --profile $(PROFILE)

check-figures: env
	$(BIN)/python -m experiments redraw

site: env
	@$(BIN)/decima site --run $(RUN)

lint: env
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo --no-cache

# A test that waits for ever: after so many seconds pytest says where, and the run ends. (A worker that is made anew takes
# the same test again: one that ends its worker would be run ten times.)
LIMITS := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true --max-worker-restart=0

# A file stays on one worker: the cells of a notebook share a kernel.
PYTEST := $(BIN)/pytest -n auto --dist loadfile -p no:benchmark $(LIMITS)
NBVAL := --nbval-lax --nbval-current-env
NOT_DAILY := slow or spark or spark_slow or fresh

# A worker keeps less of what it has freed: an arena for two threads together, and the end of each goes back to the system.
test test-all test-bounds: export MALLOC_ARENA_MAX ?= 2
test test-all test-bounds: export MALLOC_TRIM_THRESHOLD_ ?= 131072

# One pytest run for tests and notebooks, so that its exit code and closing lines stand for all of them.
test: lint
ifdef FAST
	$(PYTEST) -m "not ($(NOT_DAILY))" --below 0.1 $(PYTEST_FLAGS) tests/unit tests/notebooks
else
	$(PYTEST) -m "not ($(NOT_DAILY))" $(NBVAL) $(PYTEST_FLAGS) tests $(DAILY_NOTEBOOKS)
endif

# What `make test` runs is among it. One worker more than cores: they wait for Spark, browsers and processes that end.
test-all: lint
	$(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) $(NBVAL) $(PYTEST_FLAGS) tests $(NOTEBOOKS)

# A pyspark of each release before the one in the lock, in environments of their own; not in `test-all`, for what it loads.
SPARKS := 3.5.8 4.0.2 4.1.4 4.2.1
SPARK_STAMPS := $(SPARKS:%=.venv-spark-%/.ready)
$(SPARK_STAMPS): .venv-spark-%/.ready:
	@$(find_python); \
	set -e; \
	"$$python" -m venv --clear $(@D); \
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check pyspark==$*; \
	touch $@
test-spark-versions: env $(SPARK_STAMPS)
	$(BIN)/pytest -p no:benchmark $(LIMITS) -m spark_slow $(PYTEST_FLAGS) tests/spark/test_versions.py

# PyTorch, libraries of reinforcement learning, and DEAP for an example, beside what $(VENV) has; not in `test-all`, for what it loads.
TORCH_STAMP := .venv-torch/.ready-$(ENV_KEY)
$(TORCH_STAMP): $(STAMP)
	$(BIN)/python -m venv --clear $(@D)
	echo "$(CURDIR)/$(VENV)/lib/$$(ls $(VENV)/lib)/site-packages" > $(@D)/lib/$$(ls $(@D)/lib)/site-packages/base.pth
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 torch-geometric==2.8.1 deap==1.4.4 \
		stable-baselines3==2.9.2 sb3-contrib==2.9.2 dm-tree==0.1.10 lz4==4.4.5 ormsgpack==1.13.1
	touch $@
test-torch: $(TORCH_STAMP)
	PYTHONPATH=src:. .venv-torch/bin/python -m pytest -n 0 -p no:benchmark $(LIMITS) $(PYTEST_FLAGS) \
		tests/examples tests/unit/systems/spark/gym/test_learners.py tests/unit/systems/test_environments.py

# The compiled core with a check of every array index; its kernels are compiled apart from the usual ones.
CORE_TESTS := checks objectives record system
BOUNDS_TESTS := tests/differential tests/guard tests/property tests/unit/systems/spark $(CORE_TESTS:%=tests/unit/core/test_%.py)
# What indexes no array of the core in its own process, and what is computed by TensorFlow alone.
UNCHECKED := differential/test_cli_reference property/test_event_log_damage property/test_workload_properties \
	$(addprefix unit/systems/spark/,policy/test_batch policy/test_network policy/test_task \
	test_settings)
test-bounds: env
	DECIMA_BOUNDS_CHECKS=1 $(PYTEST) $(PYTEST_FLAGS) $(BOUNDS_TESTS) $(UNCHECKED:%=--ignore=tests/%.py)

# Hours: what `make test-all` does in small, with other seeds every time. A variable that is set already stays.
FIRST_SEED := $(or $(DECIMA_FIRST_SEED),$(shell date +%s))
reliability: export DECIMA_FIRST_SEED = $(FIRST_SEED)
reliability: export DECIMA_RANDOM_RUNS ?= 10000
reliability: export DECIMA_ELASTIC_RUNS ?= 10000
reliability: export DECIMA_GUARDED_RUNS ?= 1000
reliability: export DECIMA_BRUTE_FORCE ?= 2000
reliability: export DECIMA_KILLS ?= 50
reliability: export DECIMA_FUZZ_INPUTS ?= 100000
reliability: export DECIMA_LOG_MUTATIONS ?= 10000
reliability: env
	@echo "seeds from $(FIRST_SEED) on; to repeat: DECIMA_FIRST_SEED=$(FIRST_SEED) make reliability"
	$(BIN)/pytest -n auto -p no:benchmark $(PYTEST_FLAGS) tests/reliability tests/fuzz \
		tests/property/test_event_log_damage.py

# Exit code 1 when a number differs (docs/event-logs.md).
field: env
	@$(BIN)/python -m measure.recount $(or $(LOGS),$(error say which logs: make field LOGS=FOLDER))

# A test says when the committed code is not that of the protocol.
protocol: env
	$(BIN)/python -m grpc_tools.protoc -Isrc/decima --python_out=src/decima --pyi_out=src/decima \
		src/decima/connect/service/scheduler.proto
	for file in src/decima/connect/service/scheduler_pb2.py*; do \
		{ echo "# ruff: noqa"; cat $$file; } > $$file.new && mv $$file.new $$file || exit 1; \
	done

lab: env
	$(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/00-start-here.ipynb

# The settings of pip on this machine play no part: uv does not read them, and no index address is written.
lock:
	@$(find_python); \
	set -e; \
	"$$python" -m venv .venv-lock; \
	$(UV_ENTRY) > .venv-lock/uv.txt; \
	.venv-lock/bin/$(PIP_INSTALL) --require-hashes -r .venv-lock/uv.txt; \
	.venv-lock/bin/uv pip compile pyproject.toml --extra dev --python-version 3.11 --universal --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --quiet \
		--custom-compile-command "make lock" $(LOCK_FLAGS) --output-file requirements.lock; \
	{ echo "# requirements.lock without its hashes, for environment.yml: pip refuses an editable package beside hashes."; \
		sed -n 's/^\([A-Za-z0-9].*[^ ]\) *\\$$/\1/p' requirements.lock; } > requirements-conda.txt; \
	rm -rf .venv-lock

# What these commands compile lies in the package then, and is read first (src/decima/core/cache.py).
SHIPPED := src/decima/_kernels
wheel: export NUMBA_CACHE_DIR := $(CURDIR)/$(SHIPPED)
wheel: env
	rm -rf $(SHIPPED)
	decima compare fifo fair weighted_fair capped_srw entry_srw decima decima:embedded-stream --jobs embedded:n=3 --seeds 1 --workers 1
	decima simulate --system heterogeneous --scheduler heft
	decima simulate --system heterogeneous --scheduler lachesis
	decima compare --system cloud ff learned --seeds 1 --workers 1
	python -c 'import gymnasium, decima.gym; \
		[gymnasium.make(f"decima/{each}-v0").reset(seed=0) for each in ("SparkCluster", "HeterogeneousExecutors", "VmPlacement")]'
	$(BIN)/hatchling build -t wheel

clean:
	rm -rf $(VENV) .venv-lock .venv-spark-* .venv-torch .pytest_cache .ruff_cache .hypothesis .benchmarks build dist docs/api $(SHIPPED)
	find $(wildcard src tests benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
