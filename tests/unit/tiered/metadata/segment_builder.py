"""Remote segments in few words, for the tests of what is decided about them."""

from uuid import UUID

from storage.log.log import Log
from tests.unit.storage.log.log_model import TOPIC_ID
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

PARTITION = TopicIdPartition(TOPIC_ID, "t", 0)

FINISHED = SegmentState.COPY_SEGMENT_FINISHED
STARTED = SegmentState.COPY_SEGMENT_STARTED
DELETING = SegmentState.DELETE_SEGMENT_STARTED


def segment(
    start: int,
    end: int,
    epochs: dict[int, int] | None = None,
    *,
    number: int = 0,
    state: SegmentState = FINISHED,
    size: int = 100,
    timestamp_ms: int = 0,
) -> RemoteLogSegmentMetadata:
    """Offsets `start` to `end`, both inclusive; epoch 0 unless told."""
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(PARTITION, UUID(int=number or start * 1000 + end + 1)),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=timestamp_ms,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_bytes=size,
        segment_leader_epochs=tuple(
            SegmentEpoch(epoch, offset) for epoch, offset in (epochs or {0: start}).items()
        ),
        state=state,
    )


def set_epochs(log: Log, epochs: dict[int, int]) -> None:
    """The log's own history."""
    log.leader_epochs.replace(epochs.items())
