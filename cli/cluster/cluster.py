"""`varve cluster`: describe the cluster, say whether a broker can be restarted, elect leaders.

Actions with a module of their own: `reassign`, `remove-broker`, `recover-metadata`.

Exit status: 0 done, and for `can-restart` yes; 1 the broker is out of reach or has refused, or no;
2 mistaken options.
"""

import argparse
from typing import Any

from cli.actions import Action, add_actions, run_action
from cli.admin_port import AskAdmin, ask_admin
from cli.cluster import reassign, recover_metadata, remove_broker
from cli.cluster.description import ClusterDescription, PartitionInSync, describe
from cli.connection import (
    FAILED,
    ClientFactory,
    CommandError,
    answer_text,
    check_answer,
    client,
    complain,
    host_and_port,
    open_admin,
)
from cli.options import TopicPartitions, add_topics_argument, whole_number
from cli.table import counted, format_json, format_table
from protocol.error_codes import ErrorCode

PREFERRED = 0
"""The election's type in the protocol: only to the first replica, and only when it is in sync."""

SHOWN_MAX = 20
"""Partitions in trouble that the table shows; `--json` has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def run(
    args: argparse.Namespace, *, connect: ClientFactory = open_admin, ask: AskAdmin = ask_admin
) -> int:
    """Do the action."""
    args.ask = ask
    return run_action(ACTIONS, args, connect)


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--admin",
        metavar="HOST:PORT",
        type=_address,
        help="a broker's admin port: adds epochs, leases and why brokers are fenced",
    )


def _address(text: str) -> str:
    if host_and_port(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port")
    return text


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        found = describe(admin)
    page = None if args.admin is None else args.ask(args.admin, "GET", "/cluster", {})
    if args.json:
        extra = {} if page is None else {"membership": page}
        print(format_json(found.as_document() | extra))
        return 0
    print(_text(found, page))
    return 0


def _text(found: ClusterDescription, page: dict[str, Any] | None) -> str:
    controller = "none" if found.controller < 0 else str(found.controller)
    up = sum(not broker.fenced for broker in found.brokers)
    lines = [
        f"cluster {found.cluster_id}, controller {controller}, "
        f"{up} of {counted(len(found.brokers), 'broker')} up",
        "",
        _brokers_table(found, page),
        "",
    ]
    if page is not None:
        left_ms = page["lease_left_ms"]
        lease = "no lease is needed" if left_ms is None else f"lease valid for {left_ms} ms more"
        lines += [
            f"broker {page['node_id']}: {lease}, image of revision {page['image_revision']}, "
            f"controller epoch {page['controller_epoch']}",
            "",
        ]
    trouble = found.in_trouble()
    if not trouble:
        lines.append(f"{counted(len(found.partitions), 'partition')}, all in sync")
        return "\n".join(lines)
    kinds = [kind for _, kind in trouble]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    lines += [f"{counted(len(found.partitions), 'partition')}: {counts}", ""]
    rows = [
        [p.name, kind, None if p.leader < 0 else p.leader, _ids(p.isr), _ids(p.missing), p.min_isr]
        for p, kind in trouble[:SHOWN_MAX]
    ]
    headings = ("PARTITION", "TROUBLE", "LEADER", "IN SYNC", "MISSING", "MIN ISR")
    lines.append(format_table(headings, rows))
    if len(trouble) > SHOWN_MAX:
        lines.append(f"and {len(trouble) - SHOWN_MAX} more: --json has all")
    return "\n".join(lines)


def _brokers_table(found: ClusterDescription, page: dict[str, Any] | None) -> str:
    known = {} if page is None else {one["broker"]: one for one in page["brokers"]}
    headings = ["BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "NOT IN SYNC"]
    rows: list[list[str | int | None]] = []
    for broker in found.brokers:
        more = known.get(broker.broker, {})
        row: list[str | int | None] = [
            broker.broker,
            broker.address,
            broker.rack,
            _state(fenced=broker.fenced, more=more),
            broker.leads,
            broker.replicas,
            broker.not_in_sync,
        ]
        if page is not None:
            row += [more.get("epoch"), more.get("last_run"), more.get("why") or None]
        rows.append(row)
    if page is not None:
        headings += ["EPOCH", "LAST RUN", "WHY"]
    return format_table(headings, rows)


def _state(*, fenced: bool, more: dict[str, Any]) -> str:
    if fenced:
        return "fenced"
    return "draining" if more.get("draining") else "up"


def _ids(nodes: tuple[int, ...]) -> str:
    return ",".join(map(str, nodes)) or "-"


def _can_restart_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="ID", type=whole_number)


def _can_restart(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        found = describe(admin)
    if args.broker not in {broker.broker for broker in found.brokers}:
        raise CommandError(f"the cluster has no broker {args.broker}")
    if found.controller < 0:
        raise CommandError(
            f"broker {args.broker} should stay: no controller could have others lead in its place, "
            "or take it out of the in-sync replicas (does the metadata store answer? /readyz)"
        )
    reasons = [
        (p, reason) for p in found.partitions if (reason := p.without(args.broker)) is not None
    ]
    if args.json:
        document = {
            "broker": args.broker,
            "can_restart": not reasons,
            "reasons": [{"partition": p.name, "reason": reason} for p, reason in reasons],
        }
        print(format_json(document))
        return FAILED if reasons else 0
    if not reasons:
        print(f"broker {args.broker} can be restarted: every partition stays writable")
        return 0
    print(f"broker {args.broker} should stay: {counted(len(reasons), 'partition')} would suffer")
    for partition, reason in reasons[:SHOWN_MAX]:
        print(f"  {partition.name} {reason}")
    if len(reasons) > SHOWN_MAX:
        complain(f"and {len(reasons) - SHOWN_MAX} more: --json has all")
    return FAILED


def _elect_leaders_arguments(parser: argparse.ArgumentParser) -> None:
    add_topics_argument(parser)


def _elect_leaders(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        partitions = describe(admin).partitions
        wanted = _chosen(args.topics, partitions)
        away = [p for p in wanted if p.replicas and p.leader != p.replicas[0]]
        asked: dict[str, list[int]] = {}
        for partition in away:
            asked.setdefault(partition.topic, []).append(partition.partition)
        answer = admin.elect_leaders(PREFERRED, asked, raise_errors=False) if asked else None
    refused = [] if answer is None else _refusals(answer)
    elected = len(away) - len(refused)
    if args.json:
        document = {
            "elected": elected,
            "refused": [{"partition": name, "reason": reason} for name, reason in refused],
        }
        print(format_json(document))
        return FAILED if refused else 0
    if away:
        print(f"{counted(elected, 'partition')} led by the preferred replica again")
    else:
        print("every partition is led by its preferred replica")
    for name, reason in refused:
        complain(f"{name}: {reason}")
    return FAILED if refused else 0


def _chosen(
    topics: list[TopicPartitions], partitions: tuple[PartitionInSync, ...]
) -> list[PartitionInSync]:
    """The partitions that the words name; CommandError for one that does not exist."""
    if not topics:
        return list(partitions)
    chosen: list[PartitionInSync] = []
    for topic, indices in topics:
        there = {p.partition: p for p in partitions if p.topic == topic}
        for index in there if indices is None else indices:
            if index not in there:
                raise CommandError(f"partition '{topic}-{index}' does not exist")
            chosen.append(there[index])
        if not there:
            raise CommandError(f"topic {topic!r} does not exist")
    return chosen


def _refusals(answer: Any) -> list[tuple[str, str]]:
    """Partitions that were not elected for, and why; one that needed none is no refusal."""
    check_answer("the election", getattr(answer, "error_code", 0))
    return [
        (
            f"{result.topic}-{one.partition_id}",
            answer_text(
                f"partition '{result.topic}-{one.partition_id}'", one.error_code, one.error_message
            ),
        )
        for result in answer.replica_election_results
        for one in result.partition_result
        if one.error_code not in {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}
    ]


ACTIONS = {
    "reassign": Action(reassign.SUMMARY, reassign.add_arguments, reassign.run),
    "remove-broker": Action(remove_broker.SUMMARY, remove_broker.add_arguments, remove_broker.run),
    "recover-metadata": Action(
        recover_metadata.SUMMARY, recover_metadata.add_arguments, recover_metadata.run
    ),
    "describe": Action(
        "show brokers, the controller and partitions in trouble", _describe_arguments, _describe
    ),
    "can-restart": Action(
        "say whether every partition stays writable without a broker",
        _can_restart_arguments,
        _can_restart,
    ),
    "elect-leaders": Action(
        "have partitions led by the first of their replicas again",
        _elect_leaders_arguments,
        _elect_leaders,
    ),
}
