"""Files that are whole or absent: JSON in, JSON and CSV out, writing through a temporary name."""

import contextlib
import csv
import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

LONGEST_NAME = 255  # bytes of a file's name on common file systems
Simplify = Callable[[dict[str, Any]], Any] | None


def read_json(path: str | Path, simplify: Simplify = None) -> Any:
    """Parse a JSON file; a missing or malformed one raises an error that names it.

    `simplify` may replace each JSON object while the file is parsed.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_hook=simplify)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except (ValueError, RecursionError) as error:  # bad bytes, bad JSON, a number too long
        raise ValueError(f"{path} is not valid JSON: {error}") from None


def write_json(path: str | Path, value: Any, indent: int | None = None) -> None:
    """Write JSON so that the file is complete or absent."""
    with atomic_write(path) as temporary:
        temporary.write_text(
            json.dumps(value, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8"
        )


def write_csv(path: str | Path, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table so that the file is complete or absent; what a row lacks stays empty."""
    with (
        atomic_write(path) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(rows)


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; rename it to `path` when the block ends without error."""
    path = Path(path)
    check_output_file(path)
    make_parent(path)
    temporary = name_temporary(path)
    try:
        yield temporary
        synchronise(temporary)
        os.replace(temporary, path)
        synchronise(path.parent)
    except (OSError, RuntimeError) as error:
        # an OSError may be about another file that the block needs
        if getattr(error, "filename", None) in (None, str(temporary)):
            raise_unwritable(error, path)
        raise
    finally:
        with contextlib.suppress(OSError):  # on a disk that became read-only
            temporary.unlink(missing_ok=True)


def name_temporary(path: Path) -> Path:
    """What `path` is called until it is complete, by this process."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


@contextlib.contextmanager
def write_errors_naming(path: Path) -> Iterator[None]:
    """Turn an error of the system while `path` is written into a sentence that names it."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise_unwritable(error, path)
        raise


def raise_unwritable(error: OSError | RuntimeError, path: Path) -> None:
    """Raise that `path` cannot be written, if that is what the system, HDF5 or torch means."""
    within = re.search(r"error message = '([^']*)'", str(error))  # HDF5's words
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__context__  # torch's archive writer raises over what the system said
    reason = within[1] if within else getattr(cause, "strerror", None)
    if reason:
        raise OSError(f"{path} cannot be written: {reason}") from error


def check_output_file(path: Path, force: bool = True) -> None:
    """Raise when no file can be written to `path` or, without `force`, when one is there."""
    if len(os.fsencode(name_temporary(path).name)) > LONGEST_NAME:
        raise OSError(f"{path} cannot be written: its name is too long; give it a shorter one")
    check_parents(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the file to write")
    if not force and path.exists():
        raise FileExistsError(f"{path} exists already; delete it or pass force=true to replace it")


def check_parents(path: Path) -> None:
    """Raise when the folder that is to hold a path, or `path` itself, may not be written to."""
    places = [path] if path.is_dir() else path.absolute().parents
    nearest = next(place for place in places if os.path.lexists(place))
    if not nearest.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {nearest} is a file, not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        reason = os.strerror(errno.EROFS if is_read_only else errno.EACCES)
        raise PermissionError(f"{path} cannot be written: {reason}")


def make_parent(path: Path) -> None:
    """Make the folder that a file goes into."""
    check_parents(path)
    path.parent.mkdir(parents=True, exist_ok=True)


def synchronise(path: Path) -> None:
    """Ask the disk to keep a file (or a folder's list of names) before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes | memoryview, offset: int) -> None:
    """Write every byte at `offset`, however many calls the system needs."""
    view = memoryview(content)
    while len(view):
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
