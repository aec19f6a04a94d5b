"""Offsets of the groups in one shard: commit, fetch, delete, expire.

Commits of one event loop iteration are written as one batch (`ShardLog.gather`). Before offsets are
read, gathered commits are written (`flush`).

Expiry (KIP-211), checked every `offsets.retention.check.interval.ms`. An offset expires
`offsets.retention.minutes` after

    group                                        counted from
    simple (never had members)                   its commit
    had members, now Empty                       the moment the group became empty
    consumers, Stable, topic not subscribed      its commit
    any other                                    never

but not while a transaction is about to change it. A commit that came with a retention time of its
own (OffsetCommit below version 5) expires at that time. A group is deleted with its last offset.

Source: Kafka, OffsetMetadataManager.java, OffsetExpirationConditionImpl.java.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from broker.coordinator.outcome import Done, KeyValue
from broker.groups.classic.classic_group import ClassicGroup, create_classic_group
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.classic.protocol import ClassicProtocol
from broker.groups.classic.records import offset_tombstone
from broker.groups.state.group import Group, GroupType
from broker.groups.state.group_shard import GroupShard, TooManyGroupsError
from broker.groups.state.offset_store import is_metadata_too_large
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.hot.offset_commit import CommittedPartition, CommittedTopic, OffsetCommitRequest
from protocol.internal import consumer_subscription
from protocol.internal.consumer_offsets import (
    NO_TIMESTAMP,
    OffsetCommitValue,
    encode_offset_commit,
    offset_commit_key_head,
)
from storage.environment.environment import Environment

RECORDS_PER_BATCH_MAX = 1_000
"""Tombstones written in one batch, so that deleting a large group stays below message limits."""

BATCH_SIZE_MAX = 512 * 1024
"""Bytes of their keys in one batch: names may be long."""

_MINUTE_MS: Final = 60_000
_TIMESTAMP_MAX: Final = (1 << 63) - 1
_pack_index: Final = Struct(">i").pack


class FetchedOffset(NamedTuple):
    """One partition of an OffsetFetch; offset -1 and no error: nothing was committed."""

    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class OffsetManager:
    """The committed offsets of one shard's groups."""

    def __init__(
        self,
        shard: GroupShard,
        protocol: ClassicProtocol,
        *,
        settings: BrokerConfig,
        environment: Environment,
    ) -> None:
        self._shard = shard
        self._fail_log = shard.log.fail
        self._protocol = protocol
        self._clock = environment.clock
        self._timer = environment.timer
        self._metadata_size_max = settings.offset_metadata_max_bytes
        self._retention_ms = settings.offsets_retention_minutes * _MINUTE_MS

    # -- commit --

    def commit(self, request: OffsetCommitRequest, api_version: int, done: Done) -> None:
        """Write offsets; `done` once they are committed, or with an error for all of them.

        Partitions that have an error in the request are left out; those refused on their own
        account have theirs set in it.
        """
        code = self._validate_commit(request, api_version)
        if code is not ErrorCode.NONE:
            done(code)
            return
        group_id = request.group_id
        now_ms = self._clock.now_ms()
        retention_ms = request.retention_time_ms
        expire_ms = NO_TIMESTAMP
        if retention_ms != -1:
            expire_ms = min(now_ms + retention_ms, _TIMESTAMP_MAX)
        records: list[KeyValue] = []
        accepted: list[tuple[CommittedTopic, list[CommittedPartition]]] = []
        for topic in request.topics:
            topic_id = topic.topic_id
            key_head = b""
            taken: list[CommittedPartition] = []
            for partition in topic.partitions:
                if partition.error_code:
                    continue
                metadata = partition.metadata
                if not metadata:
                    metadata = ""
                elif is_metadata_too_large(metadata, self._metadata_size_max):
                    partition.error_code = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                    continue
                if not taken:
                    key_head = offset_commit_key_head(group_id, topic.name)
                    accepted.append((topic, taken))
                taken.append(partition)
                value = encode_offset_commit(
                    partition.offset, partition.leader_epoch, metadata, now_ms, expire_ms, topic_id
                )
                records.append((key_head + _pack_index(partition.index), value))
        if not records:
            done(ErrorCode.NONE)
            return

        self._shard.stats.offset_commits += len(records)
        # No function within this one: compiled, that and its variables would know each other, and
        # be left to the garbage collector.
        apply = partial(self._committed, group_id, accepted, now_ms, expire_ms)
        self._shard.log.gather(records, apply, done)

    def _committed(
        self,
        group_id: str,
        accepted: list[tuple[CommittedTopic, list[CommittedPartition]]],
        commit_ms: int,
        expire_ms: int,
        record_offset: int,
    ) -> None:
        """The records of one OffsetCommit are committed, the first of them at `record_offset`."""
        offsets = self._shard.offsets
        for topic, taken in accepted:
            offsets.put_commits(
                group_id,
                topic.name,
                taken,
                topic_id=topic.topic_id,
                commit_ms=commit_ms,
                expire_ms=expire_ms,
                record_offset=record_offset,
            )
            record_offset += len(taken)
        # The group may have been deleted while the commit was being written.
        self._ensure_group(group_id)

    def _validate_commit(self, request: OffsetCommitRequest, api_version: int) -> ErrorCode:
        group = self._shard.groups.get(request.group_id)
        generation = request.generation_or_epoch
        if group is None:
            if generation >= 0:
                # Below version 9 clients do not know the better error.
                if api_version >= 9:
                    return ErrorCode.GROUP_ID_NOT_FOUND
                return ErrorCode.ILLEGAL_GENERATION
            # An administrator, or a consumer that assigns its partitions itself: a simple group.
            try:
                group = create_classic_group(self._shard, request.group_id)
            except TooManyGroupsError:
                return ErrorCode.GROUP_MAX_SIZE_REACHED
        code = group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            generation,
            transactional=False,
            api_version=api_version,
        )
        if code is ErrorCode.NONE and isinstance(group, ClassicGroup):
            self._protocol.touch(group, request.member_id)
        return code

    def _ensure_group(self, group_id: str) -> None:
        if group_id not in self._shard.groups:
            # It is in the log: it is added even beyond the limit.
            self._shard.add_loaded_group(
                ClassicGroup(
                    group_id,
                    state=ClassicGroupState.EMPTY,
                    current_state_timestamp_ms=self._clock.now_ms(),
                )
            )

    # -- fetch --

    def fetch(
        self,
        group_id: str,
        topic: str,
        topic_id: UUID,
        partitions: Sequence[int],
        *,
        require_stable: bool,
    ) -> list[FetchedOffset]:
        """Committed offsets of a topic's partitions, in the order asked for.

        Args:
            group_id: The group; one that is not known has committed nothing.
            topic: The topic's name.
            topic_id: Its id (zero: there is no such topic): an offset that was committed to
                another topic of this name does not count.
            partitions: Partition indexes.
            require_stable: Offsets that an open transaction would change are answered with
                UNSTABLE_OFFSET_COMMIT, on which the client retries (KIP-447).
        """
        self._shard.log.flush()
        offsets = self._shard.offsets
        fetched = []
        for partition in partitions:
            if require_stable and offsets.has_pending(group_id, topic, partition):
                fetched.append(FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
                continue
            committed = offsets.get(group_id, topic, partition)
            if committed is None:
                fetched.append(FetchedOffset(partition))
                continue
            value = committed.value
            if topic_id.int and value.topic_id.int and topic_id != value.topic_id:
                fetched.append(FetchedOffset(partition))
            else:
                fetched.append(
                    FetchedOffset(partition, value.offset, value.leader_epoch, value.metadata)
                )
        return fetched

    def topics(self, group_id: str) -> list[tuple[str, list[int]]]:
        """Topics and partitions that the group has committed."""
        self._shard.log.flush()
        return self._shard.offsets.topics(group_id)

    # -- delete --

    def delete(
        self,
        group_id: str,
        partitions: Sequence[tuple[str, int]],
        done: Callable[[ErrorCode, list[ErrorCode]], None],
    ) -> None:
        """Delete single offsets (OffsetDelete, KIP-496).

        `done` gets the group's error and one for each partition: GROUP_SUBSCRIBED_TO_TOPIC where
        consumers still read the topic.
        """
        self._shard.log.flush()
        group = self._shard.groups.get(group_id)
        if group is None or group.type is GroupType.SHARE:
            done(ErrorCode.GROUP_ID_NOT_FOUND, [])
            return
        if not group.is_empty and group.protocol_type != consumer_subscription.PROTOCOL_TYPE:
            done(ErrorCode.NON_EMPTY_GROUP, [])
            return
        codes = []
        doomed = []
        for topic, partition in partitions:
            if group.is_subscribed_to(topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            codes.append(ErrorCode.NONE)
            if self._shard.offsets.get(group_id, topic, partition) is not None or (
                self._shard.offsets.has_pending(group_id, topic, partition)
            ):
                doomed.append((group_id, topic, partition))
        self._shard.stats.offset_deletions += len(doomed)
        self._remove(doomed, None, lambda code: done(code, codes))

    def delete_group(self, group_id: str, done: Done) -> None:
        """Delete a group and its offsets (DeleteGroups); it must be empty."""
        self._shard.log.flush()
        group = self._shard.groups.get(group_id)
        if group is None:
            done(ErrorCode.GROUP_ID_NOT_FOUND)
        elif not self._may_go(group):
            done(ErrorCode.NON_EMPTY_GROUP)
        else:
            doomed = self._all_offsets(group_id)
            self._shard.stats.offset_deletions += len(doomed)
            self._remove(doomed, group, done)

    def delete_partitions(
        self,
        topics: Collection[str],
        group_ids: Iterable[str] | None = None,
        *,
        again: Mapping[str, UUID] = MappingProxyType({}),
    ) -> None:
        """Delete these groups' offsets of deleted topics, or every group's.

        `again`: ids, by name, of those that have been created again: what has been committed to
        them stays.
        """
        self._shard.log.flush()
        deleted = set(topics)
        doomed = [
            key
            for group_id in (self._shard.groups if group_ids is None else group_ids)
            if not deleted.isdisjoint(self._shard.offsets.topic_names(group_id))
            for key in self._all_offsets(group_id)
            if key[1] in deleted
            and not (key[1] in again and self._shard.offsets.are_of(*key, again[key[1]]))
        ]
        self._shard.stats.offset_deletions += len(doomed)
        self._remove(doomed, None, lambda _: None)

    # -- expire --

    def expire(self, group_id: str) -> int:
        """Delete the group's expired offsets, and the group with the last of them.

        Returns:
            How many offsets were checked.
        """
        self._shard.log.flush()
        group = self._shard.groups.get(group_id)
        if group is None:
            return 0
        counted_from = group.offset_expiry_base()
        if counted_from is None:
            return 0
        now_ms = self._clock.now_ms()
        offsets = self._shard.offsets
        stored = offsets.topics(group_id)
        doomed = []
        checked = 0
        for topic, partitions in stored:
            checked += len(partitions)
            if group.is_subscribed_to(topic):
                continue
            for partition in partitions:
                committed = offsets.get(group_id, topic, partition)
                assert committed is not None
                if self._is_expired(committed.value, counted_from, now_ms) and (
                    not offsets.has_pending(group_id, topic, partition)
                ):
                    doomed.append((group_id, topic, partition))
        ends = (
            group.is_empty
            and not group.is_expecting_members
            and len(doomed) == checked
            and not offsets.pending_topics(group_id)
        )
        self._shard.stats.offset_expirations += len(doomed)
        self._remove(doomed, group if ends else None, lambda _: None)
        return checked

    def _is_expired(self, value: OffsetCommitValue, counted_from: int, now_ms: int) -> bool:
        if value.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= value.expire_timestamp_ms
        base = value.commit_timestamp_ms if counted_from == NO_TIMESTAMP else counted_from
        return now_ms - base >= self._retention_ms

    # -- tombstones --

    def _all_offsets(self, group_id: str) -> list[tuple[str, str, int]]:
        stored = [
            (group_id, topic, partition)
            for topic, partitions in self._shard.offsets.topics(group_id)
            for partition in partitions
        ]
        known = set(stored)
        stored.extend(
            (group_id, topic, partition)
            for topic, partition in self._shard.offsets.pending_topics(group_id)
            if (group_id, topic, partition) not in known
        )
        return stored

    def _remove(
        self,
        doomed: Sequence[tuple[str, str, int]],
        group: Group | None,
        done: Done,
    ) -> None:
        """Write tombstones batch after batch, the group's own last; apply each as it commits.

        The group is gone when its tombstones are appended: a member that joins from then on
        creates a new one, recorded behind them. A join before that ends the deletion.
        """
        self._shard.log.flush()
        if group is not None and not self._may_go(group):
            done(ErrorCode.NON_EMPTY_GROUP)
            return
        if not self._shard.log.takes_records:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        records: list[KeyValue] = []
        size = 0
        for key in doomed[:RECORDS_PER_BATCH_MAX]:
            record = offset_tombstone(*key)
            size += len(record[0])
            if records and size > BATCH_SIZE_MAX:
                break
            records.append(record)
        batch, rest = doomed[: len(records)], doomed[len(records) :]
        refused = None
        if group is not None and not rest:
            records.extend(group.tombstones())
            self._shard.remove_group(group)
            refused = self._fail_log
        if not records:
            done(ErrorCode.NONE)
            return

        def committed(base_offset: int) -> None:
            for position, (group_id, topic, partition) in enumerate(batch):
                self._shard.offsets.remove(
                    group_id, topic, partition, before_record=base_offset + position
                )
            # A commit that was under way outlives the group: it is a simple one now.
            if group is not None and not rest and self._shard.offsets.has_group(group.group_id):
                self._ensure_group(group.group_id)

        def next_batch(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and rest:
                # In the loop's next iteration, so that a great many do not hold the loop.
                self._timer.call_later_ms(0, lambda: self._remove(rest, group, done))
            else:
                done(code)

        self._shard.log.append(records, committed, next_batch, refused=refused)

    def _may_go(self, group: Group) -> bool:
        return self._shard.groups.get(group.group_id) is group and group.is_empty
