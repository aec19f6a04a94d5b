"""Which tasks there are in which role."""

from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.tasks.partition_roles import GONE_MAX
from tiered.tasks.partition_tasks import PartitionTasks


def kinds(tasks: PartitionTasks | None) -> list[bool]:
    assert tasks is not None
    return [task is not None for task in (tasks.copy, tasks.expiry, tasks.follower, tasks.other)]


async def test_each_role_has_its_own_tasks() -> None:
    world = World()
    await world.start()
    assert kinds(world.manager.tasks_of(PARTITION)) == [True, True, False, False]
    world.manager.on_follower(world.tiered())
    await world.run(200)
    assert kinds(world.manager.tasks_of(PARTITION)) == [False, False, True, False]
    world.lead()
    await world.run(200)
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.run(200)
    assert kinds(world.manager.tasks_of(PARTITION)) == [False, False, False, True]


async def test_a_log_that_a_thread_is_changing_is_left_alone() -> None:
    """A follower that begins behind its remote part has no segment for a moment."""
    world = World()
    world.write(3)
    await world.start()
    await world.interval()
    copied = world.log.highest_remote_offset
    assert copied == 2
    world.manager.on_follower(world.tiered())
    await world.run(200)
    tasks = world.manager.tasks_of(PARTITION)
    assert tasks is not None
    assert tasks.follower is not None
    segments = list(world.log.segments)
    world.truncating = True
    world.log.segments.clear()
    world.log.highest_remote_offset = -1
    await world.interval()
    assert (tasks.follower.failures, world.log.highest_remote_offset) == (0, -1)
    for segment in segments:
        world.log.segments.add(segment)
    world.truncating = False
    await world.interval()
    assert world.log.highest_remote_offset == copied


async def test_what_is_gone_is_remembered_up_to_a_bound() -> None:
    world = World()
    for number in range(GONE_MAX):
        world.manager.gone[PARTITION._replace(partition=number + 1)] = None
    await world.start()
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1000, 100)
    assert len(world.manager.gone) == GONE_MAX
    assert PARTITION in world.manager.gone
