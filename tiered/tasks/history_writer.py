"""Writer of a partition's history object, which also removes it with its topic.

    the bucket is ours? ─> capture ─> live segments, stable end, content ─> the same as before?
      ─> the first time in a leadership: read what is there ─> put

A partition of which nothing was ever copied gets none. That the metadata knows of no copy does not
say so: it may have forgotten all of them with the leader epochs that DeleteRecords took. Where an
object is, it is kept.

A leader that is not certain to be one (any more) writes nothing: the next one does not look whether
its object is still there. Nor does a broker that is not the bucket's owner
(`tiered.maintenance.bucket_ownership`). A leader of an older epoch than that of the object leaves
it alone, as far as is known: the object is read before the first write of a leadership, not before
each. A broker whose epochs start over meets its own past there; `varve tier restore` goes on above
it, and `varve tier claim` says that what is there does not count.

Of a topic that is being deleted the object says so before anything else of it goes, and is the last
that goes.
"""

import hashlib
import logging
from array import array
from bisect import bisect_left
from typing import Final, NamedTuple
from uuid import UUID

from storage.environment.environment import Environment
from storage.errors import CorruptFileError, DiskError
from storage.producers.snapshot import first_open_offset
from tiered.deadline import CallDeadlines
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError, RemoteStorageNotReadyError
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.bucket_ownership import Claim
from tiered.metadata.history import (
    HistoryState,
    HistorySummary,
    HistoryTooLargeError,
    PartitionHistory,
    content_of,
    decode_summary,
    encode_history,
    encoding,
    seal,
    set_written_ms,
)
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition
from tiered.slicer import Slicer
from tiered.tasks.history_view import (
    CapturedHistory,
    Signature,
    capture,
    collecting_live,
    epochs_between,
    newest_of,
    was_ever_copied,
)
from tiered.tasks.led_partition import LedPartition
from tiered.tier import SideFile, Tier

_log = logging.getLogger(__name__)

SMALL_BYTES: Final = 64 * 1024
"""Content that is compressed where it is: half a millisecond."""

NO_OBJECT: Final = b""
"""In place of a digest: nothing is there, or nothing that counts."""

_ID_MASK: Final = (1 << 64) - 1


class StableEnd(NamedTuple):
    """Where the first transaction begins that is open at the end of a segment.

    Attributes:
        segment_id: Whose end.
        open_offset: None: none is open there.
    """

    segment_id: UUID
    open_offset: int | None


class WrittenHistory(NamedTuple):
    """What the bucket has of a partition, as this leadership has written or found it.

    Attributes:
        signature: As of its capture.
        digest: Of the content without its time; `NO_OBJECT`.
        ids: Of its segments, their last 64 bits, ascending.
        stable: So that a producer snapshot is read once.
        size: Bytes that were put; 0: what was there was right.
    """

    signature: Signature
    digest: bytes
    ids: "array[int]"
    stable: StableEnd | None
    size: int

    def holds(self, segment_id: UUID) -> bool:
        """Whether a segment is in it; once in 10**13 times it is said of one that is not."""
        short = segment_id.int & _ID_MASK
        at = bisect_left(self.ids, short)
        return at < len(self.ids) and self.ids[at] == short


