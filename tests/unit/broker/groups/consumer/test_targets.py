"""When a group gets a new target, and where it is computed."""

import pytest

from broker.groups.consumer import targets
from broker.groups.consumer.targets import FIRST_QUIET_MS as QUIET_MS
from broker.groups.consumer.targets import INLINE_SIZE_MAX, RETRY_MS
from protocol.error_codes import ErrorCode
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.consumer_groups import ConsumerHarness

INTERVAL_MS = 1_000
ALL = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def h() -> ConsumerHarness:
    return ConsumerHarness(group_consumer_assignment_interval_ms=INTERVAL_MS)


def big() -> ConsumerHarness:
    """A target that is computed in another thread."""
    h = ConsumerHarness(
        None,
        topic_image("foo", 1, INLINE_SIZE_MAX),
        topic_image("bar", 2, 3),
        group_consumer_assignment_interval_ms=INTERVAL_MS,
    )
    h.offload.hold = True
    return h


def test_members_that_join_together_get_one_target(h: ConsumerHarness) -> None:
    """None of them waits for another one to give something back."""
    replies = [h.enter(f"m{number}") for number in range(3)]
    assert all(reply.is_parked for reply in replies)
    h.timer.advance(QUIET_MS)
    assert [reply.epoch for reply in replies] == [3, 3, 3]
    assert sorted(p for r in replies for p in (r.assignment or {})["foo"]) == ALL
    assert h.consumer_group().state_name == "Stable"
    h.check()


def test_members_that_keep_coming_do_not_put_it_off_for_ever(h: ConsumerHarness) -> None:
    first = h.enter("m0")
    waited_ms = 0
    while first.is_parked:
        h.timer.advance(QUIET_MS - 1)
        waited_ms += QUIET_MS - 1
        h.enter(f"at-{waited_ms}")
        assert waited_ms < 2 * INTERVAL_MS
    assert INTERVAL_MS <= waited_ms < INTERVAL_MS + QUIET_MS
    h.timer.advance(QUIET_MS)
    h.check()


def test_member_that_leaves_while_it_waits_is_told_so(h: ConsumerHarness) -> None:
    parked = h.enter("m1")
    other = h.enter("m2")
    h.exit("m1")
    h.timer.advance(QUIET_MS)
    assert parked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert other.assignment == {"foo": ALL}
    h.check()


def test_member_that_joins_twice_is_answered_twice(h: ConsumerHarness) -> None:
    replies = [h.enter("m1"), h.enter("m1")]
    h.timer.advance(QUIET_MS)
    assert [reply.assignment for reply in replies] == [{"foo": ALL}] * 2


