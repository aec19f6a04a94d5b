"""Group settings of consumer and share groups: the group's configs over the broker's defaults.

    group             session timeout                        heartbeat interval
    something is set  its consumer.session.timeout.ms        its consumer.heartbeat.interval.ms
    else              group.consumer.session.timeout.ms      group.consumer.heartbeat.interval.ms

So it is with `share.session.timeout.ms` and the like of share groups, but for where a new one
begins to read and what it sees of transactions: these have fixed defaults.

They are read at every heartbeat, so a group on which nothing is set costs one look-up, and
one with settings is read once for each change of the cluster's settings.

Source: Kafka 4.2, GroupConfigManager.java, GroupConfig.java.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.controller.configs.resource_configs import GROUP_KEYS, broker_default
from broker.controller.configs.share_group_config import ShareGroupConfig
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from config.broker import BrokerConfig
from config.errors import InvalidConfigError

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
SHARE_SESSION_TIMEOUT: Final = "share.session.timeout.ms"
SHARE_HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
SHARE_RECORD_LOCK_DURATION: Final = "share.record.lock.duration.ms"
SHARE_AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
SHARE_ISOLATION_LEVEL: Final = "share.isolation.level"
READ_COMMITTED: Final = "read_committed"


class ConsumerGroupSettings(NamedTuple):
    """Settings that a consumer group's members get in heartbeats, and that the broker enforces."""

    session_timeout_ms: int
    heartbeat_interval_ms: int


class ShareGroupSettings(NamedTuple):
    """Settings of a share group's members, as for consumer groups, and of record delivery."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    delivery: ShareGroupConfig


class GroupSettings:
    """Resolves group settings for one broker against the current image."""

    def __init__(self, settings: BrokerConfig) -> None:
        self._default = ConsumerGroupSettings(
            broker_default(settings, SESSION_TIMEOUT), broker_default(settings, HEARTBEAT_INTERVAL)
        )
        self._share_default = ShareGroupSettings(
            broker_default(settings, SHARE_SESSION_TIMEOUT),
            broker_default(settings, SHARE_HEARTBEAT_INTERVAL),
            ShareGroupConfig(broker_default(settings, SHARE_RECORD_LOCK_DURATION)),
        )
        self._resolved: dict[str, ConsumerGroupSettings] = {}
        self._share_resolved: dict[str, ShareGroupSettings] = {}
        self._resolved_for: Mapping[ConfigResource, Mapping[str, str]] | None = None

    @property
    def default(self) -> ConsumerGroupSettings:
        """Of a group on which nothing is set."""
        return self._default

    def of(self, image: ClusterImage, group_id: str) -> ConsumerGroupSettings:
        """Of one consumer group, as the image has it."""
        given = self._given(image, group_id)
        if given is None:
            return self._default
        found = self._resolved.get(group_id)
        if found is None:
            # No more of these than there are groups with settings.
            found = self._resolved[group_id] = ConsumerGroupSettings(
                _number(given, SESSION_TIMEOUT, self._default.session_timeout_ms),
                _number(given, HEARTBEAT_INTERVAL, self._default.heartbeat_interval_ms),
            )
        return found

    def share_of(self, image: ClusterImage, group_id: str) -> ShareGroupSettings:
        """Of one share group, as the image has it."""
        default = self._share_default
        given = self._given(image, group_id)
        if given is None:
            return default
        found = self._share_resolved.get(group_id)
        if found is None:
            delivery = default.delivery
            reset = _given_value(given, SHARE_AUTO_OFFSET_RESET, delivery.auto_offset_reset)
            isolation = _given_value(given, SHARE_ISOLATION_LEVEL, "")
            found = self._share_resolved[group_id] = ShareGroupSettings(
                _number(given, SHARE_SESSION_TIMEOUT, default.session_timeout_ms),
                _number(given, SHARE_HEARTBEAT_INTERVAL, default.heartbeat_interval_ms),
                ShareGroupConfig(
                    _number(given, SHARE_RECORD_LOCK_DURATION, delivery.record_lock_duration_ms),
                    isolation == READ_COMMITTED,
                    str(reset),
                ),
            )
        return found

    def _given(self, image: ClusterImage, group_id: str) -> Mapping[str, str] | None:
        configs = image.configs
        if not configs:
            return None
        if configs is not self._resolved_for:
            # The image keeps this object until some setting changes.
            self._resolved = {}
            self._share_resolved = {}
            self._resolved_for = configs
        return configs.get(ConfigResource(ResourceType.GROUP, group_id))


def _number(given: Mapping[str, str], key: str, default: int) -> int:
    value = _given_value(given, key, default)
    assert isinstance(value, int)
    return value


def _given_value(given: Mapping[str, str], key: str, default: object) -> object:
    text = given.get(key)
    if text is None:
        return default
    try:
        return GROUP_KEYS[key].parse(text)
    except InvalidConfigError:
        # Accepted by an earlier release.
        return default
