"""Which requests are between brokers, and on which listener they may come.

Requests that only brokers send (AlterPartition, Envelope, a follower's Fetch ...) are served on the
inter-broker listener. Where that is a listener of its own, clients do not reach them: elsewhere
they get CLUSTER_AUTHORIZATION_FAILED. Where clients and brokers share a listener there is nothing
to tell them apart by, until there is authentication.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.peers.endpoint import listener_of_brokers
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services
    from config.broker import BrokerConfig

EpochOf = Callable[[int], int | None]

BROKER_CLIENT_PREFIX: Final = "broker-"

_MEMBER: Final = re.compile(
    BROKER_CLIENT_PREFIX + r"(?P<node>[0-9]{1,10})-(?P<epoch>[0-9]{1,19})", re.ASCII
)


def inter_broker_listener(settings: "BrokerConfig") -> str | None:
    """The listener of this broker that others call; the same as long as it runs."""
    listeners = {listener.name: listener for listener in settings.listeners_for_clients}
    return listener_of_brokers(listeners, settings.inter_broker_listener_name)


def is_inter_broker(settings: "BrokerConfig", context: "RequestContext") -> bool:
    """Whether a request has come in where brokers call."""
    return context.connection.listener_name == inter_broker_listener(settings)


def broker_client_id(node_id: int) -> str:
    """The client id of a broker's requests to its peers."""
    return f"{BROKER_CLIENT_PREFIX}{node_id}"


def member_client_id(node_id: int, broker_epoch: int) -> str:
    """The client id of a broker's requests that only members of the cluster may send.

    It names the broker's life, so that no client has it by accident, nor a broker that is no longer
    registered. It is no secret: it excludes mistakes, not malice.
    """
    return f"{broker_client_id(node_id)}-{broker_epoch}"


def is_of_member(
    settings: "BrokerConfig", context: "RequestContext", member_epoch: EpochOf
) -> bool:
    """Whether a request names itself by `member_client_id`, as a broker that takes part now.

    Args:
        settings: Of this broker.
        context: Of the request.
        member_epoch: Broker epoch of another node; None: there is none, or it is fenced.
    """
    if context.client_id is None or not is_inter_broker(settings, context):
        return False
    found = _MEMBER.fullmatch(context.client_id)
    return found is not None and member_epoch(int(found["node"])) == int(found["epoch"])


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


def for_brokers_only(handle: Callable[..., Any]) -> Callable[..., Any]:
    """A handler behind `check_inter_broker`: of every API whose module says FOR_BROKERS_ONLY."""

    def checked(services: "Services", context: "RequestContext", request: object) -> Any:
        check_inter_broker(services.settings, context)
        return handle(services, context, request)

    return checked
