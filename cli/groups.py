"""`varve groups`: list, describe and delete consumer groups, delete and reset their offsets.

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options.
"""

import argparse
from typing import Any

from cli.actions import Action, add_actions, run_action
from cli.connection import FAILED, ClientFactory, CommandError, client, complain, open_admin
from cli.group_descriptions import GroupDescription, describe_group
from cli.moments import datetime_ms, duration_ms
from cli.offset_resets import (
    OffsetChange,
    Reset,
    ResetRule,
    apply_changes,
    check_inactive,
    plan_changes,
    selected_partitions,
)
from cli.options import topic_partitions, whole_number
from cli.table import Cell, counted, format_json, format_table
from protocol.error_codes import ErrorCode
from storage.clock import SystemClock

STATES = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead", "Assigning")
"""States a group can be listed by (KIP-518, KIP-848)."""

MEMBER_HEADINGS = ("CLIENT", "HOST", "MEMBER", "INSTANCE", "ASSIGNMENT")
OFFSET_HEADINGS = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def run(args: argparse.Namespace, *, connect: ClientFactory = open_admin) -> int:
    """Do the action."""
    return run_action(ACTIONS, args, connect)


def _state(text: str) -> str:
    for state in STATES:
        if state.lower() == text.lower():
            return state
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(STATES)}")


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        type=_state,
        action="append",
        metavar="STATE",
        help=f"only groups in this state ({', '.join(STATES)}); may be repeated",
    )


def _list(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        groups = admin.list_groups(states_filter=args.state)
    groups.sort(key=lambda group: str(group["group_id"]))
    rows = [
        {
            "group": group["group_id"],
            "state": group.get("group_state"),
            "type": group.get("group_type"),
            "protocol": group["protocol_type"],
        }
        for group in groups
    ]
    if args.json:
        print(format_json(rows))
    elif not rows:
        print("no groups")
    else:
        headings = ("GROUP", "STATE", "TYPE", "PROTOCOL")
        print(format_table(headings, [[value or None for value in row.values()] for row in rows]))
    return 0


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        group = describe_group(admin, args.group)
    print(format_json(group.as_document()) if args.json else _description_text(group))
    return 0


def _description_text(group: GroupDescription) -> str:
    protocol = "/".join(filter(None, (group.protocol_type, group.protocol)))
    facts = (
        f"group {group.group}",
        f"state {group.state}",
        f"protocol {protocol or '-'}",
        f"coordinator {group.coordinator}",
    )
    blocks = ["   ".join(facts)]
    if group.members:
        members: list[list[Cell]] = [
            [m.client_id, m.host, m.member_id, m.instance_id, m.assignment_text or None]
            for m in group.members
        ]
        blocks.append(format_table(MEMBER_HEADINGS, members))
    else:
        blocks.append("no members")
    if group.offsets:
        rows: list[list[Cell]] = [
            [o.topic, o.partition, o.committed, o.end_offset, o.lag, o.client_id]
            for o in group.offsets
        ]
        blocks.append(format_table(OFFSET_HEADINGS, rows))
    else:
        blocks.append("no offsets")
    return "\n\n".join(blocks)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="+")


_DELETE_PROBLEMS = {
    "GroupIdNotFoundError": "does not exist",
    "NonEmptyGroupError": "has active members: stop its consumers first",
}


def _delete(args: argparse.Namespace, connect: ClientFactory) -> int:
    groups = list(dict.fromkeys(args.groups))
    with client(connect, args) as admin:
        answers = admin.delete_groups(groups)
    deleted = [group for group in groups if answers.get(group) == "OK"]
    if args.json:
        print(format_json({"deleted": deleted}))
    else:
        for group in deleted:
            print(f"deleted group {group}")
    for group in groups:
        if group not in deleted:
            problem = answers.get(group, "the broker did not answer")
            complain(f"group {group!r} {_DELETE_PROBLEMS.get(problem, f'stays: {problem}')}")
    return 0 if deleted == groups else FAILED


_TOPIC_HELP = "a topic, or some of its partitions as TOPIC:0,1,2; may be repeated"


def _delete_offsets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "--topic",
        type=topic_partitions,
        action="append",
        required=True,
        metavar="TOPIC[:P,P]",
        help=_TOPIC_HELP,
    )


