"""Counters of the remote log's tasks, per topic; the broker gives them Kafka's metric names.

Source: Kafka, BrokerTopicStats and RemoteStorageMetrics (KIP-405, KIP-963).
"""

from dataclasses import dataclass


@dataclass(slots=True)
class TopicCounters:
    """Since the broker started.

    Attributes:
        copy_requests, copy_errors: Copies begun; copies that failed, for whatever reason
            (RemoteCopyRequestsPerSec, RemoteCopyErrorsPerSec).
        copy_bytes: Of `.log` files copied, before compression (RemoteCopyBytesPerSec).
        copied_segments: Copies finished.
        uploaded_bytes: What went over the network for them.
        delete_requests, delete_errors: RemoteDeleteRequestsPerSec, RemoteDeleteErrorsPerSec.
        build_aux_requests, build_aux_errors: A follower built its state from remote storage
            (BuildRemoteLogAuxStateRequestsPerSec, BuildRemoteLogAuxStateErrorsPerSec).
        corrupt_segments: Local segments that were refused; each once.
        rebuilt_indexes: Local indexes that were made again before a copy.
        adopted_segments: Copies whose end was not published, but that proved complete.
        lost_segments: Copies that were not complete, of offsets that are nowhere else.
    """

    copy_requests: int = 0
    copy_errors: int = 0
    copy_bytes: int = 0
    copied_segments: int = 0
    uploaded_bytes: int = 0
    delete_requests: int = 0
    delete_errors: int = 0
    build_aux_requests: int = 0
    build_aux_errors: int = 0
    corrupt_segments: int = 0
    rebuilt_indexes: int = 0
    adopted_segments: int = 0
    lost_segments: int = 0


class TaskCounters:
    """One row per topic; there are never more than there are topics with remote storage."""

    __slots__ = ("topics",)

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}

    def of(self, topic: str) -> TopicCounters:
        """The row of a topic."""
        row = self.topics.get(topic)
        if row is None:
            row = self.topics[topic] = TopicCounters()
        return row

    def forget(self, topic: str) -> None:
        """The topic is gone."""
        self.topics.pop(topic, None)
