"""The same scripts of raw requests to this broker and to released Kafka: the same answers.

Both brokers run at once. A script's transcript on Kafka is what is right; every line of ours has to
be the same, unless `DIFFERENCES` says why not.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

import pytest

from bench.kafka_release import KAFKA_VERSION
from bench.node import KafkaNode, Node, OwnedNode
from tests.interop.conftest import COORDINATOR_PROPERTIES, PROPERTIES
from tests.interop.raw import (  # noqa: F401  # importing registers the scripts
    classic_groups,
    consumer_groups,
    offsets,
    transactions,
)
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import SCRIPTS

_UNHANDLED = "Kafka answers UNKNOWN_SERVER_ERROR: an exception it does not handle"
DIFFERENCES: dict[tuple[str, str], str] = {
    ("classic_member_with_bad_metadata", "bad metadata"): _UNHANDLED,
    ("commits_of_consumer_members", "v9 fetch no member"): _UNHANDLED,
    ("commits_of_consumer_members", "v10 fetch no member"): _UNHANDLED,
    ("markers_by_hand", "epoch too old"): _UNHANDLED,
}
"""(script, step) whose answers may differ, and why."""


@pytest.fixture(scope="module")
def released(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[OwnedNode]:
    """Released Kafka, beside whatever broker is under test."""
    directory = tmp_path_factory.mktemp("released")
    node = KafkaNode(directory, {**PROPERTIES, **COORDINATOR_PROPERTIES}, heap=("-Xmx768M",))
    node.start()
    yield node
    node.stop()


def transcript(node: Node, name: str) -> list[str]:
    """What a broker answers to a script; ends with the exception if the script could not go on."""
    dialogue = Dialogue(node, name)
    try:
        dialogue.wait_for_coordinators()
        SCRIPTS[name](dialogue)
    except (AssertionError, AttributeError, ValueError, OSError) as error:
        dialogue.transcript.append(f"{name} could not go on: {type(error).__name__}: {error}")
    finally:
        dialogue.close()
    return dialogue.transcript


def equal_length(one: str, other: str) -> int:
    """How many characters they begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def differences(name: str, expected: list[str], found: list[str]) -> list[str]:
    """Where the transcripts part, but for what is known; of long lines only where they do."""
    told = []
    for theirs, ours in zip_longest(expected, found, fillvalue="(nothing)"):
        step = theirs.partition(":")[0]
        if theirs == ours or (name, step) in DIFFERENCES:
            continue
        begin = equal_length(theirs, ours)
        end = equal_length(theirs[:begin:-1], ours[:begin:-1])
        shown = [line[max(begin - 60, 0) : len(line) - max(end - 30, 0)] for line in (theirs, ours)]
        told.append(f"{step}:\n    Kafka {shown[0]}\n    here  {shown[1]}")
    return told


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_answers(
    coordinators: OwnedNode, released: OwnedNode, ran: Callable[[str], None], name: str
) -> None:
    with ThreadPoolExecutor() as pool:
        theirs = pool.submit(transcript, released, name)
        ours = transcript(coordinators, name)
    expected = theirs.result()
    assert not any("could not go on" in line for line in expected), expected[-1]
    ran(f"raw requests beside Kafka {KAFKA_VERSION}")
    told = differences(name, expected, ours)
    if told:
        pytest.fail("\n".join(told), pytrace=False)


def test_known_differences_are_of_steps_there_are() -> None:
    assert {name for name, _ in DIFFERENCES} <= set(SCRIPTS)
