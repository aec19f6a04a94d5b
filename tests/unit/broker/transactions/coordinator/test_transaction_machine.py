"""The coordinator against what must always hold, whatever clients, logs and partitions do.

Three processes share two transactional ids. They begin lives, write, commit, abort, lose answers
and ask again; batches arrive late; the log commits late, refuses, or leaves nobody knowing;
partitions go away and come back; time passes; the coordinator dies and is loaded anew.

- A transaction ends the same way in every partition that it reached, and never both ways.
- It ends as its client was told, and is never committed unless its client asked for that.
- Once somebody else has begun a life, the older process is never told that anything succeeded.
- Once everything is well again, every transaction ends.

The old protocol (version 0) and that of KIP-890 (version 2) run the same rules, except that batches
arrive late with version 2 only: with the old one a late batch may become part of the producer's
next transaction, in Kafka as here, which is why there is a KIP-890.
"""

from dataclasses import dataclass, field
from enum import Enum

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from broker.transactions.coordinator.transaction_metadata import PRODUCER_EPOCH_MAX
from broker.transactions.interfaces import PartitionErrors, ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.effort import examples
from tests.harness.transactions import OFFSETS, A, B, C, Coordinator, Ended

E = ErrorCode
PARTITIONS = (A, B, C, OFFSETS)
NAMES = ("tx", "tx", "other")

AGAIN = frozenset(
    {
        E.CONCURRENT_TRANSACTIONS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
    }
)
"""Clients ask again."""


rarely = st.sampled_from([False] * 7 + [True])


@dataclass
class Transaction:
    """What one process did in one epoch, between two ends."""

    number: int
    producer: ProducerIdAndEpoch
    written: list[tuple[TopicPartition, str]] = field(default_factory=list)
    asked: bool | None = None
    told: bool | None = None


@dataclass
class Process:
    """A client. `life` counts the lives that its transactional id has begun."""

    name: str
    producer: ProducerIdAndEpoch | None = None
    life: int = 0
    transaction: Transaction | None = None
    ending: Ended | None = None
    is_stale: bool = False
    """A new producer id may be on its way to it in an answer that was lost."""


@dataclass
class LateBatch:
    """A batch that was sent and has not arrived."""

    process: Process
    transaction: Transaction
    tp: TopicPartition


class Trouble(Enum):
    """What goes wrong until all is well again."""

    LOG_COMMITS_LATE = 1
    LOG_REFUSES = 2
    PARTITION_IS_AWAY = 3
    MARKER_ANSWERS_ARE_LOST = 4
    MARKER_ANSWERS_ARE_LATE = 5


