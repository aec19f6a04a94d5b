"""Limits of a read, as options give them; offsets follow from a view of the log.

Of the three ways to say it a time for all partitions wins over times by partition, and those over
offsets, as in Spark's Kafka source (KafkaSourceProvider.getKafkaOffsetRangeLimit). A time stands
for the first offset whose record has that timestamp or a later one. Where no record has, a read
ends at the latest offset; one that begins there is an error, or begins at the latest offset
(`startingOffsetsByTimestampStrategy=latest`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pipeline.source.options.offsets import EARLIEST, LATEST, parse_offsets
from storage.types.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first offset there is."""


@dataclass(frozen=True, slots=True)
class Latest:
    """After the last record there is, or that is committed."""


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """Offsets by partition, -1 the latest, -2 the earliest; all partitions must be named."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class SpecificTimes:
    """Times by partition, in ms since 1970; all partitions must be named."""

    times_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GlobalTime:
    """One time for all partitions, in ms since 1970."""

    time_ms: int


OffsetLimit: TypeAlias = Earliest | Latest | SpecificOffsets | SpecificTimes | GlobalTime


def parse_limit(text: str) -> OffsetLimit:
    """`earliest`, `latest`, or offsets as JSON.

    Raises:
        ValueError: It is none of them; the rest of a sentence about the option.
    """
    word = text.strip().lower()
    if word == "earliest":
        return Earliest()
    if word == "latest":
        return Latest()
    if not word.startswith("{"):
        raise ValueError(f"is {text!r}, which is neither earliest nor latest nor JSON")
    return SpecificOffsets(parse_offsets(text))


def batch_mistakes(starting: OffsetLimit, ending: OffsetLimit) -> Sequence[str]:
    """Options that a batch query cannot have, each a sentence, as in Spark's Kafka source."""
    mistakes: list[str] = []
    if isinstance(starting, Latest):
        mistakes.append("startingOffsets cannot be latest in a batch query")
    if isinstance(ending, Earliest):
        mistakes.append("endingOffsets cannot be earliest in a batch query")
    if isinstance(starting, SpecificOffsets):
        mistakes += [
            f"startingOffsets for {partition} cannot be -1 (latest) in a batch query"
            for partition, offset in starting.offsets.items()
            if offset == LATEST
        ]
    if isinstance(ending, SpecificOffsets):
        mistakes += [
            f"endingOffsets for {partition} cannot be -2 (earliest) in a batch query"
            for partition, offset in ending.offsets.items()
            if offset == EARLIEST
        ]
    return [*mistakes, *_unordered(starting, ending)]


def _unordered(starting: OffsetLimit, ending: OffsetLimit) -> Sequence[str]:
    if isinstance(starting, SpecificOffsets) and isinstance(ending, SpecificOffsets):
        return _pairs("Offsets", "", starting.offsets, ending.offsets)
    if isinstance(starting, SpecificTimes) and isinstance(ending, SpecificTimes):
        return _pairs("Offsets", "ByTimestamp", starting.times_ms, ending.times_ms)
    if isinstance(starting, GlobalTime) and isinstance(ending, GlobalTime):
        return (
            [f"startingTimestamp {starting.time_ms} is after endingTimestamp {ending.time_ms}"]
            if starting.time_ms > ending.time_ms
            else []
        )
    return []


def _pairs(
    what: str,
    suffix: str,
    starting: Mapping[TopicPartition, int],
    ending: Mapping[TopicPartition, int],
) -> Sequence[str]:
    names = f"starting{what}{suffix} and ending{what}{suffix}"
    mistakes: list[str] = []
    if starting.keys() != ending.keys():
        one_sided = ", ".join(map(str, sorted(starting.keys() ^ ending.keys())))
        mistakes.append(
            f"{names} must name the same partitions; only one of them names {one_sided}"
        )
    for partition in sorted(starting.keys() & ending.keys()):
        start, end = starting[partition], ending[partition]
        if start > end >= 0:
            mistakes.append(f"{names}: {start} is after {end} for {partition}")
    return mistakes
