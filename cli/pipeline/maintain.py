"""`varve pipeline maintain`: small files are compacted, old states and orphans go."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.pipeline.job_file import load_job
from cli.table import format_json, format_size

if TYPE_CHECKING:
    from pipeline.lake.maintain.upkeep import Maintained


def add_maintain_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be done, change nothing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def maintain(args: argparse.Namespace) -> int:
    """Maintain the table and its quarantine, and print what was done."""
    from pipeline.lake.app.maintenance import maintain_job

    config = load_job(args.job)
    done = maintain_job(config, dry_run=args.dry_run)
    if args.json:
        tables = [{**one._asdict(), "compacted": one.compacted._asdict()} for one in done]
        print(format_json({"job": config.job_name, "dry_run": args.dry_run, "tables": tables}))
        return 0
    for one in done:
        for line in maintained_lines(one, dry_run=args.dry_run):
            print(line)
    return 0


def maintained_lines(one: "Maintained", *, dry_run: bool) -> Iterator[str]:
    """Result of a table's maintenance as lines of text."""
    would = "would be " if dry_run else ""
    if dry_run:
        yield f"{one.table}: {one.groups} groups of small files would be put together"
    else:
        made = one.compacted
        yield (
            f"{one.table}: {made.replaced} files ({format_size(made.replaced_bytes)}) put together "
            f"into {made.made} ({format_size(made.made_bytes)})"
        )
        if made.dropped:
            yield f"  {made.dropped} groups dropped: another commit had replaced their files"
    yield f"  {one.states} old states {would}ended, {one.folded} objects of metadata {would}removed"
    yield (
        f"  {would}removed: {one.expired} expired files, {one.orphans} orphans, {one.plans} old "
        f"plans, {format_size(one.removed_bytes)}"
    )
    for sentence in one.compacted.left_out:
        yield f"  left as it is: {sentence}"
    for name in one.others:
        yield f"  not a file of the table's, left alone: {name}"
