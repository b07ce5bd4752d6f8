# Two commands do all the set-up: `make run` and `make test`. `make check` is the gate.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: run test test-e2e check bench controlplane update-specs clean

run: $(STAMP)
	$(BIN)/stowplan simulate --cluster profiles/sample/cluster.yaml || test $$? -eq 1   # 1: some pod does not fit, as shown

test: $(STAMP)
	$(BIN)/python -m pytest -n auto

check: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto -m "not slow"

# Builds first: that takes minutes, which pytest would pass in silence.
test-e2e: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m controlplane.build || test $$? -eq 2   # 2: it cannot be built here, and the tests skip
	$(BIN)/python -m pytest tests/e2e

# A real kube-apiserver, kube-scheduler and etcd for the tests, in build/controlplane.
controlplane: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m controlplane.build

bench: $(STAMP)
	$(BIN)/python tests/bench/run.py

update-specs: $(STAMP)
	STOWPLAN_UPDATE_SPECS=1 $(BIN)/python -m pytest tests/spec

clean:
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find engine tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The package is installed editable, so only a change of pyproject.toml installs anew.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "stowplan needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "this Python cannot make environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q engine/stowplan
	@touch $@
