"""`varve groups`: list, describe and delete groups, remove members, handle offsets.

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options.
"""

import argparse
from typing import Any

from cli.actions import Action, add_actions, run_action
from cli.connection import (
    FAILED,
    ClientFactory,
    CommandError,
    answer_text,
    client,
    complain,
    open_admin,
)
from cli.groups.group_description import GroupDescription
from cli.groups.group_descriptions import describe_group
from cli.groups.groups_reset import reset, reset_arguments
from cli.options import one_of, topic_partitions
from cli.table import Cell, format_json, format_table
from protocol.error_codes import ErrorCode

STATES = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Dead",
    "Assigning",
    "Reconciling",
)
"""States a group can be listed by (KIP-518, KIP-848)."""

TYPES = ("classic", "consumer", "share")
"""Protocols a group can be listed by (KIP-848, KIP-932)."""

MEMBER_HEADINGS = ("CLIENT", "HOST", "MEMBER", "INSTANCE", "ASSIGNMENT")
VERBOSE_MEMBER_HEADINGS = (*MEMBER_HEADINGS, "PROTOCOL", "EPOCH", "TARGET")
SHARE_OFFSET_HEADINGS = ("TOPIC", "PARTITION", "START", "LAG")
OFFSET_HEADINGS = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def run(args: argparse.Namespace, *, connect: ClientFactory = open_admin) -> int:
    """Do the action."""
    return run_action(ACTIONS, args, connect)


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        type=one_of(STATES),
        action="append",
        metavar="STATE",
        help=f"only groups in this state ({', '.join(STATES)}); may be repeated",
    )
    parser.add_argument(
        "--type",
        type=str.lower,
        choices=TYPES,
        action="append",
        help="only groups of this protocol; may be repeated",
    )


def _list(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        groups = admin.list_groups(states_filter=args.state, types_filter=args.type)
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
    parser.add_argument("groups", metavar="GROUP", nargs="*")
    parser.add_argument("--all-groups", action="store_true", help="every group")
    parts = parser.add_argument_group("what to show (everything when none is given)")
    parts.add_argument("--state", action="store_true", help="the line about the group itself")
    parts.add_argument("--members", action="store_true", help="members and their assignments")
    parts.add_argument("--offsets", action="store_true", help="committed offsets and lag")
    parser.add_argument(
        "--verbose", action="store_true", help="also epochs, protocols and target assignments"
    )


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    if bool(args.groups) == args.all_groups:
        raise CommandError("name groups, or --all-groups", status=2)
    described, problems = [], []
    with client(connect, args) as admin:
        names = list(dict.fromkeys(args.groups)) or sorted(
            str(group["group_id"]) for group in admin.list_groups()
        )
        for name in names:
            try:
                described.append(describe_group(admin, name))
            except CommandError as problem:
                problems.append(str(problem))
    if args.json:
        documents = [group.as_document() for group in described]
        if len(args.groups) != 1:
            print(format_json(documents))
        elif documents:
            print(format_json(documents[0]))
    elif described:
        print("\n\n\n".join(_description_text(group, args) for group in described))
    elif not problems:
        print("no groups")
    for text in problems:
        complain(text)
    return FAILED if problems else 0


def _description_text(group: GroupDescription, args: argparse.Namespace) -> str:
    everything = not (args.state or args.members or args.offsets)
    blocks = [_state_text(group, verbose=args.verbose)]
    if everything or args.members:
        blocks.append(_members_text(group, verbose=args.verbose))
    if everything or args.offsets:
        blocks.append(_offsets_text(group))
    return "\n\n".join(blocks)


def _state_text(group: GroupDescription, *, verbose: bool) -> str:
    protocol = "/".join(filter(None, (group.protocol_type, group.protocol)))
    facts = [
        f"group {group.group}",
        f"state {group.state}",
        f"protocol {protocol or '-'}",
        f"coordinator {group.coordinator}",
    ]
    if verbose:
        facts.append(f"type {group.type}")
        facts.append(f"members {len(group.members)}")
        if group.epoch is not None:
            facts.append(f"epoch {group.epoch}")
            facts.append(f"target assignment epoch {group.target_epoch}")
    return "   ".join(facts)


def _members_text(group: GroupDescription, *, verbose: bool) -> str:
    if not group.members:
        return "no members"
    rows: list[list[Cell]] = []
    for m in group.members:
        row: list[Cell] = [m.client_id, m.host, m.member_id, m.instance_id]
        row.append(m.assignment_text or None)
        if verbose:
            row += [m.protocol or group.type, m.epoch, m.target_text or None]
        rows.append(row)
    return format_table(VERBOSE_MEMBER_HEADINGS if verbose else MEMBER_HEADINGS, rows)


def _offsets_text(group: GroupDescription) -> str:
    if not group.offsets:
        return "no offsets"
    if group.type == "share":
        starts: list[list[Cell]] = [
            [o.topic, o.partition, o.committed, o.lag] for o in group.offsets
        ]
        return format_table(SHARE_OFFSET_HEADINGS, starts)
    rows: list[list[Cell]] = [
        [o.topic, o.partition, o.committed, o.end_offset, o.lag, o.client_id] for o in group.offsets
    ]
    return format_table(OFFSET_HEADINGS, rows)


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
    from cli.admin.kafka_library import TopicPartition

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


def _remove_members_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="every member")
    which.add_argument(
        "--instance",
        action="append",
        metavar="ID",
        help="a static member, by its group.instance.id; may be repeated",
    )
    which.add_argument(
        "--member", action="append", metavar="ID", help="by its member id; may be repeated"
    )
    parser.add_argument("--reason", help="for the broker's log")


def _remove_members(args: argparse.Namespace, connect: ClientFactory) -> int:
    from cli.admin.kafka_library import MemberToRemove

    with client(connect, args) as admin:
        if args.all:
            # By what names them for good: a static member may come back with a new member id.
            wanted = [
                MemberToRemove(
                    member_id=None if m.instance_id else m.member_id,
                    group_instance_id=m.instance_id,
                    reason=args.reason,
                )
                for m in describe_group(admin, args.group).members
            ]
        elif args.instance:
            wanted = [
                MemberToRemove(group_instance_id=name, reason=args.reason)
                for name in dict.fromkeys(args.instance)
            ]
        else:
            wanted = [
                MemberToRemove(member_id=name, reason=args.reason)
                for name in dict.fromkeys(args.member)
            ]
        answers = admin.remove_group_members(args.group, wanted)
    removed, problems = [], []
    for name, error in answers.items():
        if error.errno == 0:
            removed.append(name)
        elif error.errno == ErrorCode.UNKNOWN_MEMBER_ID:
            problems.append(f"group {args.group!r} has no member {name!r}")
        else:
            problems.append(answer_text(f"member {name!r}", error.errno))
    if args.json:
        print(format_json({"removed": removed}))
    else:
        for name in removed:
            print(f"removed member {name}")
        if not answers:
            print("no members")
    for text in problems:
        complain(text)
    return FAILED if problems else 0


ACTIONS = {
    "list": Action("list the groups", _list_arguments, _list),
    "describe": Action("show members, offsets and lag", _describe_arguments, _describe),
    "delete": Action("delete groups with their offsets", _delete_arguments, _delete),
    "delete-offsets": Action(
        "delete offsets of a group", _delete_offsets_arguments, _delete_offsets
    ),
    "reset-offsets": Action(
        "reset the committed offsets of a group without members", reset_arguments, reset
    ),
    "remove-members": Action(
        "remove members, such as consumers that hang", _remove_members_arguments, _remove_members
    ),
}
