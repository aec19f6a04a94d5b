"""`varve topics` on a fake cluster."""

import pytest

from cli import topics
from tests.fakes.kafka.library_clients import FakeCluster
from tests.unit.cli.commands import Shell


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def shell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(topics, cluster.admin, capsys)


def test_create_makes_the_topic(cluster: FakeCluster, shell: Shell) -> None:
    """With partitions and settings; the broker's defaults are asked for as -1."""
    done = shell("create", "t", "--partitions", "3", "--config", "a=b", "--config", "c=d=e")
    assert done == (0, "created topic t with 3 partitions\n", "")
    assert len(cluster.topics["t"].partitions) == 3
    assert cluster.topics["t"].configs == {"a": "b", "c": "d=e"}
    assert shell("create", "u", "--json").document == {
        "topic": "u",
        "created": True,
        "topic_id": "id-u",
        "partitions": 1,
        "replication_factor": 1,
    }


def test_create_refuses_an_existing_topic_unless_told_otherwise(
    cluster: FakeCluster, shell: Shell
) -> None:
    """With the broker's sentence."""
    cluster.add_topic("t")
    refused = (1, "", "varve: Topic 't' already exists (TOPIC_ALREADY_EXISTS)\n")
    assert shell("create", "t") == refused
    assert shell("create", "t", "--if-not-exists") == (0, "topic t exists already\n", "")
    assert shell("create", "t", "--if-not-exists", "--json").document["created"] is False


def test_list_hides_internal_topics(cluster: FakeCluster, shell: Shell) -> None:
    """By name; with `--internal` all of them."""
    assert shell("list") == (0, "no topics\n", "")
    cluster.add_topic("b", 0, 0)
    cluster.add_topic("a")
    cluster.add_topic("__own", internal=True)
    assert shell("list").cells == [
        ["TOPIC", "PARTITIONS", "REPLICAS"],
        ["a", "1", "1"],
        ["b", "2", "1"],
    ]
    names = [row["topic"] for row in shell("list", "--internal", "--json").document]
    assert names == ["__own", "a", "b"]


def test_describe_shows_partitions_offsets_and_overrides(
    cluster: FakeCluster, shell: Shell
) -> None:
    """Defaults are left out; a partition without a leader has no offsets."""
    topic = cluster.add_topic("t", 3, 0)
    topic.configs["retention.ms"] = "5"
    topic.partitions[0].start = 1
    topic.partitions[1].leader = -1
    assert shell("describe", "t").out.splitlines() == [
        "topic t   id id-t",
        "overrides: retention.ms=5",
        "PARTITION  LEADER  REPLICAS  ISR  START  END  SIZE",
        "        0  1       1         1        1    3  300 B",
        "        1  none    1         1        -    -  -",
    ]


def test_describe_says_which_names_are_no_topics(cluster: FakeCluster, shell: Shell) -> None:
    """And describes the others."""
    cluster.add_topic("t", 2)
    done = shell("describe", "nope", "t", "--json")
    assert (done.status, done.err) == (1, "varve: topic 'nope' does not exist\n")
    (described,) = done.document
    assert described["topic"] == "t"
    assert described["partitions"][0]["end_offset"] == 2
    assert shell("describe", "nope") == (1, "", "varve: topic 'nope' does not exist\n")


def test_describe_without_names_takes_all(cluster: FakeCluster, shell: Shell) -> None:
    """But not the broker's own ones."""
    assert shell("describe").out == "no topics\n"
    cluster.add_topic("b")
    cluster.add_topic("a")
    cluster.add_topic("__own", internal=True)
    assert [d["topic"] for d in shell("describe", "--json").document] == ["a", "b"]
    assert "   internal\n" in shell("describe", "--internal").out


def test_alter_adds_partitions(cluster: FakeCluster, shell: Shell) -> None:
    """The number is the new total; fewer are refused."""
    cluster.add_topic("t")
    assert shell("alter", "t", "--partitions", "2").out == "topic t has 2 partitions now\n"
    assert len(cluster.topics["t"].partitions) == 2
    assert shell("alter", "t", "--partitions", "1").err == (
        "varve: That would not be an increase (INVALID_PARTITIONS)\n"
    )
    assert shell("alter", "nope", "--partitions", "3").err == (
        "varve: topic 'nope' does not exist\n"
    )
    assert shell("alter", "t", "--partitions", "3", "--json").document == {
        "topic": "t",
        "partitions": 3,
    }


def test_delete_does_what_it_can(cluster: FakeCluster, shell: Shell) -> None:
    """A missing topic does not keep the others alive."""
    cluster.add_topic("a")
    cluster.add_topic("b")
    done = shell("delete", "a", "nope", "a")
    assert done == (1, "deleted topic a\n", "varve: topic 'nope' does not exist\n")
    assert shell("delete", "nope", "--if-exists") == (0, "", "")
    assert shell("delete", "b", "--json").document == {"deleted": ["b"]}
    assert cluster.topics == {}


def test_delete_records_moves_the_start(cluster: FakeCluster, shell: Shell) -> None:
    """Up to the end; beyond it is refused, with the partition's name."""
    topic = cluster.add_topic("t", 5)
    words = ("delete-records", "t", "--partition", "0", "--before-offset")
    assert shell(*words, "2").out == "t-0 starts at offset 2 now\n"
    assert topic.partitions[0].start == 2
    assert shell(*words, "3", "--json").document["start_offset"] == 3
    beyond = shell(*words, "9")
    assert beyond.status == 1
    assert beyond.err.startswith("varve: partition t-0: ")
    assert "(OFFSET_OUT_OF_RANGE)" in beyond.err
    missing = shell("delete-records", "nope", "--partition", "0", "--before-offset", "0")
    assert missing.err == "varve: partition nope-0 does not exist\n"


@pytest.mark.parametrize(
    "words",
    [
        ("create",),
        ("create", "t", "--partitions", "0"),
        ("create", "t", "--config", "a"),
        ("alter", "t"),
        ("delete",),
        ("delete-records", "t", "--partition", "0"),
        ("delete-records", "t", "--partition", "-1", "--before-offset", "0"),
    ],
)
def test_mistaken_options_are_refused(
    cluster: FakeCluster, shell: Shell, words: tuple[str, ...]
) -> None:
    """Before a client is opened."""
    assert shell(*words).status == 2
    assert cluster.opened == []
