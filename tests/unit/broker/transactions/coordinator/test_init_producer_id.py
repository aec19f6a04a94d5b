"""InitProducerId on a coordinator: new lives, retries, and transactions that are in the way."""

import logging

import pytest

from broker.controller.store.metadata_store import StoreError
from broker.runtime.errors import ApiError
from broker.transactions.coordinator import shard
from broker.transactions.coordinator.init_producer_id import TRANSACTIONAL_ID_LENGTH_MAX
from broker.transactions.coordinator.transaction_metadata import PRODUCER_EPOCH_MAX
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from tests.harness.transactions import NO_PRODUCER, TIMEOUT_MS, A, B, Coordinator
from tests.unit.broker.transactions.conftest import MakeCoordinator

E = ErrorCode


def test_unknown_transactional_id_gets_a_producer_id(c: Coordinator) -> None:
    assert c.init() == (E.NONE, ProducerIdAndEpoch(1000, 0))
    assert c.init(transactional_id="other") == (E.NONE, ProducerIdAndEpoch(1001, 0))
    assert c.log.states() == [S.EMPTY]
    assert c.metadata().timeout_ms == TIMEOUT_MS


def test_whoever_says_who_it_was_begins_anew_when_it_is_not_known(c: Coordinator) -> None:
    """Its transactional id has expired."""
    assert c.init(ProducerIdAndEpoch(5, 7)) == (E.NONE, ProducerIdAndEpoch(1000, 0))
    assert c.metadata().last_producer_epoch == -1


def test_every_process_gets_the_next_epoch(c: Coordinator) -> None:
    for epoch in range(3):
        assert c.init(timeout_ms=1_000 + epoch) == (E.NONE, ProducerIdAndEpoch(1000, epoch))
    assert c.metadata().timeout_ms == 1_002


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_have_bounds(c: Coordinator, timeout_ms: int) -> None:
    assert c.init(timeout_ms=timeout_ms) == (E.INVALID_TRANSACTION_TIMEOUT, NO_PRODUCER)
    assert c.init(timeout_ms=900_000)[0] is E.NONE


@pytest.mark.parametrize("transactional_id", ["", "x" * (TRANSACTIONAL_ID_LENGTH_MAX + 1)])
def test_names_have_bounds(c: Coordinator, transactional_id: str) -> None:
    assert c.init(transactional_id=transactional_id) == (E.INVALID_REQUEST, NO_PRODUCER)
    assert c.log.appends == 0


def test_longest_name_fits_its_record(c: Coordinator) -> None:
    name = "🦊" * TRANSACTIONAL_ID_LENGTH_MAX
    assert c.init(transactional_id=name)[0] is E.NONE
    c.crash()
    assert c.metadata(name).producer_epoch == 0


def test_shard_has_room_for_so_many(
    c: Coordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shard, "TRANSACTIONAL_IDS_MAX", 2)
    for name in ("a", "b"):
        assert c.init(transactional_id=name)[0] is E.NONE
    assert c.init(transactional_id="c") == (E.POLICY_VIOLATION, NO_PRODUCER)
    assert c.init(transactional_id="a")[0] is E.NONE
    assert "too many transactional ids" in caplog.text


# -- KIP-360: the same process after an error --


def test_same_process_goes_on(c: Coordinator) -> None:
    producer = c.new_producer()
    code, following = c.init(producer)
    assert (code, following) == (E.NONE, producer._replace(epoch=1))
    # The answer was lost.
    assert c.init(producer) == (E.NONE, following)
    assert c.init(following) == (E.NONE, producer._replace(epoch=2))
    # By now that is long ago.
    assert c.init(producer) == (E.PRODUCER_FENCED, NO_PRODUCER)


def test_process_that_was_replaced_does_not_go_on(c: Coordinator) -> None:
    first = c.new_producer()
    c.new_producer()
    assert c.init(first) == (E.PRODUCER_FENCED, NO_PRODUCER)
    assert c.init(ProducerIdAndEpoch(first.producer_id, 9)) == (E.PRODUCER_FENCED, NO_PRODUCER)
    assert c.init(ProducerIdAndEpoch(7, 0)) == (E.PRODUCER_FENCED, NO_PRODUCER)


@pytest.mark.parametrize("commit", [True, False])
def test_next_life_after_a_transaction(c: Coordinator, commit: bool) -> None:
    producer = c.ongoing(A)
    _, producer = c.end(producer, commit=commit)
    assert c.init(producer) == (E.NONE, producer._replace(epoch=2))
    assert c.log.states()[-1] is S.EMPTY
    assert c.metadata().start_timestamp_ms == -1


# -- something is in the way --


