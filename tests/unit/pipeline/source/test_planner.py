"""The driver's side of a read, over a bucket with real segments."""

from uuid import UUID

import pytest

from pipeline.plan.bucket import Bucket, BucketOptions
from pipeline.plan.errors import PlanError, TopicError
from pipeline.read.read_errors import LostOffsetsError
from pipeline.source.options.options import Query, parse_options
from pipeline.source.partition_view import OffsetSpan
from pipeline.source.planner import Planner
from storage.types.topic_partition import TopicPartition
from tests.unit.pipeline.plan.bucket_world import PARTITION, BucketWorld
from tests.unit.storage.log.log_model import NOW_MS, TOPIC_ID
from tiered.errors import RemoteStorageError
from tiered.metadata.history import HistoryState
from tiered.segment_metadata import TopicIdPartition

ZERO = TopicPartition("t", 0)


def planner(world: BucketWorld, **given: str) -> Planner:
    """One that opens the world's bucket."""
    merged = {"path": "/tier", "subscribe": "t", **given}
    options = parse_options({name: text for name, text in merged.items() if text}, Query.BATCH)

    async def opener(_: BucketOptions) -> Bucket:
        world.store.closed = False  # by whoever read before
        return world.open()

    return Planner(options, opener)


async def world_of(*sizes: int, partitions: int = 1) -> BucketWorld:
    """Segments of so many records each."""
    world = BucketWorld()
    leader = world.replica("a")
    for size in sizes:
        leader.write(size)
        leader.roll()
    await world.copy(leader, partitions=partitions)
    return world


async def test_a_read_is_planned_whole() -> None:
    world = await world_of(5, 7)
    with planner(world) as driver:
        views = driver.view()
        assert [(view.start, view.end) for view in views.values()] == [(0, 12)]
        spans = driver.batch_spans(views)
        assert spans == {ZERO: OffsetSpan(0, 12)}
        plan = driver.plan(views, spans)
    assert [(piece.start_offset, piece.end_offset) for piece in plan.pieces] == [(0, 5), (5, 12)]
    assert plan.losses.sentences == ()


