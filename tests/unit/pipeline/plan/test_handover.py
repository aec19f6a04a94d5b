"""A bucket and a broker are read as one log, or it is said why they are none."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.handover import (
    BrokerLog,
    EpochEnd,
    Handover,
    absent_ranges,
    epoch_to_ask,
    hand_over,
)
from pipeline.plan.partition_log import PartitionLog
from tests.unit.pipeline.plan.test_partition_log import NAME, log_of

EPOCHS = ((0, 0), (2, 50))


def bucket_log(start: int = 0, end: int = 100, stable: int | None = None) -> PartitionLog:
    log = log_of((start, end), start=start, end=end)
    return log._replace(leader_epochs=EPOCHS, stable_end_offset=end if stable is None else stable)


def broker(start: int, end: int, epoch_end: EpochEnd | None) -> BrokerLog:
    return BrokerLog(NAME, start, end, 5, epoch_end)


def test_the_bucket_up_to_its_end_and_the_broker_from_there() -> None:
    handover = hand_over(bucket_log(), broker(0, 130, EpochEnd(2, 110)), read_committed=False)
    assert handover == Handover(0, 130, 100, 5)
    assert absent_ranges(bucket_log(), handover.offset, 20, 130) == [(100, 130)]


def test_committed_rows_are_handed_over_at_the_stable_end() -> None:
    """What was aborted above it the bucket does not know."""
    log = bucket_log(stable=40)
    assert epoch_to_ask(log, read_committed=True) == 0
    assert epoch_to_ask(log, read_committed=False) == 2
    handover = hand_over(log, broker(0, 130, EpochEnd(0, 50)), read_committed=True)
    assert handover == Handover(0, 130, 40, 5)


def test_the_brokers_start_counts() -> None:
    """Whatever the bucket still has below it was deleted."""
    handover = hand_over(bucket_log(), broker(60, 130, EpochEnd(2, 110)), read_committed=False)
    assert handover == Handover(60, 130, 100, 5)
    # All of the bucket was: nothing of it is read, so nothing need fit.
    handover = hand_over(bucket_log(), broker(120, 130, EpochEnd(-1, -1)), read_committed=False)
    assert handover == Handover(120, 130, 120, 5)


def test_what_the_bucket_lacks_is_asked_of_the_broker() -> None:
    log = log_of((0, 20), (40, 100))._replace(leader_epochs=EPOCHS)
    handover = hand_over(log, broker(0, 130, EpochEnd(2, 110)), read_committed=False)
    assert absent_ranges(log, handover.offset, 10, 110) == [(20, 40), (100, 110)]
    assert absent_ranges(None, 0, 3, 9) == [(3, 9)]
    assert absent_ranges(log, handover.offset, 45, 90) == []


def test_without_a_bucket_all_is_the_brokers() -> None:
    assert hand_over(None, broker(7, 30, None), read_committed=True) == Handover(7, 30, 7, 5)
    nothing = PartitionLog(NAME, 0, 0, 0)
    assert epoch_to_ask(nothing, read_committed=True) is None
    assert hand_over(nothing, broker(7, 30, None), read_committed=True) == Handover(7, 30, 7, 5)


@pytest.mark.parametrize(
    ("start", "end", "epoch_end", "problem"),
    [
        (0, 99, EpochEnd(2, 99), "the broker's log at 99: it is another history"),
        (0, 130, EpochEnd(0, 130), "has epoch 0 up to offset 130: it is another history"),
        (0, 130, EpochEnd(2, 90), "has epoch 2 up to offset 90: it is another history"),
        (0, 130, EpochEnd(-1, -1), "the broker's log has none: it is another history"),
    ],
)
def test_a_bucket_of_another_history_is_told_and_not_read(
    start: int, end: int, epoch_end: EpochEnd, problem: str
) -> None:
    handover = hand_over(bucket_log(), broker(start, end, epoch_end), read_committed=False)
    assert handover.problem.startswith("t-0: the bucket ends at offset 100")
    assert handover.problem.endswith(problem) or problem in handover.problem
    assert handover.offset == start


def test_a_topic_made_anew_is_told() -> None:
    other = NAME._replace(topic_id=UUID(int=99))
    handover = hand_over(bucket_log(), BrokerLog(other, 0, 130), read_committed=False)
    assert handover.problem.endswith("the topic was recreated")
    unknown = NAME._replace(topic_id=UUID(int=0))
    handover = hand_over(bucket_log(), BrokerLog(unknown, 0, 130), read_committed=False)
    assert not handover.problem


@given(*[st.integers(0, 40)] * 5)
def test_every_offset_comes_from_one_side(
    bucket_start: int, length: int, broker_start: int, more: int, stable: int
) -> None:
    end = bucket_start + length
    log = log_of((bucket_start, end), start=bucket_start, end=end) if length else None
    if log is not None:
        log = log._replace(stable_end_offset=max(min(stable, end), bucket_start))
    last = max(end, broker_start) + more
    handover = hand_over(log, BrokerLog(NAME, broker_start, last), read_committed=True)
    assert not handover.problem
    asked = [
        offset
        for start, absent_end in absent_ranges(log, handover.offset, broker_start, last)
        for offset in range(start, absent_end)
    ]
    of_bucket = [
        offset
        for one in (log.segments if log else ())
        for offset in range(one.start_offset, one.end_offset)
        if broker_start <= offset < handover.offset
    ]
    assert sorted([*asked, *of_bucket]) == [*range(broker_start, last)]
