"""The log of one partition: its state, and the parts that work on it.

    log start      last stable     high watermark      log end
        v               v               v                v
        [ segment ][ segment ][ segment ][ active segment ]
              recovery point ^

    log start offset     first offset that may be read; moved by retention and DeleteRecords
    last stable offset   first offset of an open transaction, at most the high watermark (KIP-98)
    high watermark       consumers read below it
    log end offset       where the file ends, and what the next record gets, unless
                         batches with assigned offsets are queued: then that is `next_offset`
    recovery point       everything below is on disk and need not be scanned after a crash

With remote storage (KIP-405) the oldest segments are gone from here, and live in the bucket:

    log start                  local log start                                    log end
        v                            v                                              v
        [ remote ][ remote ][ remote and local ][ remote and local ][ active segment ]
                                                highest remote offset ^

A log is composed. It is its own state (`storage.log.state`), and has one object for each duty. A
part gets the state and the parts that it calls, and no others, so the arrows go one way:

    reader         by offset, by time, aborted transactions           storage.log.read
    writer         validate, assign offsets, append                   storage.log.append
    markers        append what ends transactions                      storage.log.append_markers
    follower       append what a leader has given                     storage.log.append_as_follower
    retention      delete old segments                                storage.log.retention_pass
    truncation     remove the end, or everything                      storage.log.truncation
    replacement    put a compacted segment in place                   storage.log.replacement
    write_behind   queue what a thread is to write                    storage.log.write_behind
    disk_work      tickets for the directory's thread                 storage.log.disk_work
    deletion       files of segments that have left the log           storage.log.deletion
    flusher        make durable, move the recovery point              storage.log.flush

    markers, follower,
    retention ──> writer ──┬──> disk_work ──┬──> write behind ──> roller ──┐
    truncation ─────────────────────┘                ├──> rollback                  ├──> flusher
    replacement, retention ──────────────────────────┴──> deletion ─────────────────┘

A caller uses the part itself (`log.writer.append_as_leader`), so composition costs no call. Offsets
and settings are the log's own.

Belongs to one thread, the loop's, except where a method says otherwise; nothing here awaits.
Appends go to the page cache, some by a thread (`storage.log.write_behind`); making them durable is
`LogFlusher.begin_flush` and `FlushTicket.run`.

Source: Kafka, UnifiedLog.java, LocalLog.java.
"""

import logging
from typing import Final
from uuid import UUID

from config.topic import TopicConfig
from storage.environment.environment import Environment
from storage.log.append import LogWriter
from storage.log.append_as_follower import FollowerWriter
from storage.log.append_markers import MarkerWriter
from storage.log.deletion import SegmentDeletion
from storage.log.disk_work import LogDiskWork
from storage.log.flush import LogFlusher
from storage.log.read import LogReader
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.log.recovery.loader import LogLoader, Progress
from storage.log.replacement import SegmentReplacement
from storage.log.retention_pass import LogRetention
from storage.log.roll import SegmentRoller
from storage.log.rollback import ProducerRollback
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
from storage.log.truncation import LogTruncation
from storage.log.write_behind import WriteBehind
from storage.producers.state import ProducerStateManager
from storage.producers.table import ProducerSettings
from storage.segment.flush import FlushTicket
from storage.segment.readable_segment import TimestampOffset
from storage.types.append_info import AppendInfo
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition

LOGGER = logging.getLogger(__name__)

FRESH: Final = CheckpointedLog()
PRODUCER_DEFAULTS: Final = ProducerSettings()

__all__ = ["AppendInfo", "AppendOrigin", "FlushTicket", "Log", "TimestampOffset"]


