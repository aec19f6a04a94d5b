"""Verifier: continuously reads remote segments again, at a low rate, and checks their sums.

All finished segments of the partitions led here, one after the other, round and round; so slowly
that on average `verify_bytes_per_second` are read. A fault is kept with segment and position until
a later round finds the segment whole, or it is gone.
"""

import logging
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from config.tier import TierConfig
from storage.environment.environment import Environment
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageNotReadyError,
    TieredError,
)
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    SegmentState,
    TopicIdPartition,
)
from tiered.tier import Fault, Tier

_log = logging.getLogger(__name__)

FAULTS_MAX: Final = 1_000
"""Segments whose faults are kept; of more, the oldest go."""

IDLE_MS: Final = 60_000.0
"""Until the next check when there is nothing to verify, or it is switched off."""


class SegmentFaults(NamedTuple):
    """What is wrong with one segment, and when that was found (wall clock)."""

    segment: RemoteLogSegmentMetadata
    faults: Sequence[Fault]
    found_ms: int


class Position(NamedTuple):
    """Where the round is: after this segment. Ordered as the round goes."""

    topic: str
    partition: int
    topic_id: UUID
    start_offset: int
    segment_id: UUID


class Verifier:
    """See the module.

    Attributes:
        position: May be set, to go on where another process stopped.
        rounds: Finished.
        verified_segments, verified_bytes: Read and compared.
        faulty_segments: Findings, a segment found faulty in each round counting each time.
        errors: Segments that could not be read for now.
    """

    __slots__ = (
        "_clock",
        "_faults",
        "_led",
        "_metadata",
        "_settings",
        "_tier",
        "_timer",
        "errors",
        "faulty_segments",
        "position",
        "rounds",
        "verified_bytes",
        "verified_segments",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        environment: Environment,
        settings: Callable[[], TierConfig],
        led: Callable[[], Iterable[TopicIdPartition]],
    ) -> None:
        """Nothing runs before `run_once`; `led` gives the partitions led here."""
        self._metadata = metadata
        self._tier = tier
        self._clock = environment.clock
        self._timer = environment.timer
        self._settings = settings
        self._led = led
        self._faults: OrderedDict[UUID, SegmentFaults] = OrderedDict()
        self.position: Position | None = None
        self.rounds = 0
        self.verified_segments = 0
        self.verified_bytes = 0
        self.faulty_segments = 0
        self.errors = 0

    @property
    def faults(self) -> Sequence[SegmentFaults]:
        """Segments known to be faulty, in the order they were found; at most `FAULTS_MAX`."""
        return tuple(self._faults.values())

    async def run_once(self) -> float:
        """Verify the next segment; returns how long to wait before the one after it, in ms.

        Raises:
            TieredError: The segment could not be read for now; the round goes on after it.
        """
        rate = self._settings().verify_bytes_per_second
        segment = self._next() if rate > 0 else None
        if segment is None:
            return IDLE_MS
        began_ms = self._clock.monotonic_ms()
        await self.verify(segment)
        took_ms = self._clock.monotonic_ms() - began_ms
        return max(segment.segment_size_bytes * 1000.0 / rate - took_ms, 0.0)

    def _next(self) -> RemoteLogSegmentMetadata | None:
        partitions = sorted(self._led(), key=lambda p: (p.topic, p.partition, p.topic_id))
        position = self.position
        segment = self._first_after(partitions, position)
        if segment is None and position is not None:
            self.rounds += 1
            segment = self._first_after(partitions, None)
        self.position = None if segment is None else _position_of(segment)
        return segment

    def _first_after(
        self, partitions: Sequence[TopicIdPartition], position: Position | None
    ) -> RemoteLogSegmentMetadata | None:
        for partition in partitions:
            if position is not None and partition[1:] + partition[:1] < position[:3]:
                continue
            if not self._metadata.is_ready(partition):
                continue
            found = _first_finished(self._metadata.known_of(partition).segments(), position)
            if found is not None:
                return found
        return None

    async def verify(self, segment: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        """Read one segment again, at once; empty: it is whole, or was removed meanwhile.

        Raises:
            TieredError: It could not be read for now.
        """
        size = segment.segment_size_bytes
        deadline_ms = 2 * call_deadline_ms(self._settings().store.call_timeout_ms, 4, size)
        try:
            async with Deadline(self._timer, deadline_ms, f"verifying {segment.id}"):
                faults = await self._tier.verify_segment(segment)
        except CorruptRemoteDataError as error:
            faults = [Fault(error.key, error.position, error.problem)]
        except ObjectNotFoundError as error:
            faults = [Fault(error.key, -1, "the object is missing")]
        except TieredError:
            self.errors += 1
            raise
        if faults and not self._is_there(segment):
            faults = ()
        self.verified_segments += 1
        self.verified_bytes += size
        self._faults.pop(segment.id, None)
        if faults:
            self._keep(segment, faults)
        return faults

    def _is_there(self, segment: RemoteLogSegmentMetadata) -> bool:
        """It was not removed while it was being read."""
        try:
            present = self._metadata.known_of(segment.partition).segment(segment.id)
        except RemoteStorageNotReadyError:
            return False
        return present is not None and present.state is SegmentState.COPY_SEGMENT_FINISHED

    def _keep(self, segment: RemoteLogSegmentMetadata, faults: Sequence[Fault]) -> None:
        self.faulty_segments += 1
        self._faults[segment.id] = SegmentFaults(segment, tuple(faults), self._clock.now_ms())
        while len(self._faults) > FAULTS_MAX:
            self._faults.popitem(last=False)
        for fault in faults:
            _log.error(
                "%s: remote segment %s (offsets %d to %d) is corrupt: %s at byte %d: %s",
                segment.partition,
                segment.id,
                segment.start_offset,
                segment.end_offset,
                fault.key,
                fault.position,
                fault.problem,
            )

    def forget(self, segment: RemoteLogSegmentMetadata) -> None:
        """It is being removed."""
        self._faults.pop(segment.id, None)


def _first_finished(
    segments: Sequence[RemoteLogSegmentMetadata], position: Position | None
) -> RemoteLogSegmentMetadata | None:
    """The first finished one of a partition after a position, in the order of positions.

    Args:
        segments: Of the partition, ascending by start offset.
        position: Of this partition or an earlier one; None: before all.
    """
    at = 0
    if segments and position is not None and position[:3] == _position_of(segments[0])[:3]:
        at = bisect_left(segments, position.start_offset, key=_start_offset)
    best: RemoteLogSegmentMetadata | None = None
    for place in range(at, len(segments)):
        segment = segments[place]
        if best is not None and segment.start_offset > best.start_offset:
            break
        if (
            segment.state is SegmentState.COPY_SEGMENT_FINISHED
            and (position is None or _position_of(segment) > position)
            and (best is None or segment.id < best.id)
        ):
            best = segment
    return best


def _start_offset(segment: RemoteLogSegmentMetadata) -> int:
    return segment.start_offset


def _position_of(segment: RemoteLogSegmentMetadata) -> Position:
    partition = segment.partition
    return Position(
        partition.topic, partition.partition, partition.topic_id, segment.start_offset, segment.id
    )
