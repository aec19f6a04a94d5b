"""`varve produce TOPIC`: send lines of standard input or of a file as records, for a quick try.

A line is a value, or with `--key-separator` a key and a value; its end (LF or CR LF) is not sent.

Exit status: 0 every record was acknowledged, 1 not, or the broker is out of reach, 2 mistaken
options.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from cli.connection import (
    FAILED,
    ClientFactory,
    CommandError,
    add_connection_arguments,
    client,
    complain,
    error_text,
    exit_status,
    open_producer,
)
from cli.options import key_value, topic_name, whole_number
from cli.table import counted, format_json

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

LINE_SIZE_MAX: Final = 100 * 1024 * 1024
"""Longest line in bytes: a request can hold no more (`socket.request.max.bytes`)."""

UNACKNOWLEDGED_SIZE_MAX: Final = 16 * 1024 * 1024
"""Bytes sent before we wait for the broker. The library itself takes whatever it is given."""

_ACKS: Final = {"0": 0, "1": 1, "all": "all", "-1": "all"}
_TOPIC_TIMEOUT_MS: Final = 5_000
_LINGER_MS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("topic", metavar="TOPIC", type=topic_name)
    parser.add_argument(
        "--key-separator", metavar="SEP", help="separator of key and value in a line"
    )
    parser.add_argument(
        "--header",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a header for every record; may be repeated",
    )
    parser.add_argument(
        "--partition", type=whole_number, metavar="P", help="default: by the key, or any"
    )
    parser.add_argument("--compression", choices=CODECS, default="none")
    parser.add_argument("--acks", choices=tuple(_ACKS), default="all")
    parser.add_argument("--file", metavar="FILE", help="default: standard input")
    add_connection_arguments(parser)


def run(args: argparse.Namespace, *, connect: ClientFactory = open_producer) -> int:
    """Send the lines."""
    return exit_status(lambda: _produce(args, connect))


class _Progress:
    """Counts of acknowledged and failed records, by the library's callbacks."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.failed = 0
        self.first_error: BaseException | None = None
        self.offsets: dict[int, tuple[int, int]] = {}
        """Lowest and highest offset by partition; -1 with `acks=0`."""

    def on_success(self, metadata: Any) -> None:
        self.acknowledged += 1
        at, offset = metadata.partition, metadata.offset
        first, last = self.offsets.get(at, (offset, offset))
        self.offsets[at] = (min(first, offset), max(last, offset))

    def on_error(self, error: BaseException) -> None:
        self.failed += 1
        if self.first_error is None:
            self.first_error = error


def _produce(args: argparse.Namespace, connect: ClientFactory) -> int:
    settings = {
        "acks": _ACKS[args.acks],
        # A weaker promise than `all` leaves nothing to be idempotent about (KIP-679).
        "enable_idempotence": _ACKS[args.acks] == "all",
        "compression_type": None if args.compression == "none" else args.compression,
        "max_block_ms": _TOPIC_TIMEOUT_MS,
        # How large a record may be is the topic's to say.
        "max_request_size": LINE_SIZE_MAX,
        "linger_ms": 0 if args.file is None and sys.stdin.isatty() else _LINGER_MS,
    }
    progress = _Progress()
    problem: str | None = None
    with _source(args.file) as source, client(connect, args, **settings) as producer:
        _check_topic(producer, args.topic, args.partition)
        try:
            _send_lines(producer, args, source, progress)
        except CommandError as error:
            problem = str(error)
        producer.flush()
    if args.json:
        print(format_json(_document(args.topic, progress)))
    else:
        print(f"{counted(progress.acknowledged, 'record')} sent to {args.topic}")
    if progress.first_error is not None:
        lost = counted(progress.failed, "record")
        complain(f"{lost} refused: {error_text(progress.first_error)}")
    if problem is not None:
        complain(problem)
    return FAILED if problem is not None or progress.failed else 0


@contextmanager
def _source(path: str | None) -> Iterator[BinaryIO]:
    """Standard input, or the file with a progress bar on a terminal."""
    if path is None:
        if sys.stdin.isatty():
            print("one record a line; Ctrl-D ends", file=sys.stderr)
        yield sys.stdin.buffer
        return
    try:
        opened = open(path, "rb")  # noqa: SIM115  because it is closed below
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    with opened:
        if not sys.stderr.isatty():
            yield opened
            return
        # Loaded only for a terminal.
        from os import fstat

        from rich.console import Console
        from rich.progress import wrap_file

        size = fstat(opened.fileno()).st_size
        console = Console(stderr=True)
        with wrap_file(opened, size, description=path, console=console, transient=True) as watched:
            yield watched


def _check_topic(producer: Any, topic: str, partition: int | None) -> None:
    # The first request for a topic's metadata has the broker create it, where it does that.
    from cli.admin.kafka_library import KafkaError

    try:
        partitions = producer.partitions_for(topic)
    except KafkaError as error:
        if not getattr(error, "retriable", False):
            raise
        partitions = None
    if not partitions:
        raise CommandError(
            f"topic {topic!r} does not exist (`varve topics create {topic}` creates it)"
        )
    if partition is not None and partition not in partitions:
        raise CommandError(f"partition {topic}-{partition} does not exist")


def _send_lines(
    producer: Any, args: argparse.Namespace, source: BinaryIO, progress: _Progress
) -> None:
    headers = [(key, value.encode()) for key, value in args.header]
    separator = None if args.key_separator is None else args.key_separator.encode()
    unacknowledged_size = 0
    for number, line in enumerate(_lines(source), start=1):
        key: bytes | None = None
        value = line
        if separator:
            key, found, value = line.partition(separator)
            if not found:
                raise CommandError(f"line {number} has no {args.key_separator!r}")
        if progress.failed:
            # The next ones would fail likewise, or follow after a gap.
            return
        unacknowledged_size += len(line)
        if unacknowledged_size > UNACKNOWLEDGED_SIZE_MAX:
            producer.flush()
            unacknowledged_size = len(line)
        future = producer.send(
            args.topic, key=key, value=value, headers=headers, partition=args.partition
        )
        future.add_callback(progress.on_success)
        future.add_errback(progress.on_error)


def _lines(source: BinaryIO) -> Iterator[bytes]:
    number = 0
    while line := source.readline(LINE_SIZE_MAX + 1):
        number += 1
        if len(line) > LINE_SIZE_MAX:
            raise CommandError(f"line {number} is longer than {LINE_SIZE_MAX} bytes")
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _document(topic: str, progress: _Progress) -> dict[str, object]:
    return {
        "topic": topic,
        "records": progress.acknowledged,
        "failed": progress.failed,
        "partitions": [
            {"partition": partition, "first_offset": first, "last_offset": last}
            for partition, (first, last) in sorted(progress.offsets.items())
        ],
    }
