"""A single node becomes the first broker of a cluster: its metadata is copied to the store.

    source locked, read ──> target empty, or this copy broken off ──> mark: copying
    ──> keys, until nothing differs ──> the node's file renamed, with a note where it went
    ──> one transaction: incarnation, registration, mark: copied
    ──> directories name the incarnation

From the renaming on the node does not start alone; before the last transaction no broker takes the
store for whole. Broken off anywhere, the same command goes on; run again at the end, it does
nothing. Nothing of the logs is touched: epochs, offsets, directories and their ids stay.

The node is registered as the life that has just ended, so that its next start, as a broker, is
known to follow a clean stop (KIP-966).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, dirname, join
from typing import Final
from uuid import UUID

from broker.controller.images.broker_records import (
    BrokerRegistration,
    LastRun,
    broker_key,
    decode_registration,
    encode_registration,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.features import INITIAL, SUPPORTED, VARVE_VERSION
from broker.controller.images.metadata_records import (
    FEATURES_KEY,
    INCARNATION_KEY,
    STORE_KEY,
    decode_store_identity,
    encode_features,
)
from broker.controller.images.store_marks import (
    ORIGIN_KEY,
    Origin,
    OriginState,
    check_marks,
    decode_origin,
)
from broker.controller.store.metadata_store import (
    KeyValue,
    MetadataStore,
    OutcomeUnknownError,
    Put,
    RangeResult,
    key_absent,
    value_equals,
)
from broker.controller.store.sqlite_store import SqliteStore
from broker.controller.store.whole_range import whole_range
from broker.controller.topic_planner import fresh_id
from broker.node.moved_note import COPIED_SUFFIX, MovedNote, write_moved_note
from broker.node.node_store import NodeStore
from broker.node.store_file import METADATA_FILE, SQLITE_SUFFIXES, NodeStoreError
from broker.offline.key_copy import TargetChangedError, make_equal
from config.version import VERSION
from storage.checkpoints.clean_shutdown import marked_epoch, write_clean_shutdown
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import remove_member_note
from storage.checkpoints.meta_properties import META_PROPERTIES, write_meta_properties
from storage.types.uuid_text import format_uuid, parse_uuid

ALONE: Final = -1
"""Broker epoch in the clean-shutdown marker of a node that is alone."""


class CopyRefusedError(Exception):
    """The copy would not be what it is to be; nothing was written. With a sentence."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied. `keys` 0: it was all there."""

    node_id: int
    topics: int
    partitions: int
    keys: int
    was_clean: bool


