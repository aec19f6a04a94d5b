"""`varve consume TOPIC`: print records, for a quick try.

Without `--group` it reads the partitions on its own and leaves no trace. With one it is a member
like any other: it continues at the group's committed offsets and commits what it has printed.
Runs until Ctrl-C, `--max-messages` or `--timeout-ms`; the number of records goes to standard error.

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options, 130 Ctrl-C.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cli.connection import (
    MISTAKEN,
    ClientFactory,
    CommandError,
    add_connection_arguments,
    client,
    exit_status,
    open_consumer,
)
from cli.moments import datetime_ms
from cli.options import positive, topic_name, whole_number
from cli.records.record_formats import FORMATS
from cli.table import counted
from storage.environment.clock import Clock, SystemClock

POLL_MS: Final = 500
"""Longest wait for records between two checks of the clock."""

POLL_RECORDS: Final = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("topic", metavar="TOPIC", type=topic_name)
    parser.add_argument("--group", metavar="GROUP", help="consume as a member of this group")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="from the first record (default: what comes from now on); with --group only where "
        "the group has committed nothing",
    )
    start.add_argument("--offset", type=whole_number, metavar="N", help="from this offset on")
    start.add_argument(
        "--from-time",
        type=datetime_ms,
        metavar="TIME",
        help="from this time on: 2026-01-31T12:00:00, in UTC without a zone",
    )
    parser.add_argument("--partition", type=whole_number, metavar="P", help="default: all")
    parser.add_argument("--max-messages", type=positive, metavar="N", help="exit after N records")
    parser.add_argument(
        "--timeout-ms", type=positive, metavar="N", help="exit after this time without a record"
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="value")
    add_connection_arguments(parser)


def run(
    args: argparse.Namespace,
    *,
    connect: ClientFactory = open_consumer,
    clock: Clock | None = None,
) -> int:
    """Print the records."""
    return exit_status(lambda: _consume(args, connect, clock or SystemClock()))


def _consume(args: argparse.Namespace, connect: ClientFactory, clock: Clock) -> int:
    chosen = {"--offset": args.offset, "--from-time": args.from_time, "--partition": args.partition}
    for option, value in chosen.items():
        if args.group is not None and value is not None:
            raise CommandError(
                f"{option} and --group do not go together: the group says what is read", MISTAKEN
            )
    settings = {
        "group_id": args.group,
        "enable_auto_commit": args.group is not None,
        "allow_auto_create_topics": False,
        "exclude_internal_topics": False,
        # Without a group it only matters when records vanish while we read: the next ones then.
        "auto_offset_reset": "earliest" if args.from_beginning or not args.group else "latest",
    }
    with client(connect, args, **settings) as consumer:
        partitions = consumer.partitions_for_topic(args.topic)
        if not partitions:
            raise CommandError(f"topic {args.topic!r} does not exist")
        if args.group is not None:
            consumer.subscribe([args.topic])
        else:
            _start(consumer, args, sorted(partitions))
        printer = _Printer("json" if args.json else args.format, args.group is not None)
        try:
            _print_records(consumer, args, printer, clock)
        finally:
            print(counted(printer.count, "record"), file=sys.stderr)
    return 0


def _start(consumer: Any, args: argparse.Namespace, partitions: Sequence[int]) -> None:
    """Take the partitions and go to where the options say."""
    from cli.admin.kafka_library import TopicPartition

    if args.partition is not None:
        if args.partition not in partitions:
            raise CommandError(f"partition {args.topic}-{args.partition} does not exist")
        partitions = [args.partition]
    taken = [TopicPartition(args.topic, partition) for partition in partitions]
    consumer.assign(taken)
    if args.from_beginning:
        consumer.seek_to_beginning(*taken)
    elif args.offset is not None:
        _seek(consumer, taken, args.offset)
    elif args.from_time is not None:
        found = consumer.offsets_for_times(dict.fromkeys(taken, args.from_time))
        for at in taken:
            # None: no record is so late.
            if found.get(at) is None:
                consumer.seek_to_end(at)
            else:
                consumer.seek(at, found[at].offset)
    else:
        consumer.seek_to_end(*taken)


def _seek(consumer: Any, taken: Sequence[Any], offset: int) -> None:
    if len(taken) > 1:
        count = counted(len(taken), "partition")
        raise CommandError(f"{taken[0].topic} has {count}: --offset needs --partition", MISTAKEN)
    (at,) = taken
    start, end = consumer.beginning_offsets(taken)[at], consumer.end_offsets(taken)[at]
    if not start <= offset <= end:
        raise CommandError(
            f"{at.topic}-{at.partition} has no offset {offset}: it starts at {start}, "
            f"the next record gets {end}"
        )
    consumer.seek(at, offset)


class _Printer:
    """Writes records to standard output and knows how many."""

    def __init__(self, form: str, commits: bool) -> None:
        self._format = FORMATS[form]
        self._commits = commits
        self.count = 0

    def print(self, consumer: Any, polled: Mapping[Any, Sequence[Any]]) -> None:
        """Write what a poll has brought; interrupted, what is not written is not consumed."""
        written: dict[Any, int] = {}
        try:
            for at, records in polled.items():
                for record in records:
                    sys.stdout.buffer.write(self._format(record) + b"\n")
                    written[at] = record.offset + 1
                    self.count += 1
            sys.stdout.buffer.flush()
        except BaseException:
            if self._commits:
                # Closing the consumer commits where it stands.
                for at, records in polled.items():
                    consumer.seek(at, written.get(at, records[0].offset))
            raise


def _print_records(
    consumer: Any, args: argparse.Namespace, printer: _Printer, clock: Clock
) -> None:
    sys.stdout.flush()
    last_record_ms = clock.monotonic_ms()
    while args.max_messages is None or printer.count < args.max_messages:
        wait_ms = float(POLL_MS)
        if args.timeout_ms is not None:
            left_ms = args.timeout_ms - (clock.monotonic_ms() - last_record_ms)
            if left_ms <= 0:
                return
            wait_ms = min(wait_ms, left_ms)
        most = POLL_RECORDS
        if args.max_messages is not None:
            most = min(most, args.max_messages - printer.count)
        polled = consumer.poll(timeout_ms=wait_ms, max_records=most)
        if polled:
            printer.print(consumer, polled)
            last_record_ms = clock.monotonic_ms()
