"""Rules for the caches' directories: none that holds what cannot be fetched again.

    log directory          /data                     a cache may not be it, nor /, which holds it
      its default places   /data/remote-log-index-cache, /data/varve-chunk-cache     these may
      anything else in it  /data/cache, /data/t-0    may not: it is for partitions
    object store's root    /store                    not it, nothing that holds it, nothing in it
    the other cache                                  as the root

Paths are compared as the operating system sees them: relative ones from the working directory,
symbolic links followed.
"""

import os
from collections.abc import Iterator
from posixpath import commonpath, join
from typing import TYPE_CHECKING, Final

from config.conflict import Conflict
from config.sections.remote_storage import S3

if TYPE_CHECKING:
    from config.broker import BrokerConfig

OBJECTS_DIRECTORY: Final = "varve-objects"
INDEX_CACHE_DIRECTORY: Final = "remote-log-index-cache"
CHUNK_CACHE_DIRECTORY: Final = "varve-chunk-cache"

_INDEX_KEY: Final = "tier.index.cache.path"
_CHUNK_KEY: Final = "rsm.config.fetch.chunk.cache.path"
_EXPECTED: Final = "a directory of its own"


def cache_conflicts(broker: "BrokerConfig") -> Iterator[Conflict]:
    """A sentence for each cache that must not be where it is said to be."""
    log_dirs = [os.path.realpath(path) for path in broker.log_dirs]
    given = {
        _INDEX_KEY: (broker.tier_index_cache_path, INDEX_CACHE_DIRECTORY),
        _CHUNK_KEY: (broker.rsm_config_fetch_chunk_cache_path, CHUNK_CACHE_DIRECTORY),
    }
    places = {
        key: os.path.realpath(path or join(broker.log_dirs[0], name))
        for key, (path, name) in given.items()
    }
    for key, (path, name) in given.items():
        if path is not None:
            other = places[_CHUNK_KEY if key == _INDEX_KEY else _INDEX_KEY]
            problem = _among_logs(places[key], log_dirs, name)
            if problem is None and _related(places[key], other):
                problem = f"is, holds or lies in the other cache, {other}"
            if problem is not None:
                yield Conflict(key, f"{path} {problem}", _EXPECTED)
                continue
        if broker.rsm_config_storage_backend_class == S3:
            continue
        root = os.path.realpath(
            broker.rsm_config_storage_root or join(broker.log_dirs[0], OBJECTS_DIRECTORY)
        )
        place = places[key]
        if _holds(place, root) or (path is not None and _holds(root, place)):
            where = "is or holds" if _holds(place, root) else "lies in"
            problem = f"{place} {where} the object store's root, {root}"
            yield Conflict(key if path else "rsm.config.storage.root", problem, _EXPECTED)


def _among_logs(place: str, log_dirs: list[str], name: str) -> str | None:
    for log_dir in log_dirs:
        if _holds(place, log_dir):
            return f"is or holds the log directory {log_dir}"
        if _holds(log_dir, place) and place != join(log_dir, name):
            return f"lies in the log directory {log_dir}, where only {name} is kept free for it"
    return None


def _related(one: str, other: str) -> bool:
    return _holds(one, other) or _holds(other, one)


def _holds(folder: str, path: str) -> bool:
    """Whether the path is the folder, or lies below it; both absolute."""
    return commonpath((folder, path)) == folder
