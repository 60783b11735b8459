"""Who may ask: who has opened the printed address, with its token, and has a cookie since."""

import secrets

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

REJECTION = "Open the address that the server printed, with its token.\n"


class Access:
    """The application, for visitors with the token or its cookie alone."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the start and the end of the server concern the application alone."""
        answer = self.app if scope["type"] == "lifespan" else self.admit(HTTPConnection(scope))
        await answer(scope, receive, send)

    def admit(self, visitor: HTTPConnection) -> ASGIApp:
        """What answers a visitor: the application to the cookie, and the cookie to the token."""
        # A browser sends a cookie to all ports of a host. The port is the one it sees, which
        # ssh may forward, so that two servers do not overwrite each other's.
        name = f"demo-{visitor.headers.get('host', '').rpartition(':')[2]}"
        if self.is_token(visitor.query_params.get("token", "")):
            # A page that leads on, since a redirect from a link of another site would come
            # without the cookie.
            welcome = Response(headers={"refresh": "0; url=/"})
            welcome.set_cookie(name, self.token, httponly=True, samesite="strict")
            return welcome
        if self.is_token(visitor.cookies.get(name, "")):
            return self.app
        return PlainTextResponse(REJECTION, status_code=401)

    def is_token(self, text: str) -> bool:
        """Compare in a time that does not tell how much of it is right."""
        return secrets.compare_digest(text.encode(), self.token.encode())
