"""Assembly of the storage manager from store and keys, for either process."""

import asyncio
import os
import tempfile

from config.tier import TierConfig
from config.version import VERSION
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from tiered.format.key_ring import KeyRing
from tiered.open_store import open_store
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.worker.loop_timer import LoopTimer


def build_tier(settings: TierConfig) -> RemoteStorageManager:
    """Ready for calls; key files have been read, the store has been asked nothing yet.

    Raises:
        RemoteStorageError: The settings name no store, or keys that cannot be used.
        DiskError: A key file cannot be read.
    """
    environment = Environment(
        clock=SystemClock(),
        timer=LoopTimer(),
        filesystem=LocalFilesystem(),
        randomness=SystemRandomness(),
        run_blocking=asyncio.to_thread,
    )
    filesystem, randomness = environment.filesystem, environment.randomness
    return RemoteStorageManager(
        open_store(settings.store, filesystem, environment.clock, randomness),
        settings,
        KeyRing.load(settings, filesystem, randomness),
        environment=environment,
        spool_directory=spool_directory(settings),
        software=f"varve {VERSION}",
    )


def spool_directory(settings: TierConfig) -> str:
    """Where compressed segments wait: on the disk of a cache, whose scans leave folders alone."""
    cache = settings.rsm_config_fetch_chunk_cache_path or settings.tier_index_cache_path
    return os.path.join(cache or tempfile.gettempdir(), "spool")
