"""Directories that a released Kafka wrote are taken over whole."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.controller.adoption import UNKNOWN_PRODUCER_IDS_START, adopt, look_around
from broker.controller.cluster_image import ClusterImage
from broker.controller.metadata_records import PRODUCER_IDS_KEY, decode_next_producer_id
from storage.filesystem import LocalFilesystem
from storage.leader_epochs import LeaderEpochCache
from storage.partition_metadata import PARTITION_METADATA, write_partition_metadata
from storage.randomness import SeededRandomness
from tests.fakes.metadata_store import MemoryStore
from tests.unit.broker.controller.test_kafka_metadata import (
    config_record,
    producer_ids_record,
    write,
)

TOPIC_ID = UUID(int=0x1234, version=4)


def partition(log_dir: Path, name: str, topic_id: UUID | None = TOPIC_ID, epoch: int = 0) -> None:
    path = log_dir / name
    path.mkdir(parents=True)
    filesystem = LocalFilesystem()
    if topic_id is not None:
        write_partition_metadata(filesystem, str(path / PARTITION_METADATA), topic_id)
    if epoch:
        LeaderEpochCache(str(path / "leader-epoch-checkpoint"), filesystem).assign(epoch, 10)


async def adopted(*log_dirs: Path) -> tuple[ClusterImage, MemoryStore, int]:
    found = look_around(LocalFilesystem(), map(str, log_dirs))
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
