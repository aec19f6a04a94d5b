"""Which partition a group lives in, as Kafka computes it."""

import pytest

from broker.coordinator.partitioner import (
    REMEMBERED_LENGTH_MAX,
    java_string_hash,
    partition_for_group,
    remembered_hash,
)

# Printed by Java: "...".hashCode().
JAVA_HASHES = {
    "": 0,
    "a": 97,
    "my-group": -1_906_497_762,
    "polygenelubricants": -2_147_483_648,
}


@pytest.mark.parametrize("text", JAVA_HASHES)
def test_hash_is_javas(text: str) -> None:
    assert java_string_hash(text) == JAVA_HASHES[text]


def test_smallest_hash_has_no_absolute_value() -> None:
    """Kafka's abs makes it 0."""
    assert partition_for_group("polygenelubricants", 50) == 0


def test_negative_hashes_count_by_their_absolute_value() -> None:
    assert partition_for_group("my-group", 50) == 1_906_497_762 % 50


def test_characters_outside_the_basic_plane_are_two_units() -> None:
    assert java_string_hash("😀") == 0xD83D * 31 + 0xDE00


def test_long_names_are_not_remembered() -> None:
    """Each is somebody else's 32 kB; the short ones are few bytes, and asked for again."""
    remembered_hash.cache_clear()
    long = "x" * (REMEMBERED_LENGTH_MAX + 1)
    assert java_string_hash(long) == java_string_hash(long)
    assert remembered_hash.cache_info().currsize == 0
    assert java_string_hash("group") == 98629247
    assert remembered_hash.cache_info().currsize == 1