async def test_committed_rows_end_at_the_first_open_transaction() -> None:
    """Its outcome is not in the bucket; uncommitted rows go on to the end."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(3)
    leader.transaction(7, 4)
    leader.roll()
    await world.copy(leader)
    for level, end in (("read_committed", 3), ("read_uncommitted", 7)):
        with planner(world, isolationLevel=level) as driver:
            views = driver.view()
            assert views[ZERO].end == end
            [piece] = driver.plan(views, driver.batch_spans(views)).pieces
            assert piece.end_offset == end


async def test_a_time_in_a_missing_segment_is_a_loss_and_not_passed_over() -> None:
    """Record n has the time NOW_MS + n; 5 .. 11 are missing."""
    world = BucketWorld()
    leader = world.replica("a")
    for size in (5, 7, 5):
        leader.write(size)
        leader.roll()
    world.remove((await world.copy(leader))[1])

    def span(**given: str) -> OffsetSpan:
        with planner(world, **given) as driver:
            views = driver.view()
            spans = driver.batch_spans(views)
            driver.plan(views, spans)
            return spans[ZERO]

    assert span(startingTimestamp=str(NOW_MS + 13)) == OffsetSpan(13, 17)
    for time_ms in (NOW_MS + 8, NOW_MS + 12):
        with pytest.raises(LostOffsetsError, match="offsets 5 to 11"):
            span(startingTimestamp=str(time_ms))
        lenient = span(startingTimestamp=str(time_ms), failOnDataLoss="false")
        assert lenient == OffsetSpan(5, 17)
    assert span(endingTimestamp=str(NOW_MS + 3)) == OffsetSpan(0, 3)
    with pytest.raises(LostOffsetsError, match="offsets 5 to 11"):
        span(endingTimestamp=str(NOW_MS + 8))


async def test_times_are_looked_up_in_the_bucket() -> None:
    """Record n has the time NOW_MS + n."""
    world = await world_of(5, 7)
    given = {"startingTimestamp": str(NOW_MS + 4), "endingTimestamp": str(NOW_MS + 9)}
    with planner(world, **given) as driver:
        views = driver.view()
        assert driver.batch_spans(views) == {ZERO: OffsetSpan(4, 9)}
        spans = {ZERO: OffsetSpan(2, 12)}
        assert driver.since(views, spans, NOW_MS + 6) == {ZERO: OffsetSpan(6, 12)}
        assert driver.since(views, spans, NOW_MS - 5) == spans
        assert driver.since(views, spans, NOW_MS + 99) == {ZERO: OffsetSpan(12, 12)}


async def test_partitions_of_which_nothing_was_copied_are_there_and_empty() -> None:
    world = await world_of(5, partitions=3)
    with planner(world) as driver:
        views = driver.view()
        ends = [view.end for view in views.values()]
        assert ends == [5, 0, 0]
        assert len(driver.plan(views, driver.batch_spans(views)).pieces) == 1


async def test_a_topic_that_is_not_there_is_an_error() -> None:
    """Whoever names it wants its rows; a pattern may match none."""
    world = await world_of(5)
    missing = pytest.raises(TopicError, match="there is no topic other in")
    with planner(world, subscribe="t,other") as driver, missing:
        driver.view()
    with planner(world, subscribe="", subscribePattern="x.*") as driver:
        assert driver.view() == {}
    beyond = pytest.raises(TopicError, match=r"there is no t-4 .* partitions 0 to 0")
    with planner(world, subscribe="", assign='{"t":[0,4]}') as driver, beyond:
        driver.view()


async def test_assigned_partitions_alone_are_read() -> None:
    world = await world_of(5, partitions=3)
    with planner(world, subscribe="", assign='{"t":[2,0]}') as driver:
        assert [partition.partition for partition in driver.view()] == [0, 2]


async def test_topics_whose_names_begin_alike_are_told_apart() -> None:
    """`t-more` lies among what begins with `t-`."""
    world = await world_of(5)
    other = world.replica("b")
    other.write(2)
    other.roll()
    await world.copy(other, partition=TopicIdPartition(UUID(int=9), "t-more", 0))
    with planner(world, subscribe="t,t-more") as driver:
        ends = {partition.topic: view.end for partition, view in driver.view().items()}
        assert ends == {"t": 5, "t-more": 2}
    with planner(world, subscribe="t") as driver:
        assert [partition.topic for partition in driver.view()] == ["t"]


async def test_an_incarnation_can_be_chosen() -> None:
    world = await world_of(5)
    again = world.replica("b")
    again.write(2)
    again.roll()
    await world.copy(again, partition=PARTITION._replace(topic_id=UUID(int=9)))
    with planner(world) as driver:
        assert driver.view()[ZERO].end == 2
    with planner(world, topicId=str(TOPIC_ID)) as driver:
        view = driver.view()[ZERO]
        assert (view.end, view.name.topic_id) == (5, TOPIC_ID)


async def test_a_segment_removed_since_the_look_is_looked_for_again() -> None:
    """Retention took it: the log begins later now, and what is gone is told with its offsets."""
    world = BucketWorld()
    leader = world.replica("a")
    for _ in range(2):
        leader.write(6)
        leader.roll()
    first, _ = await world.copy(leader)
    with planner(world, maxPartitionBytes="1", failOnDataLoss="false") as driver:
        views = driver.view()
        spans = driver.batch_spans(views)
        world.remove(first)
        plan = driver.plan(views, spans)
        assert {piece.start_offset for piece in plan.pieces} >= {6}
        assert all(piece.start_offset >= 6 for piece in plan.pieces)
        assert "t-0: offsets 0 to 5" in plan.losses.sentences[0]
    with planner(world, startingOffsets='{"t":{"0":0}}') as driver:
        views = driver.view()
        with pytest.raises(LostOffsetsError, match="offsets 0 to 5 are lost: the log begins at"):
            driver.plan(views, driver.batch_spans(views))


async def test_without_a_bucket_and_a_broker_nothing_can_be_looked_at() -> None:
    options = parse_options({"path": "/nowhere/at/all", "subscribe": "t"})
    with Planner(options) as driver, pytest.raises(PlanError, match="no directory /nowhere"):
        driver.view()


async def test_a_store_that_cannot_be_reached_is_an_error_before_any_piece() -> None:
    world = await world_of(5)

    async def opener(_: BucketOptions) -> Bucket:
        raise RemoteStorageError("denied")

    options = parse_options({"path": "/tier", "subscribe": "t"})
    with Planner(options, opener) as driver, pytest.raises(RemoteStorageError, match="denied"):
        driver.view()
    assert world.bucket is not None


async def deleting_world() -> BucketWorld:
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(5)
    leader.roll()
    copied = await world.copy(leader)
    world.write_history(leader, copied, state=HistoryState.DELETING)
    return world


@pytest.mark.parametrize("named", [{}, {"subscribe": "", "assign": '{"t":[0]}'}])
async def test_a_topic_that_is_being_deleted_is_an_error_or_left_out(
    named: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """What is left of it is no log: half of its segments may be gone."""
    world = await deleting_world()
    told = pytest.raises(TopicError, match=r"topic t .* is being deleted")
    with planner(world, **named) as driver, told:
        driver.view()
    with planner(world, failOnDataLoss="false", **named) as driver:
        views = driver.view()
        assert views == {}
        assert driver.plan(views, driver.batch_spans(views)).pieces == []
    assert "skipped (failOnDataLoss=false)" in caplog.text


async def test_records_that_were_deleted_are_not_read() -> None:
    """The bucket still has them; its history object says that they are gone."""
    world = BucketWorld()
    leader = world.replica("a")
    for _ in range(2):
        leader.write(6)
        leader.roll()
    copied = await world.copy(leader)
    world.write_history(leader, copied, log_start_offset=4)
    with planner(world) as driver:
        views = driver.view()
        assert driver.batch_spans(views) == {ZERO: OffsetSpan(4, 12)}
    with planner(world, startingOffsets='{"t":{"0":0}}') as driver:
        views = driver.view()
        with pytest.raises(LostOffsetsError, match="offsets 0 to 3 are lost: the log begins at"):
            driver.plan(views, driver.batch_spans(views))
