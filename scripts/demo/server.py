"""The page's server: on this machine alone, and a browser that opens it goes nowhere else."""

import logging
import socket
from pathlib import Path
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from scripts.demo.page import Page
from scripts.demo.port import HOST

MOST_VISITS = 100  # of whom the server remembers what they asked
SHUTDOWN = 1  # seconds that open pages are given when the server ends
# Gradio's scripts are inline and make functions of texts; all they load comes from this server.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)


class Guard:
    """Adds to every answer the order to a browser to load from here and from nowhere else."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and its answer back with the headers."""

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (b"content-security-policy", POLICY.encode()),
                    (b"referrer-policy", b"no-referrer"),
                    (b"x-content-type-options", b"nosniff"),
                ]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        await self.app(scope, receive, send_guarded)


def make_app(page: Page, upload_megabytes: int) -> FastAPI:
    """The page as an application, without all that Gradio offers beside it."""
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]),
        Middleware(Guard),
    ]
    undocumented: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None}
    app = FastAPI(**undocumented, middleware=middleware)
    page.blocks.state_session_capacity = MOST_VISITS
    page.blocks.queue(api_open=False)
    # Only a page that has been launched refuses requests that name files of the server, which
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
    """A server that ends without complaints about the pages that are still open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Cut off what has not ended in time."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def serve(app: FastAPI, port: socket.socket) -> None:
    """Serve until interrupted."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=SHUTDOWN)
    Server(config).run(sockets=[port])
