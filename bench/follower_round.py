"""The cost of a round of replication at the follower: `python -m bench.follower_round`.

A round is what a broker does for one answer of a leader: receive it, decode it, append the records
of each partition that has some, and send the next Fetch. The fetcher, the connection, the
partitions and their logs are the real ones; the leader is played in memory, outside what is
measured, so a receive costs a copy and no system call, a send nothing.

    us a round = base + each x partitions with records        idle partitions cost nothing
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, Final
from uuid import UUID

from bench.perf_counters import INSTRUCTIONS, open_counter, read_counter
from broker.network.connector import Connecting
from broker.network.stream import Stream
from broker.peers.connection import PeerResources
from broker.peers.endpoint import PeerEndpoint
from broker.peers.observer import PeerObservers
from broker.peers.peers import Peers, answer_buffers
from broker.replicas.partition import Partition
from broker.replicas.replica_manager import ReplicaManager
from broker.replication.fetcher.fetchers import Fetchers
from broker.replication.fetcher.log_repair import LogRepair
from broker.replication.fetcher.replica_fetcher import FetcherResources
from broker.replication.fetcher.settings import FetcherSettings
from broker.replication.fetcher.stats import FetcherStats
from broker.replication.quota import ReplicationQuota, follower_replicas
from broker.runtime.disk import Disk
from broker.runtime.timer import TimerWheel
from config.topic import TopicConfig
from protocol.hot.fetch import FetchPartitionResponse, encode_response
from protocol.hot.follower_fetch import VERSION
from protocol.records.builder import build_batch
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.manager.log_truncations import LogTruncations
from storage.types.topic_partition import TopicPartition

FOLLOWER, LEADER, EPOCH = 1, 2, 0
TOPIC_ID: Final = UUID(int=1)
VALUE: Final = b"x" * 900
_HEAD: Final = Struct(">i")
_OFFSET: Final = Struct(">q")
_CORRELATION: Final = Struct(">hhi")


class PlayedStream:
    """What the leader answers is received, what is sent to it is kept."""

    def __init__(self) -> None:
        self.incoming = memoryview(b"")
        self.sent: list[bytes] = []

    def fileno(self) -> int:
        """A number that no descriptor has."""
        return 1 << 20

    def recv_into(self, buffer: memoryview) -> int:
        """As a socket, out of memory."""
        count = min(len(buffer), len(self.incoming))
        if not count:
            raise BlockingIOError
        buffer[:count] = self.incoming[:count]
        self.incoming = self.incoming[count:]
        return count

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        """Keep the request."""
        self.sent += buffers
        return sum(map(len, buffers))

    def send_file(self, descriptor: int, position: int, count: int) -> int:
        """A follower sends no files."""
        raise NotImplementedError

    def hung_up(self) -> bool:
        """It is always read."""
        return False

    def close(self) -> None:
        """Nothing is open."""


class PlayedLoop:
    """Connects, says what is readable, and runs what is called soon."""

    def __init__(self, stream: PlayedStream) -> None:
        self.stream = stream
        self.readable: Callable[..., object] = _nothing
        self.soon: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def connect(self, host: str, port: int, done: Callable[[Stream | OSError], None]) -> Connecting:
        """At once."""
        self.call_soon(done, self.stream)
        return _NoConnect()

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        """There is one stream."""
        self.readable = callback

    def remove_reader(self, fd: int) -> object:
        """Nothing comes while an answer is held."""
        return None

    def add_writer(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        """Everything is sent at once."""

    def remove_writer(self, fd: int) -> object:
        """Nothing is watched."""
        return None

    def call_soon(self, callback: Callable[..., object], *args: object) -> object:
        """In `turn`."""
        self.soon.append((callback, args))
        return None

    def turn(self) -> None:
        """Run until nothing is left to be done."""
        while self.soon or self.stream.incoming:
            if self.stream.incoming:
                self.readable()
            soon, self.soon = self.soon, []
            for callback, args in soon:
                callback(*args)


class _NoConnect:
    def cancel(self) -> None:
        """It is made already."""


def _nothing(*_: object) -> None:
    return


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a round: the median."""

    busy: int
    idle: int
    us: float
    instructions: float


