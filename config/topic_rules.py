"""Which settings of a topic may not stand beside each other.

Source: Kafka 4.2, LogConfig.java; KIP-405, KIP-950.
"""

from collections.abc import Mapping
from typing import Any

from config.errors import InvalidConfigError
from config.kinds import refusal

AS_TOTAL = -2
"""`local.retention.*`: the same as the topic's whole retention."""

NO_LIMIT = -1


def check_combinations(values: Mapping[str, Any], *, remote_storage_system_enabled: bool) -> None:
    """Check the values of one topic, all of them, by field name, against each other.

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


def _check_tiered(values: Mapping[str, Any], remote_storage_system_enabled: bool) -> None:
    if not remote_storage_system_enabled:
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if values["cleanup_policy"] not in (frozenset(), frozenset({"delete"})):
        raise InvalidConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or "
            "cleanup.policy being an empty list."
        )
    for unit in ("bytes", "ms"):
        local, total = values[f"local_retention_{unit}"], values[f"retention_{unit}"]
        local_key, total_key = f"local.retention.{unit}", f"retention.{unit}"
        if local == AS_TOTAL:
            continue
        if total > NO_LIMIT:
            if local == NO_LIMIT:
                problem = f"Value must not be -1 as {total_key} value is set as {total}."
                raise InvalidConfigError(refusal(local_key, local, problem))
            if local > total:
                problem = f"Value must not be more than {total_key} property value: {total}"
                raise InvalidConfigError(refusal(local_key, local, problem))
        if values["remote_log_copy_disable"] and local != total:
            # Nothing more is copied: what local retention drops would be gone for good.
            raise InvalidConfigError(
                f"With remote.log.copy.disable=true, {local_key} must be -2 or equal to {total_key}"
            )
