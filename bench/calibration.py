"""What the machine can do at this moment, in a line beside every figure.

A shared machine's speed drifts; a ratio survives that, an absolute figure only together with this.
"""

import os
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from fastcrc.crc32 import iscsi as crc32c
from typing_extensions import override

NEW_FILE_BYTES: Final = 128 << 20

_NAMES: Final = {
    "new_files_gb_s": "new files",
    "memcpy_gb_s": "memcpy",
    "crc32c_gb_s": "crc32c",
    "loopback_gb_s": "loopback",
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Gigabytes per second, each measured for about a tenth of a second.

    Attributes:
        new_files_gb_s: Writing a file that was not there: every page of it has to be found first.
            It tells kinds of machines apart, and what produces large batches follows it.
        memcpy_gb_s: From memory to memory.
        crc32c_gb_s: The sum that batches have.
        loopback_gb_s: Through a socket.
    """

    new_files_gb_s: float
    memcpy_gb_s: float
    crc32c_gb_s: float
    loopback_gb_s: float

    def as_dict(self) -> dict[str, float]:
        """Rounded, for the result file."""
        return {key: round(value, 2) for key, value in asdict(self).items()}

    @override
    def __str__(self) -> str:
        return ", ".join(
            f"{_NAMES[it.name]} {getattr(self, it.name):.1f} GB/s" for it in fields(self)
        )


def machine_line(taken: Sequence[Mapping[str, float]]) -> str:
    """The kind of machine, for a table: medians of what was measured beside its figures.

    Args:
        taken: What `Calibration.as_dict` gave, before each pair.
    """
    parts = []
    for key, name in _NAMES.items():
        values = [one[key] for one in taken if key in one]
        if values:
            spread = f"{min(values):.1f}-{max(values):.1f}"
            parts.append(f"{name} {statistics.median(values):.1f} ({spread})")
    if not parts:
        return ""
    kind = f"{os.cpu_count()} cores, TCP {congestion_control()}"
    return f"Machine: {kind}; GB/s of {', '.join(parts)}; median and spread over its pairs."


def congestion_control() -> str:
    """What new connections use, `cubic` or `bbr`: it decides what a byte over loopback costs."""
    option = getattr(socket, "TCP_CONGESTION", None)
    if option is None:
        return "of unknown kind"
    with socket.socket() as one:
        return one.getsockopt(socket.IPPROTO_TCP, option, 16).rstrip(b"\0").decode()


def _write_new_file(directory: Path | None, block: bytes) -> float:
    """Seconds; the file has no name and is gone afterwards, before the disk has to have it."""
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        begin = time.perf_counter()
        for position in range(0, NEW_FILE_BYTES, len(block)):
            os.pwrite(file.fileno(), block, position)
        return time.perf_counter() - begin


def _rate(size: int, seconds: float) -> float:
    return size / seconds / 1e9


def calibrate(directory: Path | None = None) -> Calibration:
    """Measure new files, memory, checksum and loopback.

    `directory`: where brokers keep their data; else the temporary one.
    """
    # Not zeros: those would all be one and the same page of memory.
    block = b"\x55" * (64 << 20)
    target = bytearray(len(block))
    target[:] = block  # the first pass pays for the pages
    begin = time.perf_counter()
    for _ in range(3):
        target[:] = block
    memcpy = _rate(3 * len(block), time.perf_counter() - begin)

    part = memoryview(block)[: 1 << 20]
    begin = time.perf_counter()
    for _ in range(512):
        crc32c(part)
    crc = _rate(512 << 20, time.perf_counter() - begin)

    new_files = _rate(NEW_FILE_BYTES, _write_new_file(directory, block[: 1 << 20]))

    listener = socket.create_server(("127.0.0.1", 0))
    total = 256 << 20

    def send() -> None:
        with socket.create_connection(listener.getsockname()) as connection:
            for _ in range(total >> 20):
                connection.sendall(part)

    thread = threading.Thread(target=send)
    begin = time.perf_counter()
    thread.start()
    connection, _ = listener.accept()
    with connection, listener:
        left = total
        while left:
            left -= connection.recv_into(target, min(left, 1 << 20))
    seconds = time.perf_counter() - begin
    thread.join()
    return Calibration(new_files, memcpy, crc, _rate(total, seconds))
