"""Offsets of partitions as the Kafka source of Spark writes them in options and checkpoints.

    {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}

The offset is that of the next record to read. In options -1 stands for the latest offset and -2 for
the earliest; in a checkpoint there are only real ones. Source: Spark, JsonUtils.scala.

A checkpoint of ours says as well which incarnation of a topic the offsets are of:

    {"topicA":{"0":23},"topicA@dGhlIGlkIG9mIGEgdG9waQ":{}}

The Kafka source reads that as a topic of no partitions, that is as nothing, and goes on.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid, parse_uuid

EARLIEST = -2
LATEST = -1

SPECIAL_OFFSETS = f" ({LATEST}: latest, {EARLIEST}: earliest)"
"""For errors about offsets; times have no such values."""

_ID_BEHIND: Final = "@"
"""In no topic's name."""

_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1

OffsetDict = dict[str, dict[str, int]]
"""The JSON object, as Spark hands it to a stream reader and takes it back."""


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Offsets of an option.

    Raises:
        ValueError: It is no such JSON; the text is the rest of a sentence about the option.
    """
    offsets = _parse(text, '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}')
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise ValueError(
                f"has the offset {offset} for {partition}; below 0 there are only "
                "-1 (latest) and -2 (earliest)"
            )
    return offsets


def parse_timestamps(text: str) -> dict[TopicPartition, int]:
    """Times by partition, in milliseconds since 1970.

    Raises:
        ValueError: It is no such JSON; the text is the rest of a sentence about the option.
    """
    times = _parse(text, '{"topicA":{"0":123456789,"1":123456789}}')
    for partition, time_ms in times.items():
        if time_ms < 0:
            raise ValueError(f"has the time {time_ms} for {partition}; times begin at 0, in 1970")
    return times


def parse_partitions(text: str) -> Sequence[TopicPartition]:
    """Partitions of the option `assign`: `{"topicA":[0,1],"topicB":[0,1]}`.

    Raises:
        ValueError: It is no such JSON; the text is the rest of a sentence about the option.
    """
    example = '{"topicA":[0,1],"topicB":[0,1]}'
    value = _object(text, example)
    found: list[TopicPartition] = []
    for topic, partitions in value.items():
        if not isinstance(partitions, list) or not all(_is_partition(p) for p in partitions):
            raise ValueError(_expected(example, text))
        found += [TopicPartition(topic, partition) for partition in partitions]
    if not found:
        raise ValueError(f"is {text!r}, which names no partition")
    if len(set(found)) != len(found):
        raise ValueError(f"is {text!r}, which names a partition twice")
    return tuple(found)


def offsets_of(value: OffsetDict) -> dict[TopicPartition, int]:
    """Offsets of a checkpoint; none, where a pattern has matched no topic yet.

    Raises:
        ValueError: It is not what the Kafka source or this one writes.
    """
    if not any(value.values()):
        return {}
    return _checked(value, '{"topicA":{"0":23}}', repr(value))


def topic_ids_of(value: OffsetDict) -> dict[str, UUID]:
    """The topics' ids in a checkpoint; none of those that the Kafka source wrote."""
    ids: dict[str, UUID] = {}
    for name, partitions in value.items():
        topic, is_id, text = name.partition(_ID_BEHIND)
        if is_id and not partitions:
            try:
                ids[topic] = parse_uuid(text)
            except ValueError:
                continue
    return ids


def offset_dict(
    offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, UUID] | None = None
) -> OffsetDict:
    """Offsets for a checkpoint, topics and partitions in order, and then their topics' ids."""
    result: OffsetDict = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    for topic, topic_id in sorted((topic_ids or {}).items()):
        if topic in result:
            result[f"{topic}{_ID_BEHIND}{format_uuid(topic_id)}"] = {}
    return result


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """The JSON text, without spaces, as the Kafka source writes it."""
    return json.dumps(offset_dict(offsets), separators=(",", ":"), ensure_ascii=False)


def _parse(text: str, example: str) -> dict[TopicPartition, int]:
    return _checked(_object(text, example), example, repr(text))


def _checked(value: Mapping[str, Any], example: str, shown: str) -> dict[TopicPartition, int]:
    result: dict[TopicPartition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise ValueError(f"expects such as {example}, got {shown}")
        for name, number in partitions.items():
            if not _is_index(name) or not _is_long(number):
                raise ValueError(f"expects such as {example}, got {shown}")
            result[TopicPartition(topic, int(name))] = number
    if not result:
        raise ValueError(f"is {shown}, which names no partition")
    return result


def _object(text: str, example: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(_expected(example, text)) from error
    if not isinstance(value, dict):
        raise ValueError(_expected(example, text))
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"names {', '.join(twice)} twice")
    return value


def _expected(example: str, text: str) -> str:
    return f"expects such as {example}, got {text!r}"


def _is_index(name: str) -> bool:
    """Whether it is a partition as JSON's key, in its one spelling."""
    return name.isascii() and name.isdecimal() and len(name) <= 10 and _is_spelt(name)


def _is_spelt(name: str) -> bool:
    return str(int(name)) == name and int(name) <= _INT_MAX


def _is_partition(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT_MAX


def _is_long(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LONG_MAX
