"""Notes are written when a life begins, when a disk fails, and now and then for the revision."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from broker.controller.images.cluster_image import BrokerImage, ClusterImage
from broker.controller.images.controller_history import Write
from broker.membership.last_run import BOOT_ID_FILE
from broker.membership.member_notes import WRITE_EVERY_MS, MemberNotes
from storage.checkpoints.member_note import MemberNote, read_member_note
from storage.environment.environment import Environment
from tests.fakes.environment import FakeEnvironment


def at(revision: int, *brokers: int) -> ClusterImage:
    """The image of a revision, with these brokers registered."""
    image = ClusterImage.empty().at(revision)
    return image.with_brokers(BrokerImage(node_id, {}) for node_id in brokers)


class World:
    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        filesystem = self.filesystem = self.environment.filesystem
        for directory in ("/a", "/b", "/proc/sys/kernel/random"):
            filesystem.mkdir(directory)
        filesystem.replace_bytes(BOOT_ID_FILE, b"boot\n")
        self.online = ["/a", "/b"]
        self.notes = MemberNotes(self.environment, lambda: self.online)

    def found(self, directory: str = "/a") -> MemberNote | None:
        """The note, which names the directory that it was made in."""
        note = read_member_note(self.filesystem, directory)
        assert note is None or note.place == directory
        return None if note is None else replace(note, place="")

    async def turns(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_life_is_noted_in_every_directory_when_it_begins() -> None:
    world = World()
    world.notes.seen(at(5))
    world.notes.disk_failed()
    await world.notes.begin(7)
    assert world.found("/a") == world.found("/b") == MemberNote("boot", 7, 7)
    await world.notes.end()


async def test_the_highest_revision_is_written_now_and_then() -> None:
    world = World()
    await world.notes.begin(7)
    world.notes.seen(at(30))
    world.notes.seen(at(20))
    await world.turns()
    assert world.found() == MemberNote("boot", 7, 7)
    world.environment.timer.advance(WRITE_EVERY_MS)
    await world.turns()
    assert world.found() == MemberNote("boot", 7, 30)
    world.notes.seen(at(40))
    await world.notes.end()
    assert world.found() == MemberNote("boot", 7, 40)
    world.environment.timer.advance(10 * WRITE_EVERY_MS)
    assert world.environment.timer.pending == 0


async def test_a_note_is_another_file_now_and_then() -> None:
    """Also where nothing has changed: a copy of the directory may be put back into it."""
    world = World()
    await world.notes.begin(7)
    files = set()
    for _ in range(3):
        files.add(world.filesystem.identity("/a/varve-member"))
        world.environment.timer.advance(WRITE_EVERY_MS)
        await world.turns()
    assert len(files) == 3
    assert world.found() == MemberNote("boot", 7, 7)
    await world.notes.end()


async def test_a_disk_that_failed_is_noted_at_once_where_that_is_possible() -> None:
    world = World()
    await world.notes.begin(7)
    world.online = ["/b"]
    world.notes.disk_failed()
    await world.turns()
    assert world.found("/b") == MemberNote("boot", 7, 7, failed=True)
    assert world.found("/a") == MemberNote("boot", 7, 7)
    await world.notes.end()


async def test_a_directory_that_refuses_keeps_no_other_from_its_note() -> None:
    world = World()
    world.online = ["/nowhere/there", "/b"]
    await world.notes.begin(7)
    assert world.found("/b") == MemberNote("boot", 7, 7)
    await world.notes.end()


async def test_brokers_are_written_soon_when_there_are_others() -> None:
    """A store that is emptied does not say who there was."""
    world = World()
    await world.notes.begin(7)
    world.notes.seen(at(8, 2, 1))
    await world.turns()
    assert world.found() == MemberNote("boot", 7, 8, brokers=(1, 2))
    world.notes.seen(at(9, 2, 1))
    await world.turns()
    assert world.found() == MemberNote("boot", 7, 8, brokers=(1, 2))
    await world.notes.end()


async def test_the_revision_is_written_soon_when_it_is_acted_on() -> None:
    """Else a copy of the store from before a leader epoch might pass for the newest."""
    world = World()
    world.notes.acted()
    await world.notes.begin(7)
    world.notes.seen(at(30))
    world.notes.acted()
    world.notes.acted()
    await world.turns()
    assert world.found() == MemberNote("boot", 7, 30)
    await world.notes.end()


async def test_one_write_is_under_way_at_a_time() -> None:
    """Also while a life begins: two would take each other's file away."""
    world = World()
    under_way = most = 0

    async def slow(function: Callable[..., Any], *args: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        under_way -= 1
        return function(*args)

    environment = Environment(
        clock=world.environment.clock,
        timer=world.environment.timer,
        filesystem=world.filesystem,
        randomness=world.environment.randomness,
        run_blocking=slow,
    )
    notes = MemberNotes(environment, lambda: ["/a"])
    beginning = asyncio.ensure_future(notes.begin(7))
    for revision in range(8, 40):
        notes.seen(at(revision, revision))
        notes.acted()
        await asyncio.sleep(0)
    await beginning
    await notes.end()
    assert most == 1
    assert world.found() == MemberNote("boot", 7, 39, brokers=(39,))


async def test_the_write_of_the_controller_that_was_seen_last_is_noted() -> None:
    """Not the last word of one that is gone: that is in no history of the store."""
    world = World()
    await world.notes.begin(7)
    image = replace(at(30), controller_epoch=20, newest_write=Write("2 20", 29))
    world.notes.seen(image)
    world.notes.seen(replace(image, revision=31, newest_write=Write("3 10", 31)))
    world.notes.seen(replace(image, revision=32, controller_epoch=0, newest_write=None))
    await world.notes.end()
    assert world.found() == MemberNote("boot", 7, 32, writer="2 20", write=29)
