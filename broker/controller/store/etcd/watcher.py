"""A watch on etcd that outlives connections and servers.

    is it the same etcd? ──> open stream ──> create (from the next revision) ──> changes, progress
        ^                                                   │
        └── next server, 100 to 500 ms later <── broken, or silent for SILENCE_MS

- It goes on at the revision behind the last one that was delivered: nothing is missed or doubled.
- A response may be a fragment: events of one revision are joined before they are delivered.
- The server is asked for its progress every PROGRESS_MS: one that accepts and says nothing is left.
- If etcd has compacted what is next, the watch ends in `CompactedError`; its owner lists again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import grpc.aio

from broker.controller.store.etcd import rpc_pb2 as rpc
from broker.controller.store.etcd.endpoints import WATCH, Endpoints, Metadata
from broker.controller.store.etcd.errors import is_token_refused
from broker.controller.store.etcd.messages import Messages
from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    Event,
    StoreError,
    StoreReplacedError,
    StoreUnavailableError,
)
from broker.controller.store.store_thread import StoreThread
from broker.controller.store.watch_queue import WatchQueue

LOGGER = logging.getLogger(__name__)

BUFFER_EVENTS_MAX: Final = 4096
"""Changes kept for one watcher that does not read; one more and it has to list again."""

PROGRESS_MS: Final = 1_000.0

BEHIND_MS: Final = 50.0
"""Before a server that has not seen a revision yet is asked for its progress again."""

SILENCE_MS: Final = 3_000.0

BACKOFF_MS: Final = (100.0, 200.0, 500.0)


@dataclass(frozen=True, slots=True)
class WatchedEtcd:
    """What a watch needs of its store.

    Attributes:
        make_sure: Reads from behind a new connection: StoreReplacedError, if another etcd answers.
            To be awaited in the store's thread.
        shown_revision: The newest that an answer of the store has shown.
        seen: Called with the revisions that the watch shows: none may be answered below them.
        delivered: Called with changes before they are delivered, in the store's thread.
    """

    endpoints: Endpoints
    messages: Messages
    make_sure: Callable[[], Awaitable[None]]
    shown_revision: Callable[[], int]
    seen: Callable[[int], None]
    delivered: Callable[[Sequence[Event]], None]


class EtcdWatch:
    """A `Watch` on etcd: an iterator in the data loop, fed by a stream in the store's."""

    def __init__(
        self,
        prefix: str,
        from_revision: int,
        etcd: "WatchedEtcd",
        thread: StoreThread,
    ) -> None:
        """Begin to watch.

        Args:
            prefix: What of the store.
            from_revision: The first that is delivered, above 0.
            etcd: Where it is.
            thread: Where the stream lives.
        """
        self._prefix = prefix
        self._loop = asyncio.get_running_loop()
        self._queue = WatchQueue(BUFFER_EVENTS_MAX)
        self._thread = thread
        self._shown_revision = etcd.shown_revision
        self._stream = _WatchStream(self, from_revision, etcd)
        self._task = asyncio.run_coroutine_threadsafe(self._stream.run(), thread.loop)

    @property
    def prefix(self) -> str:
        """What is watched."""
        return self._prefix

    @property
    def is_over(self) -> bool:
        """Whether nothing more is delivered."""
        return self._queue.is_over

    def __aiter__(self) -> "EtcdWatch":
        return self

    async def __anext__(self) -> Changes:
        return await self._queue.get()

    async def request_progress(self) -> None:
        """Have progress delivered; see `Watch.request_progress`."""
        self._thread.loop.call_soon_threadsafe(self._stream.want_progress, self._shown_revision())

    async def aclose(self) -> None:
        """Stop; the iteration ends."""
        self.close()

    def close(self) -> None:
        """Stop; what is still buffered is forgotten."""
        self._task.cancel()
        self._queue.close()

    def deliver(self, changes: Changes) -> None:
        """Hand over to the data loop. Called in the store's loop."""
        self._loop.call_soon_threadsafe(self._take, changes)

    def fail(self, failure: StoreError) -> None:
        """End the iteration behind what is buffered. Called in the store's loop."""
        self._loop.call_soon_threadsafe(self._queue.fail, failure)

    def _take(self, changes: Changes) -> None:
        if not self._queue.is_over and not self._queue.put(changes):
            self._task.cancel()
            self._queue.fail(CompactedError(changes.revision))


