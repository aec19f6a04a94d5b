"""Which requests are between brokers, and on which listener they may come.

Requests that only brokers send (AlterPartition, Envelope, a follower's Fetch ...) are served on the
inter-broker listener. Where that is a listener of its own, clients do not reach them: elsewhere
they get CLUSTER_AUTHORIZATION_FAILED. Where clients and brokers share a listener there is nothing
to tell them apart by, until there is authentication.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.peers.endpoint import listener_of_brokers
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from config.broker import BrokerConfig

EpochOf = Callable[[int], int | None]

BROKER_CLIENT_PREFIX: Final = "broker-"


def is_inter_broker(settings: "BrokerConfig", context: "RequestContext") -> bool:
    """Whether a request has come in where brokers call."""
    listeners = {listener.name: listener for listener in settings.listeners_for_clients}
    name = listener_of_brokers(listeners, settings.inter_broker_listener_name)
    return context.connection.listener_name == name


def broker_client_id(node_id: int) -> str:
    """The client id of a broker's requests to its peers."""
    return f"{BROKER_CLIENT_PREFIX}{node_id}"


def is_of_member(
    settings: "BrokerConfig", context: "RequestContext", registered_epoch: EpochOf
) -> bool:
    """Whether a request says that it is another broker's of this cluster, and may be.

    Args:
        settings: Of this broker.
        context: Of the request.
        registered_epoch: Broker epoch of another node; None: there is no such broker.
    """
    client_id = context.client_id or ""
    number = client_id.removeprefix(BROKER_CLIENT_PREFIX)
    if number == client_id or not (number.isascii() and number.isdecimal()) or len(number) > 10:
        return False
    return registered_epoch(int(number)) is not None and is_inter_broker(settings, context)


def check_inter_broker(settings: "BrokerConfig", context: "RequestContext") -> None:
    """Refuse a request that only brokers send, on a listener for clients.

    Raises:
        ApiError: CLUSTER_AUTHORIZATION_FAILED.
    """
    if not is_inter_broker(settings, context):
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"listener {context.connection.listener_name} does not serve requests of brokers",
        )
