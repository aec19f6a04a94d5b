"""Rules between settings of a topic.

Source: Kafka 4.2, LogConfig.java; KIP-405, KIP-950.
"""

from collections.abc import Mapping
from typing import Any

from config.errors import InvalidConfigError
from config.kinds import refusal

AS_TOTAL = -2
"""`local.retention.*`: the same as the topic's whole retention."""

NO_LIMIT = -1


def check_combinations(
    values: Mapping[str, Any],
    *,
    remote_storage_system_enabled: bool,
    was_tiered: bool = False,
) -> None:
    """Check the values of one topic, all of them, by field name, against each other.

    Args:
        values: As they would be.
        remote_storage_system_enabled: The broker has remote storage.
        was_tiered: `remote.storage.enable` is true on the topic as it is now.

    Raises:
        InvalidConfigError: With Kafka's sentence.
    """
    shortest, longest = values["min_compaction_lag_ms"], values["max_compaction_lag_ms"]
    if shortest > longest:
        raise InvalidConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    if values["remote_storage_enable"]:
        _check_tiered(values, remote_storage_system_enabled)
    elif was_tiered and not values["remote_log_delete_on_disable"]:
        raise InvalidConfigError(
            "It is invalid to disable remote storage without deleting remote data. "
            "If you want to keep the remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. "
            "If you want to disable remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )


def check_local_retention(values: Mapping[str, Any]) -> None:
    """Refuse to keep more on local disk than in all.

    Raises:
        InvalidConfigError: With Kafka's sentence.
    """
    for unit in ("bytes", "ms"):
        local, total = values[f"local_retention_{unit}"], values[f"retention_{unit}"]
        local_key, total_key = f"local.retention.{unit}", f"retention.{unit}"
        if local == AS_TOTAL or total <= NO_LIMIT:
            continue
        if local == NO_LIMIT:
            problem = f"Value must not be -1 as {total_key} value is set as {total}."
            raise InvalidConfigError(refusal(local_key, local, problem))
        if local > total:
            problem = f"Value must not be more than {total_key} property value: {total}"
            raise InvalidConfigError(refusal(local_key, local, problem))


def check_stored(values: Mapping[str, Any], *, remote_storage_system_enabled: bool) -> None:
    """Refuse a start without remote storage while a topic has its history there.

    Raises:
        InvalidConfigError: With Kafka's sentence.
    """
    if values["remote_storage_enable"] and not remote_storage_system_enabled:
        raise InvalidConfigError(
            "You have to delete all topics with the property remote.storage.enable=true before "
            "disabling tiered storage cluster-wide"
        )


def _check_tiered(values: Mapping[str, Any], remote_storage_system_enabled: bool) -> None:
    if not remote_storage_system_enabled:
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if values["cleanup_policy"] not in ((), ("delete",)):
        raise InvalidConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or "
            "cleanup.policy being an empty list."
        )
    check_local_retention(values)
    if not values["remote_log_copy_disable"]:
        return
    for unit in ("bytes", "ms"):
        local, total = values[f"local_retention_{unit}"], values[f"retention_{unit}"]
        if local not in (AS_TOTAL, total):
            # Nothing more is copied: what local retention drops would be gone for good.
            raise InvalidConfigError(
                f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and "
                f"`retention.{unit}` must be set to the identical value because there will be no "
                "more logs copied to the remote storage."
            )
