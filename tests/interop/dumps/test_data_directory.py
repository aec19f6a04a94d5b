"""The data directory is Kafka's: Kafka's tool reads ours, and our broker starts on Kafka's."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from bench import wire
from bench.kafka_release import CONSOLE_CONSUMER, DUMP_LOG
from bench.node import KafkaNode, OwnedNode
from bench.verify import verify_partition
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.record import iterate_records
from storage.checkpoints.checkpoint_files import NO_GAPS_ABOVE, RECOVERY_POINT_CHECKPOINT
from tests.interop.clients import AioKafka, Confluent
from tests.interop.conftest import BROKER, PROPERTIES, new_node
from tests.interop.records import CODECS, Sent, sample
from tests.interop.tool_server import ToolServer

REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"

COMPLAINTS = (
    "isvalid: false",
    "Mismatches in",
    "out of order",
    "is out of range",
    "Corrupt",
    "corrupt",
    "Could not",
    "does not match",
    "invalid bytes",
    "Exception",
)

# Small segments, an index entry for nearly every batch.
SEGMENTED = {"segment.bytes": "1048576", "index.interval.bytes": "1000"}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[OwnedNode]:
    """A broker that the test may stop, kill and start again."""
    node = new_node(tmp_path, {"node.id": "1"})
    node.start()
    yield node
    if node.is_running:
        node.stop()


def fill(node: OwnedNode) -> dict[str, int]:
    """Topics of several segments: every codec, idempotent and plain, one with LogAppendTime."""
    records = sample()
    # Within the last minutes: retention deletes by the records' time.
    first_ms = int(time.time() * 1000) - 120_000
    with node.connect() as connection:
        wire.create_topic(connection, "mixed", 2, SEGMENTED)
        wire.create_topic(
            connection, "append-time", 1, {**SEGMENTED, "message.timestamp.type": "LogAppendTime"}
        )
        for index in range(60):
            stamp = first_ms + index * 1000
            values = [b"%d-%d" % (index, n) + b"." * 1500 for n in range(30)]
            batch = wire.record_batch(values, timestamp_ms=stamp)
            wire.produce(connection, "mixed", 0, batch)
            wire.produce(connection, "append-time", 0, batch)
    for codec in CODECS:
        AioKafka().produce(node.address, "mixed", records, codec=codec, partition=0)
        Confluent().produce(node.address, "mixed", records, codec=codec, partition=1)
    return {
        "mixed-0": 1800 + len(records) * len(CODECS),
        "mixed-1": len(records) * len(CODECS),
        "append-time-0": 1800,
    }


def dump(tools: ToolServer, files: Iterable[Path], *options: str) -> dict[Path, str]:
    """What DumpLogSegments prints about each file; fails on any complaint.

    All files at once: to start the program takes longer than to read them.
    """
    names = ",".join(map(str, files))
    result = tools.tool(DUMP_LOG, "--files", names, *options, timeout_s=300)
    for line in (result.stdout + result.stderr).splitlines():
        assert not any(word in line for word in COMPLAINTS), line
    _, *parts = f"\n{result.stdout}".split("\nDumping ")
    found = {}
    for part in parts:
        name, _, text = part.partition("\n")
        found[Path(name.strip())] = text
    return found


def check_directory(tools: ToolServer, directory: Path, counts: dict[str, int]) -> None:
    """Let Kafka's tool read every file of every partition named."""
    files = {
        suffix: [path for name in counts for path in sorted((directory / name).glob(f"*.{suffix}"))]
        for suffix in ("log", "index", "timeindex", "snapshot")
    }
    indexes = files["index"] + files["timeindex"]
    wanted = [*files["log"], *indexes, *files["snapshot"]]
    said = dump(tools, wanted, "--deep-iteration", "--print-data-log")
    assert said.keys() == set(wanted)
    assert dump(tools, indexes, "--index-sanity-check").keys() == set(indexes)
    for name, count in counts.items():
        mine = {
            suffix: [
                text for path, text in said.items() if path in paths and path.parent.name == name
            ]
            for suffix, paths in files.items()
        }
        logs = mine["log"]
        assert sum(text.count("| offset: ") for text in logs) == count, name
        assert all(text.count("Log starting offset: ") == 1 for text in logs), name
        for suffix in ("index", "timeindex"):
            assert len(mine[suffix]) == len(logs), f"{name}: a log without .{suffix}"
            if len(logs) > 1:
                entries = sum(text.count("offset: ") for text in mine[suffix])
                assert entries > len(logs), f"{name}: empty .{suffix}"
    segments = list((directory / "mixed-0").glob("*.log"))
    assert len(segments) >= 3, "the test is to cover rolled segments"
    assert list((directory / "mixed-1").glob("*.snapshot")), "no producer snapshot after a stop"


