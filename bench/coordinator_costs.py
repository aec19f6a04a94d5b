"""What a coordinator's request costs the broker: `python -m bench.coordinator_costs`.

One process without sockets: a whole broker, whose connection reads the requests out of memory and
drops the answers when they have been checked. What is counted is the connection, the router, the
handler, the coordinator, its append, and the loop's turns; not the kernel's part of a connection.

    us     CPU of the process, all its threads; the best of some rounds, since others slow it down
    --callgrind    instructions instead (user): needs Valgrind with its headers, and a C compiler;
                   what is in them stays in a folder, one file for each row, for callgrind_annotate

`--only PART` takes the rows whose name has that part, `--only Txn` those of transactions.
`VARVE_NATIVE` says which code runs.
"""

import asyncio
import itertools
import struct
from collections.abc import Callable
from functools import partial
from typing import Final

from native.loader import prefer_compiled

prefer_compiled()

from bench import flexible, group_wire, transaction_wire, wire
from bench.cost_meter import CostMeter
from bench.group_wire import CommitFrame, Joined, Subscription
from bench.measured_broker import freeze_memory, main, measured_broker
from bench.played_client import PlayedClient
from bench.transaction_wire import TV1, TV2, Producer, Versions
from broker.broker import Broker
from protocol.error_codes import ErrorCode

AT_ONCE: Final = 32
"""Requests of a connection in flight: as in the row `commits-saturated`."""

PRODUCERS: Final = 16
PARTITIONS: Final = 10
TOPIC: Final = "t"
_VERSION_AT: Final = 6

Prepare = Callable[[], "list[bytes]"]


class World:
    """A broker with a classic group, a consumer group, and producers with transactional ids."""

    def __init__(self, broker: Broker) -> None:
        self.client = PlayedClient(broker)
        self._numbers = itertools.count(1)
        self.joined: Joined
        self.epoch = 0
        self.member_id = "00000000-0000-0000-0000-000000000001"
        self.producers: list[Producer] = []
        self.sequence = 0

    async def begin(self) -> None:
        """Create the topic, join both groups, initialise the producers."""
        ask = self.client.ask
        body = wire.create_topics_body([TOPIC], PARTITIONS)
        await ask([wire.frame(wire.CREATE_TOPICS, 4, 0, body)])
        await self.until(lambda: group_wire.find_coordinator_frame("g", 0), group_wire.plain_error)
        member = ""
        for _ in range(2):
            (answer,) = await ask([group_wire.join_frame("g", member, TOPIC, 0)])
            self.joined = Joined.read(answer)
            member = self.joined.member_id
        owned = {member: range(PARTITIONS)}
        await ask(
            [
                group_wire.sync_frame(
                    "g", self.joined.generation, member, 0, topic=TOPIC, owned=owned
                )
            ]
        )
        await self._join_consumer_group()
        await self._initialise()

    async def until(self, frame: Callable[[], bytes], code: Callable[[bytes], int]) -> bytes:
        """Ask until there is no error."""
        while True:
            (answer,) = await self.client.ask([frame()])
            if not code(answer):
                return answer
            await asyncio.sleep(0.05)

    async def _begun(
        self, frames: list[bytes], answers: list[bytes], codes_of: Callable[[bytes], set[int]]
    ) -> None:
        """Ask again, without being measured, for what a transaction before is not complete."""
        while True:
            codes = [codes_of(one) for one in answers]
            _check([one <= {0, ErrorCode.CONCURRENT_TRANSACTIONS} for one in codes])
            frames = [frame for frame, one in zip(frames, codes, strict=True) if one != {0}]
            if not frames:
                return
            await asyncio.sleep(0.01)
            answers = await self.client.ask(frames)

    async def _join_consumer_group(self) -> None:
        read = group_wire.HeartbeatAnswer.read
        join = group_wire.consumer_heartbeat_frame(
            "c", self.member_id, 0, 0, subscription=Subscription([TOPIC]), owned={}
        )
        found = read(await self.until(lambda: join, lambda answer: read(answer).error_code))
        while found.assignment is None or not found.assignment:
            beat = group_wire.consumer_heartbeat_frame("c", self.member_id, found.epoch, 0)
            found = read((await self.client.ask([beat]))[0])
            await asyncio.sleep(0.05)
        own = group_wire.consumer_heartbeat_frame(
            "c", self.member_id, found.epoch, 0, owned=found.assignment
        )
        self.epoch = read((await self.client.ask([own]))[0]).epoch

    async def _initialise(self) -> None:
        for index in range(PRODUCERS):
            name = f"producer-{index}"
            find = group_wire.find_coordinator_frame(name, 0, kind=1)
            await self.until(partial(bytes, find), group_wire.plain_error)
            frame = transaction_wire.init_producer_id_frame(name, 60_000, 0)
            answer = await self.until(
                partial(bytes, frame),
                lambda answer: transaction_wire.read_producer_id(answer)[0],
            )
            self.producers.append(Producer(name, *transaction_wire.read_producer_id(answer)[1:]))

    # -- requests --------------------------------------------------------------------------------

    def commits(self, version: int, partitions: int, group: str) -> Prepare:
        """OffsetCommit of the member of a group."""
        generation, member = self.joined.generation, self.joined.member_id
        if group == "c":
            generation, member = self.epoch, self.member_id
        frame = CommitFrame.of(group, generation, member, TOPIC, range(partitions))

        def frames() -> list[bytes]:
            made = [frame.filled(number, number) for number in range(AT_ONCE)]
            for one in made:
                struct.pack_into(">h", one, _VERSION_AT, version)
            return list(map(bytes, made))

        return frames

    def heartbeats(self) -> list[bytes]:
        """Heartbeat v3."""
        who = (self.joined.generation, self.joined.member_id)
        return [group_wire.classic_heartbeat_frame("g", *who, 0)] * AT_ONCE

    def consumer_heartbeats(self) -> list[bytes]:
        """ConsumerGroupHeartbeat v1 that brings nothing new."""
        frame = group_wire.consumer_heartbeat_frame("c", self.member_id, self.epoch, 0)
        return [frame] * AT_ONCE

    async def transactions(
        self, meter: CostMeter, versions: Versions, spent: dict[str, list[float]]
    ) -> None:
        """A transaction of each producer, a batch to each of 3 partitions and an offset in it."""
        kind = "v2" if versions is TV2 else "v1"

        async def timed(name: str, frames: list[bytes]) -> list[bytes]:
            meter.begin()
            answers = await self.client.ask(frames)
            for _ in range(5):
                await asyncio.sleep(0)
            spent.setdefault(name, []).append(meter.end(name) / len(frames))
            return answers

        chosen = range(3)
        if versions is TV1:
            add = [
                transaction_wire.add_partitions_frame(one, TOPIC, chosen, 0)
                for one in self.producers
            ]
            answers = await timed("AddPartitionsToTxn v3, 3 partitions", add)
            await self._begun(add, answers, flexible.partition_codes)
            await self.client.ask(
                [transaction_wire.add_offsets_frame(one, "tx", 0) for one in self.producers]
            )
        value = [b"t" * 100]
        produce = [
            transaction_wire.produce_frame(
                one,
                TOPIC,
                {
                    index: transaction_wire.transactional_batch(
                        value, one, 0 if versions is TV2 else self.sequence, 1_700_000_000_000
                    )
                    for index in chosen
                },
                versions,
                0,
            )
            for one in self.producers
        ]
        answers = await timed(f"Produce of transaction {kind}, 3 partitions", produce)
        await self._begun(
            produce, answers, lambda one: set(transaction_wire.produce_errors(one).values())
        )
        commit = [
            transaction_wire.txn_offset_commit_frame(one, "tx", TOPIC, {0: 1}, versions, 0)
            for one in self.producers
        ]
        name = f"TxnOffsetCommit v{versions.txn_offset_commit}, 1 partition"
        answers = await timed(name, commit)
        _check([flexible.partition_codes(one) == {0} for one in answers])
        end = [
            transaction_wire.end_txn_frame(one, versions, 0, commit=True) for one in self.producers
        ]
        answers = await timed(f"EndTxn v{versions.end_txn}, with its markers", end)
        if versions is TV1:
            self.sequence += 1
            _check([transaction_wire.error_after_throttle(one) == 0 for one in answers])
            return
        found = [transaction_wire.read_producer_id(one) for one in answers]
        _check([one[0] == 0 for one in found])
        self.producers = [
            Producer(producer.transactional_id, *one[1:])
            for producer, one in zip(self.producers, found, strict=True)
        ]


