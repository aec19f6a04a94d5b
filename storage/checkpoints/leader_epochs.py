"""Leader epoch cache of one partition: epochs and their start offsets (KIP-101).

From it a replica, or a consumer after an unclean election, learns where its log diverges from the
leader's.
Kept in `leader-epoch-checkpoint` (format: `storage.checkpoints.checkpoint_files`), read when first
needed:

    epoch  start offset
        0             0      epoch 0 wrote 0 .. 119
        3           120      epochs 1 and 2 wrote nothing
        4           307      and is still writing

Both columns only grow. The end offset of an epoch is the start of the next one.

Source: Kafka, LeaderEpochFileCache.java; KIP-101, KIP-279, KIP-320.
"""

import errno
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from posixpath import dirname
from typing import Final

from storage.checkpoints.checkpoint_files import decode_epochs, encode_epochs
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError, DiskError

_log = logging.getLogger(__name__)

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochCache:
    """The epochs of one partition, in memory and in its checkpoint.

    Every change is on disk when the method returns, except `begin`, `begin_at`, `begin_in_memory`,
    `truncate_from_start`, and those made before the first look-up (truncations while the log is
    opened), which wait for it.
    `sync` is for callers that drop the batches from which the epochs could be rebuilt.

    Attributes:
        path: The checkpoint.
        is_ahead_on_disk: It may have epochs that were taken back: it is written before a batch is.
        is_synced: The checkpoint is on disk, as far as is known.
        sync_with_flush: The log's next flush has to sync it too.
        is_written: Nothing has changed in memory alone.
        version: Grows with every change in memory.
        is_damaged: The checkpoint did not parse: the cache started empty. The log may give it the
            entries again (`replace`), from the epochs in its batches.
    """

    __slots__ = (
        "_entries",
        "_filesystem",
        "_pending",
        "_starts",
        "is_ahead_on_disk",
        "is_damaged",
        "is_synced",
        "is_written",
        "path",
        "sync_with_flush",
        "version",
    )

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self.path = path
        self.is_ahead_on_disk = False
        self.is_damaged = False
        self.is_synced = False
        self.sync_with_flush = False
        self.is_written = True
        self.version = 0
        self._filesystem = filesystem
        # Epochs and start offsets, parallel and ascending; None until read.
        self._entries: list[int] | None = None
        self._starts: list[int] = []
        # Truncations asked for before the file was read: (from the end?, offset).
        self._pending: list[tuple[bool, int]] = []

    # -- writing -----------------------------------------------------------------------------

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`. Nothing happens if it is the latest already.

        Entries that contradict it (epoch or start offset not below) go: they belong to a past
        that was truncated.
        """
        epochs = self._load()
        before = epochs[:], self._starts[:]
        if self._assign(epochs, epoch, start_offset) or self.is_ahead_on_disk:
            try:
                self._write()
            except DiskError:
                # Else the next attempt would take it for written.
                epochs[:], self._starts[:] = before
                raise

    def assign_unsaved(self, epoch: int, start_offset: int) -> bytes | None:
        """As `assign`, but what the checkpoint must hold is left to the caller to write.

        Returns:
            The file's bytes; None: it has them already.
        """
        if self._assign(self._load(), epoch, start_offset) or self.is_ahead_on_disk:
            # Should the caller fail to write them, it calls `forget_from_end`.
            self.is_ahead_on_disk = False
            return encode_epochs(self.entries())
        return None

    def forget_from_end(self, end_offset: int) -> None:
        """As `truncate_from_end`, in memory: the disk has no room.

        What the file says more is cut when it is opened, as long as the log ends there. So it is
        written before the next batch: behind one of an earlier epoch it would be taken for true.
        """
        self._truncate_from_end(self._load(), end_offset)
        self.is_ahead_on_disk = True

    def begin(self, epoch: int) -> None:
        """Note that a new, empty log begins with `epoch` at offset 0; nothing if it has epochs.

        Written but not synced, so that thousands of partitions can be created in seconds, and the
        first append to one need not wait for the disk. Should a crash take the file, recovery reads
        the epochs from the batches.
        """
        epochs = self._load()
        if epochs:
            return
        self._assign(epochs, epoch, 0)
        file = self._filesystem.open(self.path, create=True)
        file.truncate(0)
        file.write_at(encode_epochs(self.entries()), 0)
        file.close()
        self.is_synced = False

    def begin_at(self, epoch: int, start_offset: int, *, in_place: bool = False) -> None:
        """As `assign`, of a log that was recovered: written but not synced.

        Thousands of partitions begin an epoch after an unclean stop, and a sync of each would take
        longer than all the rest of the start. The log's next flush syncs the file with the first
        records of the epoch; if the power goes before, recovery knows the epoch by its batches.

        Args:
            epoch: As in `assign`.
            start_offset: As in `assign`.
            in_place: The file may be lost, as all epochs are in batches that are here. Some file
                systems wait for the data of a file that is put in another's place.
        """
        epochs = self._load()
        if not self._assign(epochs, epoch, start_offset):
            return
        data = encode_epochs(self.entries())
        path = self.path if in_place else f"{self.path}.tmp"
        file = self._filesystem.open(path, create=True)
        file.write_at(data, 0)
        file.truncate(len(data))
        file.close()
        if not in_place:
            self._filesystem.rename(path, self.path)
        self.is_synced = False
        self.sync_with_flush = True

    def begin_in_memory(self, epoch: int, start_offset: int) -> None:
        """As `assign`, without a file: a broker takes over a thousand partitions in one go.

        The log's next flush writes it, before the recovery point passes the epoch's first record.
        """
        if self._assign(self._load(), epoch, start_offset):
            self.is_written = False

    def to_be_written(self) -> "EpochsTicket | None":
        """What a thread is to write, if something is in memory alone."""
        if self.is_written:
            return None
        self.is_written = True
        return EpochsTicket(self, self._filesystem, self.version, encode_epochs(self.entries()))

    def _assign(self, epochs: list[int], epoch: int, start_offset: int) -> bool:
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        starts = self._starts
        if epochs and epoch == epochs[-1] and start_offset >= starts[-1]:
            return False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.version += 1
        return True

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        """Start over with these (epoch, start offset)."""
        self._entries = []
        self._starts = []
        self._pending.clear()
        self.is_damaged = False
        for epoch, start_offset in entries:
            self._assign(self._entries, epoch, start_offset)
        self._write()

    def extend_back(self, entries: Iterable[tuple[int, int]]) -> bool:
        """Learn epochs from before the first known one, from segments in remote storage.

        A checkpoint that was lost is built again from the batches that are here (`recovery`); what
        was written before them is known to the remote segments only.

        Args:
            entries: (epoch, start offset), ascending. What contradicts the known ones is left out.

        Returns:
            Whether anything was learnt.
        """
        epochs = self._load()
        known = self.entries()
        if not known:
            return False
        first_epoch, first_start = known[0]
        learnt: list[tuple[int, int]] = []
        for epoch, start in entries:
            if epoch > first_epoch or start >= first_start:
                break
            if not learnt or (epoch > learnt[-1][0] and start > learnt[-1][1]):
                learnt.append((epoch, start))
        if not learnt:
            return False
        if learnt[-1][0] == first_epoch:
            known.pop(0)
        epochs[:] = [epoch for epoch, _ in learnt + known]
        self._starts[:] = [start for _, start in learnt + known]
        self._write()
        return True

    def sync(self) -> None:
        """Sync the checkpoint, in whichever thread it was written; may wait for the disk.

        Raises:
            DiskError: It is not. Where it `is_disk_failure` the log must go out of service: a
                second call would succeed, and prove nothing.
        """
        if self.is_synced:
            return
        if not self._filesystem.exists(self.path):
            raise DiskError("there is no such file", self.path, errno.ENOENT)
        file = self._filesystem.open(self.path)
        try:
            file.sync()
        finally:
            file.close()
        self._filesystem.sync_directory(dirname(self.path))
        self.is_synced = True

    def clear(self) -> None:
        """Forget all epochs. Without room for the file it is as after `forget_from_end`."""
        self._entries = []
        self._starts = []
        self._pending.clear()
        self.is_damaged = False
        self.version += 1
        self._write_cut()

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: drop epochs that begin there or later.

        Without room for the file it is as after `forget_from_end`.
        """
        if self._entries is None:
            self._pending.append((True, end_offset))
        elif self._truncate_from_end(self._entries, end_offset):
            self._write_cut()

    def _truncate_from_end(self, epochs: list[int], end_offset: int) -> bool:
        keep = bisect_left(self._starts, max(end_offset, 0))
        if keep == len(epochs):
            return False
        del epochs[keep:]
        del self._starts[keep:]
        self.version += 1
        return True

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: drop epochs that ended by then.

        The epoch that holds `start_offset` stays and begins there. The file follows with the next
        change of another kind: older epochs in it do no harm, since opening a log truncates them
        again, while after a crash the log may start where it did before.
        """
        if self._entries is None:
            self._pending.append((False, start_offset))
        else:
            self._truncate_from_start(self._entries, start_offset)

    def _truncate_from_start(self, epochs: list[int], start_offset: int) -> None:
        at = bisect_right(self._starts, start_offset) - 1
        if at >= 0:
            del epochs[:at]
            del self._starts[:at]
            self._starts[0] = start_offset

    # -- look-up -----------------------------------------------------------------------------

    @property
    def latest_epoch(self) -> int | None:
        """The latest epoch that has begun, None without one."""
        epochs = self._load()
        return epochs[-1] if epochs else None

    @property
    def earliest_entry(self) -> tuple[int, int] | None:
        """(epoch, start offset) of the earliest epoch, None without one."""
        epochs = self._load()
        return (epochs[0], self._starts[0]) if epochs else None

    def entries(self) -> list[tuple[int, int]]:
        """All (epoch, start offset), ascending."""
        return list(zip(self._load(), self._starts, strict=True))

    def entries_in_range(self, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """(epoch, start offset) of the epochs that wrote [start_offset, end_offset).

        The first begins at `start_offset` if it began before.
        """
        self._load()
        first = max(bisect_right(self._starts, start_offset) - 1, 0)
        last = bisect_left(self._starts, end_offset)
        return [(epoch, max(start, start_offset)) for epoch, start in self.entries()[first:last]]

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that wrote `offset`, None if it is before the first known one."""
        epochs = self._load()
        at = bisect_right(self._starts, offset) - 1
        return epochs[at] if at >= 0 else None

    def start_offset_of(self, epoch: int) -> int | None:
        """Where exactly this epoch begins, None if it wrote nothing or is unknown."""
        epochs = self._load()
        at = bisect_left(epochs, epoch)
        return self._starts[at] if at < len(epochs) and epochs[at] == epoch else None

    def next_epoch(self, epoch: int) -> int | None:
        """The earliest epoch above `epoch`, None without one."""
        epochs = self._load()
        at = bisect_right(epochs, epoch)
        return epochs[at] if at < len(epochs) else None

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The greatest epoch not above `epoch`, and where it ends (OffsetForLeaderEpoch).

        Args:
            epoch: As asked for by a follower or consumer.
            log_end: The log end offset: where the latest epoch ends so far.

        Returns:
            (epoch, end offset). (-1, -1) if `epoch` is undefined or above all known ones. If it is
            below all: itself and the start of the first known one, since what lies between has
            been deleted.
        """
        epochs = self._load()
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        above = bisect_right(epochs, epoch)
        if above == len(epochs):
            if epochs and epochs[-1] == epoch:
                return epoch, log_end
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        return epochs[above - 1] if above else epoch, self._starts[above]

    # -- file --------------------------------------------------------------------------------

    def _load(self) -> list[int]:
        if self._entries is not None:
            return self._entries
        epochs: list[int] = []
        self._entries = epochs
        self._starts = []
        try:
            if self._filesystem.exists(self.path):
                data = self._filesystem.read_bytes(self.path)
                for epoch, start_offset in decode_epochs(data, self.path):
                    self._assign(epochs, epoch, start_offset)
        except CorruptFileError as error:
            _log.warning(
                "leader-epoch-checkpoint cannot be used, starting with an empty one: %s", error
            )
            self.is_damaged = True
            epochs.clear()
            self._starts.clear()
        changed = False
        for from_end, offset in self._pending:
            if from_end:
                changed |= self._truncate_from_end(epochs, offset)
            else:
                self._truncate_from_start(epochs, offset)
        self._pending.clear()
        if changed:
            self._write_cut()
        return epochs

    def _write_cut(self) -> None:
        try:
            self._write()
        except DiskError as error:
            if error.is_disk_failure:
                raise
            self.is_ahead_on_disk = True

    def _write(self) -> None:
        self._filesystem.replace_bytes(self.path, encode_epochs(self.entries()))
        self.is_ahead_on_disk = False
        self.sync_with_flush = False
        self.is_written = True
        self.is_synced = True


class EpochsTicket:
    """Epochs of a log that a thread writes with a flush, unsynced.

    If they have changed meanwhile they are not put in place: a later change has its own way to the
    disk.
    """

    __slots__ = ("_cache", "_data", "_filesystem", "_version")

    def __init__(
        self, cache: LeaderEpochCache, filesystem: Filesystem, version: int, data: bytes
    ) -> None:
        self._cache = cache
        self._filesystem = filesystem
        self._version = version
        self._data = data

    @property
    def is_current(self) -> bool:
        """Whether the cache has not changed since."""
        return self._cache.version == self._version

    def write(self) -> None:
        """Write the file; blocks. In any thread.

        Raises:
            DiskError: The disk refused.
        """
        path = f"{self._cache.path}.flush.tmp"
        file = self._filesystem.open(path, create=True)
        file.write_at(self._data, 0)
        file.truncate(len(self._data))
        file.close()
        if self.is_current:
            self._filesystem.rename(path, self._cache.path)
        else:
            self._filesystem.unlink(path)

    def ended(self, *, failed: bool) -> None:
        """Back on the loop: what may not be in the file is written by the next flush."""
        if failed or not self.is_current:
            self._cache.is_written = False
