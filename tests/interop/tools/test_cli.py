"""The `varve` command as a process against a running broker, as a newcomer types it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from bench.node import REPOSITORY, OwnedNode, free_ports
from tests.interop.records import CODECS

DEADLINE_S = 60.0


class Varve:
    """Runs `python -m cli.main` to its end."""

    def __init__(self, address: str) -> None:
        self.address = address

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "cli.main", *words, "--bootstrap-server", self.address]

    def __call__(
        self, *words: str, text: bytes = b"", status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words),
            input=text,
            capture_output=True,
            timeout=DEADLINE_S,
            cwd=REPOSITORY,
            check=False,
        )
        ended = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert ended.returncode == status, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        return ended

    def json(self, *words: str, text: bytes = b"") -> Any:
        return json.loads(self(*words, "--json", text=text).stdout)


@pytest.fixture
def varve(broker: OwnedNode, ran: Callable[[str], None]) -> Varve:
    ran(f"varve's command line (kafka-python {version('kafka-python')})")
    return Varve(broker.address)


def test_life_of_a_topic(varve: Varve, topic: str) -> None:
    """Created, listed, described, grown, emptied, deleted."""
    created = varve("topics", "create", topic, "--partitions", "2", "--config", "retention.ms=-1")
    assert created.stdout == f"created topic {topic} with 2 partitions\n"
    again = varve("topics", "create", topic, status=1)
    assert again.stderr.startswith(f"varve: Topic '{topic}' already exists")
    assert len(again.stderr.splitlines()) == 1
    varve("topics", "create", topic, "--if-not-exists")
    assert topic in varve("topics", "list").stdout.split()

    varve("produce", topic, "--partition", "1", text=b"a\nb\nc\n")
    varve("topics", "alter", topic, "--partitions", "3")
    fewer = varve("topics", "alter", topic, "--partitions", "1", status=1)
    assert "(INVALID_PARTITIONS)" in fewer.stderr
    emptied = varve("topics", "delete-records", topic, "--partition", "1", "--before-offset", "2")
    assert emptied.stdout == f"{topic}-1 starts at offset 2 now\n"

    (described,) = varve.json("topics", "describe", topic)
    assert described["overrides"] == {"retention.ms": "-1"}
    partitions = described["partitions"]
    assert [(p["start_offset"], p["end_offset"]) for p in partitions] == [(0, 0), (2, 3), (0, 0)]
    assert partitions[1]["size_bytes"] > partitions[0]["size_bytes"] == 0
    assert {p["leader"] for p in partitions} == set(partitions[0]["isr"])
    assert f"topic {topic} " in varve("topics", "describe").stdout

    varve("topics", "delete", topic)
    gone = varve("topics", "describe", topic, status=1)
    assert gone.stderr == f"varve: topic '{topic}' does not exist\n"
    varve("topics", "delete", topic, status=1)
    varve("topics", "delete", topic, "--if-exists")


@pytest.mark.parametrize("codec", CODECS)
def test_produced_records_are_consumed(varve: Varve, topic: str, codec: str) -> None:
    """In every codec, with keys and headers, unchanged."""
    varve("topics", "create", topic)
    lines = b"".join(b"k%d:value %d\n" % (n, n) for n in range(500))
    words = ("--key-separator", ":", "--header", "h=ä", "--compression", codec)
    sent = varve.json("produce", topic, *words, text=lines)
    assert (sent["records"], sent["failed"]) == (500, 0)
    assert sent["partitions"] == [{"partition": 0, "first_offset": 0, "last_offset": 499}]
    read = varve("consume", topic, "--from-beginning", "--max-messages", "500", "--json")
    records = [json.loads(line) for line in read.stdout.splitlines()]
    assert [(r["offset"], r["key"], r["value"]) for r in records] == [
        (n, f"k{n}", f"value {n}") for n in range(500)
    ]
    assert {json.dumps(r["headers"]) for r in records} == {json.dumps([{"key": "h", "value": "ä"}])}


def test_consume_starts_where_it_is_told(varve: Varve, topic: str) -> None:
    """First record, offset, time, end; without a group nothing is left behind."""
    varve("topics", "create", topic)
    varve("produce", topic, text=b"0\n1\n2\n")
    for number, begins in (
        (3, ("--from-beginning",)),
        (2, ("--offset", "1")),
        (3, ("--from-time", "2020-01-01")),
    ):
        ends = ("--max-messages", str(number))
        assert varve("consume", topic, *begins, *ends).stdout == "0\n1\n2\n"[-2 * number :]
    ends = ("--timeout-ms", "1000")
    assert varve("consume", topic, "--from-time", "2100-01-01", *ends).stdout == ""
    assert varve("consume", topic, *ends).stdout == ""
    assert "no offset 4" in varve("consume", topic, "--offset", "4", status=1).stderr


def test_acks_and_a_file(varve: Varve, topic: str, tmp_path: Path) -> None:
    """Weaker acks are not idempotent and still arrive; a file is read to its end."""
    varve("topics", "create", topic)
    for acks in ("0", "1", "all"):
        varve("produce", topic, "--acks", acks, text=b"x\n")
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%d\n" % n for n in range(20_000)))
    assert varve("produce", topic, "--file", str(path)).stdout == f"20000 records sent to {topic}\n"
    assert varve.json("topics", "describe", topic)[0]["partitions"][0]["end_offset"] == 20_003


def test_life_of_a_group(varve: Varve, topic: str) -> None:
    """It consumes, goes on where it was, is described, reset, and deleted."""
    group = f"{topic}-group"
    varve("topics", "create", topic)
    varve("produce", topic, text=b"0\n1\n2\n3\n4\n")
    words = ("consume", topic, "--group", group, "--from-beginning", "--max-messages")
    assert varve(*words, "2").stdout == "0\n1\n"
    assert varve(*words, "1").stdout == "2\n"

    assert group in [row["group"] for row in varve.json("groups", "list", "--state", "Empty")]
    described = varve.json("groups", "describe", group)
    assert (described["state"], described["members"]) == ("Empty", [])
    assert varve.address in described["coordinator"]
    (offset,) = described["offsets"]
    assert (offset["committed"], offset["end_offset"], offset["lag"]) == (3, 5, 2)
    assert f"group {group} " in varve("groups", "describe", group).stdout

    reset = ("groups", "reset-offsets", group, "--topic", topic, "--shift-by", "-2")
    for words_more, executed in (((), False), (("--execute",), True)):
        done = varve.json(*reset, *words_more)
        assert done["executed"] is executed
        assert done["offsets"] == [
            {"topic": topic, "partition": 0, "old_offset": 3, "new_offset": 1, "remark": ""}
        ]
    assert varve(*words, "1").stdout == "1\n"

    varve("groups", "delete-offsets", group, "--topic", topic)
    assert varve.json("groups", "describe", group)["offsets"] == []
    varve("groups", "delete", group)
    gone = varve("groups", "describe", group, status=1)
    assert gone.stderr == f"varve: group '{group}' does not exist\n"


def obey_interrupts() -> None:
    """As at a terminal: tests that run in the background may have been told to ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_running_group_is_shown_and_left_alone(varve: Varve, topic: str) -> None:
    """Members with what they hold; no reset and no deletion until Ctrl-C, which commits."""
    group = f"{topic}-group"
    varve("topics", "create", topic)
    varve("produce", topic, text=b"0\n1\n")
    words = ("consume", topic, "--group", group, "--from-beginning")
    with subprocess.Popen(
        varve.command(*words),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=obey_interrupts,
    ) as consumer:
        try:
            assert consumer.stdout is not None
            assert [consumer.stdout.readline() for _ in range(2)] == [b"0\n", b"1\n"]
            described = varve.json("groups", "describe", group)
            assert described["state"] == "Stable"
            assert [member["assignment"] for member in described["members"]] == [{topic: [0]}]
            refused = varve(
                *("groups", "reset-offsets", group, "--topic", topic, "--to-latest"), status=1
            )
            # Its state may be that of a rebalance, if the member has just seen the topic change.
            assert "stop its consumers first" in refused.stderr
            varve("groups", "delete", group, status=1)
            consumer.send_signal(signal.SIGINT)
            _, errors = consumer.communicate(timeout=DEADLINE_S)
        finally:
            consumer.kill()
    assert (consumer.returncode, errors) == (130, b"2 records\n")
    described = varve.json("groups", "describe", group)
    assert [offset["committed"] for offset in described["offsets"]] == [2]


