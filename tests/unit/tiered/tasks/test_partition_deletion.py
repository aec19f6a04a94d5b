"""A deleted topic leaves nothing in the bucket, however often the broker dies on the way."""

import asyncio

import pytest

from storage.environment.alerts import AlertKind
from tests.harness.history_world import INTERVAL_MS, KEY, copied, told
from tests.unit.tiered.metadata.segment_builder import STARTED, segment
from tests.unit.tiered.tasks.task_world import FOREVER, PARTITION, World, tiered_config
from tests.unit.tiered.tasks.test_copier_crashes import KINDS, Ending, PowerOff
from tiered.errors import (
    RemoteStorageNotReadyError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.maintenance.bucket_ownership import Claim
from tiered.maintenance.bucket_trouble import GARBAGE_LASTING_MS
from tiered.object_store.base import PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tasks.partition_tasks import PartitionState


async def hosted(count: int = 3) -> World:
    world = World()
    world.write(count)
    await world.start()
    await world.interval()
    return world


def is_empty(world: World) -> bool:
    return not world.bucket.segment_objects() and not world.metadata.deletions()


async def test_everything_goes_and_is_forgotten() -> None:
    world = await hosted()
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1000, 100)
    assert is_empty(world)
    assert world.manager.partition_states() == {}
    assert world.metadata.partitions() == []
    assert PARTITION in world.manager.gone
    assert "t" not in world.manager.counters.topics
    world.manager.on_stop(PARTITION, delete_remote=False)


async def test_a_copy_in_flight_leaves_nothing() -> None:
    """Nor does what it uploads after it was cancelled."""
    world = World()
    world.write(1)
    world.tier.hang("log uploaded")
    await world.start()
    assert len(world.bucket.segment_objects()) == 1
    stray = segment(5, 9, state=STARTED)
    upload = PendingUpload(world.tier.keys.segment_keys(stray).log, "u", 0)
    world.bucket.uploads.append(upload)
    world.bucket.put(world.tier.keys.segment_keys(stray).indexes, b"late")
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1000, 100)
    assert is_empty(world)
    assert world.bucket.uploads == []
    # Later still: garbage collection knows that the partition is gone.
    world.bucket.put(world.tier.keys.segment_keys(stray).log, b"later")
    await world.collect_garbage()
    assert is_empty(world)


async def test_a_copy_that_is_published_behind_the_deletion_goes_as_well() -> None:
    """By a leader that had not heard of it: what the metadata knows is no garbage."""
    world = await hosted()
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1000, 100)
    assert PARTITION in world.manager.gone
    late = segment(5, 9, state=STARTED)
    world.events.events.append(late)
    world.metadata._apply(late)
    world.bucket.put(world.tier.keys.segment_keys(late).log, b"late")
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1000, 100)
    assert is_empty(world)
    world.metadata.assign([PARTITION])
    assert world.metadata.segments(PARTITION) == []
    assert world.manager.partition_states() == {}


async def test_what_a_deleted_topic_has_left_may_not_be_removed() -> None:
    """Its objects that no segment has: the operator hears of them."""
    world = await hosted()
    world.bucket.put(world.tier.keys.segment_keys(segment(5, 9, state=STARTED)).indexes, b"late")
    world.tier.fail("delete_objects", StoreDeniedError("403"), times=1_000)
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(GARBAGE_LASTING_MS + 100_000)
    assert [one.kind for one in world.alerts.all()] == [AlertKind.TIER_GARBAGE_STAYS]
    assert not is_empty(world)
    world.tier._faults.clear()
    await world.run(100_000)
    assert not world.alerts.all()
    assert is_empty(world)


async def test_it_is_retried_until_the_store_is_back() -> None:
    world = await hosted()
    world.tier.fail("delete_segment", StoreUnavailableError("down"), times=7)
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(500, 100)
    assert world.manager.partition_states() == {PartitionState.DELETING: 1}
    assert not is_empty(world)
    await world.run(60_000, 1000)
    assert is_empty(world)


