"""Producer state as of one offset, captured for a thread that writes its snapshot.

A snapshot of 100,000 producers takes tens of milliseconds to encode, and is due at every roll: too
long for the thread that appends. So that thread only lists the entries, and goes on:

    owner    capture = state.capture(offset)     a list of the entries, not of what is in them
    owner    before an entry changes: capture.keep(entry), once for each entry
    thread   capture.run()                       encodes each entry, or what was kept of it, writes
    owner    state.finish_capture(capture)       or drop_capture, where it failed

Why no lock is needed: `keep` comes before the first change of an entry. A thread that has read an
entry checks afterwards whether it was kept; if it was not, nothing had changed until then.
"""

import contextlib

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from storage.producers.entry import ProducerEntry
from storage.producers.snapshot import SnapshotRow, encode_rows, rows_of


class ProducerCapture:
    """See the module.

    Attributes:
        offset: It is the state of everything below.
    """

    __slots__ = ("_entries", "_filesystem", "_kept", "_path", "offset")

    def __init__(
        self, filesystem: Filesystem, path: str, offset: int, entries: list[ProducerEntry]
    ) -> None:
        self._filesystem = filesystem
        self._path = path
        self.offset = offset
        self._entries = entries
        # By entry, not by producer id: one that expired may come back as another entry.
        self._kept: dict[ProducerEntry, tuple[SnapshotRow, ...]] = {}

    def keep(self, entry: ProducerEntry) -> None:
        """The entry is about to change: note what it is, unless that was done."""
        if entry not in self._kept:
            self._kept[entry] = rows_of(entry)

    def _rows(self, entry: ProducerEntry) -> tuple[SnapshotRow, ...]:
        rows = rows_of(entry)
        return self._kept.get(entry, rows)

    def run(self, *, sync: bool = False) -> None:
        """Write the snapshot's file; blocks, in any thread.

        Args:
            sync: Wait for the disk. Not needed at a roll: a torn snapshot fails its CRC, and the
                one before it is taken instead.

        Raises:
            DiskError: The disk refused.
        """
        file = self._filesystem.open(self._path, create=True)
        try:
            data = encode_rows(map(self._rows, self._entries), len(self._entries))
            file.truncate(0)
            file.write_at(data, 0)
            if sync:
                file.sync()
        except DiskError:
            with contextlib.suppress(DiskError):
                self._filesystem.unlink(self._path, missing_ok=True)
            raise
        finally:
            file.close()
