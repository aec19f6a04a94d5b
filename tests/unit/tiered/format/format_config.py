"""Settings of how segments are stored, for worlds whose tests name them shortly."""

from typing import Any

from config.tier import TierConfig

_FIELDS = {
    "chunk_bytes": "rsm_config_chunk_size",
    "compression": "rsm_config_compression_enabled",
    "compression_heuristic": "rsm_config_compression_heuristic_enabled",
    "compression_level": "tier_compression_level",
    "encryption": "rsm_config_encryption_enabled",
    "key_pair_id": "rsm_config_encryption_key_pair_id",
    "key_pairs": "rsm_config_encryption_key_pairs_files",
}


def format_config(**settings: Any) -> TierConfig:
    """`TierConfig` of the fields that `_FIELDS` names."""
    return TierConfig(**{_FIELDS[name]: value for name, value in settings.items()})
