"""One transactional id: epochs, producer ids, and transitions that cannot be."""

from typing import Any

import pytest

from broker.transactions.coordinator.transaction_metadata import (
    PRODUCER_EPOCH_MAX,
    IllegalTransitionError,
    ProducerFencedError,
    TransactionMetadata,
    Transition,
)
from broker.transactions.coordinator.transaction_state import TransactionState as S
from protocol.internal.transaction_log import (
    decode_transaction_log_value,
)
from storage.types.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("u", 1)
ID, NEXT_ID = 10, 11
NOW = 1_000


def metadata(
    state: S = S.EMPTY, epoch: int = 5, *, last: int = -1, partitions: Any = None, **more: Any
) -> TransactionMetadata:
    found = TransactionMetadata("tx", ID, timeout_ms=60_000, last_update_timestamp_ms=1)
    found.state = state
    found.producer_epoch = epoch
    found.last_producer_epoch = last
    if state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT):
        found.partitions = frozenset({A} if partitions is None else partitions)
    if state is not S.EMPTY:
        found.start_timestamp_ms = 500
    for name, value in more.items():
        setattr(found, name, value)
    return found


def done(found: TransactionMetadata, transition: Transition) -> TransactionMetadata:
    """Complete it, and see that the log would say the same."""
    found.complete(transition)
    assert found.pending is None
    read = TransactionMetadata.from_record(
        "tx", decode_transaction_log_value(transition.to_record(1))
    )
    for name in ("transactional_id", "record_key", "pending", "begun_ms", *Transition._fields):
        if name == "last_producer_epoch":
            continue
        if name == "previous_producer_id" and found.previous_producer_id == found.producer_id:
            assert read.previous_producer_id == -1
            continue
        assert getattr(read, name) == getattr(found, name), name
    return found


def next_epoch(found: TransactionMetadata, expected: int | None = None) -> Transition:
    return found.prepare_next_epoch(timeout_ms=30_000, expected_epoch=expected, now_ms=NOW)


# -- InitProducerId --


def test_first_epoch() -> None:
    found = metadata(epoch=-1)
    done(found, next_epoch(found))
    assert (found.producer, found.last_producer_epoch) == ((ID, 0), -1)
    assert (found.timeout_ms, found.last_update_timestamp_ms) == (30_000, NOW)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_next_epoch_of_a_new_process(state: S) -> None:
    found = metadata(state, last=4)
    done(found, next_epoch(found))
    assert (found.state, found.producer_epoch, found.last_producer_epoch) == (S.EMPTY, 6, -1)
    assert found.start_timestamp_ms == -1


def test_next_epoch_of_the_same_process_and_its_retry() -> None:
    found = metadata()
    done(found, next_epoch(found, 5))
    assert (found.producer_epoch, found.last_producer_epoch) == (6, 5)
    done(found, next_epoch(found, 5))
    assert (found.producer_epoch, found.last_producer_epoch) == (6, 5)
    done(found, next_epoch(found, 6))
    assert (found.producer_epoch, found.last_producer_epoch) == (7, 6)


@pytest.mark.parametrize("expected", [3, 6, 0])
def test_process_that_was_replaced_is_fenced(expected: int) -> None:
    found = metadata(last=4)
    with pytest.raises(ProducerFencedError):
        next_epoch(found, expected)
    assert found.pending is None


def test_new_process_shuts_the_old_one_out() -> None:
    """Even though the old one was about to retry."""
    found = metadata()
    done(found, next_epoch(found, 5))
    done(found, next_epoch(found))
    with pytest.raises(ProducerFencedError):
        next_epoch(found, 5)


