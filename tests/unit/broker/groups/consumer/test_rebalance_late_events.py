"""Events that come when the group they are meant for is another one, or gone."""

from collections.abc import Callable

import pytest

from broker.groups.consumer import rebalance, targets
from protocol.error_codes import ErrorCode
from tests.harness.consumer_groups import ConsumerHarness


def test_deleted_group_is_not_written_any_more() -> None:
    """A target that was due would come behind the tombstones, and a ghost out of the log."""
    h = ConsumerHarness(group_consumer_assignment_interval_ms=1_000)
    h.enter("m1")
    assert h.exit("m1").error is ErrorCode.NONE
    h.log.hold = True
    codes: list[ErrorCode] = []
    h.offsets.delete_group("g", codes.append)
    h.timer.advance(2_000)
    h.log.commit_held()
    assert codes == [ErrorCode.NONE]
    assert not h.shard.groups
    assert not h.reloaded().groups


def test_members_still_to_be_woken_write_nothing_when_the_shard_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are woken some at a time; what the rest would write is for another coordinator."""
    monkeypatch.setattr(rebalance, "BATCH_SIZE", 1)
    h = ConsumerHarness(group_consumer_assignment_interval_ms=1_000)
    replies = [h.enter(f"m{number}") for number in range(3)]
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(h.timer, "call_later_ms", lambda _, callback: later.append(callback))
    h.timer.advance(1_000)
    assert [reply.is_parked for reply in replies] == [False, True, True]
    h.consumers.close()
    batches = len(h.log.batches[0])
    for callback in later:
        callback()
    assert len(h.log.batches[0]) == batches
    assert {reply.error for reply in replies} == {ErrorCode.NONE, ErrorCode.NOT_COORDINATOR}


def test_first_member_is_answered_although_the_assignor_fails_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    h = ConsumerHarness()

    def fail(given: object) -> object:
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(targets, "_run", fail)
        parked = h.enter("m1")
    assert parked.is_parked
    h.timer.advance(targets.RETRY_MS)
    assert parked.epoch == 1
    h.check()


def test_member_that_comes_back_with_another_instance_id_has_only_that_one() -> None:
    """As the log says: only one of them is in the record."""
    h = ConsumerHarness()
    h.enter("m1", instance="a")
    h.enter("m1", instance="b")
    assert h.consumer_group().static_members == {"b": "m1"}
    h.check()


def test_static_member_that_leaves_while_it_waits_stays_away() -> None:
    """Its target would bring it back, and keep its instance id from its successor."""
    h = ConsumerHarness(group_consumer_assignment_interval_ms=1_000)
    parked = h.enter("m1", instance="i")
    assert h.beat("m1", -2, instance="i").epoch == -2
    h.timer.advance(1_000)
    assert parked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert h.member("m1").member_epoch == -2
    back = h.enter("m2", instance="i")
    h.timer.advance(1_000)
    assert back.assignment == {"foo": [0, 1, 2, 3, 4, 5]}
    h.check()
