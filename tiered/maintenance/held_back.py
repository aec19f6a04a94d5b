"""Partitions that are held back: their remote metadata is lost, and an operator has to act first.

A partition that is held back stays as it is: no task of it begins, its remote reads wait, and
nothing in the bucket is touched. What counts as lost: `tiered.maintenance.lost_metadata`.
"""

import logging
from typing import Final

from storage.environment.alerts import AlertKind, Alerts
from storage.log.log import Log
from tiered.maintenance.lost_metadata import HOW_TO_GO_ON, head_in_doubt, learn_epochs
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import TopicIdPartition

_log = logging.getLogger(__name__)

METADATA_TOPIC: Final = "__remote_log_metadata"


class HeldBackPartitions:
    """See the module. Touched on the loop's thread only.

    Attributes:
        reasons: Why each is held back.
    """

    __slots__ = ("_accepted", "_alerts", "_metadata", "reasons")

    def __init__(self, metadata: RemoteLogMetadataManager, alerts: Alerts) -> None:
        """None so far; each one has an alert."""
        self._metadata = metadata
        self._alerts = alerts
        # Those that begin where they have records, as an operator wants it.
        self._accepted: set[TopicIdPartition] = set()
        self.reasons: dict[TopicIdPartition, str] = {}

    def doubt(self, partition: TopicIdPartition, log: Log) -> str:
        """Why a leader may not begin; empty: it may. The log learns the epochs that it lacks.

        Raises:
            TieredError, StorageError: To be tried again.
        """
        if learn_epochs(self._metadata, partition, log):
            _log.warning(
                "%s: leader epochs restored from remote segments: %s",
                partition,
                log.leader_epochs.entries(),
            )
        if partition in self._accepted:
            return ""
        lost = self._metadata.lost(partition)
        if partition in self.reasons:
            lost = lost or "a part of __remote_log_metadata was lost"
        return head_in_doubt(self._metadata, partition, log, lost=lost)

    def hold(self, partition: TopicIdPartition, doubt: str) -> None:
        """Hold a partition back."""
        self.reasons[partition] = doubt
        self._metadata.withhold(partition, doubt)
        self._alerts.set(AlertKind.TIER_METADATA_LOST, str(partition), doubt)

    def admit(self, partition: TopicIdPartition) -> None:
        """Hold a partition back no longer, if it was."""
        self._accepted.discard(partition)
        if self.reasons.pop(partition, None) is not None:
            self._metadata.withhold(partition, "")
            self._alerts.clear(AlertKind.TIER_METADATA_LOST, str(partition))

    def accept_losses(self) -> None:
        """Have what is held back begin where it has records, when it is checked again."""
        self._accepted.update(self.reasons)

    def report_losses(self) -> None:
        """Set or clear the alert on the metadata topic."""
        losses = self._metadata.losses()
        if losses:
            text = f"{'; '.join(losses)}. No garbage is collected; {HOW_TO_GO_ON}"
            self._alerts.set(AlertKind.TIER_METADATA_LOST, METADATA_TOPIC, text)
        else:
            self._alerts.clear(AlertKind.TIER_METADATA_LOST, METADATA_TOPIC)
