"""Dynamic config rules: what may be set at run time, on which resource, and its effect.

    resource        name         what may be set
    TOPIC           topic        the topic keys
    BROKER          node id      keys Kafka marks as dynamic; unknown ones are kept and not used,
                                 those of Kafka that would be relied on are refused
    BROKER          (empty)      the same for all brokers, without what only makes sense for one
    GROUP           group id     the group keys
    CLIENT_METRICS  any          the client metrics keys

A broker uses, strongest first: what is set on it, what is set on all brokers, what it was started
with, the default. Every refusal is an `ApiError` with Kafka's code and sentence.

Source: Kafka 4.2, ConfigurationControlManager.java, ControllerConfigurationValidator.scala,
ConfigAdminManager.scala, DynamicBrokerConfig.scala.
"""

import enum
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.controller.configs.resource_configs import (
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    InvalidResourceConfigError,
    check_client_metrics_config,
    check_group_config,
)
from broker.controller.images.cluster_image import ClusterImage, ConfigResource, ResourceType
from broker.controller.images.metadata_records import config_key, encode_config
from broker.controller.images.topic_names import name_problem
from broker.controller.topics.tiered_topics import (
    check_may_be_tiered,
    check_metadata_settings,
    own_overrides,
)
from broker.runtime.errors import ApiError
from config.broker import BROKER_KEYS, BrokerConfig
from config.broker_rules import conflicts
from config.definition import ConfigKey
from config.errors import InvalidConfigError
from config.foreign import is_fixed, is_refused_at_run_time
from config.kinds import WireType
from config.topic import TOPIC_KEYS, is_tiered, validate_topic_overrides
from protocol.error_codes import ErrorCode

LOGGER = logging.getLogger(__name__)

CONFIG_VALUE_LENGTH_MAX: Final = 32_767
"""Longest value in characters, as in Kafka."""

SETTINGS_PER_RESOURCE_MAX: Final = 1000
"""Keys one resource may have; reached only with unknown broker keys."""

PER_BROKER_KEYS: Final = frozenset({"listener.security.protocol.map", "listeners"})
"""Dynamic keys that cannot be set on all brokers at once."""

BETWEEN_BROKERS: Final = "PLAINTEXT"
"""Listener that other brokers call unless `inter.broker.listener.name` names one."""

MIN_ISR: Final = "min.insync.replicas"
"""Set on all brokers from the beginning, as in every cluster that Kafka 4.1 or later has made:
there it decides which replicas may lead, and single brokers must not see it differently."""

