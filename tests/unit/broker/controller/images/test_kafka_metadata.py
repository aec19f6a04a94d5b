"""Kafka's metadata log is read as far as we need it, and damage ends the reading."""

from pathlib import Path
from struct import Struct
from uuid import UUID

import pytest

from broker.controller.images.kafka_metadata import (
    METADATA_DIRECTORY,
    KafkaMetadata,
    read_kafka_metadata,
)
from protocol.errors import DecodeError
from protocol.primitives import encode_compact_string
from protocol.records.builder import build_batch
from storage.environment.local_filesystem import LocalFilesystem

LOG = "00000000000000000000.log"


def config_record(resource_type: int, resource: str, key: str, text: str | None) -> bytes:
    names = encode_compact_string(resource) + encode_compact_string(key)
    return bytes((1, 4, 0, resource_type)) + names + encode_compact_string(text) + b"\0"


def producer_ids_record(next_id: int) -> bytes:
    return bytes((1, 15, 0)) + Struct(">iqq").pack(1, 1, next_id) + b"\0"


def topic_record(name: str, topic_id: UUID) -> bytes:
    return bytes((1, 2, 0)) + encode_compact_string(name) + topic_id.bytes + b"\0"


def remove_topic_record(topic_id: UUID) -> bytes:
    return bytes((1, 9, 0)) + topic_id.bytes + b"\0"


def partition_record(
    topic_id: UUID, index: int, replicas: tuple[int, ...], directories: tuple[UUID, ...] = ()
) -> bytes:
    """Version 1."""
    array = bytes((len(replicas) + 1,)) + Struct(f">{len(replicas)}i").pack(*replicas)
    ids = bytes((len(directories) + 1,)) + b"".join(one.bytes for one in directories)
    body = Struct(">i").pack(index) + topic_id.bytes + array + array + b"\1\1"
    return bytes((1, 3, 1)) + body + Struct(">iii").pack(replicas[0], 5, 6) + ids + b"\0"


def moved_record(topic_id: UUID, index: int, directory: UUID) -> bytes:
    """A PartitionChangeRecord with another ISR and another directory."""
    tags = bytes((2, 0, 5, 2)) + Struct(">i").pack(1) + bytes((8, 17, 2)) + directory.bytes
    return bytes((1, 5, 1)) + Struct(">i").pack(index) + topic_id.bytes + tags


def write(log_dir: Path, *values: bytes, name: str = LOG, base_offset: int = 0) -> Path:
    directory = log_dir / METADATA_DIRECTORY
    directory.mkdir(exist_ok=True)
    path = directory / name
    with path.open("ab") as file:
        records = [(None, value, (), 0) for value in values]
        file.write(build_batch(records, base_offset=base_offset))
    return path


def read(log_dir: Path) -> KafkaMetadata:
    found = read_kafka_metadata(LocalFilesystem(), str(log_dir))
    assert found is not None
    return found


def test_a_directory_without_metadata_log(tmp_path: Path) -> None:
    assert read_kafka_metadata(LocalFilesystem(), str(tmp_path)) is None


def test_later_records_replace_earlier_ones(tmp_path: Path) -> None:
    write(
        tmp_path,
        config_record(2, "t", "retention.ms", "1"),
        config_record(2, "t", "segment.bytes", "2"),
        config_record(2, "t", "retention.ms", "3"),
        config_record(2, "t", "segment.bytes", None),
        bytes((1, 99, 0, 1, 2, 3)),
    )
    assert read(tmp_path).configs == {(2, "t"): {"retention.ms": "3"}}


def test_a_snapshot_stands_for_what_came_before_it(tmp_path: Path) -> None:
    write(tmp_path, config_record(2, "t", "a", "old"), config_record(2, "t", "b", "gone"))
    write(tmp_path, config_record(2, "t", "c", "new"), base_offset=2)
    snapshot = "00000000000000000002-0000000001.checkpoint"
    write(tmp_path, config_record(2, "t", "a", "kept"), name=snapshot)
    assert read(tmp_path).configs == {(2, "t"): {"a": "kept", "c": "new"}}


def test_topics_and_who_holds_their_partitions(tmp_path: Path) -> None:
    a, b, here, there = (UUID(int=n) for n in (1000, 1001, 1002, 1003))
    write(
        tmp_path,
        topic_record("a", a),
        topic_record("b", b),
        config_record(2, "b", "retention.ms", "1"),
        partition_record(a, 0, (1, 2), (here, there)),
        partition_record(a, 1, (1,)),
        partition_record(b, 0, (1,), (here,)),
        moved_record(a, 1, there),
        remove_topic_record(b),
    )
    found = read(tmp_path)
    assert found.topics == {"a": a}
    assert found.partitions == {a: {0: ((1, 2), (here, there)), 1: ((1,), (there,))}}
    assert found.configs == {}


def test_a_log_without_its_beginning_is_none(tmp_path: Path) -> None:
    """Who knows what it said; with a snapshot it is known."""
    write(
        tmp_path,
        config_record(2, "t", "a", "x"),
        name="00000000000000000007.log",
        base_offset=7,
    )
    assert read_kafka_metadata(LocalFilesystem(), str(tmp_path)) is None
    snapshot = "00000000000000000007-0000000001.checkpoint"
    write(tmp_path, config_record(2, "t", "b", "y"), name=snapshot)
    assert read(tmp_path).configs == {(2, "t"): {"a": "x", "b": "y"}}


def test_a_damaged_tail_ends_the_reading(tmp_path: Path) -> None:
    path = write(tmp_path, producer_ids_record(1000))
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 100)
    assert read(tmp_path).next_producer_id == 1000
    path.write_bytes(whole + build_batch([(None, b"\xff\xff", (), 0)])[:-3])
    assert read(tmp_path).next_producer_id == 1000


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x02\x04\0",
        bytes((1, 4, 0)),
        bytes((1, 15, 0, 1)),
        bytes((1, 2, 0, 2, 65)),
        bytes((1, 9, 0, 1)),
        bytes((1, 3, 0)) + bytes(20) + b"\xff\xff\x7f",
    ],
)
def test_damaged_records_are_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        KafkaMetadata().apply(value)
