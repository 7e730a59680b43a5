# Everything sets itself up: a .venv beside this file, with the versions pinned in constraints.txt.
# FAMILY=guard make test   one family;   PYTHON=python3.12 make test   another interpreter;
#   VENV=.venv-duckdb1 DUCKDB='duckdb<2' make test   another DuckDB; with BESIDE=.venv it takes all else from there

PYTHON ?= python3
VENV ?= .venv
DUCKDB ?=
BESIDE ?=
# Where nothing compiled is kept, each of the programs that the tests start compiles all of sdcduck once more.
unexport PYTHONDONTWRITEBYTECODE
BIN = $(VENV)/bin
FAMILY ?=
TESTS = $(FAMILY:%=tests/%)
STAMP = $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)

PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check
# uv installs the same in a fifth of the time of a processor. It does not read the settings of pip, so it is told where
# packages are; where it cannot be had or finds them not, pip does it.
SETTING = $(BIN)/python -m pip config get
define all_at_once
($(PIP) 'uv<1' && \
export UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(SETTING) global.index-url 2>/dev/null)}}" && \
export UV_INDEX="$${UV_INDEX:-$${PIP_EXTRA_INDEX_URL:-$$($(SETTING) global.extra-index-url 2>/dev/null)}}" && \
{ [ -n "$$UV_DEFAULT_INDEX" ] || unset UV_DEFAULT_INDEX; } && { [ -n "$$UV_INDEX" ] || unset UV_INDEX; } && \
UV_HTTP_RETRIES=1 $(BIN)/uv pip install -q --no-progress --index-strategy unsafe-best-match --python $(BIN)/python \
-c constraints.txt -e '.[demo,test,check,docs]') 2>$(VENV)/uv.log || $(PIP) -c constraints.txt -e '.[demo,test,check,docs]'
endef
# What the other environment has comes behind what this one has: DuckDB and sdcduck.
define lend
$(PIP) --no-deps '$(DUCKDB)' && \
$(BIN)/python -c 'import os.path as p, sysconfig; inside = p.relpath(sysconfig.get_path("purelib"), "$(VENV)"); print("import site; site.addsitedir(\"%s\")" % p.abspath(p.join("$(BESIDE)", inside)))' > $(VENV)/beside && \
mv $(VENV)/beside $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth && \
$(PIP) --no-deps -e .
endef

.PHONY: help install demo test fast test-long fuzz lint check bench guard-suppression dp-audit superset-test tools-test network-test spark-test scale-test docs release ptables examples acceptance lock clean

help:                    ## what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/ -/'

$(STAMP):
	@echo "sdcduck: making $(VENV) and installing into it (a minute or two, once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || (echo "sdcduck needs Python 3.11 or later"; exit 1)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || (echo "on Debian: apt-get install python3-venv"; exit 1)
	@if [ -n "$(BESIDE)" ]; then $(lend); else $(all_at_once); fi
	@if [ -n "$(DUCKDB)" ] && [ -z "$(BESIDE)" ]; then $(PIP) '$(DUCKDB)'; fi
	@rm -f $(VENV)/.installed-*; touch $@

install: $(STAMP)        ## the environment that all of this runs in

demo: $(STAMP)           ## 1.4 million real records protected, measured and drawn, in a minute or two
	@$(BIN)/sdcduck demo

test: $(STAMP)           ## all tests, with the doctests and the examples of the documentation
	@$(BIN)/python -c 'import duckdb, sys; print(f"sdcduck: testing on DuckDB {duckdb.__version__}, Python {sys.version.split()[0]}")'
	@$(BIN)/python -m pytest -n auto --dist worksteal $(TESTS)

fast: $(STAMP)           ## tests of what was changed, the changed ones first, as many as start within 20 seconds
	@SDCDUCK_SECONDS=20 $(BIN)/python -m pytest -n auto --no-header $$($(BIN)/python tests/changed.py)

test-long: $(STAMP)      ## the same with all repetitions, before a release: an hour or more
	@SDCDUCK_EFFORT=long $(BIN)/python -m pytest -n auto --dist worksteal -m 'long or not long' $(TESTS)

