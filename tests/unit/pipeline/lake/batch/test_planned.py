"""What `varve pipeline plan` tells."""

from uuid import UUID

from pipeline.lake.batch.batch_plan import Span, TaskRange
from pipeline.lake.batch.log_view import PartitionView, TopicView
from pipeline.lake.batch.planned import PlannedRange, planned_ranges
from pipeline.plan.piece import BrokerPiece, PartitionName, Piece, RemotePiece

NAME = PartitionName("orders", UUID(int=1), 0)


def remote(segment: int, start: int, end: int) -> RemotePiece:
    return RemotePiece(NAME, UUID(int=segment), 0, 0, 100, start, end)


def test_each_partition_has_a_line() -> None:
    """Segments are counted once, however many pieces they have; the share is of offsets."""
    topic = TopicView(
        "orders",
        UUID(int=1),
        {
            0: PartitionView(0, 100, (Span(0, 60, 6000), Span(60, 100, 400))),
            1: PartitionView(0, 5, (Span(0, 5, 50),)),
        },
    )
    tasks = [TaskRange(0, 0, 50), TaskRange(0, 50, 80), TaskRange(1, 0, 5)]
    pieces: list[tuple[Piece, ...]] = [
        (remote(1, 0, 30), remote(1, 30, 50)),
        (remote(2, 50, 60), BrokerPiece(NAME, 3, 60, 80)),
        (BrokerPiece(NAME._replace(partition=1), 3, 0, 5),),
    ]
    assert planned_ranges(topic, tasks, pieces) == [
        PlannedRange(0, 0, 80, 2, 2, 6200, 0.75),
        PlannedRange(1, 0, 5, 1, 0, 50, 0.0),
    ]
    assert planned_ranges(topic, [], []) == []
