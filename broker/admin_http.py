"""The admin port: `/metrics`, `/healthz`, `/readyz` over plain HTTP/1.1.

    /healthz   200 while the process turns its loop; depends on nothing else, because a liveness
               probe that kills a recovering broker makes things worse
    /readyz    200 when every partition is open and clients are served, else 503 and why
    /metrics   Prometheus' text format

It is for a scraper and a probe on a trusted network: GET and HEAD only, small requests, few
connections at a time, no keep-alive.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

LOGGER = logging.getLogger(__name__)

REQUEST_HEAD_MAX: Final = 8 * 1024
"""Bytes of request line and headers together."""

CONNECTIONS_MAX: Final = 32
TIMEOUT_S: Final = 10.0

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Page:
    """What a path answers."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class AdminServer:
    """Serves `pages` (path to coroutine function) until closed."""

    def __init__(self, pages: Mapping[str, Callable[[], Awaitable[Page]]]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open = 0
        self.requests = 0

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
                page, with_body = await self._answer(head)
                writer.write(_render(page, with_body=with_body))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            # A stranger's half request; the connection ends and that is all.
            return
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, head: bytes) -> tuple[Page, bool]:
        self.requests += 1
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Page(400, b"bad request\n"), True
        method, target = words[0], words[1].split(b"?", 1)[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return Page(405, b"GET or HEAD\n"), True
        page = self._pages.get(target)
        if page is None:
            known = " ".join(sorted(self._pages))
            return Page(404, f"there is only {known}\n".encode()), method == b"GET"
        try:
            return await page(), method == b"GET"
        except Exception:
            LOGGER.exception("admin page failed path=%s", target)
            return Page(500, b"see the log\n"), True


def _render(page: Page, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    return head + page.body if with_body else head
