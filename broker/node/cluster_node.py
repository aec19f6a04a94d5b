"""Whose a cluster's metadata store is: compared with what the log directories say, before anything.

directories that name the store's incarnation          ours
directories that are new                               they will name it
directories that name one that this one replaces       ours, if the recovery has read them
directories that name another, or the store has none   refused: emptied, restored, another's
directories of a member that name none any longer      refused: nothing says whose they are
directories with a store of a single node, or with     refused: their partitions are not in the
partitions of a Kafka                                  cluster's metadata
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import join
from typing import Final
from uuid import UUID

from broker.controller.images.controller_history import (
    CONTROLLERS_KEYS,
    ControllerHistory,
    Write,
)
from broker.controller.images.metadata_records import INCARNATION_KEY
from broker.controller.images.store_marks import Recovery, check_whole, recovery_of
from broker.controller.store.metadata_store import MetadataStore, StoreReplacedError
from broker.node.store_file import METADATA_FILE, NodeStoreError
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import (
    MemberNote,
    is_in_its_place,
    member_notes,
    read_member_note,
    write_member_note,
)
from storage.checkpoints.meta_properties import META_PROPERTIES, write_meta_properties
from storage.environment.filesystem import Filesystem
from storage.types.uuid_text import format_uuid, parse_uuid

WAY_OUT: Final = (
    "Give back the newest data of the store and start the brokers again, one after the other; or "
    "stop all brokers and run `varve cluster recover-metadata`"
)
"""For the operator of a store that was restored, emptied or exchanged."""

NOTHING_TOUCHED: Final = f"Leader epochs could repeat, so nothing is touched. {WAY_OUT}"


async def check_store(
    store: MetadataStore, directories: Sequence[LogDirectory], notes: Mapping[str, MemberNote]
) -> list[LogDirectory]:
    """Refuse a store that is not the one these directories belong to.

    Args:
        store: Of the cluster; nothing is written to it.
        directories: Of the broker, locked.
        notes: What the last process on each directory has seen of the store, by path.

    Returns:
        Directories of a store that was lost, and which this one replaces: `take_over` them.

    Raises:
        NodeStoreError: It is another one, or was emptied.
        StoreReplacedError: It is behind what was seen: restored from a copy.
        UnfinishedStoreError: Its contents are half of a copy or of a recovery.
        StoreError: It cannot be read.
    """
    await check_whole(store)
    item = await store.get(INCARNATION_KEY)
    incarnation = None if item is None else parse_uuid(item.value.decode())
    recovery = await recovery_of(store)
    recovered = []
    seen: list[MemberNote] = []
    for directory in directories:
        meta = directory.meta
        if meta is None or meta.store_id is None:
            continue
        if meta.store_id == incarnation:
            if directory.path in notes:
                seen.append(notes[directory.path])
        elif (
            recovery is not None
            and meta.node_id is not None
            and recovery.accounts_for(meta.node_id, meta.directory_id, meta.store_id)
        ):
            recovered.append(directory)
        else:
            raise NodeStoreError(_of_another(directory.path, meta.store_id, incarnation, recovery))
    await _check_not_behind(store, seen)
    return recovered


async def _check_not_behind(store: MetadataStore, seen: Sequence[MemberNote]) -> None:
    controllers = await store.range(CONTROLLERS_KEYS)
    revision, history = controllers.revision, ControllerHistory.of(controllers.items)
    floor = max((note.revision for note in seen), default=0)
    if revision < floor:
        raise StoreReplacedError(
            f"the metadata store is at revision {revision} and has been at {floor}: it was "
            f"restored from a copy, or emptied. {NOTHING_TOUCHED}"
        )
    for note in seen:
        if note.writer and history.lacks(Write(note.writer, note.write)):
            raise StoreReplacedError(
                f"the metadata store does not have what its controller wrote at revision "
                f"{note.write}: it was restored from a copy. {NOTHING_TOUCHED}"
            )


def _of_nobody(path: str) -> str:
    return (
        f"log directory {path} is that of a cluster's broker and has lost its {META_PROPERTIES}, "
        "so nothing says whose its partitions are, and nothing is touched. Give the file back from "
        "a copy. Or, if `varve cluster describe` shows a leader for each partition, move the "
        "contents away and keep them until all replicas are in sync again: with empty log "
        "directories this broker fetches its replicas anew from their leaders"
    )


def _of_another(path: str, named: UUID, incarnation: UUID | None, recovery: Recovery | None) -> str:
    if recovery is not None and named in recovery.replaces:
        return (
            f"log directory {path} was not there when the metadata store was recovered: it may "
            "have later leader epochs, so nothing is touched. Run `varve cluster "
            "recover-metadata` again with it"
        )
    found = "it has none" if incarnation is None else f"it has {format_uuid(incarnation)}"
    return (
        f"log directory {path} belongs to another metadata store: it names incarnation "
        f"{format_uuid(named)}, and {found}. It was emptied or restored, or is another "
        "cluster's, or metadata.store.prefix is not what it was. "
        f"{NOTHING_TOUCHED}"
    )


def take_over(
    directories: Sequence[LogDirectory], incarnation: UUID, filesystem: Filesystem
) -> None:
    """Have directories name the store that was recovered from them. Blocks.

    The revisions that their notes name are those of the lost store, and go first.

    Raises:
        DiskError: A disk refused.
    """
    for directory in directories:
        note = read_member_note(filesystem, directory.path)
        if note is not None:
            is_own = is_in_its_place(filesystem, directory.path, note)
            # What was copied must not count as left by its process: of no boot.
            note = replace(note, revision=0, writer="", write=0, boot=note.boot if is_own else "")
            write_member_note(filesystem, directory.path, note)
        assert directory.meta is not None
        meta = replace(directory.meta, store_id=incarnation)
        write_meta_properties(filesystem, join(directory.path, META_PROPERTIES), meta)
        directory.meta = meta


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


def check_directories(
    directories: Sequence[LogDirectory], filesystem: Filesystem
) -> dict[str, MemberNote]:
    """Refuse directories with partitions that no cluster's metadata has. Blocks.

    Returns:
        What the last process on each has seen of the store, by path.

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
                "a cluster's: start it with metadata.store=sqlite, as before, or make it the first "
                "of a cluster with `varve metadata copy`; or give this broker other log directories"
            )
    if not any(d.meta is not None and d.meta.store_id is not None for d in online):
        for directory in online:
            if directory.partitions(with_topic_ids=False):
                if read_member_note(filesystem, directory.path) is not None:
                    raise NodeStoreError(_of_nobody(directory.path))
                raise NodeStoreError(
                    f"log directory {directory.path} holds partitions that are not this cluster's: "
                    "give this broker other log directories"
                )
    return member_notes(filesystem, [directory.path for directory in online])
