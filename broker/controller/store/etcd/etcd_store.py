"""The metadata store of a cluster: `MetadataStore` on etcd's gRPC API.

    caller (data loop) ──> StoreThread ──> Endpoints ──> one etcd server at a time
    EtcdWatch <── changes, one item per revision ──┘

Reads and transactions are linearizable. A transaction whose answer is lost is never sent again: it
ends in `OutcomeUnknownError`. Every answer's cluster id, revision and Raft term are compared with
those of before: a store that has been emptied, restored or exchanged is refused from then on.
Behind a connection that is new, nothing is written or watched before a read has made sure of that:
writes to another store would make its revisions catch up with those that were seen. What is read
is a key that is only ever put: `etcdutl snapshot restore --bump-revision` raises the revision of a
copy above all that was seen, and that of no key.

Supported: etcd 3.4.25 and later of 3.4, 3.5.8 and later, 3.6, 3.7: older ones may report a watch's
progress before its changes (etcd #15220).
"""

import asyncio
import logging
import re
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Final

from broker.controller.store.etcd import rpc_pb2 as rpc
from broker.controller.store.etcd.access import EtcdAccess, ReadAccess
from broker.controller.store.etcd.endpoints import (
    COMPACT,
    GRANT,
    RANGE,
    REVOKE,
    STATUS,
    TXN,
    Endpoints,
    ReconnectedError,
)
from broker.controller.store.etcd.messages import Messages
from broker.controller.store.etcd.watcher import EtcdWatch, WatchedEtcd
from broker.controller.store.latency import Latency
from broker.controller.store.metadata_store import (
    Compare,
    Event,
    KeyValue,
    LeaseNotFoundError,
    Operation,
    RangeResult,
    StoreClosedError,
    StoreDeniedError,
    StoreReplacedError,
    TxnResult,
    check_limits,
)
from broker.controller.store.store_thread import StoreThread
from broker.controller.store.whole_range import in_pages

LOGGER = logging.getLogger(__name__)

RENEWAL_MS: Final = 400.0
"""For the answer to a lease's renewal before the next server is asked."""

LINEARIZABLE: Final = frozenset({RANGE, TXN})
"""Calls whose answer shows every change that was acknowledged before they were sent."""

RECONNECTS_MAX: Final = 10
"""Connections made anew while one transaction waits for a sure one."""

LEAST_RELEASES: Final = {(3, 4): 25, (3, 5): 8}
"""Oldest patch of a line that reports progress behind the changes; later lines all do."""


