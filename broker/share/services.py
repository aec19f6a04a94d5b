"""Interface of the broker's parts for handlers of share groups."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.share.delivery.share_partitions import SharePartitions
    from broker.share.state.share_coordinator import ShareCoordinator
    from config.broker import BrokerConfig


class ShareServices(Protocol):
    """The part of `broker.services.Services` that is about share groups."""

    @property
    def settings(self) -> "BrokerConfig":
        """The broker's settings."""
        ...

    @property
    def share(self) -> "SharePartitions":
        """Delivery."""
        ...

    @property
    def share_coordinator(self) -> "ShareCoordinator":
        """State."""
        ...
