"""Administration of share groups: start offsets altered, deleted, described; deletion.

Offsets of a share group are share state, so each of these changes is three steps: the intention is
logged, the share coordinator does it, the completion is logged. Meanwhile no member can join, as it
would see half of the change; after an interruption, the next attempt starts from the log.

Source: Kafka, GroupMetadataManager.java (alterShareGroupOffsets,
sharePartitionsEligibleForOffsetDeletion, shareGroupBuildPartitionDeleteRequest),
GroupCoordinatorService.java (deleteShareGroups, describeShareGroupOffsets).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import Done
from broker.coordinator.persister import SharePartitionKey, SharePersister, ShareSummary
from broker.groups.modern.journal import Journal
from broker.groups.share.changes import ShareChanges
from broker.groups.share.each_partition import each_partition
from broker.groups.share.initializer import Codes, Initializer
from broker.groups.share.kept_state import KeptState, TopicPartitions
from broker.groups.share.share_group import ShareGroup
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from storage.environment.environment import Environment

Altered = Callable[[ErrorCode, Codes], None]
"""The group's error, or the error code of each partition."""

TopicsDeleted = Callable[[ErrorCode, dict[UUID, ErrorCode]], None]
"""The group's error, or the error code of each topic."""

Summaries = Callable[[dict[UUID, dict[int, ShareSummary | None]]], None]
"""By topic id and partition; None if there is no state."""


