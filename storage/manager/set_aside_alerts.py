"""Alerts about segments that a recovery has set aside: the operator examines and removes them."""

from storage.environment.alerts import AlertKind
from storage.manager.log_table import LogTable
from storage.segment.set_aside import describe as describe_set_aside
from storage.types.topic_partition import TopicPartition


class SetAsideAlerts:
    """Keeps the alerts of kind SEGMENTS_SET_ASIDE.

    Owns which folders were reported. Called by the loading of a log, and by the periodic removal of
    deleted files; in any thread.
    """

    def __init__(self, table: LogTable) -> None:
        self._table = table
        self._folders: dict[TopicPartition, tuple[str, ...]] = {}

    def report(self, topic_partition: TopicPartition, folders: tuple[str, ...]) -> None:
        """Set the alert that names the folders with segments of a partition; clear it without any.

        Raises:
            DiskError: A folder cannot be listed.
        """
        if not folders:
            if self._folders.pop(topic_partition, None) is not None:
                self._table.alerts.clear(AlertKind.SEGMENTS_SET_ASIDE, str(topic_partition))
            return
        self._folders[topic_partition] = folders
        self._table.alerts.set(
            AlertKind.SEGMENTS_SET_ASIDE,
            str(topic_partition),
            describe_set_aside(self._table.filesystem, topic_partition, folders),
        )

    def refresh(self) -> None:
        """Update the alerts: the operator has removed folders, or they left with the log."""
        for topic_partition, folders in list(self._folders.items()):
            log = self._table.serving.get(topic_partition)
            directory = None if log is None else self._table.directory_of(log)
            left = (
                () if log is None else tuple(filter(self._table.filesystem.exists, log.set_aside))
            )
            if left != folders:
                with self._table.failing(directory):
                    self.report(topic_partition, left)
