"""A small Kafka client: what a reader asks brokers for, in this project's own codecs.

    client = BrokerClient(BrokerOptions("one:9092,two:9092"))
    client.topics(["orders"])                                 partitions, leaders, ids
    client.list_offsets({("orders", 0): LATEST}, read_committed=True)
    client.epoch_ends({("orders", 0): 7})                     where a leader epoch ended
    client.begin_fetch(...).wait()                            raw batches

It speaks to Varve and to Apache Kafka, by plain connections only: the broker has no others yet.

Source: KIP-98, KIP-320, KIP-405, KIP-516; Kafka, OffsetFetcherUtils.java, Errors.java.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from pipeline.plan.piece import PartitionName
from pipeline.read.broker.cluster import BrokerCluster, PassingError, TopicFacts
from pipeline.read.broker.connection import BrokerConnection, Dial, PendingAnswer, dial
from pipeline.read.broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    OffsetsGoneError,
    TopicGoneError,
    code_of,
)
from pipeline.read.broker.options import BrokerOptions
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.primitives import NIL_UUID
from storage.environment.clock import Clock, SystemClock, sleep_ms

EARLIEST: Final = -2
LATEST: Final = -1
EARLIEST_LOCAL: Final = -4
"""In place of a timestamp, as in Kafka's protocol; the last: what is below is in remote storage."""

NO_OFFSET: Final = -1
"""No record is as late as the timestamp that was asked for."""

TopicPartition = tuple[str, int]

_CONSUMER: Final = -1
_FETCH_BY_NAME: Final = 12
"""Newest version of Fetch that names topics by name."""

_LIST_OFFSETS_MIN: Final = 2
"""Older ones know no isolation level."""

_LIST_OFFSETS_LOCAL: Final = 8
"""First version that reports remote storage; where it is not known there is none (KIP-405)."""


