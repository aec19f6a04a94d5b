"""`varve groups reset-offsets`: where stopped groups will go on reading.

What is to happen is shown; with `--execute` it happens. `--export` prints the new offsets as lines
that `--from-file` reads, the form of Kafka's tool:

    topic,partition,offset              one group
    group,topic,partition,offset        several
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from typing import Any

from cli.connection import FAILED, ClientFactory, CommandError, client, complain
from cli.groups.group_descriptions import group_states
from cli.groups.offset_resets import (
    INACTIVE,
    OffsetChange,
    Reset,
    ResetRule,
    apply_changes,
    inactive_problem,
    plan_changes,
    planned_partitions,
    read_plan,
    selected_partitions,
)
from cli.moments import datetime_ms, duration_ms
from cli.options import topic_partitions, whole_number
from cli.table import Cell, counted, format_json, format_table
from storage.environment.clock import SystemClock


def reset_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("groups", metavar="GROUP", nargs="*")
    parser.add_argument("--all-groups", action="store_true", help="every group without members")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--topic",
        type=topic_partitions,
        action="append",
        metavar="TOPIC[:P,P]",
        help="a topic, or some of its partitions as TOPIC:0,1,2; may be repeated",
    )
    which.add_argument(
        "--all-topics", action="store_true", help="every partition the group has an offset of"
    )
    rule = parser.add_mutually_exclusive_group(required=True)
    rule.add_argument("--to-earliest", action="store_true", help="the log start offset")
    rule.add_argument("--to-latest", action="store_true", help="the log end offset")
    rule.add_argument(
        "--to-current",
        action="store_true",
        help="the committed offset; the log end offset where there is none",
    )
    rule.add_argument("--to-offset", type=whole_number, metavar="N")
    rule.add_argument(
        "--shift-by", type=int, metavar="N", help="forward by N offsets; backward if N is negative"
    )
    rule.add_argument(
        "--to-datetime",
        type=datetime_ms,
        metavar="TIME",
        help="the first record of that time or later: 2026-01-31T12:00:00, in UTC without a zone",
    )
    rule.add_argument(
        "--by-duration", type=duration_ms, metavar="SPAN", help="this long before now: PT2H30M, P7D"
    )
    rule.add_argument(
        "--from-file", metavar="FILE", help="offsets from a CSV file, as --export prints them"
    )
    parser.add_argument("--export", action="store_true", help="print the new offsets as CSV")
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument(
        "--execute", action="store_true", help="change the offsets; else they are only shown"
    )
    doing.add_argument("--dry-run", action="store_true", help="only show: as without --execute")
    parser.set_defaults(check=_check_arguments)


def _check_arguments(args: argparse.Namespace) -> None:
    if bool(args.groups) == args.all_groups:
        raise CommandError("name groups, or --all-groups", status=2)
    if args.from_file is not None:
        if args.topic or args.all_topics:
            raise CommandError(
                "--from-file names its partitions: leave --topic and --all-topics out", status=2
            )
    elif not args.topic and not args.all_topics:
        raise CommandError("name partitions with --topic, or --all-topics", status=2)


def _rule(args: argparse.Namespace, now_ms: int) -> ResetRule:
    if args.to_earliest:
        return ResetRule(Reset.EARLIEST)
    if args.to_latest:
        return ResetRule(Reset.LATEST)
    if args.to_current:
        return ResetRule(Reset.CURRENT)
    if args.to_offset is not None:
        return ResetRule(Reset.OFFSET, args.to_offset)
    if args.shift_by is not None:
        return ResetRule(Reset.SHIFT, args.shift_by)
    if args.to_datetime is not None:
        return ResetRule(Reset.TIME, args.to_datetime)
    if args.by_duration is not None:
        return ResetRule(Reset.TIME, now_ms - args.by_duration)
    return ResetRule(Reset.PLAN)


def reset(args: argparse.Namespace, connect: ClientFactory) -> int:
    """Do it. A group that cannot be reset does not keep the others from it."""
    _check_arguments(args)
    rule = _rule(args, SystemClock().now_ms())
    plans = None if args.from_file is None else read_plan(args.from_file, args.groups)
    done: list[tuple[str, list[OffsetChange]]] = []
    problems = []
    with client(connect, args) as admin:
        groups = list(dict.fromkeys(args.groups)) or _inactive_groups(admin)
        states = group_states(admin, groups)
        for group in groups:
            try:
                if states[group] not in INACTIVE:
                    raise CommandError(inactive_problem(group, states[group]))
                plan: dict[Any, int] | None = None
                if plans is not None:
                    plan = plans.get(group)
                    if plan is None:
                        raise CommandError(f"the file says nothing of group {group!r}")
                    wanted = planned_partitions(admin, plan)
                else:
                    wanted = selected_partitions(
                        admin, group, None if args.all_topics else args.topic
                    )
                changes = plan_changes(admin, group, wanted, rule, plan)
                if args.execute:
                    apply_changes(admin, group, changes)
                done.append((group, changes))
            except CommandError as problem:
                problems.append(str(problem))
    if done or args.json:
        _show(args, done)
    for text in problems:
        complain(text)
    return FAILED if problems else 0


def _inactive_groups(admin: Any) -> list[str]:
    listed = admin.list_groups(states_filter=["Empty"])
    # Share groups commit no offsets.
    return sorted(
        str(group["group_id"])
        for group in listed
        if str(group.get("group_type")).lower() != "share"
    )


def _show(args: argparse.Namespace, done: Sequence[tuple[str, list[OffsetChange]]]) -> None:
    if args.export:
        _write_csv(done, with_group=args.all_groups or len(args.groups) > 1)
    elif args.json:
        documents = [
            {
                "group": group,
                "executed": args.execute,
                "offsets": [change.as_document() for change in changes],
            }
            for group, changes in done
        ]
        single = len(args.groups) == 1 and documents
        print(format_json(documents[0] if single else documents))
    else:
        print(_changes_text(done))
        for group, changes in done if args.execute else ():
            print(f"\nreset {counted(len(changes), 'offset')} of group {group}")
        if not args.execute:
            print("\nnothing is changed yet: add --execute")


def _write_csv(done: Sequence[tuple[str, list[OffsetChange]]], *, with_group: bool) -> None:
    lines = csv.writer(sys.stdout, lineterminator="\n")
    for group, changes in done:
        for change in changes:
            first = [group] if with_group else []
            lines.writerow([*first, change.topic, change.partition, change.new_offset])


def _changes_text(done: Sequence[tuple[str, list[OffsetChange]]]) -> str:
    headings = ("TOPIC", "PARTITION", "OLD", "NEW", "")
    rows: list[tuple[str, list[Cell]]] = [
        (
            group,
            [change.topic, change.partition, change.old_offset, change.new_offset, change.remark],
        )
        for group, changes in done
        for change in changes
    ]
    if len(done) == 1:
        return format_table(headings, [row for _, row in rows])
    return format_table(("GROUP", *headings), [[group, *row] for group, row in rows])
