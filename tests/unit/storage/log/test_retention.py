"""Which segments may go, and why."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.topic import TopicConfig
from storage.log.retention import RetentionPlan, RetentionReason, plan_retention
from tests.effort import examples

START = RetentionReason.LOG_START_OFFSET
SIZE = RetentionReason.SIZE
TIME = RetentionReason.TIME
NOW = 10_000


@dataclass(frozen=True)
class Facts:
    base_offset: int
    size: int
    largest_timestamp: int


# 10 offsets and 100 bytes each; written at 1000, 2000, ... 5000; the last one is active.
SEGMENTS = [Facts(index * 10, 100, 1_000 + index * 1_000) for index in range(5)]


def plan(
    *,
    start: int = 0,
    high_watermark: int = 50,
    remote: bool = False,
    highest_remote_offset: int = -1,
    segments: list[Facts] = SEGMENTS,
    **config: Any,
) -> RetentionPlan:
    settings = {"retention_ms": -1, "retention_bytes": -1, **config}
    return plan_retention(
        segments,
        TopicConfig(**settings),
        log_start_offset=start,
        high_watermark=high_watermark,
        log_end_offset=50,
        now_ms=NOW,
        remote_storage=remote,
        highest_remote_offset=highest_remote_offset,
    )


def test_no_limits_keep_everything() -> None:
    """-1 and -1."""
    assert plan() == RetentionPlan((), roll_active=False)


@pytest.mark.parametrize(
    ("start", "count"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (45, 4), (50, 4)]
)
def test_below_log_start(start: int, count: int) -> None:
    """Whole segments only, and never the active one, under any policy."""
    for policy in ({"delete"}, {"compact"}, {"compact", "delete"}, set()):
        got = plan(start=start, cleanup_policy=tuple(policy))
        assert got == RetentionPlan((START,) * count, roll_active=False)


@pytest.mark.parametrize(
    ("limit", "count", "roll"),
    [(500, 0, False), (401, 0, False), (400, 1, False), (399, 1, False), (100, 4, False)],
)
def test_by_size(limit: int, count: int, roll: bool) -> None:
    """A segment goes if what is left still has `retention.bytes`."""
    assert plan(retention_bytes=limit) == RetentionPlan((SIZE,) * count, roll)


def test_size_zero_rolls_the_active_segment() -> None:
    """It never goes as such."""
    assert plan(retention_bytes=0) == RetentionPlan((SIZE,) * 4, roll_active=True)


@pytest.mark.parametrize(
    ("limit", "count", "roll"),
    [(9_000, 0, False), (8_999, 1, False), (8_000, 1, False), (5_500, 4, False), (4_999, 4, True)],
)
def test_by_time(limit: int, count: int, roll: bool) -> None:
    """A segment goes when its newest record is older than `retention.ms`, not just as old."""
    assert plan(retention_ms=limit) == RetentionPlan((TIME,) * count, roll)


def test_empty_active_segment_is_not_rolled() -> None:
    """Else an idle log would roll for ever."""
    segments = [*SEGMENTS[:4], Facts(40, 0, 5_000)]
    assert plan(retention_ms=0, segments=segments) == RetentionPlan((TIME,) * 4, roll_active=False)


def test_young_segment_protects_those_behind() -> None:
    """Oldest first, without gaps."""
    segments = [SEGMENTS[0], Facts(10, 100, NOW), *SEGMENTS[2:]]
    assert plan(retention_ms=1, segments=segments).reasons == (TIME,)


def test_policy_compact_ignores_time_and_size() -> None:
    """Only the log start counts."""
    config: dict[str, Any] = {"retention_ms": 1, "retention_bytes": 1}
    assert len(plan(cleanup_policy=("compact",), **config)) == 0
    assert len(plan(cleanup_policy=("compact", "delete"), **config)) == 4
    assert len(plan(cleanup_policy=(), **config)) == 0


def test_nothing_beyond_the_high_watermark() -> None:
    """Followers may still need it."""
    assert len(plan(retention_ms=1, high_watermark=29)) == 2
    assert len(plan(start=50, high_watermark=0)) == 0


def test_reasons_follow_each_other() -> None:
    """Log start, then size, then time."""
    assert plan(start=10, retention_bytes=300, retention_ms=6_500).reasons == (START, SIZE, TIME)


def test_remote_storage_counts_local_limits_and_copies() -> None:
    """A segment that was not copied stays, unless it lies below the log start (KIP-405)."""
    config: dict[str, Any] = {"local_retention_ms": 1, "retention_ms": 10**9}
    assert len(plan(**config)) == 0
    assert len(plan(remote=True, highest_remote_offset=-1, **config)) == 0
    assert len(plan(remote=True, highest_remote_offset=18, **config)) == 1
    assert len(plan(remote=True, highest_remote_offset=19, **config)) == 2
    assert len(plan(remote=True, start=30, highest_remote_offset=-1, **config)) == 3
    # -2: as retention.ms. An empty policy trims locally too: the remote copy stays.
    assert len(plan(remote=True, highest_remote_offset=99, retention_ms=8_999)) == 1
    assert len(plan(remote=True, highest_remote_offset=99, cleanup_policy=(), **config)) == 4


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9_999)), min_size=1, max_size=6),
    st.integers(0, 70),
    st.integers(0, 70),
    st.integers(-1, 300),
    st.integers(-1, 10_000),
)
def test_invariants(
    shapes: list[tuple[int, int]], start: int, high_watermark: int, size: int, ms: int
) -> None:
    """Never the active segment, never beyond the high watermark, never below the size asked for."""
    segments = [Facts(i * 10, size_, stamp) for i, (size_, stamp) in enumerate(shapes)]
    end = len(segments) * 10
    got = plan_retention(
        segments,
        TopicConfig(retention_ms=ms, retention_bytes=size),
        log_start_offset=min(start, end),
        high_watermark=min(high_watermark, end),
        log_end_offset=end,
        now_ms=NOW,
    )
    assert len(got) < len(segments)
    if len(got):
        assert segments[len(got)].base_offset <= high_watermark
    left = sum(segment.size for segment in segments)
    for segment, reason in zip(segments, got.reasons, strict=False):
        left -= segment.size
        if reason is SIZE:
            assert left >= size >= 0
        elif reason is TIME:
            assert NOW - segment.largest_timestamp > ms >= 0
        else:
            assert segment.base_offset + 10 <= start
