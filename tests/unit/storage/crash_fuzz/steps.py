"""All steps of a run, and how often each is drawn. Here: what becomes of the machine.

A step is a function of the machine and of its own number, as a source of chance.
"""

import errno
from collections.abc import Callable
from random import Random
from typing import Final

from tests.fakes.filesystem import KEEP_ALL, Keep
from tests.unit.storage.crash_fuzz.appends import append, role
from tests.unit.storage.crash_fuzz.background import (
    checkpoint,
    compact,
    delete_records,
    flush,
    remove,
    retention,
    roll,
)
from tests.unit.storage.crash_fuzz.changes import config, create, delete, move, start_at, truncate
from tests.unit.storage.crash_fuzz.machine import DIRECTORIES, Machine
from tests.unit.storage.crash_fuzz.rules import check

Step = Callable[[Machine, Random], None]


def stop(machine: Machine, random: Random) -> None:
    """A clean stop, and the next start."""
    machine.stop(random)


def kill(machine: Machine, random: Random) -> None:
    """The process dies."""
    ends = {
        log.topic_partition: log.log_end_offset
        for log in machine.manager.logs()
        if log.failure is None
    }
    is_sound = machine.filesystem.is_sound and not machine.manager.offline_directories
    machine.crash(random, KEEP_ALL)
    for topic_partition, end in ends.items() if is_sound else ():
        log = machine.manager.get(topic_partition)
        # Of a log that has no records left a start may forget where it ended.
        is_empty = not machine.topics[topic_partition].lineage.batches
        is_kept = log is not None and (log.log_end_offset == end or is_empty)
        check(is_kept, "nothing lost", log, end)


def cut(machine: Machine, random: Random) -> None:
    """The machine loses power."""
    machine.crash(random, random.choice([None, random, random]))


def cut_soon(machine: Machine, random: Random) -> None:
    """The machine is about to lose power, in the middle of something."""
    machine.filesystem.stop_after = machine.filesystem.changes + random.randint(1, 40)


def fault(machine: Machine, random: Random) -> None:
    """A call of the disk is about to fail."""
    kind = random.choice(
        ["write", "read", "truncate", "sync", "open", "create", "rename", "unlink", "mkdir",
         "list", "sync_directory", "allocate", "rmtree"]
    )  # fmt: skip
    codes = [errno.EIO, errno.ENOSPC, errno.ENOSPC, errno.EMFILE, errno.EMFILE]
    # As far as file systems go that change in place: no name needs a descriptor, or room to go.
    possible = {"sync": codes[:2], "write": codes[:3], "truncate": codes[:3]}
    possible |= dict.fromkeys(("read", "rename", "unlink", "rmtree"), codes[:1])
    code = random.choice(possible.get(kind, codes))
    path = random.choice(("", "", "", ".log", "checkpoint", ".txnindex", "/two", ".snapshot"))
    times = random.choice((1, 1, 1, 3))
    machine.filesystem.fail(kind, code, path=path, skip=random.choice((0, 1, 3)), times=times)


def broken_start(machine: Machine, random: Random) -> None:
    """A start while the disk of a directory refuses everything."""
    path = random.choice(DIRECTORIES)
    # Where the store names a log's next directory it would be taken for lost, and be made there.
    broken = path if machine.is_all_in_place else ""
    kept: list[Keep] = [KEEP_ALL, random]
    machine.crash(random, random.choice(kept), broken=broken)


WEIGHTS: Final[dict[Step, float]] = {
    append: 40, role: 3, flush: 9, roll: 4, retention: 3, remove: 3, delete_records: 3,
    checkpoint: 6, compact: 6, truncate: 3, start_at: 1, create: 5, delete: 1.2, config: 1,
    move: 5, stop: 1.5, kill: 2, cut: 3, cut_soon: 5, fault: 5, broken_start: 0.4,
}  # fmt: skip

STEPS: Final[dict[str, Step]] = {step.__name__: step for step in WEIGHTS}
