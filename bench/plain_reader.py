"""A plain parallel reader of objects: the throughput of a server without any decoding.

Threads take ranges of fixed length from one queue, object after object, each over a connection of
its own that it keeps. Addresses are signed in advance; bytes are received into a buffer that is
used again, and dropped. Nothing is checked but their count.
"""

import queue
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlsplit


class PlainReadError(RuntimeError):
    """The server gave something else than the range."""


@dataclass(frozen=True, slots=True)
class PlainLoad:
    """What is read how."""

    objects: Sequence[tuple[str, int]]
    """Signed address and size in bytes of each, read in this order."""
    range_bytes: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class PlainResult:
    """All threads together; CPU is this process's."""

    seconds: float
    size_bytes: int
    cpu_s: float


def read_plain(load: PlainLoad) -> PlainResult:
    """Read every byte once.

    Raises:
        PlainReadError: A status that is not 206, or fewer bytes than asked for.
    """
    ranges: queue.SimpleQueue[tuple[str, int, int]] = queue.SimpleQueue()
    for url, size in load.objects:
        for position in range(0, size, load.range_bytes):
            ranges.put((url, position, min(load.range_bytes, size - position)))
    counts: list[int] = []
    errors: list[str] = []

    def work() -> None:
        try:
            counts.append(_drain(ranges, load))
        except (PlainReadError, OSError, HTTPException) as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, daemon=True) for _ in range(load.in_flight)]
    begin, begin_cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    if errors:
        raise PlainReadError("; ".join(errors))
    return PlainResult(seconds, sum(counts), cpu_s)


def _drain(ranges: "queue.SimpleQueue[tuple[str, int, int]]", load: PlainLoad) -> int:
    """Read ranges until none is left; how many bytes."""
    first = urlsplit(load.objects[0][0])
    buffer = memoryview(bytearray(load.range_bytes))
    total = 0
    with closing(HTTPConnection(str(first.hostname), first.port, timeout=60)) as connection:
        while True:
            try:
                url, position, length = ranges.get_nowait()
            except queue.Empty:
                return total
            target = urlsplit(url)
            last = position + length - 1
            connection.request(
                "GET",
                f"{target.path}?{target.query}",
                headers={"Range": f"bytes={position}-{last}"},
            )
            with connection.getresponse() as answer:
                _receive(answer, buffer[:length])
            total += length


def _receive(answer: HTTPResponse, into: memoryview) -> None:
    """Fill the buffer with a range; the connection can be used again afterwards."""
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        raise PlainReadError(f"status {answer.status} for a range")
    filled = 0
    while filled < len(into):
        count = answer.readinto(into[filled:])
        if not count:
            raise PlainReadError(f"{filled} of {len(into)} bytes")
        filled += count
    # What ends the answer.
    answer.read()
