"""`varve metadata`: move the metadata of a node between its own file and a cluster's store.

    varve metadata copy --from sqlite:./data --to etcd://127.0.0.1:2379
    varve metadata copy --from etcd://127.0.0.1:2379 --to sqlite:./data
    varve metadata copy --from sqlite:./data --to unix:/path/of/varve-brokers.sock

No broker may run meanwhile. Broken off, the same command goes on; run again, it does nothing.

Exit status: 0 done, 1 refused, 2 mistaken options.
"""

import argparse
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from cli.connection import CommandError, complain, exit_status
from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report
from cli.stopped_node import with_stopped_node
from cli.table import counted

if TYPE_CHECKING:
    from broker.node.node_store import NodeStore
    from broker.offline.to_cluster import CopyReport
    from config.broker import BrokerConfig

COPY: Final = (
    "copy a stopped node's metadata to an empty store of a cluster, whose first broker it becomes; "
    "or back, while all partitions are on that one broker alone"
)

SQLITE: Final = "sqlite:"
UNIX: Final = "unix:"
_SCHEMES: Final = {
    "etcd:http://": "etcd://",
    "etcd:https://": "etcds://",
    "etcds:https://": "etcds://",
    "etcds://": "etcds://",
    "etcd://": "etcd://",
    "etcds:": "etcds://",
    "etcd:": "etcd://",
}


class Place(NamedTuple):
    """One end of a copy: log directories of a node, or the address of a cluster's store."""

    directories: tuple[str, ...] = ()
    address: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    choices = parser.add_subparsers(title="actions", dest="action", required=True, metavar="ACTION")
    copy = choices.add_parser("copy", help=COPY.split(";")[0], description=f"{COPY}.")
    for name, dest in (("--from", "source"), ("--to", "target")):
        copy.add_argument(
            name,
            dest=dest,
            type=place,
            required=True,
            metavar="PLACE",
            help="sqlite:DIR, all log directories of the node as sqlite:DIR,DIR; or "
            "etcd://HOST:PORT,..., etcds:// with TLS; or unix:PATH of a socket",
        )
    add_store_arguments(copy)
    add_settings_arguments(copy)


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare short forms of the settings of a cluster's store."""
    parser.add_argument("--prefix", help="metadata.store.prefix of the cluster")
    parser.add_argument("--username", metavar="NAME", help="metadata.store.username")
    parser.add_argument("--password-file", metavar="FILE", help="metadata.store.password.file")


def store_assignments(args: argparse.Namespace) -> list[str]:
    """What the short forms set."""
    given = {
        "metadata.store.prefix": args.prefix,
        "metadata.store.username": args.username,
        "metadata.store.password.file": args.password_file,
    }
    return [f"{key}={value}" for key, value in given.items() if value is not None]


def place(text: str) -> Place:
    """One end of a copy, as an option names it."""
    if text.startswith(SQLITE):
        words = [word.strip() for word in text.removeprefix(SQLITE).split(",")]
        if not all(words):
            raise argparse.ArgumentTypeError(f"{text!r} names no directory")
        return Place(directories=tuple(word.removeprefix("//") for word in words))
    return Place(address=store_address(text))


def store_address(text: str) -> str:
    """An address of a cluster's store, as `metadata.store` has it."""
    if text.startswith(UNIX):
        return UNIX + os.path.abspath(text.removeprefix(UNIX))
    for prefix, scheme in _SCHEMES.items():
        rest = text.removeprefix(prefix)
        if text.startswith(prefix) and rest:
            return scheme + rest.rstrip("/")
    raise argparse.ArgumentTypeError(
        f"{text!r} is neither sqlite:DIR nor etcd://HOST:PORT nor etcds://HOST:PORT nor unix:PATH"
    )


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    ends = (args.source, args.target)
    node = next((end for end in ends if end.directories), None)
    cluster = next((end for end in ends if end.address), None)
    if node is None or cluster is None:
        complain("one of --from and --to is a node (sqlite:), the other a cluster (etcd://, unix:)")
        return BAD_SETTINGS
    args.assignments += [
        f"metadata.store={cluster.address}",
        f"log.dirs={','.join(node.directories)}",
        *store_assignments(args),
    ]
    if not any(text.startswith("node.id=") for text in args.assignments):
        args.assignments += _node_id(node.directories)
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    settings = loaded.broker
    if args.source.directories:
        return exit_status(lambda: _to_cluster(settings))
    return exit_status(lambda: _to_single_node(settings))


def _node_id(directories: tuple[str, ...]) -> list[str]:
    """The node's id as its directories say it, for settings that need not name it."""
    from storage.checkpoints.meta_properties import META_PROPERTIES, read_meta_properties
    from storage.environment.local_filesystem import LocalFilesystem
    from storage.errors import StorageError

    for directory in directories:
        try:
            meta = read_meta_properties(LocalFilesystem(), os.path.join(directory, META_PROPERTIES))
        except StorageError:
            continue
        if meta is not None and meta.node_id is not None:
            return [f"node.id={meta.node_id}"]
    return []


def _to_cluster(settings: "BrokerConfig") -> int:
    from broker.node.moved_note import MovedNote

    report = _copy(settings, to_cluster=True)
    what = f"{counted(report.topics, 'topic')}, {counted(report.partitions, 'partition')}"
    print(
        f"copied {counted(report.keys, 'key')}: {what}"
        if report.keys
        else f"all was copied before: {what}"
    )
    if not report.was_clean:
        print("the node was not stopped cleanly: its logs are recovered at its next start")
    moved = MovedNote(str(settings.metadata_store), settings.metadata_store_prefix)
    print(
        f"node {report.node_id} is the first broker of a cluster now: start it with "
        f"{moved.settings}"
    )
    print("topics keep their replicas: `varve cluster reassign` gives them more")
    return 0


def _to_single_node(settings: "BrokerConfig") -> int:
    report = _copy(settings, to_cluster=False)
    print(f"copied {counted(report.topics, 'topic')}, {counted(report.partitions, 'partition')}")
    print(f"node {report.node_id} is alone now: start it with metadata.store=sqlite")
    return 0


def _copy(settings: "BrokerConfig", *, to_cluster: bool) -> "CopyReport":
    """Copy in one direction.

    Raises:
        CommandError: A broker runs, a store or a disk refuses, or the copy would not be whole.
    """
    from broker.node.moved_note import MovedNote
    from broker.offline.opening import cluster_store
    from broker.offline.to_cluster import CopyRefusedError, CopyToCluster
    from broker.offline.to_single_node import CopyToSingleNode

    async def copy(node: "NodeStore") -> "CopyReport":
        async with cluster_store(settings) as store:
            if to_cluster:
                note = MovedNote(str(settings.metadata_store), settings.metadata_store_prefix)
                return await CopyToCluster(node, store, note).run()
            return await CopyToSingleNode(node, store).run()

    for directory in settings.log_dirs:
        if not os.path.isdir(directory):
            raise CommandError(f"{directory} is not a directory")
    try:
        return with_stopped_node(settings, copy)
    except CopyRefusedError as error:
        raise CommandError(str(error)) from error
