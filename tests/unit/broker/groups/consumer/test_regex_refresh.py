"""Patterns that take too long, match too much, or belong to a group that is gone."""

import pytest

from broker.groups.consumer import regex_refresh
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.consumer_groups import ConsumerHarness


def test_group_that_is_gone_hears_nothing() -> None:
    h = ConsumerHarness()
    h.offload.hold = True
    h.enter("m1", regex="foo.*")
    h.consumers.close()
    batches = len(h.log.batches[0])
    h.offload.run_all()
    assert len(h.log.batches[0]) == batches


def test_pattern_that_nobody_wants_any_more_is_not_kept() -> None:
    h = ConsumerHarness()
    h.offload.hold = True
    h.enter("m1", regex="foo.*")
    h.beat("m1", 1, regex="ba.")
    h.offload.run_all()
    assert "foo.*" not in h.consumer_group().resolved
    h.offload.hold = False
    h.beat("m1", 1)
    h.settle_members()
    assert h.owned("m1") == {"bar": [0, 1, 2]}
    h.check()


def test_failure_is_tried_again_with_a_heartbeat() -> None:
    h = ConsumerHarness()
    h.offload.fail_with = MemoryError()
    h.enter("m1", regex="foo.*")
    assert not h.consumer_group().resolved
    h.offload.fail_with = None
    h.settle_members()
    assert "foo" in h.owned("m1")


def test_pattern_for_too_many_topics_stands_for_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its record would not fit into the log."""
    monkeypatch.setattr(regex_refresh, "RECORD_SIZE_MAX", 5)
    h = ConsumerHarness(None, topic_image("foo", 1, 1), topic_image("foobar", 3, 1))
    h.enter("m1", regex="foo.*")
    h.enter("m2", regex="fo+")
    h.settle_members()
    assert h.owned("m1") == {}
    assert "matches too many topics group=g topics=" in caplog.text


def test_group_without_patterns_costs_nothing() -> None:
    h = ConsumerHarness()
    h.offload.hold = True
    h.enter("m1")
    h.timer.advance(40_000)
    h.beat("m1", 1, owned={})
    assert not h.offload.waiting


def test_quiet_heartbeat_with_a_pattern_is_as_cheap_as_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only when the pattern is to be looked at again it takes the long way."""
    h = ConsumerHarness()
    h.enter("m1", regex="foo.*")
    h.settle_members()
    epoch = h.member("m1").member_epoch
    h.timer.advance(regex_refresh.REFRESH_MIN_INTERVAL_MS + 1)
    calls: list[object] = []
    monkeypatch.setattr(h.consumers, "_heartbeat", lambda *a: calls.append(a))
    assert h.beat("m1", epoch).epoch == epoch
    assert not calls
    h.set_topics(*h.image.topics.values(), topic_image("foobar", 3, 1))
    h.beat("m1", epoch)
    assert len(calls) == 1


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_clock_that_was_ahead_holds_up_no_pattern(elsewhere: bool) -> None:
    """It is set back by an hour; or it was that of the former coordinator."""
    h = ConsumerHarness()
    h.enter("m1", regex="foo.*")
    h.settle_members()
    h.clock.set_now_ms(h.clock.now_ms() - 3_600_000)
    if elsewhere:
        h.restart()
    h.enter("m2", regex="ba.")
    h.settle_members()
    assert h.owned("m2") == {"bar": [0, 1, 2]}
    h.set_topics(*h.image.topics.values(), topic_image("foobar", 3, 1))
    h.timer.advance(regex_refresh.REFRESH_MIN_INTERVAL_MS + 1)
    h.settle_members()
    assert "foobar" in h.owned("m1")
    h.check()
