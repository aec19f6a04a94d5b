"""`varve cluster recover-metadata`: the way out when etcd was restored, emptied, or lost.

    varve cluster recover-metadata --to etcd://HOST:2379 --dirs /data/1 --dirs /data/2,/disk/2
    varve cluster recover-metadata --to etcd://HOST:2379 --dirs ... --execute

Where brokers are on machines of their own, what their directories say is collected there first:

    varve cluster recover-metadata --dirs /data/2 --collect broker-2.json
    varve cluster recover-metadata --to etcd://HOST:2379 --facts broker-1.json --facts broker-2.json

It shows what it would write, and writes only with `--execute`. No broker may run meanwhile.

Exit status: 0 done, or nothing to do; 1 refused; 2 mistaken options.
"""

import argparse
import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from cli.cluster.metadata_copy import add_store_arguments, store_address, store_assignments
from cli.connection import CommandError, complain, exit_status
from cli.options import whole_number
from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report
from cli.table import counted

if TYPE_CHECKING:
    from broker.offline.directory_facts import NodeFacts
    from broker.offline.recovery_plan import RecoveryPlan
    from config.broker import BrokerConfig

SHOWN_MAX: Final = 20
"""Names of one kind that the plan shows."""

SUMMARY: Final = "rebuild the store of a cluster from its brokers' log directories"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--to", type=store_address, metavar="ADDRESS", help="the store: etcd://HOST:PORT,..."
    )
    parser.add_argument(
        "--dirs",
        action="append",
        default=[],
        metavar="DIR,DIR",
        help="all log directories of one broker; once for each broker of this machine",
    )
    parser.add_argument(
        "--facts",
        action="append",
        default=[],
        metavar="FILE",
        help="what was collected on another machine",
    )
    parser.add_argument(
        "--collect", metavar="FILE", help="only write what the directories say to a file"
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        type=whole_number,
        metavar="ID",
        help="a broker whose directories, or some of them, are lost or cannot be here",
    )
    parser.add_argument("--execute", action="store_true", help="write it; else it is only shown")
    parser.add_argument(
        "--force", action="store_true", help="also where nothing shows that the store is behind"
    )
    add_store_arguments(parser)
    add_settings_arguments(parser)


def run(args: argparse.Namespace, _connect: object = None) -> int:
    """Do it; no broker is asked."""
    groups = [tuple(word.strip() for word in text.split(",") if word.strip()) for text in args.dirs]
    if not (groups or args.facts) or not all(groups):
        complain("name the brokers' log directories with --dirs, or collected files with --facts")
        return BAD_SETTINGS
    if args.collect is None and args.to is None:
        complain("name the store with --to, or a file with --collect")
        return BAD_SETTINGS
    if args.collect is not None and (len(groups) != 1 or args.facts):
        complain("--collect takes the directories of one broker: one --dirs")
        return BAD_SETTINGS
    if args.to is not None:
        args.assignments.append(f"metadata.store={args.to}")
    args.assignments += store_assignments(args)
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    settings = loaded.broker
    return exit_status(lambda: _recover(settings, args, groups))


