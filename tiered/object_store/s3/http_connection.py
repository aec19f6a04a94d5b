"""One HTTP/1.1 connection that receives a body straight into the caller's memory.

    IDLE ──request──> HEAD ──plain 206──> BODY ──last byte──> IDLE
                       │                    │
                       └── anything else ───┴──> CLOSED

Only two kinds of answers are read: a body of exactly the bytes that were asked for, and, by its
status alone, an error. Whatever else comes is not read: the connection is closed and NotPlainError
has the caller repeat the request by a client that understands all of HTTP.

Once a request is over, however it ended, nothing here refers to the caller's memory.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, cast

from typing_extensions import override

from tiered.errors import StoreTimeoutError, StoreUnavailableError
from tiered.object_store.deadline import NotRetriedError
from tiered.object_store.s3.http_range import body_window

HEAD_BYTES_MAX: Final = 16 * 1024
"""Most of the status line and headers. What of a body comes along with them is copied."""

_RETRIED_STATUSES: Final = frozenset((408, 429, 500, 502, 503, 504))

_READ_HEADERS: Final = frozenset(
    (b"content-length", b"content-range", b"content-encoding", b"transfer-encoding", b"connection")
)


class NotPlainError(Exception):
    """The answer is none that is read here."""


class ClosedBeforeAnswerError(StoreUnavailableError):
    """The connection has ended before the first byte: on a used one, the server's idle time-out."""


