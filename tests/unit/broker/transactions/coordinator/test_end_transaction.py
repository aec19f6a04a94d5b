"""EndTxn on a coordinator: answers, epochs, producer ids, and what is written when."""

import pytest

from broker.controller.store.metadata_store import StoreError
from broker.coordinator.deferred_records import DEFER_MS
from broker.transactions.coordinator.transaction_metadata import PRODUCER_EPOCH_MAX
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.coordinator.unconfirmed_refusals import (
    GIVEN_UP_MS,
    REFUSALS_MAX,
    UnconfirmedRefusals,
)
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from tests.harness.transactions import NO_PRODUCER, OFFSETS, A, B, C, Coordinator
from tests.unit.broker.transactions.conftest import MakeCoordinator

E = ErrorCode


@pytest.mark.parametrize("commit", [True, False])
def test_version_2_gives_every_transaction_its_epoch(c: Coordinator, commit: bool) -> None:
    """Markers carry the new one; the client gets it in the answer."""
    producer = c.ongoing(A, B, OFFSETS)
    code, following = c.end(producer, commit=commit)
    assert (code, following) == (E.NONE, ProducerIdAndEpoch(producer.producer_id, 1))
    assert c.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    ((marker, partitions),) = c.data.calls
    assert partitions == {A, B, OFFSETS}
    assert marker == (producer.producer_id, 1, commit, c.log.leader_epoch, 2)
    prepare = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
    c.advance(2 * DEFER_MS)
    assert c.log.states() == [S.EMPTY, S.ONGOING, prepare, c.state]
    assert c.metadata().partitions == frozenset()


@pytest.mark.parametrize("commit", [True, False])
def test_old_clients_keep_their_epoch(old: Coordinator, commit: bool) -> None:
    producer = old.ongoing(A)
    assert old.end(producer, commit=commit) == (E.NONE, NO_PRODUCER)
    assert old.metadata().producer == producer
    ((marker, _),) = old.data.calls
    assert marker == (producer.producer_id, 0, commit, old.log.leader_epoch, 0)


def test_old_client_of_a_new_cluster_keeps_its_epoch(c: Coordinator) -> None:
    producer = c.new_producer()
    assert c.add(producer, A, version=0) is E.NONE
    assert c.end(producer, version=0) == (E.NONE, NO_PRODUCER)
    assert c.metadata().producer == producer
    assert c.data.calls[0][0].transaction_version == 0


def test_an_answer_that_fails_leaves_no_transaction_open(c: Coordinator) -> None:
    producer = c.ongoing(A)

    def fails(_code: ErrorCode, _following: ProducerIdAndEpoch) -> None:
        raise RuntimeError("cannot be encoded")

    async def ask() -> None:
        c.transactions.end_transaction(
            "tx", producer, commit=True, client_transaction_version=2, done=fails
        )

    with pytest.raises(RuntimeError):
        c.run(ask())
    assert len(c.data.calls) == 1
    assert c.state is S.COMPLETE_COMMIT


def test_answer_waits_for_the_record_and_markers_for_the_answer(c: Coordinator) -> None:
    producer = c.ongoing(A)
    c.log.hold = True
    ended = c.end_later(producer)
    assert ended.is_waiting
    assert c.data.calls == []
    c.log.commit_held()
    assert ended.code is E.NONE
    assert len(c.data.calls) == 1
    # The Complete record tells nobody anything new, and is waited for by nobody.
    assert c.state is S.COMPLETE_COMMIT
    assert c.metadata().pending is None


