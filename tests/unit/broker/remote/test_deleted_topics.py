"""How long it is noted that a topic was deleted here, and may have left objects."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.controller.store.metadata_store import OutcomeUnknownError
from broker.remote.deleted_topics import DeletedTopics
from config.tier import TierConfig
from tests.fakes.clock import ManualClock
from tiered.segment_metadata import TopicIdPartition

TOPIC = UUID(int=7)
GRACE_MS = 1_000


class World:
    """A steward of a cluster in which one topic was deleted, and has no segment any more."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.forgotten: list[frozenset[UUID]] = []
        self.failure: Exception | None = None
        self.scrubber = SimpleNamespace(removed_from_ms=None)
        self.manager = SimpleNamespace(scrubber=self.scrubber)
        self.known: list[TopicIdPartition] = []
        self.topics = DeletedTopics(
            cast(
                "Any",
                SimpleNamespace(
                    image=SimpleNamespace(deleted_topics=frozenset({TOPIC})),
                    forget_deleted=self.forget,
                ),
            ),
            cast(
                "Any",
                SimpleNamespace(
                    known=lambda: self.known,
                    leads=lambda _: True,
                    is_steward=True,
                    is_complete=True,
                ),
            ),
            cast("Any", self.manager),
            clock=self.clock,
            settings=lambda: TierConfig(tier_gc_grace_ms=GRACE_MS),
        )

    async def forget(self, done: frozenset[UUID]) -> None:
        if self.failure is not None:
            raise self.failure
        self.forgotten.append(done)

    async def check(self) -> bool:
        """Whether the note is dropped by now."""
        self.topics.check()
        await asyncio.sleep(0)
        return bool(self.forgotten)


@pytest.mark.parametrize("late_ms", [0, 1])
async def test_the_note_goes_with_a_collection_that_found_what_was_old_enough(late_ms: int) -> None:
    """By then what a cancelled copy has put last is older than the grace period."""
    world = World()
    world.clock.advance(5)
    assert not await world.check()
    world.clock.advance(GRACE_MS)
    world.scrubber.removed_from_ms = world.clock.monotonic_ms() - late_ms
    assert await world.check() is (late_ms == 0)


async def test_what_the_metadata_knows_again_is_deleted_again() -> None:
    """A leader that had not heard of the deletion began a copy when it was done."""
    world = World()
    partition = TopicIdPartition(TOPIC, "t", 0)
    stopped: list[tuple[TopicIdPartition, bool]] = []
    world.known = [partition]
    world.manager.gone = {partition: None}
    world.manager.tasks_of = lambda _: None
    world.manager.on_stop = lambda one, *, delete_remote: stopped.append((one, delete_remote))
    assert not await world.check()
    assert stopped == [(partition, True)]


async def test_a_collection_that_removes_nothing_does_not_count() -> None:
    """A trial, or one of a bucket whose claim is missing."""
    world = World()
    assert not await world.check()
    world.clock.advance(10 * GRACE_MS)
    assert not await world.check()


async def test_a_store_that_does_not_answer_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line says why, without a trace: nothing is wrong here."""
    world = World()
    world.topics.check()
    world.clock.advance(2 * GRACE_MS)
    world.scrubber.removed_from_ms = world.clock.monotonic_ms()
    world.failure = OutcomeUnknownError("the store has not answered")
    assert not await world.check()
    await world.topics.stop()
    (line,) = caplog.records
    assert "trying again topics=1 error=the store has not answered" in line.getMessage()
    assert line.exc_info is None
    world.failure = None
    assert await world.check()
