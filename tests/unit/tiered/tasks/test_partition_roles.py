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


async def test_what_is_gone_is_remembered_up_to_a_bound() -> None:
    world = World()
    for number in range(GONE_MAX):
        world.manager.gone[PARTITION._replace(partition=number + 1)] = None
    await world.start()
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1000, 100)
    assert len(world.manager.gone) == GONE_MAX
    assert PARTITION in world.manager.gone
