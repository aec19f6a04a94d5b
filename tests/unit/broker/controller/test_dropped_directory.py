"""A lost log directory is given up."""

from uuid import UUID

from broker.controller.dropped_directory import drop_directory, forget_directory, read_image
from broker.controller.images.metadata_records import (
    chunks,
    directory_key,
    encode_directory,
    encode_topic,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import Put
from tests.fakes.broker.metadata_store import MemoryStore

TOPIC, LOST_DISK, DISK = UUID(int=1000), UUID(int=2000), UUID(int=2001)


async def test_its_partitions_are_nowhere_and_in_another_epoch() -> None:
    """The others are as they were, also in chunks of their own."""
    store = MemoryStore()
    before = [
        PartitionImage(i, 1, 4, 9, (1,), (1,), (LOST_DISK if i in (1, 130) else DISK,))
        for i in range(300)
    ]
    await store.txn(
        then=[
            Put(topic_key("t"), encode_topic(TOPIC)),
            *(Put(key, value) for key, value in chunks(TOPIC, before)),
            *(Put(directory_key(1, one), encode_directory("/x")) for one in (LOST_DISK, DISK)),
        ]
    )
    assert await drop_directory(store, 1, LOST_DISK) == 2
    image = await read_image(store)
    assert set(image.directories) == {DISK}
    for now, then in zip(image.topics["t"].partitions, before, strict=True):
        if now.index in (1, 130):
            assert (now.leader_epoch, now.partition_epoch, now.directories) == (5, 10, ())
        else:
            assert now == then
    assert await drop_directory(store, 1, LOST_DISK) == 0


async def test_a_member_takes_back_its_own_word_alone() -> None:
    """Partitions are the controller's: they still name the directory, which is known no more."""
    store = MemoryStore()
    lost, other = UUID(int=1001), UUID(int=1002)
    await store.txn(
        then=[
            Put(directory_key(1, lost), encode_directory("/lost")),
            Put(directory_key(1, other), encode_directory("/other")),
            Put(topic_key("t"), encode_topic(UUID(int=5000))),
            *(
                Put(key, value)
                for key, value in chunks(
                    UUID(int=5000), [PartitionImage(0, 2, 3, 4, (1, 2), (2,), (lost, other))]
                )
            ),
        ]
    )
    assert await forget_directory(store, 1, lost) == 1
    image = await read_image(store)
    assert set(image.directories) == {other}
    assert image.topics["t"].partitions[0].directories == (lost, other)
    assert image.topics["t"].partitions[0].partition_epoch == 4