class Log(LogState):
    """See the module; offsets and settings are described at `LogState`.

    It owns its parts, and opening, closing and renaming, which concern all of them.

    Attributes:
        reader: See the module; likewise the others.
        writer: See there.
        markers: See there.
        follower: See there.
        flusher: See there.
        retention: See there.
        truncation: See there.
        replacement: See there.
        deletion: See there.
        write_behind: See there.
        disk_work: See there.
    """

    __slots__ = (
        "_factory",
        "_roller",
        "deletion",
        "disk_work",
        "flusher",
        "follower",
        "markers",
        "reader",
        "replacement",
        "retention",
        "truncation",
        "write_behind",
        "writer",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        *,
        topic_id: UUID,
        config: TopicConfig,
        environment: Environment,
    ) -> None:
        """Put the parts together; `open` reads the disk."""
        super().__init__(
            directory,
            topic_partition,
            topic_id=topic_id,
            config=config,
            filesystem=environment.filesystem,
            clock=environment.clock,
        )
        self._factory: Final = SegmentFactory(self, environment.randomness)
        self.flusher: Final = LogFlusher(self)
        self._roller: Final = SegmentRoller(self, self._factory, self.flusher)
        self.write_behind: Final = WriteBehind(self, self._factory, self.flusher, self._roller)
        self.deletion: Final = SegmentDeletion(self, self.flusher)
        self.disk_work: Final = LogDiskWork(
            self, self.write_behind, ProducerRollback(self), self.deletion
        )
        self.writer: Final = LogWriter(
            self, self.flusher, self._roller, self.write_behind, self.disk_work
        )
        self.markers: Final = MarkerWriter(self, self.writer)
        self.follower: Final = FollowerWriter(self, self.writer)
        self.reader: Final = LogReader(self)
        self.retention: Final = LogRetention(
            self, self.writer, self.write_behind, self.deletion, self.disk_work
        )
        self.truncation: Final = LogTruncation(
            self, self._factory, self.flusher, self.deletion, self.disk_work
        )
        self.replacement: Final = SegmentReplacement(self, self.deletion)

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        *,
        topic_id: UUID,
        config: TopicConfig,
        environment: Environment,
        checkpointed: CheckpointedLog = FRESH,
        producers: ProducerSettings = PRODUCER_DEFAULTS,
        on_progress: Progress | None = None,
    ) -> "Log":
        """Open the log in `directory`, which is created if it is missing; recovers what must be.

        May run in any thread, and block for long: see `storage.log.recovery.loader`.

        Args:
            directory: Of the partition.
            topic_partition: Its name.
            topic_id: Of the topic.
            config: Of the topic, resolved.
            environment: Of the broker.
            checkpointed: What is known of the log; default: nothing is.
            producers: Settings of the producer state.
            on_progress: Called with (bytes scanned, bytes to scan).

        Raises:
            DiskError: The disk refused.
        """
        log = cls(
            directory, topic_partition, topic_id=topic_id, config=config, environment=environment
        )
        filesystem = environment.filesystem
        if filesystem.exists(directory):
            # A process that was killed may have synced neither name: the kernel still has both.
            log.flusher.is_new_directory = not checkpointed.clean_shutdown
            log.flusher.directory_changed = not checkpointed.clean_shutdown
        else:
            filesystem.mkdir(directory)
        loader = LogLoader(
            log,
            log._factory,
            checkpointed,
            producer_state=lambda snapshots: ProducerStateManager(
                topic_partition,
                directory,
                filesystem,
                producer_id_expiration_ms=producers.producer_id_expiration_ms,
                snapshot_offsets=snapshots,
                requires_verification=producers.transaction_partition_verification_enable,
            ),
            on_progress=on_progress,
        )
        try:
            loaded = loader.load()
        except BaseException:
            # The opening may be tried again, and segments be deleted before that.
            loader.close()
            raise
        log.segments = loaded.segments
        log.leader_epochs = loader.leader_epochs
        log.producer_state = loader.producer_state
        log.log_start_offset = log.durable_log_start_offset = loaded.log_start_offset
        log.durable_remote_offset = checkpointed.remote_offset
        log._forget_remote_part()
        if log.has_remote_part and not log.remote_storage:
            LOGGER.warning(
                "log keeps its part in remote storage, though its topic is without "
                "remote.storage.enable partition=%s log_start=%d copied_until=%d",
                topic_partition,
                log.log_start_offset,
                checkpointed.remote_offset,
            )
        log.log_end_offset = loaded.log_end_offset
        log.recovery_point = loaded.recovery_point
        log.set_aside = loaded.set_aside
        if loaded.has_new_segment:
            log.flusher.directory_changed = True
        for offset in loader.new_snapshots:
            # Else a clean stop would vouch for one that a power cut leaves empty: without any,
            # the producers of a log that was closed count as none.
            log.flusher.note_snapshot(offset)
        if config.preallocate and not checkpointed.clean_shutdown:
            before = loaded.segments.floor(loaded.recovery_point - 1)
            if before is not None and before is not loaded.segments.active:
                # If it was closed behind its last flush, it may have been cut to its log in the
                # page cache alone, and what flushes from the recovery point on passes it over.
                log.flusher.note_sealed(before)
        if loaded.was_scanned and log.leader_epochs.earliest_entry is not None:
            # As the names: read from a file that may never have been synced.
            log.leader_epochs.sync_with_flush = True
            if checkpointed.is_doubtful and not log.leader_epochs.is_damaged:
                log.leader_epochs.replace(log.leader_epochs.entries())
        log.gaps_until = loaded.gaps_until
        new_leader_epoch = checkpointed.new_leader_epoch
        known_end = max(checkpointed.high_watermark, checkpointed.recovery_point or 0)
        log.is_short = log.log_end_offset < known_end
        if log.is_short:
            LOGGER.warning(
                "log ends before what was committed or synced partition=%s log_end=%d known_end=%d",
                topic_partition,
                log.log_end_offset,
                known_end,
            )
        log.needs_new_epoch = loaded.was_scanned and new_leader_epoch is None
        # Also where the disk refuses what comes next.
        for segment in loaded.segments:
            segment.close()
        if new_leader_epoch is not None:
            log.begin_epoch(new_leader_epoch)
        log.load_latest_epoch()
        # What is in remote storage only was committed.
        log.update_high_watermark(max(checkpointed.high_watermark, log.local_log_start_offset))
        return log

    def update_config(self, config: TopicConfig) -> None:
        """The topic's settings have changed; they hold from the next append on."""
        self.config = config
        self._forget_remote_part()
        self.writer.configure(config)
        self.flusher.configure(config)
        self._roller.configure(config)
        self.segments.active.set_index_max_bytes(config.segment_index_bytes)
        if self.write_queue is not None:
            self.write_queue.tail.set_index_max_bytes(config.segment_index_bytes)

    def _forget_remote_part(self) -> None:
        """What remote storage has is to be removed, if the settings say so."""
        config = self.config
        if config.remote_log_delete_on_disable and not config.remote_storage_enable:
            self.durable_remote_offset = -1

    def begin_epoch(self, leader_epoch: int) -> None:
        """Let a leader epoch begin at the log's end. In any thread, before the log serves.

        Raises:
            DiskError: The disk refused.
        """
        # Epochs before the first batch here are those of remote storage: they stay in the file.
        self.leader_epochs.begin_at(
            leader_epoch, self.log_end_offset, in_place=not self.remote_storage
        )
        self.load_latest_epoch()
        self.needs_new_epoch = False

    def begin_to_lead(self, leader_epoch: int) -> None:
        """Let a leader epoch begin behind all records, in memory; its first flush writes the file.

        Nothing happens if it has begun, or a later one has. On the owner's thread; no disk.
        """
        if leader_epoch > self.latest_leader_epoch:
            self.leader_epochs.begin_in_memory(leader_epoch, self.next_offset)
            self.load_latest_epoch()

    def close(self, *, clean: bool = True) -> None:
        """Close the files. A clean close makes everything durable first, and may block.

        Raises:
            DiskError: The disk refused: the stop was not a clean one.
        """
        if clean and self.failure is None:
            self.disk_work.write_queued()
            active = self.segments.active
            changed = active.seal()
            self.flusher.take_snapshot(self.log_end_offset)
            if (
                changed
                or self.flusher.directory_changed
                or self.leader_epochs.sync_with_flush
                or self.log_end_offset > self.recovery_point
            ):
                self.flusher.directory_changed = True
                ticket = self.flusher.make_ticket(self.log_end_offset)
                if changed:
                    ticket.side_files += (active.offset_index, active.time_index)
                ticket.run()
                self.flusher.finish_flush(ticket)
        for segment in self.segments:
            segment.close()

    def rename_directory(self, directory: str) -> None:
        """The directory gets a new name, e.g. `-delete`; open files and slices stay valid.

        Raises:
            DiskError: The disk refused.
        """
        self.filesystem.rename(self.directory, directory)
        self.set_aside = tuple(
            directory + folder.removeprefix(self.directory) for folder in self.set_aside
        )
        self.directory = directory
        for segment in self.segments:
            segment.move_to(directory)
        self.deletion.move_to(directory)

    def delete(self) -> None:
        """Close, and remove the directory with everything in it. Blocks for the disk.

        Raises:
            DiskError: The disk refused.
        """
        self.close(clean=False)
        self.filesystem.rmtree(self.directory)
