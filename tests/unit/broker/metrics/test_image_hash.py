"""The hash of an image says whether two brokers have the same."""

from dataclasses import replace
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import (
    ConfigResource,
    ResourceType,
    chunks,
    config_key,
    encode_config,
    encode_features,
    encode_topic,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.metrics.image_hash import ImageHash

TOPIC = UUID(int=7 << 64)
PARTITION = PartitionImage(0, 1, 3, 4, (1, 2), (1, 2))


def image(
    *keys: tuple[str, bytes], name: str = "t", partition: PartitionImage = PARTITION
) -> ClusterImage:
    items = [(topic_key(name), encode_topic(TOPIC)), *chunks(TOPIC, [partition]), *keys]
    return ClusterImage.empty().updated(items, 9)


async def test_images_that_were_made_apart_are_equal_by_it() -> None:
    """Whatever order their keys came in; a revision in which nothing is shown changes nothing."""
    resource = config_key(ConfigResource(ResourceType.BROKER, "1"))
    other = config_key(ConfigResource(ResourceType.BROKER, "2"))
    pair = [(resource, encode_config({"a": "1"})), (other, encode_config({"b": "2"}))]
    one = await ImageHash().of(image(*pair))
    assert one == await ImageHash().of(image(*reversed(pair)))
    assert one == await ImageHash().of(replace(image(*pair), revision=10))
    assert 0 <= one < 1 << 48


async def test_whatever_differs_makes_another() -> None:
    hashed = ImageHash()
    resource = config_key(ConfigResource(ResourceType.TOPIC, "t"))
    images = [
        image(),
        image(name="u"),
        image(partition=replace(PARTITION, leader_epoch=4)),
        image(partition=replace(PARTITION, isr=(1,))),
        image((resource, encode_config({"a": "1"}))),
        image(("features", encode_features({}))),
        replace(image(), controller_epoch=5),
        replace(image(), deleted_topics=frozenset({TOPIC})),
    ]
    hashes = [await hashed.of(one) for one in images]
    assert len(set(hashes)) == len(images)
    assert [await hashed.of(one) for one in images] == hashes
    assert len(hashed) == 1
