"""Offsets as Spark's Kafka source writes them."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.source.options.offsets import (
    OffsetDict,
    format_offsets,
    offset_dict,
    offsets_of,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
    topic_ids_of,
)
from storage.types.topic_partition import TopicPartition

PARTITIONS = st.builds(
    TopicPartition, st.text(min_size=1, max_size=8), st.integers(0, (1 << 31) - 1)
)


def test_text_is_that_of_the_kafka_source() -> None:
    """No spaces; topics and partitions in order, 10 after 9."""
    offsets = {
        TopicPartition("b", 0): 7,
        TopicPartition("a", 10): 3,
        TopicPartition("a", 9): 1 << 40,
    }
    assert format_offsets(offsets) == '{"a":{"9":1099511627776,"10":3},"b":{"0":7}}'


@given(st.dictionaries(PARTITIONS, st.integers(-2, (1 << 63) - 1), min_size=1))
def test_what_is_written_is_read(offsets: dict[TopicPartition, int]) -> None:
    assert parse_offsets(format_offsets(offsets)) == offsets
    assert offsets_of(json.loads(json.dumps(offset_dict(offsets)))) == offsets


def test_a_checkpoint_has_the_topics_ids_as_topics_without_partitions() -> None:
    """The Kafka source maps over the partitions of each topic, and so passes them over."""
    offsets = {TopicPartition("a", 0): 7, TopicPartition("b.c", 1): 3}
    written = offset_dict(offsets, {"a": UUID(int=1), "gone": UUID(int=2)})
    assert written == {"a": {"0": 7}, "b.c": {"1": 3}, "a@AAAAAAAAAAAAAAAAAAAAAQ": {}}
    assert offsets_of(written) == offsets
    assert topic_ids_of(written) == {"a": UUID(int=1)}
    # What is copied from a query's progress is an option.
    assert parse_offsets(json.dumps(written)) == offsets
    strange: list[OffsetDict] = [
        {"a@b": {}},
        {"a@AAAAAAAAAAAAAAAAAAAAAQ": {"0": 1}},
        {"a": {"0": 1}},
        {},
    ]
    assert [topic_ids_of(each) for each in strange] == [{}] * 4
    assert offsets_of({"a@AAAAAAAAAAAAAAAAAAAAAQ": {}}) == offsets_of({}) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "expects such as"),
        ("[]", "expects such as"),
        ('{"t":[0]}', "expects such as"),
        ('{"t":{"0":"7"}}', "expects such as"),
        ('{"t":{"0":true}}', "expects such as"),
        ('{"t":{"0":1.0}}', "expects such as"),
        ('{"t":{"00":1}}', "expects such as"),
        ('{"t":{"-1":1}}', "expects such as"),
        ('{"t":{"2147483648":1}}', "expects such as"),
        ('{"t":{"0":9223372036854775808}}', "expects such as"),
        ('{"t":{"0":-3}}', "has the offset -3 for t-0"),
        ('{"t":{"0":1,"0":2}}', "names 0 twice"),
        ("{}", "names no partition"),
        ('{"t":{}}', "names no partition"),
        ('{"a":' * 100_000, "expects such as"),
    ],
)
def test_what_is_no_offsets_json_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_offsets(text)


def test_times_begin_in_1970() -> None:
    assert parse_timestamps('{"t":{"0":5}}') == {TopicPartition("t", 0): 5}
    with pytest.raises(ValueError, match="time -1 for t-0"):
        parse_timestamps('{"t":{"0":-1}}')


def test_partitions_are_lists() -> None:
    assert parse_partitions('{"t":[1,0]}') == (TopicPartition("t", 1), TopicPartition("t", 0))
    for text in ('{"t":0}', '{"t":[true]}', '{"t":[-1]}', "7"):
        with pytest.raises(ValueError, match="expects such as"):
            parse_partitions(text)
    for text in ("{}", '{"t":[]}'):
        with pytest.raises(ValueError, match="names no partition"):
            parse_partitions(text)
    with pytest.raises(ValueError, match="names a partition twice"):
        parse_partitions('{"t":[0,0]}')