def test_dump_log_reads_a_cleanly_stopped_directory(
    own_broker: OwnedNode, kafka_tools: ToolServer
) -> None:
    """Kafka's DumpLogSegments finds nothing wrong in logs, indexes and snapshots."""
    counts = fill(own_broker)
    AioKafka().consume(own_broker.address, "mixed", 10, group="dumped")
    own_broker.stop()
    check_directory(kafka_tools, own_broker.data_directory, counts)
    offsets = list(own_broker.data_directory.glob("__consumer_offsets-*/*.log"))
    said = dump(kafka_tools, offsets, "--offsets-decoder", "--deep-iteration")
    assert any('"group":"dumped"' in text for text in said.values())


def test_dump_log_reads_a_directory_after_kill_and_recovery(
    own_broker: OwnedNode, kafka_tools: ToolServer
) -> None:
    """The same after kill -9, once the broker has started again and stopped."""
    counts = fill(own_broker)
    own_broker.kill()
    own_broker.start()
    with own_broker.connect() as connection:
        for name, count in counts.items():
            topic, _, partition = name.rpartition("-")
            wire.wait_until_led(connection, topic, int(partition) + 1, 30.0)
            verify_partition(connection, topic, int(partition), expected_records=count)
    own_broker.stop()
    check_directory(kafka_tools, own_broker.data_directory, counts)


@pytest.mark.parametrize("ending", ["clean", "killed"])
def test_broker_starts_on_a_directory_that_kafka_wrote(
    tmp_path: Path, kafka_tools: ToolServer, ran: Callable[[str], None], ending: str
) -> None:
    """Topics, records of all codecs and committed offsets of released Kafka are served on."""
    kafka = KafkaNode(tmp_path / "kafka", PROPERTIES)
    kafka.start()
    counts = fill(kafka)
    Confluent().produce(
        kafka.address, "grouped", [Sent(b"k", b"%d" % n) for n in range(20)], codec="none"
    )
    assert len(AioKafka().consume(kafka.address, "grouped", 20, group="moved")) == 20
    with kafka.connect() as connection:
        wire.produce(connection, "grouped", 0, wire.record_batch([b"after the commit"]))
    if ending == "clean":
        kafka.stop()
    else:
        kafka.kill()

    node = new_node(tmp_path / "next", {"node.id": "1"})
    if BROKER == "kafka":
        node.port, node.second_port = kafka.port, kafka.second_port
    node.data_directory = kafka.data_directory
    node.start()
    try:
        with node.connect() as connection:
            for name, count in counts.items():
                topic, _, partition = name.rpartition("-")
                wire.wait_until_led(connection, topic, int(partition) + 1, 30.0)
                verify_partition(connection, topic, int(partition), expected_records=count)
        records = sample()
        found = AioKafka().consume(node.address, "append-time", 1800, group="new")
        assert [offset for offset, _ in found] == list(range(1800))
        assert found[0][1].value == b"0-0" + b"." * 1500
        moved = AioKafka().consume(node.address, "grouped", 1, group="moved")
        assert moved == [(20, Sent(None, b"after the commit"))]
        Confluent().produce(node.address, "mixed", records, codec="zstd", partition=1)
        expected = counts["mixed-1"] + len(records)
        text = kafka_tools.tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", node.address, "--topic", "mixed", "--partition", "1"),
            *("--offset", "earliest", "--timeout-ms", "60000", "--max-messages", str(expected)),
            *("--formatter-property", "print.offset=true"),
        ).stderr
        assert f"Processed a total of {expected} messages" in text
    finally:
        node.stop()
    counts["mixed-1"] += len(records)
    check_directory(kafka_tools, node.data_directory, counts)


