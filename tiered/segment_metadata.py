"""Remote log segment metadata (KIP-405), and its state machine.

A segment (KIP-405):

               ┌───────────────────────────────────────────┐
    (none) ──> COPY_SEGMENT_STARTED ──> COPY_SEGMENT_FINISHED │
                        │                      │            │
                        └──────────┬───────────┘            │
                                   v                        │
                        DELETE_SEGMENT_STARTED ──> DELETE_SEGMENT_FINISHED

    every state may be repeated (x -> x); a failed copy goes from COPY_SEGMENT_STARTED straight to
    DELETE_SEGMENT_STARTED; any event after DELETE_SEGMENT_FINISHED is refused.

A partition that is deleted:

    (none) ──> DELETE_PARTITION_MARKED ──> DELETE_PARTITION_STARTED ──> DELETE_PARTITION_FINISHED

Source: Kafka, RemoteLogSegmentState.java, RemotePartitionDeleteState.java,
RemoteLogSegmentMetadata.java.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from typing_extensions import override

from tiered.errors import InvalidTransitionError


class SegmentState(IntEnum):
    """Numbers as in Kafka's records."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """Numbers as in Kafka's records."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


_SEGMENT_STEPS: Final = frozenset(
    {
        (None, SegmentState.COPY_SEGMENT_STARTED),
        (SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED),
        (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED),
        (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED),
        (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED),
    }
)

_PARTITION_STEPS: Final = frozenset(
    {
        (None, PartitionDeleteState.DELETE_PARTITION_MARKED),
        (
            PartitionDeleteState.DELETE_PARTITION_MARKED,
            PartitionDeleteState.DELETE_PARTITION_STARTED,
        ),
        (
            PartitionDeleteState.DELETE_PARTITION_STARTED,
            PartitionDeleteState.DELETE_PARTITION_FINISHED,
        ),
    }
)


def check_segment_step(before: SegmentState | None, after: SegmentState) -> None:
    """Refuse a change of state that the drawing above does not show.

    Raises:
        InvalidTransitionError: It does not.
    """
    if before is not after and (before, after) not in _SEGMENT_STEPS:
        name = "none" if before is None else before.name
        raise InvalidTransitionError(f"a remote segment may not go from {name} to {after.name}")


def check_partition_step(before: PartitionDeleteState | None, after: PartitionDeleteState) -> None:
    """As `check_segment_step`, for the deletion of a partition.

    Raises:
        InvalidTransitionError: The drawing does not show it.
    """
    if before is not after and (before, after) not in _PARTITION_STEPS:
        name = "none" if before is None else before.name
        raise InvalidTransitionError(f"a partition may not go from {name} to {after.name}")


class TopicIdPartition(NamedTuple):
    """A partition of one incarnation of a topic."""

    topic_id: UUID
    topic: str
    partition: int

    @override
    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RemoteLogSegmentId(NamedTuple):
    """One attempt to copy one segment: every attempt has an id of its own."""

    partition: TopicIdPartition
    id: UUID


