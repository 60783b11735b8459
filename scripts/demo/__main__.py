"""make demo: a page on this machine to ask about pictures and to move K and λ.

python -m scripts.demo checkpoint=runs/<name> port=7860
"""

import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from omegaconf import DictConfig

from mcan.processes import choose_device
from scripts.demo.port import HOST, open_port
from scripts.demo.samples import Sample, draw_samples
from scripts.demo.shelf import Shelf, fill_shelf
from scripts.entry import command
from scripts.evaluation import begin
from scripts.gathering import require_drawing
from scripts.settings import require_text

TERMINATED = 143  # exit code
SILENCE = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}


@command("demo")
def main(config: DictConfig) -> None:
    """Load the first model, make the page, serve it until interrupted."""
    check(config)
    begin(config)
    port = open_port(config.port)
    shelf = fill_shelf(config, choose_device(config.runtime.device, 0))
    shelf.open(shelf.names[0])
    # Gradio reads these when it is imported. What visitors upload lies in a folder that is theirs
    # alone and goes with the server: Gradio's own would be one for all users of a machine.
    os.environ.update(SILENCE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that it does go
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder
        from scripts.demo.page import Page
        from scripts.demo.server import make_app, serve

        page = Page(shelf, copy_samples(find_samples(config, shelf), Path(folder) / "examples"))
        app = make_app(page, config.upload_megabytes)
        print(f"open http://{HOST}:{port.getsockname()[1]} in a browser; Ctrl-C ends", flush=True)
        serve(app, port)


def check(config: DictConfig) -> None:
    """Raise, before any work, when something is missing or makes no sense."""
    if not is_installed("gradio"):
        raise ValueError("the page needs gradio: pip install -e '.[demo]'")
    require_drawing()
    if config.upload_megabytes < 1:
        raise ValueError(f"upload_megabytes is {config.upload_megabytes}, expected at least 1")
    if config.num_examples < 0:
        raise ValueError(f"num_examples is {config.num_examples}, expected at least 0")


def is_installed(package: str) -> bool:
    """Whether Python finds a package."""
    return importlib.util.find_spec(package) is not None


def find_samples(config: DictConfig, shelf: Shelf) -> list[Sample]:
    """Examples from the data of the first model; the page does without where there are none."""
    trained = shelf.open(shelf.names[0]).trained
    root = trained.config["data"]["root"]
    if config.data.root:
        root = require_text("data.root", config.data.root)
    try:
        return draw_samples(root, config.num_examples, config.seed)
    except (ValueError, OSError) as error:
        print(f"no examples: {' '.join(str(error).split())}", flush=True)
        return []


def copy_samples(samples: list[Sample], folder: Path) -> list[Sample]:
    """The samples with copies of their files: Gradio serves no others, and need not."""
    folder.mkdir()
    copies = [folder / sample.path.name for sample in samples]
    for sample, copy in zip(samples, copies, strict=True):
        shutil.copyfile(sample.path, copy)
    return [replace(sample, path=copy) for sample, copy in zip(samples, copies, strict=True)]


if __name__ == "__main__":
    main()