class Follower:
    """A follower of `partitions` partitions of one leader."""

    def __init__(self, directory: Path, partitions: int, disk: Disk, counter: int) -> None:
        self._counter = counter
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        self.stream = PlayedStream()
        self.loop = PlayedLoop(self.stream)
        timer = TimerWheel(loop, clock)
        replicas = ReplicaManager(clock=clock, timer=timer, disk=disk, loop=loop)
        peers = Peers(
            FOLLOWER,
            None,
            PeerResources(
                poller=self.loop,
                connector=self.loop,
                timer=timer,
                buffers=answer_buffers(),
                observers=PeerObservers(),
                client_id="broker-1",
            ),
        )
        peers._endpoints[LEADER] = PeerEndpoint("leader", 9092, 1)
        settings, stats = FetcherSettings(), FetcherStats()
        truncations: Any = LogTruncations
        self.fetchers = Fetchers(
            peers,
            FetcherResources(
                node_id=FOLLOWER,
                broker_epoch=lambda: 1,
                settings=lambda: settings,
                poller=self.loop,
                timer=timer,
                clock=clock,
                repair=LogRepair(
                    FOLLOWER, peers, truncations, stats, clock=clock, timeout_ms=lambda: 1e4
                ),
                stats=stats,
                quota=ReplicationQuota(clock, FOLLOWER, follower_replicas),
            ),
        )
        environment = Environment.without_loop(
            filesystem=LocalFilesystem(), clock=clock, randomness=SeededRandomness(1)
        )
        self.partitions: list[Partition] = []
        for index in range(partitions):
            topic_partition = TopicPartition("t", index)
            log = Log.open(
                str(directory / str(topic_partition)),
                topic_partition,
                topic_id=TOPIC_ID,
                config=TopicConfig(),
                environment=environment,
            )
            partition = replicas.open_partition(topic_partition, TOPIC_ID, log)
            partition.become_follower(LEADER, EPOCH)
            self.partitions.append(partition)
            self.fetchers.follow(partition, LEADER)
        self.loop.turn()
        self.answer([])
        self.loop.turn()

    def answer(self, partitions: list[FetchPartitionResponse]) -> None:
        """The leader answers the request that was sent last."""
        sent = self.stream.sent.pop()
        _, _, correlation_id = _CORRELATION.unpack_from(sent, 4)
        topics = [(TOPIC_ID.bytes, partitions)] if partitions else []
        body = b"".join(map(bytes, encode_response(topics, VERSION, session_id=7)))
        data = _HEAD.pack(correlation_id) + b"\0" + body
        self.stream.incoming = memoryview(_HEAD.pack(len(data)) + data)

    def measure(self, busy: int, rounds: int) -> Cost:
        """`busy` partitions have a batch of one record in each round."""
        batch = bytearray(build_batch([(None, VALUE, (), 1_700_000_000_000)]))
        batch[12:16] = bytes(4)
        counter = self._counter
        times, counts = [], []
        for _ in range(rounds):
            answers = []
            for partition in self.partitions[:busy]:
                end = partition.log.log_end_offset
                _OFFSET.pack_into(batch, 0, end)
                index = partition.topic_partition.partition
                answers.append(FetchPartitionResponse(index, 0, end, end, 0, records=bytes(batch)))
            self.answer(answers)
            before = read_counter(counter)
            began_s = time.perf_counter()
            self.loop.turn()
            times.append(time.perf_counter() - began_s)
            counts.append(read_counter(counter) - before)
        for partition in self.partitions[:busy]:
            assert partition.log.log_end_offset >= rounds, partition.log
        return Cost(
            busy,
            len(self.partitions) - busy,
            statistics.median(times) * 1e6,
            statistics.median(counts),
        )


async def measure(rounds: int, idle: int) -> list[Cost]:
    """Rounds with one, ten and a hundred busy partitions, alone and beside idle ones."""
    costs = []
    disk = Disk(2)
    counter = open_counter(0, INSTRUCTIONS)
    for count in (100, 100 + idle):
        with tempfile.TemporaryDirectory(prefix="varve-follower-") as directory:
            follower = Follower(Path(directory), count, disk, counter)
            for busy in (1, 10, 100):
                follower.measure(busy, rounds // 10)
                costs.append(follower.measure(busy, rounds))
    disk.close()
    return costs


def print_costs(costs: Sequence[Cost]) -> None:
    """A table, and what of a round is by partition: from the first and the third cost."""
    print("with records    idle   us a round   1000 instructions")
    for cost in costs:
        print(f"{cost.busy:12} {cost.idle:7} {cost.us:12.1f} {cost.instructions / 1000:19.1f}")
    one, _, hundred = costs[:3]
    each = (hundred.us - one.us) / (hundred.busy - one.busy)
    print(f"base {one.us - each:.1f} us, each partition {each:.1f} us")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="bench.follower_round", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--idle", type=int, default=1000)
    chosen = parser.parse_args()
    print_costs(asyncio.run(measure(chosen.rounds, chosen.idle)))


if __name__ == "__main__":
    main()
