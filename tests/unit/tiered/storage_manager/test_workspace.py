import asyncio

import pytest

from tiered.storage_manager.workspace import (
    IDLE_BYTES_MAX,
    IDLE_MAX,
    ROOM_BYTES_MAX,
    Workspace,
    WorkspacePool,
)


def test_a_room_is_used_again() -> None:
    """Also for less; for more there is a new one."""
    workspace = Workspace()
    room = workspace.room(0, 1000)
    room[:3] = b"abc"
    assert len(room) == 1000
    assert bytes(workspace.room(0, 3)) == b"abc"
    assert len(workspace.room(0, 2000)) == 2000
    assert len(workspace.room(2, 10)) == 10
    assert workspace.size == 2010


def test_a_room_is_bounded() -> None:
    """A forged manifest may claim chunks of 2 GiB."""
    with pytest.raises(ValueError, match="more than"):
        Workspace().room(0, ROOM_BYTES_MAX + 1)


async def test_a_pool_lends_so_many() -> None:
    """Who comes then waits, and gets the one that is given back."""
    pool = WorkspacePool("test", 2)
    seen: list[Workspace] = []
    release = asyncio.Event()

    async def work() -> None:
        async with pool.lease() as workspace:
            seen.append(workspace)
            await release.wait()

    tasks = [asyncio.create_task(work()) for _ in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert pool.as_dict() == {"maximum": 2, "lent": 2, "waiting": 1, "idle_bytes": 0}
    release.set()
    await asyncio.gather(*tasks)
    assert seen[2] in seen[:2]
    assert seen[0] is not seen[1]
    assert (pool.lent, pool.waiting) == (0, 0)


async def test_who_stops_waiting_takes_no_place() -> None:
    """A cancelled read."""
    pool = WorkspacePool("test", 1)
    async with pool.lease():
        waiting = asyncio.create_task(pool.lease().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert pool.waiting == 0
    async with pool.lease():
        assert pool.lent == 1


async def test_little_is_kept_idle() -> None:
    """Neither many nor large ones."""
    pool = WorkspacePool("test", 10)
    leases = [pool.lease() for _ in range(10)]
    workspaces = [await lease.__aenter__() for lease in leases]
    for workspace in workspaces:
        workspace.room(0, 100)
    workspaces[0].room(1, IDLE_BYTES_MAX)
    for lease in leases:
        await lease.__aexit__(None, None, None)
    assert pool.as_dict()["idle_bytes"] == 100 * IDLE_MAX
