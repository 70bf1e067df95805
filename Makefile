PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint format bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */\1\t/' | awk -F '\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

demo: $(VENV)/.stamp-core  ## design a first randomizer, certify it, release labels with it
	@$(RUN) examples/first_design.py && $(RUN) examples/first_release.py

test: $(VENV)/.stamp-dev  ## run the tests and the doctests, on two workers
	@$(RUN) -m pytest -n 2

lint: $(VENV)/.stamp-dev  ## check style, format and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

format: $(VENV)/.stamp-dev  ## format the code and mend what ruff can
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

bench: $(VENV)/.stamp-bench  ## compare with peers, one run, one table
	@$(RUN) -m benchmarks.run

clean:  ## remove the virtual environment, caches and builds
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "labeldp needs Python 3.11 or newer; set PYTHON, as in: make PYTHON=python3.12 test" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-core: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing labeldp into $(VENV)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.stamp-dev $(VENV)/.stamp-bench: $(VENV)/.stamp-%: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing labeldp[$*] into $(VENV)"
	@$(PIP) -e '.[$*]'
	@touch $@
