"""Readers of old records on a slow disk: what do clients of another directory notice?

    python -m bench.slow_readers --slow DIRECTORY [--readers N] [--data BYTES] [--tree TREE]

DIRECTORY lies on a disk that reads slowly; `--make-slow` prints how one is made of a loop device.
A topic is written there, the broker is started anew, and the page cache is told to forget its
files. Readers then ask for records all over it, one request after the other, meanwhile Metadata and
a produce of 1 KiB to a topic in the other directory are sent every ten milliseconds, as in
`bench.slow_directory`. Exit status 1: a p99 is above the goal.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from typing_extensions import override

from bench import wire
from bench.node import REPOSITORY, VarveNode
from bench.slow_directory import GOAL_MS, call, place_topics, probe, quantile

BATCH_BYTES = 16 * 1024
FETCH_BYTES = 256 * 1024

MAKE_SLOW = """\
truncate -s 4G /tmp/slow.img; L=$(losetup -f --show /tmp/slow.img); mkfs.ext4 -q $L
mkdir -p /tmp/slow; mount $L /tmp/slow; N=$(lsblk -no MAJ:MIN $L | tr -d ' ')
echo "$N 1048576" > /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device   # 1 MB/s (cgroup v1)
"""


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


async def read(port: int, topic: str, count: int, until: float, read_bytes: list[int]) -> None:
    """Fetches at places of chance, one after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        frame = wire.fetch_frame(topic, 0, random.randrange(count), max_bytes=FETCH_BYTES)
        try:
            async with asyncio.timeout(max(until - time.perf_counter(), 0.01)):
                read_bytes[0] += len(await call(reader, writer, frame))
        except TimeoutError:
            break
    writer.close()


async def measure(
    node: VarveNode, topics: tuple[str, str], seconds: float, readers: int, count: int
) -> tuple[list[float], list[float], int]:
    """(latencies of Metadata, of the produce, bytes that were read)."""
    quick, slow = topics
    metadata: list[float] = []
    produce: list[float] = []
    read_bytes = [0]
    small = wire.produce_frame(quick, 0, wire.record_batch([b"y" * 1024]), acks=1)
    ask = wire.frame(wire.METADATA, 1, 1, wire.array([wire.string(quick)]))
    until = time.perf_counter() + seconds
    await asyncio.gather(
        probe(node.port, lambda: ask, seconds, metadata),
        probe(node.port, lambda: small, seconds, produce),
        *(read(node.port, slow, count, until, read_bytes) for _ in range(readers)),
    )
    return metadata, produce, read_bytes[0]


def main() -> int:
    """Run and print; see the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow_readers", description=__doc__)
    parser.add_argument("--slow", type=Path, help="on the slow disk")
    parser.add_argument("--make-slow", action="store_true", help="print how to make such a disk")
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--data", type=int, default=512 << 20, help="bytes of the topic")
    parser.add_argument("--tree", type=Path, default=REPOSITORY, help="of the broker, if another")
    arguments = parser.parse_args()
    if arguments.make_slow or arguments.slow is None:
        print(MAKE_SLOW, end="")
        return 0
    slow = Path(tempfile.mkdtemp(prefix="varve-", dir=arguments.slow))
    own = Path(tempfile.mkdtemp(prefix="varve-quick-"))
    quick = own / "data"
    quick.mkdir()

    class Node(VarveNode):
        @override
        def environment(self) -> dict[str, str]:
            return {**super().environment(), "PYTHONPATH": str(arguments.tree)}

    node = Node(own, {"log.dirs": f"{quick},{slow}", "log.segment.bytes": str(32 << 20)})
    try:
        node.start()
        topics = place_topics(node, quick, slow)
        count = fill(node, topics[1], arguments.data)
        node.stop()
        node.launch()
        node.wait_until_ready()
        with node.connect() as connection:
            for topic in topics:
                wire.wait_until_led(connection, topic, 1)
        forget(slow)
        metadata, produce, read_bytes = asyncio.run(
            measure(node, topics, arguments.seconds, arguments.readers, count)
        )
    finally:
        node.kill()
        shutil.rmtree(own, ignore_errors=True)
        shutil.rmtree(slow, ignore_errors=True)
    worst = 0.0
    for name, latencies in (("Metadata", metadata), ("produce to the other directory", produce)):
        p99 = quantile(latencies, 0.99)
        worst = max(worst, p99)
        print(
            f"{name}: requests={len(latencies)} p50={quantile(latencies, 0.5):.1f} ms "
            f"p99={p99:.1f} ms max={quantile(latencies, 1):.1f} ms"
        )
    print(f"{arguments.readers} readers of the slow directory: {read_bytes} bytes")
    return 0 if worst <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
