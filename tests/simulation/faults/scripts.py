"""Faults of several steps, each of which waits until the one before has had its effect.

What single faults bring about once in hours: a leader that comes back to a partition that another
has led meanwhile; a replica that is eligible and has lost its log; a leader that starts alone; one
that is elected with what it knew seconds ago; one that was replaced long ago and does not know;
one that is enough alone since an operator says so; a broker that dies while a log is moved; a
partition that is on its way to other brokers, and is not to go there any more.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from tests.simulation.clients.losses import PLACE as LOSSY_PLACE
from tests.simulation.faults.moves import Striker, elsewhere, moves_of, replicas_at
from tests.simulation.faults.moving_scripts import MovingScripts
from tests.simulation.faults.steps import GivenUpError
from tests.simulation.world import Place

LAGGING_HEIR: Final = "lagging heir"
MIN_ISR: Final = "min.insync.replicas"
RETENTION: Final = "retention.ms"
RETENTIONS_MS: Final = (15_000, 40_000, -1)

WRITTEN: Final = 0.7
"""So many scripts are about a partition of the clients', the others about any."""

DEAF: Final = 0.6
"""So many leaders in doubt do not hear other brokers either."""

CHANGES_MAX: Final = 60
"""A broker that dies while a log moves makes up to so many changes of its disk before."""

POWER_LOST: Final = 0.4
"""So many of them lose what was not synced."""


