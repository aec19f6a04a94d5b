"""A stopped node's log directories and metadata store, for commands that work without a broker.

The directories are locked as a broker would lock them: none can run meanwhile.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from broker.node.node_store import NodeStore
from broker.runtime.timer import TimerWheel
from config.broker import BrokerConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from storage.manager.log_manager import LogManager

T = TypeVar("T")


def metadata_directory_of(settings: BrokerConfig, filesystem: Filesystem) -> LogDirectory | None:
    """`metadata.log.dir`, where it is a directory of its own; not open yet."""
    if not settings.metadata_log_dir:
        return None
    path = os.path.abspath(settings.metadata_log_dir)
    if path in map(os.path.abspath, settings.log_dirs):
        return None
    return LogDirectory(path, filesystem)


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    return await asyncio.to_thread(function, *args)


@asynccontextmanager
async def stopped_node(settings: BrokerConfig) -> AsyncIterator[NodeStore]:
    """Lock the directories of a node that does not run; its store is not open yet.

    Raises:
        StorageError: A broker runs on them, or no directory works.
    """
    filesystem, clock, randomness = LocalFilesystem(), SystemClock(), SystemRandomness()
    log_dirs = list(map(os.path.abspath, settings.log_dirs))
    log_manager = LogManager(
        Environment.without_loop(clock=clock, filesystem=filesystem, randomness=randomness),
        log_dirs,
    )
    metadata_directory = metadata_directory_of(settings, filesystem)
    timer = TimerWheel(asyncio.get_running_loop(), clock)
    try:
        await asyncio.to_thread(log_manager.startup.open_directories)
        if metadata_directory is not None:
            await asyncio.to_thread(metadata_directory.open)
        yield NodeStore(
            settings,
            log_manager.directories,
            metadata_directory,
            Environment(
                clock=clock,
                timer=timer,
                filesystem=filesystem,
                randomness=randomness,
                run_blocking=_in_thread,
            ),
        )
    finally:
        for directory in (*log_manager.directories, metadata_directory):
            if directory is not None:
                directory.close(mark_clean=False)
        timer.close()