class CopyToCluster:
    """One copy; see the module. `run` once."""

    def __init__(self, node: NodeStore, target: MetadataStore, note: MovedNote) -> None:
        """Touch nothing yet.

        Args:
            node: Whose directories are locked.
            target: The cluster's store, open.
            note: Where that is.
        """
        self._node = node
        self._target = target
        self._note = note
        self._filesystem = node.environment.filesystem
        self._run = node.environment.run_blocking

    async def run(self) -> CopyReport:
        """Copy.

        Raises:
            CopyRefusedError: There is nothing to copy, or the target is not free for it.
            NodeStoreError: The source is not this node's, or an older copy.
            MetadataFormatError: The source cannot be read.
            StoreError: The target refuses.
            StorageError: A disk refuses.
        """
        path, is_moved = await self._run(self._find)
        content = await self._read(path)
        items = content.items
        identity = next((item for item in items if item.key == STORE_KEY), None)
        if identity is None:
            raise CopyRefusedError(f"{path} has no id: start the node once with this release")
        store_id, node_id = decode_store_identity(identity.value)
        await self._run(self._node.check_not_behind, store_id, content.revision)
        image = ClusterImage.loaded(items, 0, controller_id=node_id)
        self._check(image, node_id, store_id, is_moved=is_moved)
        origin = Origin(OriginState.COPYING, store_id, node_id)
        done = replace(origin, state=OriginState.COPIED)
        keys = 0
        was_clean = await self._run(self._was_clean)
        if not await self._begin(origin, done, is_moved=is_moved):
            keys = await make_equal(
                self._target,
                _wanted(items, image),
                guard=[value_equals(ORIGIN_KEY, origin.encode())],
                is_ours=lambda key: key != ORIGIN_KEY,
            )
            if not is_moved:
                await self._run(self._move, path)
            await self._finish(origin, done, was_clean=was_clean)
        await self._claim(store_id, node_id)
        return CopyReport(node_id, len(image.topics), image.partition_count, keys, was_clean)

    # -- source ----------------------------------------------------------------------------------

    def _find(self) -> tuple[str, bool]:
        """The store's file, and whether it has been renamed already."""
        online = [d.path for d in self._node.directories if d.is_online]
        for suffix, is_moved in (("", False), (COPIED_SUFFIX, True)):
            paths = [join(path, METADATA_FILE + suffix) for path in online]
            found = [path for path in paths if self._filesystem.exists(path)]
            if len(found) > 1:
                raise CopyRefusedError(f"there are two metadata stores: {' and '.join(found)}")
            if found:
                return found[0], is_moved
        raise CopyRefusedError(f"there is no {METADATA_FILE} in {', '.join(online)}")

    async def _read(self, path: str) -> RangeResult:
        store = await SqliteStore.open(path, timer=self._node.environment.timer, create=False)
        try:
            return await whole_range(store, "")
        finally:
            await store.aclose()

    def _check(self, image: ClusterImage, node_id: int, store_id: UUID, *, is_moved: bool) -> None:
        directories = self._node.log_directories
        for directory in directories:
            meta = directory.meta
            if not directory.is_online:
                raise CopyRefusedError(f"{directory.path} is offline: {directory.offline_reason}")
            if meta is None or meta.node_id != node_id or meta.cluster_id != image.cluster_id:
                raise CopyRefusedError(
                    f"{directory.path} is not of node {node_id}'s log directories"
                )
            if not is_moved and meta.store_id != store_id:
                raise CopyRefusedError(f"{directory.path} belongs to another metadata store")
        here = {directory.id for directory in directories}
        held = {
            partition.directory_on(node_id)
            for topic in image.topics.values()
            for partition in topic.partitions
        }
        for directory_id, known in image.directories.items():
            if directory_id in held and directory_id not in here:
                raise CopyRefusedError(
                    f"log directory {format_uuid(directory_id)}, last at {known.path}, holds "
                    "partitions of this node and is not among those named: name all, as "
                    "--from sqlite:DIR,DIR"
                )

    def _was_clean(self) -> bool:
        return all(marked_epoch(self._filesystem, d.path) is not None for d in self._logs())

    def _logs(self) -> Sequence[LogDirectory]:
        return self._node.log_directories

    # -- target ----------------------------------------------------------------------------------

    async def _begin(self, origin: Origin, done: Origin, *, is_moved: bool) -> bool:
        """Mark the target as ours; True: it has the whole copy already."""
        while True:
            content = await whole_range(self._target, "")
            mark = next((item for item in content.items if item.key == ORIGIN_KEY), None)
            if mark is None:
                if content.items:
                    check_marks(content.items)
                    raise CopyRefusedError(
                        f"{self._note.to} has a cluster's metadata under {self._note.prefix} "
                        f"({len(content.items)} keys): copy to an empty store, or use another "
                        "metadata.store.prefix"
                    )
                compare = [key_absent(ORIGIN_KEY)]
            else:
                found = decode_origin(mark.value)
                if (found.store_id, found.node_id) != (origin.store_id, origin.node_id):
                    raise CopyRefusedError(
                        f"{self._note.to} has, under {self._note.prefix}, the metadata of another "
                        f"node, {found.node_id}"
                    )
                if found == origin:
                    return False
                if found == done:
                    if not is_moved:
                        raise CopyRefusedError(
                            "this node's metadata was copied to the store before, and brokers may "
                            "have changed it since"
                        )
                    return True
                compare = [value_equals(ORIGIN_KEY, mark.value)]
            try:
                result = await self._target.txn(compare, [Put(ORIGIN_KEY, origin.encode())])
            except OutcomeUnknownError:
                continue
            if result.succeeded:
                return False

    async def _finish(self, origin: Origin, done: Origin, *, was_clean: bool) -> None:
        incarnation = fresh_id(self._node.environment.randomness)
        registration = BrokerRegistration(
            origin.store_id,
            {},
            features=SUPPORTED,
            directories=tuple(d.id for d in self._logs() if d.id is not None),
            release=VERSION,
            ended=LastRun.CLEAN if was_clean else LastRun.UNKNOWN,
        )
        puts = [
            Put(ORIGIN_KEY, done.encode()),
            Put(INCARNATION_KEY, format_uuid(incarnation).encode()),
            Put(broker_key(origin.node_id), encode_registration(registration)),
        ]
        guard = [value_equals(ORIGIN_KEY, origin.encode())]
        try:
            result = await self._target.txn(guard, puts)
        except OutcomeUnknownError:
            # Both outcomes are told apart by the mark; the same transaction may be tried once more.
            result = await self._target.txn(guard, puts)
        if not result.succeeded:
            mark = await self._target.get(ORIGIN_KEY)
            if mark is None or mark.value != done.encode():
                raise TargetChangedError("the metadata store was changed by another program")

    # -- directories -----------------------------------------------------------------------------

    def _move(self, path: str) -> None:
        """Rename the store, so that the node does not start alone."""
        home, name = dirname(path), basename(path)
        write_moved_note(self._filesystem, home, self._note)
        for suffix in reversed(SQLITE_SUFFIXES):
            source, copied = join(home, name + suffix), join(home, name + COPIED_SUFFIX + suffix)
            # One of an earlier copy, before the way back, must not be taken for this one's.
            self._filesystem.unlink(copied, missing_ok=True)
            if self._filesystem.exists(source):
                self._filesystem.rename(source, copied)
        self._filesystem.sync_directory(home)

    async def _claim(self, store_id: UUID, node_id: int) -> None:
        """Have the directories name the store that they belong to, and how their life ended."""
        item = await self._target.get(INCARNATION_KEY)
        if item is None:
            raise NodeStoreError(f"the metadata store has lost {INCARNATION_KEY}")
        incarnation = parse_uuid(item.value.decode())
        registered = await self._target.get(broker_key(node_id))
        epoch = 0
        if registered is not None:
            registration = decode_registration(registered.key, registered.value)
            if registration.incarnation == store_id:
                epoch = registered.mod_revision
        await self._run(self._claim_all, store_id, incarnation, epoch)

    def _claim_all(self, store_id: UUID, incarnation: UUID, epoch: int) -> None:
        for directory in self._node.directories:
            meta = directory.meta
            if meta is None or meta.store_id != store_id:
                continue
            if epoch and marked_epoch(self._filesystem, directory.path) == ALONE:
                write_clean_shutdown(self._filesystem, directory.path, epoch)
            # Of a cluster that the node was in before: revisions and epochs of another store.
            remove_member_note(self._filesystem, directory.path)
            path = join(directory.path, META_PROPERTIES)
            write_meta_properties(self._filesystem, path, replace(meta, store_id=incarnation))


def _wanted(items: Sequence[KeyValue], image: ClusterImage) -> Mapping[str, bytes]:
    """What the cluster's store is to hold: all of the node's but its identity.

    The cluster begins with this release, so its records may have what this release has.
    """
    wanted = {item.key: item.value for item in items if item.key != STORE_KEY}
    levels = {**image.features, VARVE_VERSION: INITIAL[VARVE_VERSION]}
    wanted[FEATURES_KEY] = encode_features(levels)
    return wanted
