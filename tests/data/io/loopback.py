"""A web server on loopback that serves files, with the faults it is told to have."""

import contextlib
import http.server
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Site:
    """What the server has and how it behaves; `asked` records the Range of every request."""

    files: dict[str, bytes]
    ranges: bool = True  # whether it honours Range
    cut_after: int | None = None  # bytes of a body after which the connection ends
    cuts: int = 0  # how many answers are cut
    errors: list[int] = field(default_factory=list)  # statuses of the next answers
    length: str | None = None  # what Content-Length says instead of the truth
    tag: str = '"one"'
    asked: list[str | None] = field(default_factory=list)
    url: str = ""


@contextlib.contextmanager
def serve(site: Site) -> Iterator[Site]:
    """Serve a site until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.asked.append(wanted)
            body = site.files.get(self.path.lstrip("/"))
            if site.errors or body is None:
                self.send_error(site.errors.pop(0) if site.errors else 404)
                return
            start = 0
            same = self.headers.get("If-Range") in (None, site.tag)
            if wanted and site.ranges and same:
                start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
                if start >= len(body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            self.send_header("ETag", site.tag)
            self.send_header("Content-Length", site.length or str(len(body) - start))
            self.end_headers()
            rest = body[start:]
            if site.cuts > 0 and site.cut_after is not None:
                site.cuts -= 1
                rest = rest[: site.cut_after]
            self.wfile.write(rest)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
