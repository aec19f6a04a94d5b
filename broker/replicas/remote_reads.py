"""Reads of what a partition's local log has no longer: decided here, once, for all who read.

The local log raises OffsetNotLocalError for an offset that it does not have; `read` then reads it
from remote storage, for a consumer. Look-ups by time begin there.
"""

from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from tiered.remote_read import PausedRead, ReadRequest
from tiered.segment_metadata import TopicIdPartition

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from broker.runtime.disk import Disk
    from storage.segment.readable_segment import TimestampOffset
    from tiered.remote_read import RemoteRead, RemoteReader


class RemoteReads:
    """See the module. Touched on the loop's thread only.

    Attributes:
        reader: Set while there is remote storage.
        fetch_max_wait_ms: Longest wait of a fetch for it (`remote.fetch.max.wait.ms`).
        is_paused: Reads wait (`tier.fetch.paused`).
    """

    __slots__ = ("_disk", "fetch_max_wait_ms", "is_paused", "reader")

    def __init__(self, disk: "Disk") -> None:
        """`disk`: threads that look up by time in local logs."""
        self._disk = disk
        self.reader: RemoteReader | None = None
        self.fetch_max_wait_ms = 500.0
        self.is_paused = False

    def read(
        self,
        partition: "Partition",
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        with_aborted: bool,
        client: tuple[str, str],
        is_follower: bool = False,
    ) -> "RemoteRead":
        """Read an offset that is not local; finished at once if the caches have it.

        Raises:
            ApiError: OFFSET_MOVED_TO_TIERED_STORAGE to a follower, which copies only what is local
                and rebuilds the rest of its state (KIP-405); OFFSET_OUT_OF_RANGE where the broker
                has no remote storage.
        """
        if self.reader is None:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if is_follower:
            raise ApiError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
        log = partition.log
        if self.is_paused or log.config.tier_fetch_paused:
            return PausedRead()
        return self.reader.read(
            ReadRequest(
                TopicIdPartition(partition.topic_id, *partition.topic_partition),
                log,
                offset,
                max_bytes,
                min_one_batch,
                with_aborted,
                client,
            )
        )

    async def find_timestamp(
        self,
        partition: "Partition",
        timestamp_ms: int | None,
        end_offset: int,
        client: tuple[str, str],
    ) -> "TimestampOffset | None":
        """The first record at or after a time, None: the first with the largest timestamp.

        Remote segments come first, then what is local, in a thread. A result at or above
        `end_offset` means that there is none.

        Raises:
            StorageError, TieredError: It could not be looked up.
        """
        log = partition.log
        reader = self.reader
        has_remote = reader is not None and log.log_start_offset < log.local_log_start_offset
        local: TimestampOffset | None = None
        if timestamp_ms is None:
            local = await self._disk.of(log.directory).run(log.reader.max_timestamp_offset)
            if not has_remote:
                return local
        while True:
            local_start = log.local_log_start_offset
            if has_remote:
                assert reader is not None
                key = TopicIdPartition(partition.topic_id, *partition.topic_partition)
                found = await reader.find_timestamp(key, log, timestamp_ms, client)
                if timestamp_ms is None:
                    # Of equal times the first record counts, and remote ones come first.
                    if found is None or (local is not None and local.timestamp > found.timestamp):
                        return local
                    return found
                if found is not None:
                    return found
            assert timestamp_ms is not None
            local = await self._disk.of(log.directory).run(
                log.reader.offset_for_timestamp, timestamp_ms, end_offset
            )
            if reader is None or log.local_log_start_offset == local_start:
                return local
            # Local segments were deleted meanwhile: the record may have been in one of them.
            has_remote = log.remote_storage
            if not has_remote:
                return local
