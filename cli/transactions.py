"""`varve transactions`: list and describe transactions and producers, find and abort hanging ones.

    list, describe             what coordinators know, by transactional id
    describe-producers         what a partition's log knows
    find-hanging, abort        open in a log, and unknown to every coordinator
    terminate                  end a transaction under way, and fence its producer

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options.
"""

import argparse
import re
import time
from typing import Any

from cli.actions import Action, add_actions, run_action
from cli.connection import (
    FAILED,
    MISTAKEN,
    ClientFactory,
    CommandError,
    check_reachable,
    client,
    complain,
)
from cli.hanging_transactions import OpenTransaction, find_hanging, open_transactions
from cli.options import TopicPartitions, one_of, topic_partitions, whole_number
from cli.table import Cell, format_json, format_table
from storage.environment.clock import SystemClock

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
MAX_TIMEOUT_MINUTES = 15
"""Default of `transaction.max.timeout.ms`."""

LATE_MS = 5 * 60_000
"""What Kafka grants a transaction above its timeout before it is called hanging."""

MINUTE_MS = 60_000
FENCING_ATTEMPTS = 50
FENCING_PAUSE_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def open_admin(**settings: Any) -> Any:
    """The client of these actions, loaded when it is needed."""
    check_reachable(settings["bootstrap_servers"])
    from cli.admin.producer_fencing import open_fencing_admin

    return open_fencing_admin(**settings)


def run(args: argparse.Namespace, *, connect: ClientFactory = open_admin) -> int:
    """Do the action."""
    return run_action(ACTIONS, args, connect)


# -- what coordinators know --


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        type=one_of(STATES),
        action="append",
        metavar="STATE",
        help=f"only these ({', '.join(STATES)}); may be repeated",
    )
    parser.add_argument(
        "--producer-id",
        type=whole_number,
        action="append",
        metavar="ID",
        help="only of this producer; may be repeated",
    )
    parser.add_argument(
        "--duration-ms",
        type=whole_number,
        metavar="MS",
        help="only transactions that have been open for longer",
    )
    parser.add_argument(
        "--pattern", type=_pattern, help="only transactional ids that match the expression"
    )


def _list(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        listings = admin.list_transactions(
            state_filters=args.state,
            producer_id_filters=args.producer_id,
            duration_filter_ms=args.duration_ms,
            transactional_id_pattern=args.pattern,
        )
    rows: list[dict[str, Any]] = [
        {
            "transactional_id": listing.transactional_id,
            "coordinator": broker,
            "producer_id": listing.producer_id,
            "state": listing.state.value,
        }
        for broker, found in listings.items()
        for listing in found
    ]
    rows.sort(key=lambda row: str(row["transactional_id"]))
    headings = ("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER", "STATE")
    return _show(args, rows, headings, "no transactions")


def _id_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("transactional_id", metavar="TRANSACTIONAL-ID")


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    name = args.transactional_id
    with client(connect, args) as admin:
        found = admin.describe_transactions([name])[name]
    started_ms = found.transaction_start_time_ms
    document = {
        "transactional_id": name,
        "coordinator": found.coordinator_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.state.value,
        "timeout_ms": found.transaction_timeout_ms,
        "started_ms": started_ms if started_ms >= 0 else None,
        "duration_ms": SystemClock().now_ms() - started_ms if started_ms >= 0 else None,
        "partitions": sorted(f"{p.topic}-{p.partition}" for p in found.topic_partitions),
    }
    if args.json:
        print(format_json(document))
        return 0
    for key, value in document.items():
        shown = " ".join(value) if isinstance(value, list) else value
        print(f"{key:<16}  {'-' if shown is None or shown == '' else shown}")
    return 0


# -- what logs know --


def _one_partition(text: str) -> TopicPartitions:
    found = topic_partitions(text)
    if found.partitions is None or len(found.partitions) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:PARTITION")
    return found


def _partition_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", type=_one_partition, metavar="TOPIC:PARTITION")


def _library_partition(topic: str, partition: int) -> Any:
    from cli.admin.kafka_library import TopicPartition

    return TopicPartition(topic, partition)


def _chosen_partition(args: argparse.Namespace) -> Any:
    (number,) = args.partition.partitions
    return _library_partition(args.partition.topic, number)


def _describe_producers(args: argparse.Namespace, connect: ClientFactory) -> int:
    where = _chosen_partition(args)
    with client(connect, args) as admin:
        producers = admin.describe_producers([where])[where].active_producers
    rows = [
        {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "last_sequence": producer.last_sequence,
            "last_timestamp_ms": producer.last_timestamp,
            "transaction_start_offset": (
                producer.current_transaction_start_offset
                if producer.current_transaction_start_offset >= 0
                else None
            ),
        }
        for producer in sorted(producers)
    ]
    headings = ("PRODUCER", "EPOCH", "COORDINATOR EPOCH", "SEQUENCE", "LAST TIME MS", "OPEN SINCE")
    return _show(args, rows, headings, "no producers")


def _hanging_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topic",
        type=topic_partitions,
        action="append",
        metavar="TOPIC[:0,1,2]",
        help="only partitions of this topic (default: all topics); may be repeated",
    )
    parser.add_argument(
        "--max-transaction-timeout",
        type=whole_number,
        default=MAX_TIMEOUT_MINUTES,
        metavar="MINUTES",
        help="the longest timeout a transaction may have (default 15); "
        "five minutes are added to it",
    )


