# Every target makes .venv and installs what it needs first. Stamps inside .venv remember what is
# installed, so this is skipped until pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
REPORT := $(VENV)/.has-report
DEV := $(VENV)/.has-dev
UNFINISHED := $(VENV)/.unfinished

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test needs-git lint bench docs

help:
	@echo "make setup   make .venv and install cilf with everything that tests need"
	@echo "make demo    watch a stream of digits, find new classes, learn them; writes a report"
	@echo "make test    style, types, layers and all tests"
	@echo "make lint    style, types and layers"
	@echo "make bench   speed of the training loop beside a bare PyTorch loop"
	@echo "make docs    run every example in the documentation (plain Markdown, nothing to build)"
	@echo "make PYTHON=/path/to/python3 ...   use that Python (3.11 or newer)"

setup: $(DEV)

demo: $(REPORT)
	@$(BIN)/cilf demo

test: needs-git lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

needs-git:
	@command -v git >/dev/null || { echo "git is missing: install it, the tests use it." >&2; exit 1; }

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV)
	$(BIN)/python benchmarks/training_loop.py

docs: $(DEV)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --doctest-glob='*.md' README.md CONTRIBUTING.md docs

# ------------------------------------------------------------------------------- set-up

# Look at .venv again if its Python is gone, if it was made in another folder (a moved clone), or
# if an installation was killed half-way.
SOUND := $(shell test -x $(BIN)/python && test ! -e $(UNFINISHED) \
	&& test "$$(cat $(MADE) 2>/dev/null)" = "$(CURDIR)" && echo yes)
ifneq ($(SOUND),yes)
.PHONY: $(MADE)
endif

# A .venv that somebody made by hand is kept if it works; any other is made anew.
$(MADE):
	@if test -e $@ || test -e $(UNFINISHED) || ! $(BIN)/python -m pip list >/dev/null 2>&1; then \
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

# The mark stays if pip is interrupted or killed: the next make then starts from an empty .venv.
define install
@echo "Installing cilf and what it needs into $(VENV) (a minute or two) ..."
@trap 'exit 130' INT TERM; touch $(UNFINISHED); \
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$(1)]'; \
	status=$$?; test $$status -gt 128 || rm -f $(UNFINISHED); exit $$status
endef

$(REPORT): pyproject.toml constraints.txt $(MADE)
	$(call install,report)
	@touch $@

comma := ,
$(DEV): pyproject.toml constraints.txt $(MADE)
	$(call install,dev$(comma)report$(comma)data$(comma)pretrained$(comma)text$(comma)cluster$(comma)tensorboard$(comma)analysis$(comma)console$(comma)postgres)
	@touch $@ $(REPORT)
