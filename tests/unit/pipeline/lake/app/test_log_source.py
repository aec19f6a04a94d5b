"""The log as a job sees it, and tasks that end where pieces do."""

from pathlib import Path
from typing import cast
from uuid import UUID

from pipeline.lake.app.log_source import PlannedLog, _view, option_texts, source_options
from pipeline.lake.batch.batch_plan import Span, TaskRange
from pipeline.lake.settings.config import parse_job
from pipeline.plan.piece import BrokerPiece, PartitionName, Piece, RemotePiece
from pipeline.source.partition_view import PartitionView
from pipeline.source.planner import Planner
from storage.types.topic_partition import TopicPartition
from tests.fakes.lake.numbers_log import HOUR_MS
from tests.fakes.lake.topic_bucket import orders_bucket
from tests.unit.storage.log.log_model import NOW_MS

NAME = PartitionName("t", UUID(int=1), 0)
CONFIG = parse_job(
    "source: {location: s3://bucket/x, topic: t, bootstrap: 'h:1', key_pairs: {a: b.pem}, "
    "store: {endpoint: 'http://e', path_style: true}}\nsink: {type: delta, table: /t}"
)


def remote(start: int, end: int) -> RemotePiece:
    return RemotePiece(NAME, UUID(int=2), 0, 0, 100, start, end)


class FixedPieces:
    """A planner of one partition with these pieces."""

    def __init__(self, *pieces: Piece) -> None:
        self.pieces = pieces

    def view(self) -> dict[TopicPartition, PartitionView]:
        return {TopicPartition("t", 0): PartitionView(NAME, 0, 100)}

    def plan(self, *_: object) -> "FixedPieces":
        return self


def log(*pieces: Piece) -> PlannedLog:
    made = PlannedLog(source_options(CONFIG), cast("Planner", FixedPieces(*pieces)))
    made.view()
    return made


def test_settings_become_options_of_the_source() -> None:
    texts = option_texts(CONFIG)
    assert texts["path"] == "s3://bucket/x"
    assert texts["isolationLevel"] == "read_committed"
    assert texts["keyPairs"] == "a=b.pem"
    assert texts["store.pathStyle"] == "true"
    assert "tier" not in texts
    assert "topicId" not in texts


def test_tasks_end_where_pieces_end() -> None:
    tasks = [TaskRange(0, 0, 25), TaskRange(0, 25, 50), TaskRange(0, 50, 80)]
    found = log(remote(0, 30), remote(30, 60), remote(60, 80)).aligned(tasks)
    assert found == [TaskRange(0, 0, 30), TaskRange(0, 30, 60), TaskRange(0, 60, 80)]


def test_what_a_moved_end_swallows_is_gone() -> None:
    tasks = [TaskRange(0, 0, 5), TaskRange(0, 5, 10), TaskRange(0, 10, 80)]
    found = log(remote(0, 80)).aligned(tasks)
    assert found == [TaskRange(0, 0, 80)]


def test_an_end_stays_where_no_piece_ends() -> None:
    """A broker's offsets can be cut anywhere."""
    tasks = [TaskRange(0, 0, 25), TaskRange(0, 25, 50)]
    assert log(BrokerPiece(NAME, 1, 0, 90)).aligned(tasks) == tasks


def test_a_gap_is_not_bridged() -> None:
    tasks = [TaskRange(0, 0, 25), TaskRange(0, 40, 50)]
    assert log(remote(0, 30), remote(40, 60)).aligned(tasks) == tasks


def test_pieces_are_cut_to_their_task() -> None:
    """A plan that is repeated keeps its tasks, wherever pieces end now."""
    tasks = [TaskRange(0, 0, 25), TaskRange(0, 25, 50)]
    found = log(remote(0, 30), remote(30, 60)).pieces(tasks)
    assert [[(p.start_offset, p.end_offset) for p in some] for some in found] == [
        [(0, 25)],
        [(25, 30), (30, 50)],
    ]


async def test_a_bucket_tells_bytes_and_times(tmp_path: Path) -> None:
    bucket = await orders_bucket(tmp_path)
    config = parse_job(
        f"source: {{location: {tmp_path}, topic: t}}\nsink: {{type: delta, table: /t}}"
    )
    options = source_options(config)
    with Planner(options) as planner:
        topic = PlannedLog(options, planner).view()
    (view,) = topic.partitions.values()
    assert (view.start, view.end) == (0, bucket.leader.end)
    assert len(view.spans) == 4
    assert [span.start for span in view.spans[1:]] == [span.end for span in view.spans[:-1]]
    assert all(span.size > 0 for span in view.spans)
    assert view.newest_ms == view.spans[-1].newest_ms > 0


async def test_a_bucket_tells_where_a_time_begins(tmp_path: Path) -> None:
    """By segments' times, then the time index, then the records."""
    await orders_bucket(tmp_path)
    config = parse_job(
        f"source: {{location: {tmp_path}, topic: t}}\nsink: {{type: delta, table: /t}}"
    )
    options = source_options(config)
    with Planner(options) as planner:
        log = PlannedLog(options, planner)
        topic = log.view()
        (view,) = topic.partitions.values()
        first = NOW_MS - 1000 * HOUR_MS
        assert log.offset_for_time(0, 0) == 0
        assert log.offset_for_time(0, first) == 0
        assert log.offset_for_time(0, first + 1) == 7
        assert log.offset_for_time(0, first + 7 * HOUR_MS) == 7
        assert log.offset_for_time(0, view.newest_ms + 1) is None


def test_of_a_partition_that_the_bucket_lacks_nothing_is_said() -> None:
    """All its segments may have expired: that is no log that ends at 0."""
    made = log()
    assert made.view().partitions == {}


def test_what_only_a_broker_has_is_guessed() -> None:
    view = _view(PartitionView(NAME, 10, 30, None, 10, has_broker=True, leader_epoch=5))
    assert view.spans == (Span(10, 30, 20 * 1024),)
    assert view.newest_ms == -1


def test_no_tasks_have_no_pieces() -> None:
    assert log().pieces([]) == []
    assert log().aligned([]) == []
