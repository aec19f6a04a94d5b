"""What both sides of a replication round share: their logs, what is measured, how it is printed."""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from bench.cost_meter import CostMeter, count_instructions
from broker.replicas.partition import Partition
from broker.replicas.replica_manager import ReplicaManager
from broker.runtime.disk import Disk
from config.topic import TopicConfig
from native.loader import code_path
from storage.environment.clock import Clock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition

VALUE: Final = b"x" * 900
TOPIC_ID: Final = UUID(int=1)
BUSY: Final = (1, 10, 100)


class Side(Protocol):
    """A leader or a follower of partitions, without the network between them."""

    def measure(self, busy: int, rounds: int, meter: CostMeter, name: str) -> list[float]:
        """`busy` partitions get a batch of one record in each round; CPU seconds of each."""
        ...


OpenSide = Callable[[Path, int, Disk], Side]


def open_partitions(
    replicas: ReplicaManager, directory: Path, count: int, clock: Clock
) -> list[Partition]:
    """Partitions of one topic with empty logs; none has a role yet."""
    environment = Environment.without_loop(
        filesystem=LocalFilesystem(), clock=clock, randomness=SeededRandomness(1)
    )
    partitions = []
    for index in range(count):
        topic_partition = TopicPartition("t", index)
        log = Log.open(
            str(directory / str(topic_partition)),
            topic_partition,
            topic_id=TOPIC_ID,
            config=TopicConfig(),
            environment=environment,
        )
        partitions.append(replicas.open_partition(topic_partition, TOPIC_ID, log))
    return partitions


async def measure(open_side: OpenSide, rounds: int, idle: int) -> dict[str, float]:
    """CPU seconds of rounds with 1, 10 and 100 busy partitions, alone and beside idle ones.

    Returns:
        The median, by row.
    """
    meter, before = CostMeter(), CostMeter(counts=False)
    disk = Disk(2)
    costs: dict[str, float] = {}
    for count in (100, 100 + idle):
        with tempfile.TemporaryDirectory(prefix="varve-round-") as directory:
            side = open_side(Path(directory), count, disk)
            for busy in BUSY:
                name = f"{busy} with records, {count - busy} without"
                side.measure(busy, max(rounds // 10, 1), before, name)
                costs[name] = statistics.median(side.measure(busy, rounds, meter, name))
    disk.close()
    return costs


def main(open_side: OpenSide, program: str, description: str | None) -> None:
    """Measure one side as the command line says, and print a table.

    Args:
        open_side: The side, with so many partitions.
        program: The module that is run.
        description: For `--help`.
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--callgrind", type=Path, help="a folder: count instructions (Valgrind)")
    chosen = parser.parse_args()
    print(f"code {code_path().describe()}")
    arguments = ["--rounds", str(chosen.rounds), "--idle", str(chosen.idle)]
    if chosen.callgrind is not None:
        for name, total in count_instructions(program, arguments, chosen.callgrind).items():
            print(f"{name:40} {total / chosen.rounds:12,.0f} instructions")
        return
    costs = asyncio.run(measure(open_side, chosen.rounds, chosen.idle))
    for name, seconds in costs.items():
        print(f"{name:40} {seconds * 1e6:8.1f} us")
    one, _, many = list(costs.values())[: len(BUSY)]
    each = (many - one) / (BUSY[-1] - BUSY[0])
    print(f"base {(one - each) * 1e6:.1f} us, each partition {each * 1e6:.1f} us")
