# `make demo` shows what there is, `make test` checks all of it; both create what they need.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
DEMO_STAMP := .venv/installed-for-demo
# RERUNS: how often a test that starts processes is run again if it fails; .ci/run says why.
PYTEST_ALL = $(BIN)/pytest -q $(RERUNS)
# Every suite leaves out the tests that are marked `long`, which `make test-long` runs. `make test` also leaves out those that
# are marked `extended`, which `make test-extended` runs.
MARKED ?= not long
PYTEST = $(PYTEST_ALL) -m "$(MARKED)"

# Tests start hundreds of processes: what Python has compiled for one of them is there for the next.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-extended test-long lint format unit fuzz simulate scenarios wire amplification http amplification-http console cli coordination kazoo cluster cluster-matrix upgrades spark spark-extended extended pages spark-long compat compat-long frameworks transactions-long schema docs docs-run site bench compare attacks background scale spark-compare groups lock audit sbom clean arrow dist screenshots

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## create .venv with .venv/bin/headrace

# LOCKED is the file with the packages of a stamp. All those for the demo are among those for everything.
$(DEMO_STAMP): LOCKED := requirements/demo.txt
$(STAMP): LOCKED := requirements/dev.txt
$(DEMO_STAMP) $(STAMP): requirements/demo.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Headrace needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python tools/install.py $(LOCKED)
	@touch $@

# If everything is installed, the demo uses that, and otherwise it installs only what it needs itself.
demo: $(if $(wildcard $(STAMP)),$(STAMP),$(DEMO_STAMP))  ## three brokers, sixty trucks, a Spark pipeline and a kill -9: nothing is missing
	$(BIN)/headrace demo

# Long suites come first, and those that mostly wait (for timeouts, elections, a browser) between those that work.
# The last two take about as long as each other, so that no core is left without work.
SUITES := lint spark unit cluster wire console cli http coordination arrow
EXTENDED := compat spark-extended extended pages kazoo
# How many of them run at a time: with two, a third of two cores is idle. JOBS=1 shows the progress of each.
JOBS ?= 3

SIDE_BY_SIDE = $(MAKE) --no-print-directory --jobs=$(JOBS) $(if $(filter-out 1,$(JOBS)),--output-sync=target UNIT_WORKERS=0)

test: install  ## every subject, three suites at a time: about fifteen minutes
	@echo "$(words $(SUITES)) suites, $(JOBS) at a time; each prints its output when it is done (JOBS=1: as it runs)"
	+$(SIDE_BY_SIDE) MARKED="not long and not extended" $(SUITES)

test-extended: install  ## what `make test` leaves out, and CI runs: other people's programs, more of Spark, all pages block by block
	+$(SIDE_BY_SIDE) $(EXTENDED)

test-long: install simulate transactions-long  ## what `make test` leaves out: tests marked `long`, longer searches, 2,000 simulated clusters
	HEADRACE_EXAMPLES=$(or $(EXAMPLES),20) $(BIN)/pytest -q -n 2 tests/property tests/http/test_openapi.py
	$(PYTEST_ALL) -m long --ignore=tests/transactions tests

lint: install  ## format, lint, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin src/headrace
	$(BIN)/lint-imports

format: install  ## rewrite the code the way `make lint` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Next to other suites unit tests run in one process: what xdist needs for each of 11,000 short tests is a tenth of the suite.
UNIT_WORKERS ?= 2

unit: install  ## unit and property tests, and 300 simulated clusters (ONLY=storage: the unit tests of one package)
	$(BIN)/pytest -q -n $(if $(ONLY),0,$(UNIT_WORKERS)) -m "$(MARKED)" $(if $(ONLY),tests/unit/$(ONLY),tests/unit tests/property tests/simulation tests/scenarios)

fuzz: install  ## coverage-guided fuzzing of every parser of strangers' bytes, a minute each (ARGS="--target sasl --seconds 600")
	PYTHONPATH=tests $(BIN)/python -m fuzzing $(ARGS)

simulate: install  ## the brokers' own code in simulated clusters that go wrong: SEEDS=10000, or SEED=17 in full (ARGS=--mutations)
	PYTHONPATH=tests $(BIN)/python -m simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),2000)) $(ARGS)

