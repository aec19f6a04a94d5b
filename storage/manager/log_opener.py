"""Opening one log of the broker: by what the checkpoints of its directory say."""

from posixpath import join
from uuid import UUID

from config.topic import TopicConfig
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
)
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.log_loading import LoadJob
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.manager.log_table import LogTable
from storage.producers.table import ProducerSettings
from storage.types.topic_partition import TopicPartition


class LogOpener:
    """Opens logs, and puts them into the table.

    Owns nothing. Called by loading, creation and moves, in whatever thread does that; it blocks for
    the disk.
    """

    def __init__(self, table: LogTable) -> None:
        self._table = table

    def open(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: TopicConfig,
        job: LoadJob | None,
        new_leader_epoch: int | None = None,
        *,
        latest_epoch: int | None = None,
        has_other_replicas: bool = False,
        is_new: bool | None = None,
        was_closed: bool = True,
        is_foreign: bool = False,
    ) -> Log:
        """Open a log: a job's, a new one, which no checkpoint knows, or one of this process.

        `is_new` is by default whether there is no job; `was_closed`: one of this process was closed
        cleanly; `is_foreign`: somebody has put it here, written elsewhere.
        """
        is_known = job is not None if is_new is None else not is_new

        def checkpointed(name: str) -> int | None:
            return directory.checkpointed(name, topic_partition) if is_known else None

        recovery_point = checkpointed(RECOVERY_POINT_CHECKPOINT)
        remote_offset = checkpointed(REMOTE_OFFSET_CHECKPOINT)
        if recovery_point is None and is_known and directory.has_recovery_points:
            # It was made after the last checkpoint, and nothing of it need have been synced.
            recovery_point = 0
        return Log.open(
            join(directory.path, str(topic_partition)),
            topic_partition,
            topic_id=topic_id,
            config=config,
            environment=self._table.environment,
            checkpointed=CheckpointedLog(
                recovery_point=recovery_point,
                log_start_offset=checkpointed(LOG_START_OFFSET_CHECKPOINT) or 0,
                high_watermark=checkpointed(HIGH_WATERMARK_CHECKPOINT) or 0,
                remote_offset=-1 if remote_offset is None else remote_offset,
                was_compacted=bool(checkpointed(CLEANER_CHECKPOINT)),
                no_gaps_above=directory.no_gaps_above and not is_foreign,
                new_leader_epoch=new_leader_epoch,
                latest_epoch=latest_epoch,
                has_other_replicas=has_other_replicas,
                clean_shutdown=was_closed if job is None else directory.had_clean_shutdown,
                is_doubtful=job is not None and directory.had_failed,
            ),
            producers=ProducerSettings(
                producer_id_expiration_ms=self._table.settings.producer_id_expiration_ms,
                transaction_partition_verification_enable=self._table.settings.transaction_partition_verification_enable,
            ),
            on_progress=None if job is None else job.advance,
        )

    def serve(self, directory: LogDirectory, log: Log) -> bool:
        """Put an opened log into the table; False if its directory has gone offline meanwhile."""
        with self._table.lock:
            if not directory.is_online:
                log.close(clean=False)
                return False
            self._table.refuse_if_full(directory, log)
            self._table.serving[log.topic_partition] = log
            self._table.loading.pop(log.topic_partition, None)
            # It was about to move to one that has failed.
            self._table.offline.pop(log.topic_partition, None)
            directory.loading.discard(log.topic_partition)
            return True
