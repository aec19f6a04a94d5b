"""Bytes are counted for the copy that moves them, also by the tasks that it starts."""

import asyncio

from tiered.object_store.moved_bytes import counting, moved


def test_outside_nobody_counts() -> None:
    moved(5)
    with counting() as present:
        moved(2)
    moved(5)
    assert present.count == 2


async def test_copies_beside_each_other_are_told_apart() -> None:
    async def send(size: int) -> None:
        await asyncio.sleep(0)
        moved(size)

    async def copy(size: int) -> int:
        with counting() as present:
            moved(size)
            await asyncio.gather(*(send(size) for _ in range(3)))
            return present.count

    assert list(await asyncio.gather(copy(1), copy(10))) == [4, 40]