class SegmentEpoch(NamedTuple):
    """From `offset` on (to the next entry) the segment's records are of `epoch`."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class RemoteLogSegmentMetadata:
    """One remote segment, as `RemoteLogSegmentMetadataRecord` has it.

    Attributes:
        segment_id: See there.
        start_offset: First offset, inclusive: the local segment's base offset.
        end_offset: Last offset, inclusive, as everywhere in KIP-405.
        max_timestamp_ms: Largest timestamp of its records.
        broker_id: Of the broker that copied it.
        event_timestamp_ms: When this state was published.
        segment_size_bytes: Of the `.log` file, before compression or encryption.
        segment_leader_epochs: Ascending, at least one; the first begins at `start_offset`.
        state: See the module.
        custom_metadata: What the storage manager wants to remember; at most 128 bytes.
        txn_index_empty: No transaction was aborted in it (KIP-1057).
    """

    segment_id: RemoteLogSegmentId
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    broker_id: int
    event_timestamp_ms: int
    segment_size_bytes: int
    segment_leader_epochs: tuple[SegmentEpoch, ...]
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    custom_metadata: bytes | None = None
    txn_index_empty: bool = False

    @property
    def partition(self) -> TopicIdPartition:
        """Whose segment it is."""
        return self.segment_id.partition

    @property
    def id(self) -> UUID:
        """Of this copy."""
        return self.segment_id.id

    def with_update(self, update: "RemoteLogSegmentMetadataUpdate") -> "RemoteLogSegmentMetadata":
        """This segment after `update`; the step is not checked here."""
        return self.in_state(
            update.state, update.broker_id, update.event_timestamp_ms, update.custom_metadata
        )

    def in_state(
        self,
        state: SegmentState,
        broker_id: int,
        event_timestamp_ms: int,
        custom_metadata: bytes | None,
    ) -> "RemoteLogSegmentMetadata":
        """As `with_update`, of an update's parts."""
        # `dataclasses.replace` takes four times as long, and a start replays many updates.
        return RemoteLogSegmentMetadata(
            self.segment_id,
            self.start_offset,
            self.end_offset,
            self.max_timestamp_ms,
            broker_id,
            event_timestamp_ms,
            self.segment_size_bytes,
            self.segment_leader_epochs,
            state,
            self.custom_metadata if custom_metadata is None else custom_metadata,
            self.txn_index_empty,
        )

    def as_json(self) -> dict[str, Any]:
        """For manifests and for the tier process; `from_json` reads it."""
        return {
            "topicId": str(self.partition.topic_id),
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "id": str(self.id),
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "maxTimestampMs": self.max_timestamp_ms,
            "brokerId": self.broker_id,
            "eventTimestampMs": self.event_timestamp_ms,
            "segmentSizeInBytes": self.segment_size_bytes,
            "segmentLeaderEpochs": [
                [epoch, offset] for epoch, offset in self.segment_leader_epochs
            ],
            "state": int(self.state),
            "customMetadata": (
                None if self.custom_metadata is None else self.custom_metadata.hex()
            ),
            "txnIndexEmpty": self.txn_index_empty,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "RemoteLogSegmentMetadata":
        """What `as_json` wrote.

        Raises:
            KeyError, ValueError, TypeError: It is something else.
        """
        custom = fields["customMetadata"]
        return cls(
            segment_id=RemoteLogSegmentId(
                TopicIdPartition(
                    UUID(fields["topicId"]), str(fields["topic"]), int(fields["partition"])
                ),
                UUID(fields["id"]),
            ),
            start_offset=int(fields["startOffset"]),
            end_offset=int(fields["endOffset"]),
            max_timestamp_ms=int(fields["maxTimestampMs"]),
            broker_id=int(fields["brokerId"]),
            event_timestamp_ms=int(fields["eventTimestampMs"]),
            segment_size_bytes=int(fields["segmentSizeInBytes"]),
            segment_leader_epochs=tuple(
                SegmentEpoch(int(epoch), int(offset))
                for epoch, offset in fields["segmentLeaderEpochs"]
            ),
            state=SegmentState(fields["state"]),
            custom_metadata=None if custom is None else bytes.fromhex(custom),
            txn_index_empty=bool(fields["txnIndexEmpty"]),
        )


@dataclass(frozen=True, slots=True)
class RemoteLogSegmentMetadataUpdate:
    """A segment's new state, as `RemoteLogSegmentMetadataUpdateRecord` has it."""

    segment_id: RemoteLogSegmentId
    event_timestamp_ms: int
    state: SegmentState
    broker_id: int
    custom_metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class RemotePartitionDelete:
    """How far the deletion of a partition is (`RemotePartitionDeleteMetadataRecord`)."""

    partition: TopicIdPartition
    state: PartitionDeleteState
    event_timestamp_ms: int
    broker_id: int
