"""How far a single node's store has come is noted after each change, a write at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.node.store_notes import StoreNotes
from storage.checkpoints.store_note import StoreNote, read_store_note
from tests.fakes.environment import FakeEnvironment

ID = UUID(int=5)


def at(revision: int) -> ClusterImage:
    return ClusterImage.empty().at(revision)


async def test_changes_are_noted_in_every_directory_and_only_changes() -> None:
    environment = FakeEnvironment()
    filesystem = environment.filesystem
    filesystem.mkdir("/a")
    filesystem.mkdir("/b")
    notes = StoreNotes(environment, lambda: ["/a", "/nowhere/there", "/b"], ID, 7)
    notes.seen(at(7))
    await notes.end()
    assert read_store_note(filesystem, "/a") is None
    notes.seen(at(9))
    notes.seen(at(8))
    await notes.end()
    assert read_store_note(filesystem, "/a") == StoreNote(ID, 9)
    assert read_store_note(filesystem, "/b") == StoreNote(ID, 9)


async def test_what_comes_during_a_write_goes_into_one_more() -> None:
    environment = FakeEnvironment()
    environment.filesystem.mkdir("/a")
    under_way = most = writes = 0

    async def run(work: Callable[..., Any], *args: Any) -> Any:
        nonlocal under_way, most, writes
        under_way += 1
        writes += 1
        most = max(most, under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        under_way -= 1
        return work(*args)

    notes = StoreNotes(replace(environment, run_blocking=run), lambda: ["/a"], ID, -1)
    for revision in range(1, 40):
        notes.seen(at(revision))
        await asyncio.sleep(0)
    await notes.end()
    assert most == 1
    assert writes < 39
    assert read_store_note(environment.filesystem, "/a") == StoreNote(ID, 39)
