"""`varve configs`: describe and alter the settings of a topic, a broker or a group.

Exit status: 0 done, 1 the broker is out of reach or has refused, 2 mistaken options.
"""

import argparse
import re
from typing import Any, Final, NamedTuple

from cli.actions import Action, add_actions, run_action
from cli.connection import MISTAKEN, ClientFactory, CommandError, client, open_admin
from cli.options import key_value, whole_number
from cli.table import Cell, format_json, format_table

_DEFAULT: Final = "DEFAULT_CONFIG"
_LIBRARY_PREFIX: Final = re.compile(r"\[Error -?\d+\] \w+: ")
"""What the client library puts before a broker's sentence."""


class Resource(NamedTuple):
    """A resource with configs: its kind in the library's words, its name."""

    kind: str
    name: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    add_actions(parser, ACTIONS)


def run(args: argparse.Namespace, *, connect: ClientFactory = open_admin) -> int:
    """Do the action."""
    return run_action(ACTIONS, args, connect)


def _resource_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", metavar="TOPIC")
    which.add_argument("--broker", metavar="ID", type=whole_number)
    which.add_argument("--group", metavar="GROUP")


def _resource(args: argparse.Namespace) -> Resource:
    if args.topic is not None:
        return Resource("topic", args.topic)
    if args.broker is not None:
        return Resource("broker", str(args.broker))
    return Resource("group", args.group)


def _check_exists(admin: Any, resource: Resource) -> None:
    """Refuse a topic or a broker that is not there; a group may have settings before it exists."""
    if resource.kind == "topic":
        there = any(t["error_code"] == 0 for t in admin.describe_topics([resource.name]))
    elif resource.kind == "broker":
        brokers = admin.describe_cluster()["brokers"]
        there = any(str(broker["broker_id"]) == resource.name for broker in brokers)
    else:
        there = True
    if not there:
        raise CommandError(f"{resource.kind} {resource.name!r} does not exist")


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    _resource_arguments(parser)
    parser.add_argument("--all", action="store_true", help="defaults included")


def _describe(args: argparse.Namespace, connect: ClientFactory) -> int:
    from cli.admin.kafka_library import ConfigResource

    resource = _resource(args)
    with client(connect, args) as admin:
        # The library does not distinguish an unknown topic from one without settings.
        _check_exists(admin, resource)
        answer = admin.describe_configs([ConfigResource(*resource)], config_filter="all")
    configs = {
        key: config
        for key, config in sorted(answer[resource.kind][resource.name].items())
        if args.all or config["config_source"] != _DEFAULT
    }
    if args.json:
        print(format_json({resource.kind: resource.name, "configs": _document(configs)}))
    elif not configs:
        print(f"{resource.kind} {resource.name} has defaults only (--all shows them)")
    else:
        rows: list[list[Cell]] = [
            [key, _shown(config), config["config_source"], _read_only(config)]
            for key, config in configs.items()
        ]
        print(format_table(("KEY", "VALUE", "SOURCE", ""), rows))
    return 0


def _shown(config: dict[str, Any]) -> str | None:
    if config["is_sensitive"]:
        return "(hidden)"
    return None if config["value"] is None else str(config["value"])


def _read_only(config: dict[str, Any]) -> str:
    return "read-only" if config["read_only"] else ""


def _document(configs: dict[str, dict[str, Any]]) -> dict[str, object]:
    return {
        key: {
            "value": config["value"],
            "source": config["config_source"],
            "sensitive": config["is_sensitive"],
            "read_only": config["read_only"],
        }
        for key, config in configs.items()
    }


def _alter_arguments(parser: argparse.ArgumentParser) -> None:
    _resource_arguments(parser)
    parser.add_argument(
        "--set",
        type=key_value,
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="may be repeated",
    )
    parser.add_argument(
        "--delete",
        action="append",
        default=[],
        dest="deletions",
        metavar="KEY",
        help="reset to the default; may be repeated",
    )


def _alter(args: argparse.Namespace, connect: ClientFactory) -> int:
    from cli.admin.kafka_library import AlterConfigOp, ConfigResource

    resource = _resource(args)
    assigned = dict(args.assignments)
    if not assigned and not args.deletions:
        raise CommandError("nothing to alter: give --set KEY=VALUE or --delete KEY", MISTAKEN)
    both = sorted(assigned.keys() & set(args.deletions))
    if both:
        raise CommandError(f"both set and deleted: {', '.join(both)}", MISTAKEN)
    changes: dict[str, tuple[object, str | None]] = {
        key: (AlterConfigOp.SET, value) for key, value in assigned.items()
    }
    changes |= dict.fromkeys(args.deletions, (AlterConfigOp.DELETE, None))
    with client(connect, args) as admin:
        if resource.kind == "broker":
            # The request goes to that very broker, so it cannot be refused by it.
            _check_exists(admin, resource)
        answer = admin.alter_configs(
            # The broker knows the keys better than the library.
            [ConfigResource(*resource, changes)],
            raise_on_unknown=False,
        )
    result = answer[resource.kind][resource.name]
    if result != "OK":
        raise CommandError(_LIBRARY_PREFIX.sub("", result, count=1).rstrip("."))
    if args.json:
        document = {resource.kind: resource.name, "set": assigned, "deleted": args.deletions}
        print(format_json(document))
    else:
        done = [f"{key}={value}" for key, value in assigned.items()]
        done += [f"{key} is the default again" for key in args.deletions]
        print(f"{resource.kind} {resource.name}: {', '.join(done)}")
    return 0


ACTIONS = {
    "describe": Action("show settings and where they come from", _describe_arguments, _describe),
    "alter": Action("set and delete settings", _alter_arguments, _alter),
}
