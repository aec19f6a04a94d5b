"""Brokers of a cluster, leaders of its partitions, and retries of errors that pass by themselves.

bootstrap list ──> any broker ──Metadata──> leaders ──> requests to them
^                        │ NOT_LEADER, fenced, unreachable ...
└── after a pause, until retry_timeout_ms has passed since the first ──┘

A broker that hangs takes connections, and answers nothing: who has not answered is asked after all
others. One that was paused answers with what it knew before: a leader of an earlier epoch than one
that is known is no news (KIP-320).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from pipeline.read.broker.connection import BrokerConnection, Dial, dial
from pipeline.read.broker.errors import (
    GONE,
    BrokerError,
    BrokerUnreachableError,
    TopicGoneError,
    code_of,
    error_of,
    is_passing,
)
from pipeline.read.broker.options import BrokerOptions
from protocol.error_codes import ErrorCode
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from protocol.primitives import NIL_UUID
from storage.environment.clock import Clock

T = TypeVar("T")

BACKOFF_FACTOR_MAX: Final = 10
CONNECTIONS_MAX: Final = 64
"""Brokers that connections are kept to."""

GONE_ATTEMPTS: Final = 4
"""Answers of a kind that says a topic is not there, before it is believed: a broker that has just
started does not know all yet."""


class PartitionFacts(NamedTuple):
    """A partition by its cluster's metadata; `leader` is -1 while there is none."""

    number: int
    leader: int
    leader_epoch: int


