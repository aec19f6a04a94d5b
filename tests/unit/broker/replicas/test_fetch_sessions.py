"""Incremental fetch sessions (KIP-227)."""

import pytest

from broker.replicas import fetch_sessions
from broker.replicas.fetch_sessions import EVICTION_AGE_MS, FetchSessionCache
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import FetchPartition, FetchRequest, FetchTopic
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock


def request(
    session_id: int,
    epoch: int,
    partitions: dict[str, dict[int, int]],
    forgotten: list[tuple[str | bytes, list[int]]] | None = None,
) -> FetchRequest:
    topics = [
        FetchTopic(
            name, b"", [FetchPartition(i, -1, offset, -1, -1, 1000) for i, offset in p.items()]
        )
        for name, p in partitions.items()
    ]
    return FetchRequest(-1, 100, 1, 1000, 0, session_id, epoch, topics, forgotten or [])


def cache(slots: int = 2) -> tuple[FetchSessionCache, ManualClock]:
    clock = ManualClock()
    return FetchSessionCache(slots, clock, SeededRandomness(1)), clock


def wanted(context: object) -> list[tuple[object, int, int]]:
    return [(t, p.partition, p.fetch_offset) for t, p in context.wanted]  # type: ignore[attr-defined]  # why: only read for comparison


def test_without_a_session_everything_is_listed() -> None:
    sessions, _ = cache()
    context = sessions.begin(request(0, -1, {"a": {0: 5}}), uses_topic_ids=False)
    assert (context.session, context.session_id, wanted(context)) == (None, 0, [("a", 0, 5)])


def test_a_session_remembers_what_is_not_mentioned() -> None:
    sessions, _ = cache()
    opened = sessions.begin(request(0, 0, {"a": {0: 5, 1: 6}}), uses_topic_ids=False)
    assert opened.session_id > 0
    assert not opened.incremental
    second = sessions.begin(request(opened.session_id, 1, {"a": {1: 9}}), uses_topic_ids=False)
    assert second.incremental
    assert wanted(second) == [("a", 0, 5), ("a", 1, 9)]
    third = sessions.begin(
        request(opened.session_id, 2, {"b": {0: 1}}, [("a", [0])]), uses_topic_ids=False
    )
    assert wanted(third) == [("a", 1, 9), ("b", 0, 1)]


def test_wrong_epoch_unknown_id_and_changed_kind_are_errors() -> None:
    sessions, _ = cache()
    opened = sessions.begin(request(0, 0, {"a": {0: 5}}), uses_topic_ids=False)
    sid = opened.session_id
    assert sessions.begin(request(sid, 7, {}), uses_topic_ids=False).error == (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )
    assert sessions.begin(request(sid + 1, 1, {}), uses_topic_ids=False).error == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
    assert sessions.begin(request(sid, 1, {}), uses_topic_ids=True).error == (
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    )


def test_partitions_that_were_answered_go_last() -> None:
    """A busy partition does not starve the others when the response is full."""
    sessions, _ = cache()
    opened = sessions.begin(request(0, 0, {"a": {0: 5, 1: 6}}), uses_topic_ids=False)
    assert opened.session is not None
    opened.session.answered(opened.wanted[0][1])  # type: ignore[arg-type]  # why: sessions hold SessionPartition
    second = sessions.begin(request(opened.session_id, 1, {}), uses_topic_ids=False)
    assert wanted(second) == [("a", 1, 6), ("a", 0, 5)]


def test_a_full_cache_gives_no_session_while_the_old_ones_are_young() -> None:
    sessions, clock = cache(slots=1)
    first = sessions.begin(request(0, 0, {"a": {0: 5}}), uses_topic_ids=False)
    second = sessions.begin(request(0, 0, {"b": {0: 5}}), uses_topic_ids=False)
    assert second.session_id == 0
    assert wanted(second) == [("b", 0, 5)]
    clock.advance(EVICTION_AGE_MS + 1)
    third = sessions.begin(request(0, 0, {"c": {0: 5}}), uses_topic_ids=False)
    assert third.session_id not in (0, first.session_id)
    assert len(sessions) == 1
    assert sessions.evicted == 1


def test_epoch_minus_one_ends_the_session() -> None:
    sessions, _ = cache()
    opened = sessions.begin(request(0, 0, {"a": {0: 5}}), uses_topic_ids=False)
    sessions.begin(request(opened.session_id, -1, {}), uses_topic_ids=False)
    assert len(sessions) == 0


def test_epochs_wrap_to_one() -> None:
    sessions, _ = cache()
    opened = sessions.begin(request(0, 0, {"a": {0: 5}}), uses_topic_ids=False)
    assert opened.session is not None
    opened.session.epoch = 2**31 - 1
    assert not sessions.begin(request(opened.session_id, 2**31 - 1, {}), uses_topic_ids=False).error
    assert opened.session.epoch == 1


def test_all_sessions_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it a client gets none, until others have been idle long enough."""
    monkeypatch.setattr(fetch_sessions, "TOTAL_PARTITIONS_MAX", 10)
    sessions, clock = cache(slots=100)
    for name in "abc":
        opened = sessions.begin(
            request(0, 0, {name: dict.fromkeys(range(3), 0)}), uses_topic_ids=False
        )
        assert opened.session_id
    late = request(0, 0, {"d": dict.fromkeys(range(5), 0)})
    assert sessions.begin(late, uses_topic_ids=False).session_id == 0
    assert (len(sessions), sessions.partition_count) == (3, 9)
    clock.advance(EVICTION_AGE_MS + 1)
    assert sessions.begin(late, uses_topic_ids=False).session_id
    assert (len(sessions), sessions.partition_count, sessions.evicted) == (2, 8, 2)
    huge = request(0, 0, {"e": dict.fromkeys(range(11), 0)})
    assert sessions.begin(huge, uses_topic_ids=False).session_id == 0


@pytest.mark.parametrize("limit", ["PARTITIONS_MAX", "TOTAL_PARTITIONS_MAX"])
def test_a_session_that_outgrows_the_limit_ends(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Rather than forget some of the partitions its client waits for."""
    monkeypatch.setattr(fetch_sessions, limit, 4)
    sessions, _ = cache()
    opened = sessions.begin(request(0, 0, {"a": dict.fromkeys(range(3), 0)}), uses_topic_ids=False)
    grown = request(opened.session_id, 1, {"b": {0: 0, 1: 0}})
    answer = sessions.begin(grown, uses_topic_ids=False)
    assert answer.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