fuzz: $(STAMP)           ## the tests with random examples, with examples that are new in each run
	@SDCDUCK_EXAMPLES=fresh $(BIN)/python -m pytest -n auto -m hypothesis

# The folders sql/ and udfs/ are packages sdcduck.sql and sdcduck.udfs once installed, so types and floors are checked on a
# tree as it is then.
lint: $(STAMP)           ## ruff, mypy --strict, import contracts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@rm -rf build && mkdir -p build/tree && cp -r sdcduck build/tree/ && cp -r sql udfs build/tree/sdcduck/
	@MYPYPATH=build/tree $(BIN)/python -m mypy --strict --cache-dir .mypy_cache/installed -p sdcduck
	@cd build/tree && $(abspath $(BIN))/lint-imports --config $(CURDIR)/pyproject.toml

check: lint test         ## lint, then the tests

bench: $(STAMP)          ## the cost of protection, on 10 million rows
	@$(BIN)/python benchmarks/cell_key.py
	@$(BIN)/python benchmarks/guard.py
	@$(BIN)/python benchmarks/two_tables.py
	@$(BIN)/python benchmarks/synthesis.py
	@$(BIN)/python benchmarks/record_swapping.py
	@$(BIN)/python benchmarks/masking.py
	@$(BIN)/python benchmarks/trips.py
	@$(BIN)/python benchmarks/encrypted.py
	@$(BIN)/python benchmarks/text.py
	@$(BIN)/python benchmarks/dp.py
	@$(BIN)/python benchmarks/sequence.py
	@$(BIN)/python benchmarks/metrics.py
	@$(BIN)/python benchmarks/utility.py
	@$(BIN)/python benchmarks/output_risk.py
	@$(BIN)/python benchmarks/attacks.py
	@$(BIN)/python benchmarks/scale.py
	@$(BIN)/python benchmarks/desk.py

guard-suppression: $(STAMP)  ## everything that suppression answers, audited: a hundredth, or SHARE=1 for all
	@SHARE=$(or $(SHARE),0.01) $(BIN)/python tests/attacks/suppression_audit.py

dp-audit: $(STAMP)       ## every private statistic 100,000 times on neighbouring tables: half an hour, or SHARE=0.01
	@SHARE=$(or $(SHARE),1) $(BIN)/python tests/dp/private_audit.py

# Superset wants other versions of the same libraries, so it has an environment of its own.
SUPERSET_VENV = .venv-superset
SUPERSET_STAMP = $(SUPERSET_VENV)/.installed-$(shell cat tests/superset/constraints.txt | cksum | cut -d' ' -f1)

$(SUPERSET_STAMP):
	@echo "sdcduck: making $(SUPERSET_VENV) and installing Apache Superset into it (900 MB, some minutes, once)"
	@test -x $(SUPERSET_VENV)/bin/python || $(PYTHON) -m venv $(SUPERSET_VENV)
	@$(SUPERSET_VENV)/bin/python -m pip install -qq --disable-pip-version-check -c tests/superset/constraints.txt \
	  apache-superset cachetools flask-caching psycopg2-binary rich
	@rm -f $(SUPERSET_VENV)/.installed-*; touch $@

superset-test: $(STAMP) $(SUPERSET_STAMP)  ## Apache Superset asks the gateway, in a Chromium without a window (Debian: chromium)
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	    apt-get install -qq -y chromium chromium-driver >/dev/null; } || \
	  { echo "superset-test needs Chromium; on Debian, as root: apt-get install chromium chromium-driver"; exit 1; }
	@$(BIN)/python tests/superset/superset_dashboard.py $(SUPERSET_VENV)/bin/superset $(PICTURE)

# SQLMesh wants a DuckDB before 2 and the reader of SQL that is not compiled. DUCKDB='duckdb>=2' tries the others with that.
TOOLS_VENV = .venv-tools
TOOLS_STAMP = $(TOOLS_VENV)/.installed-$(shell cat pyproject.toml tests/other_programs.txt | cksum | cut -d' ' -f1)

