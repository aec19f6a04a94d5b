"""Messages between the broker and a cleaning process: a line of JSON each.

    broker -> process                           process -> broker
    {"do": job, "limits": ...}   one at a time
                                                {"put": [base offset, [replaced ...]]}
    {"go": true}                 it is in place
                                                ... again for each group ...
                                                {"done": statistics}
                                                {"failed": [kind, text, path, errno]}
    {"abort": true}              at any time    {"failed": ["aborted", ...]}
    {"rate": bytes a second}     at any time

The end of the connection ends the process at once: its broker is gone. The `.cleaned` files it has
written by then are removed by the next start or the next run.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from protocol.errors import DecodeError
from storage.cleaner.cleaning import (
    CleanerStats,
    CleaningAbortedError,
    CleaningFailedError,
    CleaningJob,
    SegmentSize,
)
from storage.errors import CorruptFileError, DiskError

LINE_BYTES_MAX: Final = 64 << 20
"""A job lists all segments of a log and all its producers: some 30 bytes each."""


class Limits(NamedTuple):
    """Limits of a run; as for `Cleaner`. The rate is in bytes a second, 0: none."""

    dedupe_buffer_bytes: int
    load_factor: float
    read_bytes: int
    rate: float


def encode(message: Mapping[str, Any]) -> bytes:
    """One line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message of a line."""
    message: dict[str, Any] = json.loads(line)
    return message


def job_to_json(job: CleaningJob) -> dict[str, Any]:
    """Convert a job to JSON."""
    fields = {name: getattr(job, name) for name in CleaningJob.__slots__}
    fields["last_records"] = [[pid, *last] for pid, last in job.last_records.items()]
    return fields


def job_from_json(fields: Mapping[str, Any]) -> CleaningJob:
    """Convert a job from JSON."""
    return CleaningJob(
        **{
            **fields,
            "segments": tuple(SegmentSize(*one) for one in fields["segments"]),
            "last_records": {pid: (last, epoch) for pid, last, epoch in fields["last_records"]},
        }
    )


def stats_to_json(stats: CleanerStats) -> dict[str, Any]:
    """Convert a run's statistics to JSON."""
    return asdict(stats)


def failure_to_json(error: Exception) -> list[Any]:
    """Convert a run's error to JSON."""
    if isinstance(error, CleaningAbortedError):
        return ["aborted", str(error), "", 0]
    if isinstance(error, DiskError):
        return ["disk", error.args[0] if error.args else str(error), error.path, error.errno]
    if isinstance(error, CorruptFileError):
        return ["corrupt", str(error), "", 0]
    if isinstance(error, DecodeError):
        return ["decode", str(error), "", 0]
    return ["bug", repr(error), "", 0]


def failure_from_json(kind: str, text: str, path: str, code: int | None) -> Exception:
    """Convert an error from JSON, as the run in a thread would have raised it."""
    if kind == "aborted":
        return CleaningAbortedError(text)
    if kind == "disk":
        return DiskError(text, path, code)
    if kind == "corrupt":
        return CorruptFileError(text)
    if kind == "decode":
        return DecodeError(text)
    return CleaningFailedError(text)
