"""How a process that scripts.launch started tells it why it ended: once for all of them."""

import json
import os
from pathlib import Path

PLACE = "LAUNCH_VERDICT"  # the launcher names the file; without it there is no launcher


def leave_verdict(code: int, sentence: str = "") -> bool:
    """Leave an exit code and a sentence for the launcher; whether there is one.

    Of several processes the first is heard: what the others say follows from it.
    """
    if PLACE not in os.environ:
        return False
    place = Path(os.environ[PLACE])
    own = place.with_name(f"{place.name}.{os.getpid()}")
    own.write_text(json.dumps([code, sentence]), encoding="utf-8")
    try:
        os.link(own, place)  # whole or not at all, and never over another's
    except FileExistsError:
        pass
    finally:
        own.unlink()
    return True


def read_verdict() -> tuple[int, str] | None:
    """The exit code and the sentence that were left, if any."""
    place = os.environ.get(PLACE)
    if place is None or not Path(place).is_file():
        return None
    code, sentence = json.loads(Path(place).read_text(encoding="utf-8"))
    return code, sentence
