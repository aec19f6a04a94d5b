"""Preview of a batch: what it would read."""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.lake.batch.batch_plan import TaskRange
from pipeline.lake.batch.log_view import TopicView
from pipeline.plan.piece import Piece, RemotePiece


class PlannedRange(NamedTuple):
    """Offsets of one partition that a batch would read.

    Attributes:
        start, end: Offsets, exclusive end.
        tasks: That share it.
        segments: Of the bucket, that it is read from.
        size: Bytes of the log, about.
        bucket_share: Of its offsets that are read without a broker, 0 to 1.
    """

    partition: int
    start: int
    end: int
    tasks: int
    segments: int
    size: int
    bucket_share: float


def planned_ranges(
    topic: TopicView, tasks: Sequence[TaskRange], pieces: Sequence[Sequence[Piece]]
) -> list[PlannedRange]:
    """By partition; `pieces` are those of each task."""
    found = []
    for number in sorted({task.partition for task in tasks}):
        mine = [task for task in tasks if task.partition == number]
        read = [
            piece
            for task, some in zip(tasks, pieces, strict=True)
            if task.partition == number
            for piece in some
        ]
        remote = [piece for piece in read if isinstance(piece, RemotePiece)]
        offsets = sum(piece.end_offset - piece.start_offset for piece in read)
        from_bucket = sum(piece.end_offset - piece.start_offset for piece in remote)
        found.append(
            PlannedRange(
                number,
                mine[0].start,
                mine[-1].end,
                len(mine),
                len({piece.segment_id for piece in remote}),
                _size(topic, number, mine),
                from_bucket / offsets if offsets else 0.0,
            )
        )
    return found


def _size(topic: TopicView, number: int, tasks: Sequence[TaskRange]) -> int:
    size = 0
    for span in topic.partitions[number].spans:
        for task in tasks:
            count = min(span.end, task.end) - max(span.start, task.start)
            if count > 0:
                size += span.size * count // (span.end - span.start)
    return size
