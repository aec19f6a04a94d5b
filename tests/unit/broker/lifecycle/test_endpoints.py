"""What clients are given to connect to."""

import os

from broker.controller.images.cluster_image import BrokerEndpoint
from broker.lifecycle.endpoints import advertised_endpoints
from config.broker import BrokerConfig
from config.listeners import parse_listener


def settings_of(*listeners: str, advertised: tuple[str, ...] = ()) -> BrokerConfig:
    return BrokerConfig().replace(
        listeners=tuple(map(parse_listener, listeners)),
        advertised_listeners=tuple(map(parse_listener, advertised)),
    )


def test_a_bound_port_stands_in_for_port_0() -> None:
    settings = settings_of("PLAINTEXT://10.0.0.1:0")
    found = advertised_endpoints(settings, [("PLAINTEXT", "10.0.0.1", 41_000)])
    assert found == {"PLAINTEXT": BrokerEndpoint("10.0.0.1", 41_000)}


def test_this_machine_stands_in_for_every_interface() -> None:
    settings = settings_of("PLAINTEXT://:9092")
    found = advertised_endpoints(settings, [("PLAINTEXT", "", 9092)])
    assert found == {"PLAINTEXT": BrokerEndpoint(os.uname().nodename, 9092)}


def test_advertised_listeners_hide_bound_addresses() -> None:
    """Behind a proxy, or in a container."""
    settings = settings_of("PLAINTEXT://:9092", advertised=("PLAINTEXT://kafka.example:19092",))
    found = advertised_endpoints(settings, [("PLAINTEXT", "", 9092)])
    assert found == {"PLAINTEXT": BrokerEndpoint("kafka.example", 19_092)}


def test_a_listener_that_is_not_bound_is_not_advertised() -> None:
    """Its address was taken when listeners were changed at run time."""
    settings = settings_of("PLAINTEXT://10.0.0.1:9092", "INTERNAL://10.0.0.1:9093")
    found = advertised_endpoints(settings, [("PLAINTEXT", "10.0.0.1", 9092)])
    assert list(found) == ["PLAINTEXT"]