scenarios: install  ## the cluster protocol as text files, tests/scenarios (ARGS="power_cut --trace": every event of one)
	PYTHONPATH=tests $(BIN)/python -m scenarios $(ARGS)

wire: install  ## a real broker on loopback: three clients, raw requests, hostile bytes, kill -9
	$(PYTEST) -n 4 --dist worksteal tests/wire

amplification: install  ## what every request of every Kafka API costs a broker, and which cost too much (ARGS="--only fetch")
	PYTHONPATH=tests $(BIN)/python -m amplification $(ARGS)

http: install  ## the gateway, the schema registry and metrics, over HTTP: other people's clients, any request at all
	$(PYTEST) -n 4 --dist worksteal tests/http

amplification-http: install  ## every HTTP route, searched for requests that cost more than their bytes (ARGS=--size 4000000)
	PYTHONPATH=tests $(BIN)/python -m http_amplification $(ARGS)

console: install  ## the web console in a real Chromium (which is installed if it is missing and we are root on Debian)
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qq -y chromium >/dev/null 2>&1; } || true
	$(PYTEST) -n 2 tests/console

cli: install  ## every command, as a process of its own, against a real broker
	$(PYTEST) -n 4 --dist worksteal tests/cli

pages: install  ## README.md and every page of docs/, block by block, as a test
	$(PYTEST) -n 2 --dist worksteal tests/pages

docs-run: install  ## the same, as a reader would run them (ARGS=--spark: with Spark; ARGS=docs/start.md: one page)
	PYTHONPATH=tests $(BIN)/python -m pages $(ARGS)

coordination: install  ## the embedded coordinator and Apache ZooKeeper, through kazoo: one suite for both
	$(PYTEST) -n 2 --ignore=tests/coordination/test_kazoo_suite.py tests/coordination

kazoo: install  ## kazoo's own test suite against the embedded coordinator
	$(PYTEST) tests/coordination/test_kazoo_suite.py

cluster: install  ## three brokers under faults: kills, pauses, cut networks, full disks, an upgrade, and nothing is lost
	$(PYTEST) -n 2 tests/cluster tests/upgrade

upgrades: install  ## rolling upgrades and downgrades under load, against the previous version: 4 minutes
	$(PYTEST_ALL) tests/upgrade

cluster-matrix: install  ## every such story, with the embedded coordinator and with ZooKeeper: a table (ARGS=--only kill)
	PYTHONPATH=tests $(BIN)/python -m cluster $(ARGS)

# One process: a second one would start, and warm up, another Spark session and the processes that belong to it.
spark: install  ## a real Spark session: format("headrace") beside Spark's own Kafka connector
	$(PYTEST) tests/spark

spark-extended: install  ## the part of `make spark` that `make test` leaves out
	$(PYTEST_ALL) -m "extended and not long" tests/spark

extended: install  ## the same of the suites wire, http, cli, console and cluster
	$(PYTEST_ALL) -n 2 --dist loadfile -m "extended and not long" tests/wire tests/http tests/cli tests/console tests/cluster

arrow: install  ## topics as tables without Spark: Arrow, Polars, DuckDB and `headrace sql`, beside a plain consumer
	$(PYTEST) tests/arrow

spark-long: install  ## the same, and what takes long: clusters of Spark's, triggered runs, every table
	$(PYTEST_ALL) tests/spark tests/cli/test_pipeline_run.py

compat: install  ## other people's programs: client encoders, Apache Kafka's own tools
	$(PYTEST) -n 2 --dist loadfile tests/compat

compat-long: install  ## the same, and what takes long: every case, and Go's registry client, which is compiled first
	$(PYTEST_ALL) -n 2 --dist loadfile tests/compat

frameworks: install  ## FastStream, Quix Streams, faust-streaming, Bytewax and Celery, each with a small job (needs the network once)
	$(PYTEST_ALL) tests/frameworks

transactions-long: install  ## Kafka Streams, Kafka Connect, franz-go and kafka-transactions.sh, exactly once while brokers are killed
	PYTHONPATH=bench $(PYTEST_ALL) tests/transactions

