"""Readers of old records on a slow disk: what do clients of another directory notice?

    python -m bench.slow_readers --slow DIRECTORY [--readers N] [--data BYTES] [--tree TREE]

DIRECTORY lies on a disk that reads slowly; `--make-slow` prints how one is made of a loop device.
A topic is written there, the broker is started anew, and the page cache drops its files.
Readers then ask for records all over it, one request after the other, while it is measured
what `bench.two_directories` tells of. Exit status 1: a p99 is above the goal.
"""

import asyncio
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

from bench import two_directories, wire
from bench.node import VarveNode

BATCH_BYTES = 16 * 1024
FETCH_BYTES = 256 * 1024

MAKE_SLOW = (
    two_directories.MAKE_SLOW
    + """\
echo "$N 1048576" > /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device   # 1 MB/s (cgroup v1)
"""
)


def fill(node: VarveNode, topic: str, size: int) -> int:
    """Write batches of one record each; returns how many."""
    frame = wire.produce_frame(topic, 0, wire.record_batch([os.urandom(BATCH_BYTES)]), acks=1)
    count = size // BATCH_BYTES
    with node.connect() as connection:
        for _ in range(count):
            connection.sendall(frame)
            wire.receive(connection)
    return count


def forget(directory: Path) -> None:
    """Let the page cache drop all files below a directory; they must be on disk."""
    os.sync()
    for path in directory.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def main() -> int:
    """Run and print; see the module."""
    parser = two_directories.parser_of("slow_readers", __doc__)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--data", type=int, default=512 << 20, help="bytes of the topic")
    arguments = parser.parse_args()
    if arguments.make_slow or arguments.slow is None:
        print(MAKE_SLOW, end="")
        return 0
    counts: Counter[str] = Counter()
    settings = {"log.segment.bytes": str(32 << 20)}
    with two_directories.two_directories(arguments.slow, arguments.tree, settings) as (node, *both):
        node.start()
        topics = two_directories.place_topics(node, *both)
        count = fill(node, topics[1], arguments.data)
        node.stop()
        node.launch()
        node.wait_until_ready()
        with node.connect() as connection:
            for topic in topics:
                wire.wait_until_led(connection, topic, 1)
        forget(both[1])

        def fetch() -> bytes:
            """From a place of chance."""
            return wire.fetch_frame(topics[1], 0, random.randrange(count), max_bytes=FETCH_BYTES)

        until = time.perf_counter() + arguments.seconds
        load = [
            two_directories.repeat(
                node.port, fetch, until, lambda answer: counts.update(read=len(answer))
            )
            for _ in range(arguments.readers)
        ]
        found = asyncio.run(two_directories.measure(node, topics[0], arguments.seconds, *load))
    status = two_directories.report(found)
    print(f"{arguments.readers} readers of the slow directory: {counts['read']} bytes")
    return status


if __name__ == "__main__":
    sys.exit(main())
