"""Appends of one election: in its leader epoch, and in no other."""

from typing import Any, cast

import pytest

from broker.coordinator.elected_appender import ElectedAppender
from protocol.error_codes import ErrorCode as E
from protocol.records.builder import build_plain_batch
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import TOPIC, CoordinatorLog

WHERE = TopicPartition(TOPIC, 0)


@pytest.mark.parametrize(
    ("epoch", "code", "offset"),
    [
        (4, E.NOT_LEADER_OR_FOLLOWER, -1),
        (5, E.NONE, 0),
        (6, E.NOT_LEADER_OR_FOLLOWER, -1),
    ],
)
def test_another_epoch_of_the_partition(epoch: int, code: E, offset: int) -> None:
    log = CoordinatorLog()
    log.epochs[0] = epoch
    appender = ElectedAppender(cast("Any", log), 5, timeout_ms=100)
    outcomes: list[tuple[E, int]] = []
    batch = build_plain_batch([(b"k", b"v")], 0)
    appended = appender.append_coordinated(WHERE, batch, lambda *out: outcomes.append(out))
    assert appended == offset
    assert outcomes == [(code, offset)]
    assert log.ends[0] == (1 if code is E.NONE else 0)


def test_replicas_of_the_partition_are_asked_for() -> None:
    log = CoordinatorLog()
    appender = ElectedAppender(cast("Any", log), 5, timeout_ms=100)
    assert appender.takes_records(WHERE)
    log.fail_with = E.NOT_ENOUGH_REPLICAS
    assert not appender.takes_records(WHERE)


def test_time_outs_are_the_callers_or_the_elections() -> None:
    log = CoordinatorLog()
    appender = ElectedAppender(cast("Any", log), 5, timeout_ms=100)
    for timeout_ms in (None, 7.0):
        batch = build_plain_batch([(b"k", b"v")], 0)
        appender.append_coordinated(WHERE, batch, lambda *_: None, timeout_ms=timeout_ms)
    assert log.timeouts_ms == [100, 7]
