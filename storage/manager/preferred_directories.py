"""Log directories that were asked for before their partitions had a log here (KIP-113).

    AlterReplicaLogDirs ──> noted ──> the log is made there, and the note is used up
                              └──> the directory is offline or full: made elsewhere

In memory only, as in Kafka: whoever asked was told that there is no replica, and asks again.

Source: Kafka, LogManager.scala (maybeUpdatePreferredLogDir).
"""

import threading
from collections import OrderedDict
from typing import Final

from storage.checkpoints.log_directory import LogDirectory
from storage.types.topic_partition import TopicPartition

PREFERRED_MAX: Final = 10_000
"""Partitions that are noted; of more the oldest are forgotten."""


class PreferredDirectories:
    """See the module. In any thread."""

    def __init__(self) -> None:
        self._by_partition: OrderedDict[TopicPartition, LogDirectory] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Partitions that are noted."""
        return len(self._by_partition)

    def note(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """Have a log be made in a directory; the last word counts."""
        with self._lock:
            self._by_partition[topic_partition] = directory
            self._by_partition.move_to_end(topic_partition)
            if len(self._by_partition) > PREFERRED_MAX:
                self._by_partition.popitem(last=False)

    def of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Where a log is to be made; None: it is free, or what was asked for takes no logs."""
        if not self._by_partition:
            return None
        with self._lock:
            directory = self._by_partition.get(topic_partition)
            if directory is None:
                return None
            if not directory.is_online:
                del self._by_partition[topic_partition]
                return None
        return None if directory.is_full else directory

    def used(self, topic_partition: TopicPartition) -> None:
        """A log was made, wherever it is."""
        if self._by_partition:
            with self._lock:
                self._by_partition.pop(topic_partition, None)
