"""Which version of the code is running."""

import subprocess
from pathlib import Path

UNKNOWN = "not a git clone"


def find_commit() -> str:
    """The commit of the code, where it is a clone."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return found.stdout.strip()
