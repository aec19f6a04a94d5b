"""Is a compacted topic kept compact while it is written to?

    python -m bench.compaction [--value BYTES] [--rate MB/S] [--seconds S] [--keys N] [--threads N]

Records with keys of chance are produced at a rate; every two seconds the size of the log is
printed. Exit status 1: at the end it is more than a fifth of what was written.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench import wire
from bench.node import VarveNode
from protocol.records.builder import build_batch

TOPIC = "compacted"
BATCH_BYTES = 64 * 1024
FRAMES = 400
"""Produced again and again: making batches would take longer than sending them."""

LOOK_S = 2.0
ALLOWED_SHARE = 0.2


def log_bytes(data: Path) -> int:
    """Bytes of the topic's segments, without those that wait for their removal."""
    return sum(path.stat().st_size for path in data.glob(f"{TOPIC}-0/*.log"))


def frames_of(value_bytes: int, keys: int) -> list[bytes]:
    """Produce requests of one batch each."""
    value = os.urandom(value_bytes)
    count = max(BATCH_BYTES // value_bytes, 1)
    return [
        wire.produce_frame(
            TOPIC,
            0,
            bytes(
                build_batch(
                    [
                        (b"key-%08d" % random.randrange(keys), value, (), 1_760_000_000_000)
                        for _ in range(count)
                    ]
                )
            ),
            acks=1,
        )
        for _ in range(FRAMES)
    ]


def main() -> int:
    """Run and print; see the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.compaction", description=__doc__)
    parser.add_argument("--value", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=24.0)
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    own = Path(tempfile.mkdtemp(prefix="varve-compaction-"))
    data = own / "data"
    data.mkdir()
    frames = frames_of(arguments.value, arguments.keys)
    settings = {
        "log.dirs": str(data),
        "log.segment.bytes": str(16 << 20),
        "log.cleanup.policy": "compact",
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.threads": str(arguments.threads),
    }
    node = VarveNode(own, settings)
    sent = 0
    try:
        node.start()
        with node.connect() as connection:
            wire.create_topic(connection, TOPIC)
            wire.wait_until_led(connection, TOPIC, 1)
            begin = time.perf_counter()
            next_look = LOOK_S
            at = 0
            while (passed := time.perf_counter() - begin) < arguments.seconds:
                frame = frames[at % FRAMES]
                at += 1
                connection.sendall(frame)
                wire.receive(connection)
                sent += len(frame)
                ahead = sent / (arguments.rate * 1e6) - (time.perf_counter() - begin)
                if ahead > 0:
                    time.sleep(ahead)
                if passed >= next_look:
                    next_look += LOOK_S
                    print(
                        f"{passed:4.0f} s: {sent >> 20} MiB sent, log {log_bytes(data) >> 20} MiB"
                    )
        left = log_bytes(data)
    finally:
        node.kill()
        shutil.rmtree(own, ignore_errors=True)
    print(f"{sent / arguments.seconds / 1e6:.0f} MB/s, log {left / sent:.0%} of what was sent")
    return 0 if left <= ALLOWED_SHARE * sent else 1


if __name__ == "__main__":
    sys.exit(main())
