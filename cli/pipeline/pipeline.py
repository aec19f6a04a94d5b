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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cli.connection import FAILED, MISTAKEN, CommandError, exit_status
from cli.pipeline.maintain import add_maintain_arguments, maintain
from cli.pipeline.plan import plan
from cli.pipeline.reconcile import reconcile
from cli.pipeline.replay import replay_quarantine
from cli.pipeline.run import add_run_arguments, run_until_done
from cli.pipeline.status import status

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


def _add_format_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


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


ACTIONS = {
    "run": Action("keep the table up to date with its topic", add_run_arguments, run_until_done),
    "plan": Action("show what the next batch would read", _add_format_arguments, plan),
    "status": Action("show the table's offsets, lag and files", _add_format_arguments, status),
    "replay-quarantine": Action(
        "convert quarantined records again, and commit those that fit",
        _add_format_arguments,
        replay_quarantine,
    ),
    "reconcile": Action("compare the table with its log", _add_format_arguments, reconcile),
    "maintain": Action(
        "compact small files, expire old snapshots, delete orphan files",
        add_maintain_arguments,
        maintain,
    ),
}
"""In the order of the help."""
