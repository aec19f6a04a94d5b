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
