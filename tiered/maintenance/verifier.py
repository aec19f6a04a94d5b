"""Verifier: continuously reads remote segments again, at a low rate, and checks their sums.

All finished segments of the cluster, one after the other, round and round; so slowly that on
average `verify_bytes_per_second` are read. A fault is kept with segment and position until a later
round finds the segment whole, or it is gone.

One broker of a cluster does it, its steward, so that each segment is read once in a round, whoever
leads its partition and however often that changes. Where the round is lies in the bucket
(`tiered.maintenance.verified_position`):

    (elsewhere) ──run_once──> loaded ──run_once: next segment, kept once a minute──┐
         ^                      │  ^───────────────────────────────────────────────┘
         └────────leave─────────┘

The next steward goes on there. After one that was killed, or resigned, it reads again what that had
read in its last minute. First come segments that were found faulty: their faults are known to
the broker alone that has found them. Segments are removed by those who lead them, so that once a
minute faults of what is gone are dropped here.
"""

import logging
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from config.tier import TierConfig
from storage.environment.environment import Environment
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageNotReadyError,
    StoreTimeoutError,
    TieredError,
)
from tiered.maintenance.damaged_segments import VERIFIED, DamagedSegments
from tiered.maintenance.verified_position import Position, Verified, VerifiedPosition
from tiered.metadata.remote_log_metadata_manager import PartitionSegments, RemoteLogMetadataManager
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

SAVE_MS: Final = 60_000.0
"""Between two writes of the position: what is read again, at most, after a broker was killed."""

INSPECTION_MS: Final = 30_000.0
"""For the metadata of one partition to be read: where it has no leader, others go on without."""


class SegmentFaults(NamedTuple):
    """What is wrong with one segment, and when that was found (wall clock)."""

    segment: RemoteLogSegmentMetadata
    faults: Sequence[Fault]
    found_ms: int


