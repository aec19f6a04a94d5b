"""A broker with two log directories, one of them slow: what clients of the other one notice.

Meanwhile whatever loads the slow one runs, Metadata and a produce of 1 KiB to a topic in the other
are sent every ten milliseconds, each on a connection of its own. Latency counts from when a request
was to be sent.
"""

import argparse
import asyncio
import contextlib
import shutil
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench import wire
from bench.generator import percentile
from bench.node import REPOSITORY, VarveNode
from bench.versus import checked_out

GOAL_MS = 50.0
PERIOD_S = 0.01
TOPICS_MAX = 64
"""A new partition goes to the directory with fewer: two are enough if none is created meanwhile."""

MAKE_SLOW = """\
truncate -s 4G /tmp/slow.img; L=$(losetup -f --show /tmp/slow.img); mkfs.ext4 -q $L
mkdir -p /tmp/slow; mount $L /tmp/slow; N=$(lsblk -no MAJ:MIN $L | tr -d ' ')
"""
"""How a disk is made of a loop device; what slows it down comes after."""


def parser_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """Arguments of both programs."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{module}", description=description)
    parser.add_argument("--slow", type=Path, help="on the slow disk")
    parser.add_argument("--make-slow", action="store_true", help="print how to make such a disk")
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--tree", type=Path, default=REPOSITORY, help="of the broker, if another")
    return parser


@contextlib.contextmanager
def two_directories(
    slow_disk: Path, tree: Path, settings: Mapping[str, str]
) -> Iterator[tuple[VarveNode, Path, Path]]:
    """(a broker that is not started yet, its quick directory, its slow one); all of it goes."""
    slow = Path(tempfile.mkdtemp(prefix="varve-", dir=slow_disk))
    own = Path(tempfile.mkdtemp(prefix="varve-quick-"))
    quick = own / "data"
    quick.mkdir()
    node = checked_out(tree)(own, {"log.dirs": f"{quick},{slow}", **settings})
    try:
        yield node, quick, slow
    finally:
        node.kill()
        shutil.rmtree(own, ignore_errors=True)
        shutil.rmtree(slow, ignore_errors=True)


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


async def repeat(
    port: int, frame: Callable[[], bytes], until: float, done: Callable[[bytes], None]
) -> None:
    """One request after the other, as fast as they are answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        try:
            async with asyncio.timeout(max(until - time.perf_counter(), 0.01)):
                answer = await call(reader, writer, frame())
        except TimeoutError:
            break
        done(answer)
    writer.close()


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


class Latencies(NamedTuple):
    """Of the requests that have nothing to do with the slow directory, in seconds."""

    metadata: list[float]
    produce: list[float]


async def measure(
    node: VarveNode, quick_topic: str, seconds: float, *load: Awaitable[None]
) -> Latencies:
    """Probe for so long, while the load runs."""
    found = Latencies([], [])
    small = wire.produce_frame(quick_topic, 0, wire.record_batch([b"y" * 1024]), acks=1)
    ask = wire.frame(wire.METADATA, 1, 1, wire.array([wire.string(quick_topic)]))
    await asyncio.gather(
        probe(node.port, lambda: ask, seconds, found.metadata),
        probe(node.port, lambda: small, seconds, found.produce),
        *load,
    )
    return found


def report(found: Latencies) -> int:
    """Print them; the exit status: 1 if a p99 is above the goal."""
    worst = 0.0
    for name, latencies in (
        ("Metadata", found.metadata),
        ("produce to the other directory", found.produce),
    ):
        ordered = sorted(latencies)
        p50, p99, most = (percentile(ordered, share) * 1000 for share in (0.5, 0.99, 1.0))
        worst = max(worst, p99)
        print(
            f"{name}: requests={len(latencies)} p50={p50:.1f} ms p99={p99:.1f} ms max={most:.1f} ms"
        )
    return 0 if worst <= GOAL_MS else 1
