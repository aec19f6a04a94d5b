"""Asks a broker's admin port for a page."""

import asyncio
from typing import Final

PAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""`/metrics` of a broker with tens of thousands of partitions has some 20 MiB."""

TIMEOUT_S: Final = 8.0
"""Less than the supervisor's own admin port gives a page."""

_CHUNK: Final = 64 * 1024


class PageError(Exception):
    """No such answer; the text has the reason."""


async def fetch_page(address: str, path: str) -> tuple[int, bytes]:
    """Status and body of `GET path` at `host:port`.

    Raises:
        PageError: It cannot be reached, answers too late, too much, in part, or no HTTP.
    """
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
                return await _answer(reader)
            finally:
                writer.close()
    except TimeoutError as error:
        raise PageError(f"no answer in {TIMEOUT_S:.0f} s") from error
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise PageError(str(error) or type(error).__name__) from error


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Up to the connection's end, which the admin port makes after each answer.

    A process that is killed ends it, too, in the middle of a page: a number would be cut short, and
    nothing would tell it from a small one.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.") or head.count(b" ") < 2:
        raise PageError("no HTTP")
    status = int(head.split(b" ", 2)[1])
    length = _content_length(head)
    body = bytearray()
    while chunk := await reader.read(_CHUNK):
        body += chunk
        if len(body) > PAGE_BYTES_MAX:
            raise PageError(f"more than {PAGE_BYTES_MAX} bytes")
    if len(body) != length:
        raise PageError(f"{len(body)} bytes of {length}")
    return status, bytes(body)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise PageError("no Content-Length")
