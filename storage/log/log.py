"""The log of one partition.

    log start      last stable     high watermark      log end
        v               v               v                v
        [ segment ][ segment ][ segment ][ active segment ]
              recovery point ^

    log start offset     first offset that may be read; moved by retention and DeleteRecords
    last stable offset   first offset of an open transaction, at most the high watermark (KIP-98)
    high watermark       consumers read below it
    log end offset       where the file ends, and what the next record gets, unless a thread is
                         yet to write what has its offsets already: then that is `next_offset`
    recovery point       everything below is on disk and need not be scanned after a crash

With remote storage (KIP-405) the oldest segments are gone from here, and live in the bucket:

    log start                  local log start                                    log end
        v                            v                                              v
        [ remote ][ remote ][ remote and local ][ remote and local ][ active segment ]
                                                highest remote offset ^

Belongs to one thread, the loop's, except where a method says otherwise; nothing here awaits.
Appends go to the page cache, some by a thread (`storage.log.write_behind`); making them durable is
`begin_flush` and `FlushTicket.run`.

Source: Kafka, UnifiedLog.java, LocalLog.java.
"""

from uuid import UUID

from config.topic import TopicConfig
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.log.append_markers import LogMarkers
from storage.log.cut import LogCuts
from storage.log.read import LogReads
from storage.log.recovery import LogLoader, Progress
from storage.producers.state import PRODUCER_ID_EXPIRATION_MS, ProducerStateManager
from storage.segment.flush import FlushTicket
from storage.segment.segment import TimestampOffset
from storage.types.append_info import AppendInfo
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition

__all__ = ["AppendInfo", "AppendOrigin", "FlushTicket", "Log", "TimestampOffset"]


class Log(LogCuts, LogMarkers, LogReads):
    """See the module; attributes are described at `LogState`."""

    __slots__ = ()

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        *,
        topic_id: UUID,
        config: TopicConfig,
        filesystem: Filesystem,
        clock: Clock,
        recovery_point: int | None = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        was_compacted: bool = False,
        new_leader_epoch: int | None = None,
        clean_shutdown: bool = False,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        requires_verification: bool = False,
        randomness: Randomness | None = None,
        on_progress: Progress | None = None,
    ) -> "Log":
        """Open the log in `directory`, which is created if it is missing; recovers what must be.

        May run in any thread, and block for long: see `storage.log.recovery`.

        Args:
            directory: Of the partition.
            topic_partition: Its name.
            topic_id: Of the topic.
            config: Of the topic, resolved.
            filesystem: Where it is.
            clock: Time.
            recovery_point: From its checkpoint; None if there is none.
            log_start_offset: From its checkpoint, 0 if there is none.
            high_watermark: From its checkpoint, 0 if there is none; brought into the log's range.
            was_compacted: The cleaner's checkpoint knows the log.
            new_leader_epoch: The one in which the log is led from now on, if that began with this
                start (KIP-320): it begins at the log's end, in whatever state that was found.
            clean_shutdown: The directory was closed cleanly, so nothing is scanned.
            producer_id_expiration_ms: `producer.id.expiration.ms`.
            requires_verification: `transaction.partition.verification.enable`.
            randomness: For `segment.jitter.ms`; None: no jitter.
            on_progress: Called with (bytes scanned, bytes to scan).

        Raises:
            DiskError: The disk refused.
        """
        log = cls(
            directory,
            topic_partition,
            topic_id=topic_id,
            config=config,
            filesystem=filesystem,
            clock=clock,
            randomness=randomness,
        )
        if filesystem.exists(directory):
            log._is_new_directory = False
            log._directory_changed = not clean_shutdown
        else:
            filesystem.mkdir(directory)
        loader = LogLoader(
            directory,
            filesystem,
            new_segment=log._describe_segment,
            create_segment=log._create_segment,
            producer_state=lambda snapshots: ProducerStateManager(
                topic_partition,
                directory,
                filesystem,
                producer_id_expiration_ms=producer_id_expiration_ms,
                snapshot_offsets=snapshots,
                requires_verification=requires_verification,
            ),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            was_compacted=was_compacted or "compact" in config.cleanup_policy,
            last_known_epoch=None if new_leader_epoch is None else new_leader_epoch - 1,
            remote_storage=config.remote_storage_enable,
            now_ms=clock.now_ms(),
            on_progress=on_progress,
        )
        try:
            loaded = loader.load()
        except BaseException:
            # It may be tried again, and its segments be deleted meanwhile.
            loader.close()
            raise
        log._segments = loaded.segments
        log.leader_epochs = loader.leader_epochs
        log.producer_state = loader.producer_state
        log.log_start_offset = log.durable_log_start_offset = loaded.log_start_offset
        log.log_end_offset = loaded.log_end_offset
        log.recovery_point = loaded.recovery_point
        log.set_aside = loaded.set_aside
        log.needs_new_epoch = loaded.was_scanned and new_leader_epoch is None
        # Also where the disk refuses what comes next.
        for segment in loaded.segments:
            segment.close()
        if new_leader_epoch is not None:
            log.begin_epoch(new_leader_epoch)
        latest = log.leader_epochs.latest_epoch
        log._latest_leader_epoch = -1 if latest is None else latest
        # What left this disk for remote storage was committed.
        log.update_high_watermark(max(high_watermark, log.local_log_start_offset))
        return log

    def begin_epoch(self, leader_epoch: int) -> None:
        """Let a leader epoch begin at the log's end. In any thread, before the log serves.

        Raises:
            DiskError: The disk refused.
        """
        # What was written before the first batch here, remote storage knows and the file.
        self.leader_epochs.begin_at(
            leader_epoch, self.log_end_offset, in_place=not self.remote_storage
        )
        self._load_latest_epoch()
        self.needs_new_epoch = False

    def close(self, *, clean: bool = True) -> None:
        """Give back descriptors. A clean close makes everything durable first, and may block.

        Raises:
            DiskError: The disk refused: the stop was not a clean one.
        """
        if clean and self.failure is None:
            self.write_queued()
            active = self._segments.active
            changed = active.seal()
            self._take_snapshot(self.log_end_offset)
            if changed or self._directory_changed or self.log_end_offset > self.recovery_point:
                self._directory_changed = True
                ticket = self._make_ticket(self.log_end_offset)
                if changed:
                    ticket.side_files += (active.offset_index, active.time_index)
                ticket.run()
                self.finish_flush(ticket)
        for segment in self._segments:
            segment.close()

    def rename_directory(self, directory: str) -> None:
        """The directory gets a new name, e.g. `-delete`; open files and slices stay valid.

        Raises:
            DiskError: The disk refused.
        """
        self._filesystem.rename(self.directory, directory)
        self.set_aside = tuple(
            directory + folder.removeprefix(self.directory) for folder in self.set_aside
        )
        self.directory = directory
        for segment in self._segments:
            segment.move_to(directory)
        for _, segment in self._deleted or ():
            segment.move_to(directory)
        for segment in self._leaving or ():
            segment.move_to(directory)

    def delete(self) -> None:
        """Close, and remove the directory with everything in it. Blocks for the disk.

        Raises:
            DiskError: The disk refused.
        """
        self.close(clean=False)
        self._filesystem.rmtree(self.directory)