def test_settings_are_described_and_altered(varve: Varve, topic: str) -> None:
    """Of a topic; a refusal is the broker's sentence in one line."""

    def own() -> dict[str, str]:
        shown = varve.json("configs", "describe", "--topic", topic)["configs"]
        return {k: c["value"] for k, c in shown.items() if c["source"] == "DYNAMIC_TOPIC_CONFIG"}

    varve("topics", "create", topic)
    assert own() == {}
    varve("configs", "alter", "--topic", topic, "--set", "retention.ms=5", "--set", "segment.ms=7")
    varve("configs", "alter", "--topic", topic, "--delete", "segment.ms")
    assert own() == {"retention.ms": "5"}
    assert "segment.ms" in varve("configs", "describe", "--topic", topic, "--all").stdout
    refused = varve("configs", "alter", "--topic", topic, "--set", "retention.ms=x", status=1)
    assert refused.stderr.startswith("varve: Invalid value x for configuration retention.ms")
    assert len(refused.stderr.splitlines()) == 1
    missing = varve("configs", "describe", "--topic", "no-such-topic", status=1)
    assert missing.stderr == "varve: topic 'no-such-topic' does not exist\n"


def test_settings_of_brokers_and_groups(varve: Varve) -> None:
    """A broker is named by its id."""
    node = varve.json("topics", "describe", "--internal")
    broker_id = str(node[0]["partitions"][0]["leader"]) if node else "1"
    shown = varve.json("configs", "describe", "--broker", broker_id)["configs"]
    assert shown["listeners"]["value"].count(varve.address.rpartition(":")[2]) == 1
    varve("configs", "describe", "--broker", "777", status=1)
    varve("configs", "describe", "--group", "some-group", "--all")


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list"),
        ("groups", "describe", "g"),
        ("configs", "describe", "--topic", "t"),
        ("produce", "t"),
        ("consume", "t"),
    ],
)
def test_without_a_broker_there_is_one_line(words: tuple[str, ...]) -> None:
    """With the address and the reason, and at once."""
    (port,) = free_ports(1)
    ended = Varve(f"127.0.0.1:{port}")(*words, status=1)
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"varve: no broker at 127.0.0.1:{port}: Connection refused")
    assert len(ended.stderr.splitlines()) == 1


def test_a_reader_may_leave_early(varve: Varve, topic: str) -> None:
    """`varve consume ... | head -1` ends without a word."""
    varve("topics", "create", topic)
    varve("produce", topic, text=b"".join(b"%d\n" % n for n in range(50_000)))
    command = varve.command("consume", topic, "--from-beginning")
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reading:
        try:
            assert reading.stdout is not None
            assert reading.stderr is not None
            assert reading.stdout.readline() == b"0\n"
            reading.stdout.close()
            errors = reading.stderr.read().decode()
            assert reading.wait(DEADLINE_S) == 0
        finally:
            reading.kill()
    (count,) = errors.splitlines()
    assert count.rstrip("s").endswith(" record")
