"""Subscriptions of consumers."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.consumer_subscription import subscribed_topics


def test_topics_are_read_from_every_version() -> None:
    """All versions begin alike; what follows the topics is not looked at."""
    for version in range(4):
        head = version.to_bytes(2, "big") + b"\0\0\0\2" + b"\0\1a" + b"\0\2bc"
        assert subscribed_topics(head + b"\xff\xff\xff\xff more") == ["a", "bc"]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\0\0\0\0\0",
        b"\xff\xff\0\0\0\0",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1\0",
        b"\0\0\0\0\0\1\0\5ab",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
)
def test_damage_is_named(damaged: bytes) -> None:
    """A lie about counts and lengths is a DecodeError."""
    with pytest.raises(DecodeError):
        subscribed_topics(damaged)


@given(st.binary(max_size=60))
def test_any_bytes_give_topics_or_a_decode_error(data: bytes) -> None:
    """Nothing else is raised."""
    with contextlib.suppress(DecodeError):
        subscribed_topics(data)
