"""Requests between brokers: served where brokers call."""

import pytest

from broker.network.connection_info import ConnectionInfo
from broker.requests.inter_broker import (
    broker_client_id,
    check_inter_broker,
    is_inter_broker,
    is_of_member,
)
from broker.requests.request_context import RequestContext
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from config.listeners import Listener
from protocol.error_codes import ErrorCode
from tests.fakes.broker.controller import context_of

ONE = (Listener("PLAINTEXT", "h", 1),)
TWO = (Listener("CLIENTS", "h", 1), Listener("BROKERS", "h", 2))


def settings(listeners: tuple[Listener, ...], name: str | None = None) -> BrokerConfig:
    return BrokerConfig().replace(listeners=listeners, inter_broker_listener_name=name)


def test_a_shared_listener_serves_both() -> None:
    assert is_inter_broker(settings(ONE), context_of(56, 3, "PLAINTEXT"))


def test_a_listener_for_clients_does_not() -> None:
    """CLUSTER_AUTHORIZATION_FAILED."""
    own = settings(TWO, "BROKERS")
    assert is_inter_broker(own, context_of(56, 3, "BROKERS"))
    with pytest.raises(ApiError) as refused:
        check_inter_broker(own, context_of(56, 3, "CLIENTS"))
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("client_id", "listener", "is_member"),
    [
        ("broker-2", "BROKERS", True),
        ("broker-2", "CLIENTS", False),
        ("broker-3", "BROKERS", False),
        ("broker-", "BROKERS", False),
        ("broker-99999999999", "BROKERS", False),
        ("2", "BROKERS", False),
        (None, "BROKERS", False),
    ],
)
def test_a_member_calls_by_its_name_where_brokers_call(
    client_id: str | None, listener: str, is_member: bool
) -> None:
    """Broker 2 is the only other one."""
    context = RequestContext(0, 9, 7, client_id, ConnectionInfo(listener, "127.0.0.1"))
    own = settings(TWO, "BROKERS")
    assert is_of_member(own, context, {2: 7}.get) is is_member
    assert broker_client_id(2) == "broker-2"