async def test_it_is_not_finished_in_another_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk was unmounted when the last of it was removed: it is looked for once more."""
    world = await hosted()
    key = world.tier.keys.history_key(PARTITION)
    history = world.bucket.objects[key]
    swept: list[bool] = []

    async def missing(_: Claim) -> None:
        if key not in world.bucket.objects and not swept:
            swept.append(True)
            raise RemoteStorageNotReadyError("its claim is missing")

    monkeypatch.setattr(Claim, "require_bucket_now", missing)
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(0)
    assert swept
    assert not is_empty(world)
    world.bucket.objects[key] = history
    await world.run(60_000, 1000)
    assert is_empty(world)
    assert key not in world.bucket.objects


async def delete(ending: Ending) -> World:
    world = await hosted()
    world.reach = ending.reach
    try:
        world.manager.on_stop(PARTITION, delete_remote=True)
        await world.run(1000, 100)
    except PowerOff:
        pass
    return world


@pytest.mark.parametrize("kind", KINDS)
async def test_every_point(kind: str) -> None:
    """After a restart the metadata says that it is not done; or it was not begun, and is again."""
    ending = Ending()
    await delete(ending)
    assert ending.count > 15
    for at in range(1, ending.count + 1):
        ending = Ending(at, kind)
        world = await delete(ending)
        world.reach = None
        await world.crash()
        world.manager.start()
        if not world.metadata.deletions():
            # The broker deletes what the controller says is deleted.
            world.manager.on_stop(PARTITION, delete_remote=True)
        await world.run(3000, 100)
        assert is_empty(world), f"{kind} at step {at}"
        await world.manager.stop()


async def test_switching_remote_storage_off_removes_all_and_it_can_be_switched_on_again() -> None:
    """KIP-950: the log starts where the local log starts, before anything is removed."""
    world = await hosted(3)
    world.expire_local()
    world.write(2)
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.run(1000, 100)
    assert world.log.log_start_offset == 3
    assert (world.states(), world.bucket.segment_objects()) == ([], {})
    assert world.manager.partition_states() == {PartitionState.PURGING: 1}
    assert world.log.highest_remote_offset == -1
    world.set_config(remote_storage_enable=True)
    await world.interval()
    assert world.finished() == [(3, 3), (4, 4)]
    world.check()


async def partly_local() -> World:
    """Ten segments in remote storage, of which the last five are local too."""
    world = World(tiered_config(local_retention_bytes=FOREVER))
    world.write(10)
    await world.start()
    await world.interval(3)
    world.set_config(local_retention_bytes=5 * world.log.segment_facts()[0].size)
    world.expire_local()
    assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 5)
    assert world.log.highest_remote_offset == 9
    return world


@pytest.mark.parametrize("removals", range(11))
async def test_switched_on_again_while_it_is_being_removed_loses_nothing_local(
    removals: int,
) -> None:
    """What is removed has not expired: the log start stays at what is local, without a gap."""
    world = await partly_local()
    hook = asyncio.Event()
    remove, begun = world.tier.delete_segment, 0

    async def hanging(metadata: RemoteLogSegmentMetadata) -> None:
        nonlocal begun
        begun += 1
        if begun > removals:
            await hook.wait()
        await remove(metadata)

    world.tier.delete_segment = hanging  # type: ignore[method-assign]  # hangs at one call
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.run(1000, 100)
    world.tier.delete_segment = remove  # type: ignore[method-assign]  # as it was
    world.set_config(remote_storage_enable=True)
    await world.run(0)
    world.check()
    assert world.log.log_start_offset == 5
    await world.interval(3)
    world.check()
    assert world.log.log_start_offset == 5
    assert [start for start, _ in world.finished() if start >= 5] == [5, 6, 7, 8, 9]


async def test_a_removal_that_cannot_be_told_leaves_no_gap() -> None:
    world = await partly_local()
    world.metadata.fail("update", StoreUnavailableError("down"))
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.run(0)
    assert len(world.finished()) == 10
    world.set_config(remote_storage_enable=True)
    await world.interval()
    world.check()
    assert world.log.log_start_offset == 5


async def test_local_retention_does_not_believe_what_was_there_before_it_was_switched_off() -> None:
    """Switched on again, and nobody knows yet what is left in remote storage."""
    world = await partly_local()
    world.tier.fail("delete_segment", StoreUnavailableError("down"), times=2)
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.run(0)
    world.metadata.hidden.add(PARTITION)
    world.set_config(remote_storage_enable=True, local_retention_bytes=0)
    await world.run(1000)
    assert world.expire_local() == 0
    world.metadata.hidden.clear()
    await world.interval(3)
    world.check()
    assert world.log.local_log_start_offset == 5


async def test_a_deletion_whose_end_was_told_late_ends_too() -> None:
    """The record is there, its answer came too late: the metadata has released the partition."""
    world = await hosted()
    steps = 0

    async def reach(point: str) -> None:
        nonlocal steps
        steps += point == "delete_partition"
        if point == "delete_partition" and steps == 3:
            late = StoreTimeoutError("not read back in time")
            world.metadata.fail("delete_partition", late, written=True)

    world.reach = reach
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(2000, 100)
    assert steps == 3
    assert is_empty(world)
    assert world.manager.partition_states() == {}
    assert PARTITION in world.manager.gone


async def test_switched_off_without_delete_on_disable_keeps_it() -> None:
    world = await hosted(2)
    world.set_config(remote_storage_enable=False)
    await world.interval()
    assert len(world.finished()) == 2


def left_behind(world: World) -> str:
    """The text of the alert; empty without one."""
    found = [one for one in world.alerts.all() if one.kind is AlertKind.TIER_LEFT_BEHIND]
    return found[0].text if found else ""


@pytest.mark.parametrize("then", ["removed", "served"])
async def test_what_lost_settings_leave_behind_is_reported_until_it_is_seen_to(then: str) -> None:
    """And the bucket goes on to say what there is: readers, and a restore, go by it."""
    world = await copied(3)
    world.expire_local()
    before = world.bucket.objects[KEY]
    world.set_config(remote_storage_enable=False)
    await world.run(3 * INTERVAL_MS)
    assert "still has 3 of its segments" in left_behind(world)
    assert "remote.storage.enable=true goes on with them" in left_behind(world)
    assert (world.log.log_start_offset, world.unreadable()) == (0, [])
    assert world.bucket.objects[KEY] is before
    if then == "served":
        world.set_config(remote_storage_enable=True)
        await world.run(3 * INTERVAL_MS)
        assert (len(world.finished()), world.unreadable()) == (3, [])
    else:
        world.set_config(remote_log_delete_on_disable=True)
        await world.run(3 * INTERVAL_MS)
        assert (world.states(), told(world).segments) == ([], ())
    assert left_behind(world) == ""


@pytest.mark.parametrize("starts", [1, 2])
async def test_settings_that_are_lost_over_a_start_cost_no_history(starts: int) -> None:
    """As with an older copy of the metadata store: the log's directory knows what it has had."""
    world = await copied(3)
    world.expire_local()
    before = world.bucket.objects[KEY]
    world.config = world.config.model_copy(update={"remote_storage_enable": False})
    for _ in range(starts):
        await world.crash()
        await world.start()
        await world.run(3 * INTERVAL_MS)
        assert "remote.storage.enable=true goes on with them" in left_behind(world)
        assert (len(world.finished()), world.bucket.objects[KEY]) == (3, before)
        assert (world.log.log_start_offset, world.unreadable()) == (0, [])
        world.checkpoint()
    world.set_config(remote_storage_enable=True)
    world.write(2)
    await world.interval(3)
    world.check()
    assert [start for start, _ in world.finished()] == [0, 1, 2, 3, 4]
    assert left_behind(world) == ""