def stored(partition: Path) -> list[tuple[int, bytes | None, bytes | None]]:
    """The records in the segments of a log that nobody has open."""
    found = []
    for path in sorted(partition.glob("*.log")):
        for batch in batches_of(path):
            records = iterate_records(batch, max_size=1 << 20)
            found += [(one.offset, one.key, one.value) for one in records]
    return found


def batches_of(path: Path) -> Iterator[memoryview]:
    """The whole batches of a segment."""
    data = memoryview(path.read_bytes())
    for position, header in iterate_batches(data, allow_partial=True):
        yield data[position : position + header.size]


def gaps_between_segments(partition: Path) -> int:
    """How often a segment ends before the next one begins."""
    paths = sorted(partition.glob("*.log"))
    ends = []
    for path in paths:
        headers = [header for _, header in iterate_batches(memoryview(path.read_bytes()))]
        ends.append(headers[-1].next_offset if headers else int(path.stem))
    return sum(end < int(path.stem) for end, path in zip(ends, paths[1:], strict=False))


@pytest.mark.skipif(BROKER == "kafka", reason="it is Kafka's directory")
def test_what_kafkas_cleaner_has_left_out_is_no_loss(
    tmp_path: Path,
) -> None:
    """Killed, with gaps above its recovery points: all is served, after kills of ours as well."""
    often = {"log.cleaner.backoff.ms": "100", "log.flush.offset.checkpoint.interval.ms": "3600000"}
    kafka = KafkaNode(tmp_path / "kafka", {**PROPERTIES, **often})
    kafka.start()
    with kafka.connect() as connection:
        compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        wire.create_topic(connection, "state", 1, {**compact, "segment.bytes": "1048576"})
        keys = [b"%d" % key for key in (*range(400), *range(400))]
        Random(1).shuffle(keys)
        now_ms = int(time.time() * 1000)
        for key in keys:
            batch = build_batch([(key, key + b"." * 10_000, (), now_ms)])
            wire.produce(connection, "state", 0, bytes(batch))
    partition = kafka.data_directory / "state-0"
    deadline = time.monotonic() + 120.0
    while len(stored(partition)) > 600 or list(partition.glob("*.cleaned")):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    kafka.kill()
    assert gaps_between_segments(partition) > 0
    expected = stored(partition)
    assert {key for _, key, _ in expected} == set(keys)

    node = new_node(tmp_path / "next", {"node.id": "1", "log.cleaner.enable": "false"})
    node.data_directory = kafka.data_directory
    endings: tuple[Callable[[], object], ...] = (node.kill, node.stop, node.kill, node.stop)
    for number, ends in enumerate(endings):
        node.start()
        try:
            with node.connect() as connection:
                wire.wait_until_led(connection, "state", 1, 30.0)
            group = f"after-{number}"
            found = AioKafka().consume(node.address, "state", len(expected), group=group)
        finally:
            ends()
        assert [(offset, one.key, one.value) for offset, one in found] == expected
    assert not list(partition.glob("set-aside-*"))
    # And back: Kafka passes over the row that says who wrote the checkpoint, and leaves it out.
    recovery_points = kafka.data_directory / RECOVERY_POINT_CHECKPOINT
    assert NO_GAPS_ABOVE.topic in recovery_points.read_text()
    # Its cleaner would go on, and leave out more than is waited for.
    kafka.properties["log.cleaner.enable"] = "false"
    kafka.start()
    try:
        found = AioKafka().consume(kafka.address, "state", len(expected), group="back")
    finally:
        kafka.stop()
    assert [(offset, one.key, one.value) for offset, one in found] == expected
    assert NO_GAPS_ABOVE.topic not in recovery_points.read_text()