$(TOOLS_STAMP):
	@echo "sdcduck: making $(TOOLS_VENV) and installing dbt, SQLMesh, marimo, JupySQL and Harlequin into it (a minute or two, once)"
	@test -x $(TOOLS_VENV)/bin/python || $(PYTHON) -m venv $(TOOLS_VENV)
	@$(TOOLS_VENV)/bin/python -m pip install -qq --disable-pip-version-check -c tests/other_programs.txt -e . \
	  dbt-duckdb duckdb-engine harlequin harlequin-postgres hypothesis jupysql marimo pytest pytest-timeout scikit-learn sqlmesh
	@rm -f $(TOOLS_VENV)/.installed-*; touch $@

tools-test: $(TOOLS_STAMP)  ## dbt, SQLMesh, marimo, JupySQL and Harlequin use the functions and ask the gateway
	@$(TOOLS_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps '$(or $(DUCKDB),duckdb<2)'
	@$(TOOLS_VENV)/bin/python -m pytest $(if $(DUCKDB),--deselect tests/test_other_programs.py::test_models_of_sqlmesh) tests/test_other_programs.py

# Keras and JAX are 460 MB that nothing else wants.
NETWORK_VENV = .venv-network

network-test:            ## synthetic trips by the network of the paper, on Keras and JAX
	@$(MAKE) --no-print-directory install
	@test -x $(NETWORK_VENV)/bin/python || $(MAKE) --no-print-directory install VENV=$(NETWORK_VENV) BESIDE=$(VENV) DUCKDB='duckdb>=2'
	@$(NETWORK_VENV)/bin/python -m pip install -qq --disable-pip-version-check 'keras>=3.6' 'jax>=0.5'
	@$(NETWORK_VENV)/bin/python -m pytest tests/trips

# Spark is 490 MB, and takes half a minute to answer its first question.
SCALE_VENV = .venv-scale

.PHONY: with-spark
with-spark: $(STAMP)
	@command -v java >/dev/null || { echo "Spark needs Java; on Debian, as root: apt-get install default-jre-headless"; exit 1; }
	@test -x $(SCALE_VENV)/bin/python || $(MAKE) --no-print-directory install VENV=$(SCALE_VENV) BESIDE=$(VENV) DUCKDB='duckdb>=2'
	@$(SCALE_VENV)/bin/python -m pip install -qq --disable-pip-version-check 'pyspark>=4,<5'

spark-test: with-spark   ## some questions of records in Spark, in this process (Debian: default-jre-headless)
	@$(SCALE_VENV)/bin/python -m pytest tests/guard/engines/test_spark.py

scale-test: with-spark   ## all of them, in this process, on two workers, and when one of two is killed
	@SDCDUCK_EFFORT=long $(SCALE_VENV)/bin/python -m pytest -m 'long or not long' tests/guard/engines/test_spark.py tests/guard/engines/test_spark_cluster.py

docs: $(STAMP)           ## the documentation site, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -q && echo "sdcduck: open site/index.html"

release: $(STAMP)        ## the archive and the wheel in dist/, installed into an empty environment and tried
	@$(BIN)/python tests/releasing.py

ptables: $(STAMP)        ## write the built-in p-tables into sql/perturbation.sql
	@$(BIN)/python -m sdcduck.sql.builtin

examples: $(STAMP)       ## run the examples of the SQL reference and write their outputs beside them; the functions for ibis and Python
	@$(BIN)/python tests/example_outputs.py && $(BIN)/python tests/ibis_functions.py && $(BIN)/python tests/python_functions.py

acceptance: $(STAMP)     ## ask the guard what people ask, and write down what it answers
	@$(BIN)/python tests/guard/acceptance/table.py && PYTHONPATH=tests/guard $(BIN)/python tests/guard/acceptance/tpch.py

lock:                    ## write constraints.txt from a fresh environment with the newest versions
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install -qq --disable-pip-version-check '.[demo,test,check,docs]'
	@(echo "# The versions everything is tested with; written by \`make lock\`."; \
	  build/lock/bin/python -m pip freeze --all | grep -v -e '^pip==' -e '^sdcduck') > constraints.txt

clean:                   ## remove what was made
	@rm -rf $(VENV) $(SUPERSET_VENV) .venv-duckdb1 .venv-scanner .venv-node .venv-tools .venv-scale build dist site out *.egg-info
