# Every target is short for `python -m scripts.<name> key=value…`; pass overrides as ARGS="…".
# The first target that needs Python creates .venv and installs the pinned versions; later ones reuse it.

SUPPORTED := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# TORCH=site: the torch of a module or a container, not a wheel; .venv keeps to what it was made with
MADE := $(if $(wildcard $(VENV)/.site),site,$(if $(wildcard $(STAMP)),wheel))
TORCH ?= $(or $(MADE),wheel)
SITE := $(filter site,$(TORCH))
ifneq ($(TORCH),$(or $(MADE),$(filter site wheel,$(TORCH))))
$(error TORCH=$(TORCH) must be $(if $(MADE),$(MADE) as $(VENV) was made so (make clean removes it),site or wheel))
endif
CONSTRAINTS := $(if $(SITE),$(VENV)/)constraints.txt
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)
ARGS ?=
DATA ?= shapes
BACKBONE ?= patch
GPUS ?= 1
NODES ?= 1
LAUNCHER ?= local
# One process, or torchrun with one process per GPU (or CPU processes on a machine without GPUs).
LAUNCH := $(RUN) -m $(if $(filter-out 1,$(GPUS)),scripts.cluster.launch --processes=$(GPUS))
# LAUNCHER names a file in configs/launcher; all but `local` use Slurm and need the extra `slurm`.
SLURM := $(filter-out local,$(LAUNCHER))

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*##.*/\1/p' Makefile)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' Makefile

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(SUPPORTED)' 2>/dev/null || { echo "error: Python 3.11, 3.12 or 3.13 with the venv module was not found; install it or pass PYTHON=/path/to/python3" >&2; exit 2; }
	@test -x $(RUN) || $(PYTHON) -m venv $(if $(SITE),--system-site-packages )$(VENV)
	@$(if $(SITE),{ $(RUN) scripts/cluster/site_torch.py > $(CONSTRAINTS) && touch $(VENV)/.site; } || { test -e $@ || rm -rf $(VENV); exit 2; })
	$(PIP) -e '.[dev,plot]'
	@touch $@

# An extra of pyproject.toml: .venv/.demo, .venv/.slurm, .venv/.timm, .venv/.wandb
$(VENV)/.%: $(STAMP)
	$(PIP) -e '.[$*]'
	@touch $@

install: $(STAMP)  ## create .venv and install the pinned versions; TORCH=site keeps the torch that is there

install-extras: $(VENV)/.demo $(VENV)/.slurm $(VENV)/.timm $(VENV)/.wandb  ## also install Gradio, submitit, timm and wandb, so that make test runs their tests

data: $(STAMP)  ## generate shapes, download VQA-v2, or check your own data: DATA=shapes|vqa_v2|custom
	@$(RUN) -m scripts.data data=$(DATA) $(ARGS)

features: $(STAMP)  ## convert grid-feats .pth or bottom-up .npz files into one feature store: SOURCE=dir OUT=file.h5
	@$(RUN) -m scripts.features source='$(SOURCE)' output='$(OUT)' $(ARGS)

extract: $(if $(filter timm:%,$(BACKBONE)),$(VENV)/.timm,$(STAMP))  ## extract features from images into one store: IMAGES=dir OUT=file.h5 BACKBONE=name
	@$(RUN) -m scripts.extract images='$(IMAGES)' output='$(OUT)' backbone='$(BACKBONE)' $(ARGS)

verify-features: $(STAMP)  ## check a feature store: STORE=file.h5
	@$(RUN) -m scripts.verify_features store='$(STORE)' $(ARGS)

train: $(STAMP)  ## train a model: ARGS="attention=unimodal optim.epochs=3", GPUS=n; LAUNCHER=slurm NODES=n
	@$(if $(SLURM),$(RUN) -m scripts.cluster.submit launcher=$(LAUNCHER) launcher.nodes=$(NODES) launcher.gpus=$(GPUS),$(LAUNCH) scripts.train) $(ARGS)

sweep: $(if $(SLURM),$(VENV)/.slurm,$(STAMP))  ## train over lists of settings: ARGS="attention.k_max=2,3,4,6 seed=1,2", LAUNCHER=slurm
	@$(RUN) -m scripts.sweep launcher=$(LAUNCHER) launcher.gpus=$(GPUS) $(ARGS)

sweep-report: $(STAMP)  ## progress and results of a sweep: ARGS="sweep=runs/sweep"
	@$(RUN) -m scripts.sweep_report $(ARGS)