@pytest.mark.skipif(BROKER == "kafka", reason="Kafka makes them anew, or will not start")
def test_what_lies_on_a_kafkas_disk_that_is_not_mounted_is_missed(
    tmp_path: Path, kafka_tools: ToolServer
) -> None:
    """Its metadata log says which directory each partition is in; with the disk all is there."""
    first, second = tmp_path / "first", tmp_path / "second"
    places = {"log.dirs": f"{first},{second}", "metadata.log.dir": str(tmp_path / "metadata")}
    kafka = KafkaNode(tmp_path / "kafka", {**PROPERTIES, **places})
    kafka.start()
    with kafka.connect() as connection:
        wire.create_topic(connection, "spread", 6, {"retention.ms": "-1"})
        for index in range(6):
            wire.produce(connection, "spread", index, wire.record_batch([b"kept"]))
    kafka.stop()
    away = {int(path.name.rpartition("-")[2]) for path in second.glob("spread-*")}
    assert 0 < len(away) < 6
    second.rename(tmp_path / "away")
    second.mkdir()

    node = new_node(tmp_path / "next", places)
    node.start()
    with node.connect() as connection:
        deadline = time.monotonic() + 30.0
        answers = wire.list_offsets(connection, "spread", range(6), -1)
        while {i for i, (code, _) in answers.items() if code} != away:
            assert time.monotonic() < deadline, answers
            time.sleep(0.05)
            answers = wire.list_offsets(connection, "spread", range(6), -1)
        for index in set(range(6)) - away:
            verify_partition(connection, "spread", index, expected_records=1)
    node.stop()
    assert {path.name for path in second.iterdir()} == {".lock"}
    (second / ".lock").unlink()
    second.rmdir()
    (tmp_path / "away").rename(second)
    node.start()
    with node.connect() as connection:
        wire.wait_until_led(connection, "spread", 6, 30.0)
        for index in range(6):
            verify_partition(connection, "spread", index, expected_records=1)
    node.stop()


def test_kafkas_tool_moves_a_partition_to_another_directory(
    tmp_path: Path, kafka_tools: ToolServer
) -> None:
    """It throttles the move, asks how far it is and takes the throttle away again."""
    first, second = tmp_path / "first", tmp_path / "second"
    node = new_node(tmp_path / "node", {"log.dirs": f"{first},{second}", "node.id": "1"})
    node.start()
    with node.connect() as connection:
        wire.create_topic(connection, "moved", 1, {})
        for _ in range(50):
            wire.produce(connection, "moved", 0, wire.record_batch([b"x" * 1000]))
    target = second if (first / "moved-0").exists() else first
    plan = tmp_path / "plan.json"
    one = {"topic": "moved", "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [one]}))

    def reassign(*options: str) -> str:
        words = ("--bootstrap-server", node.address, "--reassignment-json-file", str(plan))
        return kafka_tools.tool(REASSIGN_PARTITIONS, *words, *options, timeout_s=120).stdout

    said = reassign("--execute", "--replica-alter-log-dirs-throttle", "10000000")
    assert f"Successfully started moving log directory to {target} for replica moved-0" in said
    deadline = time.monotonic() + 60.0
    while "Reassignment of replica moved-0-1 completed successfully." not in reassign("--verify"):
        assert time.monotonic() < deadline
    assert (target / "moved-0").exists()
    with node.connect() as connection:
        wire.wait_until_led(connection, "moved", 1, 30.0)
        verify_partition(connection, "moved", 0, expected_records=50)
    node.stop()
