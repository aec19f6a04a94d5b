"""The settings of remote storage out of the broker's, with every path absolute.

A path that is unset lies below one of `log.dirs`, see `tier_home`:

    varve-objects             the filesystem backend's objects
    remote-log-index-cache    indexes of remote segments, as in Kafka
    varve-chunk-cache         pieces of remote segments

None of these names is taken for a partition's directory. Fields keep their names: see
`config.tier.TierConfig`.
"""

import os
from posixpath import join

from config.broker import BrokerConfig
from config.cache_paths import CHUNK_CACHE_DIRECTORY, INDEX_CACHE_DIRECTORY, OBJECTS_DIRECTORY
from config.remote_kinds import KeyFiles
from config.tier import TierConfig
from storage.environment.filesystem import Filesystem


def tier_home(settings: BrokerConfig, filesystem: Filesystem) -> str:
    """The log directory below which remote storage keeps what has no place of its own.

    The one that has objects already, wherever among `log.dirs` it stands now: another order must
    not mean an empty object store. On a new node the first.
    """
    paths = list(map(os.path.abspath, settings.log_dirs))
    having = (path for path in paths if filesystem.exists(os.path.join(path, OBJECTS_DIRECTORY)))
    return next(having, paths[0])


def tier_settings(settings: BrokerConfig, home: str | None = None) -> TierConfig:
    """The settings of remote storage out of the broker's, for this process and the tier's.

    Args:
        settings: The broker's.
        home: See `tier_home`; default: the first of `log.dirs`.
    """
    first = home or os.path.abspath(settings.log_dirs[0])

    def absolute(given: str | None, name: str) -> str:
        return os.path.abspath(given) if given else join(first, name)

    given = {name: getattr(settings, name) for name in TierConfig.model_fields}
    credentials = settings.tier_s3_credentials_file
    given |= {
        "rsm_config_storage_root": absolute(settings.rsm_config_storage_root, OBJECTS_DIRECTORY),
        "tier_index_cache_path": absolute(settings.tier_index_cache_path, INDEX_CACHE_DIRECTORY),
        "rsm_config_fetch_chunk_cache_path": absolute(
            settings.rsm_config_fetch_chunk_cache_path, CHUNK_CACHE_DIRECTORY
        ),
        "tier_s3_credentials_file": os.path.abspath(credentials) if credentials else None,
        "rsm_config_encryption_key_pairs_files": {
            pair: KeyFiles(*(path and os.path.abspath(path) for path in files))
            for pair, files in settings.rsm_config_encryption_key_pairs_files.items()
            if pair in settings.rsm_config_encryption_key_pairs
        },
    }
    return TierConfig(**given)
