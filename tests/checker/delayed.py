"""Transactions whose requests arrive after the next transaction has begun.

    python -m tests.checker.delayed --transactions 50000 --version 2

Many producers of ours go through the fault proxy, which holds up some of their EndTxn, Produce and
AddPartitionsToTxn requests for longer than the producers wait. A producer then reconnects and
tries again, or gives up what it did and aborts; it begins its next transaction, and the late
request arrives in the middle of that. With version 2 every transaction has an epoch of its own, so
the late request is refused. With version 1 it may end or join a transaction it does not belong to:
that is what KIP-890 is about, and what this run shows of Kafka (`--broker kafka --version 1`).

The history of all of it is judged as any other.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.node import OwnedNode
from tests.checker.anomalies.analysis import Report, analyse
from tests.checker.brokers import BROKERS, create_topic, new_broker
from tests.checker.clients.raw import (
    CommittedReader,
    GaveUpError,
    Partition,
    RefusedError,
    RetryPolicy,
    TransactionalProducer,
)
from tests.checker.clients.routes import Address
from tests.checker.history import Recorder, read_history
from tests.fakes.network.fault_proxy import ProxyProcess

TOPIC = "delayed"
PRODUCE, ADD_PARTITIONS, END_TXN = 0, 24, 26


@dataclass(slots=True)
class Options:
    """What a run is made of."""

    transactions: int = 1000
    version: int = 2
    broker: str = "varve"
    seed: int = 1
    producers: int = 16
    partitions: int = 4
    answer_ms: float = 60.0
    hold_ms: tuple[float, float] = (70.0, 250.0)
    hold_share: float = 0.04
    verification: bool = True
    drain_s: float = 40.0
    make_broker: Callable[[Path, int | None], OwnedNode] | None = None


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    report: Report
    transactions: int
    seconds: float
    proxy: dict[str, int] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """For people."""
        rate = self.transactions / self.seconds
        refused = ", ".join(f"{name} {count}" for name, count in self.refusals.most_common(8))
        return (
            f"{self.transactions} transactions in {self.seconds:.1f} s, {rate:.0f}/s; "
            f"proxy: {self.proxy}; refused: {refused or 'none'}\n{self.report.text()}"
        )


class _Producer:
    """One producer's transactions, one after the other."""

    def __init__(self, run: "_Run", number: int) -> None:
        self._run = run
        self._random = random.Random(run.options.seed * 1000 + number)
        self._number = number
        self._recorder = run.recorder(f"p{number}")
        self._count = 0
        options = run.options
        self._producer = TransactionalProducer(
            run.address,
            f"delayed-{number}",
            version=options.version,
            policy=RetryPolicy(options.answer_ms / 1000, 20.0, 0.004),
            timeout_ms=10_000,
        )

    async def work(self) -> None:
        """Until all producers together have made what was asked for."""
        await self._init()
        while self._run.take():
            if not await self._transaction():
                await self._init()
        self._producer.close()
        self._recorder.close()

    async def _init(self) -> None:
        for _ in range(20):
            try:
                await self._producer.init()
            except (RefusedError, GaveUpError) as error:
                self._run.refusals[str(error)] += 1
                await asyncio.sleep(0.05)
            else:
                return
        raise RuntimeError(f"producer {self._number} gets no producer id")

    async def _transaction(self) -> bool:
        """One transaction; False when the producer needs a new epoch."""
        draw, producer, recorder = self._random, self._producer, self._recorder
        indexes = draw.sample(range(self._run.options.partitions), 2)
        planned: list[tuple[Partition, str]] = []
        for index in indexes:
            self._count += 1
            planned.append(((TOPIC, index), f"{self._number}.{self._count}"))
        sends: list[list[object]] = [[f"{t}-{i}", value, None] for (t, i), value in planned]
        number = recorder.invoke("txn", sends=sends)
        commit = draw.random() < 0.6
        asked_to_commit = False
        outcome, alive = "fail", True
        try:
            for place, (partition, value) in enumerate(planned):
                # A client that gives up a request aborts; another one tries it again.
                tries_max = 1 if draw.random() < 0.5 else None
                await producer.add_partitions([partition], tries_max=tries_max)
                offsets = await producer.produce({partition: [value]}, tries_max=tries_max)
                sends[place][2] = offsets[partition]
        except GaveUpError:
            commit = False
        except RefusedError as error:
            self._run.refusals[str(error)] += 1
            commit, alive = False, False
        try:
            if alive:
                asked_to_commit = commit
                await producer.end(commit=commit)
                outcome = "ok" if commit else "fail"
        except (GaveUpError, RefusedError) as error:
            self._run.refusals[str(error)] += 1
            alive = False
            # Whether an earlier try was heard nobody told us.
            outcome = "info" if asked_to_commit else "fail"
        recorder.complete(number, outcome, "txn", sends=sends)
        return alive


