"""Commands with actions, like `varve topics create`: their parsers and the choice among them."""

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cli.connection import ClientFactory, add_connection_arguments, exit_status


class Action(NamedTuple):
    """One action of a command."""

    summary: str
    """One line of help."""

    add_arguments: Callable[[argparse.ArgumentParser], None]

    run: Callable[[argparse.Namespace, ClientFactory], int]
    """Does it with clients of the factory; the result is the exit status."""


def add_actions(parser: argparse.ArgumentParser, actions: Mapping[str, Action]) -> None:
    """Declare a command's actions; the connection's options stand before or after their name."""
    add_connection_arguments(parser)
    choices = parser.add_subparsers(title="actions", dest="action", required=True, metavar="ACTION")
    for name, action in actions.items():
        chosen = choices.add_parser(
            name, help=action.summary, description=f"{action.summary.capitalize()}."
        )
        action.add_arguments(chosen)
        add_connection_arguments(chosen, nested=True)


def run_action(
    actions: Mapping[str, Action], args: argparse.Namespace, connect: ClientFactory
) -> int:
    """Run the action that the arguments name; failures become one line (`exit_status`)."""
    return exit_status(lambda: actions[args.action].run(args, connect))
