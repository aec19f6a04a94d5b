"""A client's one connection to the server of its metadata store, made again whenever it ends.

    CONNECTING ──WELCOME──> CONNECTED ──ends, or is silent for SILENT_PINGS──> WAITING
        ^   │                                                                    │
        │   └──refused, no WELCOME in CONNECT_MS──> WAITING ──20 to 500 ms later─┤
        │   └──another store, or an older one─────> REPLACED: for good           │
        └────────────────────────────────────────────────────────────────────────┘

    a request while CONNECTED    sent once; its answer lost, that is said, and not guessed
                     CONNECTING  waits for the outcome
                     WAITING     fails at once: certainly not sent

Nothing is sent before WELCOME has shown that this is the store that it was, and that it has every
revision that was seen. Watches are opened again behind what they have delivered. All of it lives in
the store's own event loop (`StoreThread`).
"""

import asyncio
import itertools
import logging
import math
from typing import Final

from broker.controller.store.latency import Latency
from broker.controller.store.metadata_store import (
    CompactedError,
    OutcomeUnknownError,
    RequestTooLargeError,
    StoreClosedError,
    StoreDeniedError,
    StoreError,
    StoreReplacedError,
    StoreUnavailableError,
)
from broker.controller.store.unix.answers import decode_changes, decode_failure
from broker.controller.store.unix.fields import FrameError
from broker.controller.store.unix.followed import Followed
from broker.controller.store.unix.frames import (
    ANSWER_BYTES_MAX,
    RELEASE,
    REQUEST_BYTES_MAX,
    Frame,
    Hello,
    Kind,
    decode_welcome,
    encode_frame,
    encode_hello,
    read_frame,
)
from broker.controller.store.unix.requests import WatchRequest, decode_text, encode_watch
from broker.controller.store.unix.socket_file import reachable

LOGGER = logging.getLogger(__name__)

CONNECT_MS: Final = 400.0
"""From the attempt to WELCOME."""

REQUEST_MS: Final = 2_000.0
"""For an answer, where a call has no other deadline."""

BACKOFF_MS: Final = (20.0, 100.0, 200.0, 500.0)

PING_MS: Final = 1_000.0
SILENT_PINGS: Final = 3
"""Pings without anything heard after which the connection is given up."""

PENDING_MAX: Final = 1_024
"""Requests that wait for an answer; one more fails."""

UNSENT_BYTES_MAX: Final = 4 << 20
"""Bytes that the server has not taken yet; with more a request fails."""

SLOW_MS: Final = 250.0
"""An answer that takes longer is logged, at most every `WARN_EVERY_S`."""

WARN_EVERY_S: Final = 10.0


class _LostError(Exception):
    """The connection has ended before the answer."""