class ListedOffset(NamedTuple):
    """An offset that was asked for; NO_OFFSET, with timestamp -1, where there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """End of the greatest leader epoch at or below the requested one; -1, -1: unknown."""

    leader_epoch: int
    end_offset: int


class FetchedBatches(NamedTuple):
    """One Fetch answer.

    Attributes:
        records: Batches back to back; the last may be cut off. Memory of its own.
        aborted: (producer id, first offset) of aborted transactions that concern `records`.
        log_start_offset, high_watermark, last_stable_offset: Of the leader's log; -1: unknown.
    """

    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


class BrokerClient:
    """See the module. Blocks its caller; not for several threads at a time."""

    def __init__(
        self,
        options: BrokerOptions,
        *,
        clock: Clock | None = None,
        sleep_ms: Callable[[float], None] = sleep_ms,
        dial: Dial = dial,
    ) -> None:
        """Opens no connection yet.

        Raises:
            BrokerError: The bootstrap list is none.
        """
        self.options = options
        self._sleep_ms = sleep_ms
        self._cluster = BrokerCluster(options, clock or SystemClock(), sleep_ms, dial)

    def __enter__(self) -> "BrokerClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def pause(self) -> None:
        """Before the same is asked again."""
        self._sleep_ms(self.options.retry_backoff_ms)

    # -- topics ------------------------------------------------------------------------------

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicFacts]:
        """Topics by name, all without `names`; one that does not exist is not in it.

        Raises:
            BrokerUnreachableError: No broker answers; names all that were asked.
            BrokerDeniedError: A topic may not be described.
        """
        wanted = None if names is None else [*names]
        read = self._cluster.read_topics
        return self._cluster.patiently("Metadata", lambda: read(wanted))

    # -- offsets -----------------------------------------------------------------------------

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets for timestamps in ms: of the first record that is not older.

        Args:
            wanted: By (topic, partition) a timestamp, EARLIEST, LATEST or EARLIEST_LOCAL.
            read_committed: LATEST is the last stable offset, not the high watermark.

        Raises:
            TopicGoneError: There is no such topic or partition.
            BrokerError: See `topics`; the leader gives no answer in time.
        """
        found: dict[TopicPartition, ListedOffset] = {}

        def attempt() -> None:
            missing = [one for one in wanted if one not in found]
            for connection, parts in self._cluster.by_leader(missing).items():
                topics: dict[str, ListOffsetsTopic] = {}
                newest = connection.newest(ApiKey.LIST_OFFSETS)
                for topic, number, epoch in parts:
                    timestamp = wanted[topic, number]
                    if timestamp == EARLIEST_LOCAL and newest < _LIST_OFFSETS_LOCAL:
                        timestamp = EARLIEST
                    entry = topics.setdefault(topic, ListOffsetsTopic(name=topic, partitions=[]))
                    entry.partitions.append(
                        ListOffsetsPartition(
                            partition_index=number,
                            current_leader_epoch=epoch,
                            timestamp=timestamp,
                        )
                    )
                if newest < _LIST_OFFSETS_MIN:
                    raise BrokerError(f"{connection.address} knows no isolation levels")
                request = ListOffsetsRequest(
                    replica_id=_CONSUMER,
                    isolation_level=int(read_committed),
                    topics=[*topics.values()],
                    timeout_ms=self.options.request_timeout_ms,
                )
                for topic in connection.call(request).topics:
                    for part in topic.partitions:
                        name = f"offsets of {topic.name}-{part.partition_index}"
                        self._cluster.check(part.error_code, name)
                        found[topic.name, part.partition_index] = ListedOffset(
                            part.offset, part.timestamp, part.leader_epoch
                        )
            _complete(wanted, found)

        self._cluster.patiently("ListOffsets", attempt)
        return found

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        """End offsets of leader epochs, to compare a log known from elsewhere.

        Raises:
            BrokerError: As of `list_offsets`.
        """
        found: dict[TopicPartition, EpochEnd] = {}

        def attempt() -> None:
            missing = [one for one in wanted if one not in found]
            for connection, parts in self._cluster.by_leader(missing).items():
                topics: dict[str, OffsetForLeaderTopic] = {}
                for topic, number, epoch in parts:
                    entry = topics.setdefault(
                        topic, OffsetForLeaderTopic(topic=topic, partitions=[])
                    )
                    entry.partitions.append(
                        OffsetForLeaderPartition(
                            partition=number,
                            current_leader_epoch=epoch,
                            leader_epoch=wanted[topic, number],
                        )
                    )
                request = OffsetForLeaderEpochRequest(
                    replica_id=_CONSUMER, topics=[*topics.values()]
                )
                for topic in connection.call(request).topics:
                    for part in topic.partitions:
                        name = f"leader epochs of {topic.topic}-{part.partition}"
                        self._cluster.check(part.error_code, name)
                        found[topic.topic, part.partition] = EpochEnd(
                            part.leader_epoch, part.end_offset
                        )
            _complete(wanted, found)

        self._cluster.patiently("OffsetForLeaderEpoch", attempt)
        return found

    # -- records -----------------------------------------------------------------------------

    def begin_fetch(
        self,
        partition: PartitionName,
        offset: int,
        *,
        read_committed: bool,
        leader_epoch: int = -1,
        max_bytes: int | None = None,
    ) -> "PendingFetch":
        """Ask for batches from `offset` on; errors are raised by `PendingFetch.wait`."""
        fetch = PendingFetch(
            self._cluster,
            partition,
            offset,
            read_committed=read_committed,
            leader_epoch=leader_epoch,
            max_bytes=self.options.fetch_max_bytes if max_bytes is None else max_bytes,
        )
        fetch.begin()
        return fetch

    def check_incarnation(self, partition: PartitionName) -> None:
        """Whether the topic is still the one that is meant.

        Raises:
            TopicGoneError: It was deleted, or recreated.
            BrokerError: See `topics`.
        """
        facts = self.topics([partition.topic]).get(partition.topic)
        if facts is None:
            raise TopicGoneError(f"topic {partition.topic} does not exist any more")
        if NIL_UUID not in (facts.topic_id, partition.topic_id) and (
            facts.topic_id != partition.topic_id
        ):
            raise TopicGoneError(
                f"topic {partition.topic} was deleted and recreated: its id is {facts.topic_id}, "
                "not "
                f"{partition.topic_id}"
            )


