"""Clients that speak the protocol themselves: a gap they see is the cluster's, not a library's.

librdkafka looks for a new leader once a second, and waits longer for a broker that is silent. These
have one request under way, give it up after ANSWER_S, and ask brokers in turn who leads by now,
every LOOK_AGAIN_S. A record that may be there already is sent again with the same sequence number.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from typing_extensions import override

from bench import group_wire, transaction_wire, wire
from bench.cluster.numbered import number_of
from bench.cluster.state import cluster_state
from bench.cluster.steady import Steady
from bench.group_wire import CommitFrame
from bench.transaction_wire import TV2, Producer

ANSWER_S: Final = 0.25
LOOK_AGAIN_S: Final = 0.02
GAVE_UP_S: Final = 90.0
TRANSACTION_TIMEOUT_MS: Final = 60_000

GROUP, TRANSACTION = 0, 1

_T = TypeVar("_T")
Address = tuple[str, int]


class NoSuccessError(Exception):
    """Nothing but errors for GAVE_UP_S."""


def address_of(text: str) -> Address:
    """`host:port`, taken apart."""
    host, _, port = text.rpartition(":")
    return host, int(port)


class Route:
    """The way to a partition's leader or a key's coordinator, found again when it is lost."""

    def __init__(self, addresses: Sequence[str], find: Callable[[socket.socket], Address]) -> None:
        """`find`: asks a broker; LookupError: it does not know any."""
        self._addresses = [address_of(one) for one in addresses]
        self._find = find
        self._turn = 0
        self._connection: socket.socket | None = None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def look(self) -> Address:
        """Whom the next broker in turn names.

        Raises:
            OSError, WireError: It does not answer.
            LookupError: It names nobody.
        """
        self._turn += 1
        address = self._addresses[self._turn % len(self._addresses)]
        with socket.create_connection(address, ANSWER_S) as asked:
            return self._find(asked)

    def connection(self) -> socket.socket:
        """To the one that is responsible; errors as `look` has them."""
        if self._connection is None:
            self._connection = socket.create_connection(self.look(), ANSWER_S)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connection

    def until_done(self, attempt: Callable[[socket.socket], _T]) -> _T:
        """Repeat an attempt, on a new way after each failure.

        Raises:
            NoSuccessError: It fails for too long.
        """
        begin = time.monotonic()
        while True:
            try:
                return attempt(self.connection())
            except (OSError, wire.WireError, LookupError) as error:
                self.close()
                if time.monotonic() - begin > GAVE_UP_S:
                    raise NoSuccessError(f"{type(error).__name__}: {error}") from error
            time.sleep(LOOK_AGAIN_S)


def leader_route(addresses: Sequence[str], topic: str, index: int = 0) -> Route:
    """The way to a partition's leader."""

    def find(connection: socket.socket) -> Address:
        state = cluster_state(connection, [topic])
        found = state.partition(topic, index)
        if found is None or found.leader not in state.brokers:
            raise LookupError(f"{topic}-{index} has no leader")
        return state.brokers[found.leader]

    return Route(addresses, find)


def coordinator_of(connection: socket.socket, key: str, kind: int) -> tuple[int, Address]:
    """Node id and address of a coordinator.

    Raises:
        LookupError: There is none now.
    """
    connection.sendall(group_wire.find_coordinator_frame(key, 7, kind=kind))
    reader = wire.Reader(wire.receive(connection))
    reader.take(8)  # correlation id, throttle time
    code = reader.int16()
    reader.string()
    node_id, host, port = reader.int32(), reader.string() or "", reader.int32()
    if code:
        raise LookupError(f"FindCoordinator {key}: error {code}")
    return node_id, (host, port)


def coordinator_route(addresses: Sequence[str], key: str, kind: int) -> Route:
    """The way to a coordinator."""
    return Route(addresses, lambda connection: coordinator_of(connection, key, kind)[1])


def _check(code: int, what: str) -> None:
    if code:
        raise wire.WireError(f"{what}: error {code}")


