# Two commands do everything: `make run` and `make test`. They build `.venv` themselves (with uv if it is
# there, with venv and pip if not) and do nothing the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := requirements.lock

.PHONY: run test lint format types imports unit bench lock clean help
.DEFAULT_GOAL := help

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

run: $(STAMP) ## show the planner at work on a Codex-sized request
	@$(BIN)/isthmus explain examples/codex.json --provider deepseek

test: $(STAMP) ## lint, types, import rules and all offline tests
	@$(MAKE) --no-print-directory lint types imports unit

lint: $(STAMP) ## ruff: rules and format
	@$(BIN)/ruff check -q src tests bench && $(BIN)/ruff format -q --check src tests bench && echo "lint: ok"

format: $(STAMP) ## rewrite the code in house format
	@$(BIN)/ruff check -q --fix src tests bench; $(BIN)/ruff format -q src tests bench

types: $(STAMP) ## mypy, strict, on src
	@$(BIN)/mypy --no-error-summary src && echo "types: ok"

imports: $(STAMP) ## the rooms: who may import whom
	@$(BIN)/lint-imports > $(VENV)/imports.log 2>&1 && echo "imports: ok" || { cat $(VENV)/imports.log; exit 1; }

unit: $(STAMP) ## pytest, without the suites that need outside components
	@$(BIN)/pytest -m "not real"

bench: $(STAMP) ## CPU figures of the pure core
	@$(BIN)/python bench/core.py

lock: ## pin every version again
	@$(BIN)/uv pip compile -q pyproject.toml --group dev --universal --no-header --no-annotate --generate-hashes -o $(LOCK)

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(STAMP): pyproject.toml $(LOCK)
	@PYTHON=$(PYTHON) sh scripts/setup.sh $(VENV) $(LOCK)
	@touch $(STAMP)
