"""`varve tier pause` and `resume` on a fake cluster."""

from typing import Any

import pytest

from cli.tier import tier
from tests.fakes.kafka.library_clients import FakeCluster
from tests.unit.cli.commands import Shell

BOTH = {"tier.copy.paused": "true", "tier.fetch.paused": "true"}


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.add_topic("t")
    return made


@pytest.fixture
def shell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Any:
    return Shell(tier, cluster.admin, capsys)


def own(configs: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in configs.items() if key.startswith("tier.")}


def test_a_topic_is_paused_and_goes_on(cluster: FakeCluster, shell: Any) -> None:
    """By its settings; only those asked for."""
    done = shell("pause", "--topic", "t")
    assert done == (0, "copying and reading of topic t is paused\n", "")
    assert own(cluster.topics["t"].configs) == BOTH
    assert shell("resume", "--topic", "t", "--copy").out == "copying of topic t resumes\n"
    assert own(cluster.topics["t"].configs) == {"tier.fetch.paused": "true"}
    shell("resume", "--topic", "t")
    assert own(cluster.topics["t"].configs) == {}


def test_all_topics_are_paused_by_the_brokers(cluster: FakeCluster, shell: Any) -> None:
    """Each of them."""
    assert shell("pause", "--fetch").out == "reading of all topics is paused\n"
    assert own(cluster.broker_configs) == {"tier.fetch.paused": "true"}
    document = shell("resume", "--json").document
    assert document["paused"] is False
    assert document["what"] == ["copy", "fetch"]
    assert own(cluster.broker_configs) == {}


def test_a_missing_topic_is_told(shell: Any) -> None:
    """With status 1."""
    assert shell("pause", "--topic", "none") == (1, "", "varve: topic 'none' does not exist\n")
    assert shell("pause", "--copy", "--fetch").status == 2
