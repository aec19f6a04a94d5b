"""A transaction coordinator on a log and data partitions in memory, which fail when told to.

What lies in the log and in the partitions survives `crash`; everything else is gone with it, and
whatever the dead coordinator still had under way does nothing any more.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from typing import Any, cast

from broker.coordinator.shard_log import ShardLog
from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_coordinator import (
    TRANSACTION_TOPIC,
    TransactionCoordinator,
)
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata
from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import PartitionErrors, ProducerIdAndEpoch
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.internal.transaction_log import (
    TransactionLogValue,
    decode_transaction_log_key,
    decode_transaction_log_value,
)
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.broker.coordinator_log import TIMEOUT_MS as APPEND_TIMEOUT_MS
from tests.fakes.broker.coordinator_log import CoordinatorLog, OnCommitted
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.loop_turns import turns
from tests.fakes.timer import ManualTimer

Written = Callable[[PartitionErrors], None]

NO_PRODUCER = ProducerIdAndEpoch(-1, -1)
TIMEOUT_MS = 60_000
A, B, C = (TopicPartition("t", index) for index in range(3))
OFFSETS = TopicPartition("__consumer_offsets", 7)


class FakeStateLog(CoordinatorLog):
    """`__transaction_state` in memory.

    Attributes:
        budget: Records that may still be written before the process is dead.
        appends: How many there were.
        life: Of the process; what an older one waits for never comes.
        on_append: Called after each.
    """

    def __init__(self, partitions: int = 1) -> None:
        super().__init__(range(partitions), topic=TRANSACTION_TOPIC)
        self.budget: int | None = None
        self.appends = 0
        self.life = 0
        self.on_append: Callable[[], None] = lambda: None

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: OnCommitted,
        *,
        terms: object = None,
        timeout_ms: float = APPEND_TIMEOUT_MS,
        leader_epoch: int | None = None,
    ) -> int:
        if self.budget == 0:
            return -1
        life = self.life

        def told(code: ErrorCode, offset: int) -> None:
            if life == self.life and self.budget != 0:
                on_committed(code, offset)

        return super().append_coordinated(
            topic_partition,
            batch,
            told,
            terms=terms,
            timeout_ms=timeout_ms,
            leader_epoch=leader_epoch,
        )

    def put_batch(self, index: int, batch: bytearray) -> int:
        base_offset = super().put_batch(index, batch)
        if self.budget is not None:
            self.budget -= 1
            if self.budget == 0:
                # Dead before anybody was told.
                self.committed[index] = self.ends[index]
        self.appends += 1
        self.on_append()
        return base_offset

    def fail_held(self, code: ErrorCode, *, lost: bool = False) -> None:
        """Nobody who waits is told more than an error; what was written is not committed yet."""
        held, self.held = self.held, []
        for append in held:
            append.on_committed(code, -1)

    def values(self) -> list[tuple[str, TransactionLogValue | None]]:
        """Everything that was written, over all partitions."""
        found = []
        for index in self.batches:
            for _, _, key, value, _ in self.records(index):
                assert key is not None
                transactional_id = decode_transaction_log_key(key)
                assert transactional_id is not None
                found.append(
                    (
                        transactional_id,
                        None if value is None else decode_transaction_log_value(bytes(value)),
                    )
                )
        return found

    def states(self, transactional_id: str = "tx") -> list[TransactionState | None]:
        """The way a transactional id has gone; None where it has expired."""
        return [
            None if value is None else TransactionState(value.state)
            for name, value in self.values()
            if name == transactional_id
        ]


def new_shard(log: FakeStateLog, stats: TransactionStats | None = None) -> TransactionShard:
    """An empty shard on the first partition, without a coordinator."""
    clock = ManualClock()
    shard_log = ShardLog(
        TopicPartition(TRANSACTION_TOPIC, 0),
        appender=log,
        environment=FakeEnvironment(clock=clock),
        timeout_ms=APPEND_TIMEOUT_MS,
        on_failed=lambda code: None,
        hold=lambda log, refusals: None,
    )
    return TransactionShard(
        shard_log,
        0,
        transaction_version=lambda: 2,
        resume=lambda shard, metadata: None,
        clock=clock,
        stats=stats or TransactionStats(),
    )


class FakePartitions:
    """Data partitions: who has written what, and how it ended. Implements `MarkerWriter`.

    `failing`: what a partition answers instead of taking a marker. `lose_answers`: markers are
    written, and REQUEST_TIMED_OUT is answered. `hold`: answers wait for `release`.
    """

    def __init__(self) -> None:
        self.failing: dict[TopicPartition, ErrorCode] = {}
        self.lose_answers = False
        self.hold = False
        self.held: list[tuple[Written, PartitionErrors]] = []
        self.budget: int | None = None
        self.life = 0
        self.calls: list[tuple[TransactionMarker, frozenset[TopicPartition]]] = []
        # Epoch of each producer as the log of each partition knows it.
        self.epochs: dict[tuple[TopicPartition, int], int] = {}
        self.open: dict[tuple[TopicPartition, int], set[str]] = {}
        self.committed: dict[TopicPartition, set[str]] = {}
        self.aborted: dict[TopicPartition, set[str]] = {}
        self.markers: list[tuple[TopicPartition, TransactionMarker]] = []
        self.on_marker: Callable[[], None] = lambda: None
        self.on_produce: Callable[[], None] = lambda: None

    def produce(self, tp: TopicPartition, producer: ProducerIdAndEpoch, value: str) -> ErrorCode:
        """A transactional batch, after the coordinator was asked."""
        key = (tp, producer.producer_id)
        if producer.epoch < self.epochs.get(key, -1):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.epochs[key] = producer.epoch
        self.open.setdefault(key, set()).add(value)
        self.on_produce()
        return ErrorCode.NONE

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Written,
    ) -> None:
        if self.budget == 0:
            return
        self.calls.append((marker, frozenset(partitions)))
        life = self.life
        errors = {}
        for tp in sorted(partitions):
            if self.budget == 0:
                return
            errors[tp] = self._write_one(tp, marker)
        if self.budget == 0:
            return

        def answer(result: PartitionErrors) -> None:
            if life == self.life:
                done(result)

        if self.hold:
            self.held.append((answer, errors))
        else:
            answer(errors)

    def release(self) -> None:
        """Answer everybody who waits."""
        held, self.held = self.held, []
        for done, errors in held:
            done(errors)

    def _write_one(self, tp: TopicPartition, marker: TransactionMarker) -> ErrorCode:
        code = self.failing.get(tp)
        if code is not None:
            return code
        key = (tp, marker.producer_id)
        current = self.epochs.get(key, -1)
        late = marker.producer_epoch <= current
        if marker.producer_epoch < current or (marker.transaction_version >= 2 and late):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.epochs[key] = marker.producer_epoch
        outcome = self.committed if marker.commit else self.aborted
        outcome.setdefault(tp, set()).update(self.open.pop(key, set()))
        self.markers.append((tp, marker))
        self.on_marker()
        if self.budget is not None:
            self.budget -= 1
        return ErrorCode.REQUEST_TIMED_OUT if self.lose_answers else ErrorCode.NONE


class FakeProducerIds:
    """Ids from 1000 upwards; without `available` they have to be waited for."""

    def __init__(self) -> None:
        self.given = 1000
        self.available = True
        self.failure: Exception | None = None
        self.waiting: list[asyncio.Future[int]] = []

    def try_next(self) -> int | None:
        if not self.available:
            return None
        self.given += 1
        return self.given - 1

    async def next(self) -> int:
        if self.failure is not None:
            raise self.failure
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return await future

    def arrive(self) -> None:
        """A block is there."""
        self.available = True
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            future.set_result(cast("int", self.try_next()))


class Ended:
    """The answer to an EndTxn or InitProducerId; a second one is an error."""

    def __init__(self) -> None:
        self.code: ErrorCode | None = None
        self.producer = NO_PRODUCER

    def __call__(self, code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
        assert self.code is None, "answered twice"
        self.code = code
        self.producer = producer

    @property
    def is_waiting(self) -> bool:
        return self.code is None

    @property
    def answer(self) -> tuple[ErrorCode, ProducerIdAndEpoch]:
        """Both parts."""
        assert self.code is not None, "not answered"
        return self.code, self.producer


class Coordinator:
    """See the module; all requests are for transactional id `tx` unless they say otherwise."""

    def __init__(
        self, *, version: int = 2, partitions: int = 1, start: bool = True, **settings: object
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.timer = ManualTimer(self.clock)
        self.log = FakeStateLog(partitions)
        self.data = FakePartitions()
        self.ids = FakeProducerIds()
        self.settings = BrokerConfig().replace(**settings) if settings else BrokerConfig()
        self.controller = FakeController(
            topic_image(TRANSACTION_TOPIC, 99, partitions),
            topic_image("t", 1, 3),
            topic_image("__consumer_offsets", 98, 50),
        )
        cast("Any", self.controller).producer_ids = self.ids
        self.version = version
        self.transactions = self._new()
        if start:
            self.start()

    def _new(self) -> TransactionCoordinator:
        self._set_version()
        return TransactionCoordinator(
            self.settings,
            FakeEnvironment(clock=self.clock, timer=self.timer),
            cast("Any", self.log),
            cast("Any", self.controller),
            self.data,
        )

    def _set_version(self) -> None:
        image = self.controller.image
        object.__setattr__(image, "features", {"transaction.version": self.version})

    def set_version(self, version: int) -> None:
        """An administrator changes the cluster's transaction.version."""
        self.version = version
        self._set_version()

    # -- life --

    def run(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run on this coordinator's own loop."""
        self.loop.run_until_complete(coroutine)

    def start(self) -> None:
        """Start, and load every partition."""

        async def begin() -> None:
            await self.transactions.start()
            for index in range(len(self.log.ends)):
                self.transactions.on_elected(index, self.log.leader_epoch)

        self.run(begin())
        self.settle()

    def settle(self, most: int = 60) -> None:
        """Let every task go on until it waits for time or for somebody."""
        self.run(turns(most))

    def advance(self, ms: float) -> None:
        """Let time pass; what falls due runs on the loop."""

        async def pass_time() -> None:
            self.timer.advance(ms)

        self.run(pass_time())
        self.settle(20)

    def commit_held(self) -> None:
        """As `FakeStateLog.commit_held`, on the loop."""

        async def commit() -> None:
            self.log.commit_held()

        self.run(commit())

    def fail_held(self, code: ErrorCode) -> None:
        """As `FakeStateLog.fail_held`, on the loop."""

        async def fail() -> None:
            self.log.fail_held(code)

        self.run(fail())

    def crash(self) -> None:
        """The process is killed, and a new one starts."""
        old = self.transactions
        self.log.life += 1
        self.data.life += 1
        self.log.held.clear()
        self.data.held.clear()
        self.log.commit_all()
        # Nothing of the old process may do anything.
        self.log.budget = self.data.budget = 0
        self.run(old.stop())
        self.log.budget = self.data.budget = None
        self.timer = ManualTimer(self.clock)
        self.controller.listeners.clear()
        self.transactions = self._new()
        self.start()

    def close(self) -> None:
        """Leave nothing behind."""
        self.run(self.transactions.stop())
        self.loop.close()

    # -- requests --

    def metadata(self, transactional_id: str = "tx") -> TransactionMetadata:
        code, metadata = self.transactions.find_transaction(transactional_id)
        assert metadata is not None, code
        return metadata

    def state_counts(self) -> dict[TransactionState, int]:
        """How many transactional ids are in each state; states of none are left out."""
        counts: Counter[TransactionState] = Counter()

        async def count() -> None:
            async for metadata in self.transactions.transactions():
                counts[metadata.state] += 1

        self.run(count())
        return dict(counts)

    @property
    def state(self) -> TransactionState:
        """Of `tx`."""
        return self.metadata().state

    def init_later(
        self,
        expected: ProducerIdAndEpoch | None = None,
        *,
        transactional_id: str = "tx",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Ended:
        """InitProducerId, whose answer may take its time."""
        ended = Ended()

        async def ask() -> None:
            self.transactions.init_producer_id(transactional_id, timeout_ms, expected, ended)

        self.run(ask())
        return ended

    def init(
        self, expected: ProducerIdAndEpoch | None = None, **options: Any
    ) -> tuple[ErrorCode, ProducerIdAndEpoch]:
        """InitProducerId, answered at once."""
        ended = self.init_later(expected, **options)
        assert ended.code is not None
        return ended.code, ended.producer

    def new_producer(self, **options: Any) -> ProducerIdAndEpoch:
        """A producer that may begin."""
        code, producer = self.init(**options)
        assert code is ErrorCode.NONE
        return producer

    def add_later(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        version: int | None = None,
        transactional_id: str = "tx",
    ) -> list[ErrorCode]:
        """AddPartitionsToTxn; the list gets its answer."""
        codes: list[ErrorCode] = []
        self.transactions.add_partitions(
            transactional_id,
            producer,
            partitions,
            client_transaction_version=self._client_version(version),
            done=codes.append,
        )
        return codes

    def add(self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, **o: Any) -> ErrorCode:
        """AddPartitionsToTxn, answered at once."""
        (code,) = self.add_later(producer, *partitions, **o)
        return code

    def end_later(
        self,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool = True,
        version: int | None = None,
        transactional_id: str = "tx",
    ) -> Ended:
        """EndTxn, whose answer may take its time."""
        ended = Ended()

        async def ask() -> None:
            self.transactions.end_transaction(
                transactional_id,
                producer,
                commit=commit,
                client_transaction_version=self._client_version(version),
                done=ended,
            )

        self.run(ask())
        return ended

    def end(
        self, producer: ProducerIdAndEpoch, **options: Any
    ) -> tuple[ErrorCode, ProducerIdAndEpoch]:
        """EndTxn, answered at once."""
        ended = self.end_later(producer, **options)
        assert ended.code is not None
        return ended.code, ended.producer

    def _client_version(self, version: int | None) -> int:
        return (2 if self.version >= 2 else 0) if version is None else version

    # -- what tests want to have behind them --

    def ongoing(self, *partitions: TopicPartition, **options: Any) -> ProducerIdAndEpoch:
        """A producer with a transaction in these partitions, which has written to them."""
        producer = self.new_producer(**options)
        self.write(producer, *partitions)
        return producer

    def write(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, value: str = "x"
    ) -> None:
        """Add partitions and produce to them."""
        assert self.add(producer, *partitions) is ErrorCode.NONE
        for tp in partitions:
            assert self.data.produce(tp, producer, value) is ErrorCode.NONE

    def put_epoch(self, epoch: int, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        """Tens of thousands of transactions later."""
        self.metadata().producer_epoch = epoch
        self.metadata().last_producer_epoch = epoch - 1
        return ProducerIdAndEpoch(producer.producer_id, epoch)
