"""VerifiedPosition: how far the cluster has verified its bucket, kept in the bucket itself.

One broker verifies at a time, and each may be the next. So that a round goes on where the last one
stopped, and does not begin again with every change, what is verified lies in a small object,
`varve-verified.json`:

    {"version": 1, "clusterId": "<Kafka's cluster id>", "rounds": 3,
     "position": ["<topic>", 0, "<topic id>", <start offset>, "<segment id>"],
     "faulty": [[...], ...]}

It is a hint, and never needed: without it, or with one that makes no sense, a round begins. A
broker that was paused may put an older one there: a few segments are read once more then.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from config.tier import TierConfig
from storage.environment.timer import Timer
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import ObjectNotFoundError, RemoteStorageNotReadyError
from tiered.maintenance.bucket_ownership import Claim
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import Tier

VERIFIED_KEY: Final = "varve-verified.json"

VERSION: Final = 1


class Position(NamedTuple):
    """Where a round is: after this segment. Ordered as the round goes."""

    topic: str
    partition: int
    topic_id: UUID
    start_offset: int
    segment_id: UUID

    @classmethod
    def of(cls, segment: RemoteLogSegmentMetadata) -> "Position":
        """Of a segment."""
        partition = segment.partition
        return cls(
            partition.topic,
            partition.partition,
            partition.topic_id,
            segment.start_offset,
            segment.id,
        )


class Verified(NamedTuple):
    """What is kept.

    Attributes:
        rounds: Finished.
        position: Of the present one; None: it begins.
        faulty: Segments whose faults are known: who goes on looks at them first.
    """

    rounds: int = 0
    position: Position | None = None
    faulty: Sequence[Position] = ()


class VerifiedPosition:
    """See the module; of a bucket that another cluster has claimed nothing is read or written."""

    __slots__ = ("_claim", "_settings", "_tier", "_timer")

    def __init__(
        self, *, tier: Tier, claim: Claim, timer: Timer, settings: Callable[[], TierConfig]
    ) -> None:
        """Read nothing yet."""
        self._tier = tier
        self._claim = claim
        self._timer = timer
        self._settings = settings

    def _deadline(self, what: str) -> Deadline:
        return Deadline(
            self._timer, call_deadline_ms(self._settings().store.call_timeout_ms, 2), what
        )

    async def load(self) -> Verified:
        """What was kept last; raises TieredError: that is unknown for now."""
        async with self._deadline("reading how far segments are verified"):
            try:
                await self._claim.require_ours()
                data = await self._tier.get_object(VERIFIED_KEY)
            except (ObjectNotFoundError, RemoteStorageNotReadyError):
                return Verified()
        return decode(data, self._claim.cluster_id)

    async def save(self, verified: Verified) -> None:
        """Keep it; raises TieredError."""
        async with self._deadline("keeping how far segments are verified"):
            try:
                await self._claim.require_ours()
            except RemoteStorageNotReadyError:
                return
            await self._tier.put_object(VERIFIED_KEY, encode(verified, self._claim.cluster_id))


def encode(verified: Verified, cluster_id: str) -> bytes:
    """See the module."""
    position = verified.position
    return json.dumps(
        {
            "version": VERSION,
            "clusterId": cluster_id,
            "rounds": verified.rounds,
            "position": None if position is None else _fields(position),
            "faulty": [_fields(one) for one in verified.faulty],
        }
    ).encode()


def _fields(position: Position) -> list[object]:
    return [field.hex if isinstance(field, UUID) else field for field in position]


def decode(data: bytes, cluster_id: str) -> Verified:
    """What `encode` wrote for this cluster; nothing for anything else."""
    try:
        fields = json.loads(data)
        if fields["clusterId"] != cluster_id or fields["version"] != VERSION:
            return Verified()
        position = fields["position"]
        return Verified(
            int(fields["rounds"]),
            None if position is None else _position(position),
            [_position(one) for one in fields["faulty"]],
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return Verified()


def _position(fields: list[object]) -> Position:
    topic, partition, topic_id, start_offset, segment_id = fields
    if not (
        isinstance(topic, str)
        and isinstance(partition, int)
        and isinstance(topic_id, str)
        and isinstance(start_offset, int)
        and isinstance(segment_id, str)
    ):
        raise TypeError(f"no position: {fields!r}")
    return Position(topic, partition, UUID(topic_id), start_offset, UUID(segment_id))
