"""Changes specific to share groups: the partitions whose share state is kept.

Source: Kafka, GroupCoordinatorRecordHelpers.java.
"""

from broker.groups.modern.changes import ModernChanges
from broker.groups.share.kept_state import KeptState
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from protocol.internal import share_group_records as r


class ShareChanges(ModernChanges[ShareGroup, ShareGroupMember]):
    """A share group's changes and their records; see `ModernChanges`."""

    __slots__ = ()

    def set_kept(self, kept: KeptState) -> None:
        """Set the partitions whose share state is kept, or about to be."""
        self.group.update_kept(kept)
        self.records.append(
            (
                r.encode_share_group_key(
                    r.ShareGroupStatePartitionMetadataKey(self.group.group_id)
                ),
                r.encode_share_group_state_partition_metadata_value(kept.value()),
            )
        )
