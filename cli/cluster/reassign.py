"""`varve cluster reassign`: move replicas to other brokers.

    varve cluster reassign --add-broker 4                 what would be moved to a new broker
    varve cluster reassign --drain 2 --execute            give all that a broker has to others
    varve cluster reassign orders:0,1 --to 3,4,5 --execute
    varve cluster reassign orders --replication-factor 3 --execute --throttle 50000000
    varve cluster reassign --verify                       what is under way; at its end, no throttle
    varve cluster reassign --cancel                       back to the replicas of before

Without `--execute` the plan is only shown. It is made from where the partitions are going, so a
command that was interrupted, or is given twice, goes on where it was.

Exit status: 0 done, and for `--verify` nothing is under way; 1 refused, or under way; 2 mistaken.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cli.cluster.reassignment_plan import Name, Placement, PlanError
from cli.connection import (
    FAILED,
    MISTAKEN,
    ClientFactory,
    CommandError,
    answer_text,
    client,
    complain,
    open_admin,
)
from cli.options import TopicPartitions, add_topics_argument, positive, whole_number
from cli.table import counted, format_json, format_table

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

SHOWN_MAX: Final = 50
"""Partitions that a table shows; `--json` has all."""

PER_REQUEST: Final = 1000
"""Partitions of one request."""

SUMMARY: Final = "move replicas to other brokers: plan, execute, verify, cancel"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_topics_argument(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--to", metavar="ID,ID", type=_brokers, help="these replicas, the preferred leader first"
    )
    what.add_argument(
        "--add-broker", metavar="ID,ID", type=_brokers, help="give these brokers their share"
    )
    what.add_argument(
        "--drain", metavar="ID,ID", type=_brokers, help="give what these brokers have to others"
    )
    what.add_argument(
        "--replication-factor", metavar="N", type=positive, help="so many replicas of each"
    )
    what.add_argument("--verify", action="store_true", help="show what is under way")
    what.add_argument("--cancel", action="store_true", help="go back to the replicas of before")
    parser.add_argument("--execute", action="store_true", help="do what is planned")
    parser.add_argument(
        "--throttle",
        metavar="BYTES/S",
        type=positive,
        help="of each broker that is up, until --verify ends it",
    )


def run(args: argparse.Namespace, connect: ClientFactory) -> int:
    """Do it."""
    with client(with_requests(connect), args) as admin:
        if args.verify:
            return _verify(args, admin)
        if args.cancel:
            return _cancel(args, admin)
        return _plan(args, admin)


def with_requests(connect: ClientFactory) -> ClientFactory:
    """The commands' own client lacks these requests: another one in its place."""
    if connect is not open_admin:
        return connect
    from cli.cluster.reassignment_admin import open_reassignment_admin

    return open_reassignment_admin


def _brokers(text: str) -> tuple[int, ...]:
    brokers = tuple(map(whole_number, text.split(",")))
    if len(set(brokers)) != len(brokers):
        raise argparse.ArgumentTypeError(f"{text!r} names a broker twice")
    return brokers


# -- what there is -------------------------------------------------------------------------------


def targets(admin: Any) -> dict[Name, tuple[int, ...]]:
    """The replicas that every partition is to have: where a reassignment is going."""
    placed = {
        (topic["name"], one["partition_index"]): tuple(one["replica_nodes"])
        for topic in sorted(admin.describe_topics(), key=lambda topic: str(topic["name"]))
        for one in sorted(topic["partitions"], key=lambda one: int(one["partition_index"]))
    }
    for name, one in under_way(admin).items():
        gone = one["removing_replicas"]
        placed[name] = tuple(node for node in one["replicas"] if node not in gone)
    return placed


def under_way(admin: Any) -> dict[Name, Mapping[str, list[int]]]:
    """Reassignments that are not complete, by partition."""
    found = admin.list_partition_reassignments()
    return {(one.topic, one.partition): moving for one, moving in sorted(found.items())}


def brokers_known(admin: Any, placed: Mapping[Name, tuple[int, ...]]) -> set[int]:
    """Brokers that are registered, and those that are not any more and still have replicas."""
    registered = {int(one["broker_id"]) for one in admin.describe_cluster()["brokers"]}
    return registered.union(*placed.values())


def racks(admin: Any) -> dict[int, str | None]:
    """Racks of the brokers that are up."""
    brokers = admin.describe_cluster()["brokers"]
    return {
        int(one["broker_id"]): one["rack"] for one in brokers if not one.get("is_fenced", False)
    }


