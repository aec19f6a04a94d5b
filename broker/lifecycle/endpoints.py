"""The endpoints that clients are given in Metadata (`advertised.listeners`)."""

import ipaddress
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.controller.images.cluster_image import BrokerEndpoint

if TYPE_CHECKING:
    from broker.network.connector import Address, Resolver
    from config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)


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


def look_up(endpoints: Mapping[str, BrokerEndpoint], resolve: "Resolver") -> None:
    """Warn of names that this machine cannot look up; returns at once.

    Clients may well know them, whose name server is another. But a name that nobody knows lets
    clients connect, and fails them afterwards, where they go by Metadata.
    """
    for listener, endpoint in endpoints.items():
        if not _is_address(endpoint.host):
            resolve(endpoint.host, endpoint.port, _warning(listener, endpoint.host))


def _warning(listener: str, host: str) -> "Callable[[Sequence[Address] | OSError], None]":
    def looked_up(found: "Sequence[Address] | OSError") -> None:
        if isinstance(found, OSError):
            LOGGER.warning(
                "host name is not known on this machine: clients are sent to it and have to know "
                "it, see advertised.listeners listener=%s host=%s error=%s",
                listener,
                host,
                found,
            )

    return looked_up


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
