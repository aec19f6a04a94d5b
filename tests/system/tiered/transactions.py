"""Transactions in a scenario, by real transactional producers, one per name.

A step is data of one producer, or what ends its transaction:

    History().data("a", 2).data("b", 1).abort("a").commit("b")

    offset  0     1     2     3         4
            a     a     b     abort a   commit b

Every record is a batch of its own, and every step ends at the offset that is drawn.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from confluent_kafka import Producer

from tests.fakes.network.client import LATEST
from tests.system.tiered.context import Context


class Step(NamedTuple):
    """`kind` is "data", "commit" or "abort"; `records` of data."""

    kind: str
    producer: str
    records: int = 0


class Aborted(NamedTuple):
    """An aborted transaction: offsets of its first record and of its marker."""

    producer: str
    first: int
    marker: int


@dataclass(slots=True)
class History:
    """Steps from offset 0 on; the values tell producer and offset."""

    steps: list[Step] = field(default_factory=list)

    def data(self, producer: str, count: int = 1) -> Self:
        """Records of a producer, whose transaction begins with its first since the last marker."""
        self.steps.append(Step("data", producer, count))
        return self

    def commit(self, producer: str) -> Self:
        """End it."""
        self.steps.append(Step("commit", producer))
        return self

    def abort(self, producer: str) -> Self:
        """Take it back."""
        self.steps.append(Step("abort", producer))
        return self

    def outcome(self) -> "Outcome":
        """What readers must see."""
        offset = 0
        open_since: dict[str, int] = {}
        data: list[tuple[int, str]] = []
        aborted: list[Aborted] = []
        for kind, producer, count in self.steps:
            if kind == "data":
                open_since.setdefault(producer, offset)
                data += [(offset + n, producer) for n in range(count)]
                offset += count
            else:
                first = open_since.pop(producer)
                if kind == "abort":
                    aborted.append(Aborted(producer, first, offset))
                offset += 1
        stable = min(open_since.values(), default=offset)
        committed = [
            (at, producer)
            for at, producer in data
            if at < stable
            and not any(a.producer == producer and a.first <= at < a.marker for a in aborted)
        ]
        return Outcome(offset, stable, data, committed, aborted)


class Outcome(NamedTuple):
    """`data` and `committed` are (offset, producer) of all records, and of those that count."""

    end: int
    last_stable: int
    data: list[tuple[int, str]]
    committed: list[tuple[int, str]]
    aborted: list[Aborted]


@dataclass(slots=True)
class Transactions:
    """The action: writes the steps it has not written yet to every one of `topics`."""

    topics: tuple[str, ...]
    history: History
    _done: int = 0
    _producers: dict[tuple[str, str], tuple[Any, bool]] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)

    async def run(self, context: Context) -> None:
        steps, self._done = self.history.steps[self._done :], len(self.history.steps)
        for topic in self.topics:
            for step in steps:
                await asyncio.to_thread(self._ask, context, topic, step)
                await self._until_written(context, topic, step)

    def _ask(self, context: Context, topic: str, step: Step) -> None:
        key = (topic, step.producer)
        producer, is_open = self._producers.get(key, (None, False))
        if producer is None:
            producer = Producer(
                {
                    "bootstrap.servers": context.cluster.nodes[0].address,
                    "transactional.id": f"{topic}-{step.producer}",
                    "linger.ms": 0,
                }
            )
            producer.init_transactions(30)
        if step.kind == "data":
            if not is_open:
                producer.begin_transaction()
            for _ in range(step.records):
                _next_millisecond()
                producer.produce(topic, key=step.producer, value=step.producer, partition=0)
                assert producer.flush(30) == 0
        else:
            _next_millisecond()
            end = (
                producer.commit_transaction if step.kind == "commit" else producer.abort_transaction
            )
            end(30)
        self._producers[key] = (producer, step.kind == "data")

    async def _until_written(self, context: Context, topic: str, step: Step) -> None:
        """A marker is answered for before it is written."""
        self._ends[topic] = self._ends.get(topic, 0) + (step.records or 1)

        async def written() -> None:
            end = await context.offset(topic, 0, LATEST)
            assert end == self._ends[topic], f"{topic} ends at {end}"

        await context.eventually(written)


def _next_millisecond() -> None:
    """Let the next batch have a later time, as only then it gets an entry in the time index.

    Full indexes are what closes segments here.
    """
    begun = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= begun:
        time.sleep(0.0002)
