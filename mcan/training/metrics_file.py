"""The metrics.jsonl of a run: a line for every epoch."""

import json
from pathlib import Path
from typing import Any

from mcan.evaluation.metric_names import rename_old_metrics


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl, none where there is no file; a damaged line is named."""
    if not path.is_file():
        return []
    lines = []
    for number, text in enumerate(path.read_bytes().split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise ValueError(
                f"{path}: line {number} is damaged; resuming the run (resume=true) writes the file "
                "again from its checkpoint"
            )
        lines.append(rename_old_metrics(line))
    return lines
