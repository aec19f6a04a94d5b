"""`varve serve`: read the settings, run the broker, or several, until a signal stops it.

    varve serve                  one broker
    varve serve --brokers 4      four brokers on consecutive ports, each with a core of its own
    varve serve --brokers 0      only their metadata store: for commands that copy or recover it

Exit status: 0 after a clean stop, 2 when the settings are refused, else what the broker says.
"""

import argparse
import sys

from cli.options import whole_number
from cli.settings_arguments import BAD_SETTINGS, add_settings_arguments, load_or_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_settings_arguments(parser)
    parser.add_argument(
        "--brokers",
        type=whole_number,
        metavar="N",
        help="run N brokers of this machine, with node ids and ports that follow on the "
        "configured ones; 0: only the metadata store that they share",
    )
    # What a supervisor gives the brokers that it starts.
    parser.add_argument("--lifeline", type=whole_number, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run the broker, or several."""
    loaded = load_or_report(args)
    if loaded is None:
        return BAD_SETTINGS
    # Imported after the settings are good: a mistake is reported at once, not after half a second.
    if args.brokers is not None:
        from broker.supervisor.program import run as run_brokers

        return run_brokers(loaded, args.brokers, command=_command(args))
    from broker.app import run as run_broker

    if args.lifeline is None:
        return run_broker(loaded)
    from broker.runtime.lifeline import Lifeline

    return run_broker(loaded, lifeline=Lifeline(args.lifeline))


def _command(args: argparse.Namespace) -> list[str]:
    """The command line of one broker, with these settings; what follows on it overrides them."""
    words = [sys.executable, "-m", "cli.main", "serve"]
    if args.config is not None:
        words += ["--config", args.config]
    for assignment in args.assignments:
        words += ["--set", assignment]
    return words
