"""The models that the page offers, each loaded when it is first asked."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from omegaconf import DictConfig

from scripts.asking import Asker, open_asker
from scripts.evaluation import changed_options
from scripts.gathering import find_run
from scripts.settings import require_text
from scripts.trained import find_checkpoint, load_trained, name_run

MOST_LOADED = 4  # models that stay in memory


class Shelf:
    """Models by name; the ones asked last stay loaded."""

    def __init__(self, checkpoints: dict[str, Path], open_model: Callable[[Path], Asker]) -> None:
        self.checkpoints, self.open_model = checkpoints, open_model
        self.loaded: OrderedDict[str, Asker] = OrderedDict()
        self.lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """What the models are called, in the order in which they are offered."""
        return list(self.checkpoints)

    def open(self, name: str) -> Asker:
        """A model, loaded now unless it is already."""
        with self.lock:
            if name not in self.loaded:
                self.loaded[name] = self.open_model(self.checkpoints[name])
            self.loaded.move_to_end(name)
            while len(self.loaded) > MOST_LOADED:
                self.loaded.popitem(last=False)
            return self.loaded[name]


def fill_shelf(config: DictConfig, device: torch.device) -> Shelf:
    """The checkpoints that are named, or the runs that are found."""
    changed = changed_options(config)
    checkpoints = name_checkpoints(find_checkpoints(config))

    def open_model(path: Path) -> Asker:
        trained = load_trained(path, device)
        own = {name: value for name, value in changed.items() if name in trained.options}
        if len(checkpoints) == 1:
            own = changed  # what this head does not have, none has
        if own:
            trained = load_trained(path, device, own)
        has_weights = trained.manifest.backbone.lower() != "patch"
        return open_asker(trained, config.weights if has_weights else None, config.runtime)

    return Shelf(checkpoints, open_model)


def find_checkpoints(config: DictConfig) -> list[Path]:
    """The files of checkpoint= and checkpoints=; without either, the best of every run."""
    runs = Path(config.runs)
    named = [*([config.checkpoint] if config.checkpoint else []), *config.checkpoints]
    if named:
        paths = [find_run(require_text("checkpoint", name), runs) for name in named]
        return [find_checkpoint(path) for path in paths]
    found = sorted(runs.glob("*/best.pt"))
    if not found:
        raise FileNotFoundError(
            f"{runs} holds no run with a best.pt: `make train` makes one; or name checkpoint=…"
        )
    return found


def name_checkpoints(paths: Sequence[Path]) -> dict[str, Path]:
    """Checkpoints by the names of their runs, or by their paths where names repeat."""
    names = [name_run(path) for path in paths]
    return {
        name if names.count(name) == 1 else str(path): path
        for name, path in zip(names, paths, strict=True)
    }
