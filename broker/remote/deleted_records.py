"""Durability of DeleteRecords on tiered partitions, before it is answered.

    the log start is written to this disk ──> and into the partition's history in the bucket

A log start is checkpointed now and then only, and after a crash the log begins where it began
before. Without a remote part that is Kafka's way. With one, readers of the bucket would have seen
the new start, and see the old one again. And a reader of the bucket alone would go on to see
records that were deleted.

Bounded: a bucket that is away does not keep the answer back for longer than `ANSWER_MS`. The log
start is on the disk then, and the history follows when it can. A disk that hangs (the checkpoint is
written for all of them) gets as long, and the history does not get what the disk may not have.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from tiered.deadline import Deadline
from tiered.errors import StoreTimeoutError

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from storage.environment.timer import Timer
    from tiered.segment_metadata import TopicIdPartition
    from tiered.tasks.remote_log_manager import RemoteLogManager

LOGGER = logging.getLogger(__name__)

ANSWER_MS: Final = 3_000.0
"""Longest that an answer waits for the disk, and for the bucket; clients wait for 30 s or more."""


async def make_log_starts_last(
    partitions: "Sequence[tuple[TopicIdPartition, Partition]]",
    *,
    manager: "RemoteLogManager",
    settled: "Callable[[Partition], Awaitable[None]]",
    checkpoint: Callable[[], Awaitable[None]],
    timer: "Timer",
    limit_ms: float,
) -> None:
    """See the module.

    Args:
        partitions: With a log start that was raised, now or before.
        manager: Of their histories.
        settled: Returns when it is known what remote storage has of one.
        checkpoint: Writes the log starts to disk; a disk that fails is reported elsewhere.
        timer: Time.
        limit_ms: No longer than that, or `ANSWER_MS`, for the bucket.
    """
    limit_ms = min(limit_ms, ANSWER_MS)
    waiting = [
        id_partition for id_partition, _ in partitions if id_partition not in manager.held_back
    ]
    try:
        async with Deadline(timer, limit_ms, "log starts on disk, and what remote storage has"):
            if any(
                partition.log.durable_log_start_offset < partition.log.log_start_offset
                for _, partition in partitions
            ):
                await checkpoint()
            # A start of the broker may have been a moment ago.
            for id_partition, partition in partitions:
                if id_partition not in manager.held_back:
                    await settled(partition)
    except StoreTimeoutError as error:
        LOGGER.warning("DeleteRecords answered before the history object was updated: %s", error)
        return
    await manager.history.publish_log_starts(waiting, limit_ms)
