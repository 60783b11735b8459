"""A block of a Markdown file that a command writes: the text cannot fall behind the code."""

import re
from pathlib import Path

from data.files import replacing

BLOCK = re.compile(r"(<!-- make cost[^\n]*-->\n```\n)(.*?)(```\n<!-- end -->)", re.DOTALL)


def read_block(path: Path) -> str:
    """What stands in the file's block."""
    return find_block(path).group(2)


def write_block(path: Path, text: str) -> None:
    """Replace the block; all other text stays."""
    found = find_block(path)
    whole = found.string
    with replacing(path) as temporary:
        temporary.write_text(
            f"{whole[: found.start(2)]}{text}\n{whole[found.end(2) :]}", encoding="utf-8"
        )


def find_block(path: Path) -> re.Match[str]:
    """The one block of a file."""
    found = BLOCK.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{path} has no block between <!-- make cost … --> and <!-- end -->")
    return found
