"""The metadata store of this node: its location and its identity; `broker.node.new_store` makes it.

    log directories open ─> found in one of them           ─> opened, its identity checked
                         ─> in none, all of them empty      ─> made new
                         ─> in none, a Kafka's partitions   ─> made new from them and their settings
                         ─> in none, but directories of ours, or a disk that cannot be read,
                            or partitions of unknown settings; or in two; or copied to a cluster;
                            or of a broker of a cluster
                                                            ─> the start is refused

Log directories mean nothing without the store: a topic it does not know is set aside, a setting it
does not know lets retention empty a topic. So all of them are searched for it, whatever their
order, and a store that is not found may be lost, but is not replaced: `varve dirs adopt` does that,
on an operator's command.

A store that is behind what the directories say of it (`varve-store`) is an older copy, or has lost
its -wal file: it would set aside topics made since, and give out producer ids twice.

When a store was made, the directories are claimed: their meta.properties names it. A start that
dies between the two, or between two directories, finds the store and goes on.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from posixpath import join
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from broker.controller.dropped_directory import (
    drop_directory,
    forget_directory,
    read_image,
)
from broker.controller.images.metadata_records import (
    STORE_KEY,
    TOPICS,
    decode_store_identity,
)
from broker.controller.store.metadata_store import MetadataStore
from broker.controller.topic_planner import fresh_id
from broker.node.moved_note import read_moved_note
from broker.node.new_store import NewStore, identify_as
from broker.node.store_file import ADOPT, METADATA_FILE, NodeStoreError
from config.broker import BrokerConfig
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import member_notes
from storage.checkpoints.store_note import read_store_note
from storage.environment.environment import Environment
from storage.types.uuid_text import format_uuid

if TYPE_CHECKING:
    from broker.controller.store.sqlite_store import SqliteStore

LOGGER = logging.getLogger(__name__)


class KnownDirectory(NamedTuple):
    """A log directory of the node: where it is or was, how much it holds, `here` or `missing`."""

    id: UUID
    path: str
    partitions: int
    state: str


class NodeStore:
    """Finds, makes and opens the store; see the module.

    Attributes:
        path: Of the file; empty before `open`.
        store_id: Of the store; None before `open`.
        noted_revision: The least that the log directories say it has come to; -1: one says nothing.
        environment: As given.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        directories: Sequence[LogDirectory],
        metadata_directory: LogDirectory | None,
        environment: Environment,
    ) -> None:
        """Touch nothing yet.

        Args:
            settings: The broker's.
            directories: Of `log.dirs`, in order, opened.
            metadata_directory: `metadata.log.dir`, opened, if it is none of them.
            environment: Their filesystem; a timer of the store; clock and randomness for ids.
        """
        self._settings = settings
        self._directories = list(directories)
        if metadata_directory is not None:
            self._directories.insert(0, metadata_directory)
        self._metadata_directory = metadata_directory
        self.environment = environment
        self._filesystem = environment.filesystem
        self._randomness = environment.randomness
        self._timer = environment.timer
        self._run = environment.run_blocking
        self._new = NewStore(settings, self._directories, metadata_directory, environment)
        self.path = ""
        self.store_id: UUID | None = None
        self.noted_revision = -1

    @property
    def node_id(self) -> int:
        """Of the node."""
        return self._settings.node_id

    @property
    def directories(self) -> Sequence[LogDirectory]:
        """Where the store may be: `metadata.log.dir`, if it is one more, then the log's."""
        return self._directories

    @property
    def log_directories(self) -> Sequence[LogDirectory]:
        """Where partitions may be."""
        return [d for d in self._directories if d is not self._metadata_directory]

    async def open(self) -> "SqliteStore":
        """The store, found or begun.

        Raises:
            NodeStoreError: There is none where there must be one, or two, or it is another's.
            StoreError: It cannot be used.
            StorageError: A disk refused.
        """
        # Here, as below: a cluster's member has its store elsewhere, and does without SQLite.
        from broker.controller.store.sqlite_store import SqliteStore

        found = await self._run(self._find)
        self.path = found or await self._new.make()
        store = await SqliteStore.open(self.path, timer=self._timer, create=False)
        try:
            self.store_id = await self._identify(store)
            self.noted_revision = await self._run(
                self.check_not_behind, self.store_id, store.revision
            )
        except BaseException:
            await store.aclose()
            raise
        return store

    async def adopt(self) -> int:
        """Make a store from the directories' contents, as the operator has asked.

        Returns:
            How many topics there are.

        Raises:
            NodeStoreError: There is a store, or nothing to make one from.
            StoreError: The store refused.
            StorageError: A disk refused.
        """
        if self._settings.metadata_store.is_shared:
            raise NodeStoreError(
                "metadata.store names a cluster's metadata store: nothing to adopt"
            )
        paths = await self._run(self._stores)
        if paths:
            raise NodeStoreError(f"there is a metadata store, {paths[0]}: nothing to adopt")
        await self._run(self._refuse_members)
        unread = [d for d in self._directories if not d.is_online]
        if unread:
            raise NodeStoreError(
                f"{unread[0].path} cannot be read ({unread[0].offline_reason}), and may hold the "
                "metadata store: take it out of log.dirs if it is lost for good"
            )
        found = await self._new.scan()
        if not found.topics:
            raise NodeStoreError("the log directories hold no partitions: nothing to adopt")
        ours = [d for d in self._directories if d.meta is not None and d.meta.is_ours]
        if ours:
            # Kafka's log, if there is one, is older than Varve's changes.
            found.metadata, found.is_ours = None, True
        await self._new.make_from(found)
        return len(found.topics)

    async def known_directories(self) -> list[KnownDirectory]:
        """The node's log directories, by path.

        Raises:
            NodeStoreError: There is no store of this node.
            StoreError: It cannot be used.
        """
        store = await self._open_existing()
        try:
            image = await read_image(store)
        finally:
            await store.aclose()
        counts = Counter(
            partition.directory_on(self._settings.node_id)
            for topic in image.topics.values()
            for partition in topic.partitions
        )
        here = {d.id: d for d in self._directories if d is not self._metadata_directory}
        known = []
        for directory_id, (node_id, path) in image.directories.items():
            if node_id == self._settings.node_id:
                found = here.get(directory_id)
                state = "missing" if found is None else "here"
                where = path if found is None else found.path
                known.append(KnownDirectory(directory_id, where, counts[directory_id], state))
        return sorted(known, key=lambda one: one.path)

    async def drop(self, directory_id: UUID) -> int:
        """Drop a log directory; return how many partitions start empty.

        Raises:
            NodeStoreError: It is here, or the node has none of this id.
            StoreError: The store refused.
        """
        for directory in self._directories:
            if directory.id == directory_id:
                raise NodeStoreError(
                    f"log directory {format_uuid(directory_id)} is here, {directory.path}: only "
                    "one that is gone is dropped; take it out of log.dirs first if it is to go"
                )
        store = await self._open_existing()
        try:
            known = (await read_image(store)).directories.get(directory_id)
            if known is None or known.node_id != self._settings.node_id:
                raise NodeStoreError(
                    f"this node has no log directory {format_uuid(directory_id)} "
                    "(`varve dirs list` shows those it has)"
                )
            if self._settings.metadata_store.is_shared:
                return await forget_directory(store, self._settings.node_id, directory_id)
            return await drop_directory(store, self._settings.node_id, directory_id)
        finally:
            await store.aclose()

    async def _open_existing(self) -> MetadataStore:
        if self._settings.metadata_store.is_shared:
            # Nothing of etcd is imported by a node that is alone.
            from broker.node.cluster_store import open_cluster_store

            return await open_cluster_store(
                self._settings, self.environment, waiting=lambda _what: None
            )
        if not await self._run(self._find):
            raise NodeStoreError("there is no metadata store in the log directories")
        return await self.open()

    # -- found -----------------------------------------------------------------------------------

    def _stores(self) -> list[str]:
        paths = [join(d.path, METADATA_FILE) for d in self._directories if d.is_online]
        return [path for path in paths if self._filesystem.exists(path)]

    def _find(self) -> str | None:
        """The store's path; None: the node is new, or a Kafka's."""
        stores = self._stores()
        if len(stores) > 1:
            raise NodeStoreError(
                f"there are {len(stores)} metadata stores: "
                + " and ".join(f"{path} ({_describe(path)})" for path in stores)
                + "; keep the one this node used last and move the other, with its -wal file, "
                "out of the log directories"
            )
        if stores:
            return stores[0]
        for directory in self._directories:
            note = (
                read_moved_note(self._filesystem, directory.path) if directory.is_online else None
            )
            if note is not None:
                raise NodeStoreError(note.refusal(directory.path))
        self._refuse_members()
        ours = [d.path for d in self._directories if d.meta is not None and d.meta.is_ours]
        unread = [
            f"{d.path} ({d.offline_reason})"
            for d in self._directories
            if not d.is_online and self._filesystem.exists(d.path)
        ]
        if ours:
            raise NodeStoreError(
                f"the metadata store {METADATA_FILE} is in none of the log directories, and "
                f"{', '.join(ours)} belong{'s' if len(ours) == 1 else ''} to one"
                + (f"; not readable: {', '.join(unread)}" if unread else "")
                + ". Mount the disk that holds it and name it in log.dirs (or metadata.log.dir), "
                f"or restore the file from a copy. If it is lost for good: {ADOPT} makes a new "
                "one from the partitions that are there; their settings are lost, so nothing of "
                "them is deleted or compacted until they are set again"
            )
        if unread:
            raise NodeStoreError(
                f"no metadata store was found, and one may be where nothing can be read: "
                f"{', '.join(unread)}"
            )
        return None

    def _refuse_members(self) -> None:
        """A broker of a cluster has no store here: none is missing, and none may be begun.

        It would lead alone what the others lead, and both would take records.

        Raises:
            NodeStoreError: Such a broker has used a directory last.
        """
        paths = [d.path for d in self._directories if d.is_online]
        notes = member_notes(self._filesystem, paths)
        if notes:
            others = sorted({node for note in notes.values() for node in note.brokers})
            raise NodeStoreError(
                f"{', '.join(notes)}: last used by a broker of a cluster"
                + (f" (brokers {', '.join(map(str, others))})" if others else "")
                + ", whose metadata store is in no directory: metadata.store has to name it, as "
                "etcd://... or unix:... did. If that store is lost, `varve cluster "
                "recover-metadata` makes it again; to have a broker alone from then on, "
                "`varve metadata copy` takes it from there"
            )

    # -- whose it is -----------------------------------------------------------------------------

    def check_not_behind(self, store_id: UUID, revision: int) -> int:
        """The least that is noted of a store; see `noted_revision`. Blocks.

        Raises:
            NodeStoreError: A log directory has seen it further than it is.
        """
        noted = []
        for directory in self.log_directories:
            if not directory.is_online:
                continue
            note = read_store_note(self._filesystem, directory.path)
            if note is None or note.store_id != store_id:
                noted.append(-1)
                continue
            noted.append(note.revision)
            if note.revision > revision:
                raise NodeStoreError(
                    f"the metadata store is at revision {revision}, and "
                    f"{directory.path} has seen it at {note.revision}: it is an older copy, or its "
                    "-wal file is missing. Topics made since would be set aside, and producer ids "
                    "given out twice, so nothing is touched. Give back the store that this node "
                    "used last, with its -wal file. If it is lost for good, move this one out of "
                    f"the log directories: {ADOPT} makes a new one from the partitions that are "
                    "there; their settings are lost, so nothing of them is deleted or compacted "
                    "until they are set again"
                )
        return min(noted, default=-1)

    async def _identify(self, store: MetadataStore) -> UUID:
        item = await store.get(STORE_KEY)
        named = [
            (d.path, d.meta.store_id)
            for d in self._directories
            if d.meta is not None and d.meta.store_id is not None
        ]
        if item is None:
            if named:
                raise NodeStoreError(
                    f"the metadata store {self.path} is older than what {named[0][0]} says of it, "
                    "or another node's: restore the one that this node used last"
                )
            # Of a release before stores had an id; the directories beside it are named next.
            store_id = fresh_id(self._randomness)
            await identify_as(store, store_id, self._settings.node_id)
            return store_id
        store_id, node_id = decode_store_identity(item.value)
        if node_id != self._settings.node_id:
            raise NodeStoreError(
                f"the metadata store {self.path} is of node {node_id}, "
                f"this is node {self._settings.node_id}"
            )
        others = [path for path, named_id in named if named_id != store_id]
        if others:
            raise NodeStoreError(
                f"{', '.join(others)} belong{'s' if len(others) == 1 else ''} to another metadata "
                f"store than {self.path}: "
                + (
                    "put back the store of this node"
                    if len(others) == len(named)
                    else "take what is another node's out of log.dirs"
                )
            )
        return store_id


def _describe(path: str) -> str:
    from broker.controller.store.sqlite_store import read_keys

    topics = len(read_keys(path, TOPICS))
    return f"{topics} topic{'s' if topics != 1 else ''}"
