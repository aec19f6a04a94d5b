"""Segments whose objects are missing from the bucket or damaged: an alert for each partition.

Two find them: garbage collection, which lists the bucket (`LISTED`), and the verifier, which reads
it (`VERIFIED`). Each says all that it knows of, whenever that has changed. A segment that is found
whole, or removed, is dropped whichever of the two had found it.

Reads of such a segment fail and are not passed over, so that its consumers wait until its objects
are back as they were, or an operator gives the records up.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from storage.environment.alerts import AlertKind, Alerts
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition

LISTED: Final = "listed"
VERIFIED: Final = "verified"


class DamagedSegments:
    """See the module. On the loop's thread."""

    __slots__ = ("_alerts", "_found", "_partitions")

    def __init__(self, alerts: Alerts) -> None:
        """None so far."""
        self._alerts = alerts
        self._found: dict[str, dict[UUID, RemoteLogSegmentMetadata]] = {LISTED: {}, VERIFIED: {}}
        self._partitions: set[TopicIdPartition] = set()

    def found(self, by: str, segments: Iterable[RemoteLogSegmentMetadata]) -> None:
        """All segments that `by` (`LISTED`, `VERIFIED`) knows to be damaged."""
        known = {one.id: one for one in segments}
        if known.keys() != self._found[by].keys():
            self._found[by] = known
            self._report()

    def is_whole(self, segment: RemoteLogSegmentMetadata) -> None:
        """It was read and nothing is wrong, or it is being removed."""
        known = [found.pop(segment.id, None) for found in self._found.values()]
        if any(known):
            self._report()

    def _report(self) -> None:
        by_partition: dict[TopicIdPartition, dict[UUID, RemoteLogSegmentMetadata]] = {}
        for found in self._found.values():
            for one in found.values():
                by_partition.setdefault(one.partition, {})[one.id] = one
        for partition, segments in by_partition.items():
            ordered = sorted(segments.values(), key=lambda one: (one.start_offset, one.id))
            self._alerts.set(AlertKind.TIER_SEGMENT_DAMAGED, str(partition), _text(ordered))
        for partition in self._partitions - by_partition.keys():
            self._alerts.clear(AlertKind.TIER_SEGMENT_DAMAGED, str(partition))
        self._partitions = set(by_partition)


def _text(segments: Sequence[RemoteLogSegmentMetadata]) -> str:
    first, last = segments[0], segments[-1]
    topic, number, behind = *first.partition[1:], last.end_offset + 1
    return (
        f"objects of {len(segments)} remote segments are missing from the bucket or damaged (the "
        f"first from offset {first.start_offset} on, the last to offset {last.end_offset}): "
        "consumers that come to them wait there, and nothing is passed over. Put the objects back "
        "from another version or a copy of the bucket, then run `varve tier verify "
        f"{topic}-{number}`, which names them. If they are lost, delete their records and all "
        f"older ones (`varve topics delete-records {topic} --partition {number} --before-offset "
        f"{behind}`) or have consumers go on behind them (`varve groups reset-offsets`)"
    )
