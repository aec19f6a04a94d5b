"""What the broker and a cleaning process say to each other: a line of JSON each.

    broker -> process                           process -> broker
    {"do": job, "limits": ...}   one at a time
                                                {"put": [base offset, [replaced ...]]}
    {"go": true}                 it is in place
                                                ... again for each group ...
                                                {"done": statistics}
                                                {"failed": [kind, text, path, errno]}
    {"abort": true}              at any time    {"failed": ["aborted", ...]}
    {"rate": bytes a second}     at any time

The end of the connection ends the process at once: there is nobody whose log it could clean. What
it has written by then are `.cleaned` files, which the next start or the next run removes.
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
"""A job names all segments of a log and all producers it knows: some 30 bytes each."""


class Limits(NamedTuple):
    """What a run may use; as for `Cleaner`. The rate is in bytes a second, 0: none."""

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
    """A job as JSON knows it."""
    fields = {name: getattr(job, name) for name in CleaningJob.__slots__}
    fields["last_records"] = [[pid, *last] for pid, last in job.last_records.items()]
    return fields


def job_from_json(fields: Mapping[str, Any]) -> CleaningJob:
    """The job again."""
    return CleaningJob(
        **{
            **fields,
            "segments": tuple(SegmentSize(*one) for one in fields["segments"]),
            "last_records": {pid: (last, epoch) for pid, last, epoch in fields["last_records"]},
        }
    )


def stats_to_json(stats: CleanerStats) -> dict[str, Any]:
    """What a run did."""
    return asdict(stats)


def failure_to_json(error: Exception) -> list[Any]:
    """What a run ended with."""
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
    """The error again, as the run in a thread would have raised it."""
    if kind == "aborted":
        return CleaningAbortedError(text)
    if kind == "disk":
        return DiskError(text, path, code)
    if kind == "corrupt":
        return CorruptFileError(text)
    if kind == "decode":
        return DecodeError(text)
    return CleaningFailedError(text)
