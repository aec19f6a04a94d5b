"""Log lines for people and for machines: `key=value` pairs or one JSON object a line, to stderr.

    time=2026-01-31T12:00:00.123Z level=INFO logger=broker.app message="broker started" node_id=1

Our own messages are written as `words key=value ...`; the pairs are lifted out of the text, so that
both formats carry them as fields. A traceback is one field, with its line breaks escaped: a line
stays a line.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, TextIO

from typing_extensions import override

_PAIR: Final = re.compile(
    r'(?:(?<=\s)|^)([a-z][a-z0-9_.]*)=("(?:[^"\\]|\\.)*"|.*?)(?=\s[a-z][a-z0-9_.]*=|$)', re.S
)
_PLAIN: Final = re.compile(r"[\w./:@+,\[\]{}()#%*~-]+")


def fields_of(message: str) -> tuple[str, list[tuple[str, str]]]:
    """Split `words key=value ...` into the words and the pairs."""
    first = _PAIR.search(message)
    if first is None:
        return message, []
    found = _PAIR.finditer(message, first.start())
    pairs = [(match[1], _unquoted(match[2].strip())) for match in found]
    return message[: first.start()].strip(), pairs


def _unquoted(value: str) -> str:
    """What `quoted` was given; of another text what stands between quotes."""
    if value.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(value))
    return value.strip('"')


class _Structured(logging.Formatter):
    def __init__(self, broker: str = "") -> None:
        super().__init__()
        self._broker = broker

    def fields(self, record: logging.LogRecord) -> Iterator[tuple[str, str]]:
        """The line's fields, in order."""
        moment = datetime.fromtimestamp(record.created, UTC)
        yield "time", moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(record.msecs):03d}Z"
        yield "level", record.levelname
        if self._broker:
            yield "broker", self._broker
        yield "logger", record.name
        words, pairs = fields_of(record.getMessage())
        yield "message", words
        yield from pairs
        if record.exc_info:
            yield "traceback", self.formatException(record.exc_info)


class KeyValueFormatter(_Structured):
    """`key=value` pairs; values with other than plain characters are quoted as in JSON."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={quoted(value)}" for key, value in self.fields(record))


class JsonFormatter(_Structured):
    """One JSON object a line."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(dict(self.fields(record)), ensure_ascii=False)


def quoted(value: str) -> str:
    """`value` as it stands in a key=value line."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def configure(
    *, log_format: str, level: str, stream: TextIO | None = None, broker: str = ""
) -> None:
    """Send every logger's lines to `stream` (stderr), in `log.format` and from `log.level` on.

    `broker` is a field of each line, where several brokers write to one stream; empty: none.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    kind = JsonFormatter if log_format == "json" else KeyValueFormatter
    handler.setFormatter(kind(broker))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # kafka-python and asyncio are chatty below this.
    logging.getLogger("asyncio").setLevel(logging.WARNING)