def _check(are_good: list[bool]) -> None:
    if not all(are_good):
        raise RuntimeError("a request was refused")


async def measure(rounds: int, only: str) -> dict[str, float]:
    """CPU seconds a request, by row."""
    meter = CostMeter()
    if meter.counts_instructions:
        rounds = 1
    spent: dict[str, list[float]] = {}
    async with measured_broker() as broker:
        world = World(broker)
        await world.begin()
        freeze_memory()
        rows: dict[str, Prepare] = {
            "OffsetCommit v8, 1 partition": world.commits(8, 1, "g"),
            "OffsetCommit v8, 10 partitions": world.commits(8, 10, "g"),
            "OffsetCommit v9, 1 partition, consumer group": world.commits(9, 1, "c"),
            "OffsetCommit v9, 10 partitions, consumer group": world.commits(9, 10, "c"),
            "Heartbeat v3": world.heartbeats,
            "ConsumerGroupHeartbeat v1": world.consumer_heartbeats,
        }
        for name, prepare in rows.items():
            if only not in name:
                continue
            frames = prepare()
            # Under Callgrind the rows before may have taken longer than a session lasts.
            for beat in (world.heartbeats, world.consumer_heartbeats):
                await world.client.ask(beat()[:1])
            is_commit = name.startswith("OffsetCommit")
            for at_once in (AT_ONCE, 1):
                row = f"{name}, {at_once} at once"
                for _ in range(20):
                    for answer in await world.client.ask(frames[:at_once]):
                        if is_commit:
                            _check([not group_wire.commit_errors(answer)])
                batches = [frames[at : at + at_once] for at in range(0, AT_ONCE, at_once)]
                for _ in range(rounds):
                    meter.begin()
                    for batch in batches * 4:
                        await world.client.ask(batch)
                    spent.setdefault(row, []).append(meter.end(row) / (AT_ONCE * 4))
        for versions in (TV2, TV1):
            if only in ("", "Txn"):
                for _ in range(5):
                    await world.transactions(CostMeter(counts=False), versions, {})
                for _ in range(rounds):
                    await world.transactions(meter, versions, spent)
    return {name: min(each) for name, each in spent.items()}


def _requests_of(row: str) -> int:
    return AT_ONCE * 4 if "at once" in row else PRODUCERS


if __name__ == "__main__":
    main("bench.coordinator_costs", __doc__, measure, width=64, requests_of=_requests_of)