def _delete_offsets(args: argparse.Namespace, connect: ClientFactory) -> int:
    from cli.kafka_library import TopicPartition

    with client(connect, args) as admin:
        # Not asked of the topic, which may be gone while its offsets are still there.
        committed = admin.list_group_offsets({args.group: None})[args.group]
        wanted: list[Any] = []
        for topic, partitions in args.topic:
            there = [at for at in sorted(committed) if at.topic == topic]
            if partitions is not None:
                there = [TopicPartition(topic, partition) for partition in partitions]
            if not there:
                raise CommandError(f"group {args.group!r} has no offsets of topic {topic!r}")
            wanted += there
        answers = admin.delete_group_offsets(args.group, list(dict.fromkeys(wanted)))
    deleted = [at for at, error in answers.items() if error.errno == 0]
    if args.json:
        print(format_json({"deleted": [at._asdict() for at in deleted]}))
    else:
        for at in deleted:
            print(f"deleted the offset of {at.topic}-{at.partition}")
    for at, error in answers.items():
        if error.errno != 0:
            complain(f"{at.topic}-{at.partition}: {_offset_problem(error.errno)}")
    return 0 if len(deleted) == len(answers) else FAILED


def _offset_problem(error_code: int) -> str:
    if error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        return "the group's consumers read this topic: stop them first"
    if error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return "there is no such partition"
    code = ErrorCode(error_code)
    return f"{code.message.rstrip('.')} ({code.name})"


def _reset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--topic", type=topic_partitions, action="append", metavar="TOPIC[:P,P]", help=_TOPIC_HELP
    )
    which.add_argument(
        "--all-topics", action="store_true", help="every partition the group has an offset of"
    )
    rule = parser.add_mutually_exclusive_group(required=True)
    rule.add_argument("--to-earliest", action="store_true", help="the first record there is")
    rule.add_argument("--to-latest", action="store_true", help="behind the last record")
    rule.add_argument("--to-offset", type=whole_number, metavar="N")
    rule.add_argument("--shift-by", type=int, metavar="N", help="N records on, or back if below 0")
    rule.add_argument(
        "--to-datetime",
        type=datetime_ms,
        metavar="TIME",
        help="the first record of that time or later: 2026-01-31T12:00:00, in UTC without a zone",
    )
    rule.add_argument(
        "--by-duration", type=duration_ms, metavar="SPAN", help="so long ago: PT2H30M, P7D"
    )
    parser.add_argument(
        "--execute", action="store_true", help="change the offsets; else they are only shown"
    )


def _rule(args: argparse.Namespace, now_ms: int) -> ResetRule:
    if args.to_earliest:
        return ResetRule(Reset.EARLIEST)
    if args.to_latest:
        return ResetRule(Reset.LATEST)
    if args.to_offset is not None:
        return ResetRule(Reset.OFFSET, args.to_offset)
    if args.shift_by is not None:
        return ResetRule(Reset.SHIFT, args.shift_by)
    if args.to_datetime is not None:
        return ResetRule(Reset.TIME, args.to_datetime)
    return ResetRule(Reset.TIME, now_ms - args.by_duration)


def _reset(args: argparse.Namespace, connect: ClientFactory) -> int:
    rule = _rule(args, SystemClock().now_ms())
    with client(connect, args) as admin:
        check_inactive(admin, args.group)
        wanted = selected_partitions(admin, args.group, None if args.all_topics else args.topic)
        changes = plan_changes(admin, args.group, wanted, rule)
        if args.execute:
            apply_changes(admin, args.group, changes)
    if args.json:
        document = {
            "group": args.group,
            "executed": args.execute,
            "offsets": [change.as_document() for change in changes],
        }
        print(format_json(document))
    else:
        print(_changes_text(changes))
        done = f"reset {counted(len(changes), 'offset')} of group {args.group}"
        print("\n" + (done if args.execute else "nothing is changed yet: add --execute"))
    return 0


def _changes_text(changes: list[OffsetChange]) -> str:
    rows: list[list[Cell]] = [
        [change.topic, change.partition, change.old_offset, change.new_offset, change.remark]
        for change in changes
    ]
    headings = ("TOPIC", "PARTITION", "OLD", "NEW", "")
    return format_table(headings, rows)


ACTIONS = {
    "list": Action("list the groups", _list_arguments, _list),
    "describe": Action("show members, offsets and lag", _describe_arguments, _describe),
    "delete": Action("delete groups with their offsets", _delete_arguments, _delete),
    "delete-offsets": Action(
        "delete offsets of a group", _delete_offsets_arguments, _delete_offsets
    ),
    "reset-offsets": Action(
        "set where a stopped group will go on reading", _reset_arguments, _reset
    ),
}
