"""Selection of the partitions of a read: by names, by a pattern, or one by one.

As in Spark's Kafka source (ConsumerStrategy.scala): a pattern is asked again at every micro-batch,
and Kafka's internal topics match none.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from typing_extensions import override

from pipeline.source.options.offsets import parse_partitions
from storage.types.topic_partition import TopicPartition

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""What Kafka calls internal (Topic.java): its clients do not list them. `__remote_log_metadata` is
none of them, and Spark's Kafka source reads it where a pattern finds it."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """All partitions of named topics."""

    topics: Sequence[str]

    @override
    def __str__(self) -> str:
        return f"subscribe {', '.join(self.topics)}"


@dataclass(frozen=True, slots=True)
class SubscribedPattern:
    """All partitions of topics in whose name the pattern is found, anywhere."""

    pattern: str

    def matches(self, topic: str) -> bool:
        """Whether a topic's rows are asked for."""
        return topic not in INTERNAL_TOPICS and re.search(self.pattern, topic) is not None

    @override
    def __str__(self) -> str:
        return f"subscribePattern {self.pattern}"


@dataclass(frozen=True, slots=True)
class Assigned:
    """Some partitions."""

    partitions: Sequence[TopicPartition]

    @property
    def topics(self) -> Sequence[str]:
        """Their topics, each once."""
        return tuple(dict.fromkeys(partition.topic for partition in self.partitions))

    @override
    def __str__(self) -> str:
        return f"assign {', '.join(map(str, self.partitions))}"


TopicChoice: TypeAlias = Subscribed | SubscribedPattern | Assigned


def parse_subscribe(text: str) -> Subscribed:
    """Names between commas."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not names:
        raise ValueError(f"is {text!r}, which names no topic")
    return Subscribed(names)


def parse_pattern(text: str) -> SubscribedPattern:
    """A regular expression for whole names."""
    pattern = text.strip()
    if not pattern:
        raise ValueError("is empty")
    try:
        with warnings.catch_warnings():
            # What may mean something else in a later Python means something else in Java already.
            warnings.simplefilter("error", FutureWarning)
            re.compile(pattern)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise ValueError(f"is {pattern!r}, which is no pattern: {error}") from error
    return SubscribedPattern(pattern)


def parse_assign(text: str) -> Assigned:
    """Partitions as JSON."""
    return Assigned(parse_partitions(text))