@pytest.mark.parametrize("version", [0, 1, 2])
def test_ongoing_transaction_is_aborted_first(make: MakeCoordinator, version: int) -> None:
    """With an epoch that nobody is given; the client comes back for its own."""
    c = make(version=version)
    old = c.ongoing(A)
    assert c.init() == (E.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
    assert c.state is S.COMPLETE_ABORT
    ((marker, partitions),) = c.data.calls
    assert (marker.producer_epoch, marker.commit, partitions) == (1, False, frozenset({A}))
    assert marker.transaction_version == version
    assert c.init() == (E.NONE, old._replace(epoch=2))
    assert c.add(old, A) is E.PRODUCER_FENCED
    assert c.end(old)[0] is E.PRODUCER_FENCED
    assert c.transactions.stats.fenced == 1


def test_fenced_producer_of_an_old_cluster_may_not_even_abort(old: Coordinator) -> None:
    producer = old.ongoing(A)
    old.init()
    assert old.end(producer, commit=False)[0] is E.PRODUCER_FENCED


def test_transaction_that_is_being_fenced_is_in_the_way(c: Coordinator) -> None:
    c.ongoing(A)
    c.data.hold = True
    for _ in range(2):
        assert c.init() == (E.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
    assert len(c.data.calls) == 1
    c.data.release()
    assert c.init()[1].epoch == 2


@pytest.mark.parametrize("version", [0, 2])
def test_fence_that_is_not_written_uses_no_epoch(make: MakeCoordinator, version: int) -> None:
    """Kafka remembers that it failed, lest every attempt use one."""
    c = make(version=version)
    producer = c.ongoing(A)
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    for _ in range(3):
        assert c.init() == (E.COORDINATOR_NOT_AVAILABLE, NO_PRODUCER)
        assert c.metadata().producer == producer
    c.log.fail_with = None
    assert c.add(producer, B) is E.NONE
    c.init()
    assert c.metadata().producer_epoch == 1


def test_two_at_a_time(c: Coordinator) -> None:
    c.log.hold = True
    first = c.init_later()
    assert c.init() == (E.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
    c.log.commit_held()
    assert first.answer == (E.NONE, ProducerIdAndEpoch(1000, 0))


# -- the log refuses --


def test_transactional_id_that_the_log_never_heard_of_is_forgotten(c: Coordinator) -> None:
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    assert c.init() == (E.COORDINATOR_NOT_AVAILABLE, NO_PRODUCER)
    assert c.transactions.find_transaction("tx")[0] is E.TRANSACTIONAL_ID_NOT_FOUND
    c.log.fail_with = None
    assert c.init() == (E.NONE, ProducerIdAndEpoch(1001, 0))


def test_epoch_that_is_not_written_is_not_given(c: Coordinator) -> None:
    producer = c.new_producer()
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    assert c.init() == (E.COORDINATOR_NOT_AVAILABLE, NO_PRODUCER)
    assert c.metadata().producer == producer
    c.log.fail_with = None
    assert c.init()[1].epoch == 1


# -- producer ids --


def test_last_epoch_is_followed_by_a_producer_id(c: Coordinator) -> None:
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 2, c.new_producer())
    code, last = c.init(producer)
    assert (code, last.epoch) == (E.NONE, PRODUCER_EPOCH_MAX - 1)
    assert c.init(producer) == (E.NONE, last)
    code, following = c.init(last)
    assert (code, following) == (E.NONE, ProducerIdAndEpoch(1001, 0))
    for _ in range(2):
        assert c.init(last) == (E.NONE, following)
    c.crash()
    assert c.metadata().previous_producer_id == 1000


def test_new_process_at_the_last_epoch(c: Coordinator) -> None:
    last = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    assert c.init() == (E.NONE, ProducerIdAndEpoch(1001, 0))
    assert c.init(last) == (E.PRODUCER_FENCED, NO_PRODUCER)


def test_somebody_else_at_the_last_epoch_is_fenced(c: Coordinator) -> None:
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    assert c.init(producer._replace(epoch=3)) == (E.PRODUCER_FENCED, NO_PRODUCER)


def test_transaction_at_the_last_epoch_is_fenced_with_the_one_above(c: Coordinator) -> None:
    producer = c.put_epoch(PRODUCER_EPOCH_MAX - 1, c.new_producer())
    c.write(producer, A)
    assert c.init() == (E.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
    assert c.metadata().producer_epoch == PRODUCER_EPOCH_MAX
    assert c.init() == (E.NONE, ProducerIdAndEpoch(1001, 0))


def test_producer_id_that_has_to_be_waited_for(c: Coordinator) -> None:
    c.ids.available = False
    first, second = c.init_later(), c.init_later()
    c.settle()
    assert first.is_waiting
    c.ids.arrive()
    c.settle()
    assert sorted([first.producer, second.producer]) == [(1000, 0), (1000, 1)]


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ApiError(E.UNKNOWN_SERVER_ERROR), E.UNKNOWN_SERVER_ERROR),
        (StoreError("no"), E.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_producer_id_that_cannot_be_had(
    c: Coordinator, failure: Exception, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    c.ids.available, c.ids.failure = False, failure
    ended = c.init_later()
    c.settle()
    assert ended.answer == (code, NO_PRODUCER)
    assert c.transactions.find_transaction("tx")[0] is E.TRANSACTIONAL_ID_NOT_FOUND
