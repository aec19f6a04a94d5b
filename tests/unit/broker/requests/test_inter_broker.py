"""Requests between brokers: served where brokers call."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from broker.handlers import alter_partition, assign_replicas_to_dirs, envelope
from broker.network.connection_info import ConnectionInfo
from broker.requests.inter_broker import (
    broker_client_id,
    check_inter_broker,
    is_inter_broker,
    is_of_member,
    member_client_id,
)
from broker.requests.kafka_apis import Api
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


@pytest.mark.parametrize("module", [alter_partition, assign_replicas_to_dirs, envelope])
def test_an_api_for_brokers_refuses_clients(module: ModuleType) -> None:
    """The router asks for every module that says FOR_BROKERS_ONLY, and does not advertise it."""
    services: Any = SimpleNamespace(settings=settings(TWO, "BROKERS"))
    api = Api(module)
    assert api.handle is not None
    assert not api.is_advertised
    with pytest.raises(ApiError) as refused:
        api.handle(services, context_of(int(api.key), api.max_version, "CLIENTS"), object())
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("client_id", "listener", "is_member"),
    [
        ("broker-2-7", "BROKERS", True),
        ("broker-2-7", "CLIENTS", False),
        ("broker-2", "BROKERS", False),
        ("broker-2-", "BROKERS", False),
        ("broker-2-6", "BROKERS", False),
        ("broker-2-8", "BROKERS", False),
        ("broker-2--7", "BROKERS", False),
        ("broker-2-7 ", "BROKERS", False),
        ("broker-3-7", "BROKERS", False),
        ("broker-", "BROKERS", False),
        ("broker-99999999999-7", "BROKERS", False),
        ("2-7", "BROKERS", False),
        (None, "BROKERS", False),
    ],
)
def test_a_member_calls_by_its_name_and_epoch_where_brokers_call(
    client_id: str | None, listener: str, is_member: bool
) -> None:
    """Broker 2 in epoch 7 is the only other one; what another life of it sends is refused."""
    context = RequestContext(0, 9, 7, client_id, ConnectionInfo(listener, "127.0.0.1"))
    own = settings(TWO, "BROKERS")
    assert is_of_member(own, context, {2: 7}.get) is is_member
    assert broker_client_id(2) == "broker-2"
    assert member_client_id(2, 7) == "broker-2-7"