def chosen(topics: Sequence[TopicPartitions], there: Iterable[Name]) -> list[Name]:
    """The partitions that the words name; all without words.

    Raises:
        CommandError: One does not exist.
    """
    names = list(there)
    if not topics:
        return names
    found: list[Name] = []
    for topic, indexes in topics:
        of_topic = [name for name in names if name[0] == topic]
        if not of_topic:
            raise CommandError(f"topic {topic!r} does not exist")
        for index in [name[1] for name in of_topic] if indexes is None else indexes:
            if (topic, index) not in of_topic:
                raise CommandError(f"partition '{topic}-{index}' does not exist")
            found.append((topic, index))
    return list(dict.fromkeys(found))


# -- plan and execute ----------------------------------------------------------------------------


def _plan(args: argparse.Namespace, admin: Any) -> int:
    before = targets(admin)
    placement = Placement(dict(before), racks(admin))
    names = chosen(args.topics, before)
    if args.to is not None and not args.topics:
        raise CommandError("--to needs the partitions it is for", MISTAKEN)
    known = brokers_known(admin, before)
    for node in args.to or args.drain or ():
        if node not in known:
            raise CommandError(f"the cluster has no broker {node}")
    try:
        if args.to is not None:
            placement.replicas.update(dict.fromkeys(names, args.to))
        elif args.add_broker is not None:
            placement.add(names, args.add_broker)
        elif args.drain is not None:
            placement.drain(names, args.drain)
        else:
            placement.resize(names, args.replication_factor)
    except PlanError as error:
        raise CommandError(str(error)) from error
    moved = {name: placement.replicas[name] for name in names}
    moved = {name: replicas for name, replicas in moved.items() if replicas != before[name]}
    refused: list[tuple[str, str]] = []
    if args.execute:
        refused = execute(admin, before, moved, args.throttle)
    if args.json:
        document = {
            "executed": args.execute,
            "moves": [
                {
                    "topic": name[0],
                    "partition": name[1],
                    "from": list(before[name]),
                    "to": list(replicas),
                }
                for name, replicas in moved.items()
            ],
            "refused": [{"partition": name, "reason": why} for name, why in refused],
        }
        print(format_json(document))
        return FAILED if refused else 0
    _print_moves(before, moved)
    if not moved:
        return 0
    if not args.execute:
        print("\nnothing is moved yet: --execute does it")
        return 0
    print(f"\n{counted(len(moved) - len(refused), 'partition')} on the way: --verify shows them")
    for name, why in refused:
        complain(f"{name}: {why}")
    return FAILED if refused else 0


def _print_moves(
    before: Mapping[Name, tuple[int, ...]], moved: Mapping[Name, tuple[int, ...]]
) -> None:
    if not moved:
        print("nothing is to be moved")
        return
    rows: list[list[str | int | None]] = [
        [f"{name[0]}-{name[1]}", _ids(before[name]), _ids(replicas)]
        for name, replicas in list(moved.items())[:SHOWN_MAX]
    ]
    print(format_table(("PARTITION", "FROM", "TO"), rows))
    if len(moved) > SHOWN_MAX:
        print(f"and {len(moved) - SHOWN_MAX} more: --json has all")


def execute(
    admin: Any,
    before: Mapping[Name, tuple[int, ...]],
    moved: Mapping[Name, tuple[int, ...]],
    throttle: int | None,
) -> list[tuple[str, str]]:
    """Begin the moves; those that were refused, and why. The throttle is set before."""
    if throttle is not None and moved:
        _set_throttle(admin, before, moved, throttle)
    refused: list[tuple[str, str]] = []
    names = list(moved)
    for start in range(0, len(names), PER_REQUEST):
        part = {name: moved[name] for name in names[start : start + PER_REQUEST]}
        refused += refusals(admin.reassign(part))
    return refused


def refusals(refused: Mapping[Name, tuple[int, str | None]]) -> list[tuple[str, str]]:
    """Names of partitions, and why they were refused."""
    return [
        (f"{topic}-{index}", answer_text(f"partition '{topic}-{index}'", code, message))
        for (topic, index), (code, message) in refused.items()
    ]


# -- throttle ------------------------------------------------------------------------------------


