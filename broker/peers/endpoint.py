"""The inter-broker endpoint of a peer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

DEFAULT_LISTENER: Final = "PLAINTEXT"
"""The listener of brokers when `inter.broker.listener.name` is unset, as in Kafka, where it is the
one of `security.inter.broker.protocol`; where no listener has this name it is the first one."""


class AdvertisedEndpoint(Protocol):
    """Host and port of a listener, as `broker.controller.images.cluster_image` has them."""

    @property
    def host(self) -> str:
        """Name or address."""
        ...

    @property
    def port(self) -> int:
        """TCP port."""
        ...


class KnownBroker(Protocol):
    """A broker of the image, as far as connections need it."""

    @property
    def node_id(self) -> int:
        """Its `node.id`."""
        ...

    @property
    def listeners(self) -> Mapping[str, AdvertisedEndpoint]:
        """Listener name to what is advertised there."""
        ...

    @property
    def epoch(self) -> int:
        """Broker epoch."""
        ...


@dataclass(frozen=True, slots=True)
class PeerEndpoint:
    """Where one life of a broker's process is reached."""

    host: str
    port: int
    epoch: int


def listener_of_brokers(listeners: Mapping[str, object], name: str | None) -> str | None:
    """The listener that brokers call; None when a broker has none of that name.

    Args:
        listeners: Those of the broker.
        name: `inter.broker.listener.name`.
    """
    if name is not None:
        return name if name in listeners else None
    return DEFAULT_LISTENER if DEFAULT_LISTENER in listeners else next(iter(listeners), None)


def endpoint_of(broker: KnownBroker, name: str | None) -> PeerEndpoint | None:
    """Where brokers reach a broker; None when it has no listener of that name."""
    listener = listener_of_brokers(broker.listeners, name)
    if listener is None:
        return None
    advertised = broker.listeners[listener]
    return PeerEndpoint(advertised.host, advertised.port, broker.epoch)
