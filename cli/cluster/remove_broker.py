"""`varve cluster remove-broker`: take a broker out of the cluster for good.

    varve cluster remove-broker 3            refused while it has replicas
    varve cluster remove-broker 3 --drain    moves them to the others first, and waits

    has replicas ──--drain──> on their way ──> has none ──stopped by its operator──> unregistered

What has been done is not done again: a command that was interrupted, or is given twice, goes on.

Exit status: 0 the broker is not registered any more; 1 refused, or a step is left; 2 mistaken.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, Final

from cli.cluster.reassign import execute, racks, targets, under_way, with_requests
from cli.cluster.reassignment_plan import Placement, PlanError
from cli.connection import FAILED, ClientFactory, CommandError, answer_text, client, complain
from cli.options import positive, whole_number
from cli.table import counted, format_json
from protocol.error_codes import ErrorCode

POLL_S: Final = 1.0

SUMMARY: Final = "drain a broker that is to go for good, and forget it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("broker", metavar="ID", type=whole_number)
    parser.add_argument(
        "--drain", action="store_true", help="move its replicas to other brokers, and wait"
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait also until it is stopped, then unregister it"
    )
    parser.add_argument("--throttle", metavar="BYTES/S", type=positive, help="of the drain")


def run(
    args: argparse.Namespace, connect: ClientFactory, pause: Callable[[float], None] = time.sleep
) -> int:
    """Do what is left to do."""
    with client(with_requests(connect), args) as admin:
        if not _is_registered(admin, args.broker):
            return _done(args, f"broker {args.broker} is not registered")
        held = _held(admin, args.broker)
        if held and not args.drain:
            raise CommandError(
                f"broker {args.broker} has replicas of {counted(held, 'partition')}: "
                "--drain moves them to other brokers"
            )
        if held:
            _drain(args, admin)
            while held:
                pause(POLL_S)
                held = _held(admin, args.broker)
        while not _is_fenced(admin, args.broker):
            if not args.wait:
                complain(
                    f"broker {args.broker} has no replicas any more; stop it, then give this "
                    "command again"
                )
                return FAILED
            pause(POLL_S)
        if _held(admin, args.broker):
            # A topic was created meanwhile.
            raise CommandError(f"broker {args.broker} has replicas again: --drain moves them")
        code, message = admin.unregister_broker(args.broker)
        if code not in (ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED):
            raise CommandError(answer_text(f"broker {args.broker}", code, message))
        return _done(args, f"broker {args.broker} is unregistered")


def _done(args: argparse.Namespace, text: str) -> int:
    print(format_json({"broker": args.broker, "registered": False}) if args.json else text)
    return 0


def _drain(args: argparse.Namespace, admin: Any) -> None:
    before = targets(admin)
    placement = Placement(dict(before), racks(admin))
    names = [name for name, replicas in before.items() if args.broker in replicas]
    try:
        placement.drain(names, (args.broker,))
    except PlanError as error:
        raise CommandError(str(error)) from error
    refused = execute(
        admin, before, {name: placement.replicas[name] for name in names}, args.throttle
    )
    if refused:
        name, why = refused[0]
        raise CommandError(f"{counted(len(refused), 'partition')} refused, {name}: {why}")
    if not args.json:
        print(f"{counted(len(names), 'partition')} on the way to other brokers")


def _held(admin: Any, broker: int) -> int:
    """Partitions of which it has a replica, also one that is being moved away."""
    held = {
        (topic["name"], one["partition_index"])
        for topic in admin.describe_topics()
        for one in topic["partitions"]
        if broker in one["replica_nodes"]
    }
    held |= {name for name, one in under_way(admin).items() if broker in one["replicas"]}
    return len(held)


def _is_registered(admin: Any, broker: int) -> bool:
    return any(one["broker_id"] == broker for one in admin.describe_cluster()["brokers"])


def _is_fenced(admin: Any, broker: int) -> bool:
    return broker not in racks(admin)
