"""The way back: the only broker that has partitions becomes a node that is alone.

    directories locked, no broker lives ──> every partition is here, and here only
    ──> mark in the cluster's store: left ──> the node's store under another name ──> renamed
    ──> directories name it

From the mark on no broker starts on the cluster's store. Broken off anywhere, the same command goes
on. Each partition begins another leader epoch, led by the node, as there is no controller to elect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import join
from typing import Final
from uuid import UUID

from broker.controller.images.broker_records import BROKER_KEYS
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.metadata_records import (
    CONTROLLER_KEY,
    INCARNATION_KEY,
    LIVE,
    PARTITIONS,
    STORE_KEY,
    chunks,
    encode_store_identity,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.images.store_marks import (
    ORIGIN_KEY,
    RECOVERY_KEY,
    Origin,
    OriginState,
    decode_origin,
)
from broker.controller.store.metadata_store import (
    KeyValue,
    MetadataStore,
    OutcomeUnknownError,
    Put,
    value_equals,
)
from broker.controller.store.sqlite_store import SqliteStore
from broker.controller.store.whole_range import whole_range
from broker.controller.topic_planner import fresh_id
from broker.node.moved_note import MOVED_FILE
from broker.node.node_store import NodeStore
from broker.node.store_file import METADATA_FILE, NEW_SUFFIX, SQLITE_SUFFIXES
from broker.offline.key_copy import TargetChangedError, make_equal
from broker.offline.to_cluster import CopyRefusedError, CopyReport
from storage.checkpoints.member_note import remove_member_note
from storage.checkpoints.meta_properties import META_PROPERTIES, write_meta_properties
from storage.types.uuid_text import parse_uuid

_NOT_A_NODES: Final = (
    *BROKER_KEYS,
    CONTROLLER_KEY,
    INCARNATION_KEY,
    ORIGIN_KEY,
    RECOVERY_KEY,
    STORE_KEY,
    PARTITIONS,
)
"""Keys that a node alone has not, or that are written anew."""


class CopyToSingleNode:
    """One way back; see the module. `run` once."""

    def __init__(self, node: NodeStore, source: MetadataStore) -> None:
        """Touch nothing yet.

        Args:
            node: Whose directories are locked.
            source: The cluster's store, open.
        """
        self._node = node
        self._source = source
        self._filesystem = node.environment.filesystem
        self._run = node.environment.run_blocking

    async def run(self) -> CopyReport:
        """Copy.

        Raises:
            CopyRefusedError: A broker lives, a partition is elsewhere too, or the node is alone.
            MetadataFormatError: The source cannot be read.
            StoreError: The source or the new store refuses.
            StorageError: A disk refuses.
        """
        content = await whole_range(self._source, "")
        by_key = {item.key: item for item in content.items}
        image = ClusterImage.loaded(content.items, content.revision)
        incarnation = by_key.get(INCARNATION_KEY)
        if incarnation is None:
            raise CopyRefusedError("the store has no cluster's metadata")
        named = parse_uuid(incarnation.value.decode())
        origin = await self._leave(by_key, image, named)
        path = join(self._node.directories[0].path, METADATA_FILE)
        keys = 0
        if not await self._run(self._filesystem.exists, path):
            keys = await self._fill(path, _wanted(content.items, image, origin), origin)
        await self._run(self._claim_all, named, origin.store_id)
        return CopyReport(
            origin.node_id, len(image.topics), image.partition_count, keys, was_clean=True
        )

    def _check(self, by_key: Mapping[str, KeyValue], image: ClusterImage, named: UUID) -> None:
        node_id = self._node.node_id
        living = [key.removeprefix(LIVE) for key in by_key if key.startswith(LIVE)]
        if living:
            raise CopyRefusedError(
                f"broker {', '.join(living)} is running, or was until some seconds ago: stop all "
                "brokers, then try again"
            )
        for directory in self._node.log_directories:
            meta = directory.meta
            if not directory.is_online:
                raise CopyRefusedError(f"{directory.path} is offline: {directory.offline_reason}")
            if meta is None or meta.store_id != named or meta.node_id != node_id:
                raise CopyRefusedError(
                    f"{directory.path} is not of broker {node_id} of this cluster"
                )
        for topic in image.topics.values():
            for partition in topic.partitions:
                if partition.replicas != (node_id,):
                    raise CopyRefusedError(
                        f"{topic.name}-{partition.index} has replicas on brokers "
                        f"{', '.join(map(str, partition.replicas))}: have all partitions on broker "
                        f"{node_id} alone first (`varve cluster reassign`)"
                    )

    async def _leave(
        self, by_key: Mapping[str, KeyValue], image: ClusterImage, named: UUID
    ) -> Origin:
        """Mark the cluster's store as left; the mark has the id of the node's store."""
        mark = by_key.get(ORIGIN_KEY)
        if mark is not None:
            origin = decode_origin(mark.value)
            if origin.state is OriginState.LEFT:
                if origin.node_id != self._node.node_id:
                    raise CopyRefusedError(f"the store was copied to node {origin.node_id} before")
                return origin
        self._check(by_key, image, named)
        store_id = fresh_id(self._node.environment.randomness)
        left = Origin(OriginState.LEFT, store_id, self._node.node_id)
        guard = [value_equals(INCARNATION_KEY, by_key[INCARNATION_KEY].value)]
        try:
            result = await self._source.txn(guard, [Put(ORIGIN_KEY, left.encode())])
        except OutcomeUnknownError:
            result = await self._source.txn(guard, [Put(ORIGIN_KEY, left.encode())])
        if not result.succeeded:
            raise TargetChangedError("the cluster's store was changed by another program")
        return left

    async def _fill(self, path: str, wanted: Mapping[str, bytes], origin: Origin) -> int:
        await self._run(self._remove, path + NEW_SUFFIX)
        store = await SqliteStore.open(path + NEW_SUFFIX, timer=self._node.environment.timer)
        try:
            identity = encode_store_identity(origin.store_id, origin.node_id)
            await store.txn((), [Put(STORE_KEY, identity)])
            keys = await make_equal(
                store,
                wanted,
                guard=[value_equals(STORE_KEY, identity)],
                is_ours=lambda key: key != STORE_KEY,
            )
        finally:
            await store.aclose()
        await self._run(self._publish, path)
        return keys

    def _remove(self, path: str) -> None:
        for suffix in SQLITE_SUFFIXES:
            self._filesystem.unlink(path + suffix, missing_ok=True)

    def _publish(self, path: str) -> None:
        home = self._node.directories[0].path
        self._filesystem.open(path + NEW_SUFFIX).sync()
        self._filesystem.rename(path + NEW_SUFFIX, path)
        self._filesystem.sync_directory(home)

    def _claim_all(self, incarnation: UUID, store_id: UUID) -> None:
        for directory in self._node.directories:
            meta = directory.meta
            if meta is not None and meta.store_id == incarnation:
                remove_member_note(self._filesystem, directory.path)
                path = join(directory.path, META_PROPERTIES)
                write_meta_properties(self._filesystem, path, replace(meta, store_id=store_id))
            self._filesystem.unlink(join(directory.path, MOVED_FILE), missing_ok=True)


def _wanted(items: Sequence[KeyValue], image: ClusterImage, origin: Origin) -> Mapping[str, bytes]:
    wanted = {item.key: item.value for item in items if not item.key.startswith(_NOT_A_NODES)}
    for topic in image.topics.values():
        wanted.update(chunks(topic.topic_id, [_alone(topic, p, origin) for p in topic.partitions]))
    return wanted


def _alone(topic: TopicImage, partition: PartitionImage, origin: Origin) -> PartitionImage:
    assert partition.replicas == (origin.node_id,), f"{topic.name}-{partition.index}"
    return PartitionImage(
        partition.index,
        origin.node_id,
        partition.leader_epoch + 1,
        partition.partition_epoch + 1,
        partition.replicas,
        partition.replicas,
        partition.directories,
    )
