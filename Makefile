# Headrace. A fresh clone needs python3 (3.11 to 3.13) and make; a C compiler makes it fast.
#
# Everything is installed into a virtual environment and runs from there: the build never writes
# beside the sources, and nothing runs from the checkout.

PYTHON ?= python3
PORT ?= 6379
ARGS ?=
TESTS ?= tests
PYTEST_ARGS ?=
# One more at a time than there are processors, because tests wait for servers now and then.
WORKERS ?= -n $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# Where other programs take the processor away, a deadline may be missed: once more, and told.
# What an oracle or the judge finds is never tried again.
AGAIN := --reruns 1 --rerun-except shows.the.state --rerun-except ours -rR
export HEADRACE_PURE ?= 0
# 1 brings the older judges and the campaigns that a push does not wait for.
export HEADRACE_EVERYTHING ?= 0

# SPARK=1 brings pyspark (half a gigabyte) and the tests that need it; Java 17 has to be there.
SPARK ?= 0
export HEADRACE_REQUIRE_SPARK := $(filter 1,$(SPARK))

VENV ?= .venv
JUDGES := .judges
SUITE ?= .judges-suite
KIND := $(if $(filter 1,$(HEADRACE_PURE)),pure,compiled)
STAMP := $(VENV)/.installed-$(KIND)
CONNECTOR_STAMP := $(VENV)/.installed-connector
# What is installed: for running and building, and more by the extras of pyproject.toml.
TO_RUN := $(VENV)/requirements-run.txt
TO_BUILD := $(VENV)/requirements-$(KIND).txt
TO_TEST := $(addprefix $(VENV)/requirements-,test.txt demo.txt metrics.txt console.txt) \
	$(if $(filter 1,$(SPARK)),$(VENV)/requirements-spark.txt)
TO_LINT := $(VENV)/requirements-lint.txt
TO_BENCH := $(VENV)/requirements-test.txt $(VENV)/requirements-bench.txt
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check

PACKAGES := compat console headrace metrics testkit persistence policies protocol regions server storage
CONNECTOR := pyspark_headrace
# What mypy looks at where pyspark is not installed.
WITHOUT_SPARK := headrace tests bench docker examples behind.py setup.py \
	--exclude "'^(tests/spark|tests/support/spark_|bench/spark)'"

sources = $(sort $(shell find $(1) -name '*.py' -o -path '*/commands/*.txt' -o -path '*/config/*.txt' -o -path '*/metrics/*.txt' -o -path '*/console/templates/*' -o -path '*/console/static/*' -o -name '*.lua'))
SOURCES := $(call sources,$(PACKAGES))
# Their names are kept in a file that changes when one comes or goes.
NAMES := $(VENV)/sources.txt
$(shell [ ! -d $(VENV)/bin ] || echo $(SOURCES) | cmp -s - $(NAMES) || echo $(SOURCES) > $(NAMES))
# `make wheel` makes one for each of these that is there.
PYTHONS := python3.11 python3.12 python3.13

# What Python has compiled of a file it keeps: a start takes a fifth longer without, and as Python seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install wheel wheel-of-this run console demo demo-regions pictures judges test test-all check lint types test-compiled test-pure redis-suite fuzz torture region-faults simulate mutants policy-mutants bench bench-quick bench-types bench-sweep bench-durability time-to-pong image-check wheel-check flame link-order instructions soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  HEADRACE_PURE=1 installs without compiling; SPARK=1 installs and tests the Spark part too"
	@echo "  PORT=, ARGS= (run, demo, demo-regions), TESTS=, PYTEST_ARGS= (test)"

# Where the compiled build is not there, Python serves, and gives way to it when it is.
SERVE := --port $(PORT) --dir data --appendonly yes $(ARGS)
SELF = $(MAKE) # so named, `make --dry-run run` runs nothing
AS_PYTHON := PYTHONPATH=$(CURDIR) $(VENV)/bin/python -P -m headrace $(SERVE)
run: $(TO_RUN) ## serve on port 6379 and keep the data in ./data; the first time compile meanwhile
	@mkdir -p data
	@echo "headrace: \`make console PORT=$(PORT)\` in a second terminal shows its streams in a browser"
	@if [ "$$HEADRACE_PURE" = 1 ]; then exec env $(AS_PYTHON); fi; \
	if [ -x $(VENV)/bin/headrace ] && $(SELF) --silent --question $(STAMP); then \
		exec $(VENV)/bin/headrace $(SERVE); fi; \
	echo "headrace: serving as Python while the server is compiled, which makes it three times faster"; \
	rm -f $(VENV)/bin/headrace $(STAMP); \
	$(VENV)/bin/python -P behind.py $$$$ $(VENV)/behind.log \
		env HEADRACE_PROGRESS_S=20 $(SELF) --no-print-directory $(STAMP) & \
	exec env HEADRACE_SUCCESSOR=$(CURDIR)/$(VENV)/bin/headrace $(AS_PYTHON)

