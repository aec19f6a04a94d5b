from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiered.format.closed_segments import metadata
from tiered.format.object_keys import ObjectKeys, ObjectSuffix
from tiered.segment_metadata import RemoteLogSegmentId, TopicIdPartition

NAMES = st.text("abzAZ019._-", min_size=1, max_size=249)
PREFIXES = st.sampled_from(["", "p/", "varve/tier-1/", "no-slash"])


@given(
    prefix=PREFIXES,
    topic=NAMES,
    topic_id=st.uuids(),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    segment=st.uuids(),
)
def test_parse_gives_what_was_built(
    prefix: str, topic: str, topic_id: UUID, partition: int, offset: int, segment: UUID
) -> None:
    """Topics and identifiers may hold and begin with dashes, and still a name has one meaning."""
    keys = ObjectKeys(prefix)
    segment_id = RemoteLogSegmentId(TopicIdPartition(topic_id, topic, partition), segment)
    built = keys.keys_of(segment_id, offset)
    for key, suffix in zip(
        built, (ObjectSuffix.LOG, ObjectSuffix.INDEXES, ObjectSuffix.MANIFEST), strict=True
    ):
        assert keys.parse(key) == (segment_id, offset, suffix)
        assert key.startswith(keys.partition_prefix(segment_id.partition))
        assert key.startswith(keys.topic_prefix(topic, topic_id))


@given(st.text("ab-_./019log", max_size=120))
def test_parse_takes_any_text(text: str) -> None:
    """Other people's objects may lie in the bucket; what does parse is exactly what is built."""
    found = ObjectKeys().parse(text)
    assert found is None or text in ObjectKeys().keys_of(found.segment_id, found.start_offset)


def test_names_are_those_of_the_grammar() -> None:
    """The example of Aiven's own documentation."""
    keys = ObjectKeys("someprefix/")
    assert (
        keys.parse(
            "someprefix/topic-MWJ6FHTfRYy67jzwZdeqSQ/7/"
            "00000000000000001234-tqimKeZwStOEOwRzT3L5oQ.log"
        )
        is not None
    )
    told = metadata(start_offset=1234)
    assert keys.segment_keys(told).manifest.startswith("someprefix/orders.eu-west-")
    assert keys.segment_keys(told).manifest.endswith(".rsm-manifest")


@pytest.mark.parametrize(
    "change",
    [
        ("/3/", "/03/"),
        ("/3/", "/-3/"),
        ("/3/", "/2147483648/"),
        ("/00000000000000001234-", "/1234-"),
        ("/00000000000000001234-", "/99999999999999999999-"),
        (".log", ".LOG"),
        (".log", ".log.tmp"),
        (".log", ".log\n"),
        ("orders", "örders"),
        ("/3/", "/\u0663/"),
    ],
)
def test_other_names_are_nobodys(change: tuple[str, str]) -> None:
    """What is listed and not built by us must not be taken for ours: it might be deleted."""
    key = ObjectKeys().segment_keys(metadata(start_offset=1234)).log
    assert ObjectKeys().parse(key) is not None
    assert ObjectKeys().parse(key.replace(*change)) is None


def test_identifier_has_one_text() -> None:
    """Base64 of 16 bytes leaves four bits; another text of the same identifier is another key."""
    key = ObjectKeys().segment_keys(metadata()).log
    stem, last = key[: -len(".log")][:-1], key[: -len(".log")][-1]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = letters[letters.index(last) ^ 1]
    assert ObjectKeys().parse(f"{stem}{other}.log") is None


def test_prefix_of_a_partition_is_no_other_partitions() -> None:
    """Partition 1 is not a beginning of partition 12."""
    keys = ObjectKeys()
    one = TopicIdPartition(UUID(int=1), "t", 1)
    twelve = RemoteLogSegmentId(one._replace(partition=12), UUID(int=2))
    assert not keys.keys_of(twelve, 0).log.startswith(keys.partition_prefix(one))


def test_name_of_another_prefix_is_not_parsed() -> None:
    """Two clusters may share a bucket."""
    assert ObjectKeys("a/").parse("b/" + ObjectKeys().segment_keys(metadata()).log) is None


@given(prefix=PREFIXES, topic=NAMES, topic_id=st.uuids(), partition=st.integers(0, 2**31 - 1))
def test_a_history_has_one_name_and_is_no_segment(
    prefix: str, topic: str, topic_id: UUID, partition: int
) -> None:
    keys = ObjectKeys(prefix)
    whose = TopicIdPartition(topic_id, topic, partition)
    key = keys.history_key(whose)
    assert keys.parse_history(key) == whose
    assert keys.parse(key) is None
    last = keys.keys_of(RemoteLogSegmentId(whose, UUID(int=(1 << 128) - 1)), 2**63 - 1)
    assert max(last) < key


@given(st.text("ab-_./019log", max_size=120).map(lambda text: text + "/varve-history"))
def test_only_a_name_just_so_is_a_history(text: str) -> None:
    found = ObjectKeys().parse_history(text)
    assert found is None or ObjectKeys().history_key(found) == text


@pytest.mark.parametrize(
    "name",
    [
        "t-MWJ6FHTfRYy67jzwZdeqSQ/07/varve-history",
        "t-MWJ6FHTfRYy67jzwZdeqSQ/2147483648/varve-history",
        "t-MWJ6FHTfRYy67jzwZdeqSR/7/varve-history",
        "t-MWJ6FHTfRYy67jzwZdeqSQ/7/varve-history.1",
        "t-MWJ6FHTfRYy67jzwZdeqSQ/varve-history",
        "-MWJ6FHTfRYy67jzwZdeqSQ/7/varve-history",
    ],
)
def test_others_are_no_history(name: str) -> None:
    assert ObjectKeys().parse_history(name) is None
