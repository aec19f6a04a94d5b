# The one door to everything: `make help` lists it. `make check` is what continuous integration runs.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=
# Also where PYTHONDONTWRITEBYTECODE is set: without bytecode a start takes twice as long.
COMPILE := $(BIN)/python -m compileall -q config native protocol storage tiered broker pipeline pyspark_varve cli

# What each environment was made from; a newer file than the stamp makes it again.
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development

.PHONY: help setup native wheel run cluster cluster-broker test test-system test-interop test-deep test-cluster simulate histories grid simulate-mutants test-s3 test-spark test-exact test-clients test-suite test-tools test-etcd check lint types imports fmt bench run-pipeline codegen docs lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(DEVELOPMENT) ## create .venv with everything; .venv/bin/varve then runs

run: $(RUNTIME) ## start a broker on 127.0.0.1:9092, data in ./data (ARGS="--set KEY=VALUE")
	@$(COMPILE)
	@exec $(BIN)/varve serve --set remote.log.storage.system.enable=true $(ARGS)

cluster: $(RUNTIME) ## start etcd and three brokers on 127.0.0.1:9092 to 9094, data in ./data/cluster (ETCD_MEMBERS=3, ARGS="--remote")
	@.ci/etcd
	@$(COMPILE)
	@exec $(BIN)/python -m bench.local_cluster $(ARGS)

cluster-broker: $(RUNTIME) ## start one of these brokers that was killed, from another terminal (ID=2)
	@[ -n "$(ID)" ] || { echo "which one? make cluster-broker ID=2" >&2; exit 1; }
	@exec $(BIN)/python -m bench.local_cluster --broker $(ID) $(ARGS)

wheel: $(DEVELOPMENT) ## build dist/varve-*.whl for this Python, with what `make native` compiles (VARVE_NATIVE=off: for any)
	@[ "$$VARVE_NATIVE" = off ] || $(BIN)/python -m native --if-possible
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

native: $(DEVELOPMENT) ## compile the hot path (mypyc) and what is in C; minutes once, and all works without it, too
	@$(BIN)/python -m native

run-pipeline: $(DEVELOPMENT) test-tools ## a broker, its tier, and three tables behind it, in ./data/pipeline (ARGS="--local": no Spark)
	@$(BIN)/python -m bench.pipeline_demo $(ARGS)

test: $(DEVELOPMENT) test-tools ## run the fast tests, compiled and as Python, in four processes (ARGS="tests/unit -k name")
	@$(BIN)/python -m native --if-possible --c
	@$(BIN)/python -m tests.tiers --compile fast $(ARGS)
	@echo "More: make test-system (whole brokers), test-interop (real clients, Kafka's tools), test-spark, test-deep (hours)."

test-system: $(DEVELOPMENT) test-tools test-etcd ## run whole brokers: restarts, crashes, hostile clients, in real time
	@$(BIN)/python -m tests.tiers system $(ARGS)

test-interop: $(DEVELOPMENT) test-tools test-etcd ## run real clients, Kafka's own tools and a released Kafka
	@$(BIN)/python -m tests.tiers interop $(ARGS)

test-deep: $(DEVELOPMENT) test-tools test-etcd ## run slow tests, and properties with inputs no run had before (hours; ARGS="tests/unit/tiered")
	@$(BIN)/python -m tests.tiers deep $(ARGS)

test-cluster: $(DEVELOPMENT) ## build etcd, and run what needs it
	@.ci/etcd
	@$(BIN)/python -m pytest -q -rs tests/contract/test_metadata_store.py tests/system/cluster $(ARGS)
	@$(BIN)/python -m pytest -q -rs -m cluster tests/system/tiered $(ARGS)

simulate: $(DEVELOPMENT) ## run whole brokers in virtual time, with faults (ARGS="--seed 1 --hours 1")
	@$(BIN)/python -m tests.simulation $(ARGS)

simulate-mutants: $(DEVELOPMENT) ## does the simulation find each seeded bug within 300 seconds?
	@$(BIN)/python -m tests.simulation --mutants 300 $(ARGS)

histories: $(DEVELOPMENT) ## hundreds of kills under a million acknowledged records (ARGS="--seed 1 --kills 200"; an hour)
	@.ci/etcd
	@$(BIN)/python -m tests.checker.cluster.long_run $(ARGS)

