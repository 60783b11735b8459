"""One thin entry point per command: the only package that joins the others and touches Hydra."""

import os
import sys

# read by tqdm on import: a log gets a line of progress each half minute, not ten a second
if not sys.stderr.isatty():
    os.environ.setdefault("TQDM_MININTERVAL", "30")
    os.environ.setdefault("TQDM_MAXINTERVAL", "60")
