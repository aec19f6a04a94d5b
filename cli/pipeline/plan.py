"""`varve pipeline plan`: what the next batch would read."""

import argparse

from cli.pipeline.job_file import load_job
from cli.table import Cell, format_json, format_size, format_table


def plan(args: argparse.Namespace) -> int:
    """Print the next batch's ranges of offsets; nothing is read or written."""
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.batch.planned import planned_ranges

    with open_job(load_job(args.job)) as opened:
        topic, progress = opened.job.view()
        tasks = opened.log.aligned(opened.job.next_tasks(topic, progress))
        ranges = planned_ranges(topic, tasks, opened.log.pieces(tasks))
    if args.json:
        print(format_json([one._asdict() for one in ranges]))
        return 0
    if not ranges:
        print("the table is up to date with the log")
        return 0
    rows: list[list[Cell]] = [
        [
            f"{topic.topic}-{one.partition}",
            one.start,
            one.end,
            one.tasks,
            one.segments,
            format_size(one.size),
            f"{one.bucket_share:.0%}",
        ]
        for one in ranges
    ]
    headings = ("PARTITION", "FROM", "TO", "TASKS", "SEGMENTS", "BYTES", "FROM BUCKET")
    print(format_table(headings, rows))
    return 0
