"""`varve configs` on a fake cluster."""

import pytest

from cli import configs
from tests.fakes.kafka.library_clients import FakeCluster
from tests.unit.cli.commands import Shell


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.add_topic("t").configs.update({"b": "2", "a": "1"})
    return made


@pytest.fixture
def shell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(configs, cluster.admin, capsys)


def test_describe_leaves_defaults_out(cluster: FakeCluster, shell: Shell) -> None:
    """Unless all are asked for; each with its source."""
    assert shell("describe", "--topic", "t").cells == [
        ["KEY", "VALUE", "SOURCE"],
        ["a", "1", "DYNAMIC_TOPIC_CONFIG"],
        ["b", "2", "DYNAMIC_TOPIC_CONFIG"],
    ]
    assert ["a.default", "d", "DEFAULT_CONFIG"] in shell("describe", "--topic", "t", "--all").cells
    shown = shell("describe", "--topic", "t", "--json").document
    assert shown["topic"] == "t"
    assert shown["configs"]["a"] == {
        "value": "1",
        "source": "DYNAMIC_TOPIC_CONFIG",
        "sensitive": False,
        "read_only": False,
    }
    cluster.topics["t"].configs.clear()
    assert shell("describe", "--topic", "t").out.startswith("topic t has defaults only")


def test_secrets_are_hidden(cluster: FakeCluster, shell: Shell) -> None:
    """A broker sends none, so we show that there is one."""
    cluster.broker_configs["password"] = "secret"
    assert ["password", "(hidden)", "DYNAMIC_BROKER_CONFIG"] in shell(
        "describe", "--broker", "1"
    ).cells


@pytest.mark.parametrize("action", [("describe",), ("alter", "--set", "a=1")])
def test_what_is_not_there_has_no_settings(shell: Shell, action: tuple[str, ...]) -> None:
    """A topic and a broker; a group may have some before it exists."""
    assert shell(*action, "--broker", "7").err == "varve: broker '7' does not exist\n"
    missing = shell(*action, "--topic", "nope")
    assert missing.status == 1
    assert "'nope' does not exist" in missing.err
    assert shell(*action, "--group", "nope").status == 0


def test_alter_sets_and_deletes(cluster: FakeCluster, shell: Shell) -> None:
    """In one request."""
    words = ("alter", "--topic", "t", "--set", "a=5", "--set", "c=x=y", "--delete", "b")
    assert shell(*words).out == "topic t: a=5, c=x=y, b is the default again\n"
    assert cluster.topics["t"].configs == {"a": "5", "c": "x=y"}
    assert shell("alter", "--broker", "1", "--set", "k=", "--json").document == {
        "broker": "1",
        "set": {"k": ""},
        "deleted": [],
    }
    assert cluster.broker_configs == {"k": ""}


def test_a_refusal_is_the_brokers_sentence(cluster: FakeCluster, shell: Shell) -> None:
    """Without what the library puts before it."""
    refused = shell("alter", "--topic", "t", "--set", "a=bad")
    assert refused == (1, "", "varve: Invalid value bad for configuration a\n")
    assert cluster.topics["t"].configs["a"] == "1"


@pytest.mark.parametrize(
    "words",
    [
        ("describe",),
        ("describe", "--topic", "t", "--broker", "1"),
        ("describe", "--broker", "x"),
        ("alter", "--topic", "t"),
        ("alter", "--topic", "t", "--set", "a"),
        ("alter", "--topic", "t", "--set", "a=1", "--delete", "a"),
    ],
)
def test_mistaken_options_are_refused(
    cluster: FakeCluster, shell: Shell, words: tuple[str, ...]
) -> None:
    """With status 2, before a client is opened."""
    assert shell(*words).status == 2
    assert cluster.opened == []
