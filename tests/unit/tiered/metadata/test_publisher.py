"""Events carry this broker's id and the time, and none is waited for without an end."""

import asyncio

import pytest

from tests.fakes.environment import FakeEnvironment
from tests.fakes.tiered.remote_metadata import FakeRemoteMetadata, MetadataEvents
from tests.unit.tiered.metadata.segment_builder import STARTED, segment
from tests.unit.tiered.tasks.task_world import PARTITION
from tiered.deadline import METADATA_DEADLINE_MS
from tiered.errors import StoreTimeoutError
from tiered.metadata.publisher import MetadataPublisher
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentState,
)


class Fixture:
    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        self.events = MetadataEvents()
        self.metadata = FakeRemoteMetadata(self.events)
        self.metadata.assign([PARTITION])
        self.publisher = MetadataPublisher(self.metadata, self.environment, broker_id=7)


async def test_an_event_is_stamped_with_the_broker_and_the_time() -> None:
    f = Fixture()
    begun = segment(0, 1, state=STARTED)
    await f.publisher.copy_started(begun)
    f.environment.clock.advance(5)
    await f.publisher.segment_state(begun, SegmentState.COPY_SEGMENT_FINISHED, b"custom")
    await f.publisher.partition_state(PARTITION, PartitionDeleteState.DELETE_PARTITION_MARKED)
    now_ms = f.environment.clock.now_ms()
    finished = SegmentState.COPY_SEGMENT_FINISHED
    assert f.events.events == [
        begun,
        RemoteLogSegmentMetadataUpdate(begun.segment_id, now_ms, finished, 7, b"custom"),
        RemotePartitionDelete(PARTITION, PartitionDeleteState.DELETE_PARTITION_MARKED, now_ms, 7),
    ]


async def test_an_event_that_is_never_answered_ends_with_its_name() -> None:
    f = Fixture()
    f.metadata.fail("add", hangs=True)
    begun = segment(0, 1, state=STARTED)
    publishing = asyncio.ensure_future(f.publisher.copy_started(begun))
    await asyncio.sleep(0)
    f.environment.timer.advance(METADATA_DEADLINE_MS)
    with pytest.raises(StoreTimeoutError, match=f"publishing COPY_SEGMENT_STARTED of {begun.id}"):
        await publishing


async def test_a_copy_that_was_found_is_described_without_an_event() -> None:
    f = Fixture()
    found = f.publisher.finished(segment(0, 1, state=STARTED))
    assert found.state is SegmentState.COPY_SEGMENT_FINISHED
    assert (found.broker_id, found.event_timestamp_ms) == (7, f.environment.clock.now_ms())
    assert f.events.events == []
