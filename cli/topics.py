"""`varve topics`: create, list, describe, alter and delete topics, and records at their start.

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options. An action over
several topics does what it can and complains about the others.
"""

import argparse

from cli.actions import Action, add_actions, run_action
from cli.connection import (
    FAILED,
    ClientFactory,
    answer_text,
    check_answer,
    client,
    complain,
    open_admin,
)
from cli.options import key_value, positive, whole_number
from cli.table import Cell, counted, format_json, format_size, format_table
from cli.topic_descriptions import TopicDescription, describe_topics, existing_topics
from protocol.error_codes import ErrorCode

_UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_ALREADY_EXISTS = ErrorCode.TOPIC_ALREADY_EXISTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def run(args: argparse.Namespace, *, connect: ClientFactory = open_admin) -> int:
    """Do the action."""
    return run_action(ACTIONS, args, connect)


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--partitions", type=positive, default=-1, metavar="N", help="default: num.partitions"
    )
    parser.add_argument(
        "--replication-factor",
        type=positive,
        default=-1,
        metavar="N",
        help="default: default.replication.factor",
    )
    parser.add_argument(
        "--config",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the topic; may be repeated",
    )
    parser.add_argument("--if-not-exists", action="store_true", help="an existing topic is fine")


def _create(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        wanted = {
            "num_partitions": args.partitions,
            "replication_factor": args.replication_factor,
            "configs": dict(args.config),
        }
        (answer,) = admin.create_topics({args.name: wanted}, raise_errors=False)["topics"]
    there_already = args.if_not_exists and answer["error_code"] == _ALREADY_EXISTS
    if not there_already:
        check_answer(f"topic {args.name!r}", answer["error_code"], answer.get("error_message"))
    if args.json:
        document: dict[str, object] = {"topic": args.name, "created": not there_already}
        if not there_already:
            document["topic_id"] = _text_or_none(answer.get("topic_id"))
            document["partitions"] = answer.get("num_partitions")
            document["replication_factor"] = answer.get("replication_factor")
        print(format_json(document))
    elif there_already:
        print(f"topic {args.name} exists already")
    else:
        print(f"created topic {args.name} with {counted(answer['num_partitions'], 'partition')}")
    return 0


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--internal", action="store_true", help="internal topics included")


def _list(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        topics = existing_topics(admin, internal=args.internal)
    rows = [
        {
            "topic": topic["name"],
            "partitions": len(topic["partitions"]),
            "replication_factor": max(
                (len(partition["replica_nodes"]) for partition in topic["partitions"]), default=0
            ),
            "internal": topic["is_internal"],
        }
        for topic in topics
    ]
    if args.json:
        print(format_json(rows))
    elif not rows:
        print("no topics")
    else:
        cells = [[r["topic"], r["partitions"], r["replication_factor"]] for r in rows]
        print(format_table(("TOPIC", "PARTITIONS", "REPLICAS"), cells))
    return 0


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="default: every topic")
    parser.add_argument("--internal", action="store_true", help="internal topics included")


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        descriptions, missing = describe_topics(admin, args.names, internal=args.internal)
    if args.json:
        print(format_json([description.as_document() for description in descriptions]))
    elif descriptions:
        print("\n\n".join(map(_description_text, descriptions)))
    elif not missing:
        print("no topics")
    for name in missing:
        complain(f"topic {name!r} does not exist")
    return FAILED if missing else 0


def _description_text(topic: TopicDescription) -> str:
    overrides = ", ".join(f"{key}={value}" for key, value in topic.overrides.items())
    facts = [f"topic {topic.name}", f"id {topic.topic_id or '-'}"]
    if topic.internal:
        facts.append("internal")
    rows: list[list[Cell]] = [
        [
            partition.partition,
            # A broker's number, or why there is none.
            partition.leader if partition.leader >= 0 else "none",
            ",".join(map(str, partition.replicas)),
            ",".join(map(str, partition.isr)),
            partition.start_offset,
            partition.end_offset,
            None if partition.size_bytes is None else format_size(partition.size_bytes),
        ]
        for partition in topic.partitions
    ]
    headings = ("PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END", "SIZE")
    return "\n".join(
        ("   ".join(facts), f"overrides: {overrides or 'none'}", format_table(headings, rows))
    )


def _alter_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--partitions",
        type=positive,
        required=True,
        metavar="N",
        help="new total number of partitions",
    )


def _alter(args: argparse.Namespace, connect: ClientFactory) -> int:
    with client(connect, args) as admin:
        answer = admin.create_partitions({args.name: args.partitions}, raise_errors=False)
    (result,) = answer.results
    check_answer(f"topic {args.name!r}", result.error_code, result.error_message)
    if args.json:
        print(format_json({"topic": args.name, "partitions": args.partitions}))
    else:
        print(f"topic {args.name} has {counted(args.partitions, 'partition')} now")
    return 0


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("--if-exists", action="store_true", help="a missing topic is fine")


def _delete(args: argparse.Namespace, connect: ClientFactory) -> int:
    names = list(dict.fromkeys(args.names))
    with client(connect, args) as admin:
        answers = admin.delete_topics(names, raise_errors=False)["topics"]
    deleted, problems = [], []
    for answer in answers:
        name = answer["name"]
        if answer["error_code"] == 0:
            deleted.append(name)
        elif not (args.if_exists and answer["error_code"] == _UNKNOWN_TOPIC):
            said = answer.get("error_message")
            problems.append(answer_text(f"topic {name!r}", answer["error_code"], said))
    if args.json:
        print(format_json({"deleted": deleted}))
    else:
        for name in deleted:
            print(f"deleted topic {name}")
    for problem in problems:
        complain(problem)
    return FAILED if problems else 0


def _delete_records_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--partition", type=whole_number, required=True, metavar="P")
    parser.add_argument(
        "--before-offset",
        type=whole_number,
        required=True,
        metavar="N",
        help="new log start offset: records below it are deleted",
    )


def _delete_records(args: argparse.Namespace, connect: ClientFactory) -> int:
    from cli.admin.kafka_library import KafkaError, TopicPartition

    target = TopicPartition(args.name, args.partition)
    with client(connect, args) as admin:
        try:
            answer = admin.delete_records({target: args.before_offset})
        except KafkaError as error:
            # The library's text does not say which partition, or not what is wrong.
            code = getattr(type(error), "errno", 0) or 0
            check_answer(f"partition {args.name}-{args.partition}", code)
            raise
    start = answer[target]["low_watermark"]
    if args.json:
        print(format_json({"topic": args.name, "partition": args.partition, "start_offset": start}))
    else:
        print(f"{args.name}-{args.partition} starts at offset {start} now")
    return 0


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


ACTIONS = {
    "create": Action("create a topic", _create_arguments, _create),
    "list": Action("list the topics", _list_arguments, _list),
    "describe": Action("show partitions, offsets and settings", _describe_arguments, _describe),
    "alter": Action("add partitions", _alter_arguments, _alter),
    "delete": Action("delete topics with their records", _delete_arguments, _delete),
    "delete-records": Action(
        "delete the records of a partition up to an offset",
        _delete_records_arguments,
        _delete_records,
    ),
}
