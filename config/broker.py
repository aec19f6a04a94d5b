"""Settings of the broker: the sections, joined, and what follows from several of them."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from config.definition import ConfigKey
from config.listeners import Listener
from config.sections.cleaner import CleanerSettings
from config.sections.cluster import ClusterSettings
from config.sections.groups import GroupSettings
from config.sections.log import LogSettings
from config.sections.network import NetworkSettings
from config.sections.node import NodeSettings
from config.sections.remote import RemoteLogSettings
from config.sections.remote_storage import RemoteStorageSettings
from config.sections.replication import ReplicationSettings
from config.sections.share import ShareSettings
from config.sections.share_groups import ShareGroupSettings
from config.sections.tier import TierOwnSettings
from config.sections.transactions import TransactionSettings
from config.tier import TierConfig

SECTIONS = (
    NodeSettings,
    NetworkSettings,
    LogSettings,
    CleanerSettings,
    GroupSettings,
    TransactionSettings,
    ShareGroupSettings,
    ShareSettings,
    ClusterSettings,
    ReplicationSettings,
    RemoteLogSettings,
    RemoteStorageSettings,
    TierOwnSettings,
)


class BrokerConfig(
    TierConfig,
    ReplicationSettings,
    ClusterSettings,
    ShareSettings,
    ShareGroupSettings,
    TransactionSettings,
    GroupSettings,
    CleanerSettings,
    LogSettings,
    NetworkSettings,
    NodeSettings,
):
    """All settings of one broker; `BrokerConfig()` is all defaults.

    `model_fields_set` has those that were given rather than defaulted. Old names that were given
    are carried over to their new ones (`broker.id` to `node.id`, `log.dir` to `log.dirs`).
    """

    @model_validator(mode="before")
    @classmethod
    def _carry_over_old_names(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        carried = dict(values)
        if carried.get("broker_id", -1) != -1:
            carried.setdefault("node_id", carried["broker_id"])
        if carried.get("log_dir") is not None:
            carried.setdefault("log_dirs", carried["log_dir"])
        return carried

    @property
    def listeners_for_clients(self) -> tuple[Listener, ...]:
        """What Metadata reports: `advertised.listeners`, else `listeners` (a host may be empty)."""
        return self.advertised_listeners or self.listeners

    def protocol_of(self, listener_name: str) -> str | None:
        """Security protocol of a listener, None when the map does not have it."""
        return self.listener_security_protocol_map.get(listener_name)

    def topic_default(self, topic_key: ConfigKey) -> object:
        """Value a topic has on this broker when it has no override of its own."""
        for synonym in topic_key.synonyms:
            value = getattr(self, BROKER_KEYS[synonym.key].field_name)
            if value is None:
                continue
            if synonym.factor != 1:
                return value * synonym.factor if value >= 0 else value
            return value
        return topic_key.default

    def replace(self, **values: object) -> Self:
        """A copy with some fields replaced, by field name; for tests and tools."""
        return self.with_values(values)


BROKER_KEYS: Mapping[str, ConfigKey] = {
    name: row for section in SECTIONS for name, row in section.rows().items()
}
"""Every broker key by Kafka's name, section by section."""
