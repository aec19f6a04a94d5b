"""`varve pipeline run`: a job in this process, until it is done or a signal comes."""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cli.pipeline.job_file import load_job


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
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


def run_until_done(args: argparse.Namespace) -> int:
    """Commit batches until all is committed, or a signal ends it."""
    from pipeline.lake.app.assembly import run_job

    config = load_job(args.job)
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
    with stopped_by_signals(stop):
        batches = run_job(
            config,
            stop=stop,
            new_incarnation=args.new_incarnation,
            new_quarantine=args.new_quarantine,
        )
    print(f"{config.job_name}: {batches} batches committed")
    return 0


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
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