def _find_hanging(args: argparse.Namespace, connect: ClientFactory) -> int:
    timeout_ms = args.max_transaction_timeout * MINUTE_MS + LATE_MS
    now_ms = SystemClock().now_ms()
    with client(connect, args) as admin:
        partitions = _partitions(admin, args.topic)
        hanging = find_hanging(admin, partitions, now_ms=now_ms, timeout_ms=timeout_ms)
    rows = [{**found._asdict(), "silent_ms": now_ms - found.last_timestamp_ms} for found in hanging]
    headings = (
        "TOPIC",
        "PARTITION",
        "PRODUCER",
        "EPOCH",
        "COORDINATOR EPOCH",
        "START OFFSET",
        "LAST TIME MS",
        "SILENT MS",
    )
    return _show(args, rows, headings, "no hanging transactions")


def _partitions(admin: Any, chosen: list[TopicPartitions] | None) -> list[Any]:
    wanted = {one.topic: one.partitions for one in chosen or ()}
    described = admin.describe_topics(list(wanted) or None)
    missing = [topic["name"] for topic in described if topic.get("error_code")]
    if missing:
        raise CommandError(f"topic {missing[0]!r} does not exist")
    return [
        _library_partition(topic["name"], partition["partition_index"])
        for topic in described
        for partition in topic["partitions"]
        if not (only := wanted.get(topic["name"])) or partition["partition_index"] in only
    ]


# -- ending them --


def _abort_arguments(parser: argparse.ArgumentParser) -> None:
    _partition_arguments(parser)
    parser.add_argument(
        "--start-offset",
        type=whole_number,
        metavar="OFFSET",
        help="first offset of the transaction, as find-hanging shows it",
    )
    for name, text in (
        ("producer-id", "whose transaction, instead of its start"),
        ("producer-epoch", "the producer's epoch"),
        ("coordinator-epoch", "the coordinator's epoch"),
    ):
        parser.add_argument(f"--{name}", type=whole_number, metavar="N", help=text)


def _abort(args: argparse.Namespace, connect: ClientFactory) -> int:
    by_producer = (args.producer_id, args.producer_epoch, args.coordinator_epoch)
    if (args.start_offset is None) == (None in by_producer) or (
        args.start_offset is not None and any(value is not None for value in by_producer)
    ):
        raise CommandError(
            "either --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch",
            MISTAKEN,
        )
    where = _chosen_partition(args)
    with client(connect, args) as admin:
        if args.start_offset is not None:
            found = _open_at(admin, where, args.start_offset)
            # A log that has never had a marker of this producer knows no coordinator.
            epoch = max(found.coordinator_epoch, 0)
            by_producer = (found.producer_id, found.producer_epoch, epoch)
        from kafka.admin._transactions import AbortTransactionSpec

        admin.abort_transaction(AbortTransactionSpec(where, *by_producer))
    producer_id, producer_epoch, _ = by_producer
    document = {
        "topic": where.topic,
        "partition": where.partition,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
    }
    if args.json:
        print(format_json({"aborted": document}))
    else:
        print(
            f"aborted the transaction of producer {producer_id} in {where.topic}-{where.partition}"
        )
    return 0


def _open_at(admin: Any, where: Any, start_offset: int) -> OpenTransaction:
    for found in open_transactions(admin, [where]):
        if found.start_offset == start_offset:
            return found
    raise CommandError(
        f"no transaction is open in {where.topic}-{where.partition} since offset {start_offset}"
    )


def _terminate(args: argparse.Namespace, connect: ClientFactory) -> int:
    from kafka.errors import ConcurrentTransactionsError

    name = args.transactional_id
    with client(connect, args) as admin:
        # Describing it first keeps a mistyped name from becoming a new transactional id.
        admin.describe_transactions([name])
        for attempt in range(FENCING_ATTEMPTS):
            try:
                producer_id, epoch = admin.fence_producer(name)
                break
            except ConcurrentTransactionsError:
                # It is being aborted, by our request or another.
                if attempt == FENCING_ATTEMPTS - 1:
                    complain(f"the transaction of {name!r} is still being ended; try again")
                    return FAILED
                time.sleep(FENCING_PAUSE_S)
    if args.json:
        print(format_json({"terminated": name, "producer_id": producer_id, "epoch": epoch}))
    else:
        print(f"terminated {name}: producer {producer_id} is fenced below epoch {epoch}")
    return 0


def _show(
    args: argparse.Namespace, rows: list[dict[str, Any]], headings: tuple[str, ...], nothing: str
) -> int:
    if args.json:
        print(format_json(rows))
    elif not rows:
        print(nothing)
    else:
        cells: list[list[Cell]] = [list(row.values()) for row in rows]
        print(format_table(headings, cells))
    return 0


ACTIONS = {
    "list": Action("list transactions", _list_arguments, _list),
    "describe": Action("show a transaction", _id_arguments, _describe),
    "describe-producers": Action(
        "show the producers of a partition", _partition_arguments, _describe_producers
    ),
    "find-hanging": Action(
        "find hanging transactions: open, and unknown to their coordinator",
        _hanging_arguments,
        _find_hanging,
    ),
    "abort": Action("abort a hanging transaction in a partition", _abort_arguments, _abort),
    "terminate": Action("end a transaction and fence its producer", _id_arguments, _terminate),
}
