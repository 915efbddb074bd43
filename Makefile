# asched: two commands matter, `make demo` and `make test`; both set up everything they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

NODES ?= 1000
PODS ?= 5000
# For two cores: tests also wait for times that a scheduler keeps.
WORKERS ?= 3

.PHONY: demo test test-pythons check format run bench lock release wheels clean help docs pages

help:
	@echo "make demo    place $(PODS) pods on $(NODES) nodes of an embedded API server (NODES=, PODS=)"
	@echo "make test    run all tests"
	@echo "make test-pythons  all tests on the oldest and the newest Python that is promised, public interfaces between"
	@echo "make check   ruff, mypy, import contracts, the plugin contract, house tests, documentation, commit subjects"
	@echo "make format  format and fix what ruff can"
	@echo "make docs    build the documentation into build/site; a broken link fails"
	@echo "make pages   write the generated pages of docs/ from the code"
	@echo "make run     schedule pods named 'asched' on the cluster of the current kubeconfig"
	@echo "make release wheels, sources, chart, kubectl plugin, SBOM, provenance and checksums into dist/ (URL=, WHEELS=, BASE=, RUN_BASE=)"
	@echo "make wheels  download what the kubectl plugin depends on into build/wheels, for make release WHEELS=build/wheels"
	@echo "make lock    pin the dependencies anew, by hash"
	@echo "make bench   measure throughput (against a real API server where KUBEBUILDER_ASSETS is set)"

$(READY): pyproject.toml lab/pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "asched needs Python 3.11 or newer, and '$(PYTHON)' is none: make PYTHON=python3.12, say"; exit 2; }
	@echo "setting up $(VENV), once; some minutes where the network is slow"
	@echo "  1/4 making a virtual environment of $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "  2/4 installing libraries and tools (most of the time)"
	@$(INSTALL) --require-hashes --requirement requirements-dev.lock
	@echo "  3/4 installing asched and asched-lab"
	@$(INSTALL) --no-deps --no-build-isolation --editable . --editable ./lab
	@echo "  4/4 compiling"
	@$(BIN)/python -m compileall -q asched lab
	@touch $@

# Where writing bytecode is switched off, sources that changed would be compiled at each start.
compiled: $(READY)
	@$(BIN)/python -m compileall -q asched lab

demo: compiled
	@$(BIN)/asched demo --nodes $(NODES) --pods $(PODS)

test: $(READY)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(TESTS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/house tests/docs tests/conformance/contract
	$(MAKE) docs
	.ci/subjects

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python -m asched_lab.pages site

pages: $(READY)
	$(BIN)/python -m asched_lab.pages

run: compiled
	$(BIN)/asched run $(ARGS)

# All tests on the oldest Python that is promised, but those in CHECKED; on the newest, the image's, all but those whose
# result depends on recordings, manifests or the lab; the tests of public interfaces between.
# Each has an environment of its own. The output names those that are not installed.
PYTHONS := $(shell sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
OLDEST := $(firstword $(PYTHONS))
NEWEST := $(lastword $(PYTHONS))
DATA := tests/conformance/test_corpus.py tests/sim/test_recordings.py tests/lab tests/gangs tests/backfill tests/poison \
  tests/deploy tests/docs tests/house
PUBLIC := tests/behaviour tests/conformance
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
test-pythons:
	@for version in $(PYTHONS); do \
	  if python=$$(.ci/python $$version); then \
	    case $$version in \
	      $(OLDEST)) tests="tests $(CHECKED:%=--ignore=%)";; $(NEWEST)) tests="tests $(DATA:%=--ignore=%)";; *) tests="$(PUBLIC)";; esac; \
	    echo "Python $$version ($$python): $$tests"; \
	    [ "$$($(BIN)/python -c '$(VERSION)' 2>/dev/null)" = $$version ] && venv=$(VENV) || venv=.venv-$$version; \
	    $(MAKE) test PYTHON=$$python VENV=$$venv TESTS="$$tests" || exit 1; \
	  else missing="$$missing $$version"; fi; \
	done; [ -z "$$missing" ] || echo "not tested, because not installed: Python$$missing"

bench: compiled
	$(BIN)/python -m asched_lab.measure $(ARGS)

# Versions by hash, without registry addresses; needs uv (pip install uv). Each file is for every architecture. The first
# is for development, the others are for the image, with the same versions. `make lock LOCK_ARGS=--upgrade` takes newer ones.
LOCK = uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock" $(LOCK_ARGS)
IMAGE := --constraint requirements-dev.lock --python-version
lock:
	$(LOCK) --python-version $(OLDEST) --group dev --output-file requirements-dev.lock pyproject.toml
	$(LOCK) $(IMAGE) $(OLDEST) --extra numa --output-file deploy/requirements.lock pyproject.toml
	$(LOCK) $(IMAGE) $(OLDEST) --output-file deploy/client/requirements.lock deploy/client/pyproject.toml
	sed -n 's/^load = \["\(.*\)"\].*/\1/p' pyproject.toml | \
	  $(LOCK) $(IMAGE) $(OLDEST) --no-deps --output-file deploy/extra-load.lock -
	printf 'hatchling>=1.27\ncyclonedx-bom>=7\n' | $(LOCK) $(IMAGE) 3.13 --output-file deploy/build.lock -

# For each platform of deploy/krew.yaml and each Python: the oldest systems that have wheels.
WHEELS_linux-amd64 := manylinux2014_x86_64
WHEELS_linux-arm64 := manylinux2014_aarch64
WHEELS_darwin-amd64 := macosx_11_0_x86_64
WHEELS_darwin-arm64 := macosx_11_0_arm64
wheels: $(READY)
	@$(foreach platform,linux-amd64 linux-arm64 darwin-amd64 darwin-arm64,$(foreach version,$(PYTHONS),\
	  $(BIN)/python -m pip download --quiet --only-binary=:all: --no-deps --require-hashes --implementation cp \
	    --python-version $(version) --platform $(WHEELS_$(platform)) --dest build/wheels/$(platform) \
	    --requirement deploy/client/requirements.lock &&)) true

# Offline, but for the image, which is built if BASE names its base; RUN_BASE is another base of the image itself.
release: $(READY)
	@rm -rf dist
	@WHEELS=$(WHEELS) BASE=$(BASE) RUN_BASE=$(RUN_BASE) $(BIN)/python deploy/release.py dist $(if $(URL),--url $(URL))

clean:
	rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .hypothesis
