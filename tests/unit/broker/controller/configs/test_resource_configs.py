"""Settings of groups and of client metrics subscriptions."""

import pytest

from broker.controller.configs.resource_configs import (
    InvalidResourceConfigError,
    check_client_metrics_config,
    check_group_config,
)
from config.broker import BrokerConfig
from config.errors import InvalidConfigError


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"consumer.session.timeout.ms": "60000", "consumer.heartbeat.interval.ms": "15000"},
        {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"},
        {"share.auto.offset.reset": "by_duration:P1DT2H3M4.5S"},
        {"streams.num.standby.replicas": "2", "streams.initial.rebalance.delay.ms": "0"},
    ],
)
def test_group_settings(settings: dict[str, str]) -> None:
    check_group_config(settings, BrokerConfig())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"no.such.key": "1"}, "Unknown group config name: no.such.key"),
        (
            {"consumer.session.timeout.ms": "44999"},
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"share.session.timeout.ms": "60001"},
            "share.session.timeout.ms must be less than or equal to "
            "group.share.max.session.timeout.ms",
        ),
        (
            {"streams.heartbeat.interval.ms": "15001"},
            "streams.heartbeat.interval.ms must be less than or equal to "
            "group.streams.max.heartbeat.interval.ms",
        ),
        (
            {"share.record.lock.duration.ms": "14999"},
            "share.record.lock.duration.ms must be greater than or equal to "
            "group.share.min.record.lock.duration.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
    ],
)
def test_refused_group_settings(settings: dict[str, str], message: str) -> None:
    """Kafka's sentences, which name its broker settings."""
    with pytest.raises(InvalidConfigError) as caught:
        check_group_config(settings, BrokerConfig())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "settings",
    [
        {"consumer.session.timeout.ms": "x"},
        {"share.isolation.level": "none"},
        {"share.auto.offset.reset": "none"},
        {"share.auto.offset.reset": "by_duration"},
        {"share.auto.offset.reset": "by_duration:-PT1H"},
    ],
)
def test_group_values_of_the_wrong_type(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidConfigError, match=next(iter(settings))):
        check_group_config(settings, BrokerConfig())


def test_client_metrics_settings() -> None:
    check_client_metrics_config("s", {})
    check_client_metrics_config(
        "s",
        {
            "metrics": "*",
            "interval.ms": "100",
            "match": "client_software_name=Java, client_software_version=11[.]1.*",
        },
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("", {}),
        ("s", {"no.such.key": "1"}),
        ("s", {"interval.ms": "99"}),
        ("s", {"interval.ms": "3600001"}),
    ],
)
def test_refused_client_metrics(name: str, settings: dict[str, str]) -> None:
    with pytest.raises(InvalidResourceConfigError):
        check_client_metrics_config(name, settings)


@pytest.mark.parametrize(
    "pattern", ["x", "client_id", "client_id=", "unknown=a", "client_id=a=b", "client_id=["]
)
def test_match_patterns_must_be_patterns(pattern: str) -> None:
    with pytest.raises(InvalidConfigError, match="Illegal client matching pattern"):
        check_client_metrics_config("s", {"match": pattern})


def test_match_patterns_are_bounded() -> None:
    """Compiling one is work that a client asks for."""
    with pytest.raises(InvalidConfigError):
        check_client_metrics_config("s", {"match": "client_id=" + "a" * 1025})
