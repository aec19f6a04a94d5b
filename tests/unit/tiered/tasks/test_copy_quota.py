"""KIP-956: the whole segment is charged first, and the next one waits."""

from config.tier import TierConfig
from tests.fakes.clock import ManualClock
from tiered.tasks.copy_quota import CopyQuota


def test_a_segment_far_above_the_quota_goes_and_the_next_waits() -> None:
    clock = ManualClock()
    quota = CopyQuota(clock, TierConfig(remote_log_manager_copy_max_bytes_per_second=100))
    assert quota.wait_ms() == 0
    quota.charge(1000)
    assert quota.wait_ms() == 1000
    copied = 1000
    for _ in range(600):
        clock.advance(1000)
        if quota.wait_ms() == 0:
            quota.charge(300)
            copied += 300
    # Over the windows of 11 s the rate was kept, give or take one segment.
    assert copied <= 100 * 600 + 1000 + 300
    assert copied >= 100 * 600 * 0.7
    assert quota.throttled > 0
    assert quota.throttle_ms_max >= quota.throttle_ms_total / quota.throttled


def test_new_limits_hold_at_once() -> None:
    clock = ManualClock()
    quota = CopyQuota(clock, TierConfig())
    quota.charge(10**9)
    assert quota.wait_ms() == 0
    assert quota.rate() > 0
    quota.update(TierConfig(remote_log_manager_copy_max_bytes_per_second=1000))
    assert quota.wait_ms() > 0
