"""`varve dump-log`."""

import argparse
import json
from pathlib import Path
from uuid import UUID

import pytest

from cli.records.dump_log import DAMAGED, OK, UNREADABLE, add_arguments, run
from config.topic import TopicConfig
from protocol.internal.consumer_offsets import (
    OffsetCommitValue,
    encode_group_metadata_key,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock

NOW = 1_700_000_000_000
Rows = list[dict[str, object]]


def dump(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Rows]:
    """Run the command with --json: exit status and rows, without the file's name."""
    status = call(*words, "--json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row in rows:
        row.pop("file")
    return status, rows


def call(*words: object) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(word) for word in words]))


def produce(log: Log, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
    log.writer.append_as_leader(memoryview(batch), leader_epoch=7, now_ms=NOW, origin=origin)
    log.update_high_watermark(log.log_end_offset)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory after a clean stop: plain, compressed and aborted batches."""
    clock = ManualClock(NOW)
    environment = Environment.without_loop(
        filesystem=LocalFilesystem(), clock=clock, randomness=SeededRandomness(1)
    )
    manager = LogManager(environment, [str(tmp_path)])
    manager.startup.open_directories()
    manager.startup.claim("cluster", 4)
    manager.startup.load(lambda _topic: TopicConfig())
    log = manager.creation.get_or_create(
        TopicPartition("events", 0), UUID(int=1 << 100), TopicConfig(index_interval_bytes=0)
    )
    produce(log, build_batch([(b"k", b"v1", (("h", b"\xff"),), NOW), (None, None, (), NOW + 5)]))
    produce(log, build_batch([(b"k", b"v2", (), NOW)], codec=4))
    produce(
        log,
        build_batch(
            [(b"k", b"v3", (), NOW)], producer_id=9, producer_epoch=1, base_sequence=0,
            transactional=True,
        ),
    )  # fmt: skip
    marker = build_end_transaction_marker(
        producer_id=9, producer_epoch=1, commit=False, coordinator_epoch=3, timestamp_ms=NOW
    )
    produce(log, marker, AppendOrigin.COORDINATOR)
    manager.shutdown()
    return tmp_path


def segment(data: Path, kind: str) -> Path:
    return data / "events-0" / f"{0:020d}.{kind}"


def test_batches(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each, in Kafka's words."""
    status, rows = dump(capsys, segment(data, "log"))
    assert status == OK
    assert [(row["baseOffset"], row["lastOffset"], row["count"]) for row in rows] == [
        (0, 1, 2),
        (2, 2, 1),
        (3, 3, 1),
        (4, 4, 1),
    ]
    assert [row["compresscodec"] for row in rows] == ["none", "zstd", "none", "none"]
    assert [row["isControl"] for row in rows] == [False, False, False, True]
    assert {row["partitionLeaderEpoch"] for row in rows} == {7}
    assert all(row["isvalid"] for row in rows)
    assert rows[0]["CreateTime"] == NOW + 5


def test_records(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--deep shows sizes, --print-data-log the content, markers their type."""
    _, rows = dump(capsys, "--deep", segment(data, "log"))
    deep = [row for row in rows if "keySize" in row]
    assert [(row["offset"], row["keySize"], row["valueSize"]) for row in deep[:3]] == [
        (0, 1, 2),
        (1, -1, -1),
        (2, 1, 2),
    ]
    assert "payload" not in deep[0]
    assert deep[-1]["endTxnMarker"] == "ABORT"
    assert deep[-1]["coordinatorEpoch"] == 3
    _, rows = dump(capsys, "--print-data-log", segment(data, "log"))
    full = [row for row in rows if "keySize" in row]
    assert (full[0]["key"], full[0]["payload"], full[0]["headers"]) == ("k", "v1", [["h", "\\xff"]])
    assert (full[1]["key"], full[1]["payload"]) == (None, None)
    assert full[3]["sequence"] == 0


def test_indexes_agree_with_the_log(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Offset, time and transaction index of a segment."""
    _, batches = dump(capsys, segment(data, "log"))
    status, rows = dump(capsys, segment(data, "index"))
    assert status == OK
    positions = {row["position"]: row["lastOffset"] for row in batches}
    assert rows
    assert all(positions[row["position"]] == row["offset"] for row in rows)
    status, rows = dump(capsys, segment(data, "timeindex"))
    assert (status, rows[-1]) == (OK, {"timestamp": NOW + 5, "offset": 1})
    status, rows = dump(capsys, segment(data, "txnindex"))
    assert (status, rows) == (
        OK,
        [{"version": 0, "producerId": 9, "firstOffset": 3, "lastOffset": 4, "lastStableOffset": 5}],
    )


def test_small_files(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Snapshot, checkpoints, partition.metadata, meta.properties, marker."""
    partition = data / "events-0"
    _, [producer] = dump(capsys, partition / f"{5:020d}.snapshot")
    assert (producer["producerId"], producer["lastOffset"], producer["coordinatorEpoch"]) == (
        9,
        3,
        3,
    )
    _, rows = dump(capsys, partition / "leader-epoch-checkpoint")
    assert rows == [{"epoch": 7, "startOffset": 0}]
    _, rows = dump(capsys, partition / "partition.metadata")
    assert rows == [{"topicId": "AAAAEAAAAAAAAAAAAAAAAA"}]
    _, rows = dump(capsys, data / "recovery-point-offset-checkpoint")
    assert rows == [
        {"topic": "events", "partition": 0, "offset": 5},
        {"topic": "varve:no-gaps-above", "partition": 0, "offset": 0},
    ]
    _, [meta] = dump(capsys, data / "meta.properties")
    assert (meta["clusterId"], meta["nodeId"]) == ("cluster", 4)
    assert dump(capsys, data / ".kafka_cleanshutdown") == (OK, [{"brokerEpoch": -1}])


def test_whole_directory(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All files in it that mean something."""
    (data / "events-0" / "notes.txt").write_text("mine")
    assert call(data / "events-0") == OK
    printed = capsys.readouterr().out
    for kind in ("log", "index", "timeindex", "txnindex"):
        assert f"Dumping {segment(data, kind)}" in printed
    assert "notes.txt" not in printed
    assert "baseOffset: 0 lastOffset: 1 count: 2" in printed
    assert "isTransactional: false" in printed


def test_consumer_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--offsets-decoder reads what the group coordinator wrote; tombstones have no payload."""
    rows = [
        (encode_offset_commit_key("g", "t", 2), encode_offset_commit_value(OffsetCommitValue(42))),
        (encode_group_metadata_key("g"), None),
        (b"\0", b"x"),
    ]
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join(bytes(build_batch([(k, v, (), NOW)])) for k, v in rows))
    status, found = dump(capsys, "--offsets-decoder", path)
    assert status == DAMAGED
    decoded = [row for row in found if "keySize" in row]
    assert decoded[0]["key"] == {"group": "g", "topic": "t", "partition": 2}
    payload = decoded[0]["payload"]
    assert isinstance(payload, dict)
    assert payload["offset"] == 42
    assert decoded[1] | {"key": {"group": "g"}, "payload": None} == decoded[1]
    assert "damage" in found[-1]


def test_damage_is_shown_and_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1, and a row that says what is wrong, for every kind of file."""
    log = segment(data, "log")
    whole = log.read_bytes()
    log.write_bytes(whole[:-1])
    status, rows = dump(capsys, log)
    assert status == DAMAGED
    assert "damage" in rows[-1]
    assert len(rows) == 4
    flipped = bytearray(whole)
    flipped[62] ^= 1
    log.write_bytes(flipped)
    status, rows = dump(capsys, log)
    assert (status, rows[0]["isvalid"], "damage" in rows[0], len(rows)) == (DAMAGED, False, True, 4)
    log.write_bytes(whole)
    for path in (
        segment(data, "index"),
        segment(data, "timeindex"),
        segment(data, "txnindex"),
        data / "events-0" / f"{5:020d}.snapshot",
        data / "events-0" / "leader-epoch-checkpoint",
        data / "events-0" / "partition.metadata",
        data / "recovery-point-offset-checkpoint",
        data / "meta.properties",
    ):
        content = path.read_bytes()
        path.write_bytes(content[:-1] if path.suffix != ".properties" else b"x")
        status, rows = dump(capsys, path)
        damaged = status == DAMAGED and "damage" in rows[-1]
        # Without its last LF a table still says the same.
        assert damaged or content.endswith(b"\n"), path
        path.write_bytes(content)


def test_preallocated_rest_is_no_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Zeros behind the last batch or entry are room."""
    for kind in ("log", "index", "timeindex"):
        path = segment(data, kind)
        _, before = dump(capsys, path)
        path.write_bytes(path.read_bytes() + bytes(2400))
        assert dump(capsys, path) == (OK, before)


def test_index_that_disagrees_is_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An entry must name the last offset of the batch that begins there."""
    path = segment(data, "index")
    content = bytearray(path.read_bytes())
    content[3] += 1
    path.write_bytes(content)
    status, rows = dump(capsys, path)
    assert status == DAMAGED
    assert "batch there ends with" in str(rows[0]["damage"])


def test_unknown_and_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, one line each on standard error, no traceback."""
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    assert call(other, tmp_path / f"{0:020d}.log", tmp_path / "meta.properties") == UNREADABLE
    assert len(capsys.readouterr().err.splitlines()) == 3