class _Wire:
    """What one connection has: streams, and who waits for answers on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.pending: dict[int, asyncio.Future[Frame]] = {}
        self.silent_pings = 0

    def send(self, kind: Kind, number: int, body: bytes = b"") -> None:
        self.writer.write(encode_frame(Frame(kind, number, body)))

    def end(self, reason: str) -> None:
        self.writer.transport.abort()
        for waiting in self.pending.values():
            if not waiting.done():
                waiting.set_exception(_LostError(reason))


class Link:
    """See the module.

    Attributes:
        revision: The newest that anything from the server has shown, and the floor of all to come.
        connections: How often one was made.
        latency: Of calls that were answered.
    """

    def __init__(self, path: str, name: str, floor_revision: int) -> None:
        """Connect to nothing yet.

        Args:
            path: Of the socket.
            name: Of this client, for the server's log.
            floor_revision: The highest that was ever seen of this store.
        """
        self.revision = floor_revision
        self.connections = 0
        self.latency = Latency()
        self._path = path
        self._name = name
        self._identity = 0
        self._wire: _Wire | None = None
        self._attempt: asyncio.Future[None] | None = None
        self._failure: StoreError = StoreUnavailableError("not connected yet")
        self._replaced: StoreReplacedError | None = None
        self._watches: dict[int, Followed] = {}
        self._numbers = itertools.count(1)
        self._warned_s = -math.inf
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Connect from now on; in the store's loop."""
        self._attempt = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run())

    # -- requests --------------------------------------------------------------------------------

    async def call(
        self, kind: Kind, body: bytes, *, repeat: bool, deadline_ms: float = REQUEST_MS
    ) -> bytes:
        """One request; the body of its answer.

        Args:
            kind: Of the request.
            body: Its.
            repeat: Send it again when the connection has ended before its answer: for what changes
                nothing, or may be done twice.
            deadline_ms: For the answer.

        Raises:
            StoreUnavailableError: It was not sent, or was not answered and may be repeated.
            OutcomeUnknownError: It was sent and not answered, and is not to be repeated.
            StoreReplacedError: Another store is served there now.
            StoreError: The server has refused it.
        """
        if len(body) > REQUEST_BYTES_MAX - 16:
            raise RequestTooLargeError(f"request of {len(body)} bytes")
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        lost = ""
        for _ in range(2):
            wire = await self._connected()
            try:
                frame = await self._ask(wire, kind, body, deadline_ms)
            except _LostError as error:
                lost = f"the connection to {self._path} ended before the answer: {error}"
                if repeat:
                    continue
                raise OutcomeUnknownError(lost) from error
            except TimeoutError as error:
                text = f"no answer from {self._path} in {deadline_ms:.0f} ms"
                raise (StoreUnavailableError if repeat else OutcomeUnknownError)(text) from error
            self._took(loop.time() - began_s)
            if frame.kind is Kind.FAILED:
                raise decode_failure(frame.body)
            return frame.body
        raise StoreUnavailableError(lost)

    async def _connected(self) -> _Wire:
        if self._wire is None and self._attempt is not None:
            await asyncio.shield(self._attempt)
        if self._replaced is not None:
            raise StoreReplacedError(str(self._replaced))
        if self._wire is None:
            raise type(self._failure)(str(self._failure))
        return self._wire

    async def _ask(self, wire: _Wire, kind: Kind, body: bytes, deadline_ms: float) -> Frame:
        unsent = wire.writer.transport.get_write_buffer_size()
        if len(wire.pending) >= PENDING_MAX or unsent > UNSENT_BYTES_MAX:
            raise StoreUnavailableError(
                f"{len(wire.pending)} requests wait for {self._path}, {unsent} bytes are not sent"
            )
        number = self._number()
        waiting: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        wire.pending[number] = waiting
        wire.send(kind, number, body)
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await waiting
        finally:
            wire.pending.pop(number, None)

    def _number(self) -> int:
        # 0 is no caller's: that of pings.
        return next(self._numbers) % 0xFFFF_FFFF + 1

    def _took(self, seconds: float) -> None:
        self.latency.count += 1
        self.latency.total_s += seconds
        self.latency.last_s = seconds
        now_s = asyncio.get_running_loop().time()
        if seconds > SLOW_MS / 1000 and now_s - self._warned_s > WARN_EVERY_S:
            self._warned_s = now_s
            LOGGER.warning("metadata store is slow socket=%s ms=%.0f", self._path, seconds * 1000)

    def saw(self, revision: int) -> None:
        """An answer has shown it."""
        self.revision = max(self.revision, revision)

    # -- watches ---------------------------------------------------------------------------------

    def follow(self, followed: Followed) -> None:
        """Open a watch, and open it again behind each new connection."""
        if self._replaced is not None:
            followed.fail(self._replaced)
            return
        number = self._number()
        followed.number = number
        self._watches[number] = followed
        if self._wire is not None:
            self._open_watch(self._wire, followed)

    def forget(self, followed: Followed) -> None:
        """Close a watch."""
        if self._watches.pop(followed.number, None) is not None and self._wire is not None:
            self._wire.send(Kind.UNWATCH, followed.number)

    def want_progress(self, followed: Followed, revision: int) -> None:
        """Deliver progress of at least `revision`."""
        followed.want(revision)
        if followed.number in self._watches and self._wire is not None:
            self._wire.send(Kind.PROGRESS, followed.number)

    def _open_watch(self, wire: _Wire, followed: Followed) -> None:
        request = WatchRequest(followed.prefix, followed.resume)
        wire.send(Kind.WATCH, followed.number, encode_watch(request))
        if followed.wanted:
            wire.send(Kind.PROGRESS, followed.number)

    # -- connection ------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End the connection; requests under way end without an answer."""
        self._failure = StoreClosedError("the metadata store is closed")
        self._end_attempt()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._wire = None

    async def _run(self) -> None:
        failures = 0
        while True:
            reason = await self._live()
            if self._replaced is not None:
                for followed in list(self._watches.values()):
                    followed.fail(self._replaced)
                self._watches.clear()
                return
            failures = 0 if self._wire is not None else failures + 1
            self._disconnected(reason)
            await asyncio.sleep(BACKOFF_MS[min(failures, len(BACKOFF_MS) - 1)] / 1000)
            self._attempt = asyncio.get_running_loop().create_future()

    def _disconnected(self, reason: StoreError) -> None:
        if self._wire is not None:
            LOGGER.warning(
                "metadata store: the connection has ended socket=%s reason=%s", self._path, reason
            )
        self._failure = reason
        self._wire = None
        self._end_attempt()

    def _end_attempt(self) -> None:
        if self._attempt is not None and not self._attempt.done():
            self._attempt.set_result(None)
        self._attempt = None

    async def _live(self) -> StoreError:
        """One connection, from the attempt to its end; why it has ended."""
        wire: _Wire | None = None
        pinging: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(CONNECT_MS / 1000):
                wire = await self._greeted()
            self._wire = wire
            self.connections += 1
            for followed in list(self._watches.values()):
                self._open_watch(wire, followed)
            self._end_attempt()
            pinging = asyncio.ensure_future(self._ping(wire))
            return await self._read(wire)
        except StoreReplacedError as error:
            self._replaced = error
            self._end_attempt()
            return error
        except StoreError as error:
            return error if not isinstance(error, FrameError) else StoreUnavailableError(str(error))
        except TimeoutError:
            return StoreUnavailableError(
                f"{self._path} takes connections and does not answer in {CONNECT_MS:.0f} ms"
            )
        except OSError as error:
            return StoreUnavailableError(
                f"{self._path} cannot be reached: {error.strerror or error}"
            )
        finally:
            if pinging is not None:
                pinging.cancel()
            if wire is not None:
                wire.end("closed")

    async def _greeted(self) -> _Wire:
        with reachable(self._path) as name:
            reader, writer = await asyncio.open_unix_connection(name)
        wire = _Wire(reader, writer)
        try:
            wire.send(Kind.HELLO, 0, encode_hello(Hello(RELEASE, self._name)))
            frame = await read_frame(reader, ANSWER_BYTES_MAX)
            if frame is None:
                raise StoreUnavailableError(f"{self._path} ended the connection at once")
            self._refused(frame)
            if frame.kind is not Kind.WELCOME:
                raise FrameError(f"{self._path} begins with {frame.kind.name}")
            welcome = decode_welcome(frame.body)
            if welcome.release != RELEASE:
                raise StoreDeniedError(
                    f"{self._path} speaks release {welcome.release} of the protocol, this broker "
                    f"{RELEASE}: they are of different releases of Varve"
                )
            self._compare(welcome.identity, welcome.revision)
        except BaseException:
            writer.transport.abort()
            raise
        return wire

    def _compare(self, identity: int, revision: int) -> None:
        if self._identity and identity != self._identity:
            raise StoreReplacedError(
                f"metadata store {identity:x} is served at {self._path} in place of "
                f"{self._identity:x}"
            )
        if revision < self.revision:
            raise StoreReplacedError(
                f"the metadata store at {self._path} is at revision {revision} and has been at "
                f"{self.revision}: restored from a copy, or emptied"
            )
        self._identity = identity

    async def _ping(self, wire: _Wire) -> None:
        while True:
            await asyncio.sleep(PING_MS / 1000)
            if wire.silent_pings >= SILENT_PINGS:
                wire.writer.transport.abort()
                return
            wire.silent_pings += 1
            wire.send(Kind.PING, 0)
            for number in self._watches:
                wire.send(Kind.PROGRESS, number)

    async def _read(self, wire: _Wire) -> StoreError:
        while True:
            frame = await read_frame(wire.reader, ANSWER_BYTES_MAX)
            if frame is None:
                silent = f", silent for {PING_MS * SILENT_PINGS:.0f} ms"
                return StoreUnavailableError(
                    f"the connection to {self._path} has ended"
                    + silent * (wire.silent_pings >= SILENT_PINGS)
                )
            wire.silent_pings = 0
            self._refused(frame)
            if frame.kind in (Kind.ANSWER, Kind.FAILED):
                waiting = wire.pending.pop(frame.number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
            elif frame.kind is Kind.CHANGES:
                changes = decode_changes(frame.body)
                self.saw(changes.revision)
                followed = self._watches.get(frame.number)
                if followed is not None and not followed.take(changes):
                    self.forget(followed)
            elif frame.kind is Kind.ENDED:
                self._ended(frame)
            else:
                raise FrameError(f"{frame.kind.name} from a server")

    def _ended(self, frame: Frame) -> None:
        failure = decode_failure(frame.body)
        if not isinstance(failure, CompactedError):
            # The server closes its store: the watch goes on behind the next connection.
            raise StoreUnavailableError(f"{self._path} ended a watch: {failure}")
        followed = self._watches.pop(frame.number, None)
        if followed is not None:
            followed.fail(failure)

    def _refused(self, frame: Frame) -> None:
        if frame.kind is Kind.REFUSED:
            raise StoreUnavailableError(f"refused by {self._path}: {decode_text(frame.body)}")
