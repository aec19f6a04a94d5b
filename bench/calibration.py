"""What the machine can do at this moment, in a line beside every figure.

A shared machine's speed drifts; a ratio survives that, an absolute figure only together with this.
"""

import socket
import threading
import time
from dataclasses import asdict, dataclass

from fastcrc.crc32 import iscsi as crc32c
from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Calibration:
    """Gigabytes per second, each measured for about a tenth of a second."""

    memcpy_gb_s: float
    crc32c_gb_s: float
    loopback_gb_s: float

    def as_dict(self) -> dict[str, float]:
        """Rounded, for the result file."""
        return {key: round(value, 2) for key, value in asdict(self).items()}

    @override
    def __str__(self) -> str:
        return (
            f"memcpy {self.memcpy_gb_s:.1f} GB/s, crc32c {self.crc32c_gb_s:.1f} GB/s, "
            f"loopback {self.loopback_gb_s:.1f} GB/s"
        )


def _rate(size: int, seconds: float) -> float:
    return size / seconds / 1e9


def calibrate() -> Calibration:
    """Measure memory, checksum and loopback."""
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
    return Calibration(memcpy, crc, _rate(total, seconds))
