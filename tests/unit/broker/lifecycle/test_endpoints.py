"""What clients are given to connect to."""

import logging
import os
import socket

import pytest

from broker.controller.images.cluster_image import BrokerEndpoint
from broker.lifecycle.endpoints import advertised_endpoints, look_up
from broker.network.connector import Resolved
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


def test_a_name_that_this_machine_does_not_know_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """When the answer comes; addresses are not looked up, and clients may know better."""
    asked: list[tuple[str, int, Resolved]] = []
    endpoints = {
        "PLAINTEXT": BrokerEndpoint("nowhere.example", 9092),
        "INSIDE": BrokerEndpoint("known.example", 9093),
        "FOUR": BrokerEndpoint("10.0.0.1", 9094),
        "SIX": BrokerEndpoint("fd00::1", 9095),
    }
    look_up(endpoints, lambda host, port, done: asked.append((host, port, done)))
    assert [(host, port) for host, port, _ in asked] == [
        ("nowhere.example", 9092),
        ("known.example", 9093),
    ]
    assert not caplog.records
    asked[0][2](socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    asked[1][2]([(socket.AF_INET, ("10.0.0.2", 9093))])
    ((_, level, text),) = caplog.record_tuples
    assert level == logging.WARNING
    assert "listener=PLAINTEXT host=nowhere.example error=[Errno -2] Name or" in text
