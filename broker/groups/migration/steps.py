"""Upgrade and downgrade of groups with members: the group is replaced by one of the other kind.

Both are one change in memory and one batch in the log (KIP-848): tombstones of the old group, then
the records of the new one. A crash leaves the one group or the other. If the topic takes no batch
as large, not even a compressed one (max.message.bytes; several thousand members), the group is not
converted, as in Kafka.

    upgrade     members parked in JoinGroup or SyncGroup join again, to the new group
    downgrade   all members have to join again, which makes the first generation

Source: Kafka, GroupMetadataManager.java (convertToConsumerGroup, convertToClassicGroup).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import Done, KeyValue
from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.protocol import ClassicProtocol
from broker.groups.classic.records import group_record
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.migration.conversion import (
    MigrationPolicy,
    check_upgrade,
    may_downgrade,
    to_classic_group,
    to_consumer_group,
)
from broker.groups.state.group import Group
from broker.groups.state.group_shard import GroupShard
from broker.runtime.errors import ApiError
from broker.runtime.log_value import log_value
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)


class GroupMigration:
    """Conversions of one shard's groups."""

    def __init__(
        self,
        shard: GroupShard,
        classic: ClassicProtocol,
        consumers: ConsumerProtocol,
        *,
        settings: BrokerConfig,
        clock: Clock,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._shard = shard
        self._classic = classic
        self._consumers = consumers
        self._clock = clock
        self._image = image
        self._policy = MigrationPolicy(settings.group_consumer_migration_policy.lower())
        self._classic_max_size = settings.group_max_size
        self._consumer_max_size = settings.group_consumer_max_size

    def upgrade(self, group: Group, records: list[KeyValue]) -> ConsumerGroup:
        """Replace a classic group by a consumer group, for a joining member.

        It is written at once, and stays converted should the member be refused after all;
        `records` gets nothing.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND or GROUP_MAX_SIZE_REACHED; nothing has changed.
        """
        assert isinstance(group, ClassicGroup)
        try:
            made = self._checked(group)
            self._write_upgrade(group, made)
        except ApiError as error:
            logger.info(
                "group stays a classic group group=%s error=%s",
                log_value(group.group_id),
                log_value(error.message or error.code.name),
            )
            raise
        self._classic.abandon(group, ErrorCode.REBALANCE_IN_PROGRESS)
        # The classic group is referred to by writes under way only.
        self._shard.groups[group.group_id] = made
        self._consumers.start_timers(made)
        logger.info(
            "group is a consumer group now group=%s epoch=%d members=%d",
            log_value(group.group_id),
            made.group_epoch,
            len(made.members),
        )
        return made

    def _write_upgrade(self, group: ClassicGroup, made: ConsumerGroup) -> None:
        made.metadata_hash = self._consumers.hashes.of(made, self._image())
        changes = Changes(made)
        changes.records += group.tombstones()
        changes.put_everything()
        if not self._consumers.journal.write_whole(made, changes.records, _ignore_outcome):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {group.group_id} to consumer group because its "
                f"{len(group.members)} members do not fit into one batch of records.",
            )

    def _checked(self, group: ClassicGroup) -> ConsumerGroup:
        check_upgrade(group, self._policy, self._consumer_max_size)
        if len(group.members) >= self._consumer_max_size:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                "The consumer group has reached its maximum capacity of "
                f"{self._consumer_max_size} members.",
            )
        return to_consumer_group(group, self._image())

    def may_downgrade(
        self, group: ConsumerGroup, leaving: Collection[ConsumerGroupMember], *, joining: int = 0
    ) -> bool:
        """Whether the group becomes a classic one when `leaving` are gone."""
        return may_downgrade(
            group,
            [member.member_id for member in leaving],
            self._policy,
            max_size=self._classic_max_size,
            joining=joining,
        )

    def downgrade(self, group: ConsumerGroup, leaving: Iterable[ConsumerGroupMember]) -> bool:
        """Replace a consumer group in which only classic members are left by a classic group.

        It is written at once. False: the group is not converted.
        """
        gone = list(leaving)
        if not self.may_downgrade(group, gone):
            return False
        return self.convert_to_classic(
            group, [member.member_id for member in gone], [], _ignore_outcome, is_rebalancing=True
        )

    def convert_to_classic(
        self,
        group: ConsumerGroup,
        leaving: Collection[str],
        records: Sequence[KeyValue],
        done: Done,
        *,
        is_rebalancing: bool,
    ) -> bool:
        """Make the classic group of all members but `leaving`, all of them classic.

        Args:
            group: The group.
            leaving: Member ids.
            records: Of changes that have been made to `group` before, to be written first.
            done: Called when all is committed.
            is_rebalancing: Whether all members have to join again.

        Returns:
            False if members' metadata cannot be read, or they do not fit into one batch: the group
            stays, `records` are written.
        """
        staying = {
            member_id: member
            for member_id, member in group.members.items()
            if member_id not in leaving
        }
        try:
            made = to_classic_group(
                group,
                staying,
                self._image(),
                now_ms=self._clock.now_ms(),
                session=self._classic.session,
            )
        except ApiError as error:
            logger.warning(
                "group stays a consumer group group=%s error=%s",
                log_value(group.group_id),
                error.message,
            )
            if records:
                self._consumers.journal.write(group, records, done)
            return False
        written = [*records, *group.tombstones(), group_record(made)]
        if not self._consumers.journal.write_whole(group, written, done):
            logger.warning(
                "group stays a consumer group group=%s members=%d error=%s",
                log_value(group.group_id),
                len(staying),
                "its members do not fit into one batch of records",
            )
            if records:
                self._consumers.journal.write(group, records, done)
            return False
        parked, group.work.parked = group.work.parked, []
        group.die(self._clock.now_ms())
        self._shard.groups[group.group_id] = made
        for member in made.members.values():
            member.session.set(member.session_timeout_ms)
        for waiting in parked:
            # Classic members join again, others are gone.
            stays = waiting.member_id in made.members
            waiting.reply(
                ConsumerGroupHeartbeatResponse(
                    error_code=(
                        ErrorCode.REBALANCE_IN_PROGRESS if stays else ErrorCode.UNKNOWN_MEMBER_ID
                    ),
                    member_id=waiting.member_id,
                )
            )
        if is_rebalancing:
            self._classic.begin_rebalance(made, "the last member of the new protocol has left")
        logger.info(
            "group is a classic group now group=%s generation=%d members=%d",
            log_value(group.group_id),
            made.generation,
            len(made.members),
        )
        return True


def _ignore_outcome(code: ErrorCode) -> None:
    """Ignore the outcome: the caller is answered behind this write."""