def _set_throttle(
    admin: Any,
    before: Mapping[Name, tuple[int, ...]],
    moved: Mapping[Name, tuple[int, ...]],
    rate: int,
) -> None:
    brokers: dict[int, None] = {}
    leading: dict[str, list[str]] = {}
    following: dict[str, list[str]] = {}
    for name, replicas in moved.items():
        topic, index = name
        added = [node for node in replicas if node not in before[name]]
        brokers |= dict.fromkeys((*before[name], *added))
        leading.setdefault(topic, []).extend(f"{index}:{node}" for node in before[name])
        following.setdefault(topic, []).extend(f"{index}:{node}" for node in added)
    for topic in leading:
        replicas_of = {
            LEADER_REPLICAS: ",".join(leading[topic]),
            FOLLOWER_REPLICAS: ",".join(following[topic]),
        }
        alter(admin, "topic", topic, replicas_of)
    # A broker's settings are its own to change: one that is away, as where it is drained because it
    # will not come back, cannot, and sends and fetches nothing.
    up = racks(admin)
    for node in sorted(node for node in brokers if node in up):
        alter(admin, "broker", str(node), {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)})


def clear_throttle(admin: Any, topics: Iterable[str]) -> None:
    """Take the throttle off all brokers that are up, and off these topics, where there is one.

    Only that is a change, for which the controller and the metadata store are needed.
    """
    names = list(dict.fromkeys(topics))
    for start in range(0, len(names), PER_REQUEST):
        part = names[start : start + PER_REQUEST]
        for topic in _throttled(admin, "topic", part, (LEADER_REPLICAS, FOLLOWER_REPLICAS)):
            alter(admin, "topic", topic, {LEADER_REPLICAS: None, FOLLOWER_REPLICAS: None})
    nodes = [str(node) for node in racks(admin)]
    for node in _throttled(admin, "broker", nodes, (LEADER_RATE, FOLLOWER_RATE)):
        alter(admin, "broker", node, {LEADER_RATE: None, FOLLOWER_RATE: None})


def _throttled(admin: Any, kind: str, names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Topics or brokers on which one of these keys is set itself."""
    from cli.admin.kafka_library import ConfigResource

    if not names:
        return []
    own = f"DYNAMIC_{kind.upper()}_CONFIG"
    answer = admin.describe_configs(
        [ConfigResource(kind, name, dict.fromkeys(keys)) for name in names], config_filter="all"
    ).get(kind, {})
    return [
        name
        for name in names
        if any(answer.get(name, {}).get(key, {}).get("config_source") == own for key in keys)
    ]


def alter(admin: Any, kind: str, name: str, changes: Mapping[str, str | None]) -> None:
    """Set what is a text, delete what is None.

    Raises:
        CommandError: The broker refuses.
    """
    from cli.admin.kafka_library import AlterConfigOp, ConfigResource

    operations = {
        key: (AlterConfigOp.DELETE if value is None else AlterConfigOp.SET, value)
        for key, value in changes.items()
    }
    answer = admin.alter_configs([ConfigResource(kind, name, operations)], raise_on_unknown=False)
    if answer[kind][name] != "OK":
        raise CommandError(f"{kind} {name}: {answer[kind][name]}")


# -- verify, cancel ------------------------------------------------------------------------------


def _verify(args: argparse.Namespace, admin: Any) -> int:
    placed = targets(admin)
    moving = under_way(admin)
    names = [name for name in chosen(args.topics, placed) if name in moving]
    if not moving:
        clear_throttle(admin, [name[0] for name in chosen(args.topics, placed)])
    if args.json:
        document = [{"topic": t, "partition": i, **moving[t, i]} for t, i in names]
        print(format_json({"under_way": document}))
        return FAILED if names else 0
    if not names:
        print("no reassignment is under way")
        return 0
    rows: list[list[str | int | None]] = [
        [
            f"{name[0]}-{name[1]}",
            _ids(placed[name]),
            _ids(moving[name]["adding_replicas"]),
            _ids(moving[name]["removing_replicas"]),
        ]
        for name in names[:SHOWN_MAX]
    ]
    print(format_table(("PARTITION", "TO", "ADDING", "REMOVING"), rows))
    if len(names) > SHOWN_MAX:
        print(f"and {len(names) - SHOWN_MAX} more: --json has all")
    return FAILED


def _cancel(args: argparse.Namespace, admin: Any) -> int:
    moving = under_way(admin)
    names = list(moving) if not args.topics else chosen(args.topics, targets(admin))
    names = [name for name in names if name in moving]
    refused = refusals(admin.reassign(dict.fromkeys(names))) if names else []
    if not refused and len(names) == len(moving):
        clear_throttle(admin, [name[0] for name in names])
    if args.json:
        document = {
            "cancelled": len(names) - len(refused),
            "refused": [{"partition": name, "reason": why} for name, why in refused],
        }
        print(format_json(document))
    else:
        print(f"{counted(len(names) - len(refused), 'reassignment')} cancelled")
        for name, why in refused:
            complain(f"{name}: {why}")
    return FAILED if refused else 0


def _ids(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes)) or "-"
