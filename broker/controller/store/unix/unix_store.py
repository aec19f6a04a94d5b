"""The metadata store of one machine's brokers: `MetadataStore` over a Unix socket.

    caller (data loop) ──> StoreThread ──> Link ──> the process that serves it (`StoreHost`)
    UnixWatch <── changes, one item per revision ──┘

Reads and transactions are linearizable: one process has the store, and answers a change when it is
on its disk. A transaction whose answer is lost is never sent again: it ends in
`OutcomeUnknownError`. A store that is behind what was seen, or another one, is refused from then
on.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from broker.controller.store.latency import Latency
from broker.controller.store.metadata_store import (
    Compare,
    KeyValue,
    Operation,
    RangeResult,
    StoreClosedError,
    TxnResult,
    check_limits,
)
from broker.controller.store.store_thread import StoreThread
from broker.controller.store.unix.answers import (
    decode_item,
    decode_range_result,
    decode_txn_result,
)
from broker.controller.store.unix.frames import Kind
from broker.controller.store.unix.link import REQUEST_MS, Link
from broker.controller.store.unix.requests import (
    RangeRequest,
    TxnRequest,
    decode_number,
    encode_number,
    encode_range,
    encode_text,
    encode_txn,
)
from broker.controller.store.unix.unix_watch import UnixWatch
from broker.controller.store.whole_range import in_pages

RENEWAL_MS: Final = 400.0
"""For the answer to a lease's renewal."""


class UnixStore:
    """A `MetadataStore` that another process serves; opened with `UnixStore.open`."""

    def __init__(self, thread: StoreThread, link: Link) -> None:
        self._thread = thread
        self._link = link
        self._watches: set[UnixWatch] = set()
        self._closed = False
        # What answers have shown to callers here; the link may have seen more.
        self._shown = link.revision

    @classmethod
    async def open(cls, path: str, *, name: str = "", floor_revision: int = 0) -> "UnixStore":
        """Connect, and see what is there.

        Args:
            path: Of the socket.
            name: Of this client, for the server's log.
            floor_revision: The highest revision that was ever seen in this store.

        Raises:
            StoreUnavailableError: Nothing is served there, or it does not answer.
            StoreDeniedError: It speaks another release of the protocol.
            StoreReplacedError: The store is behind `floor_revision`.
        """
        store = await cls.unopened(path, name=name, floor_revision=floor_revision)
        try:
            await store.greet()
        except BaseException:
            await store.aclose()
            raise
        return store

    @classmethod
    async def unopened(cls, path: str, *, name: str = "", floor_revision: int = 0) -> "UnixStore":
        """As `open`, but nothing is waited for yet: `greet` opens it, and may be tried again."""
        thread = StoreThread()
        link = Link(path, name, floor_revision)
        await thread.run(link.begin())
        return cls(thread, link)

    async def greet(self) -> None:
        """See what is there.

        Raises:
            StoreError: As `open`.
        """
        await self.range("", limit=1)

    @property
    def revision(self) -> int:
        """The newest revision that an answer has shown."""
        return self._shown

    @property
    def latency(self) -> Latency:
        """How long answers took."""
        return self._link.latency

    @property
    def failovers(self) -> int:
        """How often a connection was made again."""
        return max(self._link.connections - 1, 0)

    async def get(self, key: str) -> KeyValue | None:
        """The key as it stands."""
        revision, item = decode_item(await self._call(Kind.GET, encode_text(key), repeat=True))
        self._saw(revision)
        return item

    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        """The keys under `prefix`; see `MetadataStore.range`."""

        async def ask(at: int, behind: str, keys: int) -> RangeResult:
            body = encode_range(RangeRequest(prefix, at, behind, keys))
            answer = decode_range_result(await self._call(Kind.RANGE, body, repeat=True))
            self._saw(answer.revision)
            return answer

        return await in_pages(ask, revision=revision, after=after, limit=limit)

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """Compare, then change; see `MetadataStore.txn`."""
        check_limits(compare, then, otherwise)
        body = encode_txn(TxnRequest(tuple(compare), tuple(then), tuple(otherwise)))
        result = decode_txn_result(await self._call(Kind.TXN, body, repeat=False))
        self._saw(result.revision)
        return result

    def watch(self, prefix: str, from_revision: int = 0) -> UnixWatch:
        """Changes under `prefix`; see `MetadataStore.watch`."""
        self._check_open()
        watch = UnixWatch(
            prefix,
            from_revision or self._shown + 1,
            self._link,
            self._thread.loop,
            lambda: self._shown,
        )
        self._watches = {other for other in self._watches if not other.is_over}
        self._watches.add(watch)
        return watch

    async def compact(self, revision: int) -> None:
        """Forget what was before `revision`; see `MetadataStore.compact`."""
        await self._call(Kind.COMPACT, encode_number(revision), repeat=True)

    async def grant_lease(self, ttl_ms: int) -> int:
        """A new lease; see `MetadataStore.grant_lease`."""
        if ttl_ms <= 0:
            raise ValueError(f"a lease of {ttl_ms} ms")
        return decode_number(await self._call(Kind.GRANT, encode_number(ttl_ms), repeat=True))

    async def keep_lease_alive(self, lease: int) -> int:
        """Renew the lease; see `MetadataStore.keep_lease_alive`."""
        body = encode_number(lease)
        return decode_number(
            await self._call(Kind.KEEP_ALIVE, body, repeat=True, deadline_ms=RENEWAL_MS)
        )

    async def revoke_lease(self, lease: int) -> None:
        """End the lease and delete its keys; see `MetadataStore.revoke_lease`."""
        await self._call(Kind.REVOKE, encode_number(lease), repeat=True)

    async def aclose(self) -> None:
        """End all watches and the connection. Transactions under way are left to the server."""
        if self._closed:
            return
        self._closed = True
        for watch in self._watches:
            watch.close()
        self._watches.clear()
        await self._thread.run(self._link.aclose())
        self._thread.stop()

    # -- in the store's thread -------------------------------------------------------------------

    async def renew_here(self, lease: int) -> int:
        """As `keep_lease_alive`, for what runs in the store's own thread (`spawn`)."""
        body = encode_number(lease)
        return decode_number(
            await self._link.call(Kind.KEEP_ALIVE, body, repeat=True, deadline_ms=RENEWAL_MS)
        )

    async def ask_here(self) -> None:
        """See whether the server answers, from what runs in the store's own thread (`spawn`)."""
        await self._link.call(Kind.PING, b"", repeat=True, deadline_ms=RENEWAL_MS)

    def spawn(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Run `work` in the store's thread, beside the data loop; ended by cancelling it."""
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop)

    async def _call(
        self, kind: Kind, body: bytes, *, repeat: bool, deadline_ms: float = REQUEST_MS
    ) -> bytes:
        self._check_open()
        return await self._thread.run(
            self._link.call(kind, body, repeat=repeat, deadline_ms=deadline_ms)
        )

    def _saw(self, revision: int) -> None:
        self._shown = max(self._shown, revision)
        # An answer is a floor for what the server may say behind another connection.
        with suppress(RuntimeError):
            # Closed meanwhile: there is no other connection.
            self._thread.loop.call_soon_threadsafe(self._link.saw, revision)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the metadata store is closed")
