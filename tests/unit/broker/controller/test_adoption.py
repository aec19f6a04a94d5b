"""Directories that a released Kafka wrote are taken over whole."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.controller.adoption import (
    UNKNOWN_PRODUCER_IDS_START,
    UNKNOWN_SETTINGS,
    adopt,
    scan_log_dirs,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import PRODUCER_IDS_KEY, decode_next_producer_id
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.checkpoints.log_directory import LOST
from storage.checkpoints.partition_metadata import PARTITION_METADATA, encode_partition_metadata
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.broker.metadata_store import MemoryStore
from tests.unit.broker.controller.images.test_kafka_metadata import (
    config_record,
    partition_record,
    producer_ids_record,
    topic_record,
    write,
)

TOPIC_ID = UUID(int=0x1234, version=4)


def partition(log_dir: Path, name: str, topic_id: UUID | None = TOPIC_ID, epoch: int = 0) -> None:
    path = log_dir / name
    path.mkdir(parents=True)
    filesystem = LocalFilesystem()
    if topic_id is not None:
        (path / PARTITION_METADATA).write_bytes(encode_partition_metadata(topic_id))
    if epoch:
        LeaderEpochCache(str(path / "leader-epoch-checkpoint"), filesystem).assign(epoch, 10)


async def adopted(*log_dirs: Path) -> tuple[ClusterImage, MemoryStore, int]:
    found = scan_log_dirs(LocalFilesystem(), map(str, log_dirs))
    store = MemoryStore()
    count = await adopt(store, found, node_id=3, randomness=SeededRandomness(1))
    content = await store.range("")
    image = ClusterImage.empty().updated(((i.key, i.value) for i in content.items), 1)
    return image, store, count


async def test_topics_keep_their_ids_partitions_and_epochs(tmp_path: Path) -> None:
    partition(tmp_path / "a", "events-0", epoch=4)
    partition(tmp_path / "b", "events-2")
    partition(tmp_path / "b", "old-0.0123456789abcdef0123456789abcdef-delete")
    (tmp_path / "a" / "unrelated").mkdir()
    image, _, count = await adopted(tmp_path / "a", tmp_path / "b")
    assert count == 1
    topic = image.topics["events"]
    assert topic.topic_id == TOPIC_ID
    assert [p.leader_epoch for p in topic.partitions] == [4, 0, 0]
    assert {p.leader for p in topic.partitions} == {3}


async def test_settings_and_producer_ids_come_from_kafkas_metadata_log(tmp_path: Path) -> None:
    partition(tmp_path, "events-0")
    write(
        tmp_path,
        config_record(2, "events", "retention.ms", "1000"),
        config_record(2, "events", "no.such.setting", "x"),
        producer_ids_record(7000),
    )
    image, store, _ = await adopted(tmp_path)
    assert dict(image.topics["events"].overrides) == {"retention.ms": "1000"}
    item = await store.get(PRODUCER_IDS_KEY)
    assert item is not None
    assert decode_next_producer_id(item.value) == 7000


async def test_producer_ids_are_never_reused_when_nothing_tells_them(tmp_path: Path) -> None:
    partition(tmp_path, "events-0")
    _, store, _ = await adopted(tmp_path)
    item = await store.get(PRODUCER_IDS_KEY)
    assert item is not None
    assert decode_next_producer_id(item.value) == UNKNOWN_PRODUCER_IDS_START


@pytest.mark.parametrize("topic_id", [None])
async def test_a_topic_without_an_id_gets_one(tmp_path: Path, topic_id: UUID | None) -> None:
    partition(tmp_path, "events-0", topic_id)
    image, _, _ = await adopted(tmp_path)
    assert image.topics["events"].topic_id.int != 0


DISK = UUID(int=0x5678, version=4)


async def test_partitions_on_a_disk_that_is_not_here_are_missed(tmp_path: Path) -> None:
    """Kafka says where each replica lies; an empty log would hide where its records are."""
    partition(tmp_path, "events-0")
    other, elsewhere = UUID(int=0x1235, version=4), UUID(int=0x1236, version=4)
    write(
        tmp_path,
        topic_record("events", TOPIC_ID),
        partition_record(TOPIC_ID, 0, (3,), (DISK,)),
        partition_record(TOPIC_ID, 1, (3,), (DISK,)),
        partition_record(TOPIC_ID, 2, (4,), (DISK,)),
        partition_record(TOPIC_ID, 3, (4, 3)),
        topic_record("whole", other),
        partition_record(other, 0, (3,), (DISK,)),
        topic_record("others", elsewhere),
        partition_record(elsewhere, 0, (4,), (DISK,)),
    )
    image, _, count = await adopted(tmp_path)
    assert count == 2
    assert [p.directories for p in image.topics["events"].partitions] == [(), (DISK,), (), (LOST,)]
    assert image.topics["whole"].topic_id == other
    assert [p.directories for p in image.topics["whole"].partitions] == [(DISK,)]
    assert "others" not in image.topics
    assert image.directories == {DISK: (3, ""), LOST: (3, "")}


async def test_without_a_metadata_log_what_lies_between_is_missed(tmp_path: Path) -> None:
    """Partition 1 was somewhere."""
    partition(tmp_path, "events-0")
    partition(tmp_path, "events-2")
    image, _, _ = await adopted(tmp_path)
    assert [p.directories for p in image.topics["events"].partitions] == [(), (LOST,), ()]


async def test_settings_of_another_incarnation_are_not_the_topics(tmp_path: Path) -> None:
    """The metadata log knows a topic of that name with another id."""
    partition(tmp_path, "events-0")
    write(
        tmp_path,
        topic_record("events", UUID(int=0x9999, version=4)),
        config_record(2, "events", "retention.ms", "1"),
    )
    image, _, _ = await adopted(tmp_path)
    assert dict(image.topics["events"].overrides) == dict(UNKNOWN_SETTINGS)


async def test_internal_topics_have_their_own_settings_in_any_case(tmp_path: Path) -> None:
    """Under what Kafka says of them, if it does."""
    for index, name in enumerate(("__consumer_offsets", "__share_group_state")):
        partition(tmp_path, f"{name}-0", UUID(int=index + 1, version=4))
    image, _, _ = await adopted(tmp_path)
    assert image.topics["__consumer_offsets"].overrides["cleanup.policy"] == "compact"
    assert image.topics["__share_group_state"].overrides["retention.ms"] == "-1"
    write(tmp_path, config_record(2, "__consumer_offsets", "segment.bytes", "2000000"))
    image, _, _ = await adopted(tmp_path)
    overrides = image.topics["__consumer_offsets"].overrides
    assert (overrides["cleanup.policy"], overrides["segment.bytes"]) == ("compact", "2000000")


async def test_what_is_in_remote_storage_stays_reachable(tmp_path: Path) -> None:
    """Of a node that lost its store: a log that begins behind its log start is tiered."""
    partition(tmp_path, "events-0")
    (tmp_path / "events-0" / "00000000000000000500.log").write_bytes(b"")
    partition(tmp_path, "plain-0", UUID(int=5, version=4))
    (tmp_path / "plain-0" / "00000000000000000700.log").write_bytes(b"")
    (tmp_path / "log-start-offset-checkpoint").write_bytes(b"0\n1\nplain 0 700\n")
    found = scan_log_dirs(LocalFilesystem(), [str(tmp_path)])
    found.is_ours = True
    store = MemoryStore()
    await adopt(store, found, node_id=3, randomness=SeededRandomness(1))
    content = await store.range("")
    image = ClusterImage.empty().updated(((i.key, i.value) for i in content.items), 1)
    assert image.topics["events"].overrides["remote.storage.enable"] == "true"
    assert dict(image.topics["plain"].overrides) == dict(UNKNOWN_SETTINGS)
