"""Publishing events of the remote log's metadata: by this broker, now, and within a deadline.

Every event carries the id of the broker that publishes it and the time. One that is not known to
be written after `METADATA_DEADLINE_MS` ends in StoreTimeoutError, and may be written all the same.

Source: Kafka, RemoteLogManager.java (updateRemoteLogSegmentMetadata).
"""

from storage.environment.environment import Environment
from tiered.deadline import METADATA_DEADLINE_MS, Deadline
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentState,
    TopicIdPartition,
)


class MetadataPublisher:
    """See the module. All raise as `RemoteLogMetadataManager` does, and StoreTimeoutError.

    Attributes:
        broker_id: Of this broker.
    """

    __slots__ = ("_clock", "_metadata", "_timer", "broker_id")

    def __init__(
        self, metadata: RemoteLogMetadataManager, environment: Environment, broker_id: int
    ) -> None:
        self._metadata = metadata
        self._clock = environment.clock
        self._timer = environment.timer
        self.broker_id = broker_id

    async def copy_started(self, segment: RemoteLogSegmentMetadata) -> None:
        """Publish COPY_SEGMENT_STARTED of a new segment."""
        async with self._deadline(f"publishing COPY_SEGMENT_STARTED of {segment.id}"):
            await self._metadata.add(segment)

    async def segment_state(
        self,
        segment: RemoteLogSegmentMetadata,
        state: SegmentState,
        custom_metadata: bytes | None = None,
    ) -> None:
        """Publish a segment's next state."""
        update = RemoteLogSegmentMetadataUpdate(
            segment_id=segment.segment_id,
            event_timestamp_ms=self._clock.now_ms(),
            state=state,
            broker_id=self.broker_id,
            custom_metadata=custom_metadata,
        )
        async with self._deadline(f"publishing {state.name} of {segment.id}"):
            await self._metadata.update(update)

    async def partition_state(
        self, partition: TopicIdPartition, state: PartitionDeleteState
    ) -> None:
        """Publish how far the deletion of a partition is."""
        deletion = RemotePartitionDelete(
            partition=partition,
            state=state,
            event_timestamp_ms=self._clock.now_ms(),
            broker_id=self.broker_id,
        )
        async with self._deadline(f"publishing {state.name} of {partition}"):
            await self._metadata.delete_partition(deletion)

    def finished(self, segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        """The segment as COPY_SEGMENT_FINISHED, by this broker and now; publishes nothing."""
        return segment.in_state(
            SegmentState.COPY_SEGMENT_FINISHED,
            self.broker_id,
            self._clock.now_ms(),
            segment.custom_metadata,
        )

    def _deadline(self, what: str) -> Deadline:
        return Deadline(self._timer, METADATA_DEADLINE_MS, what)
