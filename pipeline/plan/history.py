"""A partition's history object as a plan uses it: a hint, which listings and manifests overrule.

    history ─> its segments, and what a listing finds from its last one's first offset on
            ─> the newest of them decides, as without a history; then

    its epochs do not continue the history's     ignored: all is listed
    a planned segment is gone, or there is a gap  all is listed; log start and state still count
    it has more than there is                     reported, unless a later one does not
    no such object                                all is listed
    damaged, or of a newer version                reported with its name; all is listed

What only a history knows: records that were deleted (`log_start_offset`), that the topic is being
deleted, and that a transaction which looks open in the bucket was committed (`stable_end_offset`).
It may be older than the bucket; it is never allowed to bring back what it says is deleted.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.plan.bucket import Bucket
from pipeline.plan.listing import KEYS
from pipeline.plan.partition_log import DamagedObject
from pipeline.plan.piece import PartitionName
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.metadata.history import (
    HISTORY_BYTES_MAX,
    HistorySummary,
    PartitionHistory,
    decode_history,
    decode_summary,
)
from tiered.metadata.lineage import without_empty_epochs
from tiered.segment_metadata import TopicIdPartition


class ReadHistory(NamedTuple):
    """A partition's history, or what is wrong with it; both None: there is none."""

    history: PartitionHistory | None = None
    damaged: DamagedObject | None = None


class ReadSummary(NamedTuple):
    """A `ReadHistory` without the segments."""

    summary: HistorySummary | None = None
    damaged: DamagedObject | None = None


async def read_history(bucket: Bucket, partition: PartitionName) -> ReadHistory:
    """A partition's history.

    Raises:
        RemoteStorageError: The store cannot give it now.
    """
    key = KEYS.history_key(tiered_partition(partition))
    damaged = None
    for _ in range(2):
        try:
            data = await bucket.store.get(key, max_bytes=HISTORY_BYTES_MAX)
            history = await bucket.threads.run(decode_history, data, key)
            check_partition(history.summary, partition, key)
        except ObjectNotFoundError:
            return ReadHistory()
        except CorruptRemoteDataError as error:
            damaged = DamagedObject(key, error.position, error.problem, -1)
        else:
            return ReadHistory(history)
    return ReadHistory(None, damaged)


async def read_summary(bucket: Bucket, partition: PartitionName) -> ReadSummary:
    """As `read_history`, faster where there are many segments."""
    key = KEYS.history_key(tiered_partition(partition))
    damaged = None
    for _ in range(2):
        try:
            data = await bucket.store.get(key, max_bytes=HISTORY_BYTES_MAX)
            summary = await bucket.threads.run(decode_summary, data, key)
            check_partition(summary, partition, key)
        except ObjectNotFoundError:
            return ReadSummary()
        except CorruptRemoteDataError as error:
            damaged = DamagedObject(key, error.position, error.problem, -1)
        else:
            return ReadSummary(summary)
    return ReadSummary(None, damaged)


def check_partition(summary: HistorySummary, partition: PartitionName, key: str) -> None:
    """An object under another one's name was put there by an operator.

    Raises:
        CorruptRemoteDataError: It is another partition's.
    """
    named = summary.partition
    if named != tiered_partition(partition):
        problem = f"the history is of {named} of topic id {named.topic_id}"
        raise CorruptRemoteDataError(key, -1, problem)


def tiered_partition(partition: PartitionName) -> TopicIdPartition:
    """The same in the order of `tiered`."""
    return TopicIdPartition(partition.topic_id, partition.topic, partition.partition)


def continues(
    earlier: Sequence[tuple[int, int]],
    earlier_end: int,
    later: Sequence[tuple[int, int]],
    later_end: int,
) -> bool:
    """Whether a log is an earlier one, longer: the same leader epochs, up to the earlier's end.

    Args:
        earlier: (epoch, start offset), ascending, of the log that is known.
        earlier_end: Where it ended, exclusive.
        later: Of the log that is asked about; it may begin later, where records were deleted.
        later_end: Where it ends, exclusive.
    """
    if not earlier or not later:
        return not earlier
    if later_end < earlier_end:
        # Something was overwritten, or is not here.
        return False
    start = max(earlier[0][1], later[0][1])
    if start >= earlier_end:
        # No offset is in both; but in one log epochs do not go back.
        last = max((epoch for epoch, offset in earlier if offset < earlier_end), default=-1)
        return later[0][0] >= last
    return _within(earlier, start, earlier_end) == _within(later, start, earlier_end)


def _within(epochs: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The epochs of [start, end), the first one from `start`."""
    return without_empty_epochs(
        (epoch, max(offset, start)) for epoch, offset in epochs if offset < end
    )
