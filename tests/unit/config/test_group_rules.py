"""Settings of consumer and share groups that contradict each other."""

import pytest

from config.broker import BrokerConfig
from config.group_rules import group_conflicts


def test_defaults_agree() -> None:
    assert not list(group_conflicts(BrokerConfig()))


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"min_session_timeout_ms": 70_000}, "group.consumer.min.session.timeout.ms"),
        ({"session_timeout_ms": 70_000}, "group.consumer.session.timeout.ms"),
        ({"session_timeout_ms": 44_999}, "group.consumer.min.session.timeout.ms"),
        ({"min_heartbeat_interval_ms": 20_000}, "group.consumer.min.heartbeat.interval.ms"),
        ({"heartbeat_interval_ms": 20_000}, "group.consumer.heartbeat.interval.ms"),
        ({"heartbeat_interval_ms": 4_999}, "group.consumer.min.heartbeat.interval.ms"),
        (
            {"heartbeat_interval_ms": 45_000, "max_heartbeat_interval_ms": 45_000},
            "group.consumer.heartbeat.interval.ms",
        ),
    ],
)
def test_contradiction_is_told(values: dict[str, int], key: str) -> None:
    broker = BrokerConfig().replace(**{f"group_consumer_{k}": v for k, v in values.items()})
    assert key in {conflict.key for conflict in group_conflicts(broker)}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"min_session_timeout_ms": 70_000}, "group.share.min.session.timeout.ms"),
        ({"heartbeat_interval_ms": 20_000}, "group.share.heartbeat.interval.ms"),
        ({"record_lock_duration_ms": 14_999}, "group.share.min.record.lock.duration.ms"),
        ({"max_share_sessions": 199}, "group.share.max.size"),
        (
            {"heartbeat_interval_ms": 45_000, "max_heartbeat_interval_ms": 45_000},
            "group.share.heartbeat.interval.ms",
        ),
    ],
)
def test_contradiction_between_settings_of_share_groups(values: dict[str, int], key: str) -> None:
    broker = BrokerConfig().replace(**{f"group_share_{k}": v for k, v in values.items()})
    assert key in {conflict.key for conflict in group_conflicts(broker)}
