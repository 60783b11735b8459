"""make install TORCH=site: check the torch that a site brings, and print constraints that keep it.

python scripts/cluster/site_torch.py > .venv/constraints.txt, in an environment with pip alone
"""

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"(torch|torchvision)==")


def main() -> None:
    """Print the pinned versions, with those of the site's torch and torchvision in their place."""
    # here, not above: where pip is imported, torch.compile no longer finds setuptools' distutils
    from pip._vendor.packaging.version import Version

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (needed,) = (
        word.removeprefix("torch>=")
        for word in project["dependencies"]
        if word.startswith("torch>=")
    )
    try:
        import torch  # noqa: F401
    except Exception as error:  # a library that it needs is missing, or of another CUDA
        fail(
            f"torch does not import here ({error}); load the site's module, or enter its container"
        )
    there = find_version("torch")
    if there is None:
        fail("torch imports here, but pip has no record of it and would install another one")
    if Version(there) < Version(needed):
        fail(f"the site's torch is {there}, and {needed} or newer is needed; leave out TORCH=site")
    kept = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = {"torch": there, "torchvision": find_version("torchvision")}
    print("\n".join(line for line in kept if not PINNED.match(line)))
    print("\n".join(f"{name}=={version}" for name, version in found.items() if version))


def find_version(package: str) -> str | None:
    """The version of a package as pip knows it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def fail(sentence: str) -> NoReturn:
    """End with one sentence and exit code 2, as every command does."""
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