grid: $(DEVELOPMENT) test-tools ## every fault with every kind of client on three brokers, 84 cells (ARGS="--seconds 40"; goes on where it stopped)
	@.ci/etcd
	@$(BIN)/python -m tests.checker.cluster.grid $(ARGS)

test-s3: $(DEVELOPMENT) ## build real S3 servers, run the object store's tests on each, and three brokers on one (with etcd)
	@.ci/s3-servers
	@$(BIN)/python -m pytest -q -rs --durations=0 --durations-min=5 tests/contract/test_object_store.py tests/interop/s3/test_s3_servers.py tests/interop/s3/test_s3_tables.py tests/interop/cluster/test_tiered_s3.py $(ARGS)

test-spark: $(DEVELOPMENT) test-tools ## run what needs Spark: readers, streams, tables (10 to 15 minutes)
	@$(BIN)/python -m pytest -q -m spark --durations=10 $(ARGS)

test-exact: $(DEVELOPMENT) test-tools ## compare 10,000,000 rows of Spark's source with a consumer's and the Kafka connector's (half an hour)
	@VARVE_TEST_RECORDS=$${VARVE_TEST_RECORDS:-10000000} $(BIN)/python -m pytest -q -s tests/spark/test_ten_million.py $(ARGS)

test-clients: $(DEVELOPMENT) test-etcd ## build clients in Go, JavaScript, other Java and Kafka Streams, and run them (BROKERS=3: one is killed during each)
	@.ci/clients
	@VARVE_INTEROP_BROKERS=$(or $(BROKERS),1) $(BIN)/python -m pytest -q -m clients tests/interop $(ARGS)

test-suite: $(DEVELOPMENT) test-tools test-etcd ## run Kafka's own tests of brokers, as released, against Varve (an hour and a half; ARGS="-k OffsetFetch")
	@$(BIN)/python -m pytest -q -m suite tests/interop/suite $(ARGS)

test-tools: # programs that are no Python packages and that tests need
	@.ci/system-packages kcat java javac mvn

test-etcd: # the store of clusters; built once, and where it cannot be, its tests are skipped aloud
	@.ci/etcd || echo "tests of clusters on etcd will be skipped"

check: lint types imports $(DEVELOPMENT) test-tools test-etcd ## all that must pass before a merge: form, types, imports, three tiers
	@$(BIN)/python -m native --if-possible --c
	@$(BIN)/python -m tests.tiers --compile fast system interop

lint: $(DEVELOPMENT) ## look for mistakes in style and form, also of scripts and the image
	@$(BIN)/ruff check --quiet .
	@for script in docker/entrypoint .ci/*; do sh -n $$script || exit 1; done
	@$(BIN)/ruff format --quiet --check . || { echo "run: make fmt" >&2; exit 1; }

types: $(DEVELOPMENT) ## check the types
	@$(BIN)/mypy

imports: $(DEVELOPMENT) ## check the direction of imports
	@$(BIN)/lint-imports --no-cache

fmt: $(DEVELOPMENT) ## put the code into form
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

bench: $(DEVELOPMENT) ## measure beside Apache Kafka (ARGS="--help" tells how)
	@$(BIN)/python -m bench $(ARGS)

codegen: $(DEVELOPMENT) ## write protocol/messages and the messages of etcd again
	@$(BIN)/python -m protocol.codegen
	@$(BIN)/python -m broker.controller.store.etcd.generate

docs: $(DEVELOPMENT) ## write the generated pages of docs/ again
	@$(BIN)/python -m config.reference
	@$(BIN)/python -m broker.api_reference
	@$(BIN)/python -m pipeline.source.options.reference

lock: $(DEVELOPMENT) ## resolve the dependencies again and write the locks (needs uv; ARGS="--upgrade")
	@.ci/lock $(ARGS)

clean: ## remove caches and build output; .venv and data stay
	@rm -rf .build build dist native/built .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Varve needs Python 3.11 or newer; \`$(PYTHON)\` is not. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The development lock holds all of the runtime lock, in the same versions.
$(RUNTIME): requirements.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing what the broker needs"
	@$(PIP) install --require-hashes -r requirements.lock -r requirements-build.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	@touch $@

$(DEVELOPMENT): requirements-dev.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing what developers need"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	@touch $(RUNTIME) $@
