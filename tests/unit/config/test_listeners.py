"""Addresses are read and written in one form."""

import pytest

from config.listeners import Endpoint, Listener, parse_endpoint, parse_listener


def test_names_are_upper_case() -> None:
    """Kafka normalises listener names, so `external` and `EXTERNAL` are one."""
    assert parse_listener("external://h:1") == Listener("EXTERNAL", "h", 1)


def test_ipv6_hosts_stand_in_brackets_only_in_text() -> None:
    """The socket layer gets the bare address."""
    assert parse_listener("A://[::1]:9092").host == "::1"
    assert str(Listener("A", "::1", 9092)) == "A://[::1]:9092"
    assert str(Endpoint("::1", 1)) == "[::1]:1"


@pytest.mark.parametrize(
    "text", ["h:1", "A:/h:1", "A://h", "A://h:70000", "A://h/x:1", "A B://h:1"]
)
def test_what_is_no_listener_is_refused(text: str) -> None:
    """The message repeats the text."""
    with pytest.raises(ValueError, match=r"is not NAME://host:port|is above 65535"):
        parse_listener(text)


def test_an_endpoint_may_have_no_host() -> None:
    """It is every interface then."""
    assert parse_endpoint(":9644") == Endpoint("", 9644)
