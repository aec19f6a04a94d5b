"""Settings of consumer groups (KIP-848): what is set on a group, else what the broker says.

    group             session timeout                        heartbeat interval
    something is set  its consumer.session.timeout.ms        its consumer.heartbeat.interval.ms
    else              group.consumer.session.timeout.ms      group.consumer.heartbeat.interval.ms

Both are asked for at every heartbeat, so a group on which nothing is set costs one look-up, and
one with settings is read once for each change of the cluster's settings.

Source: Kafka 4.2, GroupConfigManager.java, GroupConfig.java.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.controller.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.resource_configs import GROUP_KEYS, broker_default
from config.broker import BrokerConfig
from config.errors import InvalidConfigError

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"


class ConsumerGroupSettings(NamedTuple):
    """What members of one consumer group are told and held to."""

    session_timeout_ms: int
    heartbeat_interval_ms: int


class GroupSettings:
    """Answers for one broker, whatever the image at the moment."""

    def __init__(self, settings: BrokerConfig) -> None:
        self._default = ConsumerGroupSettings(
            broker_default(settings, SESSION_TIMEOUT), broker_default(settings, HEARTBEAT_INTERVAL)
        )
        self._resolved: dict[str, ConsumerGroupSettings] = {}
        self._resolved_for: Mapping[ConfigResource, Mapping[str, str]] | None = None

    @property
    def default(self) -> ConsumerGroupSettings:
        """Of a group on which nothing is set."""
        return self._default

    def of(self, image: ClusterImage, group_id: str) -> ConsumerGroupSettings:
        """Of one group, as the image has it."""
        configs = image.configs
        if not configs:
            return self._default
        if configs is not self._resolved_for:
            # The image keeps this object until some setting changes.
            self._resolved = {}
            self._resolved_for = configs
        found = self._resolved.get(group_id)
        if found is None:
            given = configs.get(ConfigResource(ResourceType.GROUP, group_id))
            if given is None:
                return self._default
            # No more of these than there are groups with settings.
            found = self._resolved[group_id] = ConsumerGroupSettings(
                _given_value(given, SESSION_TIMEOUT, self._default.session_timeout_ms),
                _given_value(given, HEARTBEAT_INTERVAL, self._default.heartbeat_interval_ms),
            )
        return found


def _given_value(given: Mapping[str, str], key: str, default: int) -> int:
    text = given.get(key)
    if text is None:
        return default
    try:
        value = GROUP_KEYS[key].parse(text)
    except InvalidConfigError:
        # Accepted by an earlier release.
        return default
    assert isinstance(value, int)
    return value
