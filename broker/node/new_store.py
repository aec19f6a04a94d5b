"""Making of a node's metadata store, from what its log directories hold.

It is filled under another name, synced and renamed: where there is a store, it is whole.
"""

import logging
from collections.abc import Sequence
from posixpath import join
from uuid import UUID

from broker.controller.adoption import (
    UNKNOWN_PRODUCER_IDS_START,
    Found,
    adopt,
    expected_elsewhere,
    scan_log_dirs,
)
from broker.controller.images.metadata_records import STORE_KEY, encode_store_identity
from broker.controller.store.metadata_store import MetadataStore, Put, StoreError, key_absent
from broker.controller.topic_planner import fresh_id
from broker.node.store_file import (
    ADOPT,
    METADATA_FILE,
    NEW_SUFFIX,
    SQLITE_SUFFIXES,
    NodeStoreError,
)
from config.broker import BrokerConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.store_note import remove_store_note
from storage.environment.environment import Environment
from storage.types.uuid_text import format_uuid

LOGGER = logging.getLogger(__name__)


class NewStore:
    """See the module. It lies in the first of the directories."""

    def __init__(
        self,
        settings: BrokerConfig,
        directories: Sequence[LogDirectory],
        metadata_directory: LogDirectory | None,
        environment: Environment,
    ) -> None:
        """Arguments: as of `NodeStore`; `directories` are all, `metadata.log.dir` first."""
        self._settings = settings
        self._directories = directories
        self._metadata_directory = metadata_directory
        self._filesystem = environment.filesystem
        self._clock = environment.clock
        self._randomness = environment.randomness
        self._timer = environment.timer
        self._run = environment.run_blocking

    async def scan(self) -> Found:
        """What the log directories hold."""
        paths = [d.path for d in self._directories if d is not self._metadata_directory]
        other = self._metadata_directory
        found: Found = await self._run(
            scan_log_dirs, self._filesystem, paths, other.path if other is not None else None
        )
        return found

    async def make(self) -> str:
        """Make the store of a new node, or of a Kafka's partitions and their settings; its path.

        Raises:
            NodeStoreError: There are partitions whose settings are not here.
            StoreError: The store refused.
            StorageError: A disk refused.
        """
        found = await self.scan()
        if found.topics and found.metadata is None:
            raise NodeStoreError(self._without_settings(found))
        return await self.make_from(found)

    def _without_settings(self, found: Found) -> str:
        count = len(found.topics)
        versions = {d.meta.version for d in self._directories if d.meta is not None}
        if self._settings.zookeeper_connect or 0 in versions:
            where = (
                "Their settings are in ZooKeeper"
                + (
                    f" ({self._settings.zookeeper_connect})"
                    if self._settings.zookeeper_connect
                    else ""
                )
                + ", which is not asked: move the cluster to KRaft with Kafka first (then its "
                "__cluster_metadata log is here, or under metadata.log.dir)"
            )
        else:
            where = (
                "Their settings are in the __cluster_metadata log of their cluster, which is in "
                "none of them: name its directory in metadata.log.dir"
            )
        return (
            f"the log directories hold partitions of {count} topic{'s' if count != 1 else ''} and "
            f"no metadata store. {where}. Or take them over without: {ADOPT}; then nothing of "
            "them is deleted or compacted until settings are given"
        )

    async def make_from(self, found: Found) -> str:
        """Make the store from what was found, with or without settings; its path.

        Raises:
            NodeStoreError: The directories are of several stores, or the first is offline.
            StoreError: The store refused.
            StorageError: A disk refused.
        """
        named = {d.meta.store_id for d in self._directories if d.meta is not None} - {None}
        if len(named) > 1:
            raise NodeStoreError(
                "the log directories belong to different metadata stores: "
                + ", ".join(
                    f"{d.path} to {format_uuid(d.meta.store_id)}"
                    for d in self._directories
                    if d.meta is not None and d.meta.store_id is not None
                )
            )
        # Directories that name a lost store are this one's without being written again.
        store_id = next(iter(named), None) or fresh_id(self._randomness)
        first = self._directories[0]
        if not first.is_online:
            raise NodeStoreError(f"the metadata store is in {first.path}: {first.offline_reason}")
        path = join(first.path, METADATA_FILE)
        await self._run(self._remove, path + NEW_SUFFIX)
        from broker.controller.store.sqlite_store import SqliteStore

        store = await SqliteStore.open(path + NEW_SUFFIX, timer=self._timer)
        try:
            await identify_as(store, store_id, self._settings.node_id)
            if found.topics or expected_elsewhere(found, self._settings.node_id):
                # So that no id is given out twice: the time is above whatever was counted so far.
                lost = self._clock.now_ms() * 1000 if found.is_ours else 0
                topics = await adopt(
                    store,
                    found,
                    node_id=self._settings.node_id,
                    randomness=self._randomness,
                    settings=self._settings,
                    first_producer_id=max(lost, UNKNOWN_PRODUCER_IDS_START),
                )
                LOGGER.info(
                    "imported existing log directories into a new metadata store topics=%d", topics
                )
            else:
                # All that a start says where the disk of a node is not mounted.
                LOGGER.info(
                    "log directories are empty: a new node without topics begins in %s",
                    first.path,
                )
        finally:
            await store.aclose()
        await self._run(self._publish, path)
        return path

    def _remove(self, path: str) -> None:
        for suffix in SQLITE_SUFFIXES:
            self._filesystem.unlink(path + suffix, missing_ok=True)

    def _publish(self, path: str) -> None:
        for directory in self._directories:
            if directory.is_online:
                # It may be of the store that is lost, whose id the new one has.
                remove_store_note(self._filesystem, directory.path)
        self._filesystem.open(path + NEW_SUFFIX).sync()
        self._filesystem.rename(path + NEW_SUFFIX, path)
        self._filesystem.sync_directory(self._directories[0].path)


async def identify_as(store: MetadataStore, store_id: UUID, node_id: int) -> None:
    """Give a store without an identity one.

    Raises:
        StoreError: It has been given one in the same moment.
    """
    result = await store.txn(
        compare=[key_absent(STORE_KEY)],
        then=[Put(STORE_KEY, encode_store_identity(store_id, node_id))],
    )
    if not result.succeeded:
        raise StoreError("another process has given the metadata store an id in the same moment")
