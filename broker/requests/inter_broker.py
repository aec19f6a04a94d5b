"""Which requests are between brokers, and on which listener they may come.

Requests that only brokers send (AlterPartition, Envelope, a follower's Fetch ...) are served on the
inter-broker listener. Where that is a listener of its own, clients do not reach them: elsewhere
they get CLUSTER_AUTHORIZATION_FAILED. Where clients and brokers share a listener there is nothing
to tell them apart by, until there is authentication.
"""

from typing import TYPE_CHECKING

from broker.peers.endpoint import listener_of_brokers
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from config.broker import BrokerConfig


def is_inter_broker(settings: "BrokerConfig", context: "RequestContext") -> bool:
    """Whether a request has come in where brokers call."""
    listeners = {listener.name: listener for listener in settings.listeners_for_clients}
    name = listener_of_brokers(listeners, settings.inter_broker_listener_name)
    return context.connection.listener_name == name


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
