"""The page's server: it listens on this machine alone, and its pages load nothing else."""

import logging
import socket
from pathlib import Path
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from scripts.demo.access import Access
from scripts.demo.page import Page
from scripts.demo.port import HOST

MOST_SESSIONS = 100  # that the server keeps
SHUTDOWN = 1  # seconds that open pages are given when the server ends
# Gradio's scripts are inline and make functions of texts; all they load comes from this server.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
HEADERS = [  # of every response: with them a browser loads nothing from elsewhere
    ("content-security-policy", POLICY),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
]


def make_app(page: Page, upload_megabytes: int, token: str | None) -> FastAPI:
    """The page as an application, without what else Gradio offers; None: for everyone."""
    undocumented: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None}
    app = FastAPI(**undocumented)
    if token is not None:
        app.add_middleware(Access, token=token)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    page.blocks.state_session_capacity = MOST_SESSIONS
    page.blocks.queue(api_open=False)
    # Only a page that has been launched rejects requests that name files of the server, which
    # nobody uploaded; Gradio leaves a mounted one unguarded.
    page.blocks.has_launched = page.blocks.is_running = True
    return gr.mount_gradio_app(
        app,
        page.blocks,
        path="/",
        server_name=HOST,
        app_kwargs=undocumented,
        max_file_size=f"{upload_megabytes}mb",
        theme=gr.themes.Default(primary_hue="blue", font="sans-serif", font_mono="monospace"),
        css_paths=Path(__file__).parent / "page.css",
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        mcp_server=False,
        pwa=False,
        show_error=False,
        ssr_mode=False,
    )


class Server(uvicorn.Server):
    """A server that ends without log lines about the pages that are still open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what has not ended in time."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def serve(app: FastAPI, port: socket.socket) -> None:
    """Serve until interrupted."""
    options: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": SHUTDOWN}
    Server(uvicorn.Config(app, headers=HEADERS, **options)).run(sockets=[port])