class _WatchStream:
    """The stream of one watch, opened again and again. Event loop of the store only."""

    def __init__(self, watch: EtcdWatch, next_revision: int, etcd: WatchedEtcd) -> None:
        self._watch = watch
        # The next revision that is not delivered, and the one to open a new stream at: behind a
        # progress, too, so that it is not compacted while nothing happens under the prefix.
        self._next = next_revision
        self._resume = next_revision
        self._endpoints = etcd.endpoints
        self._messages = etcd.messages
        self._make_sure = etcd.make_sure
        self._seen = etcd.seen
        self._delivered = etcd.delivered
        self._events: list[Event] = []
        # What went with the newest stream's request.
        self._metadata: Metadata = ()
        self._wanted = 0
        self._due = asyncio.Event()

    def want_progress(self, revision: int) -> None:
        """Deliver the next progress of at least `revision`, and ask for it."""
        self._wanted = max(revision, self._wanted)
        self._due.set()

    async def run(self) -> None:
        """Until the watch is closed or its history is gone."""
        failures = 0
        while True:
            number = self._endpoints.current
            before = self._resume
            try:
                await self._follow()
            except (CompactedError, StoreReplacedError) as failure:
                self._watch.fail(failure)
                return
            except StoreError as error:
                reason = str(error)
            except grpc.aio.AioRpcError as error:
                if is_token_refused(error.details()):
                    self._endpoints.forget_token(self._metadata)
                reason = f"{error.details()} ({error.code().name})"
            except TimeoutError:
                reason = f"silent for {SILENCE_MS:.0f} ms"
            self._endpoints.leave(number, f"watch: {reason}")
            failures = 0 if self._resume > before else failures + 1
            await asyncio.sleep(BACKOFF_MS[min(failures, len(BACKOFF_MS) - 1)] / 1000)

    async def _follow(self) -> None:
        # In another etcd, revisions would name other changes, once they come to where it goes on.
        await self._make_sure()
        _, channel = await self._endpoints.connected_channel()
        self._metadata = await self._endpoints.metadata()
        stream = self._endpoints.stream(WATCH, channel, self._metadata)
        self._events.clear()
        asking: asyncio.Task[None] | None = None
        try:
            first, end = self._messages.span(self._watch.prefix)
            create = rpc.WatchCreateRequest(
                key=first,
                range_end=end,
                start_revision=self._resume,
                prev_kv=True,
                fragment=True,
            )
            await stream.write(rpc.WatchRequest(create_request=create))
            asking = asyncio.ensure_future(self._ask_for_progress(stream))
            while True:
                response = await asyncio.wait_for(stream.read(), SILENCE_MS / 1000)
                if not isinstance(response, rpc.WatchResponse):
                    raise StoreUnavailableError("etcd ended a watch")
                self._handle(response)
        finally:
            if asking is not None:
                asking.cancel()
            stream.cancel()

    async def _ask_for_progress(self, stream: Any) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), PROGRESS_MS / 1000)
            self._due.clear()
            request = rpc.WatchRequest(progress_request=rpc.WatchProgressRequest())
            await stream.write(request)

    def _handle(self, response: rpc.WatchResponse) -> None:
        if response.canceled:
            if response.compact_revision:
                raise CompactedError(response.compact_revision)
            raise StoreUnavailableError(f"etcd cancelled a watch: {response.cancel_reason}")
        if response.created:
            return
        self._seen(response.header.revision)
        if not response.events and not response.fragment and not self._events:
            self._progress(response.header.revision)
            return
        self._events.extend(map(self._messages.event, response.events))
        if not response.fragment:
            self._deliver(self._events)
            self._events = []

    def _progress(self, revision: int) -> None:
        self._resume = max(self._resume, revision + 1)
        if not self._wanted:
            return
        if revision < self._wanted:
            # A server that is behind the one that has answered: ask again.
            asyncio.get_running_loop().call_later(BEHIND_MS / 1000, self._due.set)
            return
        self._wanted = 0
        self._watch.deliver(Changes(revision, ()))

    def _deliver(self, events: Sequence[Event]) -> None:
        self._delivered(events)
        for revision, changes in groupby(events, key=attrgetter("revision")):
            if revision >= self._next:
                self._next = revision + 1
                self._resume = max(self._resume, self._next)
                self._watch.deliver(Changes(revision, tuple(changes)))