console: $(TO_RUN) $(VENV)/requirements-console.txt ## show the streams of the server on port 6379 in a browser; ARGS=--help
	@PYTHONPATH=$(CURDIR) exec $(VENV)/bin/python -P -m headrace console --url redis://127.0.0.1:$(PORT) $(ARGS)

install: $(STAMP) $(CONNECTOR_STAMP) $(TO_LINT) ## install headrace and all tools into .venv, compiled where a C compiler is found

demo: $(STAMP) $(VENV)/requirements-demo.txt ## Rocket Rides: a unified log for a minute, with all its failures (needs PostgreSQL)
	@PYTHONPATH=examples $(VENV)/bin/python -P -m rocket_rides.demo $(ARGS)

demo-regions: $(STAMP) $(VENV)/requirements-demo.txt ## three regions write to one stream for a minute, and every plug is pulled
	@PYTHONPATH=examples $(VENV)/bin/python -P -m two_regions.demo $(ARGS)

# Fetched once for all; the script says where they come from.
judges: | $(VENV)/bin/python ## fetch the real servers that tests compare with into .judges (Debian 12 and 13)
	@tests/support/get_judges.sh $(JUDGES) $(VENV)/bin/python

# The build under test is the compiled one, because that is what serves: `make run` compiles anyway.
# Real servers to compare with are fetched meanwhile, once; without them those tests are skipped.
PYTEST = PYTHONSAFEPATH=1 $(VENV)/bin/python -m pytest $(WORKERS) --dist loadscope $(AGAIN) $(PYTEST_ARGS)
test: | $(VENV)/bin/python ## run the tests on the installed build, the quick ones first
	@[ -e $(JUDGES) ] || $(SELF) --silent judges || echo "headrace: no real servers, so nothing is compared with them" & \
	$(SELF) --no-print-directory $(STAMP) $(CONNECTOR_STAMP) && wait
	HEADRACE_EXPECT_BUILD=$${EXPECT:-$$(cat $(VENV)/.build-kind)} $(PYTEST) $(TESTS)

check: lint types test-compiled test-pure ## what CI runs: lint, types, tests on both builds

test-all: ## all tests on both builds, campaigns and older judges, too: what a release is tested with
	@$(MAKE) --no-print-directory test-compiled test-pure HEADRACE_EVERYTHING=1 PURE_TESTS=tests

lint: $(TO_LINT) ## ruff, actionlint on the workflow, and hadolint on the Dockerfile
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/actionlint
	@if [ -x $(VENV)/bin/hadolint ]; then echo "hadolint Dockerfile"; $(VENV)/bin/hadolint Dockerfile; \
	else echo "hadolint has no package for this platform: Dockerfile not linted"; fi

types: $(TO_BUILD) $(TO_TEST) $(TO_LINT) ## mypy --strict; what builds on pyspark only where that is installed
	$(VENV)/bin/mypy --cache-dir=$(VENV)/mypy $(shell $(VENV)/bin/python -c 'import pyspark' \
		2> /dev/null || echo $(WITHOUT_SPARK))

test-compiled: ## run all tests against the compiled build
	@$(MAKE) --no-print-directory test HEADRACE_PURE=0 EXPECT=compiled

# What does not depend on the build was run on the compiled one. Where the two could differ is how
# values are kept, packed, read and written; of the server, its start and what clients see first.
PURE_TESTS := tests/storage tests/protocol tests/persistence tests/compat \
	tests/server/test_start.py tests/server/test_succession.py
test-pure: $(CONNECTOR_STAMP) ## run the tests that can tell the builds apart on the checkout, uncompiled
	HEADRACE_EXPECT_BUILD=tree $(PYTEST) -m "not once" $(PURE_TESTS)

# The sources hold the tests; SUITE=FOLDER for others. tclsh runs them (Debian and Ubuntu: tcl).
redis-suite: $(STAMP) $(TO_TEST) ## Redis's own tests, on ours and on a real server; ARGS=unit/type/list, ARGS=--help
	@tests/support/get_suite.sh $(SUITE)
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.redis_suite --suite $(SUITE) $(ARGS)

