"""From ranges of offsets to pieces: who is asked for what, and what is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.partition_log import DamagedObject
from pipeline.plan.piece import BrokerPiece, Piece, RemotePiece
from pipeline.plan.splits import PIECES_MAX
from pipeline.read.read_errors import LostOffsetsError, ReadError
from pipeline.source.data_loss import PlanLosses
from pipeline.source.options.options import SourceOptions, parse_options
from pipeline.source.partition_view import OffsetSpan, PartitionView
from pipeline.source.source_plan import plan_spans, split_by_offsets
from storage.types.topic_partition import TopicPartition
from tests.unit.pipeline.plan.bucket_world import BucketWorld
from tests.unit.pipeline.source.views import ONE, ZERO, broker_view, bucket_view, name_of

OPTIONS = parse_options({"path": "/tier", "subscribe": "t"})
LENIENT = parse_options({"path": "/tier", "subscribe": "t", "failOnDataLoss": "false"})

Asked = list[tuple[str, int, int]]


async def plan(
    view: PartitionView, start: int, end: int, options: SourceOptions = OPTIONS
) -> tuple[Asked, PlanLosses]:
    """Who is asked for which offsets of partition 0."""
    losses = PlanLosses(fail=options.fail_on_data_loss)
    bucket = BucketWorld().bucket
    views, spans = {ZERO: view}, {ZERO: OffsetSpan(start, end)}
    pieces = await plan_spans(bucket, options, views, spans, losses)
    return [who_and_what(piece) for piece in pieces], losses


def who_and_what(piece: Piece) -> tuple[str, int, int]:
    who = "bucket" if isinstance(piece, RemotePiece) else "broker"
    return who, piece.start_offset, piece.end_offset


async def test_a_bucket_gives_a_piece_a_segment() -> None:
    asked, _ = await plan(bucket_view(ZERO, (0, 40, 400), (40, 60, 200)), 0, 60)
    assert asked == [("bucket", 0, 40), ("bucket", 40, 60)]


async def test_the_broker_gives_what_is_behind_the_handover() -> None:
    view = broker_view(ZERO, 0, 100, (0, 40, 400), (40, 60, 200))
    asked, _ = await plan(view, 0, 100)
    assert asked == [("bucket", 0, 40), ("bucket", 40, 60), ("broker", 60, 100)]


async def test_what_the_bucket_lacks_is_asked_of_the_broker() -> None:
    """Before its first segment, in a gap, and behind its stable end."""
    view = broker_view(ZERO, 0, 100, (10, 40, 400), (50, 60, 200), gaps=[(40, 50)])
    asked, _ = await plan(view, 0, 70)
    assert asked == [
        ("broker", 0, 10),
        ("bucket", 10, 40),
        ("broker", 40, 50),
        ("bucket", 50, 60),
        ("broker", 60, 70),
    ]


async def test_without_a_broker_a_gap_is_lost() -> None:
    view = bucket_view(ZERO, (0, 40, 400), (50, 60, 200), gaps=[(40, 50)])
    with pytest.raises(LostOffsetsError, match="offsets 40 to 49"):
        await plan(view, 0, 60)
    asked, losses = await plan(view, 0, 60, LENIENT)
    assert asked == [("bucket", 0, 40), ("bucket", 50, 60)]
    assert losses.sentences == ("t-0: offsets 40 to 49 (no segment of the bucket has them)",)


async def test_offsets_outside_of_the_log_are_lost() -> None:
    view = bucket_view(ZERO, (10, 60, 500))
    with pytest.raises(LostOffsetsError, match=r"offsets 5 to 9 .* begins at offset 10"):
        await plan(view, 5, 60)
    with pytest.raises(LostOffsetsError, match=r"offsets 60 to 69 .* ends at offset 60"):
        await plan(view, 10, 70)
    asked, losses = await plan(view, 5, 70, LENIENT)
    assert asked == [("bucket", 10, 60)]
    assert len(losses.sentences) == 2


@pytest.mark.parametrize(("start", "end"), [(0, 5), (70, 80), (0, 10), (60, 70)])
async def test_a_span_that_is_lost_whole_gives_nothing(start: int, end: int) -> None:
    asked, losses = await plan(bucket_view(ZERO, (10, 60, 500)), start, end, LENIENT)
    assert asked == []
    assert len(losses.sentences) == 1


async def test_empty_spans_ask_nobody() -> None:
    view = broker_view(ZERO, 10, 100, (10, 60, 500))
    for offset in (0, 10, 30, 60, 100, 120):
        asked, losses = await plan(view, offset, offset)
        assert asked == []
        assert losses.sentences == ()


async def test_a_partition_of_which_nothing_was_copied_gives_nothing() -> None:
    asked, _ = await plan(PartitionView(name_of(ZERO), 0, 0), 0, 0)
    assert asked == []
    asked, _ = await plan(broker_view(ZERO, 3, 8), 3, 8)
    assert asked == [("broker", 3, 8)]


def damaged(start_offset: int) -> DamagedObject:
    return DamagedObject("t-x/0/key.rsm-manifest", 17, "its sum is wrong", start_offset)


async def test_a_damaged_object_whose_offsets_nobody_has_is_an_error() -> None:
    """Whether it was in a gap or beyond the end: then nobody knows where the log ends."""
    in_gap = bucket_view(ZERO, (0, 40, 400), (50, 60, 9), gaps=[(40, 50)], damaged=[damaged(40)])
    beyond = bucket_view(ZERO, (0, 40, 400), damaged=[damaged(40)])
    for view in (in_gap, beyond):
        with pytest.raises(ReadError, match=r"key.rsm-manifest at byte 17: its sum is wrong"):
            await plan(view, 0, 40 if view is beyond else 60)
    _, losses = await plan(beyond, 0, 40, LENIENT)
    assert len(losses.sentences) == 1


async def test_a_damaged_object_whose_offsets_another_has_does_not_matter() -> None:
    copied = bucket_view(ZERO, (0, 40, 400), damaged=[damaged(20)])
    assert (await plan(copied, 0, 40))[0] == [("bucket", 0, 40)]
    with_broker = broker_view(ZERO, 0, 50, (0, 40, 400), damaged=[damaged(40)])
    assert (await plan(with_broker, 0, 50))[0] == [("bucket", 0, 40), ("broker", 40, 50)]


async def test_pieces_are_in_the_order_of_partitions_and_offsets() -> None:
    views = {
        ONE: broker_view(ONE, 0, 20, (0, 10, 100)),
        ZERO: broker_view(ZERO, 0, 20, (0, 10, 100)),
    }
    spans = {partition: OffsetSpan(0, 20) for partition in views}
    pieces = await plan_spans(BucketWorld().bucket, OPTIONS, views, spans, PlanLosses(fail=True))
    assert [(piece.partition.partition, piece.start_offset) for piece in pieces] == [
        (0, 0),
        (0, 10),
        (1, 0),
        (1, 10),
    ]


def broker_piece(partition: TopicPartition, start: int, end: int) -> BrokerPiece:
    return BrokerPiece(name_of(partition), 5, start, end)


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 1000)), max_size=5),
    st.integers(0, 40),
    st.none() | st.integers(1, 300),
)
def test_a_split_loses_no_offset(
    spans: list[tuple[int, int]], min_pieces: int, max_records: int | None
) -> None:
    pieces = [
        broker_piece(TopicPartition("t", number), start, start + size)
        for number, (start, size) in enumerate(spans)
    ]
    split = split_by_offsets(pieces, min_pieces, max_records)
    offsets = [
        (piece.partition.partition, offset)
        for piece in split
        for offset in range(piece.start_offset, piece.end_offset)
    ]
    assert offsets == [
        (piece.partition.partition, offset)
        for piece in pieces
        for offset in range(piece.start_offset, piece.end_offset)
    ]
    assert all(piece.start_offset < piece.end_offset for piece in split)
    if max_records is not None:
        assert all(piece.end_offset - piece.start_offset <= max_records for piece in split)
    assert len(split) < PIECES_MAX


def test_larger_partitions_are_split_more() -> None:
    """As Spark's Kafka source splits them."""
    split = split_by_offsets([broker_piece(ZERO, 0, 900), broker_piece(ONE, 0, 100)], 10, None)
    assert [piece.partition.partition for piece in split] == [0] * 9 + [1]


