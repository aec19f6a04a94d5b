"""The producer snapshot files of one partition: which there are, and which are deleted.

    <offset>.snapshot             producers as of `offset`: for each segment, and of a clean stop
    <offset>.snapshot.deleted     removed with its segment

Source: Kafka, ProducerStateManager.java (its snapshots), SnapshotFile.java.
"""

from bisect import insort
from collections.abc import Collection, Iterable
from posixpath import join

from storage.environment.filesystem import Filesystem
from storage.producers.snapshot import offset_of_snapshot, snapshot_name
from storage.types.log_files import DELETED_SUFFIX


class SnapshotFiles:
    """See the module. Belongs to the producer state; `storage.producers.snapshot` is the format."""

    __slots__ = ("_directory", "_filesystem", "_offsets")

    def __init__(
        self, directory: str, filesystem: Filesystem, offsets: Iterable[int] | None = None
    ) -> None:
        """`offsets`: of the files there are; None: the directory is listed when it is needed."""
        self._directory = directory
        self._filesystem = filesystem
        self._offsets: list[int] | None = None if offsets is None else sorted(offsets)

    def add(self, offset: int) -> None:
        """A snapshot was written."""
        offsets = self.offsets()
        if offset not in offsets:
            insort(offsets, offset)

    def replace_all(self, offset: int, snapshot: bytes) -> None:
        """Write the only snapshot there is; on disk when this returns.

        Raises:
            DiskError: The disk refused.
        """
        self._filesystem.replace_bytes(self.path(offset), snapshot)
        self._offsets = [offset]

    def newest(self) -> tuple[int, bytes] | None:
        """(offset, bytes) of the newest snapshot whose file is there, None without one.

        Raises:
            DiskError: It cannot be read.
        """
        offsets = self.offsets()
        while offsets:
            path = self.path(offsets[-1])
            if self._filesystem.exists(path):
                return offsets[-1], self._filesystem.read_bytes(path)
            offsets.pop()
        return None

    @property
    def latest_offset(self) -> int | None:
        """Offset of the newest snapshot file, None without one."""
        snapshots = self.offsets()
        return snapshots[-1] if snapshots else None

    def delete(self, offset: int) -> None:
        """Delete one snapshot, if there is one."""
        snapshots = self.offsets()
        if offset in snapshots:
            snapshots.remove(offset)
            self._filesystem.unlink(self.path(offset), missing_ok=True)

    def retire(self, offset: int) -> None:
        """Give one snapshot, if it is there, the name `.deleted`: it goes with its segment.

        Freeing the blocks of even a small file can take tens of milliseconds, a rename does not.
        """
        path, deleted = self.forget(offset)
        if self._filesystem.exists(path):
            self._filesystem.rename(path, deleted)

    def forget(self, offset: int) -> tuple[str, str]:
        """Drop one snapshot from the list: (its path, the one it is to get). No disk call."""
        if self._offsets is not None and offset in self._offsets:
            self._offsets.remove(offset)
        path = self.path(offset)
        return path, path + DELETED_SUFFIX

    def remove_strays(self, segment_base_offsets: Collection[int]) -> None:
        """Delete snapshots that belong to no segment, but not one above all segments.

        That one was written by a clean shutdown.
        """
        strays = [o for o in self.offsets() if o not in segment_base_offsets]
        if not strays:
            return
        newest = strays.pop()
        for offset in strays:
            self.delete(offset)
        if segment_base_offsets and newest < max(segment_base_offsets):
            self.delete(newest)

    def path(self, offset: int) -> str:
        """Where the snapshot as of `offset` is, or would be."""
        return join(self._directory, snapshot_name(offset))

    def offsets(self) -> list[int]:
        """Offsets of the snapshots, ascending; not to be changed."""
        if self._offsets is None:
            names = (entry.name for entry in self._filesystem.list_directory(self._directory))
            found = (offset_of_snapshot(name) for name in names)
            self._offsets = sorted(offset for offset in found if offset is not None)
        return self._offsets