THREAD_COUNT_KEYS: Final = frozenset(
    {
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
"""Pools that are resized in steps: at least half, at most double of what they have."""

CLEANER_THREADS: Final = "log.cleaner.threads"
"""Resized in such steps, too; Kafka has other sentences for it."""

NOBODY_CONNECTS: Final = ("max.connections", "max.connection.creation.rate")
"""With 0 nobody could connect any more, also not who would set it back."""


class Operation(enum.IntEnum):
    """What IncrementalAlterConfigs does with a key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigOperation:
    """One step of IncrementalAlterConfigs; `value` is None only for DELETE."""

    name: str
    operation: Operation
    value: str | None = None


class ConfigRules:
    """Judges changes of settings for one broker's start-up settings."""

    def __init__(self, settings: BrokerConfig) -> None:
        self._settings = settings
        self._resolved = settings
        self._resolved_for: Mapping[ConfigResource, Mapping[str, str]] | None = None

    def keys(self, kind: ResourceType) -> Mapping[str, ConfigKey]:
        """Rows of a kind of resource by name."""
        match kind:
            case ResourceType.TOPIC:
                return TOPIC_KEYS
            case ResourceType.BROKER:
                return BROKER_KEYS
            case ResourceType.GROUP:
                return GROUP_KEYS
            case ResourceType.CLIENT_METRICS:
                return CLIENT_METRICS_KEYS
            case ResourceType.BROKER_LOGGER:
                return {}

    def after(
        self,
        resource: ConfigResource,
        current: Mapping[str, str],
        operations: Sequence[ConfigOperation],
    ) -> dict[str, str]:
        """All that would be set on `resource` after `operations`.

        Raises:
            ApiError: INVALID_CONFIG when a list operation is used on a key that is no list.
        """
        settings = dict(current)
        for operation in operations:
            name = operation.name
            match operation.operation:
                case Operation.SET:
                    assert operation.value is not None
                    settings[name] = operation.value
                case Operation.DELETE:
                    settings.pop(name, None)
                case Operation.APPEND | Operation.SUBTRACT:
                    settings[name] = self._edit_list(resource, settings.get(name), operation)
        return settings

    def _edit_list(
        self, resource: ConfigResource, text: str | None, operation: ConfigOperation
    ) -> str:
        row = self.keys(resource.type).get(operation.name)
        if (
            row is None
            or row.wire_type is not WireType.LIST
            # Kafka knows no types of these where it edits lists.
            or resource.type is ResourceType.CLIENT_METRICS
        ):
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {operation.operation.name} to key {operation.name} because its type is "
                "not LIST.",
            )
        if text is None:
            text = row.format(row.default) or ""
        words = [word for word in text.split(",") if word]
        assert operation.value is not None
        for word in _words(operation.value):
            if operation.operation is Operation.APPEND:
                if word not in words:
                    words.append(word)
            elif word in words:
                words.remove(word)
        return ",".join(words)

    def check(
        self,
        resource: ConfigResource,
        new: Mapping[str, str],
        current: Mapping[str, str],
        image: ClusterImage,
    ) -> None:
        """Refuse what must not be set on `resource`; `new` is all of it, `current` what there is.

        Raises:
            ApiError: INVALID_CONFIG, INVALID_REQUEST, INVALID_TOPIC_EXCEPTION.
        """
        for value in new.values():
            if len(value) > CONFIG_VALUE_LENGTH_MAX:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    "The configuration value cannot be added because it exceeds the maximum value "
                    f"size of {CONFIG_VALUE_LENGTH_MAX} bytes.",
                )
        if len(new) > SETTINGS_PER_RESOURCE_MAX:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"More than {SETTINGS_PER_RESOURCE_MAX} settings on one resource.",
            )
        try:
            self._check_by_type(resource, new, current, image)
        except InvalidConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
        except InvalidResourceConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error

    def _check_by_type(
        self,
        resource: ConfigResource,
        new: Mapping[str, str],
        current: Mapping[str, str],
        image: ClusterImage,
    ) -> None:
        match resource.type:
            case ResourceType.TOPIC:
                if not resource.name:
                    raise InvalidResourceConfigError("Default topic resources are not allowed.")
                problem = name_problem(resource.name)
                if problem is not None:
                    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
                check_may_be_tiered(resource.name, new, current)
                if resource.name in image.topics:
                    check_metadata_settings(resource.name, new, current)
                # Of a topic that may not be tiered, what stands there has no effect.
                new = own_overrides(resource.name, new)
                current = own_overrides(resource.name, current)
                if new:
                    validate_topic_overrides(new, self.effective(image), current=current)
                elif is_tiered(current):
                    # Nothing is left, so also nothing that allows to leave remote storage.
                    validate_topic_overrides({}, self.effective(image), current=current)
            case ResourceType.BROKER:
                self._check_broker(resource.name, new, current, image)
            case ResourceType.GROUP:
                if not resource.name:
                    raise InvalidResourceConfigError("Default group resources are not allowed.")
                check_group_config(new, self._settings)
            case ResourceType.CLIENT_METRICS:
                check_client_metrics_config(resource.name, new)
            case ResourceType.BROKER_LOGGER:
                raise InvalidResourceConfigError(f"Unknown resource type {resource.type.name}")

    def _check_broker(
        self,
        name: str,
        new: Mapping[str, str],
        current: Mapping[str, str],
        image: ClusterImage,
    ) -> None:
        check_broker_name(name, image.brokers or (self._settings.node_id,))
        changed = [key for key in new if new[key] != current.get(key)]
        static = [key for key in new if key in BROKER_KEYS and not BROKER_KEYS[key].dynamic]
        # Some releases have kept them as unknown: that must not stand in the way of other changes.
        static += [key for key in changed if is_fixed(key)]
        if static:
            raise InvalidResourceConfigError(
                f"Cannot update these configs dynamically: {', '.join(static)}"
            )
        absent = [key for key in changed if is_refused_at_run_time(key, new[key])]
        if absent:
            # A value may be a password: it is not repeated.
            raise InvalidResourceConfigError(
                f"Kafka has these settings, Varve does not support them yet: {', '.join(absent)}"
            )
        try:
            values = {key: BROKER_KEYS[key].parse(new[key]) for key in new if key in BROKER_KEYS}
        except InvalidConfigError as error:
            # Kafka answers INVALID_REQUEST here, not INVALID_CONFIG (KAFKA-13609).
            raise InvalidResourceConfigError(str(error)) from error
        if new.get(MIN_ISR) != current.get(MIN_ISR):
            if name:
                raise InvalidConfigError(
                    f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
                )
            if MIN_ISR not in new:
                raise InvalidConfigError(
                    f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
                )
        if not name:
            single = [key for key in new if key in PER_BROKER_KEYS]
            if single:
                raise InvalidResourceConfigError(
                    "Cannot update these configs at default cluster level, broker id must be "
                    f"specified: {', '.join(single)}"
                )
        for key in NOBODY_CONNECTS:
            if key in changed and values[key] == 0:
                raise InvalidResourceConfigError(f"Invalid {key} 0")
        if name and name != str(self._settings.node_id):
            # What another broker was started with only that broker knows: it has judged this.
            return
        effective = self.effective(image)
        changed_image = image.updated(
            [(config_key(ConfigResource(ResourceType.BROKER, name)), encode_config(new))],
            image.revision,
        )
        after = effective_settings(self._settings, changed_image)
        _check_listeners(effective, after)
        for key in THREAD_COUNT_KEYS.intersection(changed):
            _check_thread_count(key, values[key], getattr(effective, BROKER_KEYS[key].field_name))
        if CLEANER_THREADS in changed:
            _check_cleaner_threads(values[CLEANER_THREADS], effective.log_cleaner_threads)
        _check_together(effective, after, image)

    def effective(self, image: ClusterImage) -> BrokerConfig:
        """This broker's settings with what was set at run time, on all brokers and on it."""
        if image.configs is not self._resolved_for:
            self._resolved = effective_settings(self._settings, image)
            self._resolved_for = image.configs
        return self._resolved


