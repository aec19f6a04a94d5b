"""`varve pipeline`: jobs that keep tables behind topics, with Spark or on this machine.

    run JOB       keep the table until it has all (`batch.every: once`), or until it is stopped
    plan JOB      what the next batch would read, without reading it
    status JOB    how far the table is
    replay-quarantine JOB
                  try records again that did not fit, after a fix
    reconcile JOB
                  compare the table with its log, range by range
    maintain JOB  compact small files, expire old snapshots, delete orphan files

JOB is a file; `pipeline.lake.settings.config` has its form. SIGTERM and Ctrl-C end a job after the
batch under way, a second one at once: what was not committed is made again by the next run.

Exit status: 0 done or stopped, 1 a service does not answer or the operator has to decide, 2
mistaken settings or a library that is missing.
"""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.connection import FAILED, MISTAKEN, CommandError, exit_status
from cli.table import Cell, format_json, format_size, format_table

if TYPE_CHECKING:
    from pipeline.lake.app.assembly import OpenJob
    from pipeline.lake.batch.log_view import TopicView
    from pipeline.lake.batch.progress import Progress
    from pipeline.lake.maintain.upkeep import Maintained
    from pipeline.lake.settings.config import JobConfig

OPTIONAL = {
    "pyspark",
    "pyarrow",
    "numpy",
    "pandas",
    "deltalake",
    "pyiceberg",
    "sqlalchemy",
    "polars",
    "fastavro",
}
"""Libraries that the extra `lake` brings, some by way of `spark`, which is not enough here."""


class Action(NamedTuple):
    """One action: a line of help, its options, and what does it."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    choices = parser.add_subparsers(title="actions", dest="action", required=True, metavar="ACTION")
    for name, action in ACTIONS.items():
        chosen = choices.add_parser(
            name, help=action.summary, description=f"{action.summary.capitalize()}."
        )
        chosen.add_argument("job", metavar="JOB", help="the job's settings, a YAML file")
        action.add_arguments(chosen)


def run(args: argparse.Namespace) -> int:
    """Do the action; what goes wrong is one line."""
    return exit_status(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    with _reported_errors():
        return ACTIONS[args.action].run(args)


@contextmanager
def _reported_errors() -> Iterator[None]:
    """Reports a job's expected errors as one line and an exit status."""
    try:
        from pipeline.lake.errors import JobConfigError, LakeError, MissingExtraError
        from pipeline.plan.errors import PlanError
        from pipeline.read.read_errors import ReadError
        from pipeline.source.java import JavaMissingError
        from tiered.errors import TieredError
    except ImportError as error:
        raise _missing(error) from error
    try:
        yield
    except (JobConfigError, MissingExtraError, JavaMissingError) as error:
        raise CommandError(str(error), MISTAKEN) from error
    except (LakeError, PlanError, ReadError, TieredError) as error:
        raise CommandError(str(error), FAILED) from error
    except ImportError as error:
        raise _missing(error) from error


def _missing(error: ImportError) -> Exception:
    name = (error.name or "").partition(".")[0]
    if name not in OPTIONAL:
        return error
    return CommandError(f"{name} is not installed: pip install '.[lake]'", MISTAKEN)


def _load(path: str) -> "JobConfig":
    from pipeline.lake.settings.config import parse_job

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}", MISTAKEN) from error
    return parse_job(text, path)


# -- run -------------------------------------------------------------------------------------------


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--new-incarnation",
        action="store_true",
        help="continue with a topic that was deleted and recreated; rows of the old one stay",
    )
    parser.add_argument(
        "--new-quarantine",
        action="store_true",
        help="continue although the quarantine was dropped or rolled back",
    )
    parser.add_argument("--once", action="store_true", help="as `batch.every: once`")
    parser.add_argument("--quiet", action="store_true", help="log warnings only")


def _run_job(args: argparse.Namespace) -> int:
    from pipeline.lake.app.assembly import run_job

    config = _load(args.job)
    if args.once:
        config = config.model_copy(
            update={"batch": config.batch.model_copy(update={"every_ms": 0})}
        )
    logging.basicConfig(
        level=logging.WARNING if args.quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    for name in ("py4j", "pyiceberg", "botocore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    stop = threading.Event()
    with _signals(stop):
        batches = run_job(
            config,
            stop=stop,
            new_incarnation=args.new_incarnation,
            new_quarantine=args.new_quarantine,
        )
    print(f"{config.job_name}: {batches} batches committed")
    return 0


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """The first signal sets `stop`; from then on signals do what they did before."""
    before: dict[signal.Signals, Any] = {}

    def asked(number: int, _: object) -> None:
        stop.set()
        for one, handler in before.items():
            signal.signal(one, handler)

    for one in (signal.SIGTERM, signal.SIGINT):
        before[one] = signal.signal(one, asked)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


# -- plan ------------------------------------------------------------------------------------------


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _plan(args: argparse.Namespace) -> int:
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.batch.planned import planned_ranges

    with open_job(_load(args.job)) as opened:
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


# -- status ----------------------------------------------------------------------------------------


def _status(args: argparse.Namespace) -> int:
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.maintain.histories import history_of
    from pipeline.lake.maintain.shape import shape_of
    from pipeline.lake.settings.config import small_file_bytes

    config = _load(args.job)
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


# -- replay-quarantine -----------------------------------------------------------------------------


def _replay_quarantine(args: argparse.Namespace) -> int:
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.job.quarantine import Replay

    config = _load(args.job)
    if config.errors.quarantine == "fail":
        raise CommandError(f"{config.job_name} has no quarantine: errors.quarantine is fail")
    with open_job(config) as opened:
        assert opened.quarantine is not None
        replay = Replay(
            opened.sink, opened.quarantine, opened.columns, opened.targets, opened.keyed
        )
        replayed = replay.run()
    if args.json:
        print(format_json(replayed._asdict()))
        return 0
    print(
        f"{config.job_name}: {replayed.rows} rows committed to the table, {replayed.left} still "
        "do not fit"
    )
    for reason, count in replayed.reasons.items():
        print(f"{count:>10}  {reason}")
    return 0


# -- reconcile -------------------------------------------------------------------------------------


def _reconcile(args: argparse.Namespace) -> int:
    from pipeline.lake.app.assembly import open_job
    from pipeline.lake.reconcile.reconcile import Reconciler, differing

    config = _load(args.job)
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


# -- maintain --------------------------------------------------------------------------------------


def _maintain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be done, change nothing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _maintain(args: argparse.Namespace) -> int:
    from pipeline.lake.app.maintenance import maintain_job

    config = _load(args.job)
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


ACTIONS = {
    "run": Action("keep the table up to date with its topic", _run_arguments, _run_job),
    "plan": Action("show what the next batch would read", _plan_arguments, _plan),
    "status": Action("show the table's offsets, lag and files", _plan_arguments, _status),
    "replay-quarantine": Action(
        "convert quarantined records again, and commit those that fit",
        _plan_arguments,
        _replay_quarantine,
    ),
    "reconcile": Action("compare the table with its log", _plan_arguments, _reconcile),
    "maintain": Action(
        "compact small files, expire old snapshots, delete orphan files",
        _maintain_arguments,
        _maintain,
    ),
}
"""In the order of the help."""
