"""The admin port: `/metrics`, `/healthz`, `/readyz`, `/cluster`, `/tier` over plain HTTP/1.1.

    /healthz   200 while the event loop runs; depends on nothing else, because a liveness
               probe that kills a recovering broker makes things worse
    /readyz    200 when every partition is open and clients are served, else 503 and why; then a
               line for each alert (`storage.environment.alerts`), which changes nothing of the
               status
    /metrics   Prometheus' text format
    /cluster   this broker's epoch and lease, and all brokers with their fences, as JSON
    /tier...   remote storage, for `varve tier`: what there is, and POST to have something done

It is for a scraper, a probe and an operator on a trusted network: small requests without a body,
few connections at a time, no keep-alive. A POST must have the header `Varve-Action`, which a web
page cannot make a browser send.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

LOGGER = logging.getLogger(__name__)

REQUEST_HEAD_MAX: Final = 8 * 1024
"""Bytes of request line and headers together."""

CONNECTIONS_MAX: Final = 32
TIMEOUT_S: Final = 10.0

ACTION_TIMEOUT_S: Final = 3_600.0
"""For what a POST has done: reading a topic in the bucket again takes its time."""

ACTION_HEADER: Final = b"varve-action"


@dataclass(frozen=True, slots=True)
class Page:
    """The response of a path."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Query = Mapping[str, str]
"""Query parameters; the last one of a repeated name."""

Pages = Mapping[str, Callable[[Query], Awaitable[Page]]]


class AdminServer:
    """Serves `pages` (path to coroutine function) until closed; `actions` are for POST."""

    def __init__(self, pages: Pages, actions: Pages | None = None) -> None:
        self._pages = dict(pages)
        self._actions = dict(actions or {})
        self._server: asyncio.Server | None = None
        self._open = 0
        self.requests = 0

    def add(self, pages: Pages, actions: Pages) -> None:
        """Serve more."""
        self._pages.update(pages)
        self._actions.update(actions)

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            OSError: The address is taken or not ours.
        """
        self._server = await asyncio.start_server(
            self._serve, host, port, limit=REQUEST_HEAD_MAX, backlog=CONNECTIONS_MAX
        )

    @property
    def port(self) -> int:
        """The port listened on; the one the system chose where the setting says 0."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def aclose(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= CONNECTIONS_MAX:
            writer.close()
            return
        self._open += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(ACTION_TIMEOUT_S if head[:5] == b"POST " else TIMEOUT_S):
                page, with_body = await self._answer(head)
                writer.write(_render(page, with_body=with_body))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            # An incomplete request; the connection ends and that is all.
            return
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, head: bytes) -> tuple[Page, bool]:
        self.requests += 1
        line, *headers = head.split(b"\r\n")
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Page(400, b"bad request\n"), True
        method = words[0]
        path, _, query = words[1].decode("latin-1").partition("?")
        if method not in (b"GET", b"HEAD", b"POST"):
            return Page(405, b"GET, HEAD or POST\n"), True
        known = self._actions if method == b"POST" else self._pages
        page = known.get(path)
        if page is None:
            if path in self._pages or path in self._actions:
                return Page(405, b"not with this method\n"), method != b"HEAD"
            paths = " ".join(sorted({*self._pages, *self._actions}))
            return Page(404, f"there is only {paths}\n".encode()), method != b"HEAD"
        names = {header.partition(b":")[0].strip().lower() for header in headers}
        if method == b"POST" and ACTION_HEADER not in names:
            return Page(403, b"the header Varve-Action is missing\n"), True
        try:
            return await page(dict(parse_qsl(query))), method != b"HEAD"
        except Exception:
            LOGGER.exception("admin page failed path=%s", path)
            return Page(500, b"see the log\n"), True


def _render(page: Page, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    return head + page.body if with_body else head
