"""Unpacking zip archives from untrusted sources."""

import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from data.io.disk_space import require_room

BLOCK = 1 << 20


def extract(
    archive: Path, folder: Path, rename: Callable[[str], str | None] = lambda name: name
) -> list[Path]:
    """Unpack a zip into `folder`, all or none; `rename` gives each file's name, None skips it."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = choose_members(opened, archive, rename)
            needed = sum(member.file_size for member in members.values())
            require_room(folder, needed, f"unpacking {archive}")
            return unpack(opened, members, archive, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeError) as error:
        raise ValueError(
            f"{archive} is not a valid zip archive ({error}); delete it and download it again"
        ) from None


def choose_members(
    opened: zipfile.ZipFile, archive: Path, rename: Callable[[str], str | None]
) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive by the name they will have; a dangerous one raises."""
    chosen: dict[str, zipfile.ZipInfo] = {}
    for member in opened.infolist():
        if member.filename.endswith("/"):  # is_dir() fails where a damaged archive has no name
            continue
        check_member(member, archive)
        name = rename(member.filename)
        if name is None:
            continue
        if name in chosen:
            raise ValueError(f"{archive} holds '{name}' twice; it was not unpacked")
        chosen[name] = member
    return chosen


def check_member(member: zipfile.ZipInfo, archive: Path) -> None:
    """Reject a member that would leave the folder, or that is not an ordinary file."""
    name = member.orig_filename  # as the archive has it: ZipInfo cuts names at a null byte
    path = PurePosixPath(name)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        problem = "would leave the folder it is unpacked into"
    elif kind not in (0, stat.S_IFREG):
        problem = "is a link or a device, not a file"
    elif not path.name:
        problem = "has no name"
    elif member.header_offset < 0:
        problem = "lies outside the archive"
    elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        problem = f"is compressed in a way (number {member.compress_type}) that is not read here"
    else:
        return
    raise ValueError(f"{archive}: member {name!r} {problem}; nothing was unpacked")


def unpack(
    opened: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], archive: Path, folder: Path
) -> list[Path]:
    """Write the members beside their places, then rename them all."""
    partial = folder / f".{archive.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for name, member in tqdm(members.items(), desc=f"unpacking {archive.name}", unit="file"):
            target = partial / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_member(opened, member, target, archive)
        for name in members:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(partial / name, folder / name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return [folder / name for name in members]


def copy_member(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, archive: Path
) -> None:
    """Copy one file; it must have exactly the announced size."""
    with opened.open(member) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, BLOCK)  # zipfile gives no more than was announced
        file.flush()
        os.fsync(file.fileno())
        written = file.tell()
    if written != member.file_size:
        raise ValueError(
            f"{archive}: member '{member.filename}' does not have the {member.file_size} bytes it "
            "announces; delete the archive and download it again"
        )
