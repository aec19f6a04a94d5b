"""Writes of groups, and answers that wait for them."""

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.journal import BATCH_SIZE_MAX, Journal
from protocol.error_codes import ErrorCode
from tests.unit.broker.groups.harness import Harness


def test_answers_without_records_wait_for_writes_before_them() -> None:
    h = Harness()
    h.log.hold = True
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log, lambda: None)
    order: list[str] = []
    journal.write(group, [(b"k", b"v")], lambda _: order.append("first"))
    journal.write(group, [], lambda _: order.append("second"))
    journal.write(ConsumerGroup("other"), [], lambda _: order.append("other"))
    assert order == ["other"]
    h.log.commit_held()
    assert order == ["other", "first", "second"]
    journal.write(group, [], lambda _: order.append("third"))
    assert order[-1] == "third"


def test_large_change_is_written_in_several_batches() -> None:
    h = Harness()
    group = ConsumerGroup("g")
    codes: list[ErrorCode] = []
    records = [(b"k%d" % number, bytes(BATCH_SIZE_MAX // 3)) for number in range(7)]
    Journal(h.shard.log, lambda: None).write(group, records, codes.append)
    assert len(h.log.batches[0]) == 4
    assert h.log.ends[0] == 7
    assert codes == [ErrorCode.NONE]
    assert group.work.unwritten == 0


def test_refusal_is_told_to_everybody() -> None:
    h = Harness()
    h.log.hold = True
    gave_up: list[int] = []
    codes: list[ErrorCode] = []
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log, lambda: gave_up.append(1))
    journal.write(group, [(b"k", b"v")], codes.append)
    journal.write(group, [], codes.append)
    h.log.fail_held(ErrorCode.MESSAGE_TOO_LARGE)
    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert gave_up == [1]


def test_nobody_hears_of_a_write_that_only_timed_out() -> None:
    """It may still be committed, or lost: answers go on waiting until the log has decided."""
    h = Harness()
    h.log.hold = True
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log, lambda: None)
    first: list[ErrorCode] = []
    journal.write(group, [(b"k", b"v")], first.append)
    h.timer.advance(h.settings.offsets_commit_timeout_ms)
    assert first == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert group.work.unwritten == 1
    second: list[ErrorCode] = []
    journal.write(group, [], second.append)
    assert second == []
    h.log.commit_held()
    assert second == [ErrorCode.NONE]
    assert group.work.unwritten == 0


def test_write_refused_after_its_time_is_told_to_who_came_later() -> None:
    h = Harness()
    h.log.hold = True
    gave_up: list[int] = []
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log, lambda: gave_up.append(1))
    codes: list[ErrorCode] = []
    journal.write(group, [(b"k", b"v")], codes.append)
    h.timer.advance(h.settings.offsets_commit_timeout_ms)
    journal.write(group, [], codes.append)
    h.log.fail_held(ErrorCode.KAFKA_STORAGE_ERROR)
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
    assert gave_up == [1]
    assert group.work.unwritten == 0
