"""The files of a segment: names, stages, descriptors, removal.

The `.log` file is opened when it is needed, and may be closed by the pool of open files at any
time. Whatever becomes of a segment becomes of all its files: they are renamed and removed together,
the log first or last, as a start after a crash needs it.
"""

import contextlib
from collections.abc import Iterable
from functools import partial

from typing_extensions import override

from storage.environment.filesystem import File, Filesystem
from storage.errors import DiskError
from storage.index.offset_index import OffsetIndex
from storage.index.reads import WAITING, Reads
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import TransactionIndex
from storage.types.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)


class SegmentFiles:
    """The `.log` file of a segment, its three indexes, and their names.

    Attributes:
        directory: Of the partition; set by `move_to`.
        base_offset: Least offset it may hold.
        stage: "" for a live segment, else e.g. `.deleted` (see `log_files`).
        size: Bytes of log. The file may be longer while it is preallocated.
        file: The open file, None while it is closed. Use `open_file`.
        used: For the pool of open files.
        offset_index: See there.
        time_index: See there.
        transaction_index: See there.
    """

    __slots__ = (
        "_filesystem",
        "base_offset",
        "directory",
        "file",
        "offset_index",
        "size",
        "stage",
        "time_index",
        "transaction_index",
        "used",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        filesystem: Filesystem,
        *,
        index_max_bytes: int,
        size: int,
        has_transaction_index: bool,
        stage: str,
    ) -> None:
        """Describe the files; touches none. Arguments as for `Segment`."""
        self.directory = directory
        self.base_offset = base_offset
        self.stage = stage
        self.size = size
        self.file: File | None = None
        self.used = False
        self._filesystem = filesystem
        is_new = size == 0
        self.offset_index = OffsetIndex(
            directory,
            base_offset,
            filesystem,
            max_bytes=index_max_bytes,
            is_new=is_new,
            stage=stage,
        )
        self.time_index = TimeIndex(
            directory,
            base_offset,
            filesystem,
            max_bytes=index_max_bytes,
            is_new=is_new,
            stage=stage,
        )
        self.transaction_index = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), filesystem, exists=has_transaction_index
        )

    @override
    def __repr__(self) -> str:
        return f"Segment({self.path!r}, size={self.size})"

    def create_file(self, preallocate_bytes: int = 0) -> None:
        """Make the empty `.log` file; one that is there already is emptied.

        Raises:
            DiskError: The disk refused.
        """
        file = self._filesystem.open(self.path, create=True)
        try:
            if file.size():
                file.truncate(0)
            if preallocate_bytes:
                file.allocate(preallocate_bytes)
        except DiskError:
            # The segment before it may go on beyond where this one begins.
            with contextlib.suppress(DiskError):
                self._filesystem.unlink(self.path)
            raise

    def _path(self, kind: str) -> str:
        return f"{self.directory}/{log_file_name(self.base_offset, kind, self.stage)}"

    @property
    def path(self) -> str:
        """The `.log` file."""
        return self._path(LOG_SUFFIX)

    def open_file(self, reads: Reads = WAITING, *, spare: bool = False) -> File:
        """The open `.log` file; opened, and counted in the pool, if need be.

        `spare` as in `Filesystem.open`.
        """
        file = self.file
        if file is None:
            file = self.file = reads.call(
                self, partial(self._filesystem.open, self.path, spare=spare)
            )
            self._filesystem.open_files.admit(self)
        self.used = True
        return file

    def release(self) -> None:
        """Let go of the descriptor (the pool asks for it); slices under way keep it open."""
        self.file = None

    def move_to(self, directory: str) -> None:
        """The partition's folder was renamed; descriptors stay valid."""
        self.directory = directory
        self.offset_index.directory = directory
        self.time_index.directory = directory
        self.transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX)

    def rename_stage(self, stage: str) -> None:
        """Give all files another stage suffix, e.g. `.deleted`; not synced.

        Raises:
            DiskError: The disk refused; some files may have the new name.
        """
        rename_files(self._filesystem, self.renames(stage))
        self.finish_rename(stage)

    def renames(self, stage: str) -> list[tuple[str, str]]:
        """(from, to) of the files there may be, in order, for `rename_files` in any thread."""
        # The log goes first when a segment leaves, and last when it arrives: a log file without
        # indexes has them rebuilt, an index without a log file is removed at start.
        kinds = [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, LOG_SUFFIX]
        if stage:
            kinds.reverse()
        if self.transaction_index.may_be_there:
            kinds.append(TRANSACTION_INDEX_SUFFIX)
        return [
            (
                self._path(kind),
                f"{self.directory}/{log_file_name(self.base_offset, kind, stage)}",
            )
            for kind in kinds
        ]

    def finish_rename(self, stage: str) -> None:
        """The files have that stage suffix now."""
        self.stage = self.offset_index.stage = self.time_index.stage = stage
        self.transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX)

    def delete_files(self) -> None:
        """Remove all files; missing ones are fine."""
        self.close()
        for path in (self.path, self.offset_index.path, self.time_index.path):
            self._filesystem.unlink(path, missing_ok=True)
        self.transaction_index.delete()

    def close(self) -> None:
        """Give back descriptors and memory; unsaved index entries stay. May be used again."""
        self.release()
        self._filesystem.open_files.discard(self)
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()

    def trim(self) -> None:
        """Cut the file to its log: preallocated space, or what a failed write left."""
        file = self.open_file()
        if file.size() > self.size:
            file.truncate(self.size)


def rename_files(filesystem: Filesystem, renames: Iterable[tuple[str, str]]) -> None:
    """Rename files, as far as they are there; done twice it is done once.

    Raises:
        DiskError: The disk refused; some files may have the new name.
    """
    for old, new in renames:
        if filesystem.exists(old):
            filesystem.rename(old, new)
