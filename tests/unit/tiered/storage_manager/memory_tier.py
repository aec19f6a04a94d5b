"""A tier over a bucket in memory, for tests of its parts."""

import asyncio
from dataclasses import dataclass
from typing import Any

from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.memory_object_store import MemoryObjectStore
from tests.unit.tiered.format.closed_segments import FACTS, Segment, make_segment
from tests.unit.tiered.format.format_config import format_config
from tiered.format.encryption import new_data_key
from tiered.format.key_ring import DataKeyEnvelope, KeyRing
from tiered.format.object_keys import ObjectKeys, SegmentKeys
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.tier import SegmentFiles

CHUNK = 1000


class PlainKeyRing(KeyRing):
    """Wraps nothing: RSA takes a tenth of a second a key, and is tried elsewhere."""

    def __init__(self) -> None:
        super().__init__("", {}, SeededRandomness(1))
        self.keys = {}  # type: ignore[var-annotated]  # by the text that stands for them

    def new_data_key(self) -> Any:
        key = new_data_key(self._randomness)
        self.keys[bytes(key.aad)] = key
        return key, DataKeyEnvelope("none", b"wrapped", key.aad)

    def unwrap(self, envelope: DataKeyEnvelope) -> Any:
        return self.keys[envelope.aad]


@dataclass
class TierWorld:
    """See the module."""

    tier: RemoteStorageManager
    store: MemoryObjectStore
    disk: FakeFilesystem

    def write(self, segment: Segment) -> SegmentFiles:
        return segment.write(self.disk, "/partition")

    async def copy(self, segment: Segment) -> SegmentKeys:
        await self.tier.copy_segment(segment.metadata, self.write(segment), FACTS)
        return ObjectKeys().segment_keys(segment.metadata)

    @property
    def told(self) -> Any:
        return self.tier.statistics()


def tier_world(
    *, disk: Filesystem | None = None, store: MemoryObjectStore | None = None, **settings: Any
) -> TierWorld:
    """A new one; `settings` are those of `format_config`."""
    clock = ManualClock()
    store = store or MemoryObjectStore(clock)
    fake = FakeFilesystem(clock)
    fake.mkdir("/cache")
    tier = RemoteStorageManager(
        store,
        format_config(**{"chunk_bytes": CHUNK, **settings}).with_values(
            {"remote_log_manager_copier_thread_pool_size": 1, "remote_log_reader_threads": 2}
        ),
        PlainKeyRing(),
        environment=Environment.without_loop(
            filesystem=disk or fake, clock=clock, randomness=SeededRandomness(2)
        ),
        spool_directory="/spool",
        software="test",
    )
    return TierWorld(tier, store, fake)


def text_segment(batches: int = 30, **changes: Any) -> Segment:
    """Some 400 bytes a batch, which compress well."""
    payloads = [b"%03d: the same text; " % number * 20 for number in range(batches)]
    return make_segment(payloads, **changes)


async def turns(count: int) -> None:
    """Let the loop turn, and threads get on."""
    for _ in range(count):
        await asyncio.sleep(0.0001)
