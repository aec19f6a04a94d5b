"""`varve consume` on a fake cluster."""

import io
import json
import sys
from typing import Any

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.records import consume
from tests.fakes.clock import ManualClock
from tests.fakes.kafka.library_clients import FakeCluster, FakeConsumer, FakeGroup
from tests.unit.cli.commands import Outcome, Shell

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    """Values are partition-offset; record times are 1,000 ms times the offset."""
    made = FakeCluster()
    made.add_topic("t", 4, 2)
    made.add_topic("one", 3)
    return made


class Terminal:
    """Runs the command; a poll that brings nothing takes its time on a clock by hand."""

    def __init__(self, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
        self.clock = ManualClock()
        self.waits: list[float] = []
        self._cluster = cluster
        self._shell = Shell(consume, self._connect, capsys)

    def _connect(self, **settings: Any) -> FakeConsumer:
        consumer = self._cluster.consumer(**settings)
        consumer.on_empty = self._wait
        return consumer

    def _wait(self, ms: float) -> None:
        self.waits.append(ms)
        self.clock.advance(ms)

    def __call__(self, *words: str) -> Outcome:
        return self._shell(*words, clock=self.clock)

    def values(self, *words: str) -> list[str]:
        """What is printed until nothing comes for a second."""
        done = self(*words, "--timeout-ms", "1000")
        assert done.status == 0, done.err
        return done.out.split()


@pytest.fixture
def terminal(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(cluster, capsys)


def test_from_beginning_reads_everything(terminal: Terminal) -> None:
    """All partitions, each in order; the count goes beside."""
    done = terminal("t", "--from-beginning", "--timeout-ms", "1000")
    assert done.out.split() == ["0-0", "0-1", "0-2", "0-3", "1-0", "1-1"]
    assert (done.status, done.err) == (0, "6 records\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), []),
        (("--partition", "1", "--from-beginning"), ["1-0", "1-1"]),
        (("--partition", "0", "--offset", "2"), ["0-2", "0-3"]),
        (("--partition", "0", "--offset", "4"), []),
        (("--from-time", "1970-01-01T00:00:01.500"), ["0-2", "0-3"]),
        (("--from-time", "1970-01-01T00:00:01"), ["0-1", "0-2", "0-3", "1-1"]),
    ],
)
def test_start_is_where_it_is_told(
    terminal: Terminal, words: tuple[str, ...], expected: list[str]
) -> None:
    """By default at the end; a partition without a record so late starts at its end."""
    assert terminal.values("t", *words) == expected


def test_offset_needs_no_partition_when_there_is_one(terminal: Terminal) -> None:
    """With several it does: one number fits one partition."""
    assert terminal.values("one", "--offset", "1") == ["0-1", "0-2"]
    assert terminal("t", "--offset", "1").status == 2


def test_an_offset_outside_is_refused(cluster: FakeCluster, terminal: Terminal) -> None:
    """With what there is."""
    cluster.topics["one"].partitions[0].start = 1
    for offset in ("0", "4"):
        refused = terminal("one", "--offset", offset)
        assert refused == (
            1,
            "",
            f"varve: one-0 has no offset {offset}: it starts at 1, the next record gets 3\n",
        )


def test_it_ends_after_max_messages(terminal: Terminal) -> None:
    """Exactly, without waiting for more."""
    done = terminal("t", "--from-beginning", "--max-messages", "5")
    assert (done.out.split()[-1], done.err) == ("1-0", "5 records\n")
    assert terminal.waits == []


def test_it_ends_when_nothing_comes(terminal: Terminal) -> None:
    """The time is that since the last record, not longer."""
    terminal("t", "--timeout-ms", "1200")
    assert terminal.waits == [500, 500, 200]


@pytest.mark.parametrize(
    "words", [("--json",), ("--format", "json"), ("--format", "json", "--json")]
)
def test_json_is_an_object_a_line(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Either way of asking."""
    done = terminal("t", "--from-beginning", "--max-messages", "2", *words)
    assert [json.loads(line)["offset"] for line in done.out.splitlines()] == [0, 1]


def test_key_value_has_a_tab(terminal: Terminal) -> None:
    """As Kafka's console consumer."""
    done = terminal("t", "--from-beginning", "--max-messages", "1", "--format", "key-value")
    assert done.out == "null\t0-0\n"


def test_without_a_group_nothing_is_committed(cluster: FakeCluster, terminal: Terminal) -> None:
    """It leaves no trace, and no topic."""
    terminal.values("t", "--from-beginning")
    assert cluster.opened[0]["enable_auto_commit"] is False
    assert cluster.opened[0]["group_id"] is None
    assert cluster.opened[0]["allow_auto_create_topics"] is False
    assert cluster.groups == {}
    missing = terminal("nope")
    assert missing == (1, "", "varve: topic 'nope' does not exist\n")


def test_a_group_goes_on_behind_its_offsets(cluster: FakeCluster, terminal: Terminal) -> None:
    """`--from-beginning` is for partitions without one; the rest starts at the end."""
    cluster.groups["g"] = FakeGroup(offsets={T0: 3})
    words = ("t", "--group", "g")
    assert terminal.values(*words, "--from-beginning") == ["0-3", "1-0", "1-1"]
    assert cluster.groups["g"].offsets == {T0: 4, T1: 2}
    assert terminal.values(*words, "--from-beginning") == []
    assert terminal.values("t", "--group", "new") == []


def test_a_group_commits_what_was_printed(cluster: FakeCluster, terminal: Terminal) -> None:
    """And not one record more."""
    terminal("one", "--group", "g", "--from-beginning", "--max-messages", "2")
    assert cluster.groups["g"].offsets == {TopicPartition("one", 0): 2}


def test_records_not_printed_are_not_committed(
    cluster: FakeCluster, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a batch: the group gets the rest again."""

    class Pipe(io.BytesIO):
        def write(self, data: Any) -> int:
            if data == b"0-2\n":
                raise KeyboardInterrupt
            return super().write(data)

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Pipe()))
    with pytest.raises(KeyboardInterrupt):
        terminal("t", "--group", "g", "--from-beginning")
    assert cluster.groups["g"].offsets[T0] == 2
    assert cluster.closed == 1


@pytest.mark.parametrize(
    "words",
    [
        ("t", "--group", "g", "--offset", "1"),
        ("t", "--group", "g", "--partition", "0"),
        ("t", "--group", "g", "--from-time", "1970-01-01"),
        ("t", "--from-beginning", "--offset", "1"),
        ("t", "--max-messages", "0"),
        ("t", "--format", "xml"),
        ("a b",),
        (),
    ],
)
def test_mistaken_options_are_refused(
    cluster: FakeCluster, terminal: Terminal, words: tuple[str, ...]
) -> None:
    """Before a client is opened."""
    assert terminal(*words).status == 2
    assert cluster.opened == []


def test_a_missing_partition_is_complained_about(terminal: Terminal) -> None:
    """One line."""
    assert terminal("t", "--partition", "2").err == "varve: partition t-2 does not exist\n"
