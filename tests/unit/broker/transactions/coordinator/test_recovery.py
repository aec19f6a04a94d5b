"""Death after every single write of a scripted run, and what the next process makes of it.

The script goes through every transition: commits, aborts, an abort of nothing, a transaction that
is fenced, one whose time is up, the last epoch of a producer id. It is run once to count its
writes, then once for each of them: after that write the process does nothing any more. Then
another process starts on the same log and the same partitions.

Afterwards every transaction has ended the same way in all its partitions; as its client was told,
if the client was told anything; and never with a commit that nobody asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from broker.coordinator.deferred_records import DEFER_MS
from broker.transactions.coordinator.transaction_metadata import PRODUCER_EPOCH_MAX
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition
from tests.harness.transactions import OFFSETS, A, B, C, Coordinator, Ended

E = ErrorCode


class DeadError(Exception):
    """The process does not answer any more."""


@dataclass
class Asked:
    """A transaction as its client knows it."""

    partitions: list[TopicPartition] = field(default_factory=list)
    commit: bool | None = None
    told: bool | None = None


@dataclass
class Fuse:
    """Burns down with every write: of a state, a batch, a marker."""

    c: Coordinator
    left: int
    writes: int = 0

    def light(self) -> None:
        data = self.c.data
        self.c.log.on_append = data.on_marker = data.on_produce = self._burn
        if self.left == 0:
            self._out()

    def _burn(self) -> None:
        self.writes += 1
        self.left -= 1
        if self.left == 0:
            self._out()

    def _out(self) -> None:
        self.c.log.budget = self.c.data.budget = 0

    def remove(self) -> None:
        data = self.c.data
        self.c.log.on_append = data.on_marker = data.on_produce = lambda: None


class Script:
    """What clients do; each call may find that the process is dead."""

    def __init__(self, c: Coordinator, version: int) -> None:
        self.c = c
        self.version = version
        self.asked: dict[str, Asked] = {}

    def _alive(self, ended: Ended) -> ProducerIdAndEpoch:
        if ended.code is None or self.c.log.budget == 0:
            raise DeadError
        assert ended.code is E.NONE, ended.code
        return ended.producer

    def init(self) -> ProducerIdAndEpoch:
        return self._alive(self.c.init_later())

    def transaction(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        commit: bool | None = None,
    ) -> ProducerIdAndEpoch:
        asked = self.asked[name] = Asked(commit=None)
        for tp in partitions:
            codes = self.c.add_later(producer, tp)
            if codes != [E.NONE] or self.c.log.budget == 0:
                raise DeadError
            asked.partitions.append(tp)
            assert self.c.data.produce(tp, producer, name) is E.NONE
            if self.c.log.budget == 0:
                # What is in the partition must not become part of the transaction before.
                raise DeadError
        if commit is None:
            return producer
        asked.commit = commit
        ended = self.c.end_later(producer, commit=commit)
        if ended.code is E.NONE:
            # The answer may be on its way to the client when the process dies.
            asked.told = commit
        following = self._alive(ended)
        return following if self.version == 2 else producer

    def run(self) -> None:
        producer = self.init()
        producer = self.transaction("commit", producer, A, B, OFFSETS, commit=True)
        # It rests, so that the Complete record is written by itself.
        self.c.advance(2 * DEFER_MS)
        if self.c.log.budget == 0:
            raise DeadError
        producer = self.transaction("abort", producer, B, C, commit=False)
        if self.version == 2:
            producer = self.transaction("nothing", producer, commit=False)
        producer = self.transaction("again", producer, A, commit=True)
        self.transaction("fenced", producer, A, C)
        ended = self.c.init_later()
        if ended.code is None or self.c.log.budget == 0:
            raise DeadError
        assert ended.code is E.CONCURRENT_TRANSACTIONS
        producer = self.init()
        self.transaction("late", producer, B)
        self.c.advance(100_000)
        if self.c.log.budget == 0:
            raise DeadError
        producer = self.init()
        last = self.c.put_epoch(PRODUCER_EPOCH_MAX - 1, producer)
        producer = self.transaction("last", last, A, B, commit=True)
        if self.version == 2:
            assert producer.epoch == 0
        else:
            producer = self.init()
        self.transaction("first", producer, A, C, commit=True)


def heal(c: Coordinator) -> None:
    """The next process, and a client that begins anew and so ends whatever is open."""
    c.crash()
    for _ in range(5):
        ended = c.init_later()
        assert ended.code in (E.NONE, E.CONCURRENT_TRANSACTIONS)
        if ended.code is E.NONE:
            return
    raise AssertionError("no new life after five attempts")


def check(c: Coordinator, asked: dict[str, Asked]) -> None:
    assert not any(c.data.open.values()), c.data.open
    for name, transaction in asked.items():
        outcomes = {
            commit
            for commit, where in ((True, c.data.committed), (False, c.data.aborted))
            for tp in transaction.partitions
            if name in where.get(tp, set())
        }
        if not transaction.partitions:
            assert outcomes == set()
            continue
        assert len(outcomes) == 1, (name, outcomes)
        (outcome,) = outcomes
        assert transaction.told in (None, outcome), name
        assert not outcome or transaction.commit, name
        for tp in transaction.partitions:
            where = c.data.committed if outcome else c.data.aborted
            assert name in where[tp]


def prepare(version: int) -> tuple[Coordinator, Script]:
    c = Coordinator(version=version)
    return c, Script(c, version)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("trouble", ["none", "lost marker answers", "partition away"])
def test_death_after_every_write(version: int, trouble: str) -> None:
    make_trouble: dict[str, Callable[[Coordinator], None]] = {
        "none": lambda c: None,
        "lost marker answers": lambda c: setattr(c.data, "lose_answers", True),
        "partition away": lambda c: c.data.failing.update({B: E.NOT_LEADER_OR_FOLLOWER}),
    }
    total = 0
    position = 0
    while position <= total:
        c, script = prepare(version)
        fuse = Fuse(c, position if position else -1)
        try:
            fuse.light()
            if trouble == "none":
                script.run()
            else:
                # Markers are late: the script gets as far as its second transaction.
                make_trouble[trouble](c)
                producer = script.init()
                producer = script.transaction("commit", producer, A, B, OFFSETS, commit=True)
                c.advance(1_000)
        except DeadError:
            pass
        fuse.remove()
        c.data.lose_answers = False
        c.data.failing.clear()
        if position == 0:
            total = fuse.writes
        heal(c)
        check(c, script.asked)
        c.close()
        position += 1
    assert total > (36 if trouble == "none" else 4)


def test_prepared_transaction_is_ended_without_anybody_asking() -> None:
    for commit, state in ((True, S.COMPLETE_COMMIT), (False, S.COMPLETE_ABORT)):
        c = Coordinator()
        producer = c.ongoing(A, B)
        c.data.failing = dict.fromkeys((A, B), E.NOT_LEADER_OR_FOLLOWER)
        c.end(producer, commit=commit)
        c.data.failing = {}
        c.crash()
        assert c.state is state
        assert c.end(producer, commit=commit) == (E.NONE, producer._replace(epoch=1))
        c.close()


def test_many_prepared_transactions_go_on_in_slices() -> None:
    c = Coordinator(partitions=3)
    c.data.failing = {A: E.NOT_LEADER_OR_FOLLOWER}
    for number in range(50):
        name = f"tx{number}"
        _, producer = c.init(transactional_id=name)
        c.add(producer, A, transactional_id=name)
        c.end(producer, transactional_id=name)
    c.data.failing = {}
    c.crash()
    assert c.state_counts()[S.COMPLETE_COMMIT] == 50
    c.close()


def test_ongoing_transaction_survives_and_its_clock_runs_on() -> None:
    c = Coordinator()
    producer = c.ongoing(A)
    c.crash()
    assert c.add(producer, B) is E.NONE
    c.crash()
    assert c.metadata().partitions == {A, B}
    c.advance(100_000)
    assert c.state is S.COMPLETE_ABORT
    c.close()


def test_retries_of_lost_answers_across_a_death() -> None:
    """Version 2 knows them by their epoch, which is in the log."""
    c = Coordinator()
    producer = c.ongoing(A)
    _, following = c.end(producer)
    c.crash()
    assert c.end(producer) == (E.NONE, following)
    assert c.end(producer, commit=False)[0] is E.INVALID_TXN_STATE
    assert c.init(producer)[0] is E.PRODUCER_FENCED
    c.close()
