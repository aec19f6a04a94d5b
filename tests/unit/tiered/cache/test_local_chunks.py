"""Asking for chunks that lie on this machine: together, once, and never more than was compared."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from storage.environment.local_filesystem import LocalFilesystem
from tests.unit.tiered.storage_manager.in_place_world import InPlaceWorld, in_place_world
from tests.unit.tiered.storage_manager.memory_tier import CHUNK, turns
from tiered.cache.local_chunks import Found, LocalChunks
from tiered.errors import TierProcessError
from tiered.format.chunk_file import ChunkKey
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.in_place import NOTHING_FOUND
from tiered.tier import FoundChunks

T = TypeVar("T")


class Source:
    """A segment whose manifest is wanted while it is read."""

    manifest_path = ""

    def __init__(self, metadata: RemoteLogSegmentMetadata) -> None:
        self.metadata = metadata
        self.pins = 0

    def pin(self) -> None:
        self.pins += 1

    def unpin(self) -> None:
        self.pins -= 1

    def chunk_length(self, chunk: int) -> int:
        return CHUNK


@dataclass
class Asked:
    """LocalChunks over a world; what was asked, opened and left lying is written down."""

    world: InPlaceWorld
    questions: list[list[int]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    unclaimed: list[str] = field(default_factory=list)
    error: Exception | None = None
    answer: FoundChunks | None = None
    held: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.held.set()
        self.source = Source(self.world.segment.metadata)
        self.local_chunks = LocalChunks(
            self._refer, LocalFilesystem(), self._run, self.world.cache, self.unclaimed.append
        )

    async def _refer(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        assert self.source.pins == 1
        self.questions.append(list(chunks))
        await self.held.wait()
        if self.error is not None:
            raise self.error
        if self.answer is not None:
            return self.answer
        return await self.world.tier.refer_to_chunks(metadata, manifest, chunks, directory)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        self.opened.append(str(args[0]))
        return function(*args)

    async def find(self, *chunks: int) -> list[Found | None]:
        key = self.source.metadata.id
        finding = [self.local_chunks.find(self.source, ChunkKey(key, chunk)) for chunk in chunks]
        return await asyncio.gather(*finding)


async def test_what_is_wanted_together_is_asked_together(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    found = await asked.find(6, 4, 5)
    assert asked.questions == [[4, 5, 6]]
    for number, one in zip((6, 4, 5), found, strict=True):
        assert one is not None
        name, chunk = one
        assert name.key.chunk == number
        assert chunk.read_at(CHUNK, 0) == asked.world.chunk(number)
    assert len(asked.opened) == 1
    assert asked.source.pins == 0
    await asked.world.tier.close()


async def test_chunks_of_one_object_share_its_file_while_somebody_holds_one(
    tmp_path: Path,
) -> None:
    asked = Asked(await in_place_world(tmp_path))
    first = await asked.find(1)
    second = await asked.find(2)
    assert len(asked.opened) == 1
    del first, second
    await asked.find(3)
    assert len(asked.opened) == 2
    await asked.world.tier.close()


async def test_a_chunk_that_is_wrong_is_left_to_others(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    asked.world.flip(5 * CHUNK)
    four, five = await asked.find(4, 5)
    assert four is not None
    assert five is None
    await asked.world.tier.close()


async def test_an_object_that_is_changed_before_it_is_opened_is_not_taken(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    world = asked.world
    found = await world.tier.refer_to_chunks(world.segment.metadata, "", [1], world.cache)
    world.place.write_bytes(world.place.read_bytes() + b"more")
    asked.answer = found
    assert await asked.find(1) == [None]
    await world.tier.close()


async def test_a_segment_in_another_form_is_asked_about_once(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    asked.answer = NOTHING_FOUND
    assert await asked.find(1, 2) == [None, None]
    assert await asked.find(3) == [None]
    assert asked.questions == [[1, 2]]
    await asked.world.tier.close()


async def test_trouble_with_the_tier_is_left_to_the_usual_way(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    asked.error = TierProcessError("it has ended")
    assert await asked.find(1) == [None]
    asked.error = None
    assert await asked.find(1) != [None]
    assert asked.source.pins == 0
    await asked.world.tier.close()


async def test_what_nobody_waits_for_any_more_is_removed(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    asked.held.clear()
    finding = [asyncio.create_task(asked.find(chunk)) for chunk in (1, 2)]
    await turns(5)
    assert asked.questions
    finding[0].cancel()
    asked.held.set()
    (two,) = await finding[1]
    assert two is not None
    (unclaimed,) = asked.unclaimed
    assert f".1.{CHUNK}." in unclaimed
    await asked.world.tier.close()


async def test_who_leaves_before_the_question_is_not_in_it(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    task = asyncio.create_task(asked.find(1))
    await asyncio.sleep(0)
    task.cancel()
    await asked.find(2)
    assert asked.questions in ([[2]], [[1, 2]], [[2], [1]])
    assert asked.source.pins == 0
    await asked.world.tier.close()


async def test_the_end_answers_whoever_waits(tmp_path: Path) -> None:
    asked = Asked(await in_place_world(tmp_path))
    asked.held.clear()
    task = asyncio.create_task(asked.find(1))
    await turns(5)
    assert asked.questions
    await asked.local_chunks.close()
    assert await task == [None]
    await asked.world.tier.close()
