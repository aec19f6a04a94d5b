"""Remote log reader: from an offset to slices of cached files.

    offset ─leader epochs─> epoch ─metadata─> segment ─index cache─> position
           ─batch headers─> first batch that reaches the offset ─chunk cache─> slices

An attempt is a plain function over what is here. When something is missing it says what, that is
fetched, and the attempt is made again from the start: with everything here it takes some tens of
microseconds, and there is no state in between to get wrong. Chunks that have come are held by the
read, so it gets there even if the cache is smaller than what it needs.

    read() ─> attempt ─────────────────────────> finished, before read() returns
                 │ missing     ^
                 v             │ landed
              waiting for flights (index sets, chunks) or for metadata

A read gives one segment's batches at most, as Kafka's does. It ends where a batch ends, and before
offsets that are of another history (`tiered.metadata.epoch_bounds`), or that the log does not have.

What follows an error: `tiered.errors`; a process of the tier that ended, or indexes that were
evicted meanwhile, are retried once. A segment that is gone is looked up again: an expired one
gives RemoteOffsetNotFoundError, one that metadata still names gives the store's error.

Source: Kafka, RemoteLogManager.java (read), RemoteLogReader.java; KIP-405, KIP-1018, KIP-1178.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from config.tier import TierConfig
from storage.environment.environment import Environment
from storage.environment.repeated_line import RepeatedLine
from storage.errors import CorruptFileError, DiskError, StorageError
from storage.log.log import Log, TimestampOffset
from tiered.cache.chunk_cache import ChunkCache
from tiered.cache.fair_queue import Client, FairQueue
from tiered.cache.flight import Flight
from tiered.cache.index_cache import IndexCache
from tiered.cache.remote_aborts import collect_aborted
from tiered.cache.remote_segment import IndexesEvictedError, RemoteSegment
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    QueueFullError,
    RemoteOffsetNotFoundError,
    RemotePausedError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    TieredError,
    TierProcessError,
)
from tiered.fetch.fetch_quota import FetchQuota
from tiered.fetch.gaps import find_following, offset_after_gap
from tiered.fetch.pending_read import Read, TopicReads
from tiered.fetch.prefetch import Prefetcher
from tiered.fetch.read_range import find_range
from tiered.fetch.segment_view import SegmentView
from tiered.fetch.time_lookup import TimeLookup
from tiered.format.chunk_file import ChunkKey
from tiered.metadata.epoch_bounds import find_segment, valid_end
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.remote_read import ReadRequest, RemoteRecords
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition
from tiered.tier import Tier

_log = logging.getLogger(__name__)

RELEASED_MS: Final = 900.0
"""How long after an answer without it a read's client has to ask again; below a second, so that
downloads have stopped within one where they are to be stopped."""

_NOT_TOLD: Final = (
    QueueFullError,
    RemoteOffsetNotFoundError,
    RemotePausedError,
    RemoteStorageNotReadyError,
)
"""A read's errors with which nothing is wrong."""

RETRIES_MAX: Final = 2
"""Attempts after trouble that a second try may mend, per read."""

Missing = RemoteLogSegmentMetadata | tuple[RemoteSegment, list[int], int]
"""What must come first: a segment's indexes, or some of its chunks for a read at a position."""


