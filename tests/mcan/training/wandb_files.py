"""What is in a .wandb file: records in blocks, as LevelDB's log has them."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER, BLOCK, FRAME = 7, 32 * 1024, struct.Struct("<IHB")  # a frame: checksum, length, kind
FULL, FIRST, LAST = 1, 2, 4  # kinds of a record's part; 3 is in the middle


def read_records(path: Path) -> Iterator[bytes]:
    """The records of a file, each the bytes of one protobuf message."""
    content, place, parts = path.read_bytes(), HEADER, b""
    while place + FRAME.size <= len(content):
        if BLOCK - place % BLOCK < FRAME.size:  # the rest of a block is too short for a frame
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = FRAME.unpack_from(content, place)
        place += FRAME.size
        part = content[place : place + length]
        parts = part if kind in (FULL, FIRST) else parts + part
        place += length
        if kind in (FULL, LAST):
            yield parts


def read_runs(folder: Path) -> list[tuple[str, dict[int, dict[str, str]]]]:
    """Of every part of a run, oldest first: its id, and its values, as JSON, by step and name."""
    from wandb.proto.wandb_internal_pb2 import Record

    found = []
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        run_id, steps = "", {}
        for content in read_records(path):
            record: Any = Record.FromString(content)
            run_id = record.run.run_id or run_id
            if record.HasField("history"):
                items = record.history.item
                values = {each.key or "/".join(each.nested_key): each.value_json for each in items}
                steps[record.history.step.num] = values
        found.append((run_id, steps))
    return found
