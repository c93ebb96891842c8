# Headrace. A fresh clone needs python3 (3.11 to 3.13) and make; a C compiler makes it fast.
#
# Everything is installed into a virtual environment and runs from there: the build never writes
# beside the sources, and nothing runs from the checkout.

PYTHON ?= python3
PORT ?= 6379
ARGS ?=
TESTS ?= tests
PYTEST_ARGS ?=
# Tests wait for servers more than they compute: three at a time on two processors.
WORKERS := -n 3
# Where other programs take the processor away, a deadline may be missed: once more, and told.
# What an oracle or the judge finds is never tried again.
AGAIN := --reruns 1 --rerun-except shows.the.state --rerun-except ours -rR
export HEADRACE_PURE ?= 0

# SPARK=1 brings pyspark (half a gigabyte) and the tests that need it; Java 17 has to be there.
SPARK ?= 0
ifeq ($(SPARK),1)
export HEADRACE_REQUIRE_SPARK := 1
endif

# The pure build, in the same environment when asked for, and beside it for `make check`.
VENV ?= .venv
PURE_VENV := .venv-pure
JUDGES := .judges
KIND := $(if $(filter 1,$(HEADRACE_PURE)),pure,compiled)
STAMP := $(VENV)/.installed-$(KIND)
REQUIREMENTS := $(VENV)/requirements$(if $(filter 1,$(SPARK)),-spark).txt
BENCH_REQUIREMENTS := $(VENV)/requirements-bench.txt

PACKAGES := compat headrace persistence protocol pyspark_headrace server storage
# Our packages as they are installed, below one name: links for what looks for modules by name.
TREE := build/tree/headrace
# What mypy looks at where pyspark is not installed.
WITHOUT_SPARK := $(TREE) tests bench docker examples setup.py \
	--exclude "'^(tests/spark|tests/support/spark_|bench/spark)'"

# Folders count as sources too: their times tell when a file was removed.
SOURCES := $(shell find $(PACKAGES) -name __pycache__ -prune -o \( -name '*.py' -o -type d \) -print)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install tree run demo judges test check lint types test-compiled test-pure fuzz torture bench bench-quick bench-durability flame link-order instructions soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  HEADRACE_PURE=1 installs without compiling; SPARK=1 installs and tests the Spark part too"
	@echo "  PORT=, ARGS= (run, demo), TESTS=, PYTEST_ARGS= (test)"

install: $(STAMP) ## install headrace and its tools into .venv, compiled where a C compiler is found

run: install ## start on port 6379 with an append-only file in ./data
	@mkdir -p data
	@exec $(VENV)/bin/headrace --port $(PORT) --dir data --appendonly yes $(ARGS)

demo: install ## Rocket Rides: a unified log for a minute, with all its failures (needs PostgreSQL)
	@PYTHONPATH=examples $(VENV)/bin/python -P -m rocket_rides.demo $(ARGS)

# Fetched once for all; the script says where they come from.
judges: | $(VENV)/bin/python ## fetch the real servers that tests compare with into .judges (Debian 12 and 13)
	@tests/support/get_judges.sh $(JUDGES) $(VENV)/bin/python

test: install ## run all tests against the installed build
	HEADRACE_EXPECT_BUILD=$${EXPECT:-$$(cat $(VENV)/.build-kind)} PYTHONSAFEPATH=1 \
		$(VENV)/bin/python -m pytest $(PYTEST_ARGS) $(TESTS)

check: lint types test-compiled test-pure ## what CI runs: lint, types, tests on both builds

lint: install ## ruff, and hadolint on the Dockerfile
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@if [ -x $(VENV)/bin/hadolint ]; then echo "hadolint Dockerfile"; $(VENV)/bin/hadolint Dockerfile; \
	else echo "hadolint has no package for this platform: Dockerfile not linted"; fi

tree: | $(VENV)/bin/python ## lay the packages below build/tree/headrace, as links for mypy and editors
	@$(VENV)/bin/python setup.py --quiet tree

types: install tree ## mypy --strict; what builds on pyspark only where that is installed
	$(VENV)/bin/mypy --cache-dir=$(VENV)/mypy $(shell $(VENV)/bin/python -c 'import pyspark' \
		2> /dev/null || echo $(WITHOUT_SPARK))

