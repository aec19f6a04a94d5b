"""`varve dirs`: the log directories of a node. No broker may run on them.

    list     those that the node knows, and which are here
    drop     one that is lost: its partitions start empty
    adopt    a metadata store from the partitions that are there, where there is none

Exit status: 0 done, 1 a broker runs, or there is nothing to do it with, 2 refused settings.
"""

import argparse
from typing import TYPE_CHECKING, Final

from cli.connection import exit_status
from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report
from cli.stopped_node import with_stopped_node
from cli.table import Cell, counted, format_table

if TYPE_CHECKING:
    from uuid import UUID

    from config.broker import BrokerConfig

LIST: Final = "log directories that the node knows, with what they hold and whether they are here"

DROP: Final = (
    "drop a log directory that is lost for good: its partitions start empty, in another "
    "leader epoch, at the next start. Should it turn up again, what it has is set aside"
)

ADOPT: Final = (
    "make a metadata store from the partitions in log.dirs: those of a Kafka whose settings are "
    "not here, or of a node whose store is lost for good. Topics keep their ids, records and "
    "offsets; of topics whose settings are not known nothing is deleted or compacted until "
    "settings are given"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    choices = parser.add_subparsers(title="actions", dest="action", required=True, metavar="ACTION")
    known = choices.add_parser("list", help=LIST, description=f"{LIST.capitalize()}.")
    add_settings_arguments(known)
    drop = choices.add_parser("drop", help=DROP.split(":")[0], description=f"{DROP}.")
    drop.add_argument("directory", metavar="ID", type=_directory_id, help="as `list` shows it")
    add_settings_arguments(drop)
    adopt = choices.add_parser("adopt", help=ADOPT.split(":")[0], description=f"{ADOPT}.")
    add_settings_arguments(adopt)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    settings = loaded.broker
    if args.action == "list":
        return exit_status(lambda: _list(settings))
    if args.action == "drop":
        return exit_status(lambda: _drop(settings, args.directory))
    return exit_status(lambda: _adopt(settings))


def _directory_id(text: str) -> "UUID":
    from storage.types.uuid_text import parse_uuid

    try:
        return parse_uuid(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _list(settings: "BrokerConfig") -> int:
    from storage.types.uuid_text import format_uuid

    known = with_stopped_node(settings, lambda node: node.known_directories())
    rows: list[list[Cell]] = [
        [format_uuid(one.id), one.path or None, one.partitions, one.state] for one in known
    ]
    print(format_table(("ID", "PATH", "PARTITIONS", "STATE"), rows))
    return 0


def _drop(settings: "BrokerConfig", directory_id: "UUID") -> int:
    count = with_stopped_node(settings, lambda node: node.drop(directory_id))
    how = "follow their leaders" if settings.metadata_store.is_shared else "in a new leader epoch"
    print(f"dropped; {counted(count, 'partition')} of it start empty, {how}, at the next start")
    return 0


def _adopt(settings: "BrokerConfig") -> int:
    topics = with_stopped_node(settings, lambda node: node.adopt())
    print(f"imported {counted(topics, 'topic')}; `varve serve` with the same settings serves them")
    return 0
