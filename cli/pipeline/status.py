"""`varve pipeline status`: offsets, lag and files of the table."""

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cli.pipeline.job_file import load_job
from cli.table import Cell, format_json, format_size, format_table

if TYPE_CHECKING:
    from pipeline.lake.batch.log_view import TopicView
    from pipeline.lake.batch.progress import Progress


def status(args: argparse.Namespace) -> int:
    """Print how far the table is, and what it is made of."""
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.maintain.histories import history_of
    from pipeline.lake.maintain.shape import shape_of
    from pipeline.lake.settings.config import small_file_bytes

    config = load_job(args.job)
    with open_job(config) as opened:
        topic, progress = opened.job.view()
        shape = None
        if progress is not None:
            shape = shape_of(opened.sink, history_of(opened.sink), small_file_bytes(config))
    rows = list(_lags(topic, progress))
    if args.json:
        document = {
            "job": config.job_name,
            "topic": topic.topic,
            "topicId": str(topic.topic_id),
            "batch": 0 if progress is None else progress.batch,
            "table": None if shape is None else shape._asdict(),
            "partitions": rows,
        }
        print(format_json(document))
        return 0
    batch = "no table yet" if progress is None else f"batch {progress.batch}"
    print(f"{config.job_name}: {topic.topic} ({topic.topic_id}), {batch}")
    if shape is not None:
        print(
            f"{shape.files} files, {format_size(shape.size)}; {shape.small_files} of them are "
            f"small; {shape.states} states can be read"
        )
    cells: list[list[Cell]] = [
        [
            f"{topic.topic}-{row['partition']}",
            row["offset"],
            row["end"],
            row["lagRecords"],
            format_size(row["lagBytes"]),
            f"{row['lagMs'] / 1000:.0f} s",
        ]
        for row in rows
    ]
    headings = ("PARTITION", "TABLE", "LOG END", "RECORDS", "BYTES", "TIME")
    print(format_table(headings, cells))
    return 0


def _lags(topic: "TopicView", progress: "Progress | None") -> Iterator[Mapping[str, Any]]:
    from pipeline.lake.app.lag import partition_lag

    offsets = {} if progress is None else progress.offsets
    for number, partition in sorted(topic.partitions.items()):
        lag = partition_lag(partition, offsets.get(number))
        yield {
            "partition": number,
            "offset": offsets.get(number),
            "start": partition.start,
            "end": partition.end,
            "lagRecords": lag.records,
            "lagBytes": lag.size,
            "lagMs": lag.time_ms,
        }
