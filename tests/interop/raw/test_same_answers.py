"""The same scripts of raw requests to this broker and to released Kafka: the same answers.

Both brokers run at once, and several scripts on each. A script's transcript on Kafka is what is
right; every line of ours has to be the same, unless `DIFFERENCES` says why not, and what it is.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import zip_longest
from typing import NamedTuple

import pytest

from bench.kafka_release import KAFKA_VERSION
from bench.node import KafkaNode, Node, OwnedNode
from tests.interop.conftest import COORDINATOR_PROPERTIES, PROPERTIES
from tests.interop.raw import (  # noqa: F401  # importing registers the scripts
    classic_groups,
    configs,
    consumer_groups,
    frames,
    members,
    offsets,
    producers,
    records,
    share_delivery,
    share_groups,
    share_state,
    topics,
    transactions,
)
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import SCRIPTS

AT_ONCE = 8
"""Scripts that run at a time on each broker; they wait more than they work."""

ONE_BY_ONE = {transactions.__name__, producers.__name__}
"""Modules whose scripts run after each other on Kafka: verifications that it makes at the same time
share a batch, and with it the error code that the first one's client understands."""

TRIES = 3
"""How often a script runs before a difference counts. Many wait for time-outs of a second or less,
and a machine that stands still as long changes what comes first; a broker that answers otherwise
does so every time. Further tries are made alone, under another name, and told in the summary."""

LONGEST = ("regular_expressions",)
"""Scripts that begin first, so that nobody waits for them at the end."""


class Difference(NamedTuple):
    """An answer of ours that is another one on purpose; each side has to have its part."""

    kafka: str
    ours: str
    reason: str


_UNHANDLED = "an exception that Kafka does not handle"
DIFFERENCES: dict[tuple[str, str], Difference] = {
    ("classic_member_with_bad_metadata", "bad metadata"): Difference(
        "UNKNOWN_SERVER_ERROR", "INCONSISTENT_GROUP_PROTOCOL", _UNHANDLED
    ),
    ("commits_of_consumer_members", "v9 fetch no member"): Difference(
        "UNKNOWN_SERVER_ERROR", "UNKNOWN_MEMBER_ID", _UNHANDLED
    ),
    ("commits_of_consumer_members", "v10 fetch no member"): Difference(
        "UNKNOWN_SERVER_ERROR", "UNKNOWN_MEMBER_ID", _UNHANDLED
    ),
    ("describe_edges", "twice"): Difference(
        "'describe_edges'", "'describe_edges'", "a short request shall not have an endless answer"
    ),
    **{
        ("share_session_epochs", f"a {step}"): Difference(theirs, "INVALID_REQUEST", reason)
        for step, theirs, reason in (
            ("empty group", "'error_code': 'NONE'", "a group has a name"),
            ("empty group to say", "'error_code': 'NONE'", "a group has a name"),
            ("no group", "UNKNOWN_SERVER_ERROR", _UNHANDLED),
            ("no group to say", "UNKNOWN_SERVER_ERROR", _UNHANDLED),
            ("no member", "UNKNOWN_SERVER_ERROR", _UNHANDLED),
            ("no member to say", "UNKNOWN_SERVER_ERROR", _UNHANDLED),
        )
    },
    ("share_records_deleted_under_a_member", "a half of a batch"): Difference(
        "'first_offset': 22", "'first_offset': 24", "what was deleted is delivered to nobody"
    ),
    **{
        ("share_where_groups_begin", step): Difference(
            "OFFSET_NOT_AVAILABLE",
            "'error_code': 'NONE'",
            "a partition without records that young is read from its end on, which loses none",
        )
        for step in ("m4 opens", "m4 after one more")
    },
    **{
        ("share_topics_that_are_not_there", step): Difference(
            "UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_ID", _UNHANDLED
        )
        for step in ("u opens", "u goes on", "n opens nil", "s after the deletion")
    },
    **{
        ("share_sizes_of_what_is_acquired", step): Difference(
            "'first_offset'", "'first_offset'", "neighbours delivered equally often are one range"
        )
        for step in ("exactly 3/1 round 1", "exactly 7/5 round 2")
    },
    ("share_offsets_are_altered", "negative partition"): Difference(
        "UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_OR_PARTITION", _UNHANDLED
    ),
    ("share_offsets_are_described", "no group id"): Difference(
        "UNKNOWN_SERVER_ERROR", "'start_offset': -1", _UNHANDLED
    ),
    ("share_offsets_are_described", "empty lists"): Difference(
        "UNKNOWN_SERVER_ERROR", "'error_code': 'NONE'", _UNHANDLED
    ),
    ("share_state_of_whom", "find 3"): Difference("0", "42", "there are no such partitions"),
    ("share_state_of_whom", "find 6"): Difference("42", "0", "a group's name may have colons"),
}
"""(script, step) whose answers differ."""


