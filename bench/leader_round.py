"""The cost of a round of replication at the leader: `python -m bench.leader_round`.

A round is what a broker does for one Fetch of a follower: decode it, take its offsets as the
follower's position, move the high watermark, wait; then, when records have come, look at what has
changed, read it, and make the answer. Sessions, partitions and their logs are the real ones; the
appends are outside what is measured, and so is the connection, so that an answer ends where it
would be sent.

    us a round = base + each x partitions with records        idle partitions cost nothing
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from typing_extensions import override

from native.loader import prefer_compiled

prefer_compiled()

from bench.cost_meter import CostMeter
from bench.played_stream import PlayedStream
from bench.round_costs import TOPIC_ID, VALUE, main, open_partitions
from broker.controller.images.partition_image import PartitionImage
from broker.network.connection import Connection, Traffic
from broker.network.connection_info import ConnectionInfo
from broker.network.iteration_end import IterationEnd
from broker.network.loop_resources import LoopResources
from broker.network.receive_buffers import ReceiveBuffers
from broker.network.response import ResponseMemory
from broker.replicas.partition import Partition
from broker.replicas.replica_manager import ReplicaManager
from broker.replication.followers.follower_fetches import FollowerFetches
from broker.requests.reply import Body, Parked
from broker.requests.request_context import RequestContext
from broker.runtime.disk import Disk
from broker.runtime.timer import TimerWheel
from protocol.hot.fetch import decode_request
from protocol.hot.follower_fetch import VERSION, decode_answer, encode_request, pack_partition
from protocol.records.builder import build_batch
from storage.environment.clock import SystemClock
from storage.environment.randomness import SeededRandomness

LEADER, FOLLOWER, LEADER_EPOCH, BROKER_EPOCH = 1, 2, 0, 7
WAIT_MS: Final = 60_000
PARTITION_BYTES: Final = 1 << 20
ANSWER_BYTES: Final = 10 << 20


class KeptReply:
    """Where an answer ends."""

    def __init__(self) -> None:
        self.body: Body | None = None

    def send(self, body: Body | None) -> None:
        """Keep it."""
        self.body = body

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        """The follower stays."""


class StandingClock(SystemClock):
    """Read at the usual cost, and always the same: a slice of the loop never ends."""

    @override
    def monotonic_ms(self) -> float:
        """When it was made."""
        super().monotonic_ms()
        return 1e6


class Leader:
    """A leader of `partitions` partitions of two replicas, and their follower's session."""

    def __init__(self, directory: Path, partitions: int, disk: Disk) -> None:
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        self._connection = _connection(loop, clock)
        timer = TimerWheel(loop, clock)
        replicas = ReplicaManager(clock=clock, timer=timer, disk=disk, loop=loop)
        epochs = {FOLLOWER: BROKER_EPOCH}
        replicas.terms.registered_epoch = replicas.terms.live_epoch = epochs.get
        self._soon: list[Callable[[], None]] = []
        replicas.call_soon = self._soon.append
        self.reply = KeptReply()
        reply: Any = self.reply
        self.fetches = FollowerFetches(
            replicas,
            StandingClock(),
            SeededRandomness(1),
            lambda _connection, _context: reply,
            is_from_broker=lambda _context: True,
            max_bytes=ANSWER_BYTES,
        )
        self.partitions = open_partitions(replicas, directory, partitions, clock)
        for index, partition in enumerate(self.partitions):
            replicas.lead(partition)
            both = (LEADER, FOLLOWER)
            state = PartitionImage(index, LEADER, LEADER_EPOCH, 0, both, both)
            partition.become_leader(state, now_ms=clock.monotonic_ms())
        self._session = (0, 0)
        everything = self.request(self.partitions)
        answer = self.answer_of(self.handle(everything))
        self._session = (answer.session_id, 1)
        assert self.handle(self.request([])) is None
        self.turn()

    def request(self, listed: list[Partition]) -> memoryview:
        """A Fetch that names the ends of some partitions' logs."""
        packed = [
            pack_partition(
                one.topic_partition.partition,
                LEADER_EPOCH,
                one.log.log_end_offset,
                one.log.latest_leader_epoch,
                0,
                PARTITION_BYTES,
            )
            for one in listed
        ]
        body = encode_request(
            replica_id=FOLLOWER,
            replica_epoch=BROKER_EPOCH,
            max_wait_ms=0 if self._session[0] == 0 else WAIT_MS,
            min_bytes=1,
            max_bytes=ANSWER_BYTES,
            session=self._session,
            topics={TOPIC_ID.bytes: packed} if packed else {},
            forgotten={},
        )
        if self._session[0]:
            self._session = (self._session[0], self._session[1] + 1)
        return memoryview(body)

    def handle(self, request: memoryview) -> Body | None:
        """Decode and take a Fetch; its answer, None while it waits."""
        context = RequestContext(1, VERSION, 1, "broker-2", _INFO)
        result = self.fetches.handle(self._connection, context, decode_request(request, 0, VERSION))
        return None if isinstance(result, Parked) else result

    def turn(self) -> None:
        """Run what is called soon."""
        while self._soon:
            soon = self._soon[:]
            self._soon.clear()
            for callback in soon:
                callback()

    @staticmethod
    def answer_of(body: Body | None) -> Any:
        """An answer as the follower reads it."""
        assert isinstance(body, list), body
        pieces = [piece if isinstance(piece, bytes) else bytes(len(piece)) for piece in body]
        return decode_answer(memoryview(b"".join(pieces)))

    def measure(self, busy: int, rounds: int, meter: CostMeter, name: str) -> list[float]:
        """`busy` partitions get a batch of one record in each round."""
        batch = memoryview(build_batch([(None, VALUE, (), 1_700_000_000_000)]))
        chosen = self.partitions[:busy]
        spent = []
        for _ in range(rounds):
            for partition in chosen:
                partition.append(memoryview(bytearray(batch)), 1_700_000_000_000)
            meter.begin()
            self.turn()
            answered = meter.end(name)
            answer = self.answer_of(self.reply.body)
            # A page that the kernel has locked is read by a thread: such rounds do not count.
            is_whole = len([one for one in answer.partitions if one.records]) == busy
            request = self.request(chosen)
            meter.begin()
            is_waiting = self.handle(request) is None
            taken = meter.end(name)
            if is_whole and is_waiting:
                spent.append(answered + taken)
        assert len(spent) > rounds // 2
        for partition in chosen:
            assert partition.log.high_watermark == partition.log.log_end_offset, partition.log
        return spent


def _connection(loop: asyncio.AbstractEventLoop, clock: SystemClock) -> Connection:
    """One that is kept with a request that waits, and never asked for anything."""
    resources = LoopResources.of(
        loop,
        clock,
        buffers=ReceiveBuffers(1),
        responses=ResponseMemory(1),
        iteration_end=IterationEnd(loop.call_soon, clock),
    )
    owner: Any = SimpleNamespace(resources=resources, traffic=Traffic(), frame_size_max=1)
    return Connection(PlayedStream(), _INFO, owner)


_INFO: Final[ConnectionInfo] = ConnectionInfo("PLAINTEXT", "127.0.0.1")


if __name__ == "__main__":
    main(Leader, "bench.leader_round", __doc__)
