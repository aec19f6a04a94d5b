"""`varve dirs`: look after a node's log directories. No broker may run on them.

    adopt    a metadata store from the partitions that are there, where there is none

Exit status: 0 done, 1 a broker runs, or there is nothing to do it with, 2 refused settings.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from cli.connection import CommandError, exit_status
from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report
from cli.table import counted

if TYPE_CHECKING:
    from broker.node_store import NodeStore
    from config.broker import BrokerConfig

_T = TypeVar("_T")

ADOPT: Final = (
    "make a metadata store from the partitions in log.dirs: those of a Kafka whose settings are "
    "not here, or of a node whose store is lost for good. Topics keep their ids, records and "
    "offsets; of topics whose settings are not known nothing is deleted or compacted until "
    "settings are given"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    choices = parser.add_subparsers(title="actions", dest="action", required=True, metavar="ACTION")
    adopt = choices.add_parser("adopt", help=ADOPT.split(":")[0], description=f"{ADOPT}.")
    add_settings_arguments(adopt)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    return exit_status(lambda: _adopt(loaded.broker))


def _adopt(settings: "BrokerConfig") -> int:
    topics = with_stopped_node(settings, lambda node: node.adopt())
    print(f"took over {counted(topics, 'topic')}; `varve serve` with the same settings serves them")
    return 0


def with_stopped_node(settings: "BrokerConfig", work: "Callable[[NodeStore], Awaitable[_T]]") -> _T:
    """What `work` gives for the node of these settings.

    Raises:
        CommandError: It runs, or its store or disks refuse.
    """
    from broker.controller.metadata_records import MetadataFormatError
    from broker.controller.metadata_store import StoreError
    from broker.node_store import NodeStoreError
    from broker.stopped_node import stopped_node
    from storage.errors import StorageError

    async def do() -> _T:
        async with stopped_node(settings) as node:
            return await work(node)

    try:
        return asyncio.run(do())
    except (StorageError, StoreError, NodeStoreError, MetadataFormatError) as error:
        raise CommandError(str(error)) from error