async def test_a_wish_for_the_removal_that_comes_while_a_role_begins_is_heard() -> None:
    """The metadata is still being read when the operator says what becomes of it."""
    world = await copied(3)
    world.expire_local()
    world.config = world.config.model_copy(update={"remote_storage_enable": False})
    await world.crash()
    world.metadata.hidden.add(PARTITION)
    await world.start()
    world.set_config(remote_log_delete_on_disable=True)
    await world.run(INTERVAL_MS)
    world.metadata.hidden.clear()
    await world.run(3 * INTERVAL_MS)
    assert (world.states(), world.log.log_start_offset) == ([], 3)


async def test_what_expires_while_the_settings_are_lost_moves_no_log_start() -> None:
    """What is here goes by the settings there are; what remote storage has may be wanted again."""
    world = await copied(3)
    world.expire_local()
    world.set_config(remote_storage_enable=False, retention_bytes=0)
    world.write(2)
    await world.run(INTERVAL_MS)
    assert world.expire_local() > 0
    assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 5)
    await world.crash()
    await world.start()
    await world.run(INTERVAL_MS)
    assert world.log.log_start_offset == 0
    world.set_config(remote_storage_enable=True, retention_bytes=FOREVER)
    world.write(1)
    await world.interval(3)
    assert [start for start, _ in world.finished()] == [0, 1, 2, 5]
    # Neither has them: reads go on behind.
    assert world.unreadable() == [3, 4]


