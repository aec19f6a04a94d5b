"""Removal of a lost log directory: its partitions get empty logs in other directories.

Each gets another leader epoch, so that consumers and followers that knew the old log can tell, and
no directory; the next start chooses one. Works on the store of a broker that does not run.

In a cluster only its controller changes partitions: there the broker's own word for the directory
is taken back. Its next life begins those replicas empty, says where they are, and follows.
"""

from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import directory_key
from broker.controller.store.metadata_store import Delete, MetadataStore
from broker.controller.store.store_writer import StoreWriter, Unit
from broker.controller.topic_planner import changed_partitions, in_new_epoch


async def read_image(store: MetadataStore) -> ClusterImage:
    """What the store says.

    Raises:
        MetadataFormatError: It cannot be read.
    """
    content = await store.range("")
    items = ((item.key, item.value) for item in content.items)
    return ClusterImage.empty().updated(items, content.revision)


async def forget_directory(store: MetadataStore, node_id: int, directory_id: UUID) -> int:
    """Give up a log directory of a member of a cluster; the number of replicas it had.

    Raises:
        MetadataFormatError: The store cannot be read.
        StoreError: The store refused.
    """
    image = await read_image(store)
    await store.txn(then=[Delete(directory_key(node_id, directory_id))])
    return sum(
        partition.directory_on(node_id) == directory_id
        for topic in image.topics.values()
        for partition in topic.partitions
    )


async def drop_directory(store: MetadataStore, node_id: int, directory_id: UUID) -> int:
    """Remove a log directory; the number of partitions that get empty logs.

    May be called again if it was broken off: the directory is forgotten last.

    Raises:
        MetadataFormatError: The store cannot be read.
        StoreError: The store refused.
    """
    image = await read_image(store)
    units = []
    count = 0
    for topic in image.topics.values():
        changed = [p.index for p in topic.partitions if p.directory_on(node_id) == directory_id]
        if not changed:
            continue
        count += len(changed)
        partitions = [
            in_new_epoch(p.placed(node_id, None)) if p.index in set(changed) else p
            for p in topic.partitions
        ]
        units.append(changed_partitions(topic, partitions, changed))
    key = directory_key(node_id, directory_id)
    units.append(Unit(compare=(), operations=(Delete(key),)))
    outcome = await StoreWriter(store).commit(units)
    for error in outcome.errors:
        if error is not None:
            raise error
    return count
