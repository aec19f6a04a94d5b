"""The `varve` command: finds the sub-command and loads nothing but that one."""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

from config.version import VERSION
from native.library import RECORD_RULES, load_wanted
from native.loader import CompiledCodeError, prefer_compiled


class Command(NamedTuple):
    """A sub-command: the module that has it, and one line of help."""

    module: str
    summary: str


class CommandModule(Protocol):
    """Interface of a sub-command's module."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the sub-command's options."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the result is the exit status."""
        ...


COMMANDS = {
    "serve": Command("cli.serve", "run the broker"),
    "config": Command("cli.config_command", "show settings and where they come from"),
    "topics": Command("cli.topics", "create, list, describe, alter and delete topics"),
    "groups": Command("cli.groups.groups", "list, describe, reset and delete consumer groups"),
    "transactions": Command("cli.transactions", "show transactions, abort hanging ones"),
    "features": Command("cli.features", "show, raise and lower the levels of features"),
    "cluster": Command("cli.cluster.cluster", "show brokers and partitions, elect leaders"),
    "metadata": Command(
        "cli.cluster.metadata_copy", "copy a node's metadata to a cluster's store, or back"
    ),
    "configs": Command("cli.configs", "describe and alter settings of topics and brokers"),
    "dirs": Command("cli.dirs", "look after log directories: list, drop, adopt"),
    "tier": Command("cli.tier.tier", "look after remote storage: list, verify, clean, restore"),
    "pipeline": Command(
        "cli.pipeline.pipeline", "keep Delta, Iceberg and Parquet tables behind topics"
    ),
    "produce": Command("cli.records.produce", "send records from standard input, for a quick try"),
    "consume": Command("cli.records.consume", "print records, for a quick try"),
    "dump-log": Command("cli.records.dump_log", "print any file of a data directory"),
}
"""Every sub-command, in the order of the help; one whose module is not installed is left out."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells give it."""


BAD_CODE = 2
"""Exit status where compiled code is required, and there is none."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = prefer_compiled()
    except CompiledCodeError as error:
        sys.stderr.write(f"varve: {error}\n")
        return BAD_CODE
    name = words[0] if words else ""
    if name in COMMANDS and _is_there(COMMANDS[name]):
        return _run(name, words[1:])
    parser = _top_level_parser()
    if parser.parse_args(words).version:
        print(f"varve {VERSION}\ncode {code.describe()}")
        print(f"record walks {load_wanted(RECORD_RULES).describe()}")
        return 0
    parser.print_help()
    return 0


def _run(name: str, words: Sequence[str]) -> int:
    command = COMMANDS[name]
    module = cast("CommandModule", importlib.import_module(command.module))
    parser = argparse.ArgumentParser(f"varve {name}", description=f"{command.summary}.")
    module.add_arguments(parser)
    args = parser.parse_args(words)
    try:
        return module.run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left (`varve topics list | head`): no error.
        # Standard output goes to nowhere, or the interpreter would complain at its exit.
        sys.stdout = None
        return 0


def _is_there(command: Command) -> bool:
    return importlib.util.find_spec(command.module) is not None


def _top_level_parser() -> argparse.ArgumentParser:
    there = {name: command for name, command in COMMANDS.items() if _is_there(command)}
    width = max(map(len, there), default=0)
    table = "\n".join(f"  {name:{width}}  {command.summary}" for name, command in there.items())
    parser = argparse.ArgumentParser(
        "varve",
        usage="varve [--version] COMMAND ...",
        description="A Kafka-protocol broker.",
        epilog=f"commands:\n{table}\n\n`varve COMMAND --help` shows more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("command", nargs="?", choices=tuple(there), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