def test_leaving_needs_no_waiting(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.enter("m2")
    h.timer.advance(QUIET_MS)
    h.exit("m2")
    assert h.beat("m1", 2).assignment == {"foo": ALL}
    h.check()


def test_other_topics_are_given_with_the_heartbeat_that_asks_for_them(h: ConsumerHarness) -> None:
    """Also when the last target was a moment ago and took long, on a busy machine."""
    h.enter("m1")
    h.timer.advance(QUIET_MS)
    wanted = h.beat("m1", 1, topics=["foo", "bar"], owned={"foo": ALL})
    assert (wanted.epoch, wanted.assignment) == (2, {"foo": ALL, "bar": [0, 1, 2]})
    wanted = h.beat("m1", 2, topics=["bar"], owned={"foo": ALL, "bar": [0, 1, 2]})
    assert wanted.assignment == {"bar": [0, 1, 2]}
    h.check()


def test_other_topics_are_waited_for_while_others_join(h: ConsumerHarness) -> None:
    h.enter("m1")
    h.timer.advance(QUIET_MS)
    joining = h.enter("m2", topics=["foo"])
    wanted = h.beat("m1", 1, topics=["bar"], owned={"foo": ALL})
    assert joining.is_parked
    assert wanted.is_parked
    h.timer.advance(QUIET_MS)
    assert (wanted.assignment, joining.epoch) == ({}, 3)
    h.settle_members()
    assert (h.owned("m1"), h.owned("m2")) == ({"bar": [0, 1, 2]}, {"foo": ALL})
    h.check()


def test_other_topics_of_a_large_group_are_waited_for() -> None:
    """Not for the target that is being computed, which knows nothing of them, but for the next."""
    h = big()
    h.enter("m1")
    h.timer.advance(QUIET_MS)
    h.offload.run_all()
    h.enter("m2")
    h.timer.advance(INTERVAL_MS)
    assert len(h.offload.waiting) == 1
    wanted = h.beat("m1", 1, topics=["foo", "bar"])
    h.offload.run_all()
    assert wanted.is_parked
    h.timer.advance(INTERVAL_MS)
    h.offload.run_all()
    assert not wanted.is_parked
    h.settle_members()
    assert h.owned("m1")["bar"] == [0, 1, 2]
    h.check()


def test_pattern_is_waited_for(h: ConsumerHarness) -> None:
    h.offload.hold = True
    parked = h.enter("m1", regex="foo.*")
    h.timer.advance(QUIET_MS)
    assert parked.is_parked
    h.offload.run_all()
    h.timer.advance(QUIET_MS)
    assert parked.assignment == {"foo": ALL}
    h.check()


def test_pattern_is_not_waited_for_longer_than_the_interval(h: ConsumerHarness) -> None:
    h.offload.hold = True
    parked = h.enter("m1", regex="foo.*")
    h.timer.advance(INTERVAL_MS + QUIET_MS)
    assert parked.assignment == {}
    h.offload.run_all()
    assert h.follow("m1").assignment == {"foo": ALL}
    h.check()


def test_large_target_is_computed_elsewhere() -> None:
    h = big()
    replies = [h.enter("m1"), h.enter("m2")]
    h.timer.advance(QUIET_MS)
    assert len(h.offload.waiting) == 1
    assert replies[0].is_parked
    h.offload.run_all()
    assert [len((r.assignment or {})["foo"]) for r in replies] == [INLINE_SIZE_MAX // 2] * 2
    h.check()


def test_member_that_comes_while_a_target_is_computed_waits_for_the_next() -> None:
    h = big()
    first = h.enter("m1")
    h.timer.advance(QUIET_MS)
    second = h.enter("m2")
    h.offload.run_all()
    assert len((first.assignment or {})["foo"]) == INLINE_SIZE_MAX
    assert second.is_parked
    h.timer.advance(INTERVAL_MS)
    h.offload.run_all()
    assert (second.epoch, second.assignment) == (2, {})
    h.settle_members()
    assert len(h.owned("m2")["foo"]) == INLINE_SIZE_MAX // 2
    h.check()


def test_member_that_leaves_while_a_target_is_computed_gets_nothing() -> None:
    h = big()
    h.enter("m1")
    h.enter("m2")
    h.timer.advance(QUIET_MS)
    h.exit("m2")
    h.offload.run_all()
    assert "m2" not in h.consumer_group().target
    h.timer.advance(INTERVAL_MS)
    h.beat("m1", 2)
    h.offload.run_all()
    h.settle_members()
    assert len(h.owned("m1")["foo"]) == INLINE_SIZE_MAX
    h.check()


def test_static_member_that_is_replaced_meanwhile_hands_on_its_part() -> None:
    h = big()
    h.enter("m1", instance="i1")
    h.timer.advance(QUIET_MS)
    h.offload.run_all()
    h.enter("m2", instance="i2")
    h.timer.advance(INTERVAL_MS)
    h.beat("m1", -2, instance="i1")
    back = h.enter("m3", instance="i1")
    h.offload.run_all()
    h.timer.advance(INTERVAL_MS)
    h.offload.run_all()
    assert not back.is_parked
    h.settle_members()
    assert len(h.owned("m3")["foo"]) == len(h.owned("m2")["foo"]) == INLINE_SIZE_MAX // 2
    h.check()


def test_failing_assignor_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    h = ConsumerHarness(group_consumer_assignment_interval_ms=INTERVAL_MS)

    def fail(given: object) -> object:
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(targets, "_run", fail)
        parked = h.enter("m1")
        h.timer.advance(QUIET_MS)
    assert parked.is_parked
    h.timer.advance(RETRY_MS)
    assert parked.assignment == {"foo": ALL}
    h.check()


def test_failing_thread_is_started_again() -> None:
    h = big()
    h.offload.fail_with = MemoryError()
    parked = h.enter("m1", topics=["foo"])
    h.timer.advance(QUIET_MS)
    h.offload.run_all()
    assert parked.is_parked
    h.offload.fail_with = None
    h.timer.advance(RETRY_MS)
    h.offload.run_all()
    assert parked.epoch == 1
    h.check()


def test_group_that_is_gone_gets_no_target() -> None:
    h = big()
    h.enter("m1")
    h.timer.advance(QUIET_MS)
    h.consumers.close()
    batches = len(h.log.batches[0])
    h.offload.run_all()
    assert len(h.log.batches[0]) == batches
    assert not h.timer.pending
