"""One thin entry point per command: the only package that joins the others and touches Hydra."""

import gc
import os
import sys
from types import TracebackType

from scripts.cluster.exit_status import end_if_over


def tell_interruption(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print no traceback for Ctrl-C before a command begins, while torch is imported."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = tell_interruption  # Python then ends by the signal itself: 130 in a shell

end_if_over()  # before the seconds in which torch is imported

# read by torch on import: GPU memory in segments that grow, so that many grid shapes leave no gaps
if not {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & os.environ.keys():
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

# read by tqdm on import: a log gets a line of progress each half minute, not ten a second
if not sys.stderr.isatty():
    os.environ.setdefault("TQDM_MININTERVAL", "30")
    os.environ.setdefault("TQDM_MAXINTERVAL", "60")

# looking for garbage in what is imported takes a sixth of the start; see `collect_garbage`
if sys.argv[:1] == ["-m"]:  # python -m scripts.<name>, and no import of another program
    gc.disable()


def collect_garbage() -> None:
    """Collect garbage again, but not in what was imported: that stays."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