async def test_rows_that_may_be_aborted_are_asked_of_the_broker() -> None:
    """The marker of 5 .. 7 was in a segment that is gone; nothing in the bucket tells of it."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(5)
    leader.transaction(7, 3)
    leader.roll()
    leader.finish(7, commit=False)
    leader.roll()
    leader.write()
    leader.roll()
    world.remove((await world.copy(leader))[1])
    log = await world.log()
    view = PartitionView(log.partition, 0, 10, log, 10, True, 0)
    read_committed = {"path": "/tier", "subscribe": "t", "isolationLevel": "read_committed"}
    committed = parse_options(read_committed)
    lenient = parse_options({**read_committed, "failOnDataLoss": "false"})

    async def ranges(of: PartitionView, options: SourceOptions) -> tuple[Asked, PlanLosses]:
        losses = PlanLosses(fail=options.fail_on_data_loss)
        spans = {ZERO: OffsetSpan(0, 10)}
        pieces = await plan_spans(world.bucket, options, {ZERO: of}, spans, losses)
        return [who_and_what(one) for one in pieces], losses

    asked, _ = await ranges(view, committed)
    assert asked == [("bucket", 0, 5), ("broker", 5, 9), ("bucket", 9, 10)]
    asked, _ = await ranges(view, OPTIONS)
    assert asked == [("bucket", 0, 8), ("broker", 8, 9), ("bucket", 9, 10)]
    alone = view._replace(has_broker=False)
    with pytest.raises(LostOffsetsError, match=r"offsets 5 to 8 .* how their transactions ended"):
        await ranges(alone, committed)
    asked, losses = await ranges(alone, lenient)
    assert asked == [("bucket", 0, 5), ("bucket", 9, 10)]
    assert "5 to 8" in losses.sentences[0]
