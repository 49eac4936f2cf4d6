"""The server of a live page: one page, one stream of events, one place for wishes.

It is for the person who started the run, and for nobody else on this machine or behind a web page:

- it listens on 127.0.0.1 only, and answers only those who call it by that name (DNS rebinding);
- the address has a token that works once: whoever comes first gets a cookie for it;
- nothing is answered without the cookie, and no wish is heard that comes from another origin.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.cli.live_board import Board, Cursor
from ordercast.errors import SetupError, UsageError
from ordercast.report.words import capital

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import (
        HTMLResponse,
        JSONResponse,
        PlainTextResponse,
        RedirectResponse,
        Response,
        StreamingResponse,
    )
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise SetupError(
        "a live run needs the packages starlette and uvicorn: pip install 'ordercast[live]'"
    ) from error

__all__ = ["Key", "Streams", "application", "server_of"]

STEP_S = 0.1
RETRY_MS = 1000
WISH_BYTES_MAX = 1000
REFUSED = "This page is for whoever started the run: open the address that it printed, once.\n"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Key:
    """Who may come in, at the server on this port."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self._unused = True
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"ordercast-{port}"  # cookies do not know ports
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    def answer(self, request: Request) -> Response | None:
        """To whoever has no business here, or comes for the first time; None: let them in."""
        if request.headers.get("host") not in self._hosts:
            return _refusal()
        if self._knows(request):
            return None if _is_our_own(request) else _refusal()
        if request.method == "GET" and request.url.path == "/" and self._takes(request):
            welcome = RedirectResponse("/", status_code=303)
            welcome.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
            return welcome
        return _refusal()

    def _knows(self, request: Request) -> bool:
        return _same(request.cookies.get(self._cookie, ""), self._session)

    def _takes(self, request: Request) -> bool:
        if not self._unused or not _same(request.query_params.get("token", ""), self.token):
            return False
        self._unused = False
        return True


def _is_our_own(request: Request) -> bool:
    """Whether it comes from our page, if it is to change anything."""
    if request.method in ("GET", "HEAD"):
        return True
    return request.headers.get("origin") == f"http://{request.headers['host']}"


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def _refusal() -> Response:
    return PlainTextResponse(REFUSED, status_code=403)


class _Gate:
    """In front of everything."""

    def __init__(self, app: ASGIApp, key: Key) -> None:
        self._app = app
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        answer = self._key.answer(Request(scope))
        await (answer or self._app)(scope, receive, careful)


class Streams:
    """How many are looking, and how many have seen the end."""

    def __init__(self) -> None:
        self.open = 0
        self.begun = 0
        self.concluded = 0


class Wish(Struct, forbid_unknown_fields=True):
    act: str
    process: int | None = None


def application(board: Board, key: Key, page: str, streams: Streams) -> Starlette:
    async def show(request: Request) -> Response:
        return HTMLResponse(page)

    async def events(request: Request) -> Response:
        return StreamingResponse(_events(board, streams), media_type="text/event-stream")

    async def act(request: Request) -> Response:
        try:
            wish = msgspec.json.decode(await _body(request), type=Wish)
            await board.act(wish.act, wish.process)
        except (UsageError, msgspec.DecodeError) as error:
            return JSONResponse({"error": _sentence(error)})
        return JSONResponse({"error": None})

    return Starlette(
        routes=[Route("/", show), Route("/events", events), Route("/act", act, methods=["POST"])],
        middleware=[Middleware(_Gate, key=key)],
    )


def server_of(app: Starlette) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def _sentence(error: Exception) -> str:
    """With a capital, unless it begins with the name of a process."""
    words = f"{error}."
    return words if re.match(r"p\d", words) else capital(words)


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > WISH_BYTES_MAX:
            raise UsageError("nobody wishes for so much at once")
    return body


async def _events(board: Board, streams: Streams) -> AsyncIterator[bytes]:
    """Begins with everything in sight, and ends with the verdicts."""
    cursor = Cursor()
    streams.open += 1
    streams.begun += 1
    name = "begin"
    try:
        yield f"retry: {RETRY_MS}\n\n".encode()
        while True:
            verdicts = board.verdicts
            if (news := board.news(cursor)) is not None:
                yield _event(name, news)
                name = "step"
            if verdicts is not None:
                yield _event("verdicts", verdicts)
                streams.concluded += 1
                return
            await asyncio.sleep(STEP_S)
    finally:
        streams.open -= 1


def _event(name: str, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))