def _words(text: str) -> list[str]:
    """The words of a list, as Java splits it: none that is empty at its end, but for no text."""
    if not text:
        return [""]
    words = text.split(",")
    while words and not words[-1]:
        words.pop()
    return words


def effective_settings(settings: BrokerConfig, image: ClusterImage) -> BrokerConfig:
    """`settings` with what was set at run time, on all brokers and then on this one.

    A value an earlier release accepted and this one does not is left out.
    """
    values: dict[str, object] = {}
    for name in ("", str(settings.node_id)):
        for key, text in image.config(ConfigResource(ResourceType.BROKER, name)).items():
            row = BROKER_KEYS.get(key)
            if row is not None and row.dynamic:
                try:
                    values[row.field_name] = row.parse(text)
                except InvalidConfigError as error:
                    LOGGER.warning("dynamic config ignored key=%s error=%s", key, error)
    return settings.replace(**values) if values else settings


def check_broker_name(name: str, nodes: Collection[int]) -> None:
    """Refuse settings for another broker than those there are; empty means all brokers.

    Args:
        name: Of the resource.
        nodes: Ids of the registered brokers, at least one.

    Raises:
        ApiError: INVALID_REQUEST. Clients send these to the broker that is named.
    """
    if not name:
        return
    # As Java reads an int: a sign and ASCII digits, nothing around them.
    if not (name.isascii() and name.removeprefix("-").removeprefix("+").isdecimal()):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name not in map(str, nodes):
        expected = " or ".join(map(str, sorted(nodes)))
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {expected}, but received {name}",
        )


def _check_listeners(before: BrokerConfig, after: BrokerConfig) -> None:
    """Refuse to change what clients that are connected rely on.

    Source: Kafka, DynamicBrokerConfig.scala (DynamicListenerConfig.validateReconfiguration).
    """
    old = {listener.name for listener in before.listeners}
    new = {listener.name for listener in after.listeners}
    for name in sorted(old & new):
        if before.protocol_of(name) not in (None, after.protocol_of(name)):
            raise InvalidResourceConfigError(
                f"Security protocol cannot be updated for existing listener {name}"
            )
    between_brokers = (after.inter_broker_listener_name or BETWEEN_BROKERS).upper()
    if between_brokers in old - new:
        raise InvalidResourceConfigError(
            f"Advertised listener must be specified for inter-broker listener {between_brokers}"
        )


def _check_together(before: BrokerConfig, after: BrokerConfig, image: ClusterImage) -> None:
    """Refuse settings that contradict each other, or what is set on a topic.

    What contradicted itself before (a start with odd settings) does not count against the change.
    """
    known = set(conflicts(before))
    for conflict in conflicts(after):
        if conflict not in known:
            raise InvalidResourceConfigError(f"{conflict.key} {conflict.problem}")
    for topic in image.topics.values():
        if topic.overrides:
            try:
                validate_topic_overrides(own_overrides(topic.name, topic.overrides), after)
            except InvalidConfigError as error:
                raise InvalidResourceConfigError(
                    f"Contradicts what is set on topic {topic.name}: {error}"
                ) from error


def _check_thread_count(key: str, new: object, old: int) -> None:
    assert isinstance(new, int)
    prefix = f"Dynamic thread count update validation failed for {key}={new}"
    if new <= 0:
        raise InvalidResourceConfigError(f"{prefix}, value should be at least 1")
    if new < old // 2:
        raise InvalidResourceConfigError(
            f"{prefix}, value should be at least half the current value {old}"
        )
    if new > old * 2:
        raise InvalidResourceConfigError(
            f"{prefix}, value should not be greater than double the current value {old}"
        )


def _check_cleaner_threads(new: object, old: int) -> None:
    """Source: Kafka, LogCleaner.java (validateReconfiguration)."""
    assert isinstance(new, int)
    if new < 1:
        raise InvalidResourceConfigError("Log cleaner threads should be at least 1")
    if new < old // 2:
        raise InvalidResourceConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {old}"
        )
    # Without a cleaner a start takes 0.
    if new > max(old, 1) * 2:
        raise InvalidResourceConfigError(
            f"Log cleaner threads cannot be increased to more than double the current value {old}"
        )
