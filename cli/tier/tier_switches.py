"""`varve tier pause` and `resume`: settings, of a topic or of all brokers of a cluster.

    --topic T      the topic's `tier.copy.paused` and `tier.fetch.paused`
    without        those of every broker
    --copy, --fetch    only one of the two

They count at once and stay over restarts. What was not copied meanwhile is copied later.
"""

import argparse
import re
from typing import Any, Final

from cli.connection import ClientFactory, CommandError, client
from cli.options import topic_name
from cli.table import format_json

_KEYS: Final = {"copy": "tier.copy.paused", "fetch": "tier.fetch.paused"}
_LIBRARY_PREFIX: Final = re.compile(r"\[Error -?\d+\] \w+: ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of both actions."""
    parser.add_argument("--topic", type=topic_name, metavar="TOPIC", help="default: all topics")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--copy", action="store_true", help="only copying")
    which.add_argument("--fetch", action="store_true", help="only reading")


def pause(args: argparse.Namespace, connect: ClientFactory) -> int:
    """Switch on."""
    return _switch(args, connect, paused=True)


def resume(args: argparse.Namespace, connect: ClientFactory) -> int:
    """Back to the default."""
    return _switch(args, connect, paused=False)


def _switch(args: argparse.Namespace, connect: ClientFactory, *, paused: bool) -> int:
    from cli.admin.kafka_library import AlterConfigOp, ConfigResource

    what = [word for word in _KEYS if vars(args)[word]] or list(_KEYS)
    change = (AlterConfigOp.SET, "true") if paused else (AlterConfigOp.DELETE, None)
    changes = {_KEYS[word]: change for word in what}
    with client(connect, args) as admin:
        kind, names = _resources(admin, args.topic)
        for name in names:
            answer = admin.alter_configs(
                [ConfigResource(kind, name, changes)], raise_on_unknown=False
            )
            result = answer[kind][name]
            if result != "OK":
                raise CommandError(_LIBRARY_PREFIX.sub("", result, count=1).rstrip("."))
    if args.json:
        print(format_json({kind: names, "paused": paused, "what": what}))
    else:
        done = " and ".join({"copy": "copying", "fetch": "reading"}[word] for word in what)
        of = f"of topic {args.topic}" if args.topic else "of all topics"
        print(f"{done} {of} {'is paused' if paused else 'resumes'}")
    return 0


def _resources(admin: Any, topic: str | None) -> tuple[str, list[str]]:
    """Kind and names of what is to be changed: the library knows no setting of all brokers."""
    if topic is not None:
        if not any(found["error_code"] == 0 for found in admin.describe_topics([topic])):
            raise CommandError(f"topic {topic!r} does not exist")
        return "topic", [topic]
    brokers = admin.describe_cluster()["brokers"]
    return "broker", sorted(str(broker["broker_id"]) for broker in brokers)