class Both(NamedTuple):
    """Transcripts of a script that may still be under way."""

    theirs: Future[list[str]]
    ours: Future[list[str]]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedNode]:
    """Released Kafka, beside whatever broker is under test."""
    directory = tmp_path_factory.mktemp("released")
    node = KafkaNode(directory, {**PROPERTIES, **COORDINATOR_PROPERTIES}, heap=("-Xmx768M",))
    node.start()
    yield node
    node.kill()  # Nobody needs its data, and it takes its time to stop.


@pytest.fixture(scope="module")
def answers(
    released: OwnedNode, coordinators: OwnedNode, request: pytest.FixtureRequest
) -> Iterator[dict[str, Both]]:
    """Every script that is asked for in this run, started on both brokers."""
    asked = {item.name for item in request.session.items}
    names = [name for name in SCRIPTS if f"test_same_answers[{name}]" in asked]
    names.sort(key=lambda name: name not in LONGEST)
    with (
        ThreadPoolExecutor(AT_ONCE) as theirs,
        ThreadPoolExecutor(1) as one_by_one,
        ThreadPoolExecutor(AT_ONCE) as ours,
    ):
        both = {}
        for name in names:
            alone = SCRIPTS[name].__module__ in ONE_BY_ONE
            both[name] = Both(
                (one_by_one if alone else theirs).submit(transcript, released, name),
                ours.submit(transcript, coordinators, name),
            )
        yield both
        for pool in (theirs, one_by_one, ours):
            pool.shutdown(cancel_futures=True)


def transcript(node: Node, name: str, attempt: int = 1) -> list[str]:
    """What a broker answers to a script; ends with the exception if the script could not go on."""
    unused = name if attempt == 1 else f"{name}-try{attempt}"
    dialogue = Dialogue(node, unused)
    try:
        dialogue.wait_for_coordinators()
        SCRIPTS[name](dialogue)
    except (AssertionError, AttributeError, ValueError, OSError) as error:
        dialogue.transcript.append(f"{name} could not go on: {type(error).__name__}: {error}")
    finally:
        dialogue.close()
    return [line.replace(unused, name) for line in dialogue.transcript]


def equal_length(one: str, other: str) -> int:
    """How many characters they begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def differences(name: str, expected: list[str], found: list[str]) -> list[str]:
    """Where the transcripts part, but for what is known; of long lines only where they do."""
    told = [line for line in expected if "could not go on" in line]
    for theirs, ours in zip_longest(expected, found, fillvalue="(nothing)"):
        step = theirs.partition(":")[0]
        known = DIFFERENCES.get((name, step))
        if known is not None and theirs != ours and known.kafka in theirs and known.ours in ours:
            continue
        if known is not None:
            told.append(f"{step}: not as it was known:\n    Kafka {theirs}\n    here  {ours}")
        elif theirs != ours:
            begin = equal_length(theirs, ours)
            end = equal_length(theirs[:begin:-1], ours[:begin:-1])
            shown = [
                line[max(begin - 60, 0) : len(line) - max(end - 30, 0)] for line in (theirs, ours)
            ]
            told.append(f"{step}:\n    Kafka {shown[0]}\n    here  {shown[1]}")
    return told


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_answers(
    answers: dict[str, Both],
    released: OwnedNode,
    coordinators: OwnedNode,
    ran: Callable[[str], None],
    name: str,
) -> None:
    expected, found = answers[name].theirs.result(), answers[name].ours.result()
    told = differences(name, expected, found)
    for attempt in range(2, TRIES + 1):
        if not told:
            break
        for other in answers.values():
            wait(other)
        ran(f"{name} tried again, which differed: {told[0]}")
        expected, found = (
            transcript(released, name, attempt),
            transcript(coordinators, name, attempt),
        )
        told = differences(name, expected, found)
    ran(f"raw requests beside Kafka {KAFKA_VERSION}")
    if told:
        pytest.fail("\n".join(told), pytrace=False)


def test_known_differences_are_of_steps_there_are() -> None:
    assert {name for name, _ in DIFFERENCES} <= set(SCRIPTS)
