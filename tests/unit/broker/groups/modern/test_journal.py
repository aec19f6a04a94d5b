"""Writes of groups, and answers that wait for them."""

import pytest

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.modern.journal import BATCH_SIZE_MAX, GATHERED_SIZE_MAX, Journal
from protocol.error_codes import ErrorCode
from protocol.records.record import iterate_records
from tests.harness.groups import Harness

LATER = [(b"later", b"")]


def test_answers_without_records_wait_for_writes_before_them() -> None:
    h = Harness()
    h.log.hold = True
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)
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
    Journal(h.shard.log).write(group, records, codes.append)
    assert len(h.log.batches[0]) == 4
    assert h.log.ends[0] == 7
    assert codes == [ErrorCode.NONE]
    assert group.work.unwritten == 0


def test_refusal_is_told_to_everybody() -> None:
    h = Harness()
    h.log.hold = True
    codes: list[ErrorCode] = []
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)
    journal.write(group, [(b"k", b"v")], codes.append)
    journal.write(group, [], codes.append)
    h.log.fail_held(ErrorCode.MESSAGE_TOO_LARGE)
    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert h.gave_up == 1


def test_nobody_hears_of_a_write_that_only_timed_out() -> None:
    """It may still be committed, or lost: answers go on waiting until the log has decided."""
    h = Harness()
    h.log.hold = True
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)
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
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)
    codes: list[ErrorCode] = []
    journal.write(group, [(b"k", b"v")], codes.append)
    h.timer.advance(h.settings.offsets_commit_timeout_ms)
    journal.write(group, [], codes.append)
    h.log.fail_held(ErrorCode.KAFKA_STORAGE_ERROR)
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
    assert h.gave_up == 1
    assert group.work.unwritten == 0


def test_changes_that_are_gathered_share_a_batch_and_its_fate() -> None:
    h = Harness()
    h.log.hold = True
    one, other = ConsumerGroup("one"), ConsumerGroup("other")
    told: list[tuple[str, ErrorCode]] = []
    journal = Journal(h.shard.log)
    with journal.gathering():
        journal.write(one, [(b"k1", b"v")], lambda code: told.append(("one", code)))
        journal.write(one, [], lambda code: told.append(("behind", code)))
        journal.write(other, [(b"k2", b"v")], lambda code: told.append(("other", code)))
        assert not h.log.held
    assert len(h.log.held) == 1
    assert one.work.unwritten == other.work.unwritten == 1
    h.log.commit_held()
    assert told == [(name, ErrorCode.NONE) for name in ("one", "behind", "other")]
    assert h.log.ends[0] == 2
    with journal.gathering():
        journal.write(one, [(b"k1", b"v")], lambda code: told.append(("one", code)))
        journal.write(other, [(b"k2", b"v")], lambda code: told.append(("other", code)))
    h.log.fail_held(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert told[3:] == [(name, ErrorCode.NOT_COORDINATOR) for name in ("one", "other")]
    assert h.gave_up
    assert one.work.unwritten == other.work.unwritten == 0


def test_order_is_kept_when_a_large_change_does_not_wait() -> None:
    h = Harness()
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)
    with journal.gathering():
        journal.write(group, [(b"small", b"1")], lambda _: None)
        journal.write(group, [(b"large", bytes(GATHERED_SIZE_MAX))], lambda _: None)
        journal.write(group, [(b"small", b"2")], lambda _: None)
        for _ in range(3):
            journal.write(group, [(b"half", bytes(GATHERED_SIZE_MAX // 2))], lambda _: None)
    keys = [
        [record.key for record in iterate_records(memoryview(batch), max_size=1 << 20)]
        for batch in h.log.batches[0]
    ]
    assert keys == [[b"small"], [b"large"], [b"small", b"half"], [b"half"], [b"half"]]


def test_batches_that_were_built_elsewhere_come_first() -> None:
    h = Harness()
    h.log.hold = True
    group = ConsumerGroup("g")
    codes: list[ErrorCode] = []
    journal = Journal(h.shard.log)
    journal.write_prepared(group, journal.prepare([(b"a", b"1"), (b"b", b"2")]))
    assert group.work.unwritten == 1
    journal.write(group, [], codes.append)
    assert not codes
    h.log.commit_held()
    assert codes == [ErrorCode.NONE]
    assert h.log.ends[0] == 2
    h.shard.log.close()
    journal.write_prepared(group, journal.prepare([(b"a", b"1")]))


def test_what_is_written_by_who_hears_of_a_gathered_write_is_not_lost() -> None:
    h = Harness()
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)
    codes: list[ErrorCode] = []
    with journal.gathering():
        journal.write(group, [(b"a", b"")], lambda _: journal.write(group, LATER, codes.append))
        journal.write(group, [(b"b", b"")], codes.append)
    keys = [
        [r.key for r in iterate_records(memoryview(batch), max_size=1_000)]
        for batch in h.log.batches[0]
    ]
    assert keys == [[b"a", b"b"], [b"later"]]
    assert codes == [ErrorCode.NONE] * 2
    assert group.work.unwritten == 0


def test_nothing_is_gathered_for_ever_when_a_write_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    h = Harness()
    group = ConsumerGroup("g")
    journal = Journal(h.shard.log)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    def change() -> None:
        with journal.gathering():
            journal.write(group, [(b"a", b"")], lambda _: None)

    with monkeypatch.context() as broken:
        broken.setattr(h.log, "append_coordinated", fail)
        with pytest.raises(MemoryError):
            change()
    codes: list[ErrorCode] = []
    journal.write(ConsumerGroup("other"), LATER, codes.append)
    assert codes == [ErrorCode.NONE]
