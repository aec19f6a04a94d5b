"""Subscriptions and assignments of classic consumers; a released client agrees about the bytes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cli.admin.kafka_library  # noqa: F401 because it keeps the client library's warnings away
from protocol.errors import DecodeError
from protocol.internal.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    message_version,
)
from tests.harness.subscriptions import encode_subscription

TOPICS = ("t", "uu")
OWNED = {"t": (0, 2), "uu": (1,)}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, ConsumerSubscription(0, TOPICS, b"x")),
        (1, ConsumerSubscription(1, TOPICS, b"x", OWNED)),
        (2, ConsumerSubscription(2, TOPICS, b"x", OWNED, 7)),
        (3, ConsumerSubscription(3, TOPICS, b"x", OWNED, 7, "r")),
    ],
)
def test_subscriptions_of_a_released_client(version: int, expected: ConsumerSubscription) -> None:
    """kafka-python writes what we read, and reads what we write."""
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    fields = {
        "topics": list(TOPICS),
        "user_data": b"x",
        "owned_partitions": [("t", [0, 2]), ("uu", [1])],
        "generation_id": 7,
        "rack_id": "r",
    }
    names = list(fields)[: 2 + version]
    theirs = ConsumerProtocolSubscription(version=version, **{name: fields[name] for name in names})
    data = bytes(theirs.encode())
    assert decode_subscription(data) == expected
    assert encode_subscription(expected) == data
    assert message_version(data) == version


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_assignments_of_a_released_client(version: int) -> None:
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

    assignment = ConsumerAssignment(OWNED, b"x")
    data = encode_assignment(assignment, version)
    theirs = ConsumerProtocolAssignment.decode(data)
    assert {p.topic: tuple(p.partitions) for p in theirs.assigned_partitions} == OWNED
    assert theirs.user_data == b"x"
    assert decode_assignment(data) == assignment


def test_no_bytes_are_no_partitions() -> None:
    """So does a leader leave out members."""
    assert decode_assignment(b"") == ConsumerAssignment({})


def test_newer_versions_are_read_as_the_last_one_known() -> None:
    data = b"\0\x09" + encode_subscription(ConsumerSubscription(3, ("t",)))[2:] + b"more"
    assert decode_subscription(data) == ConsumerSubscription(3, ("t",))
    assert message_version(data) == 3


@pytest.mark.parametrize(
    "damaged",
    [
        b"\xff\xff\0\0\0\0\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff\xff\xff\xff\xff",
    ],
)
def test_damage_is_named(damaged: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with pytest.raises(DecodeError):
            decode(damaged)


@given(st.binary(max_size=60))
def test_noise_is_read_or_refused(data: bytes) -> None:
    """And never costs more than its own size."""
    for decode in (decode_subscription, decode_assignment):
        with contextlib.suppress(DecodeError):
            decode(data)
