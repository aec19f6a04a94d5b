"""One connection to the server of a metadata store.

    HELLO ──> WELCOME ──> requests, each answered when it ends; watches, fed for as long as they are
                            │
                            └──> a frame that is wrong: REFUSED, end

What is answered from memory is answered before the next frame is read: a renewal waits for no disk.
What is written goes beside, up to IN_FLIGHT_MAX requests with IN_FLIGHT_BYTES_MAX; one more fails.

A watch is read from the store as fast as the client takes it. What waits for a slow one lies in the
store's own watch, which is bounded: beyond that it ends in `CompactedError`, and the client lists
again.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from broker.controller.store.metadata_store import (
    CompactedError,
    MetadataStore,
    OutcomeUnknownError,
    RangeResult,
    StoreError,
    StoreUnavailableError,
    Watch,
)
from broker.controller.store.unix.answers import (
    encode_changes,
    encode_failure,
    encode_item,
    encode_range_result,
    encode_txn_result,
)
from broker.controller.store.unix.fields import FrameError
from broker.controller.store.unix.frames import (
    ANSWER_BYTES_MAX,
    RELEASE,
    REQUEST_BYTES_MAX,
    Frame,
    Kind,
    Welcome,
    decode_hello,
    encode_frame,
    encode_welcome,
    read_frame,
)
from broker.controller.store.unix.requests import (
    decode_number,
    decode_range,
    decode_text,
    decode_txn,
    decode_watch,
    encode_number,
    encode_text,
)
from broker.controller.store.whole_range import PAGE_KEYS
from broker.runtime.timer import Timer

LOGGER = logging.getLogger(__name__)

IN_FLIGHT_MAX: Final = 1_024
"""Changes of one connection that wait for the disk."""

IN_FLIGHT_BYTES_MAX: Final = 16 << 20
"""Bytes of their frames."""

WATCHES_MAX: Final = 64
"""Watches of one connection; a broker has a few."""

GREETING_MS: Final = 5_000.0
"""For HELLO, from the moment of the connection."""

PAGE_BYTES: Final = 1 << 20
"""Most of what one answer to RANGE has, but for a single key: the client asks for the next page."""

_ITEM_BYTES: Final = 44
"""What an item takes beside key and value."""

_CHANGING: Final = frozenset({Kind.TXN, Kind.GRANT, Kind.REVOKE})
"""Kinds of requests that wait for the disk."""

_BODY_MAX: Final = ANSWER_BYTES_MAX - 16


class ServedStore(MetadataStore, Protocol):
    """A store of this process."""

    @property
    def revision(self) -> int:
        """The newest revision."""
        ...


@dataclass(slots=True)
class SessionCounts:
    """What all connections of a server have done; see `ServerNumbers`."""

    requests: int = 0
    refused: int = 0
    bad_frames: int = 0
    lost_watches: int = 0


class Session:
    """See the module."""

    def __init__(
        self,
        store: ServedStore,
        identity: int,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        timer: Timer,
        counts: SessionCounts,
    ) -> None:
        """Say nothing yet.

        Args:
            store: What is served.
            identity: Its.
            streams: Of the connection.
            timer: For the greeting.
            counts: Counted up.
        """
        self._store = store
        self._identity = identity
        self._reader, self._writer = streams
        self._timer = timer
        self._counts = counts
        # Changes under way, and the bytes of each.
        self._working: dict[asyncio.Task[None], int] = {}
        self._working_bytes = 0
        self._watches: dict[int, tuple[Watch, asyncio.Task[None]]] = {}

    @property
    def watches(self) -> int:
        """Watches that are open."""
        return len(self._watches)

    def refuse(self, reason: str) -> None:
        """Say why, and end the connection."""
        self._send(Kind.REFUSED, 0, encode_text(reason))
        self._writer.close()

    def abort(self) -> None:
        """End the connection at once; what is not sent is not sent."""
        self._writer.transport.abort()

    async def run(self) -> None:
        """Until the client is gone or has sent what is wrong."""
        try:
            if await self._greet():
                await self._serve()
        except FrameError as error:
            self._counts.bad_frames += 1
            LOGGER.warning("metadata store: a connection is ended error=%s", error)
            self._send(Kind.REFUSED, 0, encode_text(str(error)))
        except OSError as error:
            LOGGER.info("metadata store: a connection has failed error=%s", error)
        finally:
            for task in list(self._working):
                task.cancel()
            for watch, task in self._watches.values():
                task.cancel()
                await watch.aclose()
            self._watches.clear()
            self._writer.close()

    async def _greet(self) -> bool:
        late = self._timer.call_later_ms(GREETING_MS, self._writer.close)
        try:
            frame = await read_frame(self._reader, REQUEST_BYTES_MAX)
        finally:
            late.cancel()
        if frame is None:
            self._counts.refused += self._writer.is_closing()
            return False
        if frame.kind is not Kind.HELLO:
            raise FrameError(f"the first frame is {frame.kind.name}, not HELLO")
        hello = decode_hello(frame.body)
        if hello.release != RELEASE:
            self._counts.refused += 1
            self._send(
                Kind.REFUSED,
                0,
                encode_text(f"release {hello.release} of the protocol, {RELEASE} is spoken here"),
            )
            return False
        LOGGER.debug("metadata store: connected client=%s", hello.name)
        welcome = Welcome(RELEASE, self._identity, self._store.revision)
        self._send(Kind.WELCOME, frame.number, encode_welcome(welcome))
        return True

    async def _serve(self) -> None:
        while True:
            frame = await read_frame(self._reader, REQUEST_BYTES_MAX)
            if frame is None:
                return
            if frame.kind is Kind.WATCH:
                self._open_watch(frame)
            elif frame.kind is Kind.UNWATCH:
                await self._close_watch(frame.number)
            elif frame.kind is Kind.PROGRESS:
                if frame.number in self._watches:
                    await self._watches[frame.number][0].request_progress()
            elif frame.kind in _CHANGING:
                self._begin(frame, _parsed(frame))
            else:
                await self._answer(frame, _parsed(frame))

    def _begin(self, frame: Frame, what: Any) -> None:
        size = len(frame.body)
        if len(self._working) >= IN_FLIGHT_MAX or self._working_bytes + size > IN_FLIGHT_BYTES_MAX:
            busy = StoreUnavailableError(
                f"{len(self._working)} changes of this broker with {self._working_bytes} bytes wait"
            )
            self._send(Kind.FAILED, frame.number, encode_failure(busy))
            return
        task = asyncio.ensure_future(self._answer(frame, what))
        self._working[task] = size
        self._working_bytes += size
        task.add_done_callback(self._worked)

    def _worked(self, task: "asyncio.Task[None]") -> None:
        self._working_bytes -= self._working.pop(task)
        if not task.cancelled() and task.exception() is not None:
            # A mistake of ours: the client must not wait for an answer that never comes.
            LOGGER.error("metadata store: a request failed", exc_info=task.exception())
            self._writer.close()

    # -- requests --------------------------------------------------------------------------------

    async def _answer(self, frame: Frame, what: Any) -> None:
        try:
            kind, body = Kind.ANSWER, await self._result(frame.kind, what)
            if len(body) > _BODY_MAX:
                too_large = f"an answer of {len(body)} bytes, {_BODY_MAX} can be sent"
                kind, body = Kind.FAILED, encode_failure(OutcomeUnknownError(too_large))
        except StoreError as error:
            kind, body = Kind.FAILED, encode_failure(error)
        self._counts.requests += 1
        self._send(kind, frame.number, body)
        with suppress(OSError):
            await self._writer.drain()

    async def _result(self, kind: Kind, what: Any) -> bytes:
        store = self._store
        match kind:
            case Kind.GET:
                item = await store.get(what)
                return encode_item(store.revision, item)
            case Kind.RANGE:
                limit = min(what.limit or PAGE_KEYS, PAGE_KEYS)
                found = await store.range(
                    what.prefix, revision=what.revision, after=what.after, limit=limit
                )
                return encode_range_result(_first_bytes(found))
            case Kind.TXN:
                result = await store.txn(what.compare, what.then, what.otherwise)
                return encode_txn_result(result)
            case Kind.GRANT:
                return encode_number(await store.grant_lease(what))
            case Kind.KEEP_ALIVE:
                return encode_number(await store.keep_lease_alive(what))
            case Kind.COMPACT:
                await store.compact(what)
            case Kind.REVOKE:
                await store.revoke_lease(what)
        return b""

    # -- watches ---------------------------------------------------------------------------------

    def _open_watch(self, frame: Frame) -> None:
        request = decode_watch(frame.body)
        if frame.number in self._watches:
            raise FrameError(f"watch {frame.number} is open already")
        if len(self._watches) >= WATCHES_MAX:
            raise FrameError(f"{WATCHES_MAX} watches are open, no more are taken")
        try:
            watch = self._store.watch(request.prefix, request.first_revision)
        except StoreError as error:
            self._send(Kind.ENDED, frame.number, encode_failure(error))
            return
        task = asyncio.ensure_future(self._feed(frame.number, watch))
        self._watches[frame.number] = (watch, task)

    async def _close_watch(self, number: int) -> None:
        found = self._watches.pop(number, None)
        if found is not None:
            found[1].cancel()
            await found[0].aclose()

    async def _feed(self, number: int, watch: Watch) -> None:
        failure: StoreError | None = None
        try:
            async for changes in watch:
                body = encode_changes(changes)
                if len(body) > _BODY_MAX:
                    failure = CompactedError(changes.revision)
                    break
                self._send(Kind.CHANGES, number, body)
                await self._writer.drain()
        except OSError:
            return
        except StoreError as error:
            failure = error
        if failure is not None:
            self._counts.lost_watches += 1
            self._watches.pop(number, None)
            await watch.aclose()
            self._send(Kind.ENDED, number, encode_failure(failure))

    # -- connection ------------------------------------------------------------------------------

    def _send(self, kind: Kind, number: int, body: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(encode_frame(Frame(kind, number, body)))


def _parsed(frame: Frame) -> Any:
    """What a request asks for.

    Raises:
        FrameError: It is none, or cannot be read.
    """
    match frame.kind:
        case Kind.GET:
            return decode_text(frame.body)
        case Kind.RANGE:
            return decode_range(frame.body)
        case Kind.TXN:
            return decode_txn(frame.body)
        case Kind.COMPACT | Kind.KEEP_ALIVE | Kind.REVOKE:
            return decode_number(frame.body)
        case Kind.GRANT:
            ttl_ms = decode_number(frame.body)
            if ttl_ms == 0:
                raise FrameError("a lease of 0 ms")
            return ttl_ms
        case Kind.PING:
            return None
    raise FrameError(f"{frame.kind.name} is no request")


def _first_bytes(found: RangeResult) -> RangeResult:
    """As many of the first keys as fit a page, at least one."""
    size = 0
    for index, item in enumerate(found.items):
        size += len(item.key.encode()) + len(item.value) + _ITEM_BYTES
        if size > PAGE_BYTES and index > 0:
            return RangeResult(found.revision, found.items[:index], True)
    return found
