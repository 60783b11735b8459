"""make demo: a page on this machine to ask about images and to move K and λ.

python -m scripts.demo checkpoint=runs/<name> port=7860
"""

import importlib.util
import os
import secrets
import signal
import sys
import tempfile
from pathlib import Path

from configs.schema.trained import Demo
from figures.requirements import require_matplotlib
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import choose_device
from mcan.runtime.torch_settings import set_up_torch, share_memory_among_threads
from scripts.cli.checkpoints import changed_options
from scripts.cli.command import command
from scripts.demo.examples import Example, draw_examples
from scripts.demo.model_list import ModelList, find_checkpoints
from scripts.demo.port import HOST, open_port

TERMINATED = 143  # exit code
NO_TELEMETRY = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}


@command("demo", literal=("token",))
def main(settings: Demo) -> None:
    """Load the first model, make the page, serve it until interrupted."""
    if not is_installed("gradio"):
        raise ValueError("the page needs gradio: .venv/bin/pip install -e '.[demo]'")
    require_matplotlib()
    set_up_torch(settings.runtime)
    share_memory_among_threads()
    port = open_port(settings.port)
    named = [*([settings.checkpoint] if settings.checkpoint else []), *settings.checkpoints]
    models = ModelList(
        find_checkpoints(named, Path(settings.runs)),
        choose_device(settings.runtime.device, 0),
        changed=changed_options(settings),
        weights=settings.weights,
        precision=settings.runtime.precision,
    )
    first = models.get(models.names[0]).trained if named else open_first(models)
    # Gradio reads these when it is imported. Uploads lie in a folder of this server alone, which
    # is removed with it: Gradio's own would be shared by all users of a machine.
    os.environ.update(NO_TELEMETRY)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that it is removed
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder
        from scripts.demo.page import Page
        from scripts.demo.server import make_app, serve

        page = Page(models, find_examples(settings, first, Path(folder) / "examples"))
        token = choose_token(settings.token)
        app = make_app(page, settings.upload_megabytes, token)
        address = f"http://{HOST}:{port.getsockname()[1]}/" + (f"?token={token}" if token else "")
        print(f"open {address} in a browser; Ctrl-C ends", flush=True)
        serve(app, port)


def open_first(models: ModelList) -> TrainedModel:
    """The first run's model that can be loaded; the page offers none of those before it."""
    for name in models.names:
        try:
            return models.get(name).trained
        except (ValueError, OSError) as error:
            print(f"not offered: {' '.join(str(error).split())}", flush=True)
            models.leave_out(name)
    raise ValueError("none of the runs can be loaded; `make train` makes one")


def choose_token(setting: str) -> str | None:
    """What a visitor must know; None: nothing."""
    if setting == "none":
        print("token=none: every user of this machine can open the page", flush=True)
        return None
    return secrets.token_urlsafe() if setting == "auto" else setting


def is_installed(package: str) -> bool:
    """Whether Python finds a package."""
    return importlib.util.find_spec(package) is not None


def find_examples(settings: Demo, trained: TrainedModel, output: Path) -> list[Example]:
    """Examples from the model's data; the page works without them."""
    try:
        folder = trained.open_data(settings.data.root)
        return draw_examples(folder, settings.num_examples, settings.seed, output)
    except (ValueError, OSError) as error:
        print(f"no examples: {' '.join(str(error).split())}", flush=True)
        return []


if __name__ == "__main__":
    main()
