"""`varve dump-log FILE...`: what is in the files of a data directory.

Takes every kind of file there is: `.log`, `.index`, `.timeindex`, `.txnindex`, `.snapshot` (also
with the suffixes `.deleted`, `.cleaned`, `.swap`), the checkpoints, partition.metadata,
meta.properties and the clean-shutdown marker. Reads only; a broker may be running.

Exit status: 0 all is well, 1 damage was found, 2 a file could not be read.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator

from cli.records.dump_files import reader_for
from cli.records.dump_log_file import DumpOptions
from cli.records.dump_rows import Row

OK = 0
DAMAGED = 1
UNREADABLE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="file, or partition directory")
    parser.add_argument(
        "--deep", action="store_true", help="a line for each record of a .log file too"
    )
    parser.add_argument(
        "--print-data-log", action="store_true", help="records with key, value and headers"
    )
    parser.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="with --print-data-log: decode keys and values of __consumer_offsets",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(args: argparse.Namespace) -> int:
    """Print the files."""
    options = DumpOptions(
        records=args.deep,
        content=args.print_data_log or args.offsets_decoder,
        decode_offsets=args.offsets_decoder,
    )
    status = OK
    for path in _files(args.files):
        reader = reader_for(path, options)
        if reader is None:
            print(f"varve: {path}: not a file of a data directory", file=sys.stderr)
            status = UNREADABLE
            continue
        if not args.json:
            print(f"Dumping {path}")
        try:
            for row in reader(path):
                if "damage" in row and status == OK:
                    status = DAMAGED
                print(_json_line(path, row) if args.json else _text_line(row))
        except OSError as error:
            print(f"varve: {path}: {error.strerror}", file=sys.stderr)
            status = UNREADABLE
    return status


def _files(paths: list[str]) -> Iterator[str]:
    """The files themselves; of a directory, those that can be dumped."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for name in sorted(os.listdir(path)):
            file = os.path.join(path, name)
            if os.path.isfile(file) and reader_for(file, DumpOptions()) is not None:
                yield file


def _json_line(path: str, row: Row) -> str:
    return json.dumps({"file": path, **row}, default=str)


def _text_line(row: Row) -> str:
    fields = " ".join(f"{name}: {_value(value)}" for name, value in row.items())
    return f"| {fields}" if "keySize" in row else fields


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
