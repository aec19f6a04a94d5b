"""What must hold of a bucket is asked by the retention that a leader may know, and at once."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.simulation.clients.history import History
from tests.simulation.remote.coverage import RemoteCoverage
from tests.simulation.world import Place, Violation
from tiered.format.object_keys import ObjectKeys
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

PLACE = Place("orders", 0)
TOPIC_ID = UUID(int=7)
START_MS = 1_000_000


class FakeWorld:
    """A world of one broker, whose topic's retention, log start and time are set by a test."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.retention = "15000"
        self.start = 0
        self.loop = SimpleNamespace(time=lambda: self.now_s)
        clock = SimpleNamespace(now_ms=lambda: START_MS + int(self.now_s * 1000))
        self.brokers = {
            1: SimpleNamespace(
                clock=clock,
                process=SimpleNamespace(name="b1.1"),
                settings={"broker_session_timeout_ms": 3_000},
            )
        }
        self.bucket = SimpleNamespace(objects={}, on_change=None)

    @property
    def image(self) -> Any:
        topic = SimpleNamespace(overrides={"retention.ms": self.retention})
        return SimpleNamespace(topics={"orders": topic})

    def log_start(self, _place: Place) -> int:
        return self.start


def coverage_of(world: FakeWorld, history: History) -> RemoteCoverage:
    stood_in: Any = world
    return RemoteCoverage(stood_in, history, -1)


def replica(local_start: int = 0) -> Any:
    return SimpleNamespace(
        topic_id=TOPIC_ID, log=SimpleNamespace(local_log_start_offset=local_start)
    )


def test_a_retention_that_was_raised_counts_once_every_leader_must_have_heard() -> None:
    world, history = FakeWorld(), History()
    for offset, value in enumerate((b"a-0", b"a-1")):
        history.ack(PLACE, offset, [value])
        history.written_ms[value] = START_MS
    coverage = coverage_of(world, history)
    coverage.check(1, PLACE, replica())
    world.now_s, world.retention = 14.0, "40000"
    coverage.check(1, PLACE, replica())
    # A leader that has not heard yet, in its lease.
    world.now_s, world.start = 16.0, 1
    coverage.check(1, PLACE, replica())
    world.now_s, world.start = 19.0, 2
    with pytest.raises(Violation, match="1 is 19000 ms old, 40000"):
        coverage.check(1, PLACE, replica())


def test_where_nothing_expires_any_more_nothing_does() -> None:
    world, history = FakeWorld(), History()
    history.ack(PLACE, 0, [b"a-0"])
    history.written_ms[b"a-0"] = START_MS
    world.retention = "-1"
    coverage = coverage_of(world, history)
    world.now_s, world.start = 1e6, 1
    with pytest.raises(Violation, match="begins at 1: 0 is"):
        coverage.check(1, PLACE, replica())


def test_a_partition_is_looked_at_when_its_bucket_has_less() -> None:
    world, history = FakeWorld(), History()
    coverage = coverage_of(world, history)
    segment = RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(TopicIdPartition(TOPIC_ID, "orders", 0), UUID(int=9)),
        start_offset=0,
        end_offset=9,
        max_timestamp_ms=0,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_bytes=1,
        segment_leader_epochs=(SegmentEpoch(0, 0),),
        state=SegmentState.COPY_SEGMENT_FINISHED,
        txn_index_empty=True,
    )
    keys = ObjectKeys().segment_keys(segment)
    manifest = b'{"remoteLogSegmentMetadata": {"startOffset": 0, "endOffset": 9}}'
    for key in (keys.log, keys.indexes, keys.manifest):
        world.bucket.objects[key] = SimpleNamespace(data=manifest)
        world.bucket.on_change(key)
    assert coverage.copied == 1
    assert not coverage.shrunk
    coverage.check(1, PLACE, replica(local_start=10))
    del world.bucket.objects[keys.log]
    world.bucket.on_change(keys.log)
    assert coverage.shrunk == {PLACE}
    with pytest.raises(Violation, match="the bucket lacks 0"):
        coverage.check(1, PLACE, replica(local_start=10))
