#!/usr/bin/env bash
# Writes what test_version_0_1.py reads, with the code of the commit that README.md names.
# From the root of that checkout: PYTHON=<its python> bash <this file> <folder that holds this file>
set -euo pipefail
out=$(realpath "$1")
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
python=${PYTHON:-python}
cd "$out" # every path that a command is given, and so every path in a file, is relative to it
rm -rf dataset runs expected.json expected.npz

# the dataset: without images, test features, and with every answer that occurs twice
"$python" -c "
from pathlib import Path
from data.shapes.build import Sizes, build_shapes
build_shapes(Path('dataset'), sizes=Sizes(train=3, val=2, test=1, human=1), num_workers=1)"
rm -r dataset/images dataset/features/test2015.h5 dataset/vocabulary.json dataset/answers.json
"$python" -m scripts.data data=custom data.root=dataset data.answers_more_than=1

quiet=(runtime.num_threads=1 runtime.show_progress=false runtime.loader_threads=0)
# Adam's epsilon is large: weights whose gradient is nothing but rounding must not move by it
small=(
  data=custom data.root=dataset data.answers_more_than=1 figures=0 "${quiet[@]}"
  model.embedding=4 model.hidden=4 model.num_layers=1 model.num_heads=2 model.pooling=4
  model.output=8 model.dropout=0 optim.batch_size=6 optim.epsilon=1e-4
  'optim.rate={peak:1e-2,warmup_steps:2,decay_share:0.4}'
)
multimodal=(
  "${small[@]}" name=multimodal seed=4 init_from=runs/first optim.epochs=3 attention=multimodal
  attention.k_max=3 attention.num_restarts=1 'attention.lam={linear:[0,1]}'
  'attention.train_iterations={steps:{1:2,3:4}}'
)

# a first model, not kept: those that start from it give different answers to different questions
"$python" -m scripts.train "${small[@]}" name=first seed=4 attention=discrete optim.epochs=80

# a finished run
"$python" -m scripts.train "${small[@]}" name=discrete seed=4 init_from=runs/first \
  attention=discrete optim.epochs=1

# a run that SIGTERM stops within its second epoch, of steps 7 to 12; again if it was too late
is_stopped=false
until $is_stopped; do
  rm -rf runs/multimodal
  "$python" -m scripts.train "${multimodal[@]}" &
  while [ ! -e runs/multimodal/step_00000006.pt ]; do sleep 0.002; done
  kill -TERM $! || true
  code=0
  wait $! || code=$?
  newest=$(basename "$(ls runs/multimodal/step_*.pt | tail -n 1)" .pt)
  [ $code = 75 ] && [ $((10#${newest#step_})) -gt 6 ] && [ $((10#${newest#step_})) -lt 12 ] &&
    is_stopped=true
done

# what evaluate writes beside a checkpoint
for name in discrete multimodal; do
  "$python" -m scripts.evaluate checkpoint=runs/$name split=val "${quiet[@]}"
done

# a finished sweep: two trainings of one epoch, smaller still
"$python" -m scripts.sweep "${small[@]}" sweep.name=sweep sweep.folds=2 optim.epochs=1 \
  model.embedding=2 model.hidden=2 model.num_heads=1 model.pooling=2 model.output=2 \
  attention=multimodal attention.num_restarts=1 attention.k_max=2 attention.lam=0,1 seed=1,2

# not needed to load or resume: curves, pictures, locks, and checkpoints under further names
rm -r runs/first runs/*/tensorboard runs/sweep/*/tensorboard runs/sweep/hydra 2>/dev/null || true
rm -f runs/*/.lock runs/sweep/.sweep.lock runs/sweep/*/.lock runs/sweep/heat_map.png
rm -f runs/sweep/*/lambda/table.png runs/sweep/*/last.pt runs/sweep/*/step_*.pt
rm -f runs/multimodal/step_00000006.pt # the same bytes as best.pt
sed -i -E 's/"host": "[^"]*"/"host": "host"/' runs/sweep/jobs/*.json # the machine's name

# what the same code gets from exactly these files, on a copy
copy=$(mktemp -d)
cp -a dataset runs "$copy"
cp -a runs "$copy/as_written"
cd "$copy"
"$python" -m scripts.train "${multimodal[@]}" resume=true
"$python" -m scripts.sweep_report sweep=runs/sweep >sweep_report.txt
"$python" - "$out" <<'PYTHON'
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch

from attention import Grid
from data.questions import load_questions
from data.splits import Folder
from data.store import FeatureStore
from mcan.checkpoint import load_checkpoint
from scripts.trained import load_trained

out = Path(sys.argv[1])
folder = Folder("dataset")
arrays, facts = {}, {}


def without_times(line):
    return {n: v for n, v in line.items() if "seconds" not in n and "per_second" not in n}


# (a) the resumed run
last = load_checkpoint("runs/multimodal/last.pt")
for name, weight in last["model"].items():
    arrays[f"resumed/{name}"] = weight.numpy()
lines = Path("runs/multimodal/metrics.jsonl").read_text().splitlines()
facts["resumed"] = {
    "lines": [without_times(json.loads(line)) for line in lines],
    "progress": last["progress"],
    "best_epoch": load_trained("runs/multimodal").epoch,
}

# (b) what the checkpoints that were written say: answers are in runs/*/evaluate, here all scores
questions = load_questions([folder.questions("val")])
for run in ("discrete", "multimodal"):
    trained = load_trained(f"as_written/{run}")
    scores = []
    with FeatureStore(folder.store("val")) as store, torch.inference_mode():
        for image_id, text in zip(questions.image_ids.tolist(), questions.texts, strict=True):
            tokens = torch.tensor([trained.words.vocabulary.encode(text, 14)])
            features = torch.from_numpy(store.rows(image_id).copy())[None]
            scores.append(trained.model(features, Grid.of([store.size(image_id)]), tokens)[0])
    arrays[f"scores/{run}"] = torch.stack(scores).numpy()
arrays["scores/question_ids"] = questions.ids

# (c) the stores
facts["stores"] = {}
for split in ("train", "val"):
    with FeatureStore(folder.store(split)) as store:
        facts["stores"][split] = {
            "manifest": json.loads(store.manifest.dump()),
            "grids": {int(n): store.size(int(n)) for n in store.image_ids},
            "sha256": {
                int(n): hashlib.sha256(store.rows(int(n)).tobytes()).hexdigest()
                for n in store.image_ids
            },
        }
        first = int(store.image_ids[0])
        arrays[f"rows/{split}/{first}"] = store.rows(first)[::10].copy()

# (d) what sweep-report prints; its CSV is in runs/sweep
facts["sweep_report"] = Path("sweep_report.txt").read_text().splitlines()

np.savez_compressed(out / "expected.npz", **arrays)
(out / "expected.json").write_text(json.dumps(facts, indent=1) + "\n")
PYTHON
rm -r "$copy"
