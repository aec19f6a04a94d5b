"""The same scripts of raw requests to this broker and to released Kafka: the same answers.

Both brokers run at once. A script's transcript on Kafka is what is right; every line of ours has to
be the same, unless `DIFFERENCES` says why not.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff

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

DIFFERENCES: dict[tuple[str, str], str] = {}
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


def without_known(name: str, lines: list[str]) -> list[str]:
    """The lines whose steps must not differ."""
    return [line for line in lines if (name, line.partition(":")[0]) not in DIFFERENCES]


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
    differences = list(
        unified_diff(
            without_known(name, expected),
            without_known(name, ours),
            f"Kafka {KAFKA_VERSION}",
            coordinators.name,
            lineterm="",
            n=0,
        )
    )
    assert not differences, "\n".join(["", *differences[2:]])


def test_known_differences_are_of_steps_there_are() -> None:
    assert {name for name, _ in DIFFERENCES} <= set(SCRIPTS)
