"""`varve produce` on a fake cluster."""

import io
import sys
from pathlib import Path

import pytest

from cli.records import produce
from tests.fakes.kafka.library_clients import FakeCluster, FakeProducer, error_class
from tests.unit.cli.commands import Outcome, Shell


class Terminal:
    """Runs the command with something on standard input."""

    def __init__(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        self._shell, self._monkeypatch = shell, monkeypatch

    def __call__(self, typed: bytes, *words: str) -> Outcome:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed)))
        return self._shell(*words)


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.add_topic("t", 0, 0)
    return made


@pytest.fixture
def terminal(
    cluster: FakeCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Terminal:
    return Terminal(Shell(produce, cluster.producer, capsys), monkeypatch)


def values(cluster: FakeCluster, topic: str = "t", partition: int = 0) -> list[bytes | None]:
    return [record.value for record in cluster.topics[topic].partitions[partition].records]


def test_a_line_is_a_record(cluster: FakeCluster, terminal: Terminal) -> None:
    """Without its end, whichever; an empty one too, and bytes that are no text."""
    assert terminal(b"a\nb\r\n\n\xff", "t") == (0, "4 records sent to t\n", "")
    assert values(cluster) == [b"a", b"b", b"", b"\xff"]
    assert {record.key for record in cluster.topics["t"].partitions[0].records} == {None}


def test_nothing_typed_is_no_record(cluster: FakeCluster, terminal: Terminal) -> None:
    """And no error."""
    assert terminal(b"", "t") == (0, "0 records sent to t\n", "")
    assert cluster.closed == 1


def test_keys_headers_and_partition(cluster: FakeCluster, terminal: Terminal) -> None:
    """The first separator counts; a header may come twice."""
    words = ("--key-separator", "::", "--header", "h=1", "--header", "h=ä", "--partition", "1")
    assert terminal(b"k::v::w\n::x\n", "t", *words).status == 0
    first, second = cluster.topics["t"].partitions[1].records
    assert (first.key, first.value) == (b"k", b"v::w")
    assert (second.key, second.value) == (b"", b"x")
    assert first.headers == [("h", b"1"), ("h", "ä".encode())]


def test_a_line_without_separator_ends_it(cluster: FakeCluster, terminal: Terminal) -> None:
    """What stood before is sent, and counted."""
    done = terminal(b"k:v\nx\nk:w\n", "t", "--key-separator", ":")
    assert done == (1, "1 record sent to t\n", "varve: line 2 has no ':'\n")
    assert values(cluster) == [b"v"]


def test_a_refused_record_ends_it(cluster: FakeCluster, terminal: Terminal) -> None:
    """With the broker's reason; nothing is sent after the gap."""
    cluster.refuse = error_class(10)
    done = terminal(b"a\nb\nc\n", "t")
    assert (done.status, done.out) == (1, "0 records sent to t\n")
    assert done.err.startswith("varve: 1 record refused: ")
    assert "(MESSAGE_TOO_LARGE)" in done.err


def test_json_has_the_offsets(cluster: FakeCluster, terminal: Terminal) -> None:
    """By partition, first and last."""
    terminal(b"a\n", "t")
    assert terminal(b"b\nc\n", "t", "--json").document == {
        "topic": "t",
        "records": 2,
        "failed": 0,
        "partitions": [{"partition": 0, "first_offset": 1, "last_offset": 2}],
    }


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ((), {"acks": "all", "enable_idempotence": True, "compression_type": None}),
        (("--acks", "1"), {"acks": 1, "enable_idempotence": False}),
        (("--acks", "0"), {"acks": 0, "enable_idempotence": False}),
        (("--acks", "-1"), {"acks": "all"}),
        (("--compression", "zstd"), {"compression_type": "zstd"}),
    ],
)
def test_options_become_settings_of_the_producer(
    cluster: FakeCluster,
    terminal: Terminal,
    words: tuple[str, ...],
    settings: dict[str, object],
) -> None:
    """Idempotent wherever the acks allow it."""
    terminal(b"a\n", "t", *words)
    assert cluster.opened[0].items() >= settings.items()


def test_a_missing_topic_is_created_or_complained_about(
    cluster: FakeCluster, terminal: Terminal
) -> None:
    """As the broker is configured."""
    assert terminal(b"a\n", "new").status == 0
    assert values(cluster, "new") == [b"a"]
    cluster.auto_create = False
    missing = terminal(b"a\n", "other")
    assert (missing.status, missing.out) == (1, "")
    assert missing.err.startswith("varve: topic 'other' does not exist")


def test_a_missing_partition_is_complained_about(cluster: FakeCluster, terminal: Terminal) -> None:
    """Before anything is sent."""
    missing = terminal(b"a\n", "t", "--partition", "2")
    assert missing == (1, "", "varve: partition t-2 does not exist\n")


def test_a_file_is_read_instead(cluster: FakeCluster, terminal: Terminal, tmp_path: Path) -> None:
    """A missing one is one line."""
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb")
    assert terminal(b"typed\n", "t", "--file", str(path)).status == 0
    assert values(cluster) == [b"a", b"b"]
    missing = terminal(b"", "t", "--file", str(tmp_path / "nope"))
    assert (missing.status, missing.out) == (1, "")
    assert missing.err.endswith("nope: No such file or directory\n")


def test_memory_is_bounded(
    cluster: FakeCluster, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library would take everything: we wait for the broker now and then."""
    monkeypatch.setattr(produce, "UNACKNOWLEDGED_SIZE_MAX", 10)
    opened: list[FakeProducer] = []
    make = FakeCluster.producer

    def remembered(self: FakeCluster, **settings: object) -> FakeProducer:
        opened.append(make(self, **settings))
        return opened[-1]

    monkeypatch.setattr(terminal._shell, "_connect", remembered.__get__(cluster))
    assert terminal(b"12345\n" * 8, "t").status == 0
    # Two lines fit; the last flush is the one at the end.
    assert opened[0].flushes == 4


def test_an_endless_line_is_refused(
    cluster: FakeCluster, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is in memory."""
    monkeypatch.setattr(produce, "LINE_SIZE_MAX", 10)
    done = terminal(b"short\n" + b"x" * 100, "t")
    assert done.status == 1
    assert done.err == "varve: line 2 is longer than 10 bytes\n"
    assert values(cluster) == [b"short"]
    assert terminal(b"123456789\n1234567890", "t").status == 0
