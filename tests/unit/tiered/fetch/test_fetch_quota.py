"""Rates, and who is above them."""

import pytest

from config.tier import UNLIMITED
from tests.fakes.clock import ManualClock
from tiered.fetch import fetch_quota
from tiered.fetch.fetch_quota import FetchQuota, RateQuota

A, B = ("User:a", "1"), ("User:b", "1")


def _quota(clock: ManualClock, broker: int = 1000, client: int = 1000) -> FetchQuota:
    return FetchQuota(
        clock,
        bytes_per_second=broker,
        client_bytes_per_second=client,
        windows=11,
        window_seconds=1,
    )


def test_the_rate_is_over_the_time_since_the_oldest_window() -> None:
    quota = RateQuota(1000, 3, 1)
    assert quota.rate(0) == 0
    quota.record(500, 0)
    assert quota.rate(0) == 500, "at least one window"
    assert quota.rate(2000) == 250
    quota.record(1000, 2000)
    assert quota.rate(2500) == 600
    assert quota.rate(3000) == 1000, "the oldest window has gone"
    assert quota.rate(60_000) == 0


def test_no_more_windows_than_there_may_be() -> None:
    quota = RateQuota(1000, 2, 1)
    for second in range(10):
        quota.record(100, second * 1000.0)
    assert quota.rate(9000.0) <= 200


def test_the_throttle_time_is_kafkas() -> None:
    quota = RateQuota(1000, 11, 1)
    quota.record(1000, 0)
    assert quota.throttle_ms(0) == 0, "at the limit is within it"
    quota.record(500, 0)
    assert quota.throttle_ms(0) == pytest.approx(500)


def test_above_the_brokers_quota_nothing_may_come() -> None:
    clock = ManualClock()
    quota = _quota(clock)
    assert quota.allows_download()
    quota.downloaded(3000)
    assert not quota.allows_download(counted=False)
    assert quota.throttled == 0
    assert not quota.allows_download()
    assert quota.throttled == 1
    assert quota.throttle_ms_total == pytest.approx(2000)
    clock.advance(4000)
    assert quota.allows_download()


def test_clients_are_told_apart() -> None:
    quota = _quota(ManualClock(), broker=UNLIMITED)
    quota.answered(A, 5000)
    assert not quota.allows_client(A)
    assert quota.allows_client(B)
    assert (quota.client_throttled, quota.throttled) == (1, 0)
    assert quota.client_throttle_ms_total > 0


def test_without_a_limit_nothing_is_remembered() -> None:
    quota = _quota(ManualClock(), client=UNLIMITED)
    quota.answered(A, 1 << 40)
    assert quota.clients == 0
    assert quota.allows_client(A)


def test_limits_may_change() -> None:
    quota = _quota(ManualClock())
    quota.downloaded(3000)
    quota.answered(A, 3000)
    quota.resize(bytes_per_second=5000, client_bytes_per_second=5000, windows=11, window_seconds=1)
    assert quota.allows_download()
    assert quota.allows_client(A)


def test_the_table_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_quota, "CLIENTS_MAX", 2)
    quota = _quota(ManualClock())
    for name in ("a", "b", "a", "c"):
        quota.answered((name, ""), 5000)
    assert quota.clients == 2
    assert quota.allows_client(("b", "")), "idle longest, so forgotten"
    assert not quota.allows_client(("a", ""))
