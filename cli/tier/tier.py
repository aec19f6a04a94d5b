"""`varve tier`: inspect and maintain remote storage.

    ls, verify        of a broker, or of a bucket alone (`cli.tier.tier_bucket` has the options)
    describe, gc, skip   of a broker, through its admin port
    claim             of a broker: it continues alone, after a copy of its disk was started
    pause, resume     a topic, or all: a setting, through the Kafka protocol
    rebuild-metadata  publish metadata of the bucket to a broker again (`cli.tier.tier_rebuild`)
    restore           a bucket onto an empty node (`cli.tier.tier_restore`)
    rotate-keys       of a bucket alone

Exit status: 0 done, 1 the broker or the store is out of reach or has refused, or something is
damaged, 2 mistaken options.
"""

import argparse
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from cli.actions import Action, add_actions
from cli.admin_port import AskAdmin, add_admin_argument, ask_admin
from cli.connection import (
    FAILED,
    MISTAKEN,
    ClientFactory,
    CommandError,
    complain,
    exit_status,
    open_admin,
)
from cli.options import topic_name
from cli.table import Cell, counted, format_json, format_size, format_table
from cli.tier import tier_offline, tier_rebuild, tier_restore, tier_switches
from cli.tier.tier_bucket import add_bucket_arguments, names_a_bucket
from cli.tier.tier_picture import WIDTH, picture

HOW_TO_GO_ON = "`varve tier rebuild-metadata` publishes their metadata again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def run(
    args: argparse.Namespace, *, connect: ClientFactory = open_admin, ask: AskAdmin = ask_admin
) -> int:
    """Do the action."""
    args.ask = ask
    return exit_status(lambda: ACTIONS[args.action].run(args, connect))


def topic_and_partition(text: str) -> dict[str, str]:
    """`TOPIC` or `TOPIC-PARTITION` or `TOPIC:PARTITION`, as what a page is asked for.

    A topic whose own name ends in `-` and digits is written with `:`, or alone with `:` at its end.
    """
    topic, colon, partition = text.rpartition(":")
    if not colon:
        topic, dash, partition = text.rpartition("-")
        if not dash or not partition.isdecimal():
            topic, partition = text, ""
    if partition and not partition.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC-PARTITION")
    topic_name(topic)
    return {"topic": topic, "partition": partition} if partition else {"topic": topic}


# -- list ------------------------------------------------------------------------------------------


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", type=topic_name, metavar="TOPIC", help="default: all")
    add_admin_argument(parser)
    add_bucket_arguments(parser)


def _list(args: argparse.Namespace, _: ClientFactory) -> int:
    if names_a_bucket(args):
        return tier_offline.list_bucket(args)
    document = args.ask(args.admin, "GET", "/tier", {})
    rows = [
        row for row in document["partitions"] if args.topic is None or row["topic"] == args.topic
    ]
    if args.json:
        print(format_json(rows))
        return 0
    print(_head(document))
    if not rows:
        print("no partition has remote storage")
        return 0
    cells: list[list[Cell]] = [
        [
            f"{row['topic']}-{row['partition']}",
            row.get("logStart"),
            row.get("localLogStart"),
            row.get("logEnd"),
            row.get("remoteSegments"),
            format_size(row["remoteBytes"]) if "remoteBytes" in row else None,
            format_size(row["localBytes"]) if "localBytes" in row else None,
            _condition(row),
        ]
        for row in rows
    ]
    headings = ("PARTITION", "START", "LOCAL START", "END", "SEGMENTS", "REMOTE", "LOCAL", "")
    print(format_table(headings, cells))
    return 0


def _head(document: Mapping[str, Any]) -> str:
    facts = [f"object store {document['location']}"]
    owner = document.get("bucketOwner")
    if owner not in (None, document["clusterId"]):
        facts.append(f"claimed by cluster {owner}: nothing is removed there")
    if document.get("claimMissing"):
        facts.append("its claim is missing: nothing is copied or removed there")
    if document["copyPaused"]:
        facts.append("copying is paused")
    if document["fetchPaused"]:
        facts.append("reading is paused")
    if document.get("stalledCopies"):
        facts.append(f"{document['stalledCopies']} copies do not move")
    if document.get("metadataLost"):
        facts.append("__remote_log_metadata has lost events (varve tier rebuild-metadata)")
    if document.get("faults"):
        facts.append(f"{counted(len(document['faults']), 'segment')} damaged (varve tier verify)")
    return "   ".join(facts)


