"""Settings that exist only at run time: of a group, of client metrics.

A group's settings have their defaults and bounds in broker settings: behind
`consumer.session.timeout.ms` stand `group.consumer.session.timeout.ms`, `group.consumer.min...` and
`group.consumer.max.session.timeout.ms`. Streams groups are not served, so what is set for them is
checked and kept but has no effect; their bounds are Kafka's defaults, the constants here.

Source: Kafka 4.2, GroupConfig.java, ClientMetricsConfigs.java; KIP-848, KIP-932, KIP-1071, KIP-714.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from broker.controller.configs.share_group_config import EARLIEST, LATEST, duration_ms
from config.broker import BROKER_KEYS, BrokerConfig
from config.definition import ConfigKey, Settings, config_key, count, milliseconds
from config.errors import InvalidConfigError
from config.kinds import Choice, Integer, WireType, WordList, refusal

HEARTBEAT_INTERVAL_MS_BOUNDS: Final = (5_000, 15_000)
SESSION_TIMEOUT_MS_BOUNDS: Final = (45_000, 60_000)
STREAMS_STANDBY_REPLICAS_MAX: Final = 2

CLIENT_METRICS_INTERVAL_MS_BOUNDS: Final = (100, 3_600_000)

_MATCH_PARAMETERS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
MATCH_PATTERN_LENGTH_MAX: Final = 1024
"""Longest pattern we try to compile, in characters."""


_NO_STREAMS_GROUPS: Final = "No effect: there are no streams groups."


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """`latest`, `earliest`, or `by_duration:` and a duration of ISO 8601."""

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """What it may be."""
        return "latest, earliest or by_duration:PnDTnHnMn.nS"

    def parse(self, name: str, text: str) -> str:
        """Read one."""
        stripped = text.strip()
        if stripped not in (LATEST, EARLIEST):
            try:
                duration_ms(stripped)
            except ValueError:
                raise ValueError(
                    refusal(
                        name,
                        stripped,
                        f"Invalid value `{stripped}` for configuration {name}. The value must be "
                        "either 'earliest', 'latest' or of the format "
                        "'by_duration:<PnDTnHnMn.nS>'.",
                    )
                ) from None
        return stripped

    def format(self, value: object) -> str:
        """Give it as it was read."""
        return str(value)


class InvalidResourceConfigError(Exception):
    """Refused as a whole. Client sees INVALID_REQUEST with this text."""


class GroupConfig(Settings):
    """Settings of one group; `GroupConfig()` is all defaults."""

    consumer_heartbeat_interval_ms: int = config_key(
        "consumer.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5_000,
        text="How often a member of a consumer group (KIP-848) has to report.",
        source="KIP-848",
    )
    consumer_session_timeout_ms: int = config_key(
        "consumer.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="A member of a consumer group (KIP-848) that is silent for longer is removed.",
        source="KIP-848",
    )
    share_auto_offset_reset: str = config_key(
        "share.auto.offset.reset",
        OffsetReset(),
        default="latest",
        text="Where a share group starts on a partition it has not read before: at the end, at the "
        "start, or at what was written so long ago.",
        source="KIP-932",
    )
    share_heartbeat_interval_ms: int = config_key(
        "share.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5_000,
        text="How often a member of a share group has to report.",
        source="KIP-932",
    )
    share_isolation_level: Literal["read_committed", "read_uncommitted"] = config_key(
        "share.isolation.level",
        Choice(("read_committed", "read_uncommitted")),
        default="read_uncommitted",
        text="Whether a share group sees records of open and aborted transactions.",
        source="KIP-932",
    )
    share_record_lock_duration_ms: int = config_key(
        "share.record.lock.duration.ms",
        milliseconds(1000, bits=32),
        default=30_000,
        text="How long a record is one share consumer's before others may get it.",
        source="KIP-932",
    )
    share_session_timeout_ms: int = config_key(
        "share.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="A member of a share group that is silent for longer is removed.",
        source="KIP-932",
    )
    streams_heartbeat_interval_ms: int = config_key(
        "streams.heartbeat.interval.ms",
        milliseconds(1, bits=32),
        default=5_000,
        text="How often a member of a streams group has to report.",
        source="KIP-1071",
        difference=_NO_STREAMS_GROUPS,
    )
    streams_initial_rebalance_delay_ms: int = config_key(
        "streams.initial.rebalance.delay.ms",
        milliseconds(0, bits=32),
        default=3_000,
        text="How long a new streams group waits for more members before it assigns tasks.",
        source="KIP-1071",
        difference=_NO_STREAMS_GROUPS,
    )
    streams_num_standby_replicas: int = config_key(
        "streams.num.standby.replicas",
        count(0, "replicas"),
        default=0,
        text="Warm copies of a streams task's state.",
        source="KIP-1071",
        difference=_NO_STREAMS_GROUPS,
    )
    streams_session_timeout_ms: int = config_key(
        "streams.session.timeout.ms",
        milliseconds(1, bits=32),
        default=45_000,
        text="A member of a streams group that is silent for longer is removed.",
        source="KIP-1071",
        difference=_NO_STREAMS_GROUPS,
    )


class ClientMetricsConfig(Settings):
    """One subscription of client metrics (KIP-714); `ClientMetricsConfig()` is all defaults."""

    interval_ms: int = config_key(
        "interval.ms",
        Integer("milliseconds", bits=32),
        default=300_000,
        text="How often clients push, 100 to 3,600,000.",
        source="KIP-714",
    )
    match: tuple[str, ...] = config_key(
        "match",
        WordList(what="<client property>=<regular expression>"),
        default=(),
        text="Which clients push; empty: all.",
        source="KIP-714",
    )
    metrics: tuple[str, ...] = config_key(
        "metrics",
        WordList(what="prefixes of metric names"),
        default=(),
        text="Which metrics they push; `*`: all.",
        source="KIP-714",
    )


GROUP_KEYS: Mapping[str, ConfigKey] = GroupConfig.rows()
"""Every group key by name."""

CLIENT_METRICS_KEYS: Mapping[str, ConfigKey] = ClientMetricsConfig.rows()
"""Every client metrics key by name."""


def broker_default(settings: BrokerConfig, name: str) -> int:
    """What holds for groups on which the key `name` is not set: a number."""
    row = GROUP_KEYS[name]
    value = _broker_number(settings, f"group.{name}")
    if value is None:
        assert isinstance(row.default, int)
        return row.default
    return value


def _broker_number(settings: BrokerConfig, name: str) -> int | None:
    row = BROKER_KEYS.get(name)
    if row is None:
        return None
    value = getattr(settings, row.field_name)
    assert isinstance(value, int)
    return value


def check_group_config(settings: Mapping[str, str], broker: BrokerConfig) -> None:
    """Check all that is set on a group.

    Args:
        settings: All that would be set on it.
        broker: Has defaults and bounds.

    Raises:
        InvalidConfigError: With Kafka's sentence.
    """
    values: dict[str, object] = {
        name: broker_default(broker, name) if isinstance(row.default, int) else row.default
        for name, row in GROUP_KEYS.items()
    }
    for name in settings:
        if name not in GROUP_KEYS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    for name, text in settings.items():
        values[name] = GROUP_KEYS[name].parse(text)
    for kind in ("consumer", "share", "streams"):
        for name, bounds in (
            ("heartbeat.interval.ms", HEARTBEAT_INTERVAL_MS_BOUNDS),
            ("session.timeout.ms", SESSION_TIMEOUT_MS_BOUNDS),
        ):
            low = _broker_number(broker, f"group.{kind}.min.{name}")
            high = _broker_number(broker, f"group.{kind}.max.{name}")
            _check_bounds(
                values,
                kind,
                name,
                (bounds[0] if low is None else low, bounds[1] if high is None else high),
            )
    _check_bounds(
        values,
        "share",
        "record.lock.duration.ms",
        (
            broker.group_share_min_record_lock_duration_ms,
            broker.group_share_max_record_lock_duration_ms,
        ),
    )
    if _number(values, "streams.num.standby.replicas") > STREAMS_STANDBY_REPLICAS_MAX:
        raise InvalidConfigError(
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas"
        )
    for kind in ("consumer", "share", "streams"):
        timeout, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(values, timeout) <= _number(values, heartbeat):
            raise InvalidConfigError(f"{timeout} must be greater than {heartbeat}")


def _check_bounds(
    values: Mapping[str, object], kind: str, name: str, bounds: tuple[int, int]
) -> None:
    value = _number(values, f"{kind}.{name}")
    if value < bounds[0]:
        raise InvalidConfigError(
            f"{kind}.{name} must be greater than or equal to group.{kind}.min.{name}"
        )
    if value > bounds[1]:
        raise InvalidConfigError(
            f"{kind}.{name} must be less than or equal to group.{kind}.max.{name}"
        )


def _number(values: Mapping[str, object], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


def check_client_metrics_config(name: str, settings: Mapping[str, str]) -> None:
    """Check all that is set on a subscription of client metrics.

    Raises:
        InvalidResourceConfigError: No name, an unknown key, an interval out of bounds.
        InvalidConfigError: A value of the wrong type, a match pattern that is none.
    """
    if not name:
        raise InvalidResourceConfigError("Subscription name can't be empty")
    for key in settings:
        if key not in CLIENT_METRICS_KEYS:
            raise InvalidResourceConfigError(f"Unknown client metrics configuration: {key}")
    values = {key: CLIENT_METRICS_KEYS[key].parse(text) for key, text in settings.items()}
    low, high = CLIENT_METRICS_INTERVAL_MS_BOUNDS
    interval_ms = values.get("interval.ms", low)
    assert isinstance(interval_ms, int)
    if not low <= interval_ms <= high:
        raise InvalidResourceConfigError(
            f"Invalid value {interval_ms} for interval.ms, interval must be between {low} and "
            f"{high} (1 hour)"
        )
    patterns = values.get("match", ())
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    parameter, equals, expression = pattern.partition("=")
    valid = (
        equals == "="
        and expression != ""
        and "=" not in expression
        and parameter.strip() in _MATCH_PARAMETERS
        and len(expression) <= MATCH_PATTERN_LENGTH_MAX
    )
    if valid:
        try:
            re.compile(expression.strip())
        except re.error:
            valid = False
    if not valid:
        raise InvalidConfigError(f"Illegal client matching pattern: {pattern}")