def test_last_epochs() -> None:
    found = metadata(epoch=PRODUCER_EPOCH_MAX - 2)
    assert not found.needs_producer_id(None)
    done(found, next_epoch(found))
    assert found.needs_producer_id(None)
    assert found.needs_producer_id(PRODUCER_EPOCH_MAX - 1)
    assert not found.needs_producer_id(4)
    with pytest.raises(IllegalTransitionError, match="no epoch left"):
        next_epoch(found)
    with pytest.raises(ProducerFencedError):
        next_epoch(found, 4)


def test_retry_of_the_last_bump() -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR."""
    found = metadata(epoch=PRODUCER_EPOCH_MAX - 2)
    done(found, next_epoch(found, PRODUCER_EPOCH_MAX - 2))
    assert not found.needs_producer_id(PRODUCER_EPOCH_MAX - 2)
    done(found, next_epoch(found, PRODUCER_EPOCH_MAX - 2))
    assert found.producer_epoch == PRODUCER_EPOCH_MAX - 1


@pytest.mark.parametrize("expected", [None, PRODUCER_EPOCH_MAX - 1])
def test_producer_id_rotation(expected: int | None) -> None:
    found = metadata(epoch=PRODUCER_EPOCH_MAX - 1)
    transition = found.prepare_producer_id_rotation(
        NEXT_ID, timeout_ms=30_000, expected_epoch=expected, now_ms=NOW
    )
    done(found, transition)
    assert found.producer == (NEXT_ID, 0)
    assert found.previous_producer_id == ID
    assert found.last_producer_epoch == (-1 if expected is None else expected)


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_no_new_life_in_the_middle_of_a_transaction(state: S) -> None:
    found = metadata(state)
    with pytest.raises(IllegalTransitionError, match=f"{state.label} to Empty"):
        next_epoch(found)
    with pytest.raises(IllegalTransitionError, match=f"{state.label} to Empty"):
        found.prepare_producer_id_rotation(NEXT_ID, timeout_ms=1, expected_epoch=None, now_ms=NOW)


# -- a transaction --


def add(found: TransactionMetadata, *partitions: TopicPartition) -> Transition:
    return found.prepare_add_partitions(
        frozenset(partitions), client_transaction_version=2, now_ms=NOW
    )


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_first_partition_begins_a_transaction(state: S) -> None:
    found = metadata(state)
    done(found, add(found, A))
    assert (found.state, found.partitions, found.start_timestamp_ms) == (
        S.ONGOING,
        frozenset({A}),
        NOW,
    )
    assert found.client_transaction_version == 2


def test_further_partitions_do_not_make_it_younger() -> None:
    found = metadata(S.ONGOING)
    done(found, add(found, B))
    assert found.partitions == {A, B}
    assert (found.start_timestamp_ms, found.last_update_timestamp_ms) == (500, NOW)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_nothing_is_added_to_a_prepared_transaction(state: S) -> None:
    with pytest.raises(IllegalTransitionError):
        add(metadata(state), B)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("version", "epoch", "last"), [(0, 5, 4), (1, 5, 4), (2, 6, 5)])
def test_end(commit: bool, version: int, epoch: int, last: int) -> None:
    found = metadata(S.ONGOING, last=4)
    transition = found.prepare_end(commit=commit, client_transaction_version=version, now_ms=NOW)
    done(found, transition)
    assert found.is_commit is commit
    assert (found.producer_epoch, found.last_producer_epoch) == (epoch, last)
    assert (found.partitions, found.start_timestamp_ms) == (frozenset({A}), 500)
    done(found, found.prepare_complete(now_ms=NOW + 1))
    assert found.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert (found.producer_epoch, found.last_producer_epoch) == (epoch, last)
    assert (found.partitions, found.start_timestamp_ms) == (frozenset(), 500)
    assert found.client_transaction_version == version


def test_end_of_the_last_epoch() -> None:
    found = metadata(S.ONGOING, PRODUCER_EPOCH_MAX - 1)
    transition = found.prepare_end(
        commit=True, client_transaction_version=2, now_ms=NOW, next_producer_id=NEXT_ID
    )
    done(found, transition)
    assert found.producer == (ID, PRODUCER_EPOCH_MAX)
    assert not found.is_fenced_for_good
    done(found, found.prepare_complete(now_ms=NOW))
    assert found.producer == (NEXT_ID, 0)
    assert (found.previous_producer_id, found.next_producer_id) == (ID, -1)
    assert found.last_producer_epoch == PRODUCER_EPOCH_MAX - 1


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_abort_of_nothing(state: S) -> None:
    found = metadata(state)
    transition = found.prepare_end(commit=False, client_transaction_version=2, now_ms=NOW)
    done(found, transition)
    assert (found.producer_epoch, found.start_timestamp_ms) == (6, NOW)
    with pytest.raises(IllegalTransitionError, match="before version 2"):
        metadata(state).prepare_end(commit=False, client_transaction_version=1, now_ms=NOW)
    with pytest.raises(IllegalTransitionError, match="to PrepareCommit"):
        metadata(state).prepare_end(commit=True, client_transaction_version=2, now_ms=NOW)


@pytest.mark.parametrize(("version", "last"), [(0, -1), (1, -1), (2, 5)])
def test_fence(version: int, last: int) -> None:
    found = metadata(S.ONGOING, last=4)
    done(found, found.prepare_fence(client_transaction_version=version, now_ms=NOW))
    assert found.state is S.PREPARE_ABORT
    assert (found.producer_epoch, found.last_producer_epoch) == (6, last)
    assert found.partitions == {A}


def test_fence_with_the_last_epoch_of_all() -> None:
    found = metadata(S.ONGOING, PRODUCER_EPOCH_MAX - 1)
    done(found, found.prepare_fence(client_transaction_version=2, now_ms=NOW))
    done(found, found.prepare_complete(now_ms=NOW))
    assert found.producer == (ID, PRODUCER_EPOCH_MAX)
    assert found.is_fenced_for_good
    assert found.needs_producer_id(PRODUCER_EPOCH_MAX - 1)
    with pytest.raises(IllegalTransitionError, match="no epoch left"):
        metadata(S.ONGOING, PRODUCER_EPOCH_MAX).prepare_fence(
            client_transaction_version=2, now_ms=NOW
        )


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_only_what_is_prepared_can_be_completed(state: S) -> None:
    with pytest.raises(IllegalTransitionError):
        metadata(state).prepare_complete(now_ms=NOW)
    with pytest.raises(IllegalTransitionError, match="markers"):
        metadata(state).drop_partitions(frozenset({A}))


def test_partitions_are_dropped_as_they_get_their_markers() -> None:
    found = metadata(S.PREPARE_ABORT, partitions={A, B})
    found.drop_partitions(frozenset({A}))
    assert found.partitions == {B}


@pytest.mark.parametrize("state", S)
def test_death(state: S) -> None:
    found = metadata(state)
    if not state.may_expire:
        with pytest.raises(IllegalTransitionError):
            found.prepare_dead()
        return
    found.prepare_dead()
    assert found.pending is S.DEAD
    found.cancel()
    assert found.state is state
    assert not found.pending


# -- both halves --


def test_one_thing_at_a_time() -> None:
    found = metadata()
    add(found, A)
    for prepare in (
        lambda: add(found, B),
        lambda: next_epoch(found),
        found.prepare_dead,
    ):
        with pytest.raises(IllegalTransitionError, match="while Ongoing is pending"):
            prepare()
    found.cancel()
    add(found, B)


def test_nothing_is_true_before_it_is_complete() -> None:
    found = metadata()
    add(found, A)
    assert (found.state, found.partitions) == (S.EMPTY, frozenset())


def test_completion_without_preparation_is_refused() -> None:
    found = metadata()
    transition = add(found, A)
    found.cancel()
    with pytest.raises(IllegalTransitionError, match="while pending is None"):
        found.complete(transition)


def test_death_is_completed_by_removal() -> None:
    found = metadata()
    transition = add(found, A)._replace(state=S.DEAD)
    found.cancel()
    found.prepare_dead()
    with pytest.raises(IllegalTransitionError):
        found.complete(transition)


@pytest.mark.parametrize(
    ("state", "change"),
    [
        (S.EMPTY, {"producer_epoch": 7}),
        (S.EMPTY, {"producer_epoch": 4}),
        (S.EMPTY, {"producer_id": NEXT_ID}),
        (S.EMPTY, {"partitions": frozenset({A})}),
        (S.EMPTY, {"start_timestamp_ms": 3}),
        (S.ONGOING, {"producer_epoch": 6}),
        (S.ONGOING, {"producer_id": NEXT_ID}),
        (S.ONGOING, {"partitions": frozenset()}),
        (S.ONGOING, {"timeout_ms": 1}),
        (S.PREPARE_COMMIT, {"producer_epoch": 7}),
        (S.PREPARE_COMMIT, {"producer_id": NEXT_ID}),
        (S.PREPARE_COMMIT, {"partitions": frozenset()}),
        (S.PREPARE_COMMIT, {"timeout_ms": 1}),
        (S.COMPLETE_COMMIT, {"producer_epoch": 6}),
        (S.COMPLETE_COMMIT, {"producer_id": NEXT_ID}),
        (S.COMPLETE_COMMIT, {"partitions": frozenset({A})}),
        (S.COMPLETE_COMMIT, {"start_timestamp_ms": -1}),
    ],
)
def test_transition_that_does_not_fit_is_refused(state: S, change: dict[str, Any]) -> None:
    """Kafka's conditions, one by one."""
    match state:
        case S.EMPTY:
            found = metadata()
            transition = next_epoch(found)
        case S.ONGOING:
            found = metadata(S.ONGOING)
            transition = add(found, B)
        case S.PREPARE_COMMIT:
            found = metadata(S.ONGOING)
            transition = found.prepare_end(commit=True, client_transaction_version=2, now_ms=NOW)
        case _:
            found = metadata(S.PREPARE_COMMIT)
            transition = found.prepare_complete(now_ms=NOW)
    with pytest.raises(IllegalTransitionError, match="does not fit"):
        found.complete(transition._replace(**change))
    assert found.pending is state


