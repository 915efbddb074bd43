# asched: two commands matter, `make demo` and `make test`; both set up everything they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

NODES ?= 1000
PODS ?= 5000

.PHONY: demo test test-pythons check run bench e2e lock clean help

help:
	@echo "make demo    place $(PODS) pods on $(NODES) nodes of an embedded API server (NODES=, PODS=)"
	@echo "make test    run all tests"
	@echo "make test-pythons  the same on the oldest Python that is promised and installed, the parts that depend on it on the others"
	@echo "make check   ruff, mypy, import contracts, house tests"
	@echo "make run     schedule pods named 'asched' on the cluster of the current kubeconfig"
	@echo "make bench   measure throughput (against a real API server where KUBEBUILDER_ASSETS is set)"

$(READY): pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "asched needs Python 3.11 or newer, and '$(PYTHON)' is none: make PYTHON=python3.12, say"; exit 2; }
	@echo "setting up $(VENV), once; some minutes where the network is slow"
	@echo "  1/4 making a virtual environment of $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "  2/4 bringing pip up to date"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@echo "  3/4 installing libraries and tools (most of the time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable '.[completion]' --editable './lab[tui]'
	@echo "  4/4 compiling"
	@$(BIN)/python -m compileall -q asched lab
	@touch $@

# Where writing bytecode is switched off, sources that changed would be compiled at each start.
compiled: $(READY)
	@$(BIN)/python -m compileall -q asched lab

demo: compiled
	@$(BIN)/asched demo --nodes $(NODES) --pods $(PODS)

test: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile $(TESTS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml
	$(BIN)/python -m pytest -q tests/house

run: compiled
	$(BIN)/asched run $(ARGS)

# The suite on the oldest Python that is promised and installed here; on the others what depends on the interpreter and on
# libraries: the client and its TLS, pages, codecs, commands, and the machine. Which were missing is said.
PYTHONS := $(shell sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
PARTS := tests/cli tests/core/cycle tests/core/model tests/kube tests/serve
test-pythons:
	@parts=; for version in $(PYTHONS); do \
	  if python=$$(.ci/python $$version); then \
	    echo "Python $$version ($$python): $${parts:-all tests}"; \
	    [ "$$($(BIN)/python -c '$(VERSION)' 2>/dev/null)" = $$version ] && venv=$(VENV) || venv=.venv-$$version; \
	    $(MAKE) test PYTHON=$$python VENV=$$venv TESTS="$$parts" || exit 1; parts="$(PARTS)"; \
	  else missing="$$missing $$version"; fi; \
	done; [ -z "$$missing" ] || echo "not tested, because not installed: Python$$missing"

bench: compiled
	$(BIN)/python -m asched_lab.measure $(ARGS)

# The image's dependencies, by hash and without registry addresses; needs uv (pip install uv).
LOCK := uv pip compile --quiet --python-version 3.13 --python-platform x86_64-unknown-linux-gnu \
  --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock"
lock:
	$(LOCK) --output-file deploy/requirements.lock pyproject.toml
	printf 'hatchling>=1.27\ncyclonedx-bom>=7\n' | $(LOCK) --output-file deploy/build.lock -

clean:
	rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .hypothesis
