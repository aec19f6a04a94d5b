"""Addresses, pairs and lists of them are read and written; and what every kind must do."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.compound_kinds import (
    CountByHost,
    HostPort,
    Listeners,
    ProtocolMap,
    ThrottledReplicas,
)
from config.kinds import Boolean, Choice, Double, Integer, Kind, Text, WireType, WordList
from config.listeners import Endpoint, Listener


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("h:1", "h", 1),
        (":0", "", 0),
        ("[::1]:9092", "::1", 9092),
        ("10.0.0.1:65535", "10.0.0.1", 65535),
    ],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int) -> None:
    """IPv6 stands in brackets, as everywhere."""
    assert HostPort().parse("k", text) == Endpoint(host, port)
    assert HostPort().format(Endpoint(host, port)) == text


@pytest.mark.parametrize("text", ["h", "h:", "h:65536", "::1:9092", "h:1:2", "h h:1", "http://h:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """A port above 65535 included."""
    with pytest.raises(ValueError, match="Invalid value"):
        HostPort().parse("k", text)


def test_listeners_have_different_names() -> None:
    """The name is what advertised.listeners and the protocol map refer to."""
    with pytest.raises(ValueError, match="different name"):
        Listeners().parse("listeners", "A://:1,a://:2")
    assert Listeners().parse("listeners", " a://h:1 , B://[::]:2") == (
        Listener("A", "h", 1),
        Listener("B", "::", 2),
    )


def test_maps_refuse_pairs_that_are_none() -> None:
    """And name the pair."""
    with pytest.raises(ValueError, match="`A` is not NAME:PROTOCOL"):
        ProtocolMap().parse("k", "B:SSL,A")
    with pytest.raises(ValueError, match="`A:TLS` is not NAME:PROTOCOL"):
        ProtocolMap().parse("k", "A:TLS")
    with pytest.raises(ValueError, match="`h:-1` is not host:count"):
        CountByHost().parse("k", "h:-1")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Boolean(), "true"),
        (Choice(("a", "b")), "b"),
        (WordList(), "b,a"),
        (WordList(("a", "b")), "b,a"),
        (WordList(), ""),
        (ThrottledReplicas(), "*"),
        (ThrottledReplicas(), "0:1,1:2"),
        (Listeners(), "A://h:1,B://[::1]:2"),
        (ProtocolMap(), "A:PLAINTEXT,B:SSL"),
        (CountByHost(), "10.0.0.1:5,[::1]:0"),
        (Text(), "some text"),
    ],
)
def test_every_kind_writes_what_it_read(kind: Kind, text: str) -> None:
    """DescribeConfigs gives back what AlterConfigs took."""
    assert kind.format(kind.parse("k", text)) == text
    assert kind.description
    assert kind.wire_type in WireType


@pytest.mark.parametrize(
    "kind",
    [
        Integer(minimum=0),
        Double(),
        Boolean(),
        Choice(("a",)),
        WordList(("a",)),
        ThrottledReplicas(),
        Listeners(),
        HostPort(),
        ProtocolMap(),
        CountByHost(),
    ],
    ids=lambda kind: type(kind).__name__,
)
@given(text=st.text())
def test_no_text_makes_anything_but_a_value_or_a_refusal(kind: Kind, text: str) -> None:
    """Texts come from strangers: AlterConfigs is open to every client."""
    parse: Callable[[str, str], object] = kind.parse
    refusal = ""
    try:
        value = parse("some.key", text)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert "some.key" in refusal
    else:
        assert parse("some.key", kind.format(value)) == value
