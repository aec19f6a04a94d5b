"""The cost of a round of replication at the follower: `python -m bench.follower_round`.

A round is what a broker does for one answer of a leader: receive it, decode it, append the records
of each partition that has some, and send the next Fetch. The fetcher, the connection, the
partitions and their logs are the real ones; the leader is played in memory, outside what is
measured, so a receive costs a copy and no system call, a send nothing.

    us a round = base + each x partitions with records        idle partitions cost nothing
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, Final

from native.loader import prefer_compiled

prefer_compiled()

from bench.cost_meter import CostMeter
from bench.played_stream import PlayedStream
from bench.round_costs import TOPIC_ID, VALUE, main, open_partitions
from broker.network.connector import Connecting
from broker.network.stream import Stream
from broker.peers.connection import PeerResources
from broker.peers.endpoint import PeerEndpoint
from broker.peers.observer import PeerObservers
from broker.peers.peers import Peers, answer_buffers
from broker.replicas.replica_manager import ReplicaManager
from broker.replication.fetcher.fetchers import Fetchers
from broker.replication.fetcher.log_repair import LogRepair
from broker.replication.fetcher.replica_fetcher import FetcherResources
from broker.replication.fetcher.settings import FetcherSettings
from broker.replication.fetcher.stats import FetcherStats
from broker.replication.quota import ReplicationQuota, follower_replicas
from broker.runtime.disk import Disk
from broker.runtime.timer import TimerWheel
from protocol.hot.fetch import FetchPartitionResponse, encode_response
from protocol.hot.follower_fetch import VERSION
from protocol.records.builder import build_batch
from storage.environment.clock import SystemClock
from storage.manager.log_truncations import LogTruncations

FOLLOWER, LEADER, EPOCH = 1, 2, 0
_HEAD: Final = Struct(">i")
_OFFSET: Final = Struct(">q")
_CORRELATION: Final = Struct(">hhi")


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


class Follower:
    """A follower of `partitions` partitions of one leader."""

    def __init__(self, directory: Path, partitions: int, disk: Disk) -> None:
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
                clock=clock,
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
        self.partitions = open_partitions(replicas, directory, partitions, clock)
        for partition in self.partitions:
            partition.become_follower(LEADER, EPOCH)
            self.fetchers.follow(partition, LEADER)
        self.loop.turn()
        self.answer([])
        self.loop.turn()

    def answer(self, partitions: list[FetchPartitionResponse]) -> None:
        """The leader answers the request that was sent last."""
        _, _, correlation_id = _CORRELATION.unpack_from(self.stream.sent, 4)
        self.stream.sent.clear()
        topics = [(TOPIC_ID.bytes, partitions)] if partitions else []
        body = b"".join(map(bytes, encode_response(topics, VERSION, session_id=7)))
        data = _HEAD.pack(correlation_id) + b"\0" + body
        self.stream.incoming = memoryview(_HEAD.pack(len(data)) + data)

    def measure(self, busy: int, rounds: int, meter: CostMeter, name: str) -> list[float]:
        """`busy` partitions have a batch of one record in each round."""
        batch = bytearray(build_batch([(None, VALUE, (), 1_700_000_000_000)]))
        batch[12:16] = bytes(4)
        spent = []
        for _ in range(rounds):
            answers = []
            for partition in self.partitions[:busy]:
                end = partition.log.log_end_offset
                _OFFSET.pack_into(batch, 0, end)
                index = partition.topic_partition.partition
                answers.append(FetchPartitionResponse(index, 0, end, end, 0, records=bytes(batch)))
            self.answer(answers)
            meter.begin()
            self.loop.turn()
            spent.append(meter.end(name))
        for partition in self.partitions[:busy]:
            assert partition.log.log_end_offset >= rounds, partition.log
        return spent


if __name__ == "__main__":
    main(Follower, "bench.follower_round", __doc__)