class RawWork(Steady):
    """Numbered pieces of work, one at a time, each until it has succeeded."""

    def __init__(self, name: str, bootstrap: str, topic: str, rate_per_s: float) -> None:
        super().__init__(name, rate_per_s)
        self.addresses = bootstrap.split(",")
        self.topic = topic

    def prepare(self) -> None:
        """What comes before the first number."""

    def work(self, number: int) -> None:
        """One piece."""
        raise NotImplementedError

    def verify(self, connection: socket.socket) -> list[str]:
        """What is wrong with what is there afterwards, asked of the responsible broker."""
        raise NotImplementedError

    @property
    def route(self) -> Route:
        """The way to who is asked by `verify`."""
        raise NotImplementedError

    @override
    def run(self) -> None:
        try:
            self.prepare()
            begin = time.monotonic()
            while not self.stopping.is_set():
                number = len(self.sent_at)
                # Nothing is made up for after a gap: that would only add to the load.
                due = max(begin + number * self.interval_s, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
                self.sent_at.append(time.monotonic())
                self.work(number)
                self.acks.append((time.monotonic(), number))
        except NoSuccessError as error:
            self.failures.append(str(error))

    def finish(self) -> None:
        """Stop, and look at what is there.

        Raises:
            AssertionError: Something is wrong with it.
        """
        self.stop()
        assert not self.failures, self.failures[:5]
        problems = self.route.until_done(self.verify)
        assert problems == [], problems[:5]
        self.route.close()


class RawProducer(RawWork):
    """An idempotent producer with acks=all."""

    def __init__(self, bootstrap: str, topic: str, rate_per_s: float) -> None:
        super().__init__("raw-producer", bootstrap, topic, rate_per_s)
        self._route = leader_route(self.addresses, topic)
        self._producer = (-1, -1)
        self.acknowledged: dict[int, dict[int, int]] = {0: {}}

    @property
    @override
    def route(self) -> Route:
        return self._route

    @override
    def prepare(self) -> None:
        self._producer = self._route.until_done(wire.init_producer_id)

    @override
    def work(self, number: int) -> None:
        producer_id, epoch = self._producer
        batch = wire.record_batch(
            [(b"%d " % number).ljust(200, b".")],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=number,
        )
        self.acknowledged[0][number] = self._route.until_done(
            lambda connection: wire.produce(connection, self.topic, 0, batch)
        )

    @override
    def verify(self, connection: socket.socket) -> list[str]:
        return []  # by `numbered.compare`, as librdkafka's records are


class OffsetCommits(RawWork):
    """Commits of one group's offset, by a consumer outside the group."""

    def __init__(self, bootstrap: str, topic: str, rate_per_s: float) -> None:
        super().__init__("offset-commits", bootstrap, topic, rate_per_s)
        self._route = coordinator_route(self.addresses, topic, GROUP)
        self._frame = CommitFrame.of(topic, -1, "", topic, [0])

    @property
    @override
    def route(self) -> Route:
        return self._route

    @override
    def work(self, number: int) -> None:
        def attempt(connection: socket.socket) -> None:
            connection.sendall(self._frame.filled(number, number))
            errors = group_wire.commit_errors(bytes(wire.receive(connection)))
            _check(max(errors, default=0), "OffsetCommit")

        self._route.until_done(attempt)

    @override
    def verify(self, connection: socket.socket) -> list[str]:
        connection.sendall(group_wire.offset_fetch_frame(self.topic, self.topic, [0], 7))
        found = group_wire.fetched_offsets(bytes(wire.receive(connection)))
        committed = self.acks[-1][1]
        # One that was given up may have been made.
        is_right = committed <= found[0] <= len(self.sent_at)
        return [] if is_right else [f"{found[0]} fetched, {committed} was committed"]


class RawTransactions(RawWork):
    """Transactions of one record each, on one partition."""

    def __init__(self, bootstrap: str, topic: str, rate_per_s: float) -> None:
        super().__init__("raw-transactions", bootstrap, topic, rate_per_s)
        self._route = leader_route(self.addresses, topic)
        self._coordinator = coordinator_route(self.addresses, topic, TRANSACTION)
        self._producer = Producer(topic)

    @property
    @override
    def route(self) -> Route:
        return self._route

    @override
    def prepare(self) -> None:
        self._coordinator.until_done(self._begin)

    def _begin(self, connection: socket.socket) -> None:
        connection.sendall(
            transaction_wire.init_producer_id_frame(self.topic, TRANSACTION_TIMEOUT_MS, 7)
        )
        self._take(bytes(wire.receive(connection)), "InitProducerId")

    def _take(self, answer: bytes, what: str) -> None:
        code, producer_id, epoch = transaction_wire.read_producer_id(answer)
        _check(code, what)
        self._producer = Producer(self.topic, producer_id, epoch)

    @override
    def work(self, number: int) -> None:
        value = b"%d " % number

        def send(connection: socket.socket) -> None:
            batch = transaction_wire.transactional_batch(
                [value], self._producer, 0, int(time.time() * 1000)
            )
            connection.sendall(
                transaction_wire.produce_frame(self._producer, self.topic, {0: batch}, TV2, 7)
            )
            errors = transaction_wire.produce_errors(bytes(wire.receive(connection)))
            _check(errors[0], "Produce")

        def end(connection: socket.socket) -> None:
            connection.sendall(transaction_wire.end_txn_frame(self._producer, TV2, 7, commit=True))
            self._take(bytes(wire.receive(connection)), "EndTxn")

        self._route.until_done(send)
        self._coordinator.until_done(end)

    @override
    def verify(self, connection: socket.socket) -> list[str]:
        """Every transaction that has ended is there once, in order."""
        numbers: list[int] = []
        end, offset = wire.list_offset(connection, self.topic, 0), 0
        while offset < end:
            connection.sendall(
                wire.fetch_frame(self.topic, 0, offset, max_bytes=4 << 20, max_wait_ms=50)
            )
            answer = wire.parse_fetch(wire.receive(connection))
            for base_offset, count, batch in wire.whole_batches(answer.records):
                if not transaction_wire.is_control(batch):
                    numbers += [number_of(value) for value in wire.plain_values(batch)]
                offset = base_offset + count
        with contextlib.suppress(IndexError):
            if numbers[-1] > self.acks[-1][1]:
                del numbers[-1]  # the one that was under way
        wanted = [number for _, number in self.acks]
        return [] if numbers == wanted else [f"{len(numbers)} records, {len(wanted)} transactions"]