class _State(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    CLOSED = auto()


class RangeConnection(asyncio.BufferedProtocol):
    """See the module. One request at a time.

    Attributes:
        requests: Sent so far.
        reusable: The last answer is read to its end and the server keeps the connection.
        idle_since: The loop's time of the last answer's end.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_lost: Callable[["RangeConnection"], None]
    ) -> None:
        self.requests = 0
        self.reusable = False
        self.idle_since = 0.0
        self._loop = loop
        self._on_lost = on_lost
        self._state = _State.IDLE
        self._transport: asyncio.Transport | None = None
        self._head = bytearray(HEAD_BYTES_MAX)
        self._head_view = memoryview(self._head)
        self._head_filled = 0
        self._kept = False
        self._position = 0
        self._view: memoryview | None = None
        self._filled = 0
        self._done: asyncio.Future[None] | None = None
        self._progress_at = 0.0
        self._watch: asyncio.TimerHandle | None = None

    # -- requests ----------------------------------------------------------------------------

    async def exchange(
        self, request: bytes, position: int, view: memoryview, read_timeout_s: float
    ) -> None:
        """Send a request for `len(view)` bytes from `position`, at least 1, and fill `view`.

        Raises:
            NotPlainError: See the module.
            StoreTimeoutError: No byte came for so long.
            NotRetriedError: The object ends before the range does.
            StoreUnavailableError: The server is busy, or the connection has ended.
        """
        if self._state is not _State.IDLE or self._transport is None:
            raise ClosedBeforeAnswerError("the connection is closed")
        self.requests += 1
        self.reusable = False
        self._state = _State.HEAD
        self._head_filled = 0
        self._position = position
        self._view = view
        self._filled = 0
        self._done = self._loop.create_future()
        self._progress_at = self._loop.time()
        self._watch = self._loop.call_later(read_timeout_s, self._look, read_timeout_s)
        self._transport.write(request)
        try:
            await self._done
        finally:
            self._watch.cancel()
            self._view = None
            self._done = None
            if not self.reusable:
                self.abort()

    def abort(self) -> None:
        """Close at once; what is being waited for fails."""
        self._state = _State.CLOSED
        self._view = None
        if self._transport is not None:
            self._transport.abort()
        self._fail(StoreUnavailableError("the connection was closed here"))

    def _look(self, read_timeout_s: float) -> None:
        left_s = self._progress_at + read_timeout_s - self._loop.time()
        if left_s > 0:
            self._watch = self._loop.call_later(left_s, self._look, read_timeout_s)
        else:
            self._fail(StoreTimeoutError(f"no byte came for {read_timeout_s * 1000:.0f} ms"))

    def _fail(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    def _end(self) -> None:
        """The body is complete."""
        self._view = None
        self.reusable = self._kept
        self._state = _State.IDLE if self.reusable else _State.CLOSED
        self.idle_since = self._loop.time()
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    # -- the protocol ------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        nothing_came = self._state is _State.HEAD and self._head_filled == 0
        self._state = _State.CLOSED
        self._view = None
        self._transport = None
        kind = ClosedBeforeAnswerError if nothing_came else StoreUnavailableError
        self._fail(kind(f"the connection has ended after {self._filled} bytes ({exc or 'EOF'})"))
        self._on_lost(self)

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go: the head's memory, then the caller's."""
        if self._state is _State.BODY and self._view is not None:
            return self._view[self._filled :]
        if self._state is _State.HEAD:
            return self._head_view[self._head_filled :]
        return self._head_view

    @override
    def buffer_updated(self, nbytes: int) -> None:
        """Called by the loop after it has filled so much."""
        self._progress_at = self._loop.time()
        if self._state is _State.BODY:
            self._filled += nbytes
            if self._view is not None and self._filled == len(self._view):
                self._end()
        elif self._state is _State.HEAD:
            searched = max(0, self._head_filled - 3)
            self._head_filled += nbytes
            end = self._head.find(b"\r\n\r\n", searched, self._head_filled)
            if end >= 0:
                self._read_head(end)
            elif self._head_filled == HEAD_BYTES_MAX:
                self._state = _State.CLOSED
                self._fail(NotPlainError(f"headers of more than {HEAD_BYTES_MAX} bytes"))
        elif self._state is _State.IDLE:
            # Unrequested bytes: the two sides disagree about where answers end.
            self.abort()

    def _read_head(self, end: int) -> None:
        try:
            self._kept = self._check_head(bytes(self._head_view[:end]))
        except (NotPlainError, StoreUnavailableError) as error:
            self._state = _State.CLOSED
            self._fail(error)
            return
        assert self._view is not None
        came = self._head_filled - (end + 4)
        if came > len(self._view):
            self._kept = False
            came = len(self._view)
        self._view[:came] = self._head_view[end + 4 : end + 4 + came]
        self._filled = came
        self._state = _State.BODY
        if came == len(self._view):
            self._end()

    def _check_head(self, head: bytes) -> bool:
        """Whether the server keeps the connection; raises unless the body is what was asked for."""
        status_line, *lines = head.split(b"\r\n")
        version, _, rest = status_line.partition(b" ")
        status = int(rest[:3]) if rest[:3].isdigit() else 0
        if status == 416:
            raise NotRetriedError("416: the object ends before the range does")
        if status in _RETRIED_STATUSES:
            raise StoreUnavailableError(rest.decode("latin-1"))
        if status not in (200, 206) or version != b"HTTP/1.1":
            raise NotPlainError(f"status {status_line[:40]!r}")
        headers: dict[bytes, bytes] = {}
        for line in lines:
            name, _, value = line.partition(b":")
            name = name.lower()
            # Some servers repeat headers of their own, which is no concern of ours.
            if name in _READ_HEADERS and headers.setdefault(name, value.strip()) != value.strip():
                raise NotPlainError(f"two headers {name!r}")
        assert self._view is not None
        length = headers.get(b"content-length", b"")
        if (
            not length.isdigit()
            or b"transfer-encoding" in headers
            or headers.get(b"content-encoding", b"identity") not in (b"identity", b"")
        ):
            raise NotPlainError("a body of another form")
        content_range = headers.get(b"content-range", b"").decode("latin-1")
        try:
            window = body_window(
                status, content_range, int(length), self._position, len(self._view)
            )
        except NotRetriedError:
            raise
        except StoreUnavailableError as error:
            raise NotPlainError(str(error)) from None
        if window.skip or window.body_bytes != len(self._view):
            raise NotPlainError("the whole object where a range was asked for")
        return headers.get(b"connection", b"").lower() != b"close"