class PendingFetch:
    """A Fetch that may have been sent. `wait` sends it again where that helps."""

    def __init__(
        self,
        cluster: BrokerCluster,
        partition: PartitionName,
        offset: int,
        *,
        read_committed: bool,
        leader_epoch: int,
        max_bytes: int,
    ) -> None:
        self._max_bytes = max_bytes
        self._cluster = cluster
        self._partition = partition
        self._offset = offset
        self._read_committed = read_committed
        self._leader_epoch = leader_epoch
        self._pending: PendingAnswer | None = None

    def begin(self) -> None:
        """Send it if the leader is known; else `wait` finds out."""
        try:
            self._pending = self._send()
        except BrokerError:
            self._pending = None

    def _send(self) -> PendingAnswer:
        topic, topic_id, number = self._partition
        connection, epoch = self._cluster.leader(topic, number)
        by_id = _asks_by_id(connection, topic_id)
        wanted = FetchPartition(
            partition=number,
            current_leader_epoch=max(epoch, self._leader_epoch),
            fetch_offset=self._offset,
            partition_max_bytes=self._max_bytes,
        )
        request = FetchRequest(
            max_wait_ms=self._cluster.options.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            isolation_level=int(self._read_committed),
            # No session: every request says all of it.
            session_id=0,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic="" if by_id else topic,
                    topic_id=topic_id if by_id else NIL_UUID,
                    partitions=[wanted],
                )
            ],
        )
        return connection.send(request, None if by_id else _FETCH_BY_NAME)

    def wait(self) -> FetchedBatches:
        """The answer.

        Raises:
            OffsetsGoneError: The leader's log does not have the offset.
            TopicGoneError: There is no such topic any more.
            BrokerError: The leader cannot be asked, after all retries.
        """
        topic, _, number = self._partition
        return self._cluster.patiently(f"Fetch of {topic}-{number}", self._attempt)

    def _attempt(self) -> FetchedBatches:
        topic, _, number = self._partition
        pending, self._pending = self._pending, None
        try:
            answer = (pending or self._send()).wait()
        except BrokerUnreachableError:
            self._cluster.forget_leader(topic, number)
            raise
        what = f"Fetch of {topic}-{number} from offset {self._offset}"
        self._cluster.check(answer.error_code, what)
        part = next((one for topic in answer.responses for one in topic.partitions), None)
        if part is None:
            raise PassingError(BrokerError(f"{what}: the answer is empty"))
        if code_of(part.error_code) is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetsGoneError(f"{what}: OFFSET_OUT_OF_RANGE")
        self._cluster.check(part.error_code, what)
        return _fetched(part)


def _fetched(part: Any) -> FetchedBatches:
    return FetchedBatches(
        memoryview(b"") if part.records is None else memoryview(part.records),
        tuple((one.producer_id, one.first_offset) for one in part.aborted_transactions or ()),
        part.log_start_offset,
        part.high_watermark,
        part.last_stable_offset,
    )


def _asks_by_id(connection: BrokerConnection, topic_id: UUID) -> bool:
    return topic_id != NIL_UUID and connection.newest(ApiKey.FETCH) > _FETCH_BY_NAME


def _complete(wanted: Mapping[TopicPartition, Any], found: Mapping[TopicPartition, Any]) -> None:
    missing = [one for one in wanted if one not in found]
    if missing:
        topic, number = missing[0]
        raise PassingError(BrokerError(f"the leader of {topic}-{number} does not answer for it"))