class HistoryWriter:
    """See the module.

    Attributes:
        overruled: Objects of greater leader epochs are written over: an operator has said that this
            broker goes on.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        claim: Claim,
        deadlines: CallDeadlines,
        environment: Environment,
    ) -> None:
        self.overruled = False
        self._metadata = metadata
        self._tier = tier
        self._claim = claim
        self._deadlines = deadlines
        self._clock = environment.clock
        self._filesystem = environment.filesystem
        self._run_blocking = environment.run_blocking
        self._keys = ObjectKeys()
        self._slicer = Slicer()

    # -- while it is led -------------------------------------------------------------------------

    async def write(self, led: LedPartition, before: WrittenHistory | None) -> WrittenHistory:
        """Bring the object up to date with the partition as it is when this begins.

        Args:
            led: Whose; the leadership must last until this has ended, or this be cancelled.
            before: What the last call of this leadership gave; None: there was none.

        Raises:
            TieredError: It is not known to be up to date.
        """
        partition = led.tiered.partition
        await self._claim.require_ours()
        captured = capture(led, self._metadata)
        live: list[RemoteLogSegmentMetadata] = []
        await self._slicer.go_through(collecting_live(captured, live))
        stable = await self._stable(led, live, None if before is None else before.stable)
        content = bytearray()
        summary = self._summary(led, captured, live, stable)
        try:
            await self._slicer.go_through(encoding(PartitionHistory(summary, tuple(live)), content))
        except HistoryTooLargeError as error:
            # Retention must not wait for what will never be: readers list.
            _log.warning("varve-history is written without segments: %s", error)
            live.clear()
            content.clear()
            await self._slicer.go_through(encoding(PartitionHistory(summary, ()), content))
        now_ms = self._clock.now_ms()
        digest, ids, data = b"", array("Q"), b""

        def finish() -> None:
            nonlocal digest, ids, data
            digest = _digest(content)
            ids = array("Q", sorted(segment.id.int & _ID_MASK for segment in live))
            set_written_ms(content, now_ms)
            data = seal(content)

        if len(content) <= SMALL_BYTES:
            finish()
        else:
            await self._run_blocking(finish)
        if before is None:
            present = await self._present(led)
        else:
            present = before.digest
        key = self._keys.history_key(partition)
        if not present and not live and not was_ever_copied(led, self._metadata):
            return WrittenHistory(captured.signature, NO_OBJECT, ids, stable, 0)
        if present != digest:
            if not led.tiered.may_change():
                raise RemoteStorageNotReadyError(
                    f"{key} is not written: another broker may lead {partition} by now"
                )
            async with self._deadlines.of(1, f"writing {key}", size=len(data)):
                await self._tier.put_object(key, data)
        size = len(data) if present != digest else 0
        return WrittenHistory(captured.signature, digest, ids, stable, size)

    def _summary(
        self,
        led: LedPartition,
        captured: CapturedHistory,
        live: list[RemoteLogSegmentMetadata],
        stable: StableEnd | None,
    ) -> HistorySummary:
        start = captured.signature.log_start_offset
        newest = newest_of(live)
        end = start if newest is None else max(newest.end_offset + 1, start)
        stable_end = end
        if stable is not None and stable.open_offset is not None:
            stable_end = min(end, max(stable.open_offset, start))
        return HistorySummary(
            partition=led.tiered.partition,
            cluster_id=self._claim.cluster_id,
            partition_count=captured.partition_count,
            state=HistoryState.LIVE,
            leader_epoch=captured.signature.leader_epoch,
            # Set when the rest has been compared.
            written_ms=0,
            log_start_offset=start,
            end_offset=end,
            stable_end_offset=stable_end,
            leader_epochs=epochs_between(captured.leader_epochs, start, end),
        )

    async def _stable(
        self,
        led: LedPartition,
        live: list[RemoteLogSegmentMetadata],
        before: StableEnd | None,
    ) -> StableEnd | None:
        newest = newest_of(live)
        if newest is None:
            return None
        if before is not None and before.segment_id == newest.id:
            return before
        found: list[int | None] = []
        path = led.tiered.log.producer_snapshot_path(newest.end_offset + 1)

        def read() -> None:
            if self._filesystem.exists(path):
                found.append(first_open_offset(self._filesystem.read_bytes(path), path))

        try:
            await self._run_blocking(read)
        except (CorruptFileError, DiskError) as error:
            _log.warning(
                "producer snapshot %s cannot be read, fetching it from remote storage: %s",
                path,
                error,
            )
        if not found:
            # Its segment has left this disk, or has never been there.
            found.append(await self._remote_open_offset(newest))
        return StableEnd(newest.id, found[0])

    async def _remote_open_offset(self, newest: RemoteLogSegmentMetadata) -> int | None:
        what = f"producers at the end of {newest.id}"
        try:
            async with self._deadlines.of(2, what):
                data = await self._tier.fetch_side_file(newest, SideFile.PRODUCER_SNAPSHOT)
            return first_open_offset(data, what)
        except (CorruptRemoteDataError, CorruptFileError, ObjectNotFoundError) as error:
            # Any transaction may be open there, from any offset on.
            _log.warning(
                "last stable offset is unknown to readers without a broker: %s: %s", what, error
            )
            return 0

    async def _present(self, led: LedPartition) -> bytes:
        """The digest of what is there, or `NO_OBJECT`.

        Raises:
            RemoteStorageNotReadyError: A later leader wrote it.
        """
        key = self._keys.history_key(led.tiered.partition)
        data = await self._get(key)
        if data is None:
            return NO_OBJECT
        try:
            summary = decode_summary(data, key)
            content = content_of(data, key)
        except CorruptRemoteDataError as error:
            # Also of a newer version: what this leader knows is what counts now.
            _log.warning("%s is overwritten: %s", key, error.problem)
            return NO_OBJECT
        if (
            summary.cluster_id == self._claim.cluster_id
            and summary.leader_epoch > led.tiered.leader_epoch
            and not self.overruled
        ):
            raise RemoteStorageNotReadyError(
                f"{key} was written in leader epoch {summary.leader_epoch}, and this leader has "
                f"{led.tiered.leader_epoch}: another one has taken its place, or this node's disk "
                "is older than the bucket. If no other broker of this cluster runs: `varve tier "
                "claim`"
            )
        return _digest(content)

    async def _get(self, key: str) -> bytes | None:
        async with self._deadlines.of(1, f"reading {key}"):
            try:
                return await self._tier.get_object(key)
            except ObjectNotFoundError:
                return None

    # -- when its topic is deleted ---------------------------------------------------------------

    async def mark_deleting(self, partition: TopicIdPartition, *, has_segments: bool) -> None:
        """Let the object say that the topic goes; nothing if there is neither object nor segment.

        Raises:
            TieredError: It may not say so; nothing else of the partition may go yet.
        """
        await self._claim.require()
        key = self._keys.history_key(partition)
        data = await self._get(key)
        if data is None and not has_segments:
            return
        summary = HistorySummary(
            partition, self._claim.cluster_id, 0, HistoryState.LIVE, -1, 0, 0, 0, 0, ()
        )
        if data is not None:
            try:
                summary = decode_summary(data, key)
            except CorruptRemoteDataError as error:
                _log.warning("%s is overwritten: %s", key, error.problem)
        if summary.state is HistoryState.DELETING:
            return
        summary = summary._replace(state=HistoryState.DELETING, written_ms=self._clock.now_ms())
        data = encode_history(PartitionHistory(summary, ()))
        async with self._deadlines.of(1, f"writing {key}"):
            await self._tier.put_object(key, data)

    async def remove(self, partition: TopicIdPartition) -> None:
        """Nothing else is left of a deleted topic's partition.

        Raises:
            TieredError: It may be there still.
        """
        await self._claim.require()
        key = self._keys.history_key(partition)
        async with self._deadlines.of(1, f"removal of {key}"):
            await self._tier.delete_objects([key])


def _digest(content: bytes | bytearray) -> bytes:
    copy = bytearray(content)
    set_written_ms(copy, 0)
    return hashlib.blake2b(copy, digest_size=16).digest()
