"""`varve tier rebuild-metadata`: publishes the bucket's manifests to `__remote_log_metadata` again.

For a broker that runs and says that it has lost a part of it, through its admin port. May be
stopped and run again at any time; nothing in the bucket is changed.
"""

import argparse

from cli.admin_port import add_admin_argument
from cli.connection import FAILED, ClientFactory, complain
from cli.table import counted, format_json, format_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be published")
    parser.add_argument(
        "--below-log-start",
        action="store_true",
        help="also segments below the log start offset, which then expire and are deleted",
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="accept that unknown metadata is lost: partitions start at their first known "
        "record, and unknown segments count as deleted",
    )
    add_admin_argument(parser)


def rebuild(args: argparse.Namespace, _: ClientFactory) -> int:
    """Do it."""
    switches = ("dry_run", "below_log_start", "accept_loss")
    query = {name.replace("_", "-"): "true" for name in switches if vars(args)[name]}
    report = args.ask(args.admin, "POST", "/tier/rebuild-metadata", query)
    if args.json:
        print(format_json(report))
        return _status(report, dry_run=args.dry_run)
    print(
        f"{'would publish' if args.dry_run else 'published'} "
        f"{counted(report['toldSegments'], 'segment')} of "
        f"{counted(report['partitions'], 'partition')}, {format_size(report['toldBytes'])}; "
        f"{report['knownSegments']} were known already"
    )
    for key, text in _LEFT_ALONE.items():
        if report[key]:
            print(f"skipped: {counted(report[key], 'segment')} {text}")
    for text in report["problems"]:
        complain(text)
    for who, text in sorted(report["heldBack"].items()):
        complain(f"{who} waits still: {text}")
    if report["problemCount"] and not report["found"]:
        complain("what is said above is lost still; --accept-loss gives it up")
    return _status(report, dry_run=args.dry_run)


_LEFT_ALONE = {
    "hiddenSegments": "of topics that this broker does not have, or that are not tiered",
    "deletedSegments": "of topics that were deleted here",
    "belowLogStart": "below the log start offset (--below-log-start lets them expire)",
}


def _status(report: dict[str, object], *, dry_run: bool) -> int:
    waits = bool(report["heldBack"]) and not dry_run
    return FAILED if report["problemCount"] or waits else 0
