"""Settings of consumer groups that contradict each other."""

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