def _condition(row: Mapping[str, Any]) -> str:
    if not row["ready"]:
        return "metadata is being read"
    words = []
    if row.get("heldBack"):
        words.append("waits: its metadata is lost")
    if row.get("unknownCopies"):
        words.append(f"unknown copies: {row['unknownCopies']}")
    if row.get("copyPaused"):
        words.append("copying paused")
    if row.get("fetchPaused"):
        words.append("reading paused")
    return ", ".join(words)


# -- describe --------------------------------------------------------------------------------------


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", metavar="TOPIC[-PARTITION]", type=topic_and_partition)
    add_admin_argument(parser)


def _describe(args: argparse.Namespace, _: ClientFactory) -> int:
    document = _ask_partitions(args, "GET", "/tier")
    rows = document["partitions"]
    if args.json:
        print(format_json(rows))
        return 0
    if not sys.stdout.isatty():
        print("\n\n".join(picture(row, width=WIDTH) for row in rows))
        return 0
    # Loaded only for a terminal.
    from rich.console import Console

    width = shutil.get_terminal_size((WIDTH, 24)).columns
    console = Console(highlight=False)
    for row in rows:
        for line in picture(row, width=width).splitlines():
            style = _STYLES.get(line[:7].strip(), "" if line.startswith(" ") else "bold")
            console.print(line, style=style, markup=False, overflow="crop", no_wrap=True)
        console.print()
    return 0


_STYLES = {"remote": "cyan", "local": "green"}


def _ask_partitions(args: argparse.Namespace, method: str, path: str) -> Any:
    """Ask about `args.which`; a topic's name may end like a partition's."""
    try:
        return args.ask(args.admin, method, path, args.which)
    except CommandError as error:
        if "partition" not in args.which or "no such partition" not in str(error):
            raise
        whole = f"{args.which['topic']}-{args.which['partition']}"
        try:
            return args.ask(args.admin, method, path, {"topic": whole})
        except CommandError:
            raise error from None


# -- verify, gc ------------------------------------------------------------------------------------


def _verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which", metavar="TOPIC[-PARTITION]", type=topic_and_partition, nargs="?", default=None
    )
    add_admin_argument(parser)
    add_bucket_arguments(parser)


def _verify(args: argparse.Namespace, _: ClientFactory) -> int:
    if names_a_bucket(args):
        document = tier_offline.verify_bucket(args)
    elif args.which is None:
        raise CommandError("name a topic, or a bucket with --bucket or --root", MISTAKEN)
    else:
        document = _ask_partitions(args, "POST", "/tier/verify")
    if args.json:
        print(format_json(document))
    else:
        segments = counted(document["segments"], "segment")
        print(f"read {segments}, {format_size(document['bytes'])}")
    for segment in document["faulty"]:
        where = f"{segment['topic']}-{segment['partition']} {segment['start']}..{segment['end']}"
        for fault in segment["faults"]:
            at = f" at byte {fault['position']}" if fault["position"] >= 0 else ""
            complain(f"{where}: {fault['key']}{at}: {fault['problem']}")
    # A broker of an earlier release does not report it.
    histories = document.get("historyFaults", [])
    # A broker's page has none: `describe` shows them.
    missing = document.get("missing", [])
    for text in (*histories, *missing):
        complain(text)
    for text in document["unread"]:
        complain(f"not read: {text}")
    return FAILED if document["faulty"] or document["unread"] or histories or missing else 0


def _claim(args: argparse.Namespace, _: ClientFactory) -> int:
    document = args.ask(args.admin, "POST", "/tier/claim", {})
    if args.json:
        print(format_json(document))
    else:
        print(f"the bucket of cluster {document['bucketOwner']} is this broker's")
    return 0 if document["state"] == "ours" else FAILED


def _gc_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what would be deleted")
    add_admin_argument(parser)