@pytest.mark.parametrize("starts", [False, True])
async def test_who_disables_it_on_purpose_has_a_log_that_begins_here(starts: bool) -> None:
    """As with Kafka; and nothing of what was noted brings it back when the setting is dropped."""
    world = await partly_local()
    world.checkpoint()
    lost = {"remote_storage_enable": False, "remote_log_delete_on_disable": True}
    if starts:
        world.config = world.config.model_copy(update=lost)
        await world.crash()
        await world.start()
    else:
        world.set_config(**lost)
    await world.run(3 * INTERVAL_MS)
    assert world.states() == []
    assert world.log.log_start_offset == world.log.local_log_start_offset == 5
    world.checkpoint()
    assert world.remote_checkpoint == -1
    world.set_config(remote_log_delete_on_disable=False)
    await world.crash()
    await world.start()
    await world.run(3 * INTERVAL_MS)
    assert not world.log.has_remote_part
    assert left_behind(world) == ""


async def test_a_log_whose_past_is_not_known_any_more_says_so() -> None:
    world = await copied(3)
    world.expire_local()
    world.config = world.config.model_copy(update={"remote_storage_enable": False})
    world.events = type(world.events)()
    await world.crash()
    await world.start()
    await world.run(3 * INTERVAL_MS)
    assert "begins at offset 0, here at 3" in left_behind(world)
    assert "varve tier rebuild-metadata" in left_behind(world)
    world.set_config(remote_log_delete_on_disable=True)
    await world.run(3 * INTERVAL_MS)
    assert world.log.log_start_offset == 3
    assert left_behind(world) == ""


async def test_what_would_go_if_it_were_switched_on_again_is_said() -> None:
    """A log whose note is gone as well is opened as one that was never copied."""
    world = await copied(3)
    world.expire_local()
    before = world.bucket.objects[KEY]
    world.set_config(remote_storage_enable=False)
    await world.run(INTERVAL_MS)
    world.remote_checkpoint = -1
    await world.crash()
    await world.start()
    await world.run(3 * INTERVAL_MS)
    assert world.log.log_start_offset == 3
    assert "so does remote.storage.enable=true with 3 of them" in left_behind(world)
    assert "varve tier restore" in left_behind(world)
    assert (len(world.finished()), world.bucket.objects[KEY]) == (3, before)


async def test_a_purge_goes_on_after_a_restart() -> None:
    world = World(tiered_config())
    world.write(3)
    await world.start()
    await world.interval()
    world.tier.fail("delete_segment", StoreUnavailableError("down"), times=9)
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.run(100)
    await world.crash()
    await world.start()
    await world.run(200)
    assert (world.states(), world.bucket.segment_objects()) == ([], {})


async def test_a_deletion_that_nobody_hosts_here_needs_no_log() -> None:
    world = World()
    world.metadata.assign([PARTITION])
    found = segment(0, 9, state=STARTED)
    await world.metadata.add(found)
    world.bucket.put(world.tier.keys.segment_keys(found).log, b"x")
    world.metadata.release([PARTITION])
    world.manager.start()
    world.manager.on_stop(PARTITION, delete_remote=True)
    await asyncio.sleep(0)
    await world.run(1000, 100)
    assert is_empty(world)
