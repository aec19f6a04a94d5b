"""What every metadata store in this process shares: the order of writes, and leases on a timer.

    caller ──> queue (bounded) ──> stage ──> persist ──> apply ──> answers, watchers
               one drain at a time; all that waits goes into the same stage, so that
               many callers share one sync of the disk

A caller that is cancelled while it waits changes nothing: its transaction is carried out all the
same, and readers see it.

With a clock, a lease whose time is up much later than the timer was to say so gets its full time
again: the process stood still (SIGSTOP, a machine asleep), so its owner could not renew it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from broker.controller.store.keyspace import Keyspace, KeyspaceWatch, Stage
from broker.controller.store.metadata_store import (
    Compare,
    KeyValue,
    LeaseNotFoundError,
    Operation,
    RangeResult,
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
    TxnResult,
)
from broker.runtime.timer import Timer, TimerHandle

if TYPE_CHECKING:
    from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

PENDING_COMMANDS_MAX = 4096
"""Transactions that may wait for the disk; one more is refused."""

STAGE_COMMANDS_MAX = 256
"""Transactions that share one sync of the disk at most."""

LEASES_MAX = 10_000
"""Leases that may live at a time."""

STOOD_STILL_MS = 250.0
"""How late the end of a lease may be noticed: later, and it is not believed."""

_RETRY_EXPIRY_MS = 1000.0

_T = TypeVar("_T")


class LocalStore(ABC):
    """A `MetadataStore` of one process; subclasses say how a stage becomes durable."""

    def __init__(self, keyspace: Keyspace, timer: Timer, clock: "Clock | None" = None) -> None:
        """`clock`: see the module."""
        self._keyspace = keyspace
        self._timer = timer
        self._clock = clock
        self._queue: deque[tuple[Callable[[Stage], Any], asyncio.Future[Any]]] = deque()
        self._drain_task: asyncio.Task[None] | None = None
        self._expiries: dict[int, TimerHandle] = {}
        self._closed = False
        # A lease outlives a restart with its full time, as in etcd: its holder gets a chance.
        for lease, ttl_ms in keyspace.leases.items():
            self._arm(lease, ttl_ms)

    @abstractmethod
    async def _persist(self, stage: Stage) -> None:
        """Make `stage` durable, whole or not at all.

        Raises:
            StoreUnavailableError: It is not, as far as is known.
        """

    @property
    def revision(self) -> int:
        """The newest revision."""
        return self._keyspace.revision

    async def get(self, key: str) -> KeyValue | None:
        """The key as it stands."""
        self._check_open()
        return self._keyspace.get(key)

    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        """The keys under `prefix`; see `MetadataStore.range`."""
        self._check_open()
        return self._keyspace.range(prefix, revision, after=after, limit=limit)

    async def compact(self, revision: int) -> None:
        """Forget what was before `revision`; see `MetadataStore.compact`."""
        self._check_open()
        self._keyspace.compact(revision)

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """Compare, then change; see `MetadataStore.txn`."""
        return await self._submit(lambda stage: stage.txn(compare, then, otherwise))

    @property
    def history_events(self) -> int:
        """Changes that are remembered."""
        return self._keyspace.history_events

    @property
    def history_bytes(self) -> int:
        """Bytes of them, about."""
        return self._keyspace.history_bytes

    def watch(self, prefix: str, from_revision: int = 0) -> KeyspaceWatch:
        """Changes under `prefix`; see `MetadataStore.watch`."""
        self._check_open()
        return self._keyspace.watch(prefix, from_revision)

    async def grant_lease(self, ttl_ms: int) -> int:
        """A new lease; see `MetadataStore.grant_lease`."""
        if ttl_ms <= 0:
            raise ValueError(f"a lease of {ttl_ms} ms")
        if len(self._expiries) >= LEASES_MAX:
            raise StoreUnavailableError(f"more than {LEASES_MAX} leases")
        lease = await self._submit(lambda stage: stage.grant(ttl_ms))
        self._arm(lease, ttl_ms)
        return lease

    async def keep_lease_alive(self, lease: int) -> int:
        """Renew the lease; see `MetadataStore.keep_lease_alive`."""
        self._check_open()
        ttl_ms = self._keyspace.leases.get(lease)
        if ttl_ms is None or lease not in self._expiries:
            raise LeaseNotFoundError(f"lease {lease} does not exist")
        self._arm(lease, ttl_ms)
        return ttl_ms

    async def revoke_lease(self, lease: int) -> None:
        """End the lease and delete its keys; see `MetadataStore.revoke_lease`."""
        await self._submit(lambda stage: stage.revoke(lease))
        self._disarm(lease)

    async def aclose(self) -> None:
        """Carry out what waits, then refuse everything."""
        if self._closed:
            return
        self._closed = True
        for lease in list(self._expiries):
            self._disarm(lease)
        if self._drain_task is not None:
            await asyncio.shield(self._drain_task)
        self._keyspace.close_watches()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the metadata store is closed")

    @property
    def lease_count(self) -> int:
        """Leases that live."""
        return len(self._expiries)

    def _arm(self, lease: int, ttl_ms: float) -> None:
        self._disarm(lease)
        if self._clock is None:
            self._expiries[lease] = self._timer.call_later_ms(ttl_ms, lambda: self._expire(lease))
            return
        due_ms = self._clock.monotonic_ms() + ttl_ms
        self._expiries[lease] = self._timer.call_later_ms(
            ttl_ms, lambda: self._expire_by(lease, due_ms)
        )

    def _expire_by(self, lease: int, due_ms: float) -> None:
        assert self._clock is not None
        late_ms = self._clock.monotonic_ms() - due_ms
        ttl_ms = self._keyspace.leases.get(lease)
        if late_ms > STOOD_STILL_MS and ttl_ms is not None:
            LOGGER.warning(
                "metadata store: stood still, a lease gets its time again lease=%d late_ms=%.0f",
                lease,
                late_ms,
            )
            self._arm(lease, ttl_ms)
            return
        self._expire(lease)

    def _disarm(self, lease: int) -> None:
        handle = self._expiries.pop(lease, None)
        if handle is not None:
            handle.cancel()

    def _expire(self, lease: int) -> None:
        # From here on it cannot be kept alive: the deletion may be on its way to the disk.
        self._disarm(lease)
        if self._closed:
            return
        try:
            future = self._enqueue(lambda stage: stage.revoke(lease))
        except StoreUnavailableError:
            self._arm_expiry_again(lease)
            return
        future.add_done_callback(lambda done: self._expired(lease, done))

    def _expired(self, lease: int, done: "asyncio.Future[None]") -> None:
        if done.cancelled() or done.exception() is None:
            return
        if not isinstance(done.exception(), LeaseNotFoundError) and not self._closed:
            self._arm_expiry_again(lease)

    def _arm_expiry_again(self, lease: int) -> None:
        self._timer.call_later_ms(_RETRY_EXPIRY_MS, lambda: self._expire(lease))

    async def _submit(self, command: Callable[[Stage], _T]) -> _T:
        return await self._enqueue(command)

    def _enqueue(self, command: Callable[[Stage], _T]) -> "asyncio.Future[_T]":
        self._check_open()
        if len(self._queue) >= PENDING_COMMANDS_MAX:
            raise StoreUnavailableError(f"more than {PENDING_COMMANDS_MAX} transactions wait")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()
        self._queue.append((command, future))
        if self._drain_task is None:
            self._drain_task = loop.create_task(self._drain(), name="metadata store writer")
        return future

    async def _drain(self) -> None:
        try:
            while self._queue:
                await self._drain_once()
        finally:
            self._drain_task = None

    async def _drain_once(self) -> None:
        stage = self._keyspace.stage()
        done: list[tuple[asyncio.Future[Any], Any]] = []
        while self._queue and len(done) < STAGE_COMMANDS_MAX:
            command, future = self._queue.popleft()
            try:
                done.append((future, command(stage)))
            except (StoreError, TypeError) as error:
                if not future.done():
                    future.set_exception(error)
        if stage.dirty:
            try:
                await self._persist(stage)
            except StoreError as error:
                for future, _ in done:
                    if not future.done():
                        future.set_exception(error)
                return
            self._keyspace.apply(stage)
        for future, result in done:
            if not future.done():
                future.set_result(result)