test-compiled: ## run all tests against the compiled build
	@$(MAKE) --no-print-directory test HEADRACE_PURE=0 EXPECT=compiled \
		PYTEST_ARGS='$(WORKERS) --dist loadscope $(AGAIN) $(PYTEST_ARGS)'

# What does not depend on the build was run on the compiled one.
test-pure: ## run all tests against the pure build
	@$(MAKE) --no-print-directory test HEADRACE_PURE=1 EXPECT=pure VENV=$(PURE_VENV) SPARK=0 \
		PYTEST_ARGS='$(WORKERS) --dist worksteal $(AGAIN) -m "not once" $(PYTEST_ARGS)'

# Beside a real server: HEADRACE_JUDGE, the one that `make judges` fetches, or that on the PATH.
fuzz: install ## calls by chance, ours and a real server's compared under one clock; ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.fuzz $(ARGS)

torture: install ## kill -9, power cuts, signals, rewrites; is all still there? ARGS=--help
	@PYTHONPATH=tests PYTHONSAFEPATH=1 $(VENV)/bin/python -m support.torture $(ARGS)

# From the checkout, which holds the benchmarks; the servers they start run the installed build.
bench: install $(BENCH_REQUIREMENTS) ## measure every peer found, write bench/report.md; ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.suite $(ARGS)

bench-quick: install $(BENCH_REQUIREMENTS) ## a selection within a minute, shown and not written
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.suite --quick $(ARGS)

flame: install $(BENCH_REQUIREMENTS) ## where the time goes, as a picture (needs Linux's perf); ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.flame $(ARGS)

link-order: install $(BENCH_REQUIREMENTS) ## which functions the linker puts side by side, as perf meets them
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.link_order $(ARGS)

instructions: install $(BENCH_REQUIREMENTS) ## per command, counted by valgrind; ARGS="--server before=COMMAND"
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.instructions $(ARGS)

soak: install $(BENCH_REQUIREMENTS) ## 20 minutes of all kinds of clients: does memory grow? ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.soak $(ARGS)

bench-durability: install $(BENCH_REQUIREMENTS) ## what durability costs, beside redis-server; ARGS=--help
	PYTHONSAFEPATH= $(VENV)/bin/python -m bench.durability $(ARGS)

clean: ## remove the environments and caches; data stays
	rm -rf .venv $(PURE_VENV) $(JUDGES) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find $(PACKAGES) tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "headrace needs Python 3.11 to 3.13; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Set PYTHON=python3.12, say." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv package" \
			"(Debian and Ubuntu: apt-get install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Both lists, so that the build below can use this environment and needs no second one.
$(REQUIREMENTS): pyproject.toml | $(VENV)/bin/python
	@$(VENV)/bin/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
		print(*p["build-system"]["requires"], *p["project"]["dependencies"], \
		*p["project"]["optional-dependencies"]["dev"], \
		*p["project"]["optional-dependencies"]["demo"], \
		*(p["project"]["optional-dependencies"]["spark"] if "$(SPARK)" == "1" else ()), \
		sep="\n")' > $@.new
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $@.new
	@mv $@.new $@

$(BENCH_REQUIREMENTS): pyproject.toml | $(VENV)/bin/python
	@$(VENV)/bin/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
		print(*p["project"]["optional-dependencies"]["bench"], sep="\n")' > $@.new
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $@.new
	@mv $@.new $@

$(STAMP): $(REQUIREMENTS) setup.py server/link_order.txt $(SOURCES)
	@rm -f $(VENV)/.installed-* $(VENV)/.build-kind
	HEADRACE_BUILD_DIR=$(VENV)/build $(VENV)/bin/python -m pip install --quiet \
		--disable-pip-version-check --no-build-isolation --no-deps --force-reinstall .
	@cd $(VENV) && bin/python -P -c 'from headrace.server.build import build_kind; print(build_kind())' > .build-kind
	@echo "headrace: installed the $$(cat $(VENV)/.build-kind) build into $(VENV)"
	@touch $@
