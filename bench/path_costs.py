"""What a request of the hot path costs the broker: `python -m bench.path_costs`.

One process without sockets, as in `bench.coordinator_costs`: the kernel's part of a connection is
not in it, nor are its copies of files.

    us     CPU of the process, all its threads; the best of some rounds, since others slow it down
    --callgrind    instructions instead (user): needs Valgrind with its headers, and a C compiler;
                   what is in them stays in a folder, one file for each row, for callgrind_annotate

`VARVE_NATIVE` says which code runs; compare both:

    for code in off require; do VARVE_NATIVE=$code python -m bench.path_costs --callgrind DIR; done
"""

import struct
from collections.abc import Awaitable, Callable
from typing import Final

from native.loader import prefer_compiled

prefer_compiled()

from bench import wire
from bench.cost_meter import CostMeter
from bench.measured_broker import freeze_memory, main, measured_broker
from bench.played_client import PlayedClient
from broker.broker import Broker

TOPIC: Final = "t"
REQUESTS: Final = 64
"""In a round; each counts, also where several are sent at once."""

PRODUCERS: Final = 50
"""Idempotent ones; from the second time on their batches are in the log."""

MIB: Final = 1 << 20
_ERROR_AT: Final = wire.ProduceResponseLayout.of(TOPIC).error_code - 4


class Work:
    """A broker with a topic, and the rows that are measured."""

    def __init__(self, broker: Broker) -> None:
        self._producer = PlayedClient(broker)
        self._consumer = PlayedClient(broker)
        self._end = 0
        # A producer's requests, for each time that they are measured, and how many have been sent.
        self._sequences: list[list[bytes]] = []
        self._producers = 0

    async def begin(self) -> None:
        """Create the topic, and fill its second partition with 8 MiB."""
        body = wire.create_topics_body([TOPIC], 2)
        await self._producer.ask([wire.frame(wire.CREATE_TOPICS, 4, 0, body)])
        batch = wire.record_batch([b"x" * 1000] * 16)
        frame = wire.produce_frame(TOPIC, 1, batch)
        for _ in range(8 * MIB // len(batch)):
            await self._produce([frame])
        for producer in range(PRODUCERS):
            self._sequences.append([_idempotent(producer, at) for at in range(REQUESTS)])

    async def _produce(self, frames: list[bytes]) -> None:
        for answer in await self._producer.ask(frames):
            (code,) = struct.unpack_from(">h", answer, _ERROR_AT)
            if code:
                raise RuntimeError(f"Produce: error {code}")

    async def produce(self, size: int, at_once: int) -> None:
        """Batches of one record of `size` bytes, so many requests in flight."""
        frame = wire.produce_frame(TOPIC, 0, wire.record_batch([b"x" * size]))
        for _ in range(REQUESTS // at_once):
            await self._produce([frame] * at_once)
        self._end += REQUESTS

    async def produce_in_sequence(self) -> None:
        """The batches of 100 B of an idempotent producer, one at a time."""
        for frame in self._sequences[self._producers % PRODUCERS]:
            await self._produce([frame])
        self._producers += 1
        self._end += REQUESTS

    async def fetch(self) -> None:
        """1 MiB from one partition, again and again the same."""
        frame = wire.fetch_frame(TOPIC, 1, 0, max_bytes=MIB)
        for _ in range(REQUESTS):
            (answer,) = await self._consumer.ask([frame])
            if wire.fetched_bytes(answer) < MIB // 2:
                raise RuntimeError("Fetch: less than was asked for")

    async def produce_to_a_waiting_fetch(self) -> None:
        """A consumer at the end of the log waits for each batch of 100 B: both are one request."""
        frame = wire.produce_frame(TOPIC, 0, wire.record_batch([b"x" * 100]))
        for _ in range(REQUESTS):
            waiting = wire.fetch_frame(TOPIC, 0, self._end, max_bytes=MIB, max_wait_ms=60_000)
            self._consumer.send([waiting])
            await self._produce([frame])
            (answer,) = await self._consumer.answers(1)
            if not wire.fetched_bytes(answer):
                raise RuntimeError("Fetch: answered without the record")
            self._end += 1

    def rows(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What is measured, by name."""
        return {
            "Produce 100 B": lambda: self.produce(100, 1),
            "Produce 100 B, 8 at once": lambda: self.produce(100, 8),
            "Produce 16 KiB": lambda: self.produce(16 << 10, 1),
            "Produce 100 B, idempotent": self.produce_in_sequence,
            "Fetch 1 MiB": self.fetch,
            "Produce 100 B and a Fetch that waits for it": self.produce_to_a_waiting_fetch,
        }


def _idempotent(producer: int, sequence: int) -> bytes:
    batch = wire.record_batch(
        [b"x" * 100], producer_id=producer, producer_epoch=0, base_sequence=sequence
    )
    return wire.produce_frame(TOPIC, 0, batch)


async def measure(rounds: int, only: str) -> dict[str, float]:
    """CPU seconds a request, by row."""
    meter = CostMeter()
    if meter.counts_instructions:
        rounds = 1
    spent: dict[str, float] = {}
    async with measured_broker() as broker:
        work = Work(broker)
        await work.begin()
        freeze_memory()
        for name, row in work.rows().items():
            if only not in name:
                continue
            await row()
            found = []
            for _ in range(rounds):
                meter.begin()
                await row()
                found.append(meter.end(name) / REQUESTS)
            spent[name] = min(found)
    return spent


if __name__ == "__main__":
    main("bench.path_costs", __doc__, measure, width=48, requests_of=lambda _: REQUESTS)
