"""`varve pipeline reconcile`: the table is compared with its log."""

import argparse
from typing import TYPE_CHECKING

from cli.connection import FAILED, CommandError
from cli.pipeline.job_file import load_job
from cli.table import Cell, format_json, format_table

if TYPE_CHECKING:
    from pipeline.lake.app.assembly import OpenJob
    from pipeline.lake.batch.log_view import TopicView
    from pipeline.lake.batch.progress import Progress


def reconcile(args: argparse.Namespace) -> int:
    """Print the ranges in which table and log differ; status 1 if there are any."""
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.reconcile.reconcile import Reconciler, differing

    config = load_job(args.job)
    with open_job(config) as opened:
        topic, progress = opened.job.view()
        if progress is None:
            raise CommandError(f"{config.job_name}: there is no table yet")
        if config.mode != "append":
            return _reconcile_keys(args, config.job_name, opened, topic, progress)
        reconciler = Reconciler(
            opened.log, opened.sink, opened.quarantine, opened.columns, opened.reading
        )
        found = reconciler.run(topic, progress)
    if args.json:
        ranges = [one._asdict() for one in found.ranges]
        print(format_json({**found._asdict(), "equal": found.equal, "ranges": ranges}))
        return 0 if found.equal else FAILED
    different = differing(found.ranges)
    if different:
        rows: list[list[Cell]] = [
            [
                f"{topic.topic}-{one.partition}",
                one.start,
                one.end,
                one.log_rows,
                one.table_rows,
                one.quarantined,
                ", ".join(one.differs),
            ]
            for one in different
        ]
        headings = ("PARTITION", "FROM", "TO", "LOG", "TABLE", "QUARANTINE", "DIFFERS IN")
        print(format_table(headings, rows))
    compared = sum(one.log_rows for one in found.ranges)
    print(
        f"{config.job_name}: {compared} records in {len(found.ranges)} ranges compared, "
        f"{len(different)} ranges differ; {found.older} rows are older than the log, "
        f"{found.beyond} beyond the table's offsets"
    )
    return 0 if found.equal else FAILED


def _reconcile_keys(
    args: argparse.Namespace,
    name: str,
    opened: "OpenJob",
    topic: "TopicView",
    progress: "Progress",
) -> int:
    from pipeline.lake.app.locations import scratch_store
    from pipeline.lake.reconcile.keyed_reconcile import KeyedReconciler

    with scratch_store() as scratch:
        found = KeyedReconciler(
            opened.log, opened.sink, opened.quarantine, opened.columns, opened.reading, scratch
        ).run(topic, progress)
    if args.json:
        buckets = [one._asdict() for one in found.buckets]
        print(format_json({**found._asdict(), "equal": found.equal, "buckets": buckets}))
        return 0 if found.equal else FAILED
    different = [one for one in found.buckets if one.differs]
    if different:
        rows: list[list[Cell]] = [
            [one.bucket, one.log_rows, one.table_rows, ", ".join(one.differs)] for one in different
        ]
        print(format_table(("BUCKET", "LOG", "TABLE", "DIFFERS IN"), rows))
    print(
        f"{name}: {found.records} records are {sum(one.log_rows for one in found.buckets)} rows in "
        f"{len(found.buckets)} key buckets, {len(different)} buckets differ; {found.older} "
        f"rows are older than the log, {found.beyond} beyond the table's offsets"
    )
    return 0 if found.equal else FAILED
