"""`varve groups reset-offsets` on a fake cluster."""

from pathlib import Path

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.groups import groups
from tests.fakes.kafka.library_clients import FakeCluster, FakeGroup
from tests.unit.cli.commands import Shell


@pytest.fixture
def cluster() -> FakeCluster:
    """A topic with 10 and 4 records, and a stopped group."""
    made = FakeCluster()
    made.add_topic("t", 10, 4)
    made.groups["g"] = FakeGroup(offsets={TopicPartition("t", 0): 6})
    return made


@pytest.fixture
def shell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(groups, cluster.admin, capsys)


def test_reset_is_a_dry_run_until_executed(cluster: FakeCluster, shell: Shell) -> None:
    """It shows the same either way."""
    words = ("reset-offsets", "g", "--topic", "t:0", "--to-earliest")
    dry = shell(*words)
    assert dry.out.splitlines()[1].split() == ["t", "0", "6", "0"]
    assert "--execute" in dry.out
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 6}
    done = shell(*words, "--execute")
    assert done.out.splitlines()[:2] == dry.out.splitlines()[:2]
    assert done.out.endswith("reset 1 offset of group g\n")
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 0}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 4]),
        (("--to-offset", "3"), [3, 3]),
        (("--to-datetime", "1970-01-01T00:00:02"), [2, 2]),
        (("--by-duration", "PT1S"), [10, 4]),
    ],
)
def test_reset_goes_where_it_is_told(
    shell: Shell, rule: tuple[str, ...], expected: list[int]
) -> None:
    """Records carry the seconds after 1970 of their offset, so a second ago is behind them all."""
    done = shell("reset-offsets", "g", "--topic", "t", *rule, "--json").document
    assert [change["new_offset"] for change in done["offsets"]] == expected
    assert (done["group"], done["executed"]) == ("g", False)


def test_reset_of_all_topics_shifts_what_is_committed(cluster: FakeCluster, shell: Shell) -> None:
    """Backwards too; the numbers may begin with a minus."""
    done = shell("reset-offsets", "g", "--all-topics", "--shift-by", "-2", "--execute", "--json")
    (change,) = done.document["offsets"]
    assert (change["old_offset"], change["new_offset"]) == (6, 4)
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 4}


def test_reset_refuses_a_running_group(cluster: FakeCluster, shell: Shell) -> None:
    """A dry run as well, as Kafka's tool."""
    cluster.groups["g"].state = "Stable"
    refused = shell("reset-offsets", "g", "--topic", "t", "--to-latest")
    assert (refused.status, refused.out) == (1, "")
    assert "'g' is Stable" in refused.err


def test_reset_of_all_groups_leaves_running_ones(cluster: FakeCluster, shell: Shell) -> None:
    cluster.groups["h"] = FakeGroup(offsets={TopicPartition("t", 1): 1})
    cluster.groups["busy"] = FakeGroup("Stable", offsets={TopicPartition("t", 0): 1})
    done = shell("reset-offsets", "--all-groups", "--all-topics", "--to-latest", "--execute")
    assert done.status == 0
    assert [line.split()[:4] for line in done.out.splitlines()[:3]] == [
        ["GROUP", "TOPIC", "PARTITION", "OLD"],
        ["g", "t", "0", "6"],
        ["h", "t", "1", "1"],
    ]
    assert cluster.groups["h"].offsets == {TopicPartition("t", 1): 4}
    assert cluster.groups["busy"].offsets == {TopicPartition("t", 0): 1}


def test_one_running_group_does_not_keep_others_from_a_reset(
    cluster: FakeCluster, shell: Shell
) -> None:
    """Whatever protocol it speaks."""
    cluster.groups["new"] = FakeGroup("Stable", type="consumer")
    done = shell("reset-offsets", "g", "new", "--topic", "t:0", "--to-earliest", "--execute")
    assert done.status == 1
    assert "'new' is Stable" in done.err
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 0}
    assert cluster.groups["new"].offsets == {}


def test_a_reset_can_be_exported_and_read_back(
    cluster: FakeCluster, shell: Shell, tmp_path: Path
) -> None:
    """The same lines as Kafka's tool."""
    cluster.groups["h"] = FakeGroup(offsets={TopicPartition("t", 1): 1})
    plan = tmp_path / "plan.csv"
    for names, lines in (
        (("g",), "t,0,6\n"),
        (("g", "h"), "g,t,0,6\nh,t,1,1\n"),
    ):
        done = shell("reset-offsets", *names, "--all-topics", "--to-current", "--export")
        assert done == (0, lines, "")
        plan.write_text(done.out)
        back = shell("reset-offsets", *names, "--from-file", str(plan), "--export", "--dry-run")
        assert back == done
    plan.write_text("g,t,0,2\n")
    done = shell("reset-offsets", "g", "h", "--from-file", str(plan), "--execute")
    assert (done.status, done.err) == (1, "varve: the file says nothing of group 'h'\n")
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 2}


@pytest.mark.parametrize(
    "words",
    [
        ("--topic", "t", "--to-latest"),
        ("g", "--all-groups", "--topic", "t", "--to-latest"),
        ("g", "--topic", "t", "--from-file", "f"),
        ("g", "--topic", "t", "--to-latest", "--execute", "--dry-run"),
        ("g", "--topic", "t"),
        ("g", "--to-latest"),
        ("g", "--topic", "t", "--all-topics", "--to-latest"),
        ("g", "--topic", "t", "--to-latest", "--to-earliest"),
        ("g", "--topic", "t", "--to-offset", "-1"),
        ("g", "--topic", "t", "--by-duration", "3h"),
        ("g", "--topic", "t", "--to-datetime", "noon"),
        ("g", "--topic", "t:x", "--to-latest"),
    ],
)
def test_mistaken_resets_are_refused(
    cluster: FakeCluster, shell: Shell, words: tuple[str, ...]
) -> None:
    """One rule and one choice of partitions; before a client is opened."""
    assert shell("reset-offsets", *words).status == 2
    assert cluster.opened == []
