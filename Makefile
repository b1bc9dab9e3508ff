# Every target sets up what it needs: a Python of 3.11 to 3.13 and make are enough.
#
#   make PYTHON=/path/to/python3 …   chooses the Python of the first set-up
#   make test ARGS="-k parked_car"   passes words on to pytest

VENV ?= .venv
PY := $(VENV)/bin/python
SEEDS ?= 1000
MINUTES ?= 10
INPUTS ?= 1000000
PORT ?= 8080
CODE := $(wildcard src tests examples bench tools)

# What a shell happens to have set must not decide which code runs.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Otherwise pyright asks the network at each start whether there is a newer pyright.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check check-lint check-format check-mypy check-pyright check-tidy bench bench-sonora docs simulate fuzz soak clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## the virtual environment, made or brought up to date; every other target does it first
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 $(PY); do \
	  if $$python -c 'import fcntl, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; \
	  then exec $$python tools/environment.py $(VENV); fi; \
	done; \
	echo "[set-up] found no Python 3.11, 3.12 or 3.13 with its standard library"; \
	echo "[set-up] fix: apt-get install python3-venv   (or: make PYTHON=/path/to/python3)"; \
	exit 1

demo: setup ## all of it at work: gateway, Spark, 60 simulated devices, and a page at PORT=8080 to watch them on
	@$(VENV)/bin/catchment demo --port $(PORT) --data .build/demo $(ARGS)

test: setup ## every test: units, contracts, transcripts, docs, tidiness, Spark, real processes
	@echo "[test] units, contracts, transcripts, documents, tidiness, Spark and real processes"
	@$(PY) -m pytest -n auto --dist loadscope $(ARGS)

check: check-lint check-format check-mypy check-pyright check-tidy ## lint, format, types and tidiness

check-lint: setup
	@echo "[check] ruff check" && $(PY) -m ruff check $(CODE)

check-format: setup
	@echo "[check] ruff format --check" && $(PY) -m ruff format --check $(CODE)

check-mypy: setup
	@echo "[check] mypy --strict" && $(PY) -m mypy --strict $(CODE)

check-pyright: setup
	@echo "[check] pyright" && $(PY) -m pyright --pythonpath $(PY)

check-tidy: setup
	@echo "[check] tidiness" && $(PY) -m pytest tests/tidy

bench: setup ## benchmarks: all, or NAME=x; QUICK=1 for a smaller input
	@$(PY) -m bench $(if $(filter-out 0,$(QUICK)),--quick) $(NAME)

bench-sonora: setup ## the benchmarks that stand beside Sonora's section 5, and one report of them; QUICK=1 for smaller ones
	@$(PY) -m bench.sonora $(if $(filter-out 0,$(QUICK)),--quick) $(ARGS)

docs: setup ## writes the pages of docs/reference that are made from the code
	@$(PY) tools/reference.py

simulate: setup ## the simulator over SEEDS=n seeds [FROM=n PROCESSES=n NOTES=dir]; or SEED=n, looked at closely
	@echo "[simulate] $(if $(SEED),seed $(SEED),$(SEEDS) seeds$(if $(FROM), from $(FROM)))"
	@$(PY) -m catchment.sim $(if $(SEED),$(SEED),--seeds $(SEEDS) $(if $(FROM),--from $(FROM)) \
	  $(if $(PROCESSES),--processes $(PROCESSES)) $(if $(NOTES),--notes $(NOTES)))

fuzz: setup ## INPUTS=n hostile inputs for the frame decoder, the codecs and the HTTP surface
	@echo "[fuzz] $(INPUTS) inputs"
	@$(PY) -m tools.fuzz --inputs $(INPUTS)

soak: setup ## real processes killed at random for MINUTES=n
	@echo "[soak] $(MINUTES) minutes"
	@CATCHMENT_SOAK_MINUTES=$(MINUTES) $(PY) -m pytest tests -m soak -s $(ARGS)

clean: ## removes caches and results
	@rm -rf .build .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results spark-warehouse metastore_db derby.log
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and the environments too
	@rm -rf $(VENV) bench/.peers src/catchment.egg-info