class _Run:
    """The clients of a run, in one event loop."""

    def __init__(self, options: Options, directory: Path, address: tuple[str, int]) -> None:
        self.options = options
        self.address = address
        self.refusals: Counter[str] = Counter()
        self.paths: list[Path] = []
        self._directory = directory
        self._left = options.transactions
        self._told = time.monotonic()

    def recorder(self, proc: str) -> Recorder:
        """A process's part of the history."""
        path = self._directory / f"{proc}.jsonl"
        self.paths.append(path)
        return Recorder(path, proc)

    def take(self) -> bool:
        """Whether there is one more transaction to make."""
        self._left -= 1
        if time.monotonic() > self._told + 10:
            self._told = time.monotonic()
            sys.stderr.write(f"  {self._left} transactions left\n")
        return self._left >= 0

    async def produce(self) -> None:
        """All producers, and a reader of each partition beside them."""
        ended = asyncio.Event()
        readers = [
            asyncio.create_task(self._follow(index, ended))
            for index in range(self.options.partitions)
        ]
        async with asyncio.TaskGroup() as group:
            for number in range(self.options.producers):
                group.create_task(_Producer(self, number).work())
        ended.set()
        await asyncio.gather(*readers)

    async def _follow(self, index: int, ended: asyncio.Event) -> None:
        reader = CommittedReader(self.address, RetryPolicy(5.0, 60.0, 0.02))
        recorder = self.recorder(f"reader-{index}")
        key = f"{TOPIC}-{index}"
        recorder.note("assign", keys=[key])
        offset = 0
        while not ended.is_set():
            fetched = await reader.fetch((TOPIC, index), offset, max_wait_ms=200)
            if fetched.records:
                recorder.note("poll", polls={key: fetched.records})
            elif fetched.next_offset == offset:
                await asyncio.sleep(0.05)
            offset = fetched.next_offset
        reader.close()
        recorder.close()

    async def read_all(self) -> None:
        """The reader after the end: all keys, once the last open transaction has timed out."""
        keys = [(TOPIC, index) for index in range(self.options.partitions)]
        await final_read(self.address, keys, self.recorder("final"), self.options.drain_s)


async def final_read(
    address: Address, partitions: Sequence[Partition], recorder: Recorder, drain_s: float
) -> None:
    """Read partitions from their beginning to the log end, as far as transactions let."""
    reader = CommittedReader(address, RetryPolicy(10.0, 90.0, 0.05), "final")
    keys = {partition: f"{partition[0]}-{partition[1]}" for partition in partitions}
    recorder.note("assign", keys=list(keys.values()))
    ends: dict[str, tuple[int, int]] = {}
    # One for all: transactions that hang do so everywhere.
    deadline = time.monotonic() + drain_s
    for partition, key in keys.items():
        offset = 0
        while True:
            fetched = await reader.fetch(partition, offset, max_bytes=4 << 20)
            if fetched.records:
                recorder.note("poll", polls={key: fetched.records}, final=True)
            moved = fetched.next_offset > offset
            offset = fetched.next_offset
            if offset >= fetched.high_watermark:
                break
            if not moved and time.monotonic() > deadline:
                break
        ends[key] = (fetched.last_stable_offset, fetched.high_watermark)
    recorder.note("ends", keys=ends)
    reader.close()
    recorder.close()


def run(options: Options, directory: Path) -> Outcome:
    """Start a broker and a proxy, make the transactions, judge the history."""
    verification = str(options.verification).lower()
    if options.make_broker is not None:
        node = options.make_broker(directory / "broker", None)
    else:
        node = new_broker(
            options.broker,
            directory / "broker",
            properties={"transaction.partition.verification.enable": verification},
        )
    proxy = ProxyProcess(("127.0.0.1", node.port), seed=options.seed)
    try:
        node.properties["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{proxy.port}"
        node.start()
        create_topic(node, TOPIC, options.partitions)
        clients = _Run(options, directory, ("127.0.0.1", proxy.port))
        hold = {"action": "delay", "share": options.hold_share, "delay_ms": options.hold_ms}
        apis = [PRODUCE, ADD_PARTITIONS, END_TXN]
        proxy.set_faults({"requests": [{**hold, "apis": apis}]})
        begin = time.monotonic()
        asyncio.run(clients.produce())
        seconds = time.monotonic() - begin
        proxy.set_faults({})
        asyncio.run(clients.read_all())
        report = analyse(read_history(clients.paths))
        done = proxy.counts()["done"]
        return Outcome(report, options.transactions, seconds, done, clients.refusals)
    finally:
        node.kill()
        proxy.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report; the exit code is 1 with version 2 and anomalies."""
    parser = argparse.ArgumentParser(prog="python -m tests.checker.delayed")
    parser.add_argument("--transactions", type=int, default=50_000)
    parser.add_argument("--version", type=int, choices=(1, 2), default=2)
    parser.add_argument("--broker", choices=sorted(BROKERS), default="varve")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--producers", type=int, default=16)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--no-verification", action="store_true", help="as before KIP-890")
    parser.add_argument("--keep", type=Path, help="directory for history and broker")
    given = parser.parse_args(arguments)
    options = Options(
        transactions=given.transactions,
        version=given.version,
        broker=given.broker,
        seed=given.seed,
        producers=given.producers,
        partitions=given.partitions,
        verification=not given.no_verification,
    )
    directory = given.keep or Path(tempfile.mkdtemp(prefix="varve-delayed-"))
    try:
        outcome = run(options, directory)
    finally:
        if given.keep is None:
            shutil.rmtree(directory, ignore_errors=True)
    sys.stdout.write(
        f"seed {options.seed}, {options.broker}, transaction version {options.version}\n"
        f"{outcome.text()}\n"
    )
    return int(options.version == 2 and bool(outcome.report.forbidden))


if __name__ == "__main__":
    sys.exit(main())
