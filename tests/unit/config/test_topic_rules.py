"""Settings of tiered topics that contradict each other."""

import pytest

from config.errors import InvalidConfigError
from config.topic import TOPIC_KEYS
from config.topic_rules import check_combinations

DEFAULTS = {row.field_name: row.default for row in TOPIC_KEYS.values()}
TIERED = {**DEFAULTS, "remote_storage_enable": True}


@pytest.mark.parametrize("unit", ["ms", "bytes"])
def test_copying_stops_only_when_local_retention_keeps_everything(unit: str) -> None:
    """Nothing more is copied: what local retention dropped would be gone (KIP-950)."""
    values = {
        **TIERED,
        "remote_log_copy_disable": True,
        f"local_retention_{unit}": 5,
        f"retention_{unit}": 10,
    }
    with pytest.raises(
        InvalidConfigError, match=rf"`retention\.{unit}` must be set to the identical"
    ):
        check_combinations(values, remote_storage_system_enabled=True)
    values[f"local_retention_{unit}"] = 10
    check_combinations(values, remote_storage_system_enabled=True)


def test_a_local_topic_may_carry_any_local_retention() -> None:
    """It means nothing there."""
    values = {**DEFAULTS, "local_retention_ms": 10**12, "retention_ms": 1}
    check_combinations(values, remote_storage_system_enabled=False)


def test_unlimited_retention_allows_any_local_retention() -> None:
    """Everything stays in the remote store."""
    values = {**TIERED, "retention_ms": -1, "local_retention_ms": 1000}
    check_combinations(values, remote_storage_system_enabled=True)