def _gc(args: argparse.Namespace, _: ClientFactory) -> int:
    query = {"dry-run": "true"} if args.dry_run else {}
    report = args.ask(args.admin, "POST", "/tier/gc", query)
    if args.json:
        print(format_json(report))
        return 0 if report["isOurs"] else FAILED
    print(
        f"listed {counted(report['objects'], 'object')}, {format_size(report['objectBytes'])}; "
        f"{'would remove' if args.dry_run else 'removed'} "
        f"{counted(report['removedObjects'], 'object')}, {format_size(report['removedBytes'])}, "
        f"{counted(report['abortedUploads'], 'unfinished upload')}"
    )
    if report["youngObjects"]:
        print(f"{counted(report['youngObjects'], 'object')} younger than tier.gc.grace.ms")
    if report["hiddenObjects"]:
        print(
            f"{counted(report['hiddenObjects'], 'object')} of partitions that this broker does "
            "not have"
        )
    for problem in report.get("lost", ()):
        complain(f"nothing was removed: {problem}")
    if report.get("unknownCopies"):
        complain(
            f"complete segments unknown to __remote_log_metadata: {report['unknownCopies']}, "
            f"kept; {HOW_TO_GO_ON}"
        )
    if report["missingSegments"]:
        complain(f"{counted(report['missingSegments'], 'segment')} missing in the object store")
    if not report["isOurs"]:
        owner = f"claimed by cluster {report['owner']}" if report["owner"] else "without its claim"
        complain(f"the bucket is {owner}: nothing was removed")
    troubles = ("missingSegments", "unknownCopies", "lost")
    return FAILED if any(report.get(name) for name in troubles) or not report["isOurs"] else 0


# -- skip ------------------------------------------------------------------------------------------


def _skip_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", metavar="TOPIC-PARTITION", type=topic_and_partition)
    parser.add_argument(
        "--start",
        type=int,
        metavar="OFFSET",
        help="base offset of the corrupt segment that is skipped",
    )
    parser.add_argument(
        "--execute", action="store_true", help="skip it; otherwise it is only shown"
    )
    add_admin_argument(parser)


def _skip(args: argparse.Namespace, _: ClientFactory) -> int:
    if "partition" not in args.which:
        raise CommandError("name a partition: TOPIC-PARTITION", MISTAKEN)
    if args.execute and args.start is None:
        raise CommandError(
            "--execute needs --start: without --execute its value is shown", MISTAKEN
        )
    query = dict(args.which)
    if args.execute:
        query["start"] = str(args.start)
    skipped = args.ask(args.admin, "POST", "/tier/skip", query)
    if args.json:
        print(format_json(skipped))
        return 0
    name = f"{skipped['topic']}-{skipped['partition']}"
    size = format_size(skipped["bytes"])
    print(
        f"{name}: offsets {skipped['start']} to {skipped['end'] - 1}, {size}: {skipped['problem']}"
    )
    if skipped["done"]:
        print(f"skipped; its files are kept beside the log, as {skipped['keptAs']}")
    else:
        print(f"nothing is changed yet: add --start {skipped['start']} --execute")
    return 0


ACTIONS = {
    "ls": Action("list partitions with remote storage", _list_arguments, _list),
    "describe": Action("draw both tiers of a partition", _describe_arguments, _describe),
    "verify": Action(
        "read remote segments again and compare them with their checksums",
        _verify_arguments,
        _verify,
    ),
    "skip": Action("skip a corrupt local segment that blocks copying", _skip_arguments, _skip),
    "claim": Action(
        "take ownership of the bucket, so that this broker deletes from it: no other "
        "broker of the cluster is alive",
        add_admin_argument,
        _claim,
    ),
    "gc": Action("collect garbage in the object store now", _gc_arguments, _gc),
    "pause": Action(
        "pause copying to remote storage, or reading from it",
        tier_switches.add_arguments,
        tier_switches.pause,
    ),
    "resume": Action("resume what was paused", tier_switches.add_arguments, tier_switches.resume),
    "rebuild-metadata": Action(
        "publish the metadata of the bucket's manifests to __remote_log_metadata again",
        tier_rebuild.add_arguments,
        tier_rebuild.rebuild,
    ),
    "restore": Action(
        "restore an empty node from a bucket", tier_restore.add_arguments, tier_restore.restore
    ),
    "rotate-keys": Action(
        "rewrap the data keys of encrypted segments with the active key pair",
        tier_offline.rotate_arguments,
        tier_offline.rotate_keys,
    ),
}