def _recover(
    settings: "BrokerConfig", args: argparse.Namespace, groups: list[tuple[str, ...]]
) -> int:
    from broker.controller.images.metadata_records import MetadataFormatError
    from broker.controller.store.metadata_store import StoreError
    from broker.offline.directory_facts import FactsError
    from broker.runtime.startup_errors import StartupError
    from storage.errors import StorageError

    try:
        return asyncio.run(_work(settings, args, groups))
    except (FactsError, MetadataFormatError, StartupError, StorageError, StoreError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error


async def _work(
    settings: "BrokerConfig", args: argparse.Namespace, groups: list[tuple[str, ...]]
) -> int:
    from broker.node.stopped_node import stopped_node
    from broker.offline.directory_facts import read_facts
    from broker.offline.opening import cluster_store, command_environment
    from broker.offline.recovery import StoreRecovery

    nodes: list[NodeFacts] = []
    async with AsyncExitStack() as stack:
        for paths in groups:
            _check_folders(paths)
            mine = settings.replace(log_dirs=paths, metadata_log_dir=None)
            node = await stack.enter_async_context(stopped_node(mine))
            run = node.environment.run_blocking
            nodes.append(await run(read_facts, node.environment.filesystem, node.log_directories))
        nodes += _collected(args.facts)
        if args.collect is not None:
            _write_collected(args.collect, nodes[0])
            return 0
        environment = stack.enter_context(command_environment())
        store = await stack.enter_async_context(cluster_store(settings))
        recovery = StoreRecovery(
            store, nodes, absent=args.without, settings=settings, environment=environment
        )
        plan = await recovery.plan()
        if not plan.evidence and not args.force:
            print("nothing to do: nothing shows that the store is behind its brokers")
            return 0
        _show(plan, nodes, args.without)
        if not args.execute:
            print("nothing was written; --execute does it")
            return 0
        await recovery.execute(plan)
        print("done: start the brokers as before")
        return 0


def _collected(paths: list[str]) -> "list[NodeFacts]":
    from broker.offline.directory_facts import decode_facts

    nodes = []
    for path in paths:
        with open(path, "rb") as file:
            nodes.append(decode_facts(file.read(), path))
    return nodes


def _write_collected(path: str, node: "NodeFacts") -> None:
    from broker.offline.directory_facts import encode_facts

    with open(path, "wb") as file:
        file.write(encode_facts(node))
    print(f"wrote {path}: {_broker_line(node)}")


def _check_folders(paths: tuple[str, ...]) -> None:
    import os

    for path in paths:
        if not os.path.isdir(path):
            raise CommandError(f"{path} is not a directory")


def _show(plan: "RecoveryPlan", nodes: "list[NodeFacts]", absent: list[int]) -> None:
    partitions = sum(len(topic.partitions) for topic in plan.topics)
    print(f"cluster {plan.cluster_id}")
    for node in nodes:
        print(f"  {_broker_line(node)}")
    for node_id in absent:
        print(f"  broker {node_id}: not asked, or not all of it")
    for line in plan.evidence:
        print(f"found: {line}")
    print(
        f"to be written: {counted(len(plan.topics), 'topic')}, "
        f"{counted(partitions, 'partition')}, each in a leader epoch above all that were found "
        f"(the highest is {plan.highest_epoch}); a new incarnation; producer ids far above all "
        "that were given out"
    )
    _list(
        plan.rebuilt,
        "made again from directories; settings are not known, so nothing of them "
        "is deleted or compacted until they are set (internal topics get their own)",
    )
    _list(plan.anew, "deleted and made anew since the copy: the later one stays")
    _list(
        plan.without_log,
        "in the store, and in no directory: deleted since the copy was taken, "
        "or lost; kept, and empty. Delete what should not be there",
    )
    _list(plan.deleted, "of these, directories were waiting for their removal: deleted before")
    _list(plan.empty, "partitions that no directory has: they begin empty")
    _list(
        plan.waiting,
        "partitions whose logs are with brokers that were not asked: without a "
        "leader until those are recovered too",
    )
    _list(
        plan.uncertain,
        "partitions of which a replica was not asked: what only that one had is lost",
    )
    _list(plan.aside, "logs of other topic ids: kept aside by their brokers, not deleted")
    print(
        "not known from directories: settings of brokers, groups and topics since the store was "
        "written; reassignments under way (they end); what is left of deleted topics in remote "
        "storage (`varve tier gc` counts its objects)"
    )


def _broker_line(node: "NodeFacts") -> str:
    replicas = sum(len(directory.replicas) for directory in node.directories)
    return (
        f"broker {node.node_id}: {counted(replicas, 'partition')} in "
        f"{', '.join(directory.path for directory in node.directories)}"
    )


def _list(names: list[str], what: str) -> None:
    if not names:
        return
    print(f"{len(names)} {what}:")
    for name in names[:SHOWN_MAX]:
        print(f"  {name}")
    if len(names) > SHOWN_MAX:
        print(f"  and {len(names) - SHOWN_MAX} more")
