"""A metadata store in memory that can fail, stall and crash."""

import asyncio
from enum import Enum

from typing_extensions import override

from broker.controller.store.keyspace import FIRST_REVISION, Keyspace, Stage
from broker.controller.store.local_store import LocalStore
from broker.controller.store.metadata_store import (
    KeyValue,
    OutcomeUnknownError,
    StoreUnavailableError,
)
from broker.runtime.timer import Timer
from storage.environment.clock import Clock
from tests.fakes.timer import ManualTimer


class Fault(Enum):
    """What becomes of the next commit."""

    REFUSED = "nothing is stored"
    LOST_REQUEST = "nothing is stored, and it is not known"
    LOST_ANSWER = "stored, and it is not known"


class MemoryDisk:
    """What has been made durable; outlives the store, as a file outlives a process."""

    def __init__(self) -> None:
        self.items: dict[str, KeyValue] = {}
        self.leases: dict[int, int] = {}
        self.revision = FIRST_REVISION
        self.last_lease = 0

    def write(self, stage: Stage) -> None:
        for key, item in stage.changes.items():
            if item is None:
                self.items.pop(key, None)
            else:
                self.items[key] = item
        for lease, ttl_ms in stage.lease_changes.items():
            if ttl_ms is None:
                self.leases.pop(lease, None)
            else:
                self.leases[lease] = ttl_ms
        self.revision = stage.revision
        self.last_lease = stage.last_lease


class MemoryStore(LocalStore):
    """A `MetadataStore` whose disk is a `MemoryDisk`.

    Attributes:
        faults: One is used up by each commit; None stands for a commit that goes well.
        gate: While it is cleared, commits wait.
        commits: How often the disk was written.
    """

    def __init__(
        self,
        timer: Timer | None = None,
        disk: MemoryDisk | None = None,
        *,
        clock: Clock | None = None,
        history_events_max: int = 10_000,
        watch_buffer_max: int = 4096,
    ) -> None:
        self.disk = disk or MemoryDisk()
        keyspace = Keyspace(
            history_events_max=history_events_max, watch_buffer_max=watch_buffer_max
        )
        keyspace.load(
            self.disk.items.values(),
            self.disk.leases.items(),
            revision=self.disk.revision,
            last_lease=self.disk.last_lease,
        )
        self.faults: list[Fault | None] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.commits = 0
        super().__init__(keyspace, timer or ManualTimer(), clock)

    @override
    async def _persist(self, stage: Stage) -> None:
        await self.gate.wait()
        fault = self.faults.pop(0) if self.faults else None
        if fault in (None, Fault.LOST_ANSWER):
            self.disk.write(stage)
            self.commits += 1
        if fault is Fault.LOST_ANSWER:
            # Others see it, as in a store that is not ours alone.
            self._keyspace.apply(stage)
            raise OutcomeUnknownError(fault.value)
        if fault is not None:
            kind = OutcomeUnknownError if fault is Fault.LOST_REQUEST else StoreUnavailableError
            raise kind(fault.value)
