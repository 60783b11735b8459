"""The comments of a config file: those it opens with, and the one behind each setting."""

from collections.abc import Iterator

import yaml


def read_head(text: str) -> list[str]:
    """The comment lines at the top of a file, without what is meant for Hydra (# @package …)."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return [line for line in lines if not line.startswith("@package")]


def read_lines(text: str) -> dict[str, tuple[str, str]]:
    """Every setting of a file by its dotted key: its value as written, and the comment behind it.

    A mapping in braces is one setting, without a value here.
    """
    root = yaml.compose(text, yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return {}
    found = dict(walk(root, text.splitlines(), ""))
    found.pop("defaults", None)
    return found


def walk(
    mapping: yaml.MappingNode, lines: list[str], prefix: str
) -> Iterator[tuple[str, tuple[str, str]]]:
    """The settings of a mapping and of those within it."""
    for key, value in mapping.value:
        name = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from walk(value, lines, f"{name}.")
        else:
            end = value.end_mark
            behind = lines[end.line][end.column :] if end.line < len(lines) else ""
            written = value.value if isinstance(value, yaml.ScalarNode) else ""
            yield name, (written, behind.partition("#")[2].strip())
