"""Remote index cache: indexes and manifests of remote segments on disk, hot ones in memory.

    on disk     at most `limit_bytes` (`remote.log.index.file.cache.total.size.bytes`)
                  probation  came in, first in first out ──used again later, or by another──┐
                      ^                                                                     v
                      └────────oldest, when above 80 % of the limit──────────────────── protected
    in memory   at most LOADED_BYTES_MAX, second chance; read in again from the disk

A reader that passes through history uses the indexes of each segment many times within a short
while and then never again. So a set is protected only when it is used by another client, or by the
same one after `VISIT_GAP_MS`: one scan, however long, replaces only what is in probation. (Kafka
uses Caffeine's W-TinyLFU, which serves the same end by counting.)

On a full disk chunks go first (`make_room`): there are more of them, and none can be read without
its segment's indexes.

Evicted files get the suffix `.deleted` and go `REMOVE_DELAY_MS` later, as Kafka's; a set whose
manifest is being read by a download is passed over.

Source: Kafka, RemoteIndexCache.java.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final
from uuid import UUID

from storage.environment.environment import Environment
from storage.environment.second_chance_pool import SecondChancePool
from storage.errors import CorruptFileError, DiskError
from tiered.cache.fair_queue import Client, FairQueue
from tiered.cache.flight import Flight, Flights
from tiered.cache.index_files import (
    RemoteIndexes,
    load,
    mark_deleted,
    remove_deleted,
    scan,
    stem_of,
)
from tiered.cache.remote_segment import RemoteSegment, StoredSet
from tiered.errors import CorruptRemoteDataError
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import IndexesResult, Tier

_log = logging.getLogger(__name__)

LOADED_BYTES_MAX: Final = 64 * 1024 * 1024
REMOVE_DELAY_MS: Final = 10_000
VISIT_GAP_MS: Final = 60_000
PROTECTED_SHARE: Final = 0.8
ROOM_BYTES: Final = 8 * 1024 * 1024
"""Made on a full disk for a set: those of a segment of 1 GiB, an entry for each 4 KiB, and more."""


class IndexCache:
    """See the module. Touched on the loop's thread only.

    Attributes:
        limit_bytes: Of all files; `update` changes it.
        bytes: Of all files now, those of evicted sets left out.
        hits: Sets that were in memory; `loads`: on the disk; `misses`: not here.
        evicted, evicted_bytes, damaged, fetched, fetched_bytes, fetch_errors: Since start; fetched
            bytes over the network.
        loaded: The pool of sets in memory; its weight is bytes.
    """

    def __init__(
        self,
        directory: str,
        limit_bytes: int,
        *,
        tier: Tier,
        queue: FairQueue,
        environment: Environment,
        on_downloaded: Callable[[int], None],
        finish_abandoned: bool,
        make_room: Callable[[int], Awaitable[bool]],
    ) -> None:
        """Touch nothing yet; see `start`. Arguments as for `ChunkCache`, and its `make_room`."""
        self._directory = directory
        self.limit_bytes = limit_bytes
        self._tier = tier
        self._filesystem = environment.filesystem
        self._clock = environment.clock
        self._timer = environment.timer
        self._run = environment.run_blocking
        self._on_downloaded = on_downloaded
        self._make_room = make_room
        self.flights: Flights[UUID, RemoteSegment] = Flights(
            "indexes", queue, environment.clock, finish_abandoned=finish_abandoned
        )
        self.loaded = SecondChancePool("loaded remote index bytes", LOADED_BYTES_MAX)
        self._sets: dict[UUID, StoredSet] = {}
        self._probation: OrderedDict[UUID, StoredSet] = OrderedDict()
        self._protected: OrderedDict[UUID, StoredSet] = OrderedDict()
        self._protected_bytes = 0
        self._renames: dict[UUID, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._scan: asyncio.Task[None] | None = None
        self.bytes = 0
        self.hits = 0
        self.loads = 0
        self.misses = 0
        self.evicted = 0
        self.evicted_bytes = 0
        self.damaged = 0
        self.fetched = 0
        self.fetched_bytes = 0
        self.fetch_errors = 0

    def __len__(self) -> int:
        return len(self._sets)

    # -- start, stop -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read the directory; reads that find nothing in memory wait for it."""
        self._scan = asyncio.get_running_loop().create_task(self._scan_directory())

    async def wait_scanned(self) -> None:
        """Until the directory has been read."""
        if self._scan is not None:
            await asyncio.shield(self._scan)

    async def close(self) -> None:
        """Stop fetching; what is whole stays for the next start."""
        self.flights.close()
        if self._scan is not None:
            self._scan.cancel()
            await asyncio.gather(self._scan, return_exceptions=True)
        await asyncio.gather(*self._tasks, *self._renames.values(), return_exceptions=True)

    async def _scan_directory(self) -> None:
        try:
            found = await self._run(scan, self._filesystem, self._directory)
        except DiskError as error:
            _log.warning("remote index cache: cannot be read, starting empty: %s", error)
            return
        for id_, stem, size in found:
            self._admit(StoredSet(id_, f"{self._directory}/{stem}", size))
        self._shrink()

    # -- reading -----------------------------------------------------------------------------

    def get(self, metadata: RemoteLogSegmentMetadata, client: Client) -> RemoteSegment | None:
        """The segment, if its indexes are in memory."""
        stored = self._sets.get(metadata.id)
        if stored is None or stored.remote is None:
            return None
        self.hits += 1
        stored.used = True
        self._visit(stored, client)
        return stored.remote

    def peek(self, id_: UUID) -> RemoteSegment | None:
        """As `get`; not a use of it."""
        stored = self._sets.get(id_)
        return None if stored is None else stored.remote

    def holds(self, id_: UUID) -> bool:
        """Whether there is such a set, in memory or on the disk."""
        return id_ in self._sets

    def demand(
        self, metadata: RemoteLogSegmentMetadata, waiter: Callable[[], None], client: Client
    ) -> Flight[UUID, RemoteSegment]:
        """Have `waiter` called when the segment can be read; see `ChunkCache.demand`."""
        return self.flights.demand(
            metadata.id,
            waiter,
            client,
            check=lambda: self._load_stored(metadata, client),
            work=lambda: self._fetch(metadata, client),
        )

    def prefetch(
        self, metadata: RemoteLogSegmentMetadata, client: Client, on_done: Callable[[], None]
    ) -> bool:
        """Fetch ahead of a reader; `on_done` is called if it is under way when this returns."""
        self.flights.prefetch(
            metadata.id,
            client,
            check=lambda: self._load_stored(metadata, client),
            work=lambda: self._fetch(metadata, client),
        )
        flight = self.flights.get(metadata.id)
        if flight is None:
            return False
        flight.listen(on_done)
        return True

    async def _load_stored(
        self, metadata: RemoteLogSegmentMetadata, client: Client
    ) -> RemoteSegment | None:
        """The set from the disk, None if there is none that is whole."""
        await self.wait_scanned()
        stored = self._sets.get(metadata.id)
        if stored is None:
            self.misses += 1
            return None
        if stored.remote is not None:
            return stored.remote
        stored.pins += 1
        try:
            indexes = await self._run(load, self._filesystem, stored.path, metadata)
        except (CorruptFileError, DiskError) as error:
            _log.warning(
                "remote index cache: removing corrupt indexes, fetching them again: %s", error
            )
            self.drop(metadata.id)
            self.misses += 1
            return None
        finally:
            stored.pins -= 1
        self.loads += 1
        return self._hold(stored, metadata, indexes, client)

    async def _fetch(self, metadata: RemoteLogSegmentMetadata, client: Client) -> RemoteSegment:
        rename = self._renames.get(metadata.id)
        if rename is not None:
            # It would take away what is about to be written under the same name.
            await asyncio.shield(rename)
        stem = stem_of(metadata)
        path = f"{self._directory}/{stem}"
        try:
            result = await self._fetch_with_room(metadata, stem)
            self._on_downloaded(result.downloaded_bytes)
            self.fetched += 1
            self.fetched_bytes += result.downloaded_bytes
            indexes = await self._run(load, self._filesystem, path, metadata)
        except CorruptFileError as error:
            self.fetch_errors += 1
            self._rename_away(metadata.id, path)
            raise CorruptRemoteDataError(stem, -1, str(error)) from error
        except Exception:
            self.fetch_errors += 1
            raise
        stored = StoredSet(metadata.id, path, indexes.disk_bytes)
        self._admit(stored)
        remote = self._hold(stored, metadata, indexes, client)
        self._shrink()
        return remote

    async def _fetch_with_room(
        self, metadata: RemoteLogSegmentMetadata, stem: str
    ) -> IndexesResult:
        try:
            return await self._fetch_files(metadata, stem)
        except DiskError as error:
            if not error.is_full or not await self._make_room(ROOM_BYTES):
                raise
            _log.warning("remote index cache: disk is full, chunks were evicted: %s", error)
        return await self._fetch_files(metadata, stem)

    async def _fetch_files(self, metadata: RemoteLogSegmentMetadata, stem: str) -> IndexesResult:
        await self._run(self._filesystem.mkdir, self._directory)
        return await self._tier.fetch_indexes(metadata, self._directory, stem)

    def _hold(
        self,
        stored: StoredSet,
        metadata: RemoteLogSegmentMetadata,
        indexes: RemoteIndexes,
        client: Client,
    ) -> RemoteSegment:
        stored.remote = RemoteSegment(stored, metadata, indexes)
        remote = stored.remote
        if not stored.evicted:
            self.loaded.admit(stored, indexes.memory_bytes)
            self._visit(stored, client)
        return remote

    # -- room --------------------------------------------------------------------------------

    def update(self, limit_bytes: int, *, finish_abandoned: bool) -> None:
        """New settings; a smaller cache shrinks at once."""
        self.limit_bytes = limit_bytes
        self.flights.finish_abandoned = finish_abandoned
        self._shrink()

    def drop(self, id_: UUID) -> None:
        """This set is damaged: it is fetched again when it is wanted."""
        stored = self._sets.get(id_)
        if stored is not None:
            self.damaged += 1
            self._remove(stored)

    def forget(self, id_: UUID) -> None:
        """The segment is gone from remote storage."""
        stored = self._sets.get(id_)
        if stored is not None:
            self._remove(stored)

    def _visit(self, stored: StoredSet, client: Client) -> None:
        now_ms = self._clock.monotonic_ms()
        if stored.protected:
            self._protected.move_to_end(stored.id)
        elif stored.client is not None and (
            stored.client != client or now_ms - stored.used_ms > VISIT_GAP_MS
        ):
            self._protect(stored)
        stored.client = client
        stored.used_ms = now_ms

    def _protect(self, stored: StoredSet) -> None:
        stored.protected = True
        del self._probation[stored.id]
        self._protected[stored.id] = stored
        self._protected_bytes += stored.size
        while self._protected_bytes > self.limit_bytes * PROTECTED_SHARE:
            id_, oldest = self._protected.popitem(last=False)
            oldest.protected = False
            self._protected_bytes -= oldest.size
            self._probation[id_] = oldest

    def _admit(self, stored: StoredSet) -> None:
        previous = self._sets.get(stored.id)
        if previous is not None:
            # The same files: only what is known of them is new.
            self._forget(previous)
        self._sets[stored.id] = stored
        self._probation[stored.id] = stored
        self.bytes += stored.size

    def _shrink(self) -> None:
        # The newest stays however small the limit is: its reader needs it now.
        while self.bytes > self.limit_bytes and len(self._sets) > 1:
            newest = next(reversed(self._sets))
            victim = next(
                (
                    stored
                    for queue in (self._probation, self._protected)
                    for stored in queue.values()
                    if not stored.pins and stored.id != newest
                ),
                None,
            )
            if victim is None:
                return
            self.evicted += 1
            self.evicted_bytes += victim.size
            self._remove(victim)

    def _forget(self, stored: StoredSet) -> None:
        stored.evicted = True
        del self._sets[stored.id]
        if stored.protected:
            del self._protected[stored.id]
            self._protected_bytes -= stored.size
        else:
            del self._probation[stored.id]
        self.bytes -= stored.size
        self.loaded.discard(stored)
        stored.release()

    def _remove(self, stored: StoredSet) -> None:
        self._forget(stored)
        self._rename_away(stored.id, stored.path)

    def _rename_away(self, id_: UUID, path: str) -> None:
        task = asyncio.get_running_loop().create_task(self._rename(id_, path))
        self._renames[id_] = task

    async def _rename(self, id_: UUID, path: str) -> None:
        try:
            await self._run(mark_deleted, self._filesystem, path)
        finally:
            self._renames.pop(id_, None)
        self._timer.call_later_ms(REMOVE_DELAY_MS, lambda: self._remove_later(path))

    def _remove_later(self, path: str) -> None:
        work: Coroutine[Any, Any, None] = self._run(remove_deleted, self._filesystem, path)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
