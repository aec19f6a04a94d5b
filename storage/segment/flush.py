"""Flush ticket: what a flush has to sync, gathered on the loop and synced in a thread.

    ticket = flusher.begin_flush()     on the loop: which segments, up to which offset
    ticket.run()                       in a thread: opens and syncs, and nothing else
    flusher.finish_flush(ticket)       on the loop: the recovery point moves

Several requests that wait for their records to be on disk share one ticket (group commit): all
that was appended before `begin_flush` is covered by it.

Order matters after a crash: the recovery point promises that everything below it needs no check, so
it moves only when the segments, the indexes and the producer snapshot below it, and the names of
all of these, are on the disk.
"""

import errno
from typing import TYPE_CHECKING

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import TransactionIndex
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from storage.checkpoints.leader_epochs import EpochsTicket

SideFile = OffsetIndex | TimeIndex | TransactionIndex


class FlushTicket:
    """One flush under way.

    Attributes:
        end_offset: Exclusive; records below are on disk once `run` has returned.
        generation: Of the log when it began: a truncation meanwhile makes the ticket worthless.
        small_files: Paths of producer snapshots, and of the leader epochs if they have changed.
        directories: To be synced because names in them are new.
        epochs: Leader epochs that are in memory alone; None: there are none.
    """

    __slots__ = (
        "_filesystem",
        "directories",
        "end_offset",
        "epochs",
        "generation",
        "segments",
        "side_files",
        "small_files",
    )

    def __init__(
        self,
        filesystem: Filesystem,
        end_offset: int,
        generation: int,
        *,
        segments: list[Segment],
        side_files: list[SideFile],
        small_files: list[str],
        directories: list[str],
        epochs: "EpochsTicket | None" = None,
    ) -> None:
        self._filesystem = filesystem
        self.end_offset = end_offset
        self.generation = generation
        self.segments = segments
        self.side_files = side_files
        self.small_files = small_files
        self.directories = directories
        self.epochs = epochs

    def run(self) -> None:
        """Sync; blocks. Changes nothing of the log, so it may run in any thread.

        Files are opened here, one at a time: flushes of a thousand logs may wait for a thread, and
        would hold as many descriptors.

        Raises:
            DiskError: Not everything is on disk. Where it `is_disk_failure` the kernel may have
                dropped what was not: the directory must go offline, trying again would prove
                nothing. Else there was no room or no descriptor for what goes with the log: it may
                be tried again, see `LogFlusher.abandon_flush`.
        """
        for segment in self.segments:
            self._sync(segment)
        if self.epochs is not None:
            self.epochs.write()
        for path in self.small_files:
            try:
                self._filesystem.open(path).sync()
            except DiskError:
                # A snapshot whose segment was deleted meanwhile is not needed any more.
                if self._filesystem.exists(path):
                    raise
        for side_file in self.side_files:
            path = side_file.path
            try:
                if isinstance(side_file, TransactionIndex):
                    side_file.flush()
                else:
                    side_file.sync()
            except DiskError:
                # Retention may have renamed the segment since; then it need not be durable.
                if self._filesystem.exists(path):
                    raise
        for directory in self.directories:
            self._filesystem.sync_directory(directory)

    def _sync(self, segment: Segment) -> None:
        file = segment.file
        while file is None:
            try:
                file = self._filesystem.open(segment.path)
            except DiskError as error:
                # Retention renames it, and removes it later: it need not be durable.
                if error.errno != errno.ENOENT:
                    raise
                if not self._filesystem.exists(segment.path):
                    return
        file.sync()