class ShareGroupAdministration:
    """Administrative requests for one shard's share groups."""

    def __init__(
        self,
        shard: GroupShard,
        journal: Journal,
        initializer: Initializer,
        persister: Callable[[], SharePersister | None],
        state_altered: Callable[[str], None],
        environment: Environment,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._shard = shard
        self._journal = journal
        self._initializer = initializer
        self._persister = persister
        self._state_altered = state_altered
        self._timer = environment.timer
        self._clock = environment.clock
        self._image = image

    # -- alter --

    def alter_offsets(
        self, group_id: str, offsets: Mapping[UUID, Mapping[int, int]], done: Altered
    ) -> None:
        """Reset partitions to these start offsets; a group that does not exist is created.

        Args:
            group_id: The group.
            offsets: Of topics and partitions that exist.
            done: Called once.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, GROUP_MAX_SIZE_REACHED.
        """
        if not offsets and group_id not in self._shard.groups:
            done(ErrorCode.NONE, {})
            return
        group = self._empty_group(group_id, create=True)
        if not offsets:
            done(ErrorCode.NONE, {})
            return
        names = self._image().topics_by_id
        asked = {
            topic_id: TopicPartitions(
                names[topic_id].name, frozenset(partitions), self._clock.monotonic_ms()
            )
            for topic_id, partitions in offsets.items()
        }

        def finished(codes: Codes) -> None:
            group.work.is_altered = False
            self._state_altered(group_id)
            done(ErrorCode.NONE, codes)

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._initializer.begin(group, offsets, finished)
            else:
                group.work.is_altered = False
                done(code, {})

        self._write(group, group.kept.asked_for(asked), written)

    # -- delete --

    def delete_offsets(self, group_id: str, topic_ids: Iterable[UUID], done: TopicsDeleted) -> None:
        """Delete the group's start offsets of topics.

        `done` gets UNKNOWN_TOPIC_OR_PARTITION for each topic without any.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group = self._empty_group(group_id, create=False)
        codes: dict[UUID, ErrorCode] = {}
        doomed: list[SharePartitionKey] = []
        for topic_id in topic_ids:
            keys = self._keys(group, topic_id)
            codes[topic_id] = ErrorCode.NONE if keys else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            doomed += keys
        if not doomed:
            done(ErrorCode.NONE, codes)
            return

        def deleted(failed: dict[UUID, ErrorCode]) -> None:
            group.work.is_altered = False
            codes.update(failed)
            gone = [topic_id for topic_id, code in codes.items() if code is ErrorCode.NONE]
            kept = group.kept.deleted(gone)
            if group.is_dead:
                done(ErrorCode.NOT_COORDINATOR, {})
            else:
                changes = ShareChanges(group)
                if kept != group.kept:
                    changes.set_kept(kept)
                self._journal.write(group, changes.records, lambda code: done(code, codes))

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._delete_state(doomed, deleted)
            else:
                group.work.is_altered = False
                done(code, {})

        self._write(group, group.kept.topics_deleting(set(codes)), written)

    def delete_state(self, group: ShareGroup, done: Done) -> None:
        """Delete all share state of a group that is about to be deleted; it must be empty."""
        if group.members or group.work.is_altered:
            done(ErrorCode.NON_EMPTY_GROUP)
            return
        doomed = [
            key
            for topic_id in {
                **group.kept.initialized,
                **group.kept.initializing,
                **group.kept.deleting,
            }
            for key in self._keys(group, topic_id)
        ]
        if not doomed:
            done(ErrorCode.NONE)
            return

        def deleted(failed: dict[UUID, ErrorCode]) -> None:
            group.work.is_altered = False
            # Of a topic that is not there nothing is read either.
            gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            done(next((code for code in failed.values() if code is not gone), ErrorCode.NONE))

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._delete_state(doomed, deleted)
            else:
                group.work.is_altered = False
                done(code)

        self._write(group, group.kept.all_deleting(self._image()), written)

    def _keys(self, group: ShareGroup, topic_id: UUID) -> list[SharePartitionKey]:
        """Partitions of a topic that may have state; all, if an earlier deletion was cut short."""
        partitions: set[int] = set()
        for topics in (group.kept.initialized, group.kept.initializing):
            if topic_id in topics:
                partitions |= topics[topic_id].partitions
        topic = self._image().topics_by_id.get(topic_id)
        if topic is not None and topic_id in group.kept.deleting:
            partitions.update(range(len(topic.partitions)))
        return [SharePartitionKey(group.group_id, topic_id, p) for p in sorted(partitions)]

    def _delete_state(
        self, keys: Sequence[SharePartitionKey], done: Callable[[dict[UUID, ErrorCode]], None]
    ) -> None:
        """Delete state; `done` gets one error for each topic that has any."""

        def delete(key: SharePartitionKey, answer: Done) -> None:
            persister = self._persister()
            if persister is None:
                answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            else:
                persister.delete(key, answer)

        def finished(results: list[tuple[SharePartitionKey, ErrorCode]]) -> None:
            self._state_altered(keys[0].group_id)
            done({key.topic_id: code for key, code in results if code is not ErrorCode.NONE})

        each_partition(keys, delete, finished, self._timer)

    # -- describe --

    def summaries(
        self,
        group_id: str,
        partitions: Mapping[UUID, Sequence[int]] | None,
        done: Summaries,
    ) -> None:
        """Read a group's start offsets in these partitions, or in all of its partitions.

        A group that does not exist, or is of another kind, has none.
        """
        if partitions is None:
            group = self._shard.groups.get(group_id)
            topics_by_id = self._image().topics_by_id
            partitions = (
                {
                    topic_id: sorted(topic.partitions)
                    for topic_id, topic in group.kept.initialized.items()
                    if topic_id in topics_by_id
                }
                if isinstance(group, ShareGroup)
                else {}
            )
        keys = [
            SharePartitionKey(group_id, topic_id, partition)
            for topic_id, indexes in partitions.items()
            for partition in indexes
        ]

        def read(key: SharePartitionKey, answer: Callable[[ShareSummary | None], None]) -> None:
            persister = self._persister()
            if persister is None:
                answer(None)
            else:
                persister.read_summary(key, lambda code, summary: answer(summary))

        def finished(results: list[tuple[SharePartitionKey, ShareSummary | None]]) -> None:
            found: dict[UUID, dict[int, ShareSummary | None]] = {}
            for key, summary in results:
                found.setdefault(key.topic_id, {})[key.partition] = summary
            done(found)

        each_partition(keys, read, finished, self._timer)

    # -- common --

    def _empty_group(self, group_id: str, *, create: bool) -> ShareGroup:
        group = self._shard.groups.get(group_id)
        if group is None:
            if not create:
                raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            made = ShareGroup(group_id)
            try:
                self._shard.add_group(made)
            except TooManyGroupsError:
                raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED) from None
            return made
        if not isinstance(group, ShareGroup):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        if group.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        if group.work.is_altered:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The group is being changed.")
        return group

    def _write(self, group: ShareGroup, kept: KeptState, written: Done) -> None:
        group.work.is_altered = True
        changes = ShareChanges(group)
        changes.set_kept(kept)
        self._journal.write(group, changes.records, written)
