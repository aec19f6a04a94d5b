"""How the process before this one ended, as far as its log directories and the machine show it.

    every directory has a marker with the registered epoch              CLEAN
    every directory has a note with that epoch and this boot's id,      SAME_BOOT, once a sync of
    made in that directory, no disk had refused anything                all that it left succeeds
    else                                                                UNKNOWN

A process that was killed has lost nothing while the machine runs: what it wrote is the kernel's.
A machine that was started again, another machine, or a disk that had refused a sync may have lost
what was written and not synced. A copy of a directory has its notes, and may be older than what it
replaces: it counts as unknown, also where its files were put back into the directory itself. So
does a directory whose disk was mounted again under another device number, as volumes of containers
and network file systems are: the two look alike.
"""

import logging
from collections.abc import Iterable
from typing import Final

from broker.controller.images.broker_records import LastRun
from storage.checkpoints.clean_shutdown import marked_epoch
from storage.checkpoints.member_note import MemberNote, is_in_its_place, read_member_note
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

LOGGER = logging.getLogger(__name__)

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
    notes = [_own_note(filesystem, path, boot) for path in paths]
    same = all(note is not None and note.epoch == epoch and not note.failed for note in notes)
    return LastRun.SAME_BOOT if same else LastRun.UNKNOWN


def past_epochs(filesystem: Filesystem, directories: Iterable[str]) -> frozenset[int]:
    """Broker epochs of lives that had one of these directories, which are locked: they are over.

    A copy of a directory proves nothing, for the life that has the original may go on; nor does a
    note of another boot, as the copy may be on another machine.
    """
    boot = boot_id(filesystem)
    epochs = set()
    for path in directories:
        note = _own_note(filesystem, path, boot)
        if note is not None:
            epochs.add(note.epoch)
        try:
            marked = marked_epoch(filesystem, path)
        except DiskError:
            continue
        if marked is not None:
            epochs.add(marked)
    return frozenset(epochs)


def _own_note(filesystem: Filesystem, path: str, boot: str) -> MemberNote | None:
    """The note that was made in this directory, in this boot of the machine."""
    note = read_member_note(filesystem, path)
    if note is None or not boot or note.boot != boot:
        return None
    try:
        if is_in_its_place(filesystem, path, note):
            return note
    except DiskError:
        return None
    LOGGER.warning(
        "log directory is a copy, files were put back into it, or its disk was mounted again under "
        "another device number: its last run is unknown path=%s",
        path,
    )
    return None