class Reader:
    """`remote_read.RemoteReader`; see the module.

    Attributes:
        queue: Of downloads.
        quota: Of the broker and of clients.
        chunks: The chunk cache.
        indexes: The index cache.
        prefetcher: Reads ahead.
        topics: Counters by topic; `forget_topic` takes one out.
        pending: Reads that are not finished.
        cancelled_reads: Since start.
        retried: Attempts made again after trouble, since start.
        gaps_passed: Reads that went on behind missing offsets (`tiered.fetch.gaps`), since start.
    """

    def __init__(
        self,
        settings: TierConfig,
        tier: Tier,
        metadata: RemoteLogMetadataManager,
        environment: Environment,
    ) -> None:
        """Touch nothing yet; see `start`.

        Args:
            settings: See there.
            tier: Downloads.
            metadata: Which segment holds what.
            environment: Of the broker; its disk holds the caches.
        """
        clock = environment.clock
        self._metadata = metadata
        self._settings = settings
        self._timer = environment.timer
        self._clock = clock
        self._failure_line = RepeatedLine(clock)
        self._metadata_waits: dict[TopicIdPartition, tuple[asyncio.Task[None], set[Read]]] = {}
        self.queue = FairQueue(
            settings.remote_log_reader_threads, settings.remote_log_reader_max_pending_tasks
        )
        self.quota = FetchQuota(
            clock,
            bytes_per_second=settings.remote_log_manager_fetch_max_bytes_per_second,
            client_bytes_per_second=settings.tier_client_fetch_max_bytes_per_second,
            windows=settings.remote_log_manager_fetch_quota_window_num,
            window_seconds=settings.remote_log_manager_fetch_quota_window_size_seconds,
        )
        finish_abandoned = settings.tier_abandoned_reads == "finish"
        self.chunks = ChunkCache(
            settings.rsm_config_fetch_chunk_cache_path or "",
            settings.chunk_cache_max_bytes,
            fetch=tier.fetch_chunk,
            queue=self.queue,
            environment=environment,
            on_downloaded=self.quota.downloaded,
            finish_abandoned=finish_abandoned,
            refer=tier.refer_to_chunks if settings.store.backend == "filesystem" else None,
        )
        self.indexes = IndexCache(
            settings.tier_index_cache_path or "",
            settings.remote_log_index_file_cache_total_size_bytes,
            tier=tier,
            queue=self.queue,
            environment=environment,
            on_downloaded=self.quota.downloaded,
            finish_abandoned=finish_abandoned,
            make_room=self.chunks.make_room,
        )
        self.prefetcher = Prefetcher(
            self.chunks, self.indexes, self.quota, clock, self._segment_at, 0
        )
        self.prefetcher.max_bytes = settings.rsm_config_fetch_chunk_cache_prefetch_max_size
        self._time_lookup = TimeLookup(metadata, self.chunks, self.indexes, environment)
        self.topics: dict[str, TopicReads] = {}
        self.pending: set[Read] = set()
        self.cancelled_reads = 0
        self.retried = 0
        self.gaps_passed = 0

    def start(self) -> None:
        """Begin to read the caches' directories."""
        self.indexes.start()
        self.chunks.start()

    async def close(self) -> None:
        """Stop what is under way; reads that wait are not finished any more."""
        for read in list(self.pending):
            read.cancel()
        await self.indexes.close()
        await self.chunks.close()

    def update(self, settings: TierConfig) -> None:
        """New settings; directories stay what they were."""
        self._settings = settings
        finish_abandoned = settings.tier_abandoned_reads == "finish"
        self.queue.resize(
            settings.remote_log_reader_threads, settings.remote_log_reader_max_pending_tasks
        )
        self.quota.resize(
            bytes_per_second=settings.remote_log_manager_fetch_max_bytes_per_second,
            client_bytes_per_second=settings.tier_client_fetch_max_bytes_per_second,
            windows=settings.remote_log_manager_fetch_quota_window_num,
            window_seconds=settings.remote_log_manager_fetch_quota_window_size_seconds,
        )
        self.chunks.update(settings.chunk_cache_max_bytes, finish_abandoned=finish_abandoned)
        self.indexes.update(
            settings.remote_log_index_file_cache_total_size_bytes, finish_abandoned=finish_abandoned
        )
        self.prefetcher.max_bytes = settings.rsm_config_fetch_chunk_cache_prefetch_max_size

    def forget_topic(self, topic: str) -> None:
        """The topic is deleted."""
        self.topics.pop(topic, None)

    # -- reads -------------------------------------------------------------------------------

    def read(self, request: ReadRequest) -> Read:
        """Begin to read; see `RemoteReader`."""
        read = Read(self, request)
        topic = request.partition.topic
        counters = self.topics.get(topic)
        if counters is None:
            counters = self.topics[topic] = TopicReads()
        counters.requests += 1
        if self._settings.tier_fetch_paused:
            self._fail(read, RemotePausedError("reading from remote storage is paused"))
        elif not self.quota.allows_client(request.client):
            self._finish(read, RemoteRecords((), ()))
        else:
            self.advance(read)
        if not read.finished:
            self.pending.add(read)
        return read

    def forget_segment(self, segment: UUID) -> None:
        """Drop a segment from the caches, as it is being deleted from remote storage."""
        self.chunks.drop_segment(segment)
        self.indexes.forget(segment)

    async def find_timestamp(
        self, partition: TopicIdPartition, log: Log, timestamp_ms: int | None, client: Client
    ) -> TimestampOffset | None:
        """See `RemoteReader`; raises as a read fails, and RemotePausedError."""
        if self._settings.tier_fetch_paused:
            raise RemotePausedError("reading from remote storage is paused")
        return await self._time_lookup.find(partition, log, timestamp_ms, client)

    def advance(self, read: Read) -> None:
        """Try until it is finished or something must come first."""
        again = True
        while again:
            again = False
            try:
                missing = self._attempt(read)
                if missing is not None:
                    again = self._fetch(read, missing)
            except RemoteStorageNotReadyError:
                self._wait_for_metadata(read)
            except Exception as error:  # noqa: BLE001  because a read's error is its answer
                if read.finished:
                    # Of the callback, or of prefetching: the answer stands.
                    _log.exception("remote log read failed after it was answered")
                    return
                again = self._may_try_again(read, error)
                if not again:
                    self._fail(read, error)

    def _attempt(self, read: Read) -> Missing | None:
        """Finish the read, or say what is missing."""
        partition, log, _, max_bytes, min_one_batch, with_aborted, client = read.request
        epochs = log.leader_epochs
        while True:
            offset = read.offset
            metadata = find_segment(self._metadata, partition, epochs, offset)
            if metadata is None:
                if offset < log.local_log_start_offset and self._metadata.doubt(partition):
                    # No gap to be passed: it may be in the bucket, and its event lost. The fetch
                    # waits out its time.
                    return None
                if offset >= log.local_log_start_offset > read.request.offset:
                    self._finish(read, self._local(read))
                    return None
                read.offset = self._after_gap(read, offset)
                continue
            if metadata.id == read.gone:
                raise read.failed[metadata.id]
            segment = self.indexes.get(metadata, client)
            if segment is None:
                return metadata
            view = read.view
            if view is None or view.segment.metadata.id != metadata.id:
                view = read.view = self._view(segment)
            # A follower that was cut back has no epoch yet for what comes behind.
            valid_offset = min(valid_end(metadata, epochs), log.log_end_offset)
            found = find_range(view, offset, valid_offset, max_bytes, min_one_batch, read.failed)
            if found is None:
                read.offset = valid_offset
                continue
            position, end, end_offset, wanted = found
            if read.stream is None:
                # A reader that comes to a gap has left its stream before it.
                read.stream = self.prefetcher.match(
                    client, partition, segment, position, read.request.offset
                )
            if wanted:
                return segment, wanted, position
            aborted: Sequence[tuple[int, int]] = ()
            if with_aborted and end > position:
                collected = collect_aborted(
                    self.indexes, self._metadata, read.request, segment, offset, end_offset
                )
                if isinstance(collected, RemoteLogSegmentMetadata):
                    return collected
                aborted = collected
            self._finish(read, RemoteRecords(view.slices(position, end), aborted))
            self.prefetcher.moved(read.stream, client, partition, log, segment, position, end)
            return None

    def _after_gap(self, read: Read, offset: int) -> int:
        """Where to read next, as this offset is missing."""
        partition, log = read.request.partition, read.request.log
        if offset >= log.local_log_start_offset:
            # It became local again, by a truncation: the client fetches again.
            raise RemoteOffsetNotFoundError(partition, None, offset)
        following = offset_after_gap(self._metadata, partition, log, offset)
        self.gaps_passed += 1
        return following

    def _view(self, segment: RemoteSegment) -> SegmentView:
        get = self.chunks.get
        id_ = segment.metadata.id
        return SegmentView(segment, lambda chunk: get(ChunkKey(id_, chunk)))

    def _segment_at(
        self, partition: TopicIdPartition, log: Log, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """For reading ahead: nothing is read ahead that is local, and gaps are passed over."""
        following = find_following(self._metadata, partition, log, offset)
        if following is None or following[1] >= log.local_log_start_offset:
            return None
        return following[0]

    def _local(self, read: Read) -> RemoteRecords:
        """The remote log ended in a gap: what follows is local."""
        _, log, _, max_bytes, min_one_batch, with_aborted, _ = read.request
        end = log.last_stable_offset if with_aborted else log.high_watermark
        found = log.reader.read(
            log.local_log_start_offset,
            max_bytes=max_bytes,
            end_offset=end,
            min_one_batch=min_one_batch,
        )
        if found is None or not found.length:
            nothing = RemoteRecords((), ())
            nothing.awaits_append = found is None
            return nothing
        aborted = log.reader.aborted_transactions(log.local_log_start_offset, found)
        return RemoteRecords((found,), aborted if with_aborted else ())

    # -- waiting -----------------------------------------------------------------------------

    def _fetch(self, read: Read, missing: Missing) -> bool:
        """Have fetched what is missing; whether to try again at once."""
        client = read.request.client
        if isinstance(missing, RemoteLogSegmentMetadata):
            id_ = missing.id
            if id_ in read.failed:
                raise read.failed[id_]
            if id_ in read.flights:
                return False
            known = self.indexes.holds(id_) or self.indexes.flights.get(id_) is not None
            if not known and not self.quota.allows_download():
                self._finish(read, RemoteRecords((), ()))
                return False
            return self._wait(read, id_, self.indexes.demand(missing, read.landed, client))
        segment, chunks, position = missing
        again = False
        for chunk in chunks:
            key = ChunkKey(segment.metadata.id, chunk)
            if key in read.failed:
                raise read.failed[key]
            if key in read.flights:
                continue
            coming = self.chunks.is_coming(*key)
            if not coming and not self.quota.allows_download():
                self._finish(read, RemoteRecords((), ()))
                return False
            again |= self._wait(read, key, self.chunks.demand(segment, chunk, read.landed, client))
        if read.stream is not None:
            self.prefetcher.waits(read.stream, segment, position)
        return again

    def _wait(self, read: Read, key: UUID | ChunkKey, flight: Flight[Any, Any]) -> bool:
        if flight.landed:
            read.take(key, flight)
            return True
        read.flights[key] = flight
        return False

    def _wait_for_metadata(self, read: Read) -> None:
        partition = read.request.partition
        waiting = self._metadata_waits.get(partition)
        if waiting is None:
            task = asyncio.get_running_loop().create_task(self._metadata_ready(partition))
            waiting = self._metadata_waits[partition] = (task, set())
        waiting[1].add(read)

    async def _metadata_ready(self, partition: TopicIdPartition) -> None:
        error: Exception | None = None
        try:
            await self._metadata.ready(partition)
        except Exception as failure:  # noqa: BLE001  because a read's trouble is its answer
            error = failure
        _, reads = self._metadata_waits.pop(partition)
        for read in reads:
            if error is None:
                self.advance(read)
            else:
                self._fail(read, error)

    def _may_try_again(self, read: Read, error: Exception) -> bool:
        """Whether the error may be transient; prepares the retry."""
        view = read.view
        if read.retries >= RETRIES_MAX:
            return False
        if isinstance(error, ObjectNotFoundError) and read.gone is None:
            for key in read.failed:
                read.gone = key.segment if isinstance(key, ChunkKey) else key
            if read.gone is None:
                return False
            self.indexes.drop(read.gone)
            read.failed = {read.gone: error}
        elif (
            isinstance(error, CorruptFileError | DiskError)
            and not (isinstance(error, DiskError) and error.is_descriptor_limit)
            and view is not None
            and error not in read.failed.values()
        ):
            # The indexes led astray, or a cache file was changed: have all of it again.
            self.indexes.drop(view.segment.metadata.id)
            self.chunks.drop_segment(view.segment.metadata.id)
        elif isinstance(error, TierProcessError | IndexesEvictedError):
            read.failed.clear()
        else:
            return False
        read.retries += 1
        self.retried += 1
        read.view = None
        self._leave(read, keep=False)
        return True

    # -- ends --------------------------------------------------------------------------------

    def _finish(self, read: Read, records: RemoteRecords) -> None:
        read.records = records
        if records.length:
            counters = self.topics.get(read.request.partition.topic)
            if counters is not None:
                counters.bytes += records.length
            self.quota.answered(read.request.client, records.length)
        self._end(read)

    def _fail(self, read: Read, error: Exception) -> None:
        if isinstance(error, CorruptFileError):
            path = "" if read.view is None else read.view.path
            error = CorruptRemoteDataError(path, -1, str(error))
        elif not isinstance(error, TieredError | StorageError):
            _log.error("remote log read failed unexpectedly", exc_info=error)
            error = RemoteStorageError(f"unexpected {type(error).__name__}: {error}")
        if not isinstance(error, _NOT_TOLD):
            self._tell(read, error)
        read.error = error
        counters = self.topics.get(read.request.partition.topic)
        if counters is not None and not isinstance(error, RemoteOffsetNotFoundError):
            counters.errors += 1
        self._give_stream_back(read)
        self._end(read)

    def _tell(self, read: Read, error: Exception) -> None:
        """Log why a read has failed; its client is only asked to try again."""
        if self._failure_line.is_due():
            _log.warning(
                "remote log read failed partition=%s offset=%d error=%s",
                read.request.partition,
                read.request.offset,
                error,
            )

    def _end(self, read: Read) -> None:
        read.finished = True
        self.pending.discard(read)
        # What it asked for and does not need any more, the next read of this client will.
        self._leave(read, keep=True)
        read.view = None
        if read.on_finished is not None:
            read.on_finished()

    def cancelled(self, read: Read) -> None:
        """Stop what only this read wanted; it has no waiter any more."""
        stream = read.stream
        self._let_go(read)
        self._leave(read, keep=False)
        if stream is not None:
            self.prefetcher.abandon(stream)

    def released(self, read: Read) -> None:
        """Its client was answered without it: keep for a moment what it waits for.

        Were it stopped at once, a chunk that takes longer than a fetch waits would never come, and
        what waits in line would lose its place with each fetch.
        """
        self._let_go(read)
        if read.flights:
            self._timer.call_later_ms(RELEASED_MS, lambda: self._leave(read, keep=False))

    def _let_go(self, read: Read) -> None:
        self.cancelled_reads += 1
        self.pending.discard(read)
        self._give_stream_back(read)
        read.view = None
        partition = read.request.partition
        waiting = self._metadata_waits.get(partition)
        if waiting is not None:
            waiting[1].discard(read)
            if not waiting[1]:
                waiting[0].cancel()
                del self._metadata_waits[partition]

    def _give_stream_back(self, read: Read) -> None:
        stream, read.stream = read.stream, None
        if stream is not None:
            self.prefetcher.put_back(stream)

    def _leave(self, read: Read, *, keep: bool) -> None:
        flights, read.flights = read.flights, {}
        for flight in flights.values():
            flight.leave(read.landed, keep=keep)
