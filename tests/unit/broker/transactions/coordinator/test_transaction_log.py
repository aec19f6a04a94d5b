"""Writes: what is true afterwards, and what happens when nobody knows."""

import pytest

from broker.transactions.coordinator.transaction_state import TransactionState as S
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from tests.harness.transactions import NO_PRODUCER, A, B, Coordinator
from tests.unit.broker.transactions.conftest import MakeCoordinator

E = ErrorCode


@pytest.mark.parametrize(("version", "record"), [(0, 0), (1, 1), (2, 1)])
def test_version_of_the_records_is_the_clusters(
    make: MakeCoordinator, version: int, record: int
) -> None:
    c = make(version=version)
    c.ongoing(A)
    for batch in c.log.batches[0]:
        assert b"\x00\x00\x00\x02tx" in batch
        # The value's version comes behind its one-byte length.
        assert bytes([0, record]) + (1000).to_bytes(8, "big") in batch


def test_outcome_that_nobody_knows_is_looked_up(c: Coordinator) -> None:
    """The record was written: the commit is found in the log, whatever the client was told."""
    producer = c.ongoing(A)
    c.log.time_out = True
    ended = c.end_later(producer)
    assert ended.answer == (E.COORDINATOR_NOT_AVAILABLE, NO_PRODUCER)
    assert c.end(producer)[0] is E.COORDINATOR_LOAD_IN_PROGRESS
    c.log.time_out = False
    c.settle()
    # Not committed yet: to load now could miss it.
    assert c.end(producer)[0] is E.COORDINATOR_LOAD_IN_PROGRESS
    c.log.commit_all()
    c.advance(100)
    assert c.state is S.COMPLETE_COMMIT
    assert c.data.committed == {A: {"x"}}
    assert c.end(producer) == (E.NONE, ProducerIdAndEpoch(producer.producer_id, 1))
    assert c.transactions.stats.reloads == 1


def test_others_who_wait_for_the_same_log_are_told_to_ask_again(c: Coordinator) -> None:
    for name in ("a", "b"):
        c.init(transactional_id=name)
    c.log.hold = True
    first = c.init_later(transactional_id="a")
    second = c.init_later(transactional_id="b")
    c.fail_held(E.REQUEST_TIMED_OUT)
    assert first.code is E.COORDINATOR_NOT_AVAILABLE
    assert second.code is E.NOT_COORDINATOR
    assert c.transactions.is_loading
    c.log.hold = False
    c.log.commit_all()
    c.advance(100)
    assert c.metadata("a").producer_epoch == c.metadata("b").producer_epoch == 1


def test_failed_disk_ends_the_shard(c: Coordinator) -> None:
    """It is read anew when there is a log to be read."""
    producer = c.ongoing(A)
    c.log.fail_with = E.KAFKA_STORAGE_ERROR
    assert c.add(producer, B) is E.NOT_COORDINATOR
    c.settle()
    assert c.add(producer, B) is E.NOT_COORDINATOR
    assert not c.transactions.is_loading


def test_closed_log_writes_nothing(c: Coordinator) -> None:
    metadata = c.metadata() if c.init()[0] is E.NONE else None
    assert metadata is not None
    shard = c.transactions._runtime.shard_at(0)
    assert shard is not None
    shard.log.close()
    codes: list[ErrorCode] = []
    appends = c.log.appends
    transition = metadata.prepare_add_partitions(
        frozenset({A}), client_transaction_version=2, now_ms=1
    )
    shard.append(metadata, transition, codes.append)
    shard.append_tombstones([metadata], codes.append)
    assert codes == [E.NOT_COORDINATOR] * 2
    assert c.log.appends == appends