class Verifier:
    """See the module.

    Attributes:
        position: In the present round; None: it begins.
        rounds: Finished, by all brokers that had a part in them.
        verified_segments, verified_bytes: Read and compared here.
        faulty_segments: Findings, a segment found faulty in each round counting each time.
        errors: Segments that could not be read for now.
    """

    __slots__ = (
        "_clock",
        "_damaged",
        "_faults",
        "_is_loaded",
        "_kept",
        "_metadata",
        "_require_bucket",
        "_saved",
        "_saved_ms",
        "_settings",
        "_suspects",
        "_tier",
        "_timer",
        "_untried",
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
        kept: VerifiedPosition,
        require_bucket: Callable[[], Awaitable[None]],
        damaged: DamagedSegments,
    ) -> None:
        """Nothing runs before `run_once`.

        Args:
            metadata: Knows which segments there are.
            tier: Reads them.
            environment: Of the broker.
            settings: The present ones.
            kept: Where the round goes on.
            require_bucket: Was it the claimed bucket that was looked into; in an empty folder,
                where its disk is not mounted, every object is missing.
            damaged: Where faulty segments are reported.
        """
        self._metadata = metadata
        self._damaged = damaged
        self._require_bucket = require_bucket
        self._tier = tier
        self._clock = environment.clock
        self._timer = environment.timer
        self._settings = settings
        self._kept = kept
        self._is_loaded = False
        self._saved = Verified()
        self._saved_ms = 0.0
        # What an earlier steward has found, until it is verified here or gone; and those of them
        # that are to be looked at before the round goes on.
        self._suspects: dict[UUID, Position] = {}
        self._untried: deque[Position] = deque()
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
        if rate <= 0 or not self._metadata.is_steward:
            return IDLE_MS
        if not self._is_loaded:
            await self._load()
        found = await self._next()
        if found is None:
            await self._save_sometimes()
            return IDLE_MS
        began_ms = self._clock.monotonic_ms()
        try:
            await self.verify(found.segment)
        finally:
            self._metadata.end_inspection(found.inspected)
        took_ms = self._clock.monotonic_ms() - began_ms
        await self._save_sometimes()
        return max(found.segment.segment_size_bytes * 1000.0 / rate - took_ms, 0.0)

    # -- the round -------------------------------------------------------------------------------

    async def _load(self) -> None:
        self._saved = await self._kept.load()
        self._saved_ms = self._clock.monotonic_ms()
        self.rounds, self.position, faulty = self._saved
        self._suspects = {one.segment_id: one for one in faulty[:FAULTS_MAX]}
        self._untried = deque(self._suspects.values())
        self._is_loaded = True

    def leave(self) -> None:
        """Another broker goes on: what is known here of round and faults is out of date."""
        if self._is_loaded:
            self._is_loaded = False
            self.position = None
            self._suspects.clear()
            self._untried.clear()
            self._faults.clear()
            self._report()

    async def save(self) -> None:
        """Keep where the round is, if this broker verifies; raises TieredError."""
        if not self._is_loaded or not self._metadata.is_steward:
            return
        faulty = [*map(Position.of, (one.segment for one in self._faults.values()))]
        faulty = [*faulty, *self._suspects.values()][:FAULTS_MAX]
        verified = Verified(self.rounds, self.position, faulty)
        if verified != self._saved:
            await self._kept.save(verified)
            self._saved = verified
        self._saved_ms = self._clock.monotonic_ms()

    async def _save_sometimes(self) -> None:
        if self._clock.monotonic_ms() - self._saved_ms >= SAVE_MS:
            await self._drop_removed()
            await self.save()

    async def _drop_removed(self) -> None:
        """Drop the faults of segments that other brokers have removed."""
        for one in self.faults:
            segment = one.segment
            inspected = await self._inspect(segment.partition)
            if inspected is not None:
                if not self._is_there(segment):
                    self.forget(segment)
                self._metadata.end_inspection(inspected)

    async def _next(self) -> "_Next | None":
        while self._untried:
            suspect = self._untried.popleft()
            partition = TopicIdPartition(suspect.topic_id, suspect.topic, suspect.partition)
            inspected = await self._inspect(partition)
            if inspected is None:
                continue
            segment = _finished(self._metadata.known_of(partition), suspect.segment_id)
            if segment is not None:
                return _Next(segment, inspected)
            self._suspects.pop(suspect.segment_id, None)
            self._metadata.end_inspection(inspected)
        position = self.position
        found = await self._first_after(position)
        if found is None and position is not None:
            self.rounds += 1
            found = await self._first_after(None)
        self.position = None if found is None else Position.of(found.segment)
        return found

    async def _first_after(self, position: Position | None) -> "_Next | None":
        for partition in sorted(
            self._metadata.known(), key=lambda p: (p.topic, p.partition, p.topic_id)
        ):
            if position is not None and partition[1:] + partition[:1] < position[:3]:
                continue
            inspected = await self._inspect(partition)
            if inspected is None:
                continue
            segment = _first_finished(self._metadata.known_of(partition).segments(), position)
            if segment is not None:
                return _Next(segment, inspected)
            self._metadata.end_inspection(inspected)
        return None

    async def _inspect(self, partition: TopicIdPartition) -> Sequence[TopicIdPartition] | None:
        """Have a partition's metadata at hand, until `end_inspection`; None: it is not known now.

        Raises:
            RemoteStorageNotReadyError: Another broker is the steward.
        """
        try:
            async with Deadline(self._timer, INSPECTION_MS, f"metadata of {partition}"):
                inspected = await self._metadata.begin_inspection(partition)
        except StoreTimeoutError:
            return None
        if self._metadata.is_ready(partition):
            return inspected
        self._metadata.end_inspection(inspected)
        return None

    # -- one segment -----------------------------------------------------------------------------

    async def verify(self, segment: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        """Read one segment again, at once; empty: it is whole, or was removed meanwhile.

        Raises:
            TieredError: It could not be read for now.
        """
        try:
            faults = await self._find_faults(segment)
        except TieredError:
            self.errors += 1
            raise
        if faults and not self._is_there(segment):
            faults = ()
        self.verified_segments += 1
        self.verified_bytes += segment.segment_size_bytes
        if faults:
            self._drop(segment)
            self._keep(segment, faults)
        else:
            self.forget(segment)
        return faults

    async def _find_faults(self, segment: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        size = segment.segment_size_bytes
        deadline_ms = 2 * call_deadline_ms(self._settings().store.call_timeout_ms, 4, size)
        try:
            async with Deadline(self._timer, deadline_ms, f"verifying {segment.id}"):
                faults = await self._tier.verify_segment(segment)
        except CorruptRemoteDataError as error:
            faults = [Fault(error.key, error.position, error.problem)]
        except ObjectNotFoundError as error:
            faults = [Fault(error.key, -1, "the object is missing")]
        if faults:
            # Known faults stay so for a whole round, which may last days.
            await self._require_bucket()
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
        self._report()
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
        """It is being removed, or was."""
        self._drop(segment)
        self._damaged.is_whole(segment)

    def _drop(self, segment: RemoteLogSegmentMetadata) -> None:
        self._faults.pop(segment.id, None)
        self._suspects.pop(segment.id, None)

    def _report(self) -> None:
        self._damaged.found(VERIFIED, (one.segment for one in self._faults.values()))


class _Next(NamedTuple):
    """A segment that is to be verified, and the inspection that ends with it."""

    segment: RemoteLogSegmentMetadata
    inspected: Sequence[TopicIdPartition]


def _finished(known: PartitionSegments, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
    segment = known.segment(segment_id)
    is_finished = segment is not None and segment.state is SegmentState.COPY_SEGMENT_FINISHED
    return segment if is_finished else None


def _first_finished(
    segments: Sequence[RemoteLogSegmentMetadata], position: Position | None
) -> RemoteLogSegmentMetadata | None:
    """The first finished one of a partition after a position, in the order of positions.

    Args:
        segments: Of the partition, ascending by start offset.
        position: Of this partition or an earlier one; None: before all.
    """
    at = 0
    if segments and position is not None and position[:3] == Position.of(segments[0])[:3]:
        at = bisect_left(segments, position.start_offset, key=_start_offset)
    best: RemoteLogSegmentMetadata | None = None
    for place in range(at, len(segments)):
        segment = segments[place]
        if best is not None and segment.start_offset > best.start_offset:
            break
        if (
            segment.state is SegmentState.COPY_SEGMENT_FINISHED
            and (position is None or Position.of(segment) > position)
            and (best is None or segment.id < best.id)
        ):
            best = segment
    return best


def _start_offset(segment: RemoteLogSegmentMetadata) -> int:
    return segment.start_offset
