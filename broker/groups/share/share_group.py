"""A share group (KIP-932): members work on partitions together.

    Empty    no members
    Stable   members; each has its target as of its last heartbeat

The group epoch grows also when the partitions change whose share state is kept.

Source: Kafka, ShareGroup.java.
"""

from typing import Final
from uuid import UUID

from typing_extensions import override

from broker.controller.images.cluster_image import ClusterImage
from broker.coordinator.outcome import Done
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.modern_group import ModernGroup, ModernGroupWork
from broker.groups.share.kept_state import KeptState
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.records import SHARE_GROUP_RECORDS, ShareGroupRecords
from broker.groups.state.group import GroupType
from broker.runtime.deadline import Deadline
from protocol.error_codes import ErrorCode
from protocol.internal import share_group_records as layouts

PROTOCOL_TYPE: Final = "share"


class ShareGroupWork(ModernGroupWork):
    """Transient state of a share group, which is not in the log.

    Attributes:
        waiting_for_target: Called when the target is computed, or with the error.
        is_altered: Its offsets are being changed, or it is being deleted: no member may join.
    """

    __slots__ = ("is_altered", "waiting_for_target")

    def __init__(self) -> None:
        super().__init__()
        self.is_altered = False
        self.waiting_for_target: list[Done] = []


class ShareGroup(ModernGroup[ShareGroupMember]):
    """A modern group whose partitions may be assigned to several members each.

    Attributes:
        kept: Partitions whose share state is kept, or about to be.
        may_lack_partitions: Some initialized partition may be in no member's target.
        sessions: By member id.
    """

    __slots__ = ("kept", "may_lack_partitions", "sessions")

    work: ShareGroupWork

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, ShareGroupWork())
        self.type = GroupType.SHARE
        self.kept = KeptState()
        self.may_lack_partitions = True
        self.sessions: dict[str, Deadline] = {}

    @property
    @override
    def records(self) -> ShareGroupRecords:
        return SHARE_GROUP_RECORDS

    # -- properties --

    @property
    @override
    def state_name(self) -> str:
        """The state as ListGroups spells it."""
        if self.is_dead:
            return "Dead"
        return "Stable" if self.members else "Empty"

    @property
    @override
    def protocol_type(self) -> str:
        """The protocol type, `share`."""
        return PROTOCOL_TYPE

    @override
    def _stop_timers(self) -> None:
        for session in self.sessions.values():
            session.cancel()
        self.sessions.clear()

    @override
    def _stop_member_timers(self, member_id: str) -> None:
        session = self.sessions.pop(member_id, None)
        if session is not None:
            session.cancel()

    # -- partitions --

    def lacks_partitions(self, image: ClusterImage) -> bool:
        """Whether initialized partitions of subscribed topics differ from those of the target.

        They are initialized between heartbeats: the next one has to check.
        """
        if not self.may_lack_partitions or not self.members:
            return False
        assigned: dict[UUID, frozenset[int]] = {}
        for assignment in self.target.values():
            for topic_id, partitions in assignment.items():
                assigned[topic_id] = assigned.get(topic_id, frozenset()).union(partitions)
        for topic_id, topic in self.kept.initialized.items():
            if (
                topic.name in self.name_counts
                and topic_id in image.topics_by_id
                and topic.partitions != assigned.get(topic_id, frozenset())
            ):
                return True
        self.may_lack_partitions = False
        return False

    # -- changes, one for each kind of record --

    @override
    def _member_changed(self, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        if (
            old is None
            or new is None
            or old.subscribed_topic_names is not new.subscribed_topic_names
        ):
            self.may_lack_partitions = True

    @override
    def update_target(self, member_id: str, assignment: Assignment) -> None:
        """Set a member's target."""
        super().update_target(member_id, assignment)
        self.may_lack_partitions = True

    def update_kept(self, kept: KeptState) -> None:
        """Set the partitions whose share state is kept."""
        self.kept = kept
        self.may_lack_partitions = True

    # -- offsets: it has none, they are share state --

    @override
    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> ErrorCode:
        """Refuse every commit."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    @override
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Refuse every fetch, as for a group that does not exist."""
        return ErrorCode.NONE

    @override
    def offset_expiry_base(self) -> int | None:
        """None: share state has no retention."""
        return None

    @override
    def member_sessions(self) -> list[Deadline]:
        """One for each member."""
        return list(self.sessions.values())

    @override
    def _further_keys(self) -> list[bytes]:
        key = layouts.ShareGroupStatePartitionMetadataKey(self.group_id)
        return [layouts.encode_share_group_key(key)]