class TransactionMachine(RuleBasedStateMachine):
    """See the module."""

    version = 2

    def __init__(self) -> None:
        super().__init__()
        self.c = Coordinator(version=self.version)
        self.processes = [Process(name) for name in NAMES]
        self.transactions: list[Transaction] = []
        self.late: list[LateBatch] = []
        self.lives = dict.fromkeys(NAMES, 0)
        self.values = 0

    def teardown(self) -> None:
        try:
            self._heal()
        finally:
            self.c.close()

    # -- clients --

    @rule(index=st.integers(0, 2), says_who=st.booleans(), lost=rarely)
    def init(self, index: int, says_who: bool, lost: bool) -> None:
        self._init(self.processes[index], says_who=says_who, lost=lost)

    def _init(self, process: Process, *, says_who: bool = False, lost: bool = False) -> None:
        expected = process.producer if says_who else None
        ended = self.c.init_later(expected, transactional_id=process.name)
        if ended.code is not E.NONE:
            if ended.code is not None and ended.code not in AGAIN:
                assert ended.code in (E.PRODUCER_FENCED, E.UNKNOWN_SERVER_ERROR)
                self._leave(process)
            return
        if expected is not None:
            assert process.life == self.lives[process.name], "a fenced process went on"
        self.lives[process.name] += 1
        if not lost:
            process.life = self.lives[process.name]
            process.producer = ended.producer
            process.is_stale = False
        elif expected is not None:
            # It will ask again, as the same process.
            process.life = self.lives[process.name]
            process.is_stale = True
        else:
            process.producer = None
        process.transaction = process.ending = None

    @rule(
        index=st.integers(0, 2),
        partitions=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True),
        late=rarely,
        lost=rarely,
    )
    def write(self, index: int, partitions: list[TopicPartition], late: bool, lost: bool) -> None:
        for tp in partitions:
            self._write(self.processes[index], tp, late=late, lost=lost)

    def _write(
        self, process: Process, tp: TopicPartition, *, late: bool = False, lost: bool = False
    ) -> None:
        if process.producer is None:
            self._init(process)
        if process.producer is None:
            return
        transaction = process.transaction
        if transaction is not None and transaction.asked is not None:
            return
        if transaction is None:
            transaction = Transaction(len(self.transactions), process.producer)
            self.transactions.append(transaction)
            process.transaction = transaction
        batch = LateBatch(process, transaction, tp)
        if self.version < 2:
            codes = self.c.add_later(process.producer, tp, version=0, transactional_id=process.name)
            if not codes or lost or not self._accepted(process, codes[0]):
                return
        elif late:
            self.late.append(batch)
            return
        self._arrive(batch)

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def late_batch_arrives(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.late) - 1))
        self._arrive(self.late.pop(position))

    def _arrive(self, batch: LateBatch) -> None:
        """As a partition's leader does it: ask, then append."""
        process, transaction, tp = batch.process, batch.transaction, batch.tp
        answers: list[PartitionErrors] = []
        self.c.transactions.add_or_verify(
            process.name, transaction.producer, [tp], add=self.version >= 2, done=answers.append
        )
        current = process.transaction is transaction
        if not answers:
            return
        code = answers[0][tp]
        if code is not E.NONE:
            if current:
                self._accepted(process, code)
            return
        assert current or transaction.asked is None, "a batch joined a transaction that is over"
        value = f"{transaction.number}/{self.values}"
        self.values += 1
        code = self.c.data.produce(tp, transaction.producer, value)
        if code is E.NONE:
            transaction.written.append((tp, value))

    def _accepted(self, process: Process, code: ErrorCode) -> bool:
        if code is E.NONE:
            assert process.life == self.lives[process.name], "a fenced process went on"
            return True
        if process.life == self.lives[process.name] and not process.is_stale:
            assert code is not E.INVALID_PRODUCER_ID_MAPPING, "not the producer id it was given"
        if code not in AGAIN:
            self._leave(process)
        return False

    def _leave(self, process: Process) -> None:
        """It has been told that it is over, and has to begin anew."""
        process.producer = process.transaction = process.ending = None

    @rule(index=st.integers(0, 2), commit=st.booleans(), lost=rarely)
    def end(self, index: int, commit: bool, lost: bool) -> None:
        self._end(self.processes[index], commit=commit, lost=lost)

    @rule(
        index=st.integers(0, 2),
        partitions=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=4, unique=True),
        commit=st.booleans(),
        lost=rarely,
    )
    def whole_transaction(
        self, index: int, partitions: list[TopicPartition], commit: bool, lost: bool
    ) -> None:
        process = self.processes[index]
        for tp in partitions:
            self._write(process, tp)
        self._end(process, commit=commit, lost=lost)

    @rule(
        index=st.integers(0, 2),
        before=st.sampled_from(PARTITIONS),
        partitions=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique=True),
        commit=st.booleans(),
    )
    def die_in_the_next_transaction(
        self,
        index: int,
        before: TopicPartition,
        partitions: list[TopicPartition],
        commit: bool,
    ) -> None:
        """The one before has its markers, and its Complete record came with the next beginning."""
        process = self.processes[index]
        self._write(process, before)
        self._end(process, commit=commit, lost=False)
        for tp in partitions:
            self._write(process, tp)
        self.die()

    def _end(self, process: Process, *, commit: bool, lost: bool) -> None:
        transaction = process.transaction
        if process.producer is None or transaction is None:
            return
        if transaction.asked is not None:
            # A retry asks for the same.
            commit = transaction.asked
        transaction.asked = commit
        ended = self.c.end_later(process.producer, commit=commit, transactional_id=process.name)
        if ended.is_waiting:
            process.ending = ended
        elif not lost or ended.code in AGAIN:
            self._ended(process, ended)

    @rule()
    def answers_arrive(self) -> None:
        for process in self.processes:
            ending = process.ending
            if ending is not None and not ending.is_waiting:
                process.ending = None
                self._ended(process, ending)

    def _ended(self, process: Process, ended: Ended) -> None:
        transaction = process.transaction
        if transaction is None:
            return
        if ended.code is E.NONE:
            assert process.life == self.lives[process.name], "a fenced process was told NONE"
            assert transaction.asked is not None
            transaction.told = transaction.asked
            process.transaction = process.ending = None
            if self.version >= 2:
                assert ended.producer != transaction.producer
                process.producer = ended.producer
        elif ended.code not in AGAIN:
            assert ended.code in (
                E.PRODUCER_FENCED,
                E.INVALID_TXN_STATE,
                E.INVALID_PRODUCER_ID_MAPPING,
                E.UNKNOWN_SERVER_ERROR,
            ), ended.code
            self._leave(process)

    # -- the world --

    @rule(ms=st.sampled_from([10, 500, 15_000, 100_000]))
    def time_passes(self, ms: int) -> None:
        self.c.advance(ms)

    @rule()
    def die(self) -> None:
        self.c.crash()
        for process in self.processes:
            process.ending = None

    @rule(tp=st.sampled_from(PARTITIONS), kind=st.sampled_from(Trouble), count=st.integers(1, 3))
    def trouble(self, kind: Trouble, tp: TopicPartition, count: int) -> None:
        match kind:
            case Trouble.LOG_COMMITS_LATE:
                self.c.log.hold = True
            case Trouble.LOG_REFUSES:
                self.c.log.fail_next = [E.NOT_ENOUGH_REPLICAS] * count
            case Trouble.PARTITION_IS_AWAY:
                self.c.data.failing[tp] = E.NOT_LEADER_OR_FOLLOWER
            case Trouble.MARKER_ANSWERS_ARE_LOST:
                self.c.data.lose_answers = True
            case Trouble.MARKER_ANSWERS_ARE_LATE:
                self.c.data.hold = True

    @rule()
    def log_commits(self) -> None:
        self.c.commit_held()
        self.c.settle(20)

    @precondition(lambda self: self.c.log.held)
    @rule()
    def nobody_knows(self) -> None:
        """The commit takes too long; later it is there."""
        self.c.fail_held(E.REQUEST_TIMED_OUT)
        self.c.settle(20)
        self.c.log.commit_all()
        self.c.advance(100)

    @rule()
    def all_is_well(self) -> None:
        self._mend()
        self.c.commit_held()

        async def release() -> None:
            self.c.data.release()

        self.c.run(release())
        self.c.advance(3_000)
        self.answers_arrive()

    def _mend(self) -> None:
        self.c.log.hold = self.c.data.hold = self.c.data.lose_answers = False
        self.c.log.fail_next = []
        self.c.data.failing.clear()

    @precondition(lambda self: self.version >= 2)
    @rule(index=st.integers(0, 2), left=st.integers(1, 2))
    def epochs_are_used_up(self, index: int, left: int) -> None:
        """As by tens of thousands of transactions, if nothing is under way."""
        process = self.processes[index]
        _, metadata = self.c.transactions.find_transaction(process.name)
        if (
            metadata is None
            or process.producer is None
            or metadata.producer != process.producer
            or process.transaction is not None
            or metadata.pending is not None
            or not metadata.state.may_expire
        ):
            return
        metadata.producer_epoch = PRODUCER_EPOCH_MAX - left
        metadata.last_producer_epoch = PRODUCER_EPOCH_MAX - left - 1
        process.producer = metadata.producer

    # -- what must hold --

    @invariant()
    def nothing_ends_in_two_ways(self) -> None:
        for transaction in self.transactions:
            outcomes = self._outcomes(transaction)
            assert len(outcomes) <= 1, transaction
            for outcome in outcomes:
                assert not outcome or transaction.asked, transaction
                assert transaction.told in (None, outcome), transaction

    @invariant()
    def nobody_has_the_last_epoch(self) -> None:
        for process in self.processes:
            assert process.producer is None or process.producer.epoch < PRODUCER_EPOCH_MAX

    def _outcomes(self, transaction: Transaction) -> set[bool]:
        data = self.c.data
        return {
            commit
            for commit, where in ((True, data.committed), (False, data.aborted))
            for tp, value in transaction.written
            if value in where.get(tp, set())
        }

    def _heal(self) -> None:
        c = self.c
        self._mend()
        c.crash()
        c.advance(10_000)
        for name in dict.fromkeys(NAMES):
            for _ in range(3):
                ended = c.init_later(transactional_id=name)
                if ended.code is E.NONE:
                    break
                assert ended.code is E.CONCURRENT_TRANSACTIONS, ended.code
                c.advance(5_000)
            else:
                raise AssertionError("something is open for ever")
        assert not any(c.data.open.values()), c.data.open
        for transaction in self.transactions:
            if transaction.written:
                assert len(self._outcomes(transaction)) == 1, transaction
                if transaction.told is not None:
                    assert self._outcomes(transaction) == {transaction.told}


class OldTransactionMachine(TransactionMachine):
    """The protocol before KIP-890."""

    version = 0

    @initialize()
    def begin(self) -> None:
        """Nothing: the rules are those of the new protocol."""


TransactionMachine.TestCase.settings = examples(100)
OldTransactionMachine.TestCase.settings = TransactionMachine.TestCase.settings
TestTransactionMachine = TransactionMachine.TestCase
TestOldTransactionMachine = OldTransactionMachine.TestCase
