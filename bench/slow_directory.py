"""Two log directories of one broker, one of them slow: what do clients of the other notice?

    python -m bench.slow_directory --slow DIRECTORY [--size BYTES] [--producers N] [--tree TREE]

DIRECTORY lies on the slow disk; `--make-slow` prints how one is made of a loop device. Producers
write to a topic there as fast as they are answered, meanwhile Metadata and a produce of 1 KiB to a
topic in the other directory are sent every ten milliseconds, each on a connection of its own.
Latency counts from when a request was to be sent. Exit status 1: a p99 is above the goal.
"""

import argparse
import asyncio
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from typing_extensions import override

from bench import wire
from bench.node import REPOSITORY, VarveNode

GOAL_MS = 50.0
PERIOD_S = 0.01
TOPICS_MAX = 64
"""A new partition goes to the directory with fewer: two are enough if nobody else makes any."""

MAKE_SLOW = """\
truncate -s 4G /tmp/slow.img; L=$(losetup -f --show /tmp/slow.img); mkfs.ext4 -q $L
mkdir -p /tmp/slow; mount $L /tmp/slow; N=$(lsblk -no MAJ:MIN $L | tr -d ' ')
echo "$N 2097152" > /sys/fs/cgroup/blkio/blkio.throttle.write_bps_device   # 2 MB/s (cgroup v1)
echo 1 > /sys/class/bdi/$N/strict_limit; echo 33554432 > /sys/class/bdi/$N/max_bytes
"""


async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> bytes:
    """Send a whole frame; the answer without its size."""
    writer.write(frame)
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def probe(
    port: int, frame: Callable[[], bytes], seconds: float, latencies: list[float]
) -> None:
    """One request every PERIOD_S; one that is due while another is under way waits already."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begin = time.perf_counter()
    at = 0
    while (due := begin + at * PERIOD_S) < begin + seconds:
        at += 1
        if (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        await call(reader, writer, frame())
        latencies.append(time.perf_counter() - due)
    writer.close()


async def saturate(port: int, frame: bytes, until: float, counts: list[int]) -> None:
    """One request after the other, as fast as they are answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        try:
            async with asyncio.timeout(max(until - time.perf_counter(), 0.01)):
                await call(reader, writer, frame)
        except TimeoutError:
            break
        counts[0] += 1
    writer.close()


def quantile(latencies: list[float], share: float) -> float:
    """In milliseconds."""
    ordered = sorted(latencies)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


def place_topics(node: VarveNode, quick: Path, slow: Path) -> tuple[str, str]:
    """(a topic in the quick directory, one in the slow)."""
    found: dict[Path, str] = {}
    with node.connect() as connection:
        for at in range(TOPICS_MAX):
            name = f"topic-{at}"
            wire.create_topic(connection, name)
            for directory in (quick, slow):
                if (directory / f"{name}-0").is_dir():
                    found.setdefault(directory, name)
            if len(found) == 2:
                return found[quick], found[slow]
    raise RuntimeError("all topics were put into one directory")


async def measure(
    node: VarveNode, topics: tuple[str, str], seconds: float, size: int, producers: int
) -> tuple[list[float], list[float], int]:
    """(latencies of Metadata, of the produce, requests to the slow directory)."""
    quick, slow = topics
    metadata: list[float] = []
    produce: list[float] = []
    counts = [0]
    load = wire.produce_frame(slow, 0, wire.record_batch([b"x" * size]), acks=1)
    small = wire.produce_frame(quick, 0, wire.record_batch([b"y" * 1024]), acks=1)
    ask = wire.frame(wire.METADATA, 1, 1, wire.array([wire.string(quick)]))
    until = time.perf_counter() + seconds
    await asyncio.gather(
        probe(node.port, lambda: ask, seconds, metadata),
        probe(node.port, lambda: small, seconds, produce),
        *(saturate(node.port, load, until, counts) for _ in range(producers)),
    )
    return metadata, produce, counts[0]


def main() -> int:
    """Run and print; see the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow_directory", description=__doc__)
    parser.add_argument("--slow", type=Path, help="on the slow disk")
    parser.add_argument("--make-slow", action="store_true", help="print how to make such a disk")
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--size", type=int, default=16 * 1024, help="bytes of a batch")
    parser.add_argument("--producers", type=int, default=8)
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

    node = Node(own, {"log.dirs": f"{quick},{slow}"})
    try:
        node.start()
        topics = place_topics(node, quick, slow)
        metadata, produce, count = asyncio.run(
            measure(node, topics, arguments.seconds, arguments.size, arguments.producers)
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
    print(f"batches of {arguments.size} bytes to the slow directory: {count}")
    return 0 if worst <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
