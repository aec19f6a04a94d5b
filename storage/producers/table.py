"""What is remembered of all producers of one partition, and how it comes back after a start.

Entries, open and ended transactions, and the snapshot files that hold them as of an offset. What a
batch or a marker changes is `storage.producers.state`'s.

Not thread-safe: belongs to its log.

Source: Kafka, ProducerStateManager.java, ProducerStateEntry.java.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.producers.capture import ProducerCapture
from storage.producers.entry import NO_OFFSET, ProducerEntry
from storage.producers.snapshot import decode_snapshot
from storage.producers.snapshot_files import SnapshotFiles
from storage.producers.unflushed_ends import UnflushedEnds
from storage.producers.verification import Verifications
from storage.types.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000
"""Default of `producer.id.expiration.ms`: a day of silence."""


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Settings of the broker that concern the producers of all partitions, by Kafka's names."""

    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    transaction_partition_verification_enable: bool = False


class ProducerTable:
    """All producers of one partition, by their id, with their transactions and snapshots.

    Attributes:
        map_end_offset: State covers everything below this offset. The log sets it after every
            append, also for batches without a producer id.
        first_unstable_offset: First offset of the oldest transaction that is open, or ended by a
            marker which is not below the high watermark yet; None without one. Plain attribute:
            it is read for every fetch.
        expiration_ms: `producer.id.expiration.ms`.
        snapshots: Files with the state as of an offset.
        unflushed_ends: Transactions that have ended below the high watermark, until a flush has
            reached their markers; None as long as none has.
    """

    __slots__ = (
        "_captures",
        "_directory",
        "_filesystem",
        "_last_snapshot_offset",
        "_ongoing",
        "_producers",
        "_silent",
        "_topic_partition",
        "_unreplicated",
        "_verifications",
        "expiration_ms",
        "first_unstable_offset",
        "map_end_offset",
        "snapshots",
        "unflushed_ends",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        filesystem: Filesystem,
        *,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        snapshot_offsets: Iterable[int] | None = None,
    ) -> None:
        """Start empty; nothing is read before it is needed.

        Args:
            topic_partition: For messages.
            directory: The partition's directory.
            filesystem: Where snapshots are.
            producer_id_expiration_ms: `producer.id.expiration.ms`.
            snapshot_offsets: Offsets of the snapshot files there are, if the caller has listed the
                directory; else it is listed when first needed.
        """
        self._topic_partition = topic_partition
        self._directory = directory
        self._filesystem = filesystem
        self.expiration_ms = producer_id_expiration_ms
        self.snapshots = SnapshotFiles(directory, filesystem, snapshot_offsets)
        self._producers: dict[int, ProducerEntry] = {}
        # Last data offset of those that the last look found expired; None instead of an empty dict.
        self._silent: dict[int, int] | None = None
        # First offset -> producer id, and -> marker offset. Ascending, as offsets are given in
        # order; None instead of an empty dict, since most partitions never see a transaction.
        self._ongoing: dict[int, int] | None = None
        self._unreplicated: dict[int, int] | None = None
        self._verifications: Verifications | None = None
        self._last_snapshot_offset = 0
        # Snapshots that threads are writing: `keep` comes before an entry changes. None if empty.
        self._captures: list[ProducerCapture] | None = None
        self.map_end_offset = 0
        self.first_unstable_offset: int | None = None
        self.unflushed_ends: UnflushedEnds | None = None

    # -- offsets that move -------------------------------------------------------------------

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Let go of ended transactions whose marker is below the high watermark."""
        unreplicated = self._unreplicated
        if not unreplicated:
            return
        done = [first for first, last in unreplicated.items() if last < high_watermark]
        if done:
            if self.unflushed_ends is None:
                self.unflushed_ends = UnflushedEnds()
            # First: another thread asks for it after it has seen what is stable.
            self.unflushed_ends.note(min(done), max(unreplicated[first] for first in done))
            for first in done:
                del unreplicated[first]
            self._update_first_unstable_offset()

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Records below were deleted. Producers stay: their sequences go on."""
        self.on_high_watermark_updated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.snapshots.latest_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    @property
    def first_undecided_offset(self) -> int | None:
        """First offset of the oldest transaction without a marker, None without one."""
        return next(iter(self._ongoing), None) if self._ongoing else None

    def _keep(self, entry: ProducerEntry) -> None:
        for capture in self._captures or ():
            capture.keep(entry)

    def _update_first_unstable_offset(self) -> None:
        # A snapshot's transactions were sorted before they came in, so the first key is the least.
        undecided = self.first_undecided_offset
        unreplicated = min(self._unreplicated) if self._unreplicated else None
        if undecided is None or (unreplicated is not None and unreplicated < undecided):
            self.first_unstable_offset = unreplicated
        else:
            self.first_unstable_offset = undecided

    # -- what is known -----------------------------------------------------------------------

    @property
    def producer_id_count(self) -> int:
        """Producers remembered."""
        return len(self._producers)

    @property
    def is_empty(self) -> bool:
        """No producer and no ended transaction is remembered."""
        return not self._producers and not self._unreplicated

    def active_producers(self) -> Collection[ProducerEntry]:
        """All producers remembered, for DescribeProducers and the cleaner. Not to be changed."""
        return self._producers.values()

    def last_records(self) -> dict[int, tuple[int, int]]:
        """Producer id to (last data offset or -1, epoch): what the cleaner must keep a batch for.

        May be called from another thread than the log's.
        """
        last = {}
        # list() copies in one step, while the log's thread may be adding producers.
        for entry in list(self._producers.values()):
            newest = entry.batches[-1:]
            last[entry.producer_id] = (newest[0].last_offset if newest else NO_OFFSET, entry.epoch)
        return last

    def last_entry(self, producer_id: int) -> ProducerEntry | None:
        """What is known of one producer."""
        return self._producers.get(producer_id)

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers that were silent for `producer.id.expiration.ms`; returns how many.

        One with an open transaction stays. Silence is told by the times of records, which may be
        of long ago although they were just written, and by the time of day, which may be set. So
        one is forgotten by the second look that finds it so, if it has written nothing since the
        first: it may be about to send its last batch again. Kafka forgets it at once.
        """
        before = self._silent or {}
        silent: dict[int, int] = {}
        expired: list[int] = []
        for entry in self._producers.values():
            if self._is_expired(entry, now_ms):
                if before.get(entry.producer_id) == entry.last_data_offset:
                    expired.append(entry.producer_id)
                else:
                    silent[entry.producer_id] = entry.last_data_offset
        self._silent = silent or None
        for producer_id in expired:
            del self._producers[producer_id]
        if self._verifications is not None:
            self._verifications.remove_expired(now_ms, self.expiration_ms)
        return len(expired)

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        idle_ms = now_ms - entry.last_timestamp
        return entry.txn_first_offset == NO_OFFSET and idle_ms >= self.expiration_ms

    # -- truncation and snapshots ------------------------------------------------------------

    def truncate_and_reload(self, log_start: int, log_end: int, now_ms: int) -> None:
        """Go back to the newest snapshot in (log_start, log_end]; the caller replays from there.

        Nothing is reloaded when state covers exactly `log_end` already. Afterwards
        `map_end_offset` says where to replay from. A damaged snapshot is deleted and the one before
        it taken; without any, state is empty from `log_start`.
        """
        for offset in tuple(self.snapshots.offsets()):
            if offset > log_end or offset <= log_start:
                self.snapshots.delete(offset)
        if log_end == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start)
            return
        # A snapshot does not name what has ended below it, and its marker may not be on disk yet.
        self.on_high_watermark_updated(log_end)
        self._clear()
        self._load_newest_snapshot(log_start, now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything and delete all snapshots; the log is empty and starts at `offset`."""
        self._clear()
        self.unflushed_ends = None
        for snapshot in tuple(self.snapshots.offsets()):
            self.snapshots.delete(snapshot)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def restore(self, offset: int, snapshot: bytes, now_ms: int) -> None:
        """Start over from a snapshot that came from elsewhere; the log is empty and starts there.

        It is on disk when this returns, in place of all others.

        Args:
            offset: It holds the state of everything below.
            snapshot: A snapshot file's bytes.
            now_ms: Wall clock, for expired producers.

        Raises:
            CorruptFileError: It is no snapshot; nothing has changed.
            DiskError: The disk refused.
        """
        entries = decode_snapshot(snapshot, self.snapshots.path(offset))
        self.truncate_fully_and_start_at(offset)
        self.snapshots.replace_all(offset, snapshot)
        self._last_snapshot_offset = offset
        self._load(entry for entry in entries if not self._is_expired(entry, now_ms))

    def _clear(self) -> None:
        self._producers.clear()
        self._silent = None
        self._verifications = None
        self._ongoing = None
        self._unreplicated = None
        self.first_unstable_offset = None

    def _load_newest_snapshot(self, log_start: int, now_ms: int) -> None:
        while (found := self.snapshots.newest()) is not None:
            offset, data = found
            try:
                entries = decode_snapshot(data, self.snapshots.path(offset))
            except CorruptFileError as error:
                _log.warning("deleting a damaged producer snapshot: %s", error)
                self.snapshots.delete(offset)
                continue
            self._load(entry for entry in entries if not self._is_expired(entry, now_ms))
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start

    def _load(self, entries: Iterable[ProducerEntry]) -> None:
        for entry in entries:
            self._producers[entry.producer_id] = entry
        open_transactions = sorted(
            (entry.txn_first_offset, entry.producer_id)
            for entry in self._producers.values()
            if entry.txn_first_offset != NO_OFFSET
        )
        self._ongoing = dict(open_transactions) or None
        self._update_first_unstable_offset()

    def take_snapshot(self, offset: int | None = None, *, sync: bool = False) -> bool:
        """Write state as of `offset` (default: `map_end_offset`), unless that snapshot exists.

        Args:
            offset: The log end offset, at a roll the new segment's base offset.
            sync: Wait for the disk. Not needed at a roll: a torn snapshot fails its CRC, and the
                one before it is taken instead.

        Returns:
            Whether a file was written.
        """
        capture = self.capture(offset)
        if capture is None:
            return False
        try:
            capture.run(sync=sync)
        except BaseException:
            self.drop_capture(capture)
            raise
        self.finish_capture(capture)
        return True

    def capture(self, offset: int | None = None) -> ProducerCapture | None:
        """State as of `offset` (default: `map_end_offset`), to be written by a thread.

        To be given back with `finish_capture` or `drop_capture`.

        Args:
            offset: The log end offset, at a roll the new segment's base offset.

        Returns:
            None if that snapshot exists.
        """
        if offset is not None:
            self.map_end_offset = offset
        end = self.map_end_offset
        if end <= self._last_snapshot_offset:
            return None
        capture = ProducerCapture(
            self._filesystem, self.snapshots.path(end), end, list(self._producers.values())
        )
        if self._captures is None:
            self._captures = []
        self._captures.append(capture)
        return capture

    def finish_capture(self, capture: ProducerCapture) -> None:
        """A snapshot has been written."""
        self.drop_capture(capture)
        self.snapshots.add(capture.offset)
        self._last_snapshot_offset = max(self._last_snapshot_offset, capture.offset)

    def drop_capture(self, capture: ProducerCapture) -> None:
        """A snapshot is not wanted any more."""
        if self._captures is not None and capture in self._captures:
            self._captures.remove(capture)
            self._captures = self._captures or None
