"""Two log directories of one broker, one of them slow: what do clients of the other notice?

    python -m bench.slow_directory --slow DIRECTORY [--size BYTES] [--producers N] [--tree TREE]

DIRECTORY lies on the slow disk; `--make-slow` prints how one is made of a loop device. Producers
write to a topic there as fast as they are answered, while it is measured what
`bench.two_directories` tells of. Exit status 1: a p99 is above the goal.
"""

import asyncio
import sys
import time
from collections import Counter

from bench import two_directories, wire

MAKE_SLOW = (
    two_directories.MAKE_SLOW
    + """\
echo "$N 2097152" > /sys/fs/cgroup/blkio/blkio.throttle.write_bps_device   # 2 MB/s (cgroup v1)
echo 1 > /sys/class/bdi/$N/strict_limit; echo 33554432 > /sys/class/bdi/$N/max_bytes
"""
)


def main() -> int:
    """Run and print; see the module."""
    parser = two_directories.parser_of("slow_directory", __doc__)
    parser.add_argument("--size", type=int, default=16 * 1024, help="bytes of a batch")
    parser.add_argument("--producers", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.make_slow or arguments.slow is None:
        print(MAKE_SLOW, end="")
        return 0
    counts: Counter[str] = Counter()
    with two_directories.two_directories(arguments.slow, arguments.tree, {}) as (node, *both):
        node.start()
        quick, slow = two_directories.place_topics(node, *both)
        frame = wire.produce_frame(slow, 0, wire.record_batch([b"x" * arguments.size]), acks=1)
        until = time.perf_counter() + arguments.seconds
        load = [
            two_directories.repeat(
                node.port, lambda: frame, until, lambda _: counts.update(["batches"])
            )
            for _ in range(arguments.producers)
        ]
        found = asyncio.run(two_directories.measure(node, quick, arguments.seconds, *load))
    status = two_directories.report(found)
    print(f"batches of {arguments.size} bytes to the slow directory: {counts['batches']}")
    return status


if __name__ == "__main__":
    sys.exit(main())