# Of Debian: chromium. What docs/console.md shows is made on the way.
pictures: $(STAMP) $(TO_TEST) $(VENV)/requirements-browser.txt ## the tests of the console in a browser, which make the pictures of docs/console.md
	HEADRACE_PICTURES=$(CURDIR)/docs/images $(PYTEST) tests/console/test_browser.py

# Beside a real server: HEADRACE_JUDGE, the one that `make judges` fetches, or that on the PATH.
fuzz: $(STAMP) $(TO_TEST) ## calls by chance, ours and a real server's compared under one clock; ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.fuzz $(ARGS)

simulate: $(STAMP) $(TO_TEST) ## worlds of regions by chance, with all their faults, checked; ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 PYTHONHASHSEED=0 $(VENV)/bin/python -m simulator $(ARGS)

mutants: $(STAMP) $(TO_TEST) ## bugs planted in regions: is each of them found? ARGS=--help
	@PYTHONPATH=.:tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m simulator.mutants $(ARGS)

torture: $(STAMP) $(TO_TEST) ## kill -9, power cuts, signals, rewrites; is all still there? ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.torture $(ARGS)

policy-mutants: $(STAMP) $(TO_TEST) ## bugs planted in policies: is each of them found? ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 HEADRACE_EXPECT_BUILD=tree $(VENV)/bin/python -m support.policy_mutants $(ARGS)

region-faults: $(STAMP) $(TO_TEST) ## regions whose links are cut, that are killed and lose disks; ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.region_faults $(ARGS)

# From the checkout, which holds the benchmarks; the servers they start run the installed build.
bench: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## measure every peer found, write bench/report.md; ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.suite $(ARGS)

bench-quick: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## a selection within a minute, shown and not written
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.suite --quick $(ARGS)

# Beside the servers that `make judges` fetches.
bench-types: $(STAMP) $(TO_BENCH) ## CPU per command and memory per element, by type; ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.types $(ARGS)

bench-sweep: $(STAMP) $(TO_BENCH) ## CPU of every command over many small keys, beside real servers; ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.sweep $(ARGS)

flame: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## where the time goes, as a picture (needs Linux's perf); ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.flame $(ARGS)

link-order: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## which functions the linker puts side by side, as perf meets them
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.link_order $(ARGS)

instructions: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## per command, counted by valgrind; ARGS="--server before=COMMAND"
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.instructions $(ARGS)

soak: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## 20 minutes of all kinds of clients: does memory grow? ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.soak $(ARGS)

bench-durability: $(STAMP) $(CONNECTOR_STAMP) $(TO_BENCH) ## what durability costs, beside redis-server; ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.durability $(ARGS)

time-to-pong: | $(VENV)/bin/python ## how long a fresh clone takes to the first PONG, and to the compiled server
	@PYTHONSAFEPATH= $(VENV)/bin/python -m bench.time_to_pong

# Of Debian: podman, runc and mmdebstrap. HEADRACE_WHEEL names another wheel to put in.
image-check: $(STAMP) ## build the container image without a registry and use it as people do; ARGS=SIGTERM: some checks
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.image $(ARGS)

# The index is asked for the libraries alone, before the clock runs.
wheel-check: $(STAMP) ## install the wheels into empty environments without a compiler, and use them: sizes and times
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.wheel_check

clean: ## remove the environments and caches; data stays
	rm -rf .venv $(JUDGES) .judges-suite .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find $(PACKAGES) $(CONNECTOR) tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "headrace needs Python 3.11 to 3.13; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Set PYTHON=python3.12, say." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv package" \
			"(Debian and Ubuntu: apt-get install python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "headrace: no environment in $(VENV), for the reason above." \
		"May you write here, and is there space?" >&2; exit 1; }

