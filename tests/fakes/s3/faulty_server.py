"""A proxy in front of a real S3 server that spoils what the test says.

    async with S3Faults(moto_url) as proxy:
        proxy.fail(S3Fault.SHORT_BODY, method="GET", times=1)
        ... a store at proxy.url ...

What it does to a request that a fault fits:

    HANG          reads it and never answers
    DEAF          accepts the connection and reads nothing
    STATUS        answers `status` with S3's XML of `code`; the server never sees the request
    RESET         resets the connection when half of the answer's body has gone out, or at once
    SHORT_BODY    closes the connection there, politely
    WRONG_BYTES   flips a bit in the middle of the answer's body
    TRICKLE       sends the answer's body at 10 KB/s
    LOST_ANSWER   the server does it, the answer never comes: the connection is reset
    WHOLE         takes the Range out of the request: the answer is 200 and the whole object
    STATUS_200    says 200 instead of 206, as rclone does

Connections are kept open between requests, as a good server does (moto closes each).
"""

import asyncio
import contextlib
import re
import struct
from collections import Counter
from enum import Enum, auto
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

FOREVER: Final = 1 << 60


class S3Fault(Enum):
    """See the module."""

    HANG = auto()
    DEAF = auto()
    STATUS = auto()
    RESET = auto()
    SHORT_BODY = auto()
    WRONG_BYTES = auto()
    TRICKLE = auto()
    LOST_ANSWER = auto()
    WHOLE = auto()
    STATUS_200 = auto()


class _Scripted:
    def __init__(
        self,
        fault: S3Fault,
        method: str,
        target: str,
        times: int,
        skip: int,
        status: int,
        code: str,
    ) -> None:
        self.fault = fault
        self.method = method
        self.target = target
        self.times = times
        self.skip = skip
        self.status = status
        self.code = code
        self.hits = 0


class S3Faults:
    """See the module.

    Attributes:
        url: Of the proxy.
        requests: By method, those of faults included.
        targets: (method, path and query) of each, in order.
        connections: Accepted so far.
        open_connections: Now.
    """

    def __init__(self, server_url: str) -> None:
        url = urlsplit(server_url)
        self._host, self._port = str(url.hostname), url.port
        self.url = ""
        self.requests: Counter[str] = Counter()
        self.targets: list[tuple[str, str]] = []
        self.connections = 0
        self.open_connections = 0
        self._faults: list[_Scripted] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def fail(
        self,
        fault: S3Fault,
        *,
        method: str = "",
        target: str = "",
        times: int = FOREVER,
        skip: int = 0,
        status: int = 503,
        code: str = "SlowDown",
    ) -> _Scripted:
        """Spoil requests of a method ("" for all) whose path and query match `target` (regex)."""
        scripted = _Scripted(fault, method, target, times, skip, status, code)
        self._faults.append(scripted)
        return scripted

    def heal(self) -> None:
        """No more faults."""
        self._faults.clear()

    async def __aenter__(self) -> "S3Faults":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 20)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_connections -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _next_fault(self, method: str, target: str) -> _Scripted | None:
        for scripted in self._faults:
            if scripted.method in ("", method) and re.search(scripted.target, target):
                if scripted.skip:
                    scripted.skip -= 1
                    continue
                scripted.times -= 1
                scripted.hits += 1
                if scripted.times <= 0:
                    self._faults.remove(scripted)
                return scripted
        return None

    async def _listen(self) -> None:
        if any(scripted.fault is S3Fault.DEAF for scripted in self._faults):
            await asyncio.Event().wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        await self._listen()
        head = await reader.readuntil(b"\r\n\r\n")
        await self._listen()
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        self.requests[method] += 1
        self.targets.append((method, target))
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        scripted = self._next_fault(method, target)
        fault = scripted.fault if scripted else None
        if fault is S3Fault.HANG:
            await asyncio.Event().wait()
        if scripted is not None and fault is S3Fault.STATUS:
            text = f"<Error><Code>{scripted.code}</Code><Message>told to</Message></Error>"
            said = "" if method == "HEAD" else text
            writer.write(
                f"HTTP/1.1 {scripted.status} Told\r\ncontent-length: {len(said)}\r\n"
                f"content-type: application/xml\r\n\r\n{said}".encode()
            )
            await writer.drain()
            return True
        if fault is S3Fault.WHOLE:
            head = re.sub(rb"(?i)\r\nrange:[^\r]*", b"", head)
        answer = await self._forward(head, body)
        answer_head, _, answer_body = answer.partition(b"\r\n\r\n")
        answer_head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", answer_head)
        half = len(answer_body) // 2
        match fault:
            case S3Fault.LOST_ANSWER:
                self._reset(writer)
                return False
            case S3Fault.RESET if half == 0:
                self._reset(writer)
                return False
            case S3Fault.SHORT_BODY if half == 0:
                writer.write(answer_head)
                return False
            case S3Fault.RESET | S3Fault.SHORT_BODY:
                writer.write(answer_head + b"\r\n\r\n" + answer_body[:half])
                await writer.drain()
                if fault is S3Fault.RESET:
                    # Else the reset overtakes what has just been sent.
                    await asyncio.sleep(0.02)
                    self._reset(writer)
                return False
            case S3Fault.WRONG_BYTES if answer_body:
                flipped = bytes([answer_body[half] ^ 1])
                answer_body = answer_body[:half] + flipped + answer_body[half + 1 :]
            case S3Fault.TRICKLE:
                writer.write(answer_head + b"\r\n\r\n")
                for at in range(0, len(answer_body), 100):
                    writer.write(answer_body[at : at + 100])
                    await writer.drain()
                    await asyncio.sleep(0.01)
                return True
            case S3Fault.STATUS_200:
                answer_head = answer_head.replace(b"206 PARTIAL CONTENT", b"200 OK")
        writer.write(answer_head + b"\r\n\r\n" + answer_body)
        await writer.drain()
        return True

    async def _forward(self, head: bytes, body: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(head + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if b"100 CONTINUE" in answer.upper():
                answer = await reader.readuntil(b"\r\n\r\n")
            return answer + await reader.read()
        finally:
            writer.close()

    @staticmethod
    def _reset(writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
