# Every target makes .venv and installs what it needs first. Stamp files in .venv record what is
# installed, so nothing is installed again until pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV_STAMP := $(VENV)/.made
REPORT_STAMP := $(VENV)/.has-report
DEV_STAMP := $(VENV)/.has-dev
RELEASE_STAMP := $(VENV)/.has-release
DOCS_STAMP := $(VENV)/.has-docs
INTERRUPTED := $(VENV)/.unfinished

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test needs-git lint bench docs docs-site docs-serve wheel sbom

help:
	@echo "make setup   make .venv and install cilf with everything the tests need"
	@echo "make demo    run the whole loop on a stream of digits and write a report"
	@echo "make test    check style, types and layers, and run all tests"
	@echo "make lint    check style, types and layers"
	@echo "make bench   compare the speed of the training loop with a bare PyTorch loop"
	@echo "make docs    run every example in the documentation, build the site in site/, check its links"
	@echo "make docs-serve   build the site, show it on http://127.0.0.1:8000, and follow changes"
	@echo "make wheel   build the package into dist/"
	@echo "make sbom    list the packages of constraints.txt in dist/, as CycloneDX"
	@echo "make PYTHON=/path/to/python3 ...   use that Python (3.11 or newer)"

setup: $(DEV_STAMP)

demo: $(REPORT_STAMP)
	@$(BIN)/cilf demo

test: needs-git lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

needs-git:
	@command -v git >/dev/null || { echo "git is missing: install it, the tests use it." >&2; exit 1; }

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit -q -c pyproject.toml -r src benchmarks

bench: $(DEV_STAMP)
	$(BIN)/python benchmarks/training_loop.py

docs: docs-site
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --doctest-glob='*.md' README.md CONTRIBUTING.md docs

wheel: $(DEV_STAMP)
	$(BIN)/hatchling build -d dist

sbom: $(RELEASE_STAMP)
	@mkdir -p dist
	$(BIN)/python -W ignore -m cyclonedx_py requirements constraints.txt --pyproject pyproject.toml \
		--output-format JSON --output-reproducible --output-file dist/cilf.cdx.json

# The tutorials run while the site is built. NO_MKDOCS_2_WARNING silences an advertisement.
docs-site: $(DOCS_STAMP)
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python docs/generate/check_links.py site

# A tutorial that has not changed is not run again.
docs-serve: $(DOCS_STAMP)
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 CILF_DOCS_CACHE=.docs-cache $(BIN)/mkdocs serve \
		--watch src --watch README.md

# ------------------------------------------------------------------------------- set-up

# .venv is checked again if its Python is missing, if it was made in another folder (a moved clone), or
# if an installation was interrupted.
VENV_WORKS := $(shell test -x $(BIN)/python && test ! -e $(INTERRUPTED) \
	&& test "$$(cat $(VENV_STAMP) 2>/dev/null)" = "$(CURDIR)" && echo yes)
ifneq ($(VENV_WORKS),yes)
.PHONY: $(VENV_STAMP)
endif

# A .venv that was made by hand is kept if it works. Any other is made again.
$(VENV_STAMP):
	@if test -e $@ || test -e $(INTERRUPTED) || ! $(BIN)/python -m pip list >/dev/null 2>&1; then \
		$(check_python); \
		echo "Making $(VENV) ..." && $(PYTHON) -m venv --clear $(VENV); \
	fi
	@echo "$(CURDIR)" > $@

define check_python
command -v "$(PYTHON)" >/dev/null || { \
	echo "$(PYTHON) is missing: install Python 3.11 or newer, or name one: make PYTHON=..." >&2; exit 1; }; \
"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
	echo "$(PYTHON) is older than Python 3.11: install a newer one, or name one: make PYTHON=..." >&2; exit 1; }; \
"$(PYTHON)" -c "import venv, ensurepip" 2>/dev/null || { \
	echo "$(PYTHON) lacks venv or ensurepip: install them (Debian, Ubuntu: apt install python3-venv)." >&2; exit 1; }
endef

# The file stays if pip is interrupted or killed. The next make then starts from an empty .venv.
define install
@echo "Installing cilf and what it needs into $(VENV) (a minute or two) ..."
@trap 'exit 130' INT TERM; touch $(INTERRUPTED); \
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$(1)]'; \
	status=$$?; test $$status -gt 128 || rm -f $(INTERRUPTED); exit $$status
endef

$(REPORT_STAMP): pyproject.toml constraints.txt $(VENV_STAMP)
	$(call install,report)
	@touch $@

comma := ,
$(DEV_STAMP): pyproject.toml constraints.txt $(VENV_STAMP)
	$(call install,dev$(comma)all)
	@touch $@ $(REPORT_STAMP)

$(RELEASE_STAMP): pyproject.toml constraints.txt $(VENV_STAMP)
	$(call install,release)
	@touch $@

$(DOCS_STAMP): $(DEV_STAMP)
	$(call install,docs)
	@touch $@
