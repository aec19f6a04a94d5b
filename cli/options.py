"""Types of command-line options: text in, value out, a clear sentence for what is neither."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.controller.images.topic_names import name_problem


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole_number(text: str) -> int:
    """A whole number, 0 or above: an offset, a partition."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or above")
    return int(text)


def one_of(words: Sequence[str]) -> Callable[[str], str]:
    """One of some words, in upper or lower case; the value is as the word is listed."""

    def read(text: str) -> str:
        for word in words:
            if word.lower() == text.lower():
                return word
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(words)}")

    return read


def key_value(text: str) -> tuple[str, str]:
    """`KEY=VALUE`; the value may be empty and may hold further `=`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def topic_name(text: str) -> str:
    """A name that a topic may have."""
    problem = name_problem(text)
    if problem is not None:
        raise argparse.ArgumentTypeError(problem)
    return text


class TopicPartitions(NamedTuple):
    """A topic, and some of its partitions or all of them."""

    topic: str
    partitions: tuple[int, ...] | None


def topic_partitions(text: str) -> TopicPartitions:
    """`TOPIC` or `TOPIC:0,1,2`, as Kafka's tools write it."""
    topic, colon, numbers = text.partition(":")
    topic_name(topic)
    if not colon:
        return TopicPartitions(topic, None)
    words = numbers.split(",")
    if not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC:0,1,2")
    return TopicPartitions(topic, tuple(dict.fromkeys(map(int, words))))


def add_topics_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `topics`: any number of `TOPIC` or `TOPIC:0,1,2`."""
    parser.add_argument(
        "topics",
        metavar="TOPIC",
        nargs="*",
        help="topics, or some of their partitions as TOPIC:0,1 (default: all)",
        type=topic_partitions,
    )
