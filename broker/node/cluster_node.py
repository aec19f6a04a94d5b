"""Whose a cluster's metadata store is: compared with what the log directories say, before anything.

directories that name the store's incarnation          ours
directories that are new                               they will name it
directories that name another, or the store has none   refused: emptied, restored, another's
directories with a store of a single node, or with     refused: their partitions are not in the
partitions of a Kafka                                  cluster's metadata
"""

from collections.abc import Sequence
from posixpath import join
from uuid import UUID

from broker.controller.images.metadata_records import INCARNATION_KEY
from broker.controller.images.store_marks import check_whole
from broker.controller.store.metadata_store import MetadataStore, StoreReplacedError
from broker.node.node_store import METADATA_FILE, NodeStoreError
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import highest_revision
from storage.environment.filesystem import Filesystem
from storage.types.uuid_text import format_uuid, parse_uuid


async def check_store(
    store: MetadataStore, directories: Sequence[LogDirectory], floor_revision: int
) -> None:
    """Refuse a store that is not the one these directories belong to.

    Args:
        store: Of the cluster; nothing is written to it.
        directories: Of the broker, locked.
        floor_revision: The highest revision that was ever seen.

    Raises:
        NodeStoreError: It is another one, or was emptied.
        StoreReplacedError: It is behind what was seen: restored from a copy.
        UnfinishedStoreError: Its contents are half of a copy or of a recovery.
        StoreError: It cannot be read.
    """
    await check_whole(store)
    named = {
        directory.path: directory.meta.store_id
        for directory in directories
        if directory.meta is not None and directory.meta.store_id is not None
    }
    item = await store.get(INCARNATION_KEY)
    incarnation = None if item is None else parse_uuid(item.value.decode())
    others = {path: store_id for path, store_id in named.items() if store_id != incarnation}
    if others:
        path, store_id = next(iter(others.items()))
        found = "it has none" if incarnation is None else f"it has {format_uuid(incarnation)}"
        raise NodeStoreError(
            f"log directory {path} belongs to another metadata store: it names incarnation "
            f"{format_uuid(store_id)}, and {found}. It was emptied or restored, or is another "
            "cluster's: leader epochs could repeat, so nothing is touched"
        )
    revision = (await store.range("", limit=1)).revision
    if revision < floor_revision:
        raise StoreReplacedError(
            f"the metadata store is at revision {revision} and has been at {floor_revision}: it "
            "was restored from a copy, or emptied. Leader epochs could repeat, so nothing is "
            "touched"
        )


async def incarnation_of(store: MetadataStore) -> UUID:
    """The store's incarnation, which a cluster that was opened has.

    Raises:
        NodeStoreError: It has gone meanwhile.
        StoreError: It cannot be read.
    """
    item = await store.get(INCARNATION_KEY)
    if item is None:
        raise NodeStoreError(f"the metadata store has lost {INCARNATION_KEY}")
    return parse_uuid(item.value.decode())


def check_directories(directories: Sequence[LogDirectory], filesystem: Filesystem) -> int:
    """Refuse directories with partitions that no cluster's metadata has. Blocks.

    Returns:
        The highest revision of the store that a process on them has seen.

    Raises:
        NodeStoreError: They are of a node that was alone, or of a Kafka.
        DiskError: A disk refused.
    """
    online = [directory for directory in directories if directory.is_online]
    for directory in online:
        path = join(directory.path, METADATA_FILE)
        if filesystem.exists(path):
            raise NodeStoreError(
                f"{path} is the metadata store of a node that was alone, and metadata.store names "
                "a cluster's: give this broker other log directories, or make it the first of a "
                "cluster with `varve metadata copy`"
            )
    if not any(d.meta is not None and d.meta.store_id is not None for d in online):
        for directory in online:
            if directory.partitions(with_topic_ids=False):
                raise NodeStoreError(
                    f"log directory {directory.path} holds partitions that are not this cluster's: "
                    "give this broker other log directories"
                )
    return highest_revision(filesystem, [directory.path for directory in online])
