"""The hash of an image: equal on all brokers whose images are of one revision.

A topic's hash is kept as long as its part of the image is the same object, so that a scrape costs
by what has changed.
"""

import asyncio
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final
from uuid import UUID

from broker.controller.images.metadata_records import (
    encode_config,
    encode_features,
    encode_partitions,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage, TopicImage

BYTES: Final = 6
"""Of a hash: as many as a metric's value, a floating point number, holds exactly."""

SLICE: Final = 50
"""Topics hashed before the loop turns."""


class ImageHash:
    """Hashes one image after the other. Runs on the loop's thread."""

    def __init__(self) -> None:
        self._topics: dict[UUID, tuple[TopicImage, bytes]] = {}

    def __len__(self) -> int:
        return len(self._topics)

    async def of(self, image: "ClusterImage") -> int:
        """The image's hash, 0 to 2**48 - 1; the loop turns meanwhile."""
        known, self._topics = self._topics, {}
        parts: list[bytes] = []
        for number, topic in enumerate(sorted(image.topics.values(), key=_name), 1):
            before = known.get(topic.topic_id)
            if before is None or before[0] is not topic:
                before = (topic, _topic_hash(topic))
            self._topics[topic.topic_id] = before
            parts.append(before[1])
            if number % SLICE == 0:
                await asyncio.sleep(0)
        parts += _others(image)
        return int.from_bytes(blake2b(b"".join(parts), digest_size=BYTES).digest())


def _name(topic: "TopicImage") -> str:
    return topic.name


def _topic_hash(topic: "TopicImage") -> bytes:
    hashed = blake2b(f"{topic.name} {topic.topic_id}".encode(), digest_size=16)
    hashed.update(encode_partitions(topic.partitions))
    hashed.update(encode_config(topic.overrides))
    return hashed.digest()


def _others(image: "ClusterImage") -> Iterable[bytes]:
    yield f"{image.cluster_id} {image.controller_epoch}".encode()
    yield encode_features(image.features)
    for resource in sorted(image.configs):
        yield f"{resource.type} {resource.name}".encode() + encode_config(image.configs[resource])
    yield " ".join(sorted(map(str, image.deleted_topics))).encode()
    for directory_id in sorted(image.directories):
        yield f"{directory_id} {image.directories[directory_id]}".encode()
    for node_id, facts in sorted(image.facts.items()):
        epochs = (facts.epoch, facts.live, facts.draining, facts.fence, facts.suspected_by)
        yield f"{node_id} {epochs}".encode()
