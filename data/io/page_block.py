"""A block of a Markdown page that a command writes, so that the page follows the code."""

import re
from pathlib import Path

from data.io.atomic_files import atomic_write


def read_block(page: Path, command: str) -> str:
    """The text between `<!-- command … -->` and `<!-- end of command -->`."""
    return find_block(page, command).group(1)


def write_block(page: Path, command: str, text: str) -> None:
    """Replace the block; all other text stays."""
    found = find_block(page, command)
    whole = found.string
    with atomic_write(page) as temporary:
        temporary.write_text(
            f"{whole[: found.start(1)]}{text}{whole[found.end(1) :]}", encoding="utf-8"
        )


def find_block(page: Path, command: str) -> re.Match[str]:
    """The command's one block of a page."""
    start, end = rf"<!-- {command}\b[^\n]*-->\n", f"<!-- end of {command} -->"
    found = list(re.finditer(rf"{start}(.*?){end}", page.read_text(encoding="utf-8"), re.DOTALL))
    if len(found) != 1:
        raise ValueError(f"{page} needs one block between <!-- {command} --> and {end}")
    return found[0]
