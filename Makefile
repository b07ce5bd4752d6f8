# Two commands do all the set-up: `make run` and `make test`. `make check` is the gate.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: run test test-e2e check bench bench-live controlplane nightly update-specs clean

run: $(STAMP)
	$(BIN)/stowplan simulate --cluster profiles/sample/cluster.yaml || test $$? -eq 1   # 1: some pod does not fit, as shown

# The control plane is built first: that takes minutes, which pytest would pass in silence. 2: it cannot be built here, and tests skip.
CONTROLPLANE = PYTHONPATH=tests $(BIN)/python -m controlplane.build || test $$? -eq 2

test: $(STAMP)
	$(CONTROLPLANE)
	$(BIN)/python -m pytest -n auto --dist loadgroup

check: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto -m "not slow"

test-e2e: $(STAMP)
	$(CONTROLPLANE)
	$(BIN)/python -m pytest tests/e2e

# A real kube-apiserver, kube-scheduler and etcd for the tests, in build/controlplane.
controlplane: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m controlplane.build

# What takes hours: more inputs of the same kinds.
nightly: $(STAMP)
	STOWPLAN_NIGHTLY=1 $(BIN)/python -m pytest tests/cel/test_differential.py
	STOWPLAN_FUZZ=20000 $(BIN)/python -m pytest tests/unit/validate/test_fuzz.py
	$(BIN)/python -m tests.simulation --from 0 --seeds 20000
	STOWPLAN_NIGHTLY=1 $(BIN)/python -m pytest tests/e2e/test_memory.py -s

bench: $(STAMP)
	$(BIN)/python tests/bench/run.py

# stowplan beside kube-scheduler on a real API server: about an hour. LIVE="--nodes 500 --rounds 1" for less.
bench-live: $(STAMP)
	$(CONTROLPLANE)
	$(BIN)/python tests/bench/live.py $(LIVE)

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
