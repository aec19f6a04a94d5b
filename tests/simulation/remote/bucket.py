"""The object store of a simulated cluster: one bucket for all brokers, across the network.

    a broker ──request, after a while──> bucket: done at once ──answer, after a while──> broker

What has left a broker arrives, whether or not the broker lives to hear of it: an upload of a
process that was killed, or is paused, is stored. The nemesis lets requests be refused before
anything was done, lets answers be lost, and lets all be slow.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Final, TypeVar

from config.tier import TierConfig
from storage.environment.environment import Environment
from tests.fakes.tiered.memory_object_store import StoredObject, page_of
from tests.simulation.clock import WALL_START_MS
from tests.simulation.loop import SimLoop
from tiered.errors import ObjectNotFoundError, StoreUnavailableError
from tiered.format.key_ring import KeyRing
from tiered.object_store.base import Buffer, ObjectInfo, ObjectPage, PendingUpload
from tiered.object_store.keys import check_key, check_prefix
from tiered.object_store.statistics import StoreStatistics
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager

T = TypeVar("T")

WAY_S: Final = 0.02
"""A request takes up to so long to the bucket, and its answer back, unless a run says otherwise."""

SLOW_S: Final = 3.0
"""And while it is slow."""

SPOOL: Final = "/data/spool"


class Bucket:
    """See the module.

    Attributes:
        objects: By key.
        is_away: It refuses everything.
        lost_answers: This share of what it does is done, and said to have failed.
        is_slow: Requests and answers take up to `SLOW_S`.
        usual_s: How long they take at most, while it is not.
        on_change: Called with a key that was stored or removed.
        calls: Requests that have arrived.
    """

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.objects: dict[str, StoredObject] = {}
        self.is_away = False
        self.lost_answers = 0.0
        self.is_slow = False
        self.usual_s = WAY_S
        self.calls = 0
        self.on_change: Callable[[str], None] = lambda _key: None

    def now_ms(self) -> int:
        """By its clock, which is nobody else's."""
        return int(WALL_START_MS + self._loop.now_s * 1000)

    async def ask(self, name: str, work: Callable[[], T]) -> T:
        """Have `work` done in the bucket; `name` for errors.

        Raises:
            StoreUnavailableError: It was not done, or was and nobody knows.
        """
        loop, random = self._loop, self._loop.random
        done: asyncio.Future[T] = loop.create_future()
        process = loop.current

        def way_s() -> float:
            return random.random() * (SLOW_S if self.is_slow else self.usual_s)

        def arrive() -> None:
            self.calls += 1
            result: T | None = None
            error: Exception | None = None
            if self.is_away:
                error = StoreUnavailableError(f"{name}: 503")
            else:
                try:
                    result = work()
                except ObjectNotFoundError as missing:
                    error = missing
                if random.random() < self.lost_answers:
                    error = StoreUnavailableError(f"{name}: connection reset")
            loop.call_in_later(way_s(), process, answer, result, error)

        def answer(result: T, error: Exception | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)

        loop.call_in_later(way_s(), loop.outside, arrive)
        return await done

    def heal(self) -> None:
        """No more faults."""
        self.is_away = self.is_slow = False
        self.lost_answers = 0.0
        self.usual_s = WAY_S

    def store(self, key: str, data: bytes) -> None:
        """Put an object, or replace it."""
        self.objects[key] = StoredObject(data, self.now_ms())
        self.on_change(key)

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there are fine."""
        for key in keys:
            if self.objects.pop(key, None) is not None:
                self.on_change(key)

    def build_tier(self, settings: TierConfig, environment: Environment) -> RemoteStorageManager:
        """What a tier process runs."""
        return RemoteStorageManager(
            BucketClient(self, environment),
            settings,
            KeyRing.load(settings, environment.filesystem, environment.randomness),
            environment=environment,
            spool_directory=SPOOL,
            software="simulated",
        )


class BucketClient:
    """`tiered.object_store.base.ObjectStore` of one process."""

    def __init__(self, bucket: Bucket, environment: Environment) -> None:
        self.name = "sim://bucket"
        self.statistics = StoreStatistics(environment.clock)
        self._bucket = bucket

    def _found(self, key: str) -> StoredObject:
        try:
            return self._bucket.objects[key]
        except KeyError:
            raise ObjectNotFoundError(key) from None

    async def put(self, key: str, data: Buffer) -> None:
        kept = bytes(data)
        with self.statistics.measure("put", len(kept)):
            await self._bucket.ask(f"put {key}", lambda: self._bucket.store(check_key(key), kept))

    async def put_stream(self, key: str, parts: AsyncIterable[Buffer], size: int) -> None:
        data = bytearray()
        with self.statistics.measure("put_stream", size):
            async for part in parts:
                data += part
                await self._bucket.ask(f"part of {key}", lambda: None)
            if len(data) != size:
                raise ValueError(f"{key}: {len(data)} bytes came, {size} were promised")
            kept = bytes(data)
            await self._bucket.ask(
                f"put_stream {key}", lambda: self._bucket.store(check_key(key), kept)
            )

    async def get(self, key: str, *, max_bytes: int) -> bytes:
        with self.statistics.measure("get") as counters:
            found = await self._bucket.ask(f"get {key}", lambda: self._found(key))
            assert len(found.data) <= max_bytes
            counters.bytes += len(found.data)
            return found.data

    async def get_range(self, key: str, position: int, length: int, into: memoryview) -> None:
        with self.statistics.measure("get_range", length):
            found = await self._bucket.ask(f"get_range {key}", lambda: self._found(key))
            data = found.data[position : position + length]
            into[: len(data)] = data
            if len(data) < length:
                raise StoreUnavailableError(f"get_range {key}: {len(data)} of {length} bytes")

    def local_path(self, key: str) -> str | None:
        return None

    async def head(self, key: str) -> ObjectInfo | None:
        with self.statistics.measure("head"):
            found = await self._bucket.ask(f"head {key}", lambda: self._bucket.objects.get(key))
            return None if found is None else ObjectInfo(key, len(found.data), found.modified_ms)

    async def delete(self, keys: Sequence[str]) -> None:
        with self.statistics.measure("delete"):
            await self._bucket.ask("delete", lambda: self._bucket.remove(keys))

    async def list(
        self,
        prefix: str,
        *,
        after: str = "",
        folders: bool = False,
        continuation: str | None = None,
        limit: int = 1000,
    ) -> ObjectPage:
        check_prefix(prefix)
        behind = continuation or after

        def page() -> ObjectPage:
            return page_of(self._bucket.objects, prefix, behind, folders=folders, limit=limit)

        with self.statistics.measure("list"):
            return await self._bucket.ask(f"list {prefix}", page)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        return ()

    async def abort_upload(self, upload: PendingUpload) -> None:
        pass

    async def close(self) -> None:
        pass
