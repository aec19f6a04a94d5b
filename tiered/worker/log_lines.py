"""The tier process's log lines on their way into the broker's log.

The process writes one JSON array a line to its standard error, which is a pipe to the broker:

    ["INFO", "tiered.storage_manager.verify", "segment copied topic=t", "Traceback ..." or null]

The broker logs it again under the same name, with `process=tier`, in its own format and from its
own level on. What is not such a line (an interpreter that crashes, a library that prints) is logged
as it stands, as a warning.
"""

import json
import logging
import sys
from typing import Any, Final, TextIO

from typing_extensions import override

LOGGER = logging.getLogger(__name__)

LINE_BYTES_MAX: Final = 32 * 1024
"""Longer lines are cut."""

MESSAGE_MAX: Final = 4_000
TRACEBACK_MAX: Final = 8_000
"""Characters; JSON may need six bytes for one, but seldom does."""


class ProcessTracebackError(Exception):
    """Stands for an exception of the tier process, whose traceback is this one's text."""


class LineFormatter(logging.Formatter):
    """Of the process's end."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        traceback = self.formatException(record.exc_info) if record.exc_info else None
        return json.dumps(
            [
                record.levelname,
                record.name,
                record.getMessage()[:MESSAGE_MAX],
                None if traceback is None else traceback[-TRACEBACK_MAX:],
            ]
        )


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send every logger's lines to the broker, from `level` on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    # A broker that has gone reads nothing any more; that is no reason to complain to it.
    logging.raiseExceptions = False


class LogLines:
    """Of the broker's end. Holds at most one unfinished line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Log the lines that are whole now."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._log(line)
        if len(rest) > LINE_BYTES_MAX:
            self._log(rest)
            rest = b""
        self._rest = rest

    def end(self) -> None:
        """No more will come: log what there is."""
        rest, self._rest = self._rest, b""
        self._log(rest)

    def _log(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            fields: Any = json.loads(line)
            level, name, message, traceback = map(_text_or_none, fields)
        except (ValueError, TypeError, RecursionError):
            LOGGER.warning(
                "tier process wrote line=%s",
                json.dumps(line[:MESSAGE_MAX].decode(errors="replace")),
            )
            return
        number = logging.getLevelNamesMapping().get(level or "", logging.WARNING)
        logger = logging.getLogger(name)
        if traceback is None:
            logger.log(number, "%s process=tier", message)
        else:
            logger.log(
                number,
                "%s process=tier",
                message,
                exc_info=ProcessTracebackError("\n" + traceback),
            )


def _text_or_none(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError
