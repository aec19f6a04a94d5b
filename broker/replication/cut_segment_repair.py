"""Closed segments that were cut are filled up from other replicas.

    a read is refused ──> alert ──> the leader, who is in sync, the others: Fetch, again and again,
                                    until nothing is missing ──> alert cleared

The reader is refused meanwhile (KAFKA_STORAGE_ERROR), and its next try finds the records. Who leads
stays who leads: nothing that is asked for elsewhere is missing there, and nothing of this log goes
(`storage.manager.cut_segments`).

The other replica is asked as a consumer would ask it: followers answer too, and nothing is noted of
this broker's position. It gives what is committed. One that is out of sync may have all of an old
segment; what it has of another history is refused by its leader epochs.

One segment at a time. Others are found again by who reads them; what could not be filled up is
tried again after `AGAIN_MS`, when somebody reads it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from broker.peers.errors import PeerUnavailableError
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from storage.cleaner.cleaning import CleaningAbortedError
from storage.errors import CorruptFileError, CutSegmentError, DiskError, InvalidFillError

if TYPE_CHECKING:
    from broker.controller.channel import PeerRequests
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.partition import Partition
    from broker.runtime.disk import Disk
    from storage.environment.clock import Clock
    from storage.manager.cut_segments import CutSegments, SegmentFill

LOGGER = logging.getLogger(__name__)

FETCH_VERSION: Final = 16
USE: Final = "cut-segments"
"""The connection of these requests."""

TIMEOUT_MS: Final = 5_000.0
"""For one answer: a truncation of the log waits for it."""

FETCH_BYTES: Final = 1 << 20

AGAIN_MS: Final = 10_000.0
"""Before the same segment is tried again."""

REMEMBERED_MAX: Final = 1_000
"""Segments whose last failure is known."""


class NotFilledError(Exception):
    """A replica has not given what is missing; with the reason."""


class CutSegmentRepair:
    """See the module. On the loop's thread, but for `found`."""

    def __init__(
        self,
        node_id: int,
        segments: "CutSegments",
        peers: "PeerRequests",
        *,
        image: "Callable[[], ClusterImage]",
        disk: "Disk",
        clock: "Clock",
    ) -> None:
        """Fill up nothing yet.

        Args:
            node_id: Of this broker.
            segments: Of the log manager.
            peers: Answer Fetch.
            image: The newest.
            disk: Threads.
            clock: For when a segment is tried again.
        """
        self._node_id = node_id
        self._segments = segments
        self._peers = peers
        self._image = image
        self._disk = disk
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        # By path: when it may be tried again, monotonic.
        self._not_before_ms: dict[str, float] = {}

    def found(self, partition: "Partition", error: CutSegmentError) -> None:
        """A reader was refused; may be called from any thread."""
        self._segments.report(partition.topic_partition, error)
        self._loop.call_soon_threadsafe(self._begin, partition, error)

    def _begin(self, partition: "Partition", error: CutSegmentError) -> None:
        if self._is_closed or self._task is not None:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._not_before_ms.get(error.path, 0.0):
            return
        replicas = self._replicas_of(partition)
        if not replicas:
            return
        if len(self._not_before_ms) >= REMEMBERED_MAX:
            self._not_before_ms.clear()
        self._not_before_ms[error.path] = now_ms + AGAIN_MS
        self._task = self._loop.create_task(
            self._fill_safely(partition, error, replicas), name="cut segment"
        )

    def _replicas_of(self, partition: "Partition") -> Sequence[int]:
        """All others, who is most likely to have what is missing first."""
        record = self._image().partition(*partition.topic_partition)
        if record is None:
            return ()
        candidates = dict.fromkeys((record.leader, *record.isr, *record.replicas))
        return [node for node in candidates if node not in (-1, self._node_id)]

    async def _fill_safely(
        self, partition: "Partition", error: CutSegmentError, replicas: Sequence[int]
    ) -> None:
        try:
            await self._fill(partition, error, replicas)
        except CleaningAbortedError as stopped:
            LOGGER.info("cut segment not filled up path=%s reason=%s", error.path, stopped)
        except (CorruptFileError, DiskError, NotFilledError) as failure:
            LOGGER.error("cut segment not filled up path=%s reason=%s", error.path, failure)
        except Exception:  # it is as it was
            LOGGER.exception("cut segment not filled up path=%s", error.path)
        finally:
            self._task = None
            self._segments.refresh()

    async def _fill(
        self, partition: "Partition", error: CutSegmentError, replicas: Sequence[int]
    ) -> None:
        disk = self._disk.of(partition.log.directory)
        fill = await disk.run(self._segments.begin, partition.log, error)
        if fill is None:
            return
        try:
            first_offset, size = fill.next_offset, fill.size
            reasons = []
            for node in replicas:
                try:
                    await self._fetch_all(partition, fill, node, disk)
                except (NotFilledError, InvalidFillError) as failure:
                    reasons.append(f"broker {node}: {failure}")
                    continue
                await disk.run(fill.put)
                LOGGER.warning(
                    "cut segment filled up from another replica path=%s broker=%d first_offset=%d "
                    "end_offset=%d bytes=%d",
                    error.path,
                    node,
                    first_offset,
                    fill.end_offset,
                    fill.size - size,
                )
                return
            raise NotFilledError("; ".join(reasons))
        finally:
            await disk.run(fill.close)

    async def _fetch_all(
        self, partition: "Partition", fill: "SegmentFill", node: int, disk: "Disk"
    ) -> None:
        """Fetch what is missing from a broker, which may give a part of it."""
        while fill.next_offset < fill.end_offset:
            offset = fill.next_offset
            records = await self._fetch(partition, offset, node)
            await disk.run(fill.add, records)
            if fill.next_offset == offset:
                raise NotFilledError(f"has no whole batch at offset {offset}")

    async def _fetch(self, partition: "Partition", offset: int, node: int) -> memoryview:
        wanted = FetchPartition(
            partition=partition.topic_partition.partition,
            fetch_offset=offset,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic_id=partition.topic_id, partitions=[wanted])],
        )
        try:
            answer = await self._peers.request(
                node, request, FETCH_VERSION, timeout_ms=TIMEOUT_MS, use=USE
            )
        except PeerUnavailableError as error:
            raise NotFilledError(str(error)) from error
        assert isinstance(answer, FetchResponse)
        if answer.error_code:
            raise NotFilledError(f"answers with error {answer.error_code}")
        for topic in answer.responses:
            for found in topic.partitions:
                if found.error_code != ErrorCode.NONE:
                    raise NotFilledError(f"answers with error {found.error_code}")
                return memoryview(found.records or b"")
        raise NotFilledError("does not answer for the partition")

    async def aclose(self) -> None:
        """Fill up nothing more; the connections to peers are closed.

        What is under way is waited for, not cancelled: a thread may be writing.
        """
        self._is_closed = True
        self._segments.stop()
        if self._task is not None:
            await asyncio.wait([self._task])
