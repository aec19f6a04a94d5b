"""A log for lake jobs that is made of numbers: any range of it can be read, as often as wanted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

import pyarrow as pa

from pipeline.lake.batch.batch_plan import Span, TaskRange
from pipeline.lake.batch.log_view import PartitionView, TopicView
from pipeline.plan.piece import BrokerPiece, PartitionName, Piece

TOPIC_ID = UUID("6f2b5a52-7b9b-4d6c-8d36-0b57f0d2a111")

RECORD_BYTES = 100

HOUR_MS = 3_600_000


class FakeLog:
    """Partitions by number with (start, end); offsets that are a marker's have no row."""

    def __init__(
        self,
        partitions: Mapping[int, tuple[int, int]],
        *,
        topic: str = "orders",
        topic_id: UUID = TOPIC_ID,
        gaps: Mapping[int, Sequence[tuple[int, int]]] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = dict(partitions)
        self.gaps = gaps or {}
        self.looks = 0

    def view(self) -> TopicView:
        self.looks += 1
        views = {}
        for number, (start, end) in self.partitions.items():
            spans = []
            reached = start
            for gap_start, gap_end in (*self.gaps.get(number, ()), (end, end)):
                if reached < gap_start:
                    spans.append(Span(reached, gap_start, (gap_start - reached) * RECORD_BYTES))
                reached = max(reached, gap_end)
            views[number] = PartitionView(start, end, tuple(spans))
        return TopicView(self.topic, self.topic_id, views)

    def aligned(self, tasks: Sequence[TaskRange]) -> Sequence[TaskRange]:
        return tasks

    def pieces(self, tasks: Sequence[TaskRange]) -> Sequence[tuple[Piece, ...]]:
        return [
            (
                BrokerPiece(
                    PartitionName(self.topic, self.topic_id, task.partition),
                    -1,
                    task.start,
                    task.end,
                ),
            )
            for task in tasks
        ]

    def offset_for_time(self, partition: int, time_ms: int) -> int | None:
        """A record's time is its offset in hours, see `read_rows`."""
        start, end = self.partitions[partition]
        first = max(start, -(-time_ms // HOUR_MS))
        return first if first < end else None


def is_marker(offset: int) -> bool:
    """Every tenth record is a transaction's marker: an offset without a row."""
    return offset % 10 == 9


def is_bad(offset: int) -> bool:
    """Every 25th row's value is no JSON."""
    return offset % 25 == 3


def read_rows(piece: Piece, batch_rows: int = 7) -> Iterator[pa.RecordBatch]:
    """What a real reader gives for a piece, in batches of any length."""
    offsets = [o for o in range(piece.start_offset, piece.end_offset) if not is_marker(o)]
    for begin in range(0, len(offsets), batch_rows):
        some = offsets[begin : begin + batch_rows]
        yield pa.record_batch(
            {
                "key": pa.array([f"k{o % 5}".encode() for o in some], pa.binary()),
                "value": pa.array([value_of(o) for o in some], pa.binary()),
                "topic": pa.array([piece.partition.topic] * len(some)),
                "partition": pa.array([piece.partition.partition] * len(some), pa.int32()),
                "offset": pa.array(some, pa.int64()),
                "timestamp": pa.array(
                    [o * 3_600_000_000 for o in some], pa.timestamp("us", tz="UTC")
                ),
            }
        )


def value_of(offset: int) -> bytes:
    """JSON, but for those that are bad."""
    if is_bad(offset):
        return b"{no json"
    return json.dumps({"id": offset, "name": f"n{offset}"}).encode()


def rows_of(partitions: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """(partition, offset) of every row that a table must have, each once."""
    return [
        (partition, offset)
        for partition, (start, end) in sorted(partitions.items())
        for offset in range(start, end)
        if not is_marker(offset)
    ]