class Script(MovingScripts):
    """One run of a script, on one partition. Everything it has done is undone at its end."""

    async def run(self, kind: str) -> None:
        """Run the script of a name until its end, or until a step has no effect."""
        image = self._world.image
        places = [
            Place(topic.name, partition.index)
            for topic in image.topics.values()
            for partition in topic.partitions
            if partition.leader >= 0 and len(partition.replicas) > 2
        ]
        if not places:
            return
        written = [place for place in places if not place.topic.startswith("__")]
        if written and self._random.random() < WRITTEN:
            places = written
        place = self._random.choice(sorted(places))
        if kind == LAGGING_HEIR:
            place = LOSSY_PLACE
        self._note(f"{kind}: {place.topic}-{place.partition}")
        try:
            await getattr(self, "_" + kind.replace(" ", "_"))(place)
        except GivenUpError as given_up:
            self._note(f"{kind} given up: {given_up}")
        else:
            self._note(f"end of {kind}")

    # -- scripts ---------------------------------------------------------------------------------

    async def _leader_comes_back(self, place: Place) -> None:
        """A leads, is paused, B leads, A goes on, B dies: A leads again, in the same process."""
        first = self._of(place).leader
        async with self._paused(first):
            await self._until(lambda: self._of(place).leader not in (first, -1), "another leads")
            await asyncio.sleep(self._random.uniform(0.5, 3.0))
        second = self._of(place).leader
        await self._until(lambda: first in self._of(place).isr, "the first is in sync")
        await asyncio.sleep(self._random.uniform(0.0, 1.0))
        others = [node for node in self._of(place).replicas if node not in (first, second)]
        # The third would be elected where it comes first.
        async with self._paused(*others), self._killed(second):
            await asyncio.sleep(0.2)
            await self._until(lambda: self._of(place).leader == first, "the first leads")
        await asyncio.sleep(1.0)

    async def _eligible_loses_its_log(self, place: Place) -> None:
        """A leads, C dies, B's machine loses its disk's cache and is cut from A; A dies."""
        if not (self._may_forget and self._world.is_whole()):
            raise GivenUpError("not everything is whole")
        leader = self._of(place).leader
        second, third = (node for node in self._of(place).replicas if node != leader)
        async with self._killed(third):
            await self._until(
                lambda: set(self._of(place).isr) == {leader, second}, "the third leaves the ISR"
            )
            await asyncio.sleep(self._random.uniform(0.2, 1.5))
            if not self._is_safe_without(second):
                raise GivenUpError("the second has what no other has")
            place_of = self._broker(second)
            if not place_of.is_running or place_of.process.is_paused:
                raise GivenUpError("the second is not there")
            async with self._cut(leader, second):
                place_of.crash(None)
                await asyncio.sleep(0.3)
                self._world.start(second)
                await asyncio.sleep(self._random.uniform(1.0, 4.0))
                async with self._killed(leader):
                    await asyncio.sleep(self._random.uniform(4.0, 8.0))
            await asyncio.sleep(1.0)

    async def _leader_alone(self, place: Place) -> None:
        """A leads, the others are cut from all; A starts again and leads alone; they are back."""
        leader = self._of(place).leader
        others = [node for node in self._of(place).replicas if node != leader]
        links = [(leader, other) for other in others]
        async with self._cut_from_store(*others), self._cut_all(links):
            await asyncio.sleep(self._random.uniform(1.0, 6.0))
            async with self._killed(leader, down_s=0.3):
                pass
            await asyncio.sleep(self._random.uniform(0.0, 6.0))

    async def _two_changes(self, place: Place) -> None:
        """The leader dies, and as soon as there is another, that one, too."""
        first = self._of(place).leader
        async with self._killed(first, down_s=self._random.uniform(0.2, 2.0)):
            await self._until(lambda: self._of(place).leader not in (first, -1), "another leads")
            await asyncio.sleep(self._random.choice((0.0, 0.001, 0.02, 0.3)))
        async with self._killed(self._of(place).leader, down_s=self._random.uniform(0.2, 2.0)):
            pass

    async def _deaf_heir(self, place: Place) -> None:
        """B hears nothing from C, and is heard, while A leads; A dies, and B leads.

        Of all that C leads B knows what was there seconds ago, and its own word reaches C.
        """
        image = self._of(place)
        leader = image.leader
        heir = next((node for node in image.replicas if node in image.isr and node != leader), -1)
        if heir < 0:
            raise GivenUpError("nobody else is in sync")
        others = [node for node in self._world.brokers if node not in (leader, heir)]
        async with self._deaf(heir, *others):
            await asyncio.sleep(self._random.uniform(0.5, 10.0))
            async with self._killed(leader, down_s=self._random.uniform(0.2, 3.0)):
                await self._until(
                    lambda: self._of(place).leader not in (leader, -1), "another leads"
                )
                await asyncio.sleep(self._random.uniform(0.0, 5.0))
        await asyncio.sleep(1.0)

    async def _deaf_leader(self, place: Place) -> None:
        """A leads, and hears nothing from C for longer than anybody waits for an answer.

        What A asks of C is done, and A does not learn of it; D hears both.
        """
        image = self._of(place)
        others = [node for node in image.replicas if node != image.leader]
        async with self._deaf(image.leader, self._random.choice(others)):
            await asyncio.sleep(
                self._random.choice(
                    (self._random.uniform(4.0, 15.0), self._random.uniform(30.0, 45.0))
                )
            )
        await asyncio.sleep(2.0)

    async def _leader_in_doubt(self, place: Place) -> None:
        """A is cut from the store for long; B leads, and what is decided A does not hear.

        Mostly A does not hear the other brokers either, and is heard by them.
        """
        first = self._of(place).leader
        before = self._settings_of(place).get(RETENTION)
        async with self._cut_from_store(first):
            await self._until(lambda: self._of(place).leader not in (first, -1), "another leads")
            try:
                if before is not None and int(before) >= 0:
                    others_ms = [one for one in RETENTIONS_MS if one != int(before)]
                    self._change(place.topic, RETENTION, self._random.choice(others_ms))
                await asyncio.sleep(self._random.uniform(0.0, 2.0))
                is_deaf = self._random.random() < DEAF
                others = [node for node in self._world.brokers if node != first] * is_deaf
                async with self._deaf(first, *others):
                    await asyncio.sleep(
                        self._random.choice(
                            (self._random.uniform(0.5, 6.0), self._random.uniform(14.0, 24.0))
                        )
                    )
            finally:
                if before is not None and int(before) >= 0:
                    self._change(place.topic, RETENTION, int(before))
        await asyncio.sleep(1.0)

    async def _minimum_goes_down(self, place: Place) -> None:
        """A is in sync alone, below the minimum, and then is enough; A dies, the others wake.

        From then on those that were eligible lack what A has committed.
        """
        leader = self._of(place).leader
        others = [node for node in self._of(place).replicas if node != leader]
        try:
            async with AsyncExitStack() as asleep:
                await asleep.enter_async_context(self._paused(*others))
                await self._until(lambda: self._of(place).isr == (leader,), "it is alone")
                self._change(place.topic, MIN_ISR, 1)
                await self._until(
                    lambda: self._settings_of(place).get(MIN_ISR) == "1",
                    "the minimum is one",
                )
                await asyncio.sleep(self._random.uniform(0.2, 3.0))
                async with self._killed(leader, down_s=self._random.uniform(0.2, 4.0)):
                    await asleep.aclose()
                    await asyncio.sleep(self._random.uniform(2.0, 6.0))
        finally:
            self._change(place.topic, MIN_ISR, None)
        await asyncio.sleep(1.0)

    async def _lagging_heir(self, place: Place) -> None:
        """Some lag behind A, which goes on without them, and dies; A comes back with more.

        Where all lag one of them leads, else one that does not.
        """
        leader = self._of(place).leader
        if leader < 0:
            raise GivenUpError("nobody leads")
        others = [node for node in self._of(place).replicas if node != leader]
        lag = others if self._random.random() < 0.6 else self._random.sample(others, 1)
        async with AsyncExitStack() as asleep:
            # A leader that is cut from the controller could not say that somebody lags.
            is_cut = self._random.random() < 0.5
            cut = [one for one in lag if is_cut and one != self._world.image.controller_id]
            await asleep.enter_async_context(self._cut_all([(leader, one) for one in cut]))
            await asleep.enter_async_context(self._paused(*(one for one in lag if one not in cut)))
            await self._until(lambda: not set(lag) & set(self._of(place).isr), "they lag")
            await asyncio.sleep(self._random.uniform(0.2, 4.0))
            async with self._killed(leader, down_s=self._random.uniform(0.2, 6.0)):
                await asleep.aclose()
                await self._until(
                    lambda: self._of(place).leader not in (leader, -1), "another leads"
                )
        await asyncio.sleep(1.0)

    async def _dies_while_moving(self, place: Place) -> None:
        """A replica's log is copied to another directory of its broker, which dies on the way."""
        node = self._random.choice(self._of(place).replicas)
        broker = self._broker(node)
        if place not in replicas_at(broker):
            raise GivenUpError("it does not serve it")
        forgets = self._random.random() < POWER_LOST

        def strike() -> None:
            if forgets and self._may_forget and self._is_safe_without(node):
                broker.crash(self._random if self._random.random() < 0.5 else None)
            else:
                broker.kill()

        striker = Striker(broker, self._random.randint(1, CHANGES_MAX), strike)
        try:
            self._ask(moves_of([place], elsewhere(broker, place, self._random)), at=node)
            await self._until(lambda: striker.has_struck, "it is struck")
            await asyncio.sleep(self._random.uniform(0.2, 4.0))
        finally:
            striker.end()
            self._world.start(node)
        await asyncio.sleep(1.0)
