"""The share-partitions of a group with state in the share coordinator, as a value.

    subscribed ──> initializing ──────────────────────> initialized ──────────> deleting ──> gone
                        │    the share coordinator did it     offsets or group deleted
                        └──> dropped: it failed

A topic stays listed as deleting until a deletion of all its state has succeeded, also while
partitions of it are initialized anew.

Only initialized partitions are assigned to members. Requests are recorded in the log before they
are sent, so that none is lost when a coordinator ends before the response: the new one repeats it.

Source: Kafka, ShareGroup.java (ShareGroupStatePartitionMetadataInfo), GroupMetadataManager.java
(subscribedTopicsChangeMap, addInitializingTopicsRecords, initializeShareGroupState,
uninitializeShareGroupState, maybeCleanupShareGroupState).
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from protocol.internal.share_group_records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

LONG_AGO_MS: Final = -(1 << 62)
"""Time of a request whose response is no longer awaited."""


class TopicPartitions(NamedTuple):
    """Partitions of one topic; `asked_at_ms` is when their state was requested."""

    name: str
    partitions: frozenset[int]
    asked_at_ms: float = LONG_AGO_MS

    def union(self, other: "TopicPartitions | None") -> "TopicPartitions":
        """With the other's partitions, the other's time being the newer one."""
        if other is None:
            return self
        return TopicPartitions(other.name, self.partitions | other.partitions, other.asked_at_ms)

    def minus(self, partitions: Collection[int]) -> "TopicPartitions":
        """Without these."""
        return self._replace(partitions=self.partitions.difference(partitions))


Topics = Mapping[UUID, TopicPartitions]
_NONE: Final[Topics] = MappingProxyType({})
_NO_NAMES: Final[Mapping[UUID, str]] = MappingProxyType({})


class KeptState(NamedTuple):
    """Partitions by topic id; of those being deleted only the topic's name."""

    initializing: Topics = _NONE
    initialized: Topics = _NONE
    deleting: Mapping[UUID, str] = _NO_NAMES

    def missing(
        self, names: Iterable[str], image: ClusterImage, *, now_ms: float, retry_ms: float
    ) -> dict[UUID, TopicPartitions]:
        """Partitions of these topics that have no state and no recent request for it."""
        found = {}
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                continue
            there: frozenset[int] = frozenset()
            initialized = self.initialized.get(topic.topic_id)
            if initialized is not None:
                there = initialized.partitions
            initializing = self.initializing.get(topic.topic_id)
            if initializing is not None and now_ms - initializing.asked_at_ms < retry_ms:
                there |= initializing.partitions
            if len(there) < len(topic.partitions):
                wanted = frozenset(range(len(topic.partitions))) - there
                if wanted:
                    found[topic.topic_id] = TopicPartitions(name, wanted, now_ms)
        return found

    def asked_for(self, topics: Topics) -> "KeptState":
        """Add initializing partitions.

        A topic whose deletion failed stays listed as deleting until one succeeds: the request may
        fail as well, or concern other partitions than those that still have state. (Kafka drops it
        from the list here, so that the state outlives the group.)
        """
        initializing = dict(self.initializing)
        for topic_id, asked in topics.items():
            known = initializing.get(topic_id)
            initializing[topic_id] = asked if known is None else known.union(asked)
        return self._replace(initializing=initializing)

    def answered(
        self, done: Mapping[UUID, Collection[int]], failed: Mapping[UUID, Collection[int]]
    ) -> "KeptState":
        """Move partitions to initialized, or drop those that failed; ignore unrequested ones."""
        initializing = dict(self.initializing)
        initialized = dict(self.initialized)
        for topic_id in {*done, *failed}:
            asked = initializing.get(topic_id)
            if asked is None:
                continue
            there = asked.partitions.intersection(done.get(topic_id, ()))
            if there:
                new = TopicPartitions(asked.name, there)
                initialized[topic_id] = new.union(initialized.get(topic_id))
            left = asked.minus(there).minus(failed.get(topic_id, ()))
            if left.partitions:
                initializing[topic_id] = left
            else:
                del initializing[topic_id]
        return KeptState(initializing, initialized, self.deleting)

    def all_deleting(self, image: ClusterImage) -> "KeptState":
        """Move all state to deleting, for the group's deletion; deleted topics are left out."""
        names = {i: name for i, name in self.deleting.items() if i in image.topics_by_id}
        for topics in (self.initialized, self.initializing):
            names.update((topic_id, topic.name) for topic_id, topic in topics.items())
        return KeptState(deleting=names)

    def topics_deleting(self, topic_ids: Collection[UUID]) -> "KeptState":
        """Move these initialized topics to deleting."""
        initialized = {i: t for i, t in self.initialized.items() if i not in topic_ids}
        deleting = dict(self.deleting)
        deleting.update((i, t.name) for i, t in self.initialized.items() if i in topic_ids)
        return KeptState(self.initializing, initialized, deleting)

    def deleted(self, topic_ids: Collection[UUID]) -> "KeptState":
        """Remove topics whose state was deleted."""
        deleting = {i: name for i, name in self.deleting.items() if i not in topic_ids}
        return self._replace(deleting=deleting)

    def without(self, topic_ids: Collection[UUID]) -> "KeptState":
        """Remove topics that were deleted themselves."""
        return KeptState(
            {i: t for i, t in self.initializing.items() if i not in topic_ids},
            {i: t for i, t in self.initialized.items() if i not in topic_ids},
            {i: name for i, name in self.deleting.items() if i not in topic_ids},
        )

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        """For the log."""
        return ShareGroupStatePartitionMetadataValue(
            _infos(self.initializing),
            _infos(self.initialized),
            tuple(TopicInfo(topic_id, name) for topic_id, name in self.deleting.items()),
        )

    @staticmethod
    def of(value: ShareGroupStatePartitionMetadataValue) -> "KeptState":
        """Decode from the log; requests of another coordinator will be repeated."""
        return KeptState(
            _topics(value.initializing),
            _topics(value.initialized),
            {topic.topic_id: topic.name for topic in value.deleting},
        )


def _infos(topics: Topics) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(topic_id, topic.name, tuple(sorted(topic.partitions)))
        for topic_id, topic in topics.items()
    )


def _topics(infos: Iterable[TopicPartitionsInfo]) -> Topics:
    return {
        info.topic_id: TopicPartitions(info.name, frozenset(info.partitions))
        for info in infos
        if info.partitions
    }