evaluate: $(STAMP)  ## accuracy and distribution of K* on a split: CHECKPOINT=runs/name
	@$(LAUNCH) scripts.evaluate checkpoint='$(CHECKPOINT)' $(ARGS)

export: $(STAMP)  ## write the files for the VQA server: CHECKPOINT=runs/name
	@$(LAUNCH) scripts.export $(if $(CHECKPOINT),checkpoint='$(CHECKPOINT)') $(ARGS)

lambda: $(STAMP)  ## select λ by cross-validation from one pass: CHECKPOINT=runs/name
	@$(LAUNCH) scripts.select_lambda checkpoint='$(CHECKPOINT)' $(ARGS)

human-attention: $(STAMP)  ## compare attention with human attention: CHECKPOINTS=runs/a,runs/b
	@$(LAUNCH) scripts.human_attention checkpoints='[$(CHECKPOINTS)]' $(ARGS)

attention: $(STAMP)  ## write attention, candidates and answers as HDF5 arrays: CHECKPOINT=runs/name ARGS="layers=all"
	@$(RUN) -m scripts.attention_arrays checkpoint='$(CHECKPOINT)' $(ARGS)

figures: $(STAMP)  ## draw attention maps of several models side by side: CHECKPOINTS=runs/a,runs/b
	@$(RUN) -m scripts.figures checkpoints='[$(CHECKPOINTS)]' $(ARGS)

gallery: $(STAMP)  ## one HTML page with many questions: CHECKPOINTS=runs/a,runs/b
	@$(RUN) -m scripts.gallery checkpoints='[$(CHECKPOINTS)]' $(ARGS)

ask: $(STAMP)  ## ask a question about one image: CHECKPOINT=runs/name IMAGE=photo.jpg QUESTION="…"
	@$(RUN) -m scripts.ask checkpoint='$(CHECKPOINT)' image='$(IMAGE)' question='$(subst ','\'',$(QUESTION))' $(ARGS)

demo: $(VENV)/.demo  ## a local web page for asking questions, with controls for K and λ: CHECKPOINT=runs/name
	@$(RUN) -m scripts.demo $(if $(CHECKPOINT),checkpoint='$(CHECKPOINT)') $(ARGS)

paper: $(STAMP)  ## train and evaluate every head, report beside the paper's numbers: DATA=shapes|vqa_v2|custom
	@$(RUN) -m scripts.paper dataset=$(DATA) gpus=$(GPUS) $(ARGS)

release: $(STAMP)  ## write a model to hand on, with its model card: CHECKPOINT=runs/name OUT=file.pt
	@$(RUN) -m scripts.release checkpoint='$(CHECKPOINT)' output='$(OUT)' $(ARGS)

import-mcan: $(STAMP)  ## convert a published MCAN into a checkpoint: CHECKPOINT=file OUT=file.pt
	@$(RUN) -m scripts.import_mcan checkpoint='$(CHECKPOINT)' output='$(OUT)' $(ARGS)

score: $(STAMP)  ## official accuracy of a result file, offline: ARGS="questions=… annotations=… results=… output=…"
	@$(RUN) -m scripts.score $(ARGS)

doctor: $(STAMP)  ## check GPUs, disk, data and versions before a training run: ARGS="experiment=…"
	@$(RUN) -m scripts.doctor gpus=$(GPUS) $(ARGS)

cost: $(STAMP)  ## FLOPs, bytes and memory of a training step, and estimated hours on some GPUs
	@$(RUN) -m scripts.cost $(ARGS)

bench: $(STAMP)  ## measure speed relative to plain baselines: one table; ARGS="document=true"
	@$(RUN) -m scripts.bench $(ARGS)

lint: $(STAMP)  ## check format, lint and types
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy

format: $(STAMP)  ## format the code
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .

test: $(STAMP)  ## run all tests, two files at a time
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-gpu: $(STAMP)  ## run the tests that need a GPU; ends with a report to paste into an issue
	@$(RUN) -m pytest -q -m cuda $(ARGS)

test-faults: $(STAMP)  ## inject kills, full disks, damaged files and lost processes
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -m faults -n $$(nproc) --dist worksteal $(ARGS) tests/faults

soak: $(STAMP)  ## train a small model for half an hour; memory and open files must not grow
	@$(RUN) -m scripts.soak $(ARGS)

test-slurm: $(VENV)/.slurm  ## run the tests that need Slurm, on a private cluster
	@$(RUN) -m pytest -q -m slurm $(ARGS)

test-mutants: $(STAMP)  ## change each formula once; a test must fail each time
	@$(RUN) -m tests.mutants $(ARGS)

clean:  ## remove caches and the virtual environment; datasets/ and runs/ stay
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
