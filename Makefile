# Needs make and Python 3.11 or newer, nothing else: everything is installed into .venv/ here.

# The first of these that is new enough and can make a virtual environment (a name on the PATH may not even run).
PYTHON ?= $(shell for candidate in python3.13 python3.12 python3.11 python3; do \
	$$candidate -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)
BIN := .venv/bin
DEMO := results/demo

.DEFAULT_GOAL := help
.PHONY: help demo test test-all bench bench-deep docs lint clean
.DELETE_ON_ERROR:

help: ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: .venv/.installed ## reproduce the paper's table, plan its MDP and draw the frontier, in results/demo
	$(BIN)/ocerl reproduce markov-table --out $(DEMO)
	$(BIN)/ocerl plan paper --risk cvar:0.25 --out $(DEMO)/plan
	$(BIN)/ocerl frontier paper --risk cvar --levels 0.05:1:0.05 --out $(DEMO)/frontier
	@printf '%s\n' "" "The results are in:" \
	  "  $(DEMO)/            the paper's table: the best Markov policy against the optimum" \
	  "  $(DEMO)/plan/       the optimal CVaR policy, its certificate and its return distribution" \
	  "  $(DEMO)/frontier/   every CVaR level from one solve, the mean against the tail"

test: lint ## lint, type-check and run every test that is not slow
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: lint ## the same with the slow tests, and Hypothesis searching afresh
	$(BIN)/pytest -n 2 --dist worksteal --hypothesis-profile explore

lint: .venv/.installed ## ruff and pyright
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

# Without OPENBLAS_CORETYPE: forcing an older core halves the speed of matrix products.
bench: .venv/.installed ## measure the planner against its peer
	env -u OPENBLAS_CORETYPE $(BIN)/python benchmarks/planning.py

bench-deep: .venv/.installed ## measure PPO against those of its peers that are in .venv/
	env -u OPENBLAS_CORETYPE $(BIN)/python benchmarks/deep.py

docs: .venv/.docs ## build the documentation into site/
	$(BIN)/mkdocs build --strict

clean: ## remove caches and built files; .venv/ and your own results stay
	rm -rf .cache .hypothesis .pytest_cache .ruff_cache build dist site $(DEMO)
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "ocerl needs Python 3.11 or newer with the venv module, and found none;" \
	  "install one or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

.venv/.docs: .venv/.installed
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[docs]'
	@touch $@
