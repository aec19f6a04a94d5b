"""Transactions whose time is up, and transactional ids nobody uses any more."""

import logging

import pytest

from broker.transactions.coordinator import expiry
from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from tests.harness.transactions import TIMEOUT_MS, A, B, Coordinator
from tests.unit.broker.transactions.conftest import MakeCoordinator

E = ErrorCode
CHECK_MS = 10_000
WEEK_MS = 604_800_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize("version", [0, 1, 2])
def test_transaction_is_aborted_when_its_time_is_up(
    make: MakeCoordinator, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    c = make(version=version)
    producer = c.ongoing(A)
    c.advance(TIMEOUT_MS)
    assert c.state is S.ONGOING
    c.advance(CHECK_MS)
    assert c.metadata().state is S.COMPLETE_ABORT
    assert c.data.aborted == {A: {"x"}}
    assert c.metadata().producer == producer._replace(epoch=1)
    assert c.add(producer, B) is E.PRODUCER_FENCED
    assert c.end(producer, commit=True)[0] is (
        E.INVALID_TXN_STATE if version == 2 else E.PRODUCER_FENCED
    )
    assert c.transactions.stats.timeouts == 1
    assert "transaction timed out transactional_id=tx" in caplog.text


def test_version_2_lets_the_late_producer_abort_and_go_on(c: Coordinator) -> None:
    """It is told the epoch with which it was shut out."""
    producer = c.ongoing(A)
    c.advance(TIMEOUT_MS + CHECK_MS)
    code, following = c.end(producer, commit=False)
    assert (code, following) == (E.NONE, producer._replace(epoch=1))
    assert c.add(following, A) is E.NONE


def test_same_process_may_go_on_with_version_2_only(make: MakeCoordinator) -> None:
    for version, code in ((0, E.PRODUCER_FENCED), (2, E.NONE)):
        c = make(version=version)
        producer = c.ongoing(A)
        c.advance(TIMEOUT_MS + CHECK_MS)
        assert c.init(producer)[0] is code


def test_time_counts_from_the_first_partition(c: Coordinator) -> None:
    producer = c.new_producer()
    c.advance(TIMEOUT_MS)
    c.write(producer, A)
    c.advance(TIMEOUT_MS - CHECK_MS)
    c.write(producer, B)
    c.advance(CHECK_MS)
    assert c.state is S.ONGOING
    c.advance(CHECK_MS)
    assert c.metadata().state is S.COMPLETE_ABORT


@pytest.mark.parametrize("jump_ms", [-3 * HOUR_MS, 3 * HOUR_MS])
def test_time_goes_on_when_the_wall_clock_jumps(c: Coordinator, jump_ms: int) -> None:
    """Else a dead producer's transaction is open for hours, or a living one's is aborted."""
    c.ongoing(A)
    c.clock.set_now_ms(c.clock.now_ms() + jump_ms)
    c.advance(TIMEOUT_MS)
    assert c.state is S.ONGOING
    c.advance(CHECK_MS)
    assert c.metadata().state is S.COMPLETE_ABORT


def test_time_of_the_second_transaction_counts_anew(c: Coordinator) -> None:
    code, producer = c.end(c.ongoing(A), commit=True)
    assert code is E.NONE
    c.advance(TIMEOUT_MS)
    c.write(producer, A)
    c.advance(TIMEOUT_MS)
    assert c.state is S.ONGOING
    c.advance(CHECK_MS)
    assert c.metadata().state is S.COMPLETE_ABORT


def test_time_before_a_failover_counts(c: Coordinator) -> None:
    c.ongoing(A)
    c.advance(TIMEOUT_MS - CHECK_MS)
    c.crash()
    assert c.state is S.ONGOING
    c.advance(2 * CHECK_MS)
    assert c.metadata().state is S.COMPLETE_ABORT


def test_next_coordinator_whose_clock_is_behind(c: Coordinator) -> None:
    """The transaction began in its future; it gets one more timeout, not the difference."""
    c.ongoing(A)
    c.clock.set_now_ms(c.clock.now_ms() - 3 * HOUR_MS)
    c.crash()
    c.advance(TIMEOUT_MS)
    assert c.state is S.ONGOING
    c.advance(CHECK_MS)
    assert c.metadata().state is S.COMPLETE_ABORT


@pytest.mark.parametrize("held", ["log", "markers"])
def test_what_is_ending_is_left_alone(c: Coordinator, held: str) -> None:
    producer = c.ongoing(A)
    c.log.hold = held == "log"
    c.data.hold = held == "markers"
    ended = c.end_later(producer)
    c.advance(TIMEOUT_MS + CHECK_MS)
    c.log.hold = False
    c.log.commit_held()
    c.data.release()
    assert ended.code is E.NONE
    assert c.state is S.COMPLETE_COMMIT
    assert c.transactions.stats.timeouts == 0


def test_abort_that_cannot_be_written_is_tried_with_the_next_check(c: Coordinator) -> None:
    """And no epoch is used for it."""
    producer = c.ongoing(A)
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    c.advance(TIMEOUT_MS + CHECK_MS)
    c.advance(CHECK_MS)
    assert c.metadata().producer == producer
    c.log.fail_with = None
    c.advance(CHECK_MS)
    assert c.metadata().producer == producer._replace(epoch=1)


def test_transaction_without_timeout(make: MakeCoordinator) -> None:
    c = make(transaction_max_timeout_ms=expiry.NO_TIMEOUT_MS)
    c.ongoing(A, timeout_ms=expiry.NO_TIMEOUT_MS)
    c.clock.advance(2 * expiry.NO_TIMEOUT_MS)
    c.run(c.transactions.abort_timed_out())
    assert c.state is S.ONGOING


def test_many_at_once_in_slices(c: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "ABORTS_PER_SLICE", 3)
    monkeypatch.setattr(expiry, "IDS_PER_SLICE", 5)
    for number in range(20):
        name = f"tx{number}"
        code, producer = c.init(transactional_id=name)
        assert code is E.NONE
        assert c.add(producer, A, transactional_id=name) is E.NONE
    c.advance(TIMEOUT_MS + CHECK_MS)
    assert c.state_counts()[S.COMPLETE_ABORT] == 20


def test_resignation_in_between(c: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "ABORTS_PER_SLICE", 1)
    for name in ("a", "b"):
        _, producer = c.init(transactional_id=name)
        c.add(producer, A, transactional_id=name)
    c.log.on_append = lambda: c.transactions.on_resigned(0)
    c.clock.advance(TIMEOUT_MS * 2)
    appends = c.log.appends
    c.run(c.transactions.abort_timed_out())
    assert c.log.appends == appends + 1


# -- transactional ids --


@pytest.mark.parametrize("state", ["empty", "commit", "abort"])
def test_unused_transactional_id_is_forgotten(c: Coordinator, state: str) -> None:
    producer = c.new_producer()
    if state != "empty":
        c.write(producer, A)
        c.end(producer, commit=state == "commit")
    c.advance(WEEK_MS)
    c.advance(HOUR_MS)
    assert c.transactions.find_transaction("tx")[0] is E.TRANSACTIONAL_ID_NOT_FOUND
    assert c.log.states()[-1] is None
    assert c.transactions.stats.expired_ids == 1
    assert c.add(producer, A) is E.INVALID_PRODUCER_ID_MAPPING
    assert c.init(producer) == (E.NONE, ProducerIdAndEpoch(1001, 0))
    c.crash()
    assert c.metadata().producer == (1001, 0)


def test_used_transactional_id_stays(c: Coordinator) -> None:
    producer = c.new_producer()
    for _ in range(3):
        c.advance(WEEK_MS - HOUR_MS)
        code, producer = c.init(producer)
        assert code is E.NONE


@pytest.mark.parametrize("held", ["ongoing", "prepared"])
def test_transaction_keeps_its_transactional_id(c: Coordinator, held: str) -> None:
    producer = c.ongoing(A)
    c.data.hold = True
    if held == "prepared":
        c.end(producer)
    c.clock.advance(2 * WEEK_MS)
    c.run(c.transactions.expire_ids())
    assert c.metadata().partitions == {A}


def test_tombstone_that_cannot_be_written_forgets_nothing(
    c: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    producer = c.new_producer()
    c.log.fail_with = E.NOT_ENOUGH_REPLICAS
    c.clock.advance(WEEK_MS)
    c.run(c.transactions.expire_ids())
    assert c.metadata().pending is None
    assert "not expired" in caplog.text
    c.log.fail_with = None
    assert c.add(producer, A) is E.NONE


def test_tombstone_is_pending_until_it_is_committed(c: Coordinator) -> None:
    producer = c.new_producer()
    c.clock.advance(WEEK_MS)
    c.log.hold = True
    c.run(c.transactions.expire_ids())
    assert c.init()[0] is E.CONCURRENT_TRANSACTIONS
    assert c.add(producer, A) is E.CONCURRENT_TRANSACTIONS
    c.log.commit_held()
    c.log.hold = False
    assert c.init() == (E.NONE, ProducerIdAndEpoch(1001, 0))


def test_many_ids_in_few_batches(c: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "TOMBSTONES_PER_BATCH", 7)
    monkeypatch.setattr(expiry, "IDS_PER_SLICE", 10)
    for number in range(25):
        c.init(transactional_id=f"tx{number}")
    appends = c.log.appends
    c.clock.advance(WEEK_MS)
    c.run(c.transactions.expire_ids())
    assert c.transactions.stats.expired_ids == 25
    assert 4 <= c.log.appends - appends <= 7
    assert not c.state_counts()


def test_long_ids_do_not_fill_a_batch(c: Coordinator) -> None:
    """A hundred of the longest would be refused, whenever they are tried."""
    c.log.size_max = 100_000
    for number in range(9):
        c.init(transactional_id="\U0001f600" * 8_000 + str(number))
    c.clock.advance(WEEK_MS)
    c.run(c.transactions.expire_ids())
    assert c.transactions.stats.expired_ids == 9


def test_expiry_ends_with_a_resignation(c: Coordinator) -> None:
    c.new_producer()
    c.clock.advance(WEEK_MS)
    appends = c.log.appends
    c.log.hold = True
    c.run(c.transactions.expire_ids())
    c.transactions.on_resigned(0)
    c.log.commit_held()
    assert c.log.appends == appends + 1
    assert c.transactions.stats.expired_ids == 0
