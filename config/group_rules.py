"""Rules between settings of consumer and share groups.

Source: Kafka 4.2, GroupCoordinatorConfig.java, ShareGroupConfig.java (validate).
"""

from collections.abc import Iterator

from config.broker import BROKER_KEYS, BrokerConfig
from config.conflict import Conflict

_SESSION = "group.{}.{}session.timeout.ms"
_HEARTBEAT = "group.{}.{}heartbeat.interval.ms"
_RECORD_LOCK = "group.{}.{}record.lock.duration.ms"


def group_conflicts(broker: BrokerConfig) -> Iterator[Conflict]:
    """Bounds that are the wrong way round, and defaults outside of them."""
    for kind, names in (
        ("consumer", (_SESSION, _HEARTBEAT)),
        ("share", (_SESSION, _HEARTBEAT, _RECORD_LOCK)),
    ):
        for name in names:
            low, value, high = (name.format(kind, part) for part in ("min.", "", "max."))
            yield from _ordered(broker, low, high)
            yield from _ordered(broker, low, value)
            yield from _ordered(broker, value, high)
        heartbeat, session = _HEARTBEAT.format(kind, ""), _SESSION.format(kind, "")
        if _value(broker, heartbeat) >= _value(broker, session):
            yield Conflict(heartbeat, f"is not below {session}={_value(broker, session)}")
    yield from _ordered(broker, "group.share.max.size", "group.share.max.share.sessions")


def _ordered(broker: BrokerConfig, lower: str, higher: str) -> Iterator[Conflict]:
    if _value(broker, lower) > _value(broker, higher):
        yield Conflict(lower, f"is above {higher}={_value(broker, higher)}")


def _value(broker: BrokerConfig, name: str) -> int:
    value = getattr(broker, BROKER_KEYS[name].field_name)
    assert isinstance(value, int)
    return value