@pytest.mark.parametrize(
    "change", [{"producer_id": -1}, {"producer_epoch": PRODUCER_EPOCH_MAX + 1}]
)
def test_impossible_producers_are_refused(change: dict[str, int]) -> None:
    found = metadata(S.ONGOING, **change)
    with pytest.raises(IllegalTransitionError, match="producer"):
        add(found, B)


@pytest.mark.parametrize("state", [S.DEAD, S.PREPARE_EPOCH_FENCE, 9])
def test_states_that_are_never_written_are_not_read(state: int) -> None:
    octets = next_epoch(metadata()).to_record(1)
    record = decode_transaction_log_value(octets)._replace(state=state)
    with pytest.raises(ValueError, match=r"state|not a valid"):
        TransactionMetadata.from_record("tx", record)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("count", [1, 16, 17, 300])
def test_partitions_are_written_by_topic(version: int, count: int) -> None:
    """Few of them are encoded once for all records, many each time: nobody sees a difference."""
    partitions = frozenset(TopicPartition(f"t{index % 3}", index) for index in range(count))
    for _ in range(2):
        found = metadata(S.EMPTY)
        transition = found.prepare_add_partitions(
            partitions, client_transaction_version=2, now_ms=NOW
        )
        value = decode_transaction_log_value(transition.to_record(version))
        assert value.partitions is not None
        read = {
            TopicPartition(t, index) for t, indexes in value.partitions.items() for index in indexes
        }
        assert read == partitions
        assert sum(map(len, value.partitions.values())) == count
        assert value.client_transaction_version == (2 if version else 0)
