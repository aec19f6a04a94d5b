"""Scripts of partitions that move to other brokers, and of moves that do not come to their end.

fewer replicas, where every broker has one ──> a move, held up ──> somebody dies
──> replaced by another, taken back, or both ──> what held it up goes ──> as many as before
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from tests.simulation.faults.reassignments import replicas_beside
from tests.simulation.faults.steps import ASKS, GivenUpError, Steps
from tests.simulation.faults.throttles import lifting, throttling
from tests.simulation.world import Place

SLOWEST: Final = 1
"""Bytes per second: a replica that has to catch up does not."""

DIES: Final = 0.6
"""In so many scripts a broker dies before the move is replaced."""

TAKEN_BACK: Final = 0.6
"""So many moves are taken back, the others replaced, and half of these taken back then."""


class MovingScripts(Steps):
    """See the module."""

    async def _move_given_up(self, place: Place) -> None:
        """A partition moves to brokers that get little of it; then it is not to move, or elsewhere.

        The leader, one that was added, or the controller dies in between.
        """
        nodes = list(self._world.brokers)
        try:
            await self._leave_room(place, nodes)
            target = replicas_beside(self._of(place), nodes, self._random)
            assert target is not None
            async with self._held_up(place, target):
                self._give(place, target)
                await self._until(lambda: self._is_on_its_way(place, target), "it is on its way")
                await asyncio.sleep(self._random.uniform(0.0, 2.0))
                async with self._somebody_dead(place):
                    await self._turn_back(place, nodes)
                await asyncio.sleep(self._random.uniform(0.0, 2.0))
        finally:
            count = min(3, len(nodes))
            self._give(place, tuple(self._random.sample(nodes, count)))
        await asyncio.sleep(1.0)

    def _is_on_its_way(self, place: Place, target: tuple[int, ...]) -> bool:
        record = self._of(place)
        return record.is_reassigning or record.replicas == target

    async def _leave_room(self, place: Place, nodes: list[int]) -> None:
        """Have fewer replicas than brokers."""
        if len(self._of(place).original) < len(nodes):
            return
        fewer = tuple(self._random.sample(nodes, len(nodes) - 1))
        self._give(place, fewer)
        await self._until(
            lambda: (
                not self._of(place).is_reassigning and set(self._of(place).replicas) == {*fewer}
            ),
            "there is room",
        )

    async def _turn_back(self, place: Place, nodes: list[int]) -> None:
        is_back = self._random.random() < TAKEN_BACK
        if not is_back:
            other = replicas_beside(self._of(place), nodes, self._random)
            if other is None:
                raise GivenUpError("every broker has a replica")
            self._give(place, other)
            await asyncio.sleep(self._random.uniform(0.0, 2.0))
            is_back = self._random.random() < 0.5
        if is_back:
            for _ in range(ASKS):
                self._reassigner.give(place, None)
                await asyncio.sleep(0.1)
        await asyncio.sleep(self._random.uniform(0.5, 3.0))

    def _give(self, place: Place, replicas: tuple[int, ...]) -> None:
        for _ in range(ASKS):
            self._reassigner.give(place, replicas)

    @asynccontextmanager
    async def _held_up(self, place: Place, target: tuple[int, ...]) -> AsyncIterator[None]:
        """Who is added gets nothing of the partition, or little, or all."""
        record = self._of(place)
        added = [node for node in target if node not in record.original]
        how = self._random.choice(("throttled", "throttled", "cut", "paused", "not at all"))
        async with AsyncExitStack() as held:
            if how == "cut":
                pairs = [
                    (one, node) for node in added for one in self._world.brokers if one != node
                ]
                await held.enter_async_context(self._cut_all(pairs))
            elif how == "paused":
                await held.enter_async_context(self._paused(*added))
            elif how == "throttled":
                self._ask_often(throttling(SLOWEST, self._world.brokers, [place.topic]))
                # What those in sync get counts, too, and uses it up.
                await asyncio.sleep(1.0)
            try:
                yield
            finally:
                if how == "throttled":
                    self._lift()

    def _lift(self) -> None:
        request = lifting(self._world.image)
        if request is not None:
            self._ask_often(request)

    def _ask_often(self, request: object) -> None:
        for _ in range(ASKS):
            self._ask(request)

    @asynccontextmanager
    async def _somebody_dead(self, place: Place) -> AsyncIterator[None]:
        """Or nobody."""
        record = self._of(place)
        who = self._random.choice(
            (record.leader, self._world.image.controller_id, *record.adding[:1])
        )
        if self._random.random() >= DIES or who < 0 or not self._broker(who).is_running:
            yield
            return
        async with self._killed(who, down_s=self._random.uniform(0.0, 4.0)):
            await asyncio.sleep(self._random.uniform(0.0, 3.0))
            yield
