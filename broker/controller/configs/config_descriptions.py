"""Config descriptions for DescribeConfigs: value, source, synonyms.

Every level at which a key or one of its synonyms is set is a synonym of the entry, strongest first;
the first one is the entry's source. As in Kafka, what a synonym of another name says
(`log.roll.hours` behind `log.roll.ms`) counts only after the key itself has been found at some
level: a topic whose retention comes from `log.retention.hours` alone is shown as a default without
synonyms.

Source: Kafka 4.2, ConfigHelper.scala (KIP-133, KIP-226, KIP-569).
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.controller.configs.configs import effective_settings
from broker.controller.configs.resource_configs import (
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    broker_default,
)
from broker.controller.images.cluster_image import (
    ClusterImage,
    ConfigResource,
    ResourceType,
    TopicImage,
)
from config.broker import BROKER_KEYS, BrokerConfig
from config.definition import ConfigKey
from config.errors import InvalidConfigError
from config.topic import TOPIC_KEYS

UNKNOWN_TYPE: Final = 0
"""Type reported for an unknown key."""


class ConfigSource(enum.IntEnum):
    """Where a value comes from (Kafka's DescribeConfigsResponse.ConfigSource)."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One level at which a key, or another name of it, is set; `value` None when secret."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of one resource."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    synonyms: Sequence[ConfigSynonym]
    type: int
    documentation: str


OLD_NODE_ID: Final = "broker.id"
"""Another name of `node.id`, shown with its value."""

_BROKER_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("log.roll.ms", "log.roll.hours"), ("log.roll.ms", "log.roll.hours")),
    **dict.fromkeys(
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    **dict.fromkeys(
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
}
"""Other names of a broker key, strongest first."""


class ConfigDescriptions:
    """Describes settings at one moment: one image, one broker's start-up settings.

    Cheap to make; keeps what topics without settings of their own have in common.
    """

    def __init__(self, settings: BrokerConfig, image: ClusterImage) -> None:
        self._static = settings
        self._image = image
        self._given = {
            row.name: text
            for row in BROKER_KEYS.values()
            if row.field_name in settings.model_fields_set
            and (text := row.format(getattr(settings, row.field_name))) is not None
        }
        # Kafka fills in the old name from the new one.
        self._given[OLD_NODE_ID] = str(settings.node_id)
        self._on_all = image.config(ConfigResource(ResourceType.BROKER, ""))
        self._on_this = image.config(ConfigResource(ResourceType.BROKER, str(settings.node_id)))
        self._effective = effective_settings(settings, image)
        self._plain_topic: list[ConfigEntry] | None = None

    def topic(self, topic: TopicImage) -> list[ConfigEntry]:
        """Settings of a topic, by name."""
        return self.topic_with(topic.overrides)

    def topic_with(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Settings of a topic on which `overrides` are set, by name."""
        if self._plain_topic is None:
            self._plain_topic = [
                self._default_topic_entry(row)
                for _, row in sorted(TOPIC_KEYS.items())
                if not row.internal
            ]
        if not overrides:
            return self._plain_topic
        entries = [
            _overridden(entry, overrides[entry.name]) if entry.name in overrides else entry
            for entry in self._plain_topic
        ]
        shown = {entry.name for entry in entries}
        entries += [
            _overridden(self._default_topic_entry(TOPIC_KEYS[name]), text)
            for name, text in sorted(overrides.items())
            if name not in shown and name in TOPIC_KEYS
        ]
        return entries

    def _default_topic_entry(self, row: ConfigKey) -> ConfigEntry:
        synonyms: list[ConfigSynonym] = []
        if row.synonyms:
            synonyms = self._broker_levels(row.synonyms[0].key)
        return ConfigEntry(
            row.name,
            None if row.secret else row.format(self._effective.topic_default(row)),
            synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
            row.secret,
            False,
            synonyms,
            int(row.wire_type),
            row.text,
        )

    def broker(self) -> list[ConfigEntry]:
        """Settings of this broker, by name: all it knows, and unknown ones that were set."""
        names = {name for name, row in BROKER_KEYS.items() if not row.internal}
        return [
            self._broker_entry(name) for name in sorted(names | {*self._on_all, *self._on_this})
        ]

    def all_brokers(self) -> list[ConfigEntry]:
        """What is set on all brokers at once, by name; nothing else."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        entries = []
        for name, text in sorted(self._on_all.items()):
            entry = self._broker_entry(name)
            synonyms = [synonym for synonym in entry.synonyms if synonym.source is source]
            value = None if entry.is_sensitive else text
            entries.append(replace(entry, value=value, source=source, synonyms=synonyms))
        return entries

    def _broker_entry(self, name: str) -> ConfigEntry:
        row = BROKER_KEYS.get(name)
        synonyms = self._broker_levels(name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        if row is None:
            # An unknown key may be a secret.
            return ConfigEntry(name, None, source, True, True, synonyms, UNKNOWN_TYPE, "")
        value = None if row.secret else row.format(getattr(self._effective, row.field_name))
        if name == OLD_NODE_ID:
            value = self._given[name]
        return ConfigEntry(
            name, value, source, row.secret, not row.dynamic, synonyms, int(row.wire_type), row.text
        )

    def _broker_levels(self, name: str) -> list[ConfigSynonym]:
        levels = list(self._all_levels(_BROKER_SYNONYMS.get(name, (name,))))
        for index, synonym in enumerate(levels):
            if synonym.name == name:
                return levels[index:]
        return []

    def _all_levels(self, names: Sequence[str]) -> Iterator[ConfigSynonym]:
        by_source = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self._on_this),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self._on_all),
            (ConfigSource.STATIC_BROKER_CONFIG, self._given),
        )
        for source, values in by_source:
            for name in names:
                if name in values:
                    row = BROKER_KEYS.get(name)
                    secret = row is None or row.secret
                    yield ConfigSynonym(name, None if secret else values[name], source)
        for name in names:
            row = BROKER_KEYS.get(name)
            if row is not None and row.default is not None:
                value = None if row.secret else row.format(row.default)
                yield ConfigSynonym(name, value, ConfigSource.DEFAULT_CONFIG)

    def group(self, name: str) -> list[ConfigEntry]:
        """Settings of a group, by name."""
        given = self._image.config(ConfigResource(ResourceType.GROUP, name))
        entries = []
        for _, row in sorted(GROUP_KEYS.items()):
            default = row.default
            if isinstance(default, int):
                default = broker_default(self._static, row.name)
            text = given.get(row.name, row.format(default))
            source = ConfigSource.GROUP_CONFIG if row.name in given else ConfigSource.DEFAULT_CONFIG
            entries.append(_own_entry(row, text, source, [ConfigSynonym(row.name, text, source)]))
        return entries

    def client_metrics(self, name: str) -> list[ConfigEntry]:
        """Settings of a subscription of client metrics, by name."""
        given = self._image.config(ConfigResource(ResourceType.CLIENT_METRICS, name))
        entries = []
        for _, row in sorted(CLIENT_METRICS_KEYS.items()):
            text = given.get(row.name, row.format(row.default))
            source, synonyms = ConfigSource.DEFAULT_CONFIG, []
            if row.name in given:
                source = ConfigSource.CLIENT_METRICS_CONFIG
                synonyms = [ConfigSynonym(row.name, text, source)]
            entries.append(_own_entry(row, text, source, synonyms))
        return entries


def _overridden(entry: ConfigEntry, text: str) -> ConfigEntry:
    """The entry with the topic's own value, written as Kafka would write it."""
    row = TOPIC_KEYS[entry.name]
    try:
        shown = row.format(row.parse(text))
    except InvalidConfigError:
        # Accepted by an earlier release: show what is stored.
        shown = text
    value = None if row.secret else shown
    own = ConfigSynonym(entry.name, value, ConfigSource.TOPIC_CONFIG)
    return replace(entry, value=value, source=own.source, synonyms=[own, *entry.synonyms])


def _own_entry(
    row: ConfigKey, text: str | None, source: ConfigSource, synonyms: list[ConfigSynonym]
) -> ConfigEntry:
    return ConfigEntry(row.name, text, source, False, False, synonyms, int(row.wire_type), row.text)