# What serving needs, and what the build below needs besides in this environment: it makes no second
# one. The pure build takes no more than setuptools.
# Of several in one environment one fetches, and one builds: the lock is held by a shell and all that it
# starts. An environment whose making was cut short has no pip.
define LOCK
import fcntl, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("headrace: waiting for another `make` that installs in this checkout", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
endef
export LOCK
COMMA := ,
LOCKED = exec 9> $(VENV)/$(1) && $(VENV)/bin/python -c "$$LOCK"
FETCH = @$(call LOCKED,lock) && { [ -e $(VENV)/bin/pip ] || $(PYTHON) -m venv $(VENV); } && \
	$(VENV)/bin/python -c 'import tomllib; p = tomllib.load(open("$<", "rb")); \
		print(*$(1), sep="\n")' > $@.new && $(PIP) install --quiet -r $@.new && mv $@.new $@ || { \
	echo "headrace: not fetched what pyproject.toml names, for the reason above. This needs a network, or" \
		"PIP_INDEX_URL or PIP_FIND_LINKS, and space in $(VENV). Then start make again." >&2; exit 1; }
$(TO_RUN): pyproject.toml | $(VENV)/bin/python
	@echo "headrace: fetching what running needs"
	$(call FETCH,p["project"]["dependencies"])

$(TO_BUILD): pyproject.toml | $(TO_RUN)
	$(call FETCH,p["build-system"]["requires"][: 1 if "$(KIND)" == "pure" else None])

$(VENV)/requirements-spark.txt: $(CONNECTOR)/pyproject.toml | $(VENV)/bin/python
	$(call FETCH,p["project"]["dependencies"] + sum(p["project"]["optional-dependencies"].values()$(COMMA) []))

$(VENV)/requirements-%.txt: pyproject.toml | $(VENV)/bin/python
	$(call FETCH,p["project"]["optional-dependencies"]["$*"])

# The wheel is built outside of pip, which would not show how far the build has come, and unpacked
# where pip would put it. The program is made last: with it, all is there, and the library loads.
# Where that is not the build that was asked for, because no compiler is there, the next time asks again.
BUILD_WHEEL := from sys import argv; from setuptools.build_meta import build_wheel; \
	build_wheel(argv[1], {"--global-option": "--quiet"})
define UNPACK
import importlib, shutil, sys, sysconfig, zipfile
from pathlib import Path
libraries = Path(sysconfig.get_path("platlib"))
for old in [libraries / "headrace", *libraries.glob("headrace-*.dist-info")]:
    shutil.rmtree(old, ignore_errors=True)
zipfile.ZipFile(*Path(sys.argv[1]).glob("*.whl")).extractall(libraries)
importlib.invalidate_caches()
import headrace.server.app
from headrace.server.build import build_kind
kind = build_kind()
Path(sys.prefix, ".build-kind").write_text(f"{kind}\n")
program = Path(sysconfig.get_path("scripts"), "headrace")
program.write_text(f"#!{sys.executable}\nimport sys\nfrom headrace.server.cli import main\nsys.exit(main())\n")
program.chmod(0o755)
if kind == sys.argv[2]:
    Path(sys.argv[3]).touch()
print(f"headrace: installed the {kind} build into {sys.argv[4]}")
endef
export UNPACK

$(NAMES): | $(VENV)/bin/python
	@echo $(SOURCES) > $@

$(STAMP): $(TO_RUN) $(TO_BUILD) $(NAMES) setup.py headrace/importer.c $(wildcard server/*.txt) $(SOURCES)
	@$(call LOCKED,lock-of-build) && if $(SELF) --silent --question $@; then exit 0; fi && \
	rm -rf $(VENV)/.installed-pure $(VENV)/.installed-compiled $(VENV)/.build-kind $(VENV)/wheel && \
	rm -f $(VENV)/bin/headrace && mkdir $(VENV)/wheel && \
	HEADRACE_SYMBOLS=1 HEADRACE_BUILD_DIR=$(VENV)/build \
		$(VENV)/bin/python -P -c '$(BUILD_WHEEL)' $(VENV)/wheel && \
	$(VENV)/bin/python -P -c "$$UNPACK" $(VENV)/wheel $(KIND) $@ $(VENV)

# The Spark connector is installed for every test; what it needs, with SPARK=1 alone.
$(CONNECTOR_STAMP): $(TO_TEST) $(CONNECTOR)/pyproject.toml $(call sources,$(CONNECTOR))
	@$(PIP) install --quiet --no-build-isolation --no-deps --force-reinstall ./$(CONNECTOR)
	@touch $@

wheel: ## wheels into dist/: headrace for each Python installed, pyspark-headrace for all
	@mkdir -p dist
	@for python in $(PYTHONS); do \
		$$python -c '' 2> /dev/null || { echo "headrace: no $$python here"; continue; }; \
		$(MAKE) --no-print-directory wheel-of-this PYTHON=$$python VENV=build/$$python || exit 1; \
	done
	@$(PYTHON) -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist ./$(CONNECTOR)
	@ls dist

wheel-of-this: $(TO_BUILD)
	@HEADRACE_BUILD_DIR=$(VENV)/build $(VENV)/bin/python -P -c '$(BUILD_WHEEL)' dist
