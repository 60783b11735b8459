"""Downloads that resume where they stopped and are complete or absent."""

import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tqdm import tqdm

from data.io.atomic_files import read_json, synchronise, write_json
from data.io.disk_space import require_room

BLOCK = 1 << 18
TIMEOUT = 60  # seconds without a byte


def download(url: str, path: Path, num_retries: int = 5, pause: float = 1.0) -> None:
    """Fetch `url` to `path`; gives up after `num_retries` attempts in a row that bring nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    failures = 0
    while True:
        before = size_of(part)
        try:
            if fetch_rest(url, part):
                break
            problem = f"the connection ended after {size_of(part)} bytes"
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                raise OSError(
                    f"{url} answered {error.code} {error.reason}; check the address"
                ) from None
            problem = f"it answered {error.code} {error.reason}"
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
        ) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
        failures = 0 if size_of(part) > before else failures + 1
        if failures > num_retries:
            raise OSError(
                f"{url} could not be downloaded ({problem}); run the same command again, it "
                f"resumes from {part}"
            )
        time.sleep(pause * 2 ** max(failures - 1, 0))
    synchronise(part)
    os.replace(part, path)
    validator_file(part).unlink(missing_ok=True)


def fetch_rest(url: str, part: Path) -> bool:
    """Ask for the bytes that `part` lacks and append them; True when it is complete."""
    have = size_of(part)
    validator = read_validator(part)
    if have and not validator:
        have = 0  # nothing tells whether the server still has the same file
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", validator)
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # the server has no byte after ours: ours is the whole file, or another one
        if read_total(error.headers.get("Content-Range")) == have:
            return True
        part.unlink()
        return False
    with response:
        start, total = read_extent(response)
        if start not in (0, have):
            raise http.client.HTTPException(f"asked for bytes from {have}, got them from {start}")
        if total is not None:
            require_room(part.parent, total - start, f"downloading {url}")
        if start == 0:
            part.unlink(missing_ok=True)
            save_validator(part, response.headers)
        append(response, part, start, total, url.rsplit("/", 1)[-1])
    if total is not None and size_of(part) > total:
        part.unlink()
        raise http.client.HTTPException(f"more than the announced {total} bytes arrived")
    return total is None or size_of(part) == total


def append(response: Any, part: Path, start: int, total: int | None, name: str) -> None:
    """Copy what arrives after the first `start` bytes of `part`; on an error that stays."""
    with (
        open(part, "ab") as file,
        tqdm.wrapattr(file, "write", total, initial=start, desc=name) as counted,
    ):
        shutil.copyfileobj(response, counted, BLOCK)


def read_extent(response: Any) -> tuple[int, int | None]:
    """Where the body of an answer begins in the file, and how long the file is, when it says so."""
    if response.status == 206:
        extent = response.headers.get("Content-Range", "")
        match = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]+|\*)", extent.strip())
        if match is None:
            raise http.client.HTTPException(f"the range '{extent}' makes no sense")
        return int(match[1]), read_total(extent)
    length = response.headers.get("Content-Length")
    return 0, read_total(length)


def read_total(extent: str | None) -> int | None:
    """The length of the whole file in "20", "bytes 10-19/20" or "bytes */20"."""
    last = (extent or "").rsplit("/", 1)[-1].strip()
    return int(last) if re.fullmatch(r"[0-9]{1,18}", last) else None


def size_of(part: Path) -> int:
    """Bytes of a file, none when it is not there."""
    return part.stat().st_size if part.exists() else 0


def validator_file(part: Path) -> Path:
    """Where it is noted which version of the file the first bytes come from."""
    return part.with_name(part.name + ".json")


def save_validator(part: Path, headers: Any) -> None:
    """Note the server's ETag or date, to be sure later that the rest belongs to the same file."""
    tag = headers.get("ETag")
    strong = tag if tag and not tag.startswith("W/") else None
    write_json(validator_file(part), {"validator": strong or headers.get("Last-Modified")})


def read_validator(part: Path) -> str:
    """The noted ETag or date; empty when there is none."""
    try:
        return str(read_json(validator_file(part))["validator"] or "")
    except (OSError, ValueError, KeyError, TypeError):
        return ""
