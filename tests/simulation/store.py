"""The metadata store of a simulated cluster: a server in memory, and each broker's way to it.

StoreServer    `MemoryStore` in a process of its own; paused, its leases end when it wakes, as
etcd's do
StoreClient    `MetadataStore` of one broker: calls take time, get lost, and are unknown then;
watches resume where they were
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final, TypeVar

from typing_extensions import override

from broker.controller.images.metadata_records import (
    CONFIGS,
    CONTROLLER_KEY,
    DELETED_TOPICS,
    FENCES,
    PARTITIONS,
    TOPICS,
)
from broker.controller.store.keyspace import Stage
from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    Compare,
    Delete,
    Get,
    KeyValue,
    Operation,
    OutcomeUnknownError,
    RangeResult,
    Relation,
    StoreClosedError,
    StoreError,
    StoreReplacedError,
    StoreUnavailableError,
    Target,
    TxnResult,
)
from broker.controller.store.watch_queue import WatchQueue
from broker.runtime.timer import TimerWheel
from tests.fakes.broker.metadata_store import MemoryDisk, MemoryStore
from tests.simulation.clock import SimClock
from tests.simulation.loop import Process
from tests.simulation.network import SimNetwork

T = TypeVar("T")

HOST: Final = "store"

DEADLINE_S: Final = 1.0
RENEWAL_DEADLINE_S: Final = 0.4
"""After so long a call has no answer."""

WATCH_BUFFER_MAX: Final = 4096


CONTROLLERS: Final = (TOPICS, PARTITIONS, CONFIGS, DELETED_TOPICS, FENCES)
"""Keys that only the controller writes; that a deleted topic has left nothing any broker says."""


class GuardedStore(MemoryStore):
    """A store that looks at what is written (I9).

    Attributes:
        unguarded: Transactions that changed what is the controller's without the guard of its
            election, or with that of an older one.
        on_stored: Called when a revision is there.
        on_expired: Called with the keys of a lease whose time is up, before they go.
    """

    def __init__(self, timer: TimerWheel, disk: MemoryDisk | None = None) -> None:
        super().__init__(timer, disk)
        self.unguarded: list[str] = []
        self.on_expired: Callable[[list[str]], None] = lambda _keys: None
        self.on_stored: Callable[[], None] = lambda: None
        self._epoch = 0

    @override
    def _expire(self, lease: int) -> None:
        self.on_expired([key for key, item in self.disk.items.items() if item.lease == lease])
        super()._expire(lease)

    @override
    async def _persist(self, stage: Stage) -> None:
        await super()._persist(stage)
        self.on_stored()

    @override
    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        result = await super().txn(compare, then, otherwise)
        keys = [
            change.key
            for change in (then if result.succeeded else otherwise)
            if not isinstance(change, Get)
            and change.key.startswith(CONTROLLERS)
            and not (isinstance(change, Delete) and change.key.startswith(DELETED_TOPICS))
        ]
        if keys:
            epoch = max(
                (
                    int(condition.operand)
                    for condition in (compare if result.succeeded else ())
                    if condition.key == CONTROLLER_KEY
                    and condition.target is Target.CREATE_REVISION
                    and condition.relation is Relation.EQUAL
                ),
                default=0,
            )
            # A cluster is opened before it has a controller.
            has_been_elected = self._epoch > 0 or CONTROLLER_KEY in self.disk.items
            if has_been_elected and (epoch == 0 or epoch < self._epoch):
                self.unguarded.append(
                    f"I9 {keys} written in controller epoch {epoch} after {self._epoch}"
                )
            self._epoch = max(self._epoch, epoch)
        return result


class StoreServer:
    """See the module.

    Attributes:
        store: As it is, without delay: for invariants and faults.
        lost_answers: So many answers to changes do not arrive: their outcome is unknown.
    """

    def __init__(self, network: SimNetwork) -> None:
        loop = network.loop
        self._network = network
        self.lost_answers = 0.0
        self.process = Process("store")
        self.store = loop.within(
            self.process, lambda: GuardedStore(TimerWheel(loop, SimClock(loop)))
        )

    @property
    def leases(self) -> dict[int, int]:
        """Those that live."""
        return self.store.disk.leases

    def copy(self) -> MemoryDisk:
        """A copy of what is stored, as a backup has it."""
        return deepcopy(self.store.disk)

    def restore(self, disk: MemoryDisk) -> None:
        """Begin anew with an older copy: revisions are given a second time. Watches end."""
        before = self.store

        def build() -> GuardedStore:
            return GuardedStore(
                TimerWheel(self._network.loop, SimClock(self._network.loop)), deepcopy(disk)
            )

        self.store = self._network.loop.within(self.process, build)
        self.store.on_expired = before.on_expired
        self.store.on_stored = before.on_stored
        self._network.loop.spawn(self.process, before.aclose())

    def renew_leases(self) -> None:
        """Give every lease its full time, as a newly elected leader of etcd does."""
        for lease, ttl_ms in list(self.store.disk.leases.items()):
            self.store._arm(lease, ttl_ms)

    async def compact(self) -> None:
        """Forget everything but what stands."""
        with suppress(StoreError):
            await self.store.compact(self.store.revision)

    async def end_leases(self, leases: Sequence[int]) -> None:
        """End leases before their time, as an etcd leader that was paused does."""
        for lease in leases:
            with suppress(StoreError):
                await self.store.revoke_lease(lease)


class StoreClient:
    """See the module. Of one process on a host.

    Attributes:
        on_commit: Called when something that this process asked for was carried out.
    """

    def __init__(
        self, network: SimNetwork, server: StoreServer, host: str, process: Process
    ) -> None:
        self._network = network
        self._loop = network.loop
        self._server = server
        self._host = host
        self._process = process
        self._closed = False
        self._seen = 0
        self.on_commit: Callable[[], None] = lambda: None

    @property
    def revision(self) -> int:
        return self._seen

    def see(self, revision: int) -> None:
        """An answer has shown a revision."""
        self._seen = max(self._seen, revision)

    async def _call(
        self,
        make: Callable[[MemoryStore], Awaitable[T]],
        *,
        is_change: bool,
        deadline_s: float = DEADLINE_S,
    ) -> T:
        if self._closed:
            raise StoreClosedError("the metadata store is closed")
        network, loop, server = self._network, self._loop, self._server
        if self._process.is_dead:
            # In the handle in which it died: nothing of that is heard.
            await loop.create_future()
        floor = self._seen
        done: asyncio.Future[tuple[T, int]] = loop.create_future()

        async def serve() -> None:
            answer: Callable[[], None]
            try:
                before = server.store.revision
                result = await make(server.store)
                if server.store.revision > before:
                    self.on_commit()
                if is_change and loop.random.random() < server.lost_answers:
                    return
                revision = server.store.revision
                if revision < floor:
                    raise StoreReplacedError(f"at {revision}, and has been at {floor}")
            except StoreError as error:
                failure = error
                answer = lambda: finish(None, failure)  # noqa: E731  one of two
            else:
                answer = lambda: finish((result, revision), None)  # noqa: E731  one of two
            network.carry(HOST, self._host, network.delay_s(), answer)

        def finish(result: tuple[T, int] | None, failure: StoreError | None) -> None:
            loop.call_in(self._process, settle, result, failure)

        def settle(result: tuple[T, int] | None, failure: StoreError | None) -> None:
            if done.done():
                return
            if result is not None:
                done.set_result(result)
            elif failure is not None:
                done.set_exception(failure)

        def expire() -> None:
            if not done.done():
                kind = OutcomeUnknownError if is_change else StoreUnavailableError
                done.set_exception(kind("the store has not answered"))

        def arrive() -> None:
            loop.spawn(server.process, serve())

        network.carry(self._host, HOST, network.delay_s(), arrive)
        timer = loop.call_later(deadline_s, expire)
        try:
            result, revision = await done
        finally:
            timer.cancel()
        self.see(revision)
        return result

    async def get(self, key: str) -> KeyValue | None:
        return await self._call(lambda store: store.get(key), is_change=False)

    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        return await self._call(
            lambda store: store.range(prefix, revision=revision, after=after, limit=limit),
            is_change=False,
        )

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        return await self._call(lambda store: store.txn(compare, then, otherwise), is_change=True)

    async def compact(self, revision: int) -> None:
        await self._call(lambda store: store.compact(revision), is_change=True)

    async def grant_lease(self, ttl_ms: int) -> int:
        return await self._call(lambda store: store.grant_lease(ttl_ms), is_change=True)

    async def keep_lease_alive(self, lease: int) -> int:
        return await self._call(
            lambda store: store.keep_lease_alive(lease),
            is_change=False,
            deadline_s=RENEWAL_DEADLINE_S,
        )

    async def revoke_lease(self, lease: int) -> None:
        await self._call(lambda store: store.revoke_lease(lease), is_change=True)

    def watch(self, prefix: str, from_revision: int = 0) -> "SimWatch":
        if self._closed:
            raise StoreClosedError("the metadata store is closed")
        watch = SimWatch(self._network, self._server, self._host, self._process, self)
        watch.begin(prefix, from_revision or self._seen + 1)
        return watch

    async def aclose(self) -> None:
        self._closed = True


class SimWatch:
    """`Watch` over the network: changes in order, late as the network is."""

    def __init__(
        self,
        network: SimNetwork,
        server: StoreServer,
        host: str,
        process: Process,
        client: StoreClient,
    ) -> None:
        self._network = network
        self._server = server
        self._host = host
        self._process = process
        self._client = client
        self._queue = WatchQueue(WATCH_BUFFER_MAX)
        self._theirs: Any = None
        self._last_s = 0.0
        self._is_closed = False

    def begin(self, prefix: str, from_revision: int) -> None:
        """Ask the server."""
        self._to_server(lambda: self._serve(prefix, from_revision))

    def _to_server(self, work: Callable[[], Any]) -> None:
        def arrive() -> None:
            self._network.loop.spawn(self._server.process, work())

        self._network.carry(self._host, HOST, self._network.delay_s(), arrive)

    async def _serve(self, prefix: str, from_revision: int) -> None:
        self._theirs = watch = self._server.store.watch(prefix, from_revision)
        try:
            async for changes in watch:
                if self._is_closed or self._process.is_dead:
                    watch.close()
                    return
                self._deliver(changes)
        except CompactedError as error:
            self._deliver(error)

    def _deliver(self, item: Changes | CompactedError) -> None:
        now_s = self._network.loop.time()
        self._last_s = max(self._last_s, now_s + self._network.delay_s())
        self._network.carry(
            HOST,
            self._host,
            self._last_s - now_s,
            lambda: self._network.loop.call_in(self._process, self._take, item),
        )

    def _take(self, item: Changes | CompactedError) -> None:
        if self._queue.is_over:
            return
        if isinstance(item, CompactedError):
            self._queue.fail(item)
        elif not self._queue.put(item):
            self._queue.fail(CompactedError(item.revision))

    def __aiter__(self) -> "SimWatch":
        return self

    async def __anext__(self) -> Changes:
        changes = await self._queue.get()
        self._client.see(changes.revision)
        return changes

    async def request_progress(self) -> None:
        async def ask() -> None:
            if self._theirs is not None:
                await self._theirs.request_progress()

        self._to_server(ask)

    async def aclose(self) -> None:
        self._is_closed = True
        self._queue.close()

        async def end() -> None:
            if self._theirs is not None:
                self._theirs.close()

        self._to_server(end)