schema: install  ## regenerate src/headrace/protocol/schema from Kafka's message definitions; KAFKA=4.5.0 moves to those of 4.5.0
	$(if $(KAFKA),sed -i 's|\(<kafka.version>\).*\(</\)|\1$(KAFKA)\2|' tests/compat/kafka_tools/clients.xml)
	PYTHONPATH=tests $(BIN)/python tools/generate_schema.py

docs: install  ## write docs/config.md, docs/apis.md and docs/cli.md anew from the code
	$(BIN)/python tools/generate_docs.py

site: install  ## the documentation as pages for a browser, in build/site (mkdocs serve: while you write)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open build/site/index.html, or: .venv/bin/mkdocs serve"

bench: install  ## print the figures
	$(BIN)/python bench/protocol.py
	$(BIN)/python bench/log.py
	$(BIN)/python bench/coordination.py

compare: install  ## the same load on Headrace and on Apache Kafka: a table of ratios (ARGS=--quick: 7 minutes)
	PYTHONPATH=bench:tests $(BIN)/python -m compare $(ARGS)

attacks: install  ## what a second client notices of a greedy producer, floods and slow loris (ARGS="--only flood --seconds 4")
	PYTHONPATH=bench:tests $(BIN)/python -m attacks $(ARGS)

background: install  ## a producer's latency next to compaction, cold reads and retention (ARGS="--gigabytes 0.5")
	PYTHONPATH=bench:tests $(BIN)/python -m background $(ARGS)

scale: install  ## thousands of partitions and failovers, next to Apache Kafka: half an hour (ARGS="--partitions 1000", ARGS=--simulated)
	PYTHONPATH=bench:tests $(BIN)/python -m scale $(ARGS)

spark-compare: install  ## format("headrace") beside Spark's own connector (ARGS=--quick, ARGS=--kafka)
	PYTHONPATH=bench:tests $(BIN)/python -m sparks $(ARGS)

groups: install  ## consumer groups in figures (ARGS=--kafka: beside Apache Kafka, ARGS=--quick: shorter)
	PYTHONPATH=bench:tests $(BIN)/python -m groups $(ARGS)

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

lock: install  ## resolve the files in requirements and requirements/frameworks anew
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	$(COMPILE) --extra all --group dev pyproject.toml -o requirements/dev.txt
	$(COMPILE) --extra spark --group build --constraints requirements/dev.txt pyproject.toml -o requirements/demo.txt
	echo uv | $(COMPILE) - -o requirements/uv.txt
	for file in requirements/frameworks/*.in; do $(COMPILE) $$file -o $${file%.in}.txt || exit 1; done

# These need the network: pip-audit asks for known vulnerabilities, and the tools are installed on first use.
audit: install  ## known vulnerabilities of the locked dependencies (needs the network)
	test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip install --quiet pip-audit cyclonedx-bom; }
	$(BIN)/python tools/audit.py .venv-audit/bin/pip-audit --disable-pip --require-hashes -r requirements/dev.txt -r requirements/uv.txt

sbom: install  ## build/sbom.json: the installed packages in CycloneDX form (needs the network once)
	test -x .venv-audit/bin/cyclonedx-py || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip install --quiet pip-audit cyclonedx-bom; }
	mkdir -p build
	.venv-audit/bin/cyclonedx-py environment --pyproject pyproject.toml --output-format JSON -o build/sbom.json .venv
	@echo "build/sbom.json"

dist: install  ## dist/: wheel and sdist, checked, and used in an empty environment for each Python and extra (ARGS="--extra http")
	test -x .venv-dist/bin/twine || { $(PYTHON) -m venv .venv-dist && .venv-dist/bin/python -m pip install --quiet build hatch-fancy-pypi-readme hatchling 'readme_renderer[md]' twine uv; }
	PYTHONPATH=tools $(BIN)/python -m distribution --tools .venv-dist/bin $(ARGS)

screenshots: install  ## docs/assets/*.png anew: the console and the demo, of what really runs (needs Chromium)
	PYTHONPATH=tests $(BIN)/python tools/screenshots.py $(ARGS)

clean:  ## remove what the targets above made
	rm -rf .venv .venv-audit .venv-dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