class TopicFacts(NamedTuple):
    """A topic by its cluster's metadata; `topic_id` is nil where the brokers know no ids."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionFacts, ...]


class PassingError(BrokerError):
    """May be over by itself; never leaves the client as such."""

    def __init__(self, error: BrokerError) -> None:
        super().__init__(str(error))
        self.error = error


class BrokerCluster:
    """See the module. Not for several threads at a time."""

    def __init__(
        self,
        options: BrokerOptions,
        clock: Clock,
        sleep_ms: Callable[[float], None],
        dial: Dial = dial,
    ) -> None:
        """Opens no connection yet.

        Raises:
            BrokerError: The bootstrap list is none.
        """
        self.options = options
        self._clock = clock
        self._sleep_ms = sleep_ms
        self._dial = dial
        self._bootstrap = parse_addresses(options.bootstrap_servers)
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], BrokerConnection] = {}
        self._leaders: dict[tuple[str, int], PartitionFacts] = {}
        # By topic and partition: the newest ever seen, and of which incarnation.
        self._newest: dict[tuple[str, int], tuple[UUID, PartitionFacts]] = {}
        # Addresses that have not answered since they were last asked, the latest failure last.
        self._failed: dict[tuple[str, int], None] = {}

    # -- asking again ------------------------------------------------------------------------

    def patiently(self, what: str, attempt: Callable[[], T]) -> T:
        """The result of `attempt`, retried after pauses while its error may pass by itself.

        Args:
            what: Of what, for the error.
            attempt: Raises PassingError or BrokerUnreachableError for that.

        Raises:
            BrokerError: Of the last attempt, when `retry_timeout_ms` has passed.
        """
        started_ms = self._clock.monotonic_ms()
        pause_ms = float(self.options.retry_backoff_ms)
        gone = 0
        while True:
            try:
                return attempt()
            except PassingError as error:
                last = error.error
            except BrokerUnreachableError as error:
                last = error
            if isinstance(last, TopicGoneError):
                gone += 1
                if gone >= GONE_ATTEMPTS:
                    raise last
            passed_ms = self._clock.monotonic_ms() - started_ms
            if passed_ms + pause_ms > self._patience_ms:
                text = f"{what}: no success within {passed_ms:.0f} ms: {last}"
                raise type(last)(text) from last
            self._sleep_ms(pause_ms)
            most = self.options.retry_backoff_ms * BACKOFF_FACTOR_MAX
            pause_ms = min(pause_ms * 2, most)
            self._leaders.clear()

    @property
    def _patience_ms(self) -> int:
        options = self.options
        if self._addresses:
            return options.retry_timeout_ms
        return min(options.bootstrap_timeout_ms, options.retry_timeout_ms)

    def check(self, number: int, what: str) -> None:
        """Raise what an error code means; nothing for 0."""
        code = code_of(number)
        if code is ErrorCode.NONE:
            return
        error = error_of(code, what)
        if is_passing(code):
            raise PassingError(error)
        raise error

    # -- connections -------------------------------------------------------------------------

    def any_broker(self) -> BrokerConnection:
        """A connection to the first broker that answers, of those known and of the bootstrap list.

        Those that have failed come last.

        Raises:
            BrokerUnreachableError: None does; names all that were asked.
        """
        tried: list[str] = []
        for address, known in self._connections.items():
            if known.is_broken and address not in self._failed:
                self._note_failure(address)
        there = dict.fromkeys((*self._addresses.values(), *self._bootstrap))
        failed = [address for address in self._failed if address in there]
        for address in (*(one for one in there if one not in self._failed), *failed):
            try:
                return self.connection(address)
            except BrokerUnreachableError as error:
                tried.append(str(error))
        raise BrokerUnreachableError("no broker answers: " + "; ".join(tried))

    def connection(self, address: tuple[str, int]) -> BrokerConnection:
        """To this address; the one that is open, if it is."""
        known = self._connections.get(address)
        if known is not None and not known.is_broken:
            return known
        if len(self._connections) >= CONNECTIONS_MAX:
            self._connections.pop(next(iter(self._connections))).close()
        options = self.options
        has_failed = address in self._failed or known is not None
        try:
            made = BrokerConnection(
                *address,
                client_id=options.client_id,
                connect_timeout_ms=options.connect_timeout_ms,
                request_timeout_ms=options.request_timeout_ms,
                # Another broker may answer sooner; where none does it gets the whole time.
                versions_timeout_ms=None if has_failed else options.connect_timeout_ms,
                dial=self._dial,
            )
        except BrokerUnreachableError:
            self._note_failure(address)
            raise
        self._failed.pop(address, None)
        self._connections[address] = made
        return made

    def _note_failure(self, address: tuple[str, int]) -> None:
        self._failed.pop(address, None)
        self._failed[address] = None
        if len(self._failed) > CONNECTIONS_MAX:
            del self._failed[next(iter(self._failed))]

    def leader(self, topic: str, partition: int) -> tuple[BrokerConnection, int]:
        """A connection to a partition's leader, and its epoch (-1: not known).

        Raises:
            PassingError: It has none now.
            TopicGoneError: There is no such partition.
            BrokerError: And others of Metadata.
        """
        facts = self._leaders.get((topic, partition))
        if facts is None:
            found = self.read_topics([topic]).get(topic)
            facts = self._leaders.get((topic, partition))
            if found is None or facts is None:
                raise PassingError(
                    TopicGoneError(f"the cluster has no partition {topic}-{partition}")
                )
        if facts.leader not in self._addresses:
            del self._leaders[topic, partition]
            raise PassingError(BrokerError(f"{topic}-{partition} has no leader now"))
        return self.connection(self._addresses[facts.leader]), facts.leader_epoch

    def by_leader(
        self, partitions: Iterable[tuple[str, int]]
    ) -> Mapping[BrokerConnection, Sequence[tuple[str, int, int]]]:
        """(topic, partition, leader epoch) by the leader to be asked; raises as `leader`."""
        groups: dict[BrokerConnection, list[tuple[str, int, int]]] = {}
        for topic, partition in partitions:
            connection, epoch = self.leader(topic, partition)
            groups.setdefault(connection, []).append((topic, partition, epoch))
        return groups

    def forget_leader(self, topic: str, partition: int) -> None:
        """Refresh it the next time."""
        self._leaders.pop((topic, partition), None)

    # -- metadata ----------------------------------------------------------------------------

    def read_topics(self, names: Iterable[str] | None) -> dict[str, TopicFacts]:
        """Topics with these names, or all, as far as there are such; one attempt.

        Raises:
            BrokerError: No broker answers, or a topic may not be described.
        """
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer: MetadataResponse = self.any_broker().call(request)
        self.check(answer.error_code, "Metadata")
        self._addresses = {one.node_id: (one.host, one.port) for one in answer.brokers}
        topics = {}
        for one in answer.topics:
            if code_of(one.error_code) in GONE or one.name is None:
                continue
            self.check(one.error_code, f"topic {one.name}")
            partitions = tuple(
                self._newer(
                    one.name,
                    one.topic_id,
                    PartitionFacts(part.partition_index, part.leader_id, part.leader_epoch),
                )
                for part in sorted(one.partitions, key=lambda part: part.partition_index)
            )
            for part in partitions:
                self._leaders[one.name, part.number] = part
            topics[one.name] = TopicFacts(one.name, one.topic_id, one.is_internal, partitions)
        return topics

    def _newer(self, topic: str, topic_id: UUID, answered: PartitionFacts) -> PartitionFacts:
        """The answer's facts of a partition, or those known of a later leader epoch."""
        known = self._newest.get((topic, answered.number))
        if known is not None and known[0] == topic_id != NIL_UUID:
            facts = known[1]
            if 0 <= answered.leader_epoch < facts.leader_epoch:
                return facts
        self._newest[topic, answered.number] = (topic_id, answered)
        return answered

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """`host:port,host:port` taken apart.

    Raises:
        BrokerError: It is something else; names the part.
    """
    addresses = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        address = parse_address(part)
        if address is None:
            raise BrokerError(f"kafka.bootstrap.servers: {part!r} is not host:port")
        addresses.append(address)
    if not addresses:
        raise BrokerError("kafka.bootstrap.servers is empty")
    return addresses


def parse_address(text: str) -> tuple[str, int] | None:
    """`host:port`, `[host]:port` or either behind `scheme://`; None: it is something else."""
    host, colon, port = text.rpartition(":")
    host = host.rpartition("://")[2].removeprefix("[").removesuffix("]")
    if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        return None
    return host, int(port)
