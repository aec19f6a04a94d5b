"""Work of a command on a node that does not run: its directories are locked meanwhile."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from cli.connection import CommandError

if TYPE_CHECKING:
    from broker.node.node_store import NodeStore
    from config.broker import BrokerConfig

_T = TypeVar("_T")


def with_stopped_node(settings: "BrokerConfig", work: "Callable[[NodeStore], Awaitable[_T]]") -> _T:
    """The result of `work` for the node of these settings.

    Raises:
        CommandError: It runs, its store or disks refuse, or none of its log directories exists: to
            lock one would make it, and an empty one says something to the next start.
    """
    if not any(map(os.path.isdir, settings.log_dirs)):
        raise CommandError(f"there is no log directory {', '.join(settings.log_dirs)}")
    from broker.controller.images.metadata_records import MetadataFormatError
    from broker.controller.store.metadata_store import StoreError
    from broker.node.stopped_node import stopped_node
    from broker.node.store_file import NodeStoreError
    from broker.runtime.startup_errors import StartupError
    from storage.errors import StorageError

    async def do() -> _T:
        async with stopped_node(settings) as node:
            return await work(node)

    try:
        return asyncio.run(do())
    except (
        MetadataFormatError,
        NodeStoreError,
        StartupError,
        StorageError,
        StoreError,
    ) as error:
        raise CommandError(str(error)) from error
