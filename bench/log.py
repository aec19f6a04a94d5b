"""What the log costs by itself: `python -m bench.log [--directory DIR] [--json]`.

    append      us a call, one batch of one record, with and without the write's own system call
    read        us a call: at the tail, going on behind the tail, and at random offsets
    recovery    GB/s of scanning after a kill, for batches of 1 MiB, 16 KiB and 1 KiB
    memory      RSS per idle, open partition

The best of several runs counts: the rest is what other work on the machine cost.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from bench.process import rss_bytes
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.types.topic_partition import TopicPartition

MIB = 1 << 20
RUNS = 5
RECOVERY_BYTES = 512 * MIB
PARTITIONS = 2000


def _open(directory: str, *, clean_shutdown: bool = False) -> Log:
    return Log.open(
        directory,
        TopicPartition("bench", 0),
        topic_id=UUID(int=1),
        config=CONFIG,
        environment=Environment.without_loop(
            filesystem=FILESYSTEM, clock=SystemClock(), randomness=SeededRandomness(1)
        ),
        checkpointed=CheckpointedLog(clean_shutdown=clean_shutdown),
    )


CONFIG = TopicConfig().model_copy(update={"max_message_bytes": 4 * MIB})
FILESYSTEM = LocalFilesystem()


def _best_us(call: Callable[[], object], count: int) -> float:
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - started) / count)
    return best * 1e6


def _batch(size: int) -> bytearray:
    return build_batch([(None, b"x" * size, (), SystemClock().now_ms())])


def bench_append(root: str, size: int, count: int) -> dict[str, float]:
    """One batch a call; `write_us` is what the system call alone takes for as many bytes."""
    log = _open(f"{root}/append-{size}")
    batch = _batch(size)
    view = memoryview(batch)
    now_ms = SystemClock().now_ms()

    def append() -> None:
        batch[0:8] = b"\0\0\0\0\0\0\0\0"
        log.writer.append_as_leader(view, leader_epoch=0, now_ms=now_ms)

    total_us = _best_us(append, count)
    log.delete()
    fd = os.open(f"{root}/raw", os.O_RDWR | os.O_CREAT)
    position = 0

    def write() -> None:
        nonlocal position
        os.pwrite(fd, view, position)
        position += len(view)

    write_us = _best_us(write, count)
    os.close(fd)
    os.unlink(f"{root}/raw")
    return {"total_us": total_us, "write_us": write_us, "own_us": total_us - write_us}


def bench_read(root: str) -> dict[str, float]:
    """Only where the bytes are; sending them is the network's."""
    log = _open(f"{root}/read")
    batch = _batch(100)
    now_ms = SystemClock().now_ms()
    for _ in range(200_000):
        batch[0:8] = bytes(8)
        log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=now_ms)
    end = log.log_end_offset
    record = len(batch)
    random = SeededRandomness(1)
    offset = 0

    def along() -> None:
        nonlocal offset
        found = log.reader.read(offset, max_bytes=65_536, end_offset=end, min_one_batch=True)
        offset = 0 if found is None else offset + found.length // record

    def tail() -> None:
        log.reader.read(end, max_bytes=65_536, end_offset=end, min_one_batch=True)

    def anywhere() -> None:
        log.reader.read(random.below(end), max_bytes=65_536, end_offset=end, min_one_batch=True)

    result = {
        "tail_us": _best_us(tail, 20_000),
        "along_us": _best_us(along, 20_000),
        "random_us": _best_us(anywhere, 5_000),
    }
    log.delete()
    return result


def bench_recovery(root: str, size: int) -> float:
    """GB/s, from the page cache."""
    directory = f"{root}/recovery-{size}"
    log = _open(directory)
    batch = _batch(size)
    count = max(RECOVERY_BYTES // len(batch), 1)
    if size < 4096:
        count //= 4
    now_ms = SystemClock().now_ms()
    for _ in range(count):
        batch[0:8] = bytes(8)
        log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=now_ms)
    total = log.size()
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        recovered = _open(directory)
        best = max(best, total / (time.perf_counter() - started) / 1e9)
        assert recovered.log_end_offset == count
    log.delete()
    return best


def bench_partitions(root: str) -> dict[str, float]:
    """RSS and time per idle partition with one small batch, opened after a clean stop."""
    batch = _batch(100)
    for number in range(PARTITIONS):
        log = _open(f"{root}/partition-{number}")
        batch[0:8] = bytes(8)
        log.writer.append_as_leader(
            memoryview(batch), leader_epoch=0, now_ms=SystemClock().now_ms()
        )
        log.segment_facts()[-1].seal()
        log.close(clean=False)
    before = rss_bytes(os.getpid())
    started = time.perf_counter()
    logs = [
        _open(f"{root}/partition-{number}", clean_shutdown=True) for number in range(PARTITIONS)
    ]
    took = time.perf_counter() - started
    grown = rss_bytes(os.getpid()) - before
    descriptors = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else -1
    assert sum(log.log_end_offset for log in logs) == PARTITIONS
    return {
        "rss_kib": grown / PARTITIONS / 1024,
        "open_us": took / PARTITIONS * 1e6,
        "descriptors": descriptors,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__)
    parser.add_argument("--directory", type=Path, help="where the files go (default: temporary)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as root:
        result: dict[str, object] = {
            "append_100": bench_append(root, 100, 20_000),
            "append_16k": bench_append(root, 16 * 1024, 3_000),
            "append_1m": bench_append(root, MIB, 60),
            "read": bench_read(root),
            "recovery_gb_s": {
                "1m": bench_recovery(root, MIB),
                "16k": bench_recovery(root, 16 * 1024),
                "1k": bench_recovery(root, 1024),
            },
            "partition": bench_partitions(root),
        }
    if arguments.json:
        print(json.dumps(result, indent=1))
        return 0
    for name, figures in result.items():
        assert isinstance(figures, dict)
        print(f"{name:14}", "  ".join(f"{key} {value:.2f}" for key, value in figures.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
