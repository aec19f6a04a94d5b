"""The endpoints that clients are given in Metadata (`advertised.listeners`)."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.controller.images.cluster_image import BrokerEndpoint

if TYPE_CHECKING:
    from config.broker import BrokerConfig


def advertised_endpoints(
    settings: "BrokerConfig", addresses: Iterable[tuple[str, str, int]]
) -> Mapping[str, BrokerEndpoint]:
    """Endpoints by listener name.

    Args:
        settings: `listeners` and `advertised.listeners`.
        addresses: (listener, host, port) as bound: bound ports stand in for port 0, and this
            machine's name for no host.
    """
    bound = {name: (host, port) for name, host, port in addresses}
    endpoints = {}
    for listener in settings.listeners_for_clients:
        if listener.name not in bound:
            continue
        host, port = listener.host, listener.port
        bound_host, bound_port = bound[listener.name]
        if not settings.advertised_listeners:
            host = bound_host
        endpoints[listener.name] = BrokerEndpoint(host or os.uname().nodename, port or bound_port)
    return endpoints
