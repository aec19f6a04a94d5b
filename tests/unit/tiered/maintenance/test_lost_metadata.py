"""A head that is neither here nor known is lost metadata, not an expired history."""

import pytest

from storage.environment.alerts import AlertKind
from tests.fakes.tiered.remote_metadata import MetadataEvents
from tests.unit.tiered.metadata.segment_builder import STARTED, segment
from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.maintenance.lost_metadata import epochs_before
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tasks.partition_tasks import PartitionState


async def lost(world: World) -> None:
    """All is copied, nothing is local, and the metadata is gone."""
    world.write(4)
    await world.start()
    await world.interval()
    world.expire_local()
    assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 4)
    world.events = MetadataEvents()
    await world.crash()


async def test_a_head_that_nobody_knows_is_not_given_up() -> None:
    world = World()
    await lost(world)
    await world.start()
    await world.interval(3)
    assert world.manager.partition_states() == {PartitionState.STARTING: 1}
    assert world.log.log_start_offset == 0
    assert not world.manager.has_role(PARTITION)
    (alert,) = world.alerts.all()
    assert (alert.kind, alert.subject) == (AlertKind.TIER_METADATA_LOST, "t-0")
    assert world.metadata.doubt(PARTITION) == alert.text
    world.write(2)
    await world.interval(2)
    await world.collect_garbage()
    assert len(world.bucket.segment_objects()) == 12
    assert world.expire_local() == 0


async def test_it_goes_on_when_the_metadata_is_back() -> None:
    world = World()
    world.write(4)
    await world.start()
    await world.interval()
    world.expire_local()
    known, world.events = world.events, MetadataEvents()
    await world.crash()
    await world.start()
    assert world.manager.held_back
    for event in known.events:
        world.metadata._apply(event)
    await world.interval()
    assert world.manager.partition_states() == {PartitionState.LEADING: 1}
    assert (world.alerts.all(), world.metadata.doubt(PARTITION)) == ([], "")
    world.check()


async def test_a_head_of_which_the_metadata_has_lost_the_first_part_is_not_given_up() -> None:
    """What is left begins later: that would be the new log start."""
    world = World()
    world.write(4)
    await world.start()
    await world.interval()
    world.expire_local()
    world.events.events[:] = world.events.events[4:]
    await world.crash()
    world.metadata.loss = "events 0 to 3 are lost"
    await world.start()
    await world.interval()
    assert world.log.log_start_offset == 0
    assert "events 0 to 3 are lost" in world.manager.held_back[PARTITION]
    await world.manager.stop()


async def test_a_head_that_has_expired_is_gone() -> None:
    """The metadata remembers how far it was copied, though it has no segment any more."""
    world = World()
    world.write(4)
    await world.start()
    await world.interval()
    world.expire_local()
    checkpointed = world.log_start_checkpoint
    world.set_config(retention_bytes=0)
    await world.interval(2)
    assert world.finished() == []
    world.log_start_checkpoint = checkpointed
    await world.crash()
    await world.start()
    assert world.manager.partition_states() == {PartitionState.LEADING: 1}
    assert world.log.log_start_offset == 4


async def test_a_log_whose_epochs_are_lost_has_its_history_still() -> None:
    world = World()
    world.write(2)
    world.leader_epoch = 3
    world.write(2)
    await world.start()
    await world.interval()
    world.expire_local()
    await world.crash()
    world.log.leader_epochs.clear()
    await world.start()
    assert world.log.leader_epochs.entries() == [(0, 0), (3, 2)]
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert world.log.log_start_offset == 0
    world.check()


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([], []),
        ([segment(0, 99, {0: 0}, state=STARTED)], []),
        ([segment(0, 99, {0: 0}), segment(100, 199, {0: 100})], [(0, 0)]),
        ([segment(0, 99, {0: 0, 2: 50}), segment(100, 199, {2: 100})], [(0, 0), (2, 50)]),
        # Epoch 1 wrote nothing that lasts: the one that came after it overwrote it.
        (
            [segment(0, 90, {0: 0}), segment(91, 120, {1: 91}), segment(91, 150, {0: 91, 2: 100})],
            [(0, 0), (2, 100)],
        ),
    ],
)
def test_epochs_are_those_of_the_latest_history(
    segments: list[RemoteLogSegmentMetadata], expected: list[tuple[int, int]]
) -> None:
    assert epochs_before(segments, None, 1000) == expected


def test_epochs_end_where_the_known_ones_begin() -> None:
    found = [segment(0, 99, {0: 0, 2: 50}), segment(100, 199, {2: 100, 5: 150})]
    assert epochs_before(found, 5, 150) == [(0, 0), (2, 50)]
    assert epochs_before(found, 2, 60) == [(0, 0), (2, 50)]
