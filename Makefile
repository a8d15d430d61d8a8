# Every target works as the first command on a fresh clone: what it needs is installed into .venv first, once.
.DEFAULT_GOAL := help
.PHONY: help tir test test-deep lint types imports check lock clean
BIN := .venv/bin
CASES := $(sort $(wildcard schedules/*.toml))
HVX_CASES := $(sort $(wildcard schedules/hvx/*.toml))
HMX_CASES := $(sort $(wildcard schedules/hmx/*.toml))
# A case with NAME.tir.sha256 beside it has no whole listing there.
DIGESTED_CASES := $(patsubst %.tir.sha256,%.toml,$(sort $(wildcard schedules/hvx/*.tir.sha256)))
WORKERS ?= 2
# Of each law of the deep tests: ten times as many examples, or with EXAMPLES=ci as many as make test draws.
EXAMPLES ?= deep
# With as many examples, make test has drawn those of the other laws already.
DEEP := $(if $(filter ci,$(EXAMPLES)),deep,deep or drawn)
# Many processes read the same modules, those of tests with their asserts rewritten: each is compiled once.
export PYTHONDONTWRITEBYTECODE :=

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.venv/installed: pyproject.toml .ci/setup .ci/constraints.txt
	@.ci/setup

tir: .venv/installed ## lower all cases: schedules/*.tir, reports/cache_usage.csv, and the table
	$(BIN)/hexconv tir $(CASES) $(filter-out $(DIGESTED_CASES),$(HVX_CASES)) $(HMX_CASES)
	$(BIN)/hexconv tir $(DIGESTED_CASES) --digest
	$(BIN)/hexconv cache $(CASES) $(HVX_CASES) $(HMX_CASES) --csv reports/cache_usage.csv

PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --ignore=tests/oracles --ignore=tests/browser

test: .venv/installed ## run the tests, in parallel, but for the deep ones
	$(PYTEST) -m "not deep"

test-deep: .venv/installed ## run the deep tests: long ones, and more shapes of what others run
	$(PYTEST) -m "$(DEEP)" --hypothesis-profile=$(EXAMPLES)

lint: .venv/installed ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed ## pyright
	$(BIN)/pyright

imports: .venv/installed ## import-linter: which room may import which
	$(BIN)/lint-imports

check: lint types imports test ## all of the above

lock: .venv/installed ## take the newest versions that pyproject.toml allows: .ci/constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 --no-emit-index-url --no-header --no-annotate \
		pyproject.toml --extra browser --extra dev --extra images --extra report --extra site --extra verify --output-file .ci/constraints.txt
	sed -i '1i # Versions that developers and CI install, for each Python; make lock writes them. Users get what pyproject.toml allows.' .ci/constraints.txt

clean: ## remove what can be made again
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

-include .ci/*.mk
