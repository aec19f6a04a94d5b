"""Interface of the broker's parts for handlers of share groups."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.share.delivery.share_partitions import SharePartitions
    from broker.share.state.share_coordinator import ShareCoordinator


class ShareServices(Protocol):
    """The part of `broker.services.Services` that is about share groups."""

    @property
    def share(self) -> "SharePartitions":
        """Delivery."""
        ...

    @property
    def share_coordinator(self) -> "ShareCoordinator":
        """State."""
        ...
