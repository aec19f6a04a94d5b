"""How the process before this one ended, as far as its log directories and the machine show it.

    every directory has a marker with the registered epoch              CLEAN
    every directory has a note with that epoch and this boot's id,      SAME_BOOT, once a sync of
    no disk had refused anything                                        all that it left succeeds
    else                                                                UNKNOWN

A process that was killed has lost nothing while the machine runs: what it wrote is the kernel's.
A machine that was started again, another machine, or a disk that had refused a sync may have lost
what was written and not synced.
"""

from collections.abc import Iterable
from typing import Final

from broker.controller.images.broker_records import LastRun
from storage.checkpoints.clean_shutdown import marked_epoch
from storage.checkpoints.member_note import read_member_note
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

BOOT_ID_FILE: Final = "/proc/sys/kernel/random/boot_id"
"""Of Linux: another one each time the machine starts."""


def boot_id(filesystem: Filesystem) -> str:
    """The machine's boot id; empty where it has none."""
    try:
        if not filesystem.exists(BOOT_ID_FILE):
            return ""
        return filesystem.read_bytes(BOOT_ID_FILE).decode("ascii", "replace").strip()
    except DiskError:
        return ""


def last_run(filesystem: Filesystem, directories: Iterable[str], epoch: int) -> LastRun:
    """How the life of broker epoch `epoch` ended, before the directories' markers are taken.

    Args:
        filesystem: With the directories.
        directories: All that the life had.
        epoch: Of its registration.
    """
    paths = list(directories)
    if not paths:
        return LastRun.UNKNOWN
    try:
        if all(marked_epoch(filesystem, path) == epoch for path in paths):
            return LastRun.CLEAN
    except DiskError:
        return LastRun.UNKNOWN
    boot = boot_id(filesystem)
    notes = [read_member_note(filesystem, path) for path in paths]
    same = all(
        note is not None and note.epoch == epoch and note.boot == boot and not note.failed
        for note in notes
    )
    return LastRun.SAME_BOOT if boot and same else LastRun.UNKNOWN
