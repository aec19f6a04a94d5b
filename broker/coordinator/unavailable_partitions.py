"""Unavailable partitions of a coordinator's topic: they cannot be read, and have no coordinator.

    elected ──> loading ──> active
      ^            └──the log is damaged or cannot be read──> unavailable
      ├──── read again, after a while: not what is damaged ───┘
      └──── served again ──── unavailable <──its log is not served: directory offline, not opened

Served empty, such a partition would lose its state. So its clients get NOT_COORDINATOR, and
FindCoordinator goes on returning this node, as there is no other: they retry for ever. An alert and
a metric report it to the operator.
"""

from typing import Final

from storage.environment.alerts import AlertKind, Alerts

_WHAT_TO_DO: Final = (
    "its clients get NOT_COORDINATOR until the log can be read; repair the disk or restore "
    "the log, and restart"
)


class UnavailablePartitions:
    """The unavailable partitions of one topic.

    Attributes:
        reasons: By partition; at most as many as the topic has.
    """

    __slots__ = ("_alerts", "_topic", "reasons")

    def __init__(self, topic: str, alerts: Alerts | None) -> None:
        self._topic = topic
        self._alerts = alerts or Alerts()
        self.reasons: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.reasons)

    def set(self, partition_index: int, reason: str) -> None:
        """Report the partition as unavailable."""
        self.reasons[partition_index] = reason
        self._alerts.set(
            AlertKind.COORDINATOR_UNAVAILABLE,
            f"{self._topic}-{partition_index}",
            f"{reason}; {_WHAT_TO_DO}",
        )

    def clear(self, partition_index: int) -> None:
        """Remove a partition: its state was loaded, or it was deleted."""
        if self.reasons.pop(partition_index, None) is not None:
            self._alerts.clear(
                AlertKind.COORDINATOR_UNAVAILABLE, f"{self._topic}-{partition_index}"
            )

    def clear_all(self) -> None:
        """Remove all partitions: the topic was deleted."""
        for partition_index in list(self.reasons):
            self.clear(partition_index)
