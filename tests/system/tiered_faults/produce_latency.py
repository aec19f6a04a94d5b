"""Latency of producers while the bucket is in trouble, measured.

    python -m tests.system.tiered_faults.produce_latency [--rounds 5]

One broker with history in a bucket; a producer keeps closing segments, which are copied, and a
consumer reads all history again and again past a small cache. Beside them records of 1 KB are due
400 times a second in a topic of their own, and their way to the acknowledgement is timed: with the
bucket healthy, with a fault of every kind in all classes of requests, and healthy again. The figure
is a faulty run's 99th percentile divided by the mean of the two healthy ones around it; a line
gives the median of the rounds and their spread.

This is no test: who shares the machine decides about a 99th percentile. The aim is 1.2.
"""

import argparse
import asyncio
import statistics
import tempfile
from contextlib import suppress
from pathlib import Path

from bench import wire
from bench.generator import run_apart
from bench.latency import LatencyLoad, LatencyResult, measure
from bench.node import VarveNode
from bench.rows import BROKER_CORE, GENERATOR_CORE
from tests.fakes.s3.memory_server import Fault, MemoryS3
from tests.system.tiered_faults.cluster import (
    SEGMENT_BYTES,
    TIERED,
    Connect,
    clients_of,
    s3_node,
    until_copied,
)
from tests.system.tiered_faults.workload import Consumer, Producer

HISTORY_BYTES = 16 * SEGMENT_BYTES
CACHE_BYTES = 4 * SEGMENT_BYTES
BATCHES_PER_SECOND = 20
RATE_PER_S = 400
RECORD = b"l" * 1024


async def timed(node: VarveNode, connect: Connect, topic: str, duration_s: float) -> float:
    """p99 of the acknowledgement in ms; the topic is made for it."""
    await (await connect("admin")).create_topic(topic, 1)
    batch = wire.record_batch([RECORD])
    load = LatencyLoad(node.port, node.pid, topic, batch, RATE_PER_S, duration_s, warm_up_s=0.5)
    result: LatencyResult = await asyncio.to_thread(run_apart, GENERATOR_CORE, measure, load)
    return result.ack_p99_ms


async def read_again_and_again(connect: Connect, producer: Producer) -> None:
    """All history from its start, with every answer waited for."""
    client = await connect("history")
    while True:
        history = Consumer(client, "t")
        while history.next < producer.next:
            await history.read()


async def compare(rounds: int, duration_s: float) -> dict[Fault, list[tuple[float, float, float]]]:
    """(healthy ms, faulty ms, ratio) for every round of every fault."""
    found: dict[Fault, list[tuple[float, float, float]]] = {fault: [] for fault in Fault}
    with tempfile.TemporaryDirectory() as directory, MemoryS3() as s3:
        s3.late_s = 1.0
        node = s3_node(Path(directory), s3, {"rsm.config.fetch.chunk.cache.size": str(CACHE_BYTES)})
        node.cores = frozenset({BROKER_CORE})
        await asyncio.to_thread(node.start)
        try:
            async with clients_of(node) as connect:
                admin = await connect("admin")
                await admin.create_topic("t", 1, **TIERED)
                producer = Producer(await connect("producer"), "t")
                await producer.fill(HISTORY_BYTES)
                await until_copied(node.admin_address, "t")
                work = [
                    asyncio.create_task(producer.run(BATCHES_PER_SECOND)),
                    asyncio.create_task(read_again_and_again(connect, producer)),
                ]
                await timed(node, connect, "warm", duration_s)
                for number in range(rounds):
                    before = await timed(node, connect, f"healthy-{number}", duration_s)
                    for fault in Fault:
                        s3.break_down(fault)
                        name = f"{fault.name}-{number}"
                        faulty = await timed(node, connect, name, duration_s)
                        s3.heal()
                        await until_copied(node.admin_address, "t", 60)
                        after = await timed(node, connect, f"after-{name}", duration_s)
                        healthy = (before + after) / 2
                        found[fault].append((healthy, faulty, faulty / healthy))
                        before = after
                for task in work:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
        finally:
            await asyncio.to_thread(node.kill)
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    arguments = parser.parse_args()
    found = asyncio.run(compare(arguments.rounds, arguments.seconds))
    print(  # noqa: T201  likewise
        f"{'fault':12} {'healthy ms':>10} {'faulty ms':>10} {'times':>6}  spread"
    )
    for fault, rows in found.items():
        healthy, faulty, ratios = zip(*rows, strict=True)
        print(  # noqa: T201  a table for who runs it
            f"{fault.name:12} {statistics.median(healthy):10.2f} {statistics.median(faulty):10.2f} "
            f"{statistics.median(ratios):6.2f}  {min(ratios):.2f}-{max(ratios):.2f}"
        )


if __name__ == "__main__":
    main()