def test_client_is_answered_before_the_markers_are_there(c: Coordinator) -> None:
    producer = c.ongoing(A)
    c.data.hold = True
    code, following = c.end(producer)
    assert (code, following.epoch) == (E.NONE, 1)
    assert c.state is S.PREPARE_COMMIT
    assert c.end(producer) == (E.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
    assert c.add(following, A) is E.CONCURRENT_TRANSACTIONS
    assert c.init() == (E.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
    c.data.release()
    assert c.end(producer) == (E.NONE, following)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_while_the_record_is_not_committed_everything_has_to_wait(
    make: MakeCoordinator, version: int, commit: bool
) -> None:
    c = make(version=version)
    producer = c.ongoing(A)
    c.log.hold = True
    first = c.end_later(producer, commit=commit)
    for again in (True, False):
        assert c.end(producer, commit=again)[0] is E.CONCURRENT_TRANSACTIONS
    assert c.add(producer, B) is E.CONCURRENT_TRANSACTIONS
    assert c.init()[0] is E.CONCURRENT_TRANSACTIONS
    assert first.is_waiting


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_refused_record_changes_nothing(
    make: MakeCoordinator, version: int, failure: ErrorCode, answer: ErrorCode
) -> None:
    c = make(version=version)
    producer = c.ongoing(A)
    c.log.fail_with = failure
    assert c.end(producer) == (answer, NO_PRODUCER)
    assert (c.state, c.metadata().pending) == (S.ONGOING, None)
    assert c.data.calls == []
    c.log.fail_with = None
    assert c.end(producer)[0] is E.NONE
    assert c.state is S.COMPLETE_COMMIT


@pytest.mark.parametrize("transactional_id", ["", "unknown"])
@pytest.mark.parametrize("version", [0, 2])
def test_transactional_ids_that_do_not_exist(
    make: MakeCoordinator, version: int, transactional_id: str
) -> None:
    c = make(version=version)
    code, _ = c.end(ProducerIdAndEpoch(1, 0), transactional_id=transactional_id)
    assert code is (E.INVALID_PRODUCER_ID_MAPPING if transactional_id else E.INVALID_REQUEST)


def test_abort_of_nothing_raises_the_epoch(c: Coordinator) -> None:
    """With version 2 a client may not know whether its transaction had begun."""
    producer = c.new_producer()
    now_ms = c.clock.now_ms()
    for epoch in (1, 2):
        code, producer = c.end(producer, commit=False)
        assert (code, producer.epoch) == (E.NONE, epoch)
    c.advance(2 * DEFER_MS)
    assert c.log.states() == [S.EMPTY, *([S.PREPARE_ABORT, S.COMPLETE_ABORT] * 2)]
    assert c.metadata().start_timestamp_ms == now_ms
    assert c.data.calls == []
    assert c.end(producer, commit=True) == (E.INVALID_TXN_STATE, NO_PRODUCER)


def test_producer_id_changes_after_the_last_epoch(c: Coordinator) -> None:
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    c.data.hold = True
    code, following = c.end(producer)
    assert (code, following) == (E.NONE, ProducerIdAndEpoch(producer.producer_id + 1, 0))
    assert c.metadata().producer == (producer.producer_id, PRODUCER_EPOCH_MAX)
    assert c.metadata().next_producer_id == following.producer_id
    assert c.data.calls[0][0][:2] == (producer.producer_id, PRODUCER_EPOCH_MAX)
    # The client knows its new id before the transaction is over.
    assert c.add(following, B) is E.CONCURRENT_TRANSACTIONS
    c.data.release()
    assert c.metadata().producer == following
    assert c.metadata().last_producer_epoch == PRODUCER_EPOCH_MAX - 1
    assert c.end(producer) == (E.NONE, following)
    assert c.end(producer, commit=False) == (E.INVALID_TXN_STATE, NO_PRODUCER)
    assert c.add(following, B) is E.NONE
    assert c.end(producer)[0] is E.INVALID_PRODUCER_ID_MAPPING


def test_producer_id_that_was_promised_survives_a_crash(c: Coordinator) -> None:
    """In between the two records, and after both."""
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    c.data.hold = True
    _, following = c.end(producer)
    c.data.hold = False
    for _ in range(2):
        c.crash()
        assert c.metadata().producer == following
        assert c.end(producer) == (E.NONE, following)


def test_producer_id_that_has_to_be_waited_for(c: Coordinator) -> None:
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    c.ids.available = False
    ended = c.end_later(producer)
    c.settle()
    assert ended.is_waiting
    assert c.state is S.ONGOING
    c.ids.arrive()
    c.settle()
    assert ended.code is E.NONE
    assert ended.producer.epoch == 0
    assert c.metadata().state is S.COMPLETE_COMMIT


def test_producer_id_that_cannot_be_had(c: Coordinator) -> None:
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    c.ids.available = False
    c.ids.failure = StoreError("no")
    ended = c.end_later(producer)
    c.settle()
    assert ended.code is E.COORDINATOR_LOAD_IN_PROGRESS
    assert c.state is S.ONGOING


def test_transaction_that_is_ended_while_its_producer_id_is_fetched(c: Coordinator) -> None:
    """Both requests wait; the second finds that the first is through."""
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    c.ids.available = False
    first, second = c.end_later(producer), c.end_later(producer, commit=False)
    c.settle()
    c.ids.arrive()
    c.settle()
    assert first.code is E.NONE
    assert second.code is E.INVALID_TXN_STATE
    assert c.state is S.COMPLETE_COMMIT


def test_last_epoch_of_all_is_given_to_nobody(c: Coordinator) -> None:
    """A transaction at the highest epoch a client may have, whose time is up."""
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    c.advance(200_000)
    assert c.state is S.COMPLETE_ABORT
    assert c.metadata().producer.epoch == PRODUCER_EPOCH_MAX
    highest = c.metadata().producer
    for who in (producer, highest):
        assert c.end(who, commit=False) == (E.PRODUCER_FENCED, NO_PRODUCER)
        assert c.add(who, A) is E.PRODUCER_FENCED
    code, following = c.init(producer)
    assert (code, following.epoch) == (E.NONE, 0)
    assert following.producer_id != producer.producer_id
    assert c.init(producer) == (E.NONE, following)


def test_statistics(c: Coordinator) -> None:
    producer = c.ongoing(A)
    _, producer = c.end(producer)
    c.write(producer, B, C)
    c.end(producer, commit=False)
    assert (c.transactions.stats.commits, c.transactions.stats.aborts) == (1, 1)


@pytest.mark.parametrize("version", [0, 2])
def test_a_coordinator_that_may_be_replaced_refuses_no_state(c: Coordinator, version: int) -> None:
    """Its successor may have begun the transaction: the client looks for it, and comes back."""
    producer = c.new_producer()
    c.log.has_followers = True
    c.log.valid_until_ms = float("inf")
    assert c.end(producer, version=version) == (E.NOT_COORDINATOR, NO_PRODUCER)
    asked_ms = c.clock.monotonic_ms()
    c.advance(400)
    c.log.confirmed_ms = asked_ms - 1
    assert c.end(producer, version=version) == (E.NOT_COORDINATOR, NO_PRODUCER)
    c.advance(400)
    c.log.confirmed_ms = asked_ms
    assert c.end(producer, version=version) == (E.INVALID_TXN_STATE, NO_PRODUCER)
    assert c.end(producer, version=version) == (E.NOT_COORDINATOR, NO_PRODUCER), "it begins again"


def test_a_refusal_that_nobody_can_confirm_is_said_in_the_end(c: Coordinator) -> None:
    """The ISR is too small for it, say; a coordinator in doubt answers nothing."""
    producer = c.new_producer()
    c.log.has_followers = True
    c.log.valid_until_ms = float("inf")
    assert c.end(producer)[0] is E.NOT_COORDINATOR
    c.advance(GIVEN_UP_MS - 1)
    assert c.end(producer)[0] is E.NOT_COORDINATOR
    c.advance(1)
    assert c.end(producer)[0] is E.INVALID_TXN_STATE


def test_of_many_unconfirmed_refusals_the_oldest_is_forgotten(c: Coordinator) -> None:
    shard = next(iter(c.transactions._runtime.shards()))
    refusals = UnconfirmedRefusals(lambda _shard, _since_ms: False)

    def ask(number: int, now_ms: float) -> bool:
        producer = ProducerIdAndEpoch(number, 0)
        return refusals.may_be_said(shard, "tx", producer, commit=True, now_ms=now_ms)

    assert not any(ask(number, 0.0) for number in range(REFUSALS_MAX + 1))
    assert not ask(0, GIVEN_UP_MS)
    assert ask(REFUSALS_MAX, GIVEN_UP_MS)
