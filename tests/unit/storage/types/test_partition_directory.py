"""Names of partition directories."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.types.partition_directory import DirectoryState, marked_name, parse_directory
from storage.types.topic_partition import TopicPartition

ID = UUID("1b1a27d0-c1f8-4a52-a9df-b5a2a0f9a1b4")
TOPICS = st.text("abc019._-", min_size=1, max_size=249)


@pytest.mark.parametrize(
    ("name", "topic", "partition", "state"),
    [
        ("events-3", "events", 3, DirectoryState.CURRENT),
        ("a-b.c-0", "a-b.c", 0, DirectoryState.CURRENT),
        ("a-1-2", "a-1", 2, DirectoryState.CURRENT),
        ("x-delete-0", "x-delete", 0, DirectoryState.CURRENT),
        ("events-3.1b1a27d0c1f84a52a9dfb5a2a0f9a1b4-delete", "events", 3, DirectoryState.DELETE),
        ("a.b-3.1b1a27d0c1f84a52a9dfb5a2a0f9a1b4-stray", "a.b", 3, DirectoryState.STRAY),
        ("a-0.x-future", "a", 0, DirectoryState.FUTURE),
    ],
)
def test_names(name: str, topic: str, partition: int, state: DirectoryState) -> None:
    """As Kafka makes them."""
    parsed = parse_directory(name)
    assert parsed is not None
    assert parsed == (name, TopicPartition(topic, partition), state)


@pytest.mark.parametrize(
    "name",
    ["", "events", "-0", "a-", "a-x", "a--", "a-٣", "a-00000000000", "lost+found", "a-0.x-gone"],
)
def test_other_names(name: str) -> None:
    """Not ours to touch."""
    assert parse_directory(name) is None


@given(TOPICS, st.integers(0, 2**31 - 1), st.sampled_from(list(DirectoryState)[1:]))
def test_marked_names_fit_and_parse(topic: str, partition: int, state: DirectoryState) -> None:
    """At most 255 bytes, and recognised at the next start."""
    name = marked_name(TopicPartition(topic, partition), state, ID)
    assert len(name) <= 255
    parsed = parse_directory(name)
    assert parsed is not None
    assert parsed.state is state
    assert topic.startswith(parsed.topic_partition.topic)
    assert parsed.topic_partition.partition == partition