class EtcdStore:
    """A `MetadataStore` in etcd; opened with `EtcdStore.open`, closed by its owner."""

    def __init__(
        self, thread: StoreThread, endpoints: Endpoints, prefix: str, witness: str = ""
    ) -> None:
        self._thread = thread
        self._endpoints = endpoints
        self._messages = Messages(prefix)
        self._watches: set[EtcdWatch] = set()
        self._closed = False
        self._cluster_id = 0
        self._revision = 0
        self._term = 0
        # `breaks` of the endpoints up to which it is sure that this is the store it was.
        self._sure = -1
        self._replaced = ""
        self._witness = witness
        self._witnessed = 0

    @classmethod
    async def open(
        cls, access: EtcdAccess, *, prefix: str = "/varve/", floor_revision: int = 0
    ) -> "EtcdStore":
        """Connect, and see what is there.

        Args:
            access: Where etcd is.
            prefix: Before every key; what of etcd is Varve's.
            floor_revision: The highest revision that was ever seen in this store.

        Raises:
            StoreUnavailableError: No server answers.
            StoreDeniedError: Not let in, or a release that is too old.
            StoreReplacedError: The store is behind `floor_revision`.
        """
        store = await cls.unopened(access, prefix=prefix, floor_revision=floor_revision)
        try:
            await store.greet()
        except BaseException:
            await store.aclose()
            raise
        return store

    @classmethod
    async def unopened(
        cls,
        access: EtcdAccess,
        *,
        prefix: str = "/varve/",
        floor_revision: int = 0,
        witness: str = "",
        read_access: ReadAccess | None = None,
    ) -> "EtcdStore":
        """As `open`, but nothing is asked yet: `greet` opens it, and may be tried again.

        `witness` is a key that is put again and again, and never deleted: where it is older than it
        was, the store is a copy. Empty: there is none. `read_access` reads `access` again, whose
        files may have changed; it is called in the store's thread. None: they may not.

        gRPC may be used in one event loop of a process: a store that is waited for keeps its own.
        """
        thread = StoreThread()

        async def connect() -> Endpoints:
            return Endpoints(access, read_access)

        try:
            store = cls(thread, await thread.run(connect()), prefix, witness)
        except BaseException:
            thread.stop()
            raise
        store._revision = floor_revision
        return store

    async def greet(self) -> None:
        """See what is there.

        Raises:
            StoreError: As `open`.
        """
        status = await self._call(STATUS, rpc.StatusRequest(), repeat=True)
        _check_release(status.version)
        # A linearizable read: its revision is not behind any that was ever acknowledged.
        await self.range("", limit=1)

    @property
    def revision(self) -> int:
        """The newest revision that an answer has shown."""
        return self._revision

    @property
    def cluster_id(self) -> int:
        """The id of etcd's cluster; a member that is restored from a copy has another one."""
        return self._cluster_id

    @property
    def latency(self) -> Latency:
        """How long answers took."""
        return self._endpoints.latency

    @property
    def failovers(self) -> int:
        """How often a server was left for the next one."""
        return self._endpoints.failovers

    async def get(self, key: str) -> KeyValue | None:
        """The key as it stands."""
        answer = await self._call(RANGE, rpc.RangeRequest(key=self._messages.key(key)), repeat=True)
        items = self._messages.items(answer.kvs)
        return items[0] if items else None

    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        """The keys under `prefix`; see `MetadataStore.range`."""

        async def ask(at: int, behind: str, keys: int) -> RangeResult:
            first, end = self._messages.span(prefix, behind)
            request = rpc.RangeRequest(key=first, range_end=end, limit=keys, revision=at)
            answer = await self._call(RANGE, request, repeat=True)
            items = tuple(self._messages.items(answer.kvs))
            return RangeResult(answer.header.revision, items, answer.more)

        return await in_pages(ask, revision=revision, after=after, limit=limit)

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """Compare, then change; see `MetadataStore.txn`."""
        check_limits(compare, then, otherwise)
        request = self._messages.txn(compare, then, otherwise)
        for attempt in range(RECONNECTS_MAX):
            self._check_open()
            if self._sure != self._endpoints.breaks:
                await self._thread.run(self._make_sure())
            try:
                answer = await self._call(TXN, request, repeat=False, unbroken=self._sure)
                return self._messages.result(answer)
            except ReconnectedError:
                if attempt + 1 == RECONNECTS_MAX:
                    raise
        raise AssertionError("the last attempt raises")

    def watch(self, prefix: str, from_revision: int = 0) -> EtcdWatch:
        """Changes under `prefix`; see `MetadataStore.watch`."""
        self._check_open()
        # Revision 0 would mean "now" to etcd, which is later than the call.
        first = from_revision or self._revision + 1
        watch = EtcdWatch(
            prefix,
            first,
            WatchedEtcd(
                self._endpoints,
                self._messages,
                self._make_sure,
                shown_revision=lambda: self._revision,
                seen=self._see,
                delivered=self._look_at,
            ),
            self._thread,
        )
        self._watches = {other for other in self._watches if not other.is_over}
        self._watches.add(watch)
        return watch

    async def compact(self, revision: int) -> None:
        """Forget what was before `revision`; see `MetadataStore.compact`."""
        await self._call(COMPACT, rpc.CompactionRequest(revision=revision), repeat=True)

    async def grant_lease(self, ttl_ms: int) -> int:
        """A new lease; see `MetadataStore.grant_lease`."""
        if ttl_ms <= 0:
            raise ValueError(f"a lease of {ttl_ms} ms")
        request = rpc.LeaseGrantRequest(TTL=-(-ttl_ms // 1000))
        return int((await self._call(GRANT, request, repeat=True)).ID)

    async def keep_lease_alive(self, lease: int) -> int:
        """Renew the lease; see `MetadataStore.keep_lease_alive`."""
        self._check_open()
        answer = await self._thread.run(self._endpoints.keep_alive(lease, RENEWAL_MS))
        self._note(answer.header)
        if answer.TTL <= 0:
            raise LeaseNotFoundError(f"lease {lease:x} does not exist")
        return int(answer.TTL) * 1000

    async def renew_here(self, lease: int) -> int:
        """As `keep_lease_alive`, for what runs in the store's own thread (`spawn`)."""
        answer = await self._endpoints.keep_alive(lease, RENEWAL_MS)
        if answer.TTL <= 0:
            raise LeaseNotFoundError(f"lease {lease:x} does not exist")
        return int(answer.TTL) * 1000

    async def ask_here(self) -> None:
        """See whether any server answers, from what runs in the store's own thread (`spawn`)."""
        await self._endpoints.call(STATUS, rpc.StatusRequest(), repeat=True, deadline_ms=RENEWAL_MS)

    def spawn(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Run `work` in the store's thread, beside the data loop; ended by cancelling it."""
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop)

    async def revoke_lease(self, lease: int) -> None:
        """End the lease and delete its keys; see `MetadataStore.revoke_lease`."""
        await self._call(REVOKE, rpc.LeaseRevokeRequest(ID=lease), repeat=True)

    async def aclose(self) -> None:
        """End all watches and connections. Transactions under way are left to etcd."""
        if self._closed:
            return
        self._closed = True
        for watch in self._watches:
            watch.close()
        self._watches.clear()
        await self._thread.run(self._endpoints.aclose())
        self._thread.stop()

    async def _call(
        self, method: Any, request: Any, *, repeat: bool, unbroken: int | None = None
    ) -> Any:
        self._check_open()
        # What had been shown before a linearizable call was sent, its answer is not behind of.
        floor, term = (self._revision, self._term) if method in LINEARIZABLE else (0, 0)
        answer = await self._thread.run(
            self._endpoints.call(method, request, repeat=repeat, unbroken=unbroken)
        )
        self._note(answer.header, floor, term)
        return answer

    async def _make_sure(self) -> None:
        """Read, and compare with what was seen before. In the store's thread.

        Raises:
            StoreReplacedError: Another store answers.
            StoreError: None does.
        """
        breaks, floor, term = self._endpoints.breaks, self._revision, self._term
        if breaks == self._sure:
            return
        witnessed = self._witnessed
        request = rpc.RangeRequest(key=self._messages.key(self._witness), limit=1)
        answer = await self._endpoints.call(RANGE, request, repeat=True)
        self._note(answer.header, floor, term)
        if self._witness:
            newest = max((item.mod_revision for item in answer.kvs), default=0)
            if newest < witnessed:
                self._replaced = (
                    f"etcd does not have what was written at revision {witnessed}: "
                    "restored from a copy, or emptied"
                )
                self._check_open()
            self._witnessed = max(self._witnessed, newest)
        self._sure = breaks

    def _see(self, revision: int) -> None:
        """What a watch has shown is a floor for answers, too."""
        self._revision = max(self._revision, revision)

    def _look_at(self, events: Sequence[Event]) -> None:
        """What a watch delivers."""
        for event in events:
            if event.key == self._witness:
                self._witnessed = max(self._witnessed, event.revision)

    def _note(self, header: rpc.ResponseHeader, floor: int = 0, term: int = 0) -> None:
        cluster_id = header.cluster_id
        if self._cluster_id and cluster_id != self._cluster_id:
            self._replaced = f"etcd cluster {cluster_id:x} answers in place of {self._cluster_id:x}"
        elif header.revision < floor:
            self._replaced = (
                f"etcd is at revision {header.revision} and has been at {floor}: "
                "restored from a copy, or emptied"
            )
        elif header.raft_term < term:
            self._replaced = (
                f"etcd is in Raft term {header.raft_term} and has been in {term}: restored from a "
                "copy, or emptied"
            )
        self._cluster_id = self._cluster_id or cluster_id
        self._revision = max(self._revision, header.revision)
        self._term = max(self._term, header.raft_term)
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the metadata store is closed")
        if self._replaced:
            raise StoreReplacedError(self._replaced)


def _check_release(version: str) -> None:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        LOGGER.warning("etcd of unknown release version=%s", version)
        return
    major, minor, patch = map(int, found.groups())
    if (major, minor) < min(LEAST_RELEASES) or patch < LEAST_RELEASES.get((major, minor), 0):
        raise StoreDeniedError(f"etcd {version} is too old: 3.4.25, 3.5.8, 3.6 or later is needed")
