"""Requests between brokers: served where brokers call."""

import pytest

from broker.requests.inter_broker import check_inter_broker, is_inter_broker
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
