"""Snapshotter: loads a metadata partition's state from its newest snapshot, and writes new ones.

A snapshot is passed over, with a warning, when it is damaged or of another incarnation of the
topic; then comes the one before it, then the topic from its start. What the topic has lost in the
meantime (it should have lost nothing) is said as an error. A snapshot beyond its end counts: what
it says was committed.
"""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from storage.environment.environment import Environment
from tiered.errors import ObjectNotFoundError, RemoteStorageError
from tiered.metadata.log import LogOffsets
from tiered.metadata.partition_state import MetadataPartitionState
from tiered.metadata.snapshot import SnapshotError, encoding, read_snapshot, seal
from tiered.metadata.snapshot_store import (
    SNAPSHOT_BYTES_MAX,
    SnapshotName,
    SnapshotStore,
)
from tiered.metadata.stats import MetadataStats
from tiered.slicer import Slicer

LOGGER = logging.getLogger(__name__)

SNAPSHOTS_AT_A_TIME = 2
"""Snapshots that are made at once, of all metadata partitions: each is in memory whole."""


class Snapshotter:
    """See the module; shared by all metadata partitions."""

    __slots__ = ("_clock", "_run", "_slicer", "_slots", "_stats", "_store", "may_write")

    def __init__(
        self,
        store: SnapshotStore,
        *,
        environment: Environment,
        stats: MetadataStats,
        slicer: Slicer,
    ) -> None:
        self._store = store
        self.may_write: Callable[[int], bool] = _always
        """Whether this broker writes the snapshots of a metadata partition: where they are shared,
        the one that leads it does."""
        self._clock = environment.clock
        self._run = environment.run_blocking
        self._stats = stats
        self._slicer = slicer
        self._slots = asyncio.Semaphore(SNAPSHOTS_AT_A_TIME)

    async def load(
        self, partition: int, topic_id: UUID, offsets: LogOffsets, *, ignore: bool = False
    ) -> MetadataPartitionState:
        """The newest state that can be had without reading the topic.

        Args:
            partition: The metadata partition.
            topic_id: Of the topic as it is.
            offsets: Where the metadata partition begins and ends.
            ignore: Pass over all snapshots: their blocks have proved malformed.

        Raises:
            RemoteStorageError: The store does not answer, and the topic alone is not enough.
        """
        state = await self._load(partition, topic_id, offsets, ignore=ignore)
        if not state.lost:
            try:
                state.lost = await self._store.lost(partition)
            except RemoteStorageError as error:
                self._may_go_on_without(partition, offsets, error)
        return state

    async def _load(
        self, partition: int, topic_id: UUID, offsets: LogOffsets, *, ignore: bool
    ) -> MetadataPartitionState:
        found = await self._names(partition, offsets)
        names = [] if ignore else found
        for name in names:
            state = await self._try(partition, name, topic_id, offsets)
            if state is None:
                continue
            if state.next_offset > offsets.end:
                return await self._recovered(state, topic_id, offsets)
            await self._check_start(state, offsets)
            return state
        state = MetadataPartitionState(partition)
        await self._check_start(state, offsets)
        if found and SnapshotName.of(topic_id, 0).topic_id not in {n.topic_id for n in found}:
            await self.lose(
                state, "__remote_log_metadata is another topic than the one that was read before"
            )
        return state

    async def lose(self, state: MetadataPartitionState, text: str) -> None:
        """Events are lost: say so, and remember it until `found` is called.

        Raises:
            RemoteStorageError: It cannot be remembered; to be tried again.
        """
        self._stats.gaps += 1
        LOGGER.error(
            "remote log metadata events are lost partition=__remote_log_metadata-%d problem=%s",
            state.metadata_partition,
            text,
        )
        await self._store.set_lost(state.metadata_partition, text)
        state.lost = text

    async def found(self, state: MetadataPartitionState) -> None:
        """Record that what was lost is published again, or accepted as lost.

        Raises:
            RemoteStorageError: The next start would not know.
        """
        if state.lost:
            await self._store.set_lost(state.metadata_partition, "")
            state.lost = ""

    async def _names(self, partition: int, offsets: LogOffsets) -> list[SnapshotName]:
        try:
            return list(await self._store.names(partition))
        except RemoteStorageError as error:
            self._may_go_on_without(partition, offsets, error)
            return []

    def _may_go_on_without(
        self, partition: int, offsets: LogOffsets, error: RemoteStorageError
    ) -> None:
        """Raises `error` again if the topic does not have everything itself."""
        if offsets.start > 0:
            raise error
        LOGGER.warning(
            "remote log metadata snapshots cannot be read, reading the topic instead "
            "partition=__remote_log_metadata-%d error=%s",
            partition,
            error,
        )

    async def _try(
        self, partition: int, name: SnapshotName, topic_id: UUID, offsets: LogOffsets
    ) -> MetadataPartitionState | None:
        try:
            if name != SnapshotName.of(topic_id, name.next_offset):
                raise SnapshotError("of another topic")
            data = await self._store.read(partition, name)
            return await self._run(lambda: _state_of(data, partition, name))
        except (SnapshotError, ObjectNotFoundError) as error:
            self._stats.snapshots_ignored += 1
            LOGGER.warning(
                "remote log metadata snapshot ignored partition=__remote_log_metadata-%d "
                "snapshot=%s reason=%s",
                partition,
                name.file_name,
                error,
            )
        except RemoteStorageError as error:
            self._may_go_on_without(partition, offsets, error)
        return None

    async def _recovered(
        self, state: MetadataPartitionState, topic_id: UUID, offsets: LogOffsets
    ) -> MetadataPartitionState:
        """`keep`, before anything is answered or published.

        Raises:
            RemoteStorageError: It cannot be written; to be tried again.
        """
        if not await self.keep(state, topic_id, offsets):
            raise RemoteStorageError("a metadata snapshot that must be written cannot be")
        return state

    async def keep(
        self, state: MetadataPartitionState, topic_id: UUID, offsets: LogOffsets
    ) -> bool:
        """Keep a state's events that the topic has lost: they were committed, and count.

        Without them whole histories would count as garbage. The topic goes on where it ends now, so
        the state is written again under that offset.

        Returns:
            Whether it is written.

        Raises:
            RemoteStorageError: The loss cannot be remembered; to be tried again.
        """
        await self.lose(
            state,
            f"__remote_log_metadata-{state.metadata_partition} ends at {offsets.end}, and was read "
            f"up to {state.next_offset}: segments published behind that are unknown",
        )
        state.next_offset = offsets.end
        return await self.write(state, topic_id) is not None

    async def _check_start(self, state: MetadataPartitionState, offsets: LogOffsets) -> None:
        if state.next_offset < offsets.start:
            await self.lose(state, gap_text(state, offsets.start))
            state.next_offset = offsets.start

    async def write(self, state: MetadataPartitionState, topic_id: UUID) -> int | None:
        """Write a snapshot of `state`, which may change meanwhile.

        Returns:
            The first offset that is not in it; None: it could not be written, which is logged, or
            another broker writes it.
        """
        if not self.may_write(state.metadata_partition):
            return None
        async with self._slots:
            captured = state.capture(topic_id, self._clock.now_ms())
            encoded = bytearray()
            try:
                await self._slicer.go_through(encoding(captured, encoded))
                if len(encoded) > SNAPSHOT_BYTES_MAX:
                    raise RemoteStorageError(
                        f"{len(encoded)} bytes, at most {SNAPSHOT_BYTES_MAX} are written"
                    )

                def finish() -> bytes:
                    seal(encoded)
                    return bytes(encoded)

                data = await self._run(finish)
                name = SnapshotName.of(topic_id, captured.next_offset)
                await self._store.write(captured.metadata_partition, name, data)
            except RemoteStorageError as error:
                self._stats.snapshot_failures += 1
                LOGGER.warning(
                    "remote log metadata snapshot not written partition=__remote_log_metadata-%d "
                    "error=%s",
                    captured.metadata_partition,
                    error,
                )
                return None
        self._stats.snapshots_written += 1
        return captured.next_offset


def _always(_partition: int) -> bool:
    return True


def gap_text(state: MetadataPartitionState, first_kept: int) -> str:
    """That the topic does not have what comes next."""
    return (
        f"__remote_log_metadata-{state.metadata_partition} has lost the events {state.next_offset} "
        f"to {first_kept - 1}: segments published in them are unknown"
    )


def _state_of(data: bytes, partition: int, name: SnapshotName) -> MetadataPartitionState:
    """Runs in a thread.

    Raises:
        SnapshotError: See `read_snapshot`; or it is not what its name says.
    """
    snapshot = read_snapshot(data)
    found = SnapshotName.of(snapshot.topic_id, snapshot.next_offset)
    if snapshot.metadata_partition != partition or found != name:
        raise SnapshotError(f"it is {found.file_name} of partition {snapshot.metadata_partition}")
    state = MetadataPartitionState(partition)
    state.restore(snapshot)
    return state
