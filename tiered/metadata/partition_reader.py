"""Reader of one partition of `__remote_log_metadata`: keeps its state, completes waiting writers.

    opening ──snapshot──> replaying ──end of the topic as it was──> following
       ^                      │                                        │
       └────────────a snapshot's block is malformed────────────────────┘

What was read was committed. A topic that has it no more, as its log was cut back by an unclean
election, or was trimmed, has lost events: what is known stays, and that there is a loss is
remembered (`tiered.metadata.snapshotter`).

A user partition that is wanted becomes visible once the reader follows, has read up to the end the
topic had after the wish, and has its block decoded. One that is wanted late needs nothing else: the
state has all user partitions of the metadata partition, wanted or not.

Only what is read here changes the state, in the order of the topic: a writer waits until its event
has been read back (`publish`), and learns then whether the state machine took it. With several
writers, the order in the topic is the one all brokers see, so the second of two contradicting
events is refused everywhere, whatever its writer knew when it wrote.

Everything runs on the loop in slices: there is no lock that could be waited for.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from protocol.errors import DecodeError
from protocol.internal.remote_log_metadata import PartitionDeleteMetadataRecord
from storage.environment.environment import Environment
from storage.errors import StorageError
from tiered.errors import (
    InvalidTransitionError,
    RemoteOffsetNotFoundError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    TieredError,
)
from tiered.metadata.log import LogPage, MetadataLog
from tiered.metadata.partition_state import MetadataPartitionState, key_of
from tiered.metadata.pending_events import PendingEvents
from tiered.metadata.records import EventRecord, decode_event
from tiered.metadata.settings import MetadataSettings
from tiered.metadata.snapshot import SnapshotError
from tiered.metadata.snapshotter import Snapshotter, gap_text
from tiered.metadata.stats import MetadataStats
from tiered.metadata.wanted_partitions import WantedPartition, WantedPartitions
from tiered.segment_metadata import TopicIdPartition
from tiered.slicer import Slicer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tiered.segment_metadata import RemotePartitionDelete

LOGGER = logging.getLogger(__name__)

READ_BYTES = 32 * 1024
"""Bytes of the topic that are decoded at a time: about a millisecond."""

PENDING_MAX = 10_000
"""Events of this broker that may be on their way into a metadata partition."""

COMPLAINTS_MAX = 10
"""Events found wrong that are logged one by one; then only every thousandth."""


class MetadataReader:
    """See the module."""

    def __init__(
        self,
        partition: int,
        log: MetadataLog,
        snapshotter: Snapshotter,
        *,
        environment: Environment,
        settings: MetadataSettings,
        stats: MetadataStats,
        slicer: Slicer,
        on_deleted: Callable[[TopicIdPartition], None],
    ) -> None:
        self.partition = partition
        self.is_loaded = False
        self.wanted = WantedPartitions()
        self._log = log
        self._snapshotter = snapshotter
        self._clock = environment.clock
        self._timer = environment.timer
        self._settings = settings
        self._stats = stats
        self._on_deleted = on_deleted
        self._slicer = slicer
        self._state: MetadataPartitionState | None = None
        self._ignore_snapshots = False
        self._snapshot_offset = 0
        # Where the next one is due, so that one that fails is not tried again at every event.
        self._snapshot_due = settings.snapshot_events
        self._snapshot_task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._pending_events = PendingEvents(environment.timer, settings.read_back_max_ms)
        self._complaints = 0
        self._catching_up: list[asyncio.Future[None]] = []
        # Noticed, and not yet remembered.
        self._loss = ""

    # -- wanted partitions -----------------------------------------------------------------------

    def want(self, partition: TopicIdPartition) -> None:
        """Make it visible as soon as possible."""
        if self.wanted.want(partition):
            self._wake.set()

    def refresh(self, partition: TopicIdPartition) -> None:
        """Hide it until everything has been read that is committed now."""
        self.wanted.hide(key_of(partition))
        self._wake.set()

    async def catch_up(self) -> None:
        """Return when everything has been read that was committed when this was called.

        Raises:
            RemoteStorageNotReadyError: The reader was closed.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._catching_up.append(future)
        self._wake.set()
        await future

    def release(self, partition: TopicIdPartition) -> None:
        """It is not wanted any more; its state stays, as that of all others here."""
        self.wanted.forget(key_of(partition))

    def deletions(self) -> "Iterator[RemotePartitionDelete]":
        """Of all user partitions; none before it is loaded."""
        return self._state.deletions() if self.is_loaded and self._state is not None else iter(())

    def known(self) -> "Iterator[TopicIdPartition]":
        """User partitions that have segments, wanted here or not; none before it is loaded."""
        if not self.is_loaded or self._state is None:
            return iter(())
        return (
            user.partition
            for user in self._state.users()
            if user.block is not None or len(user.cache)
        )

    def may_have(self, partition: TopicIdPartition) -> bool:
        """Whether any of its segments is known; also before it is loaded."""
        if not self.is_loaded or self._state is None:
            return True
        user = self._state.user(key_of(partition))
        return user is not None and (user.block is not None or len(user.cache) > 0)

    @property
    def lost(self) -> str:
        """What is known to be lost of the metadata partition; empty: nothing."""
        return "" if self._state is None else self._state.lost

    def note_loss(self, text: str) -> None:
        """Note that events are lost; it is remembered as soon as possible."""
        if not self.lost:
            self._loss = text
            self._wake.set()

    async def lose(self, text: str) -> None:
        """Remember that something is lost, before this returns; raises RemoteStorageError."""
        if self._state is not None and not self._state.lost:
            await self._snapshotter.lose(
                self._state, f"__remote_log_metadata-{self.partition} has lost events: {text}"
            )

    async def found(self) -> None:
        """What was lost is published again, or accepted as lost; raises RemoteStorageError."""
        self._loss = ""
        if self._state is not None:
            await self._snapshotter.found(self._state)

    @property
    def segments(self) -> int:
        """Segments that are decoded here, of all user partitions."""
        return 0 if self._state is None else self._state.segments

    # -- publication -----------------------------------------------------------------------------

    async def publish(self, *values: bytes) -> None:
        """Write events, all or none, and wait until they have been read back.

        Raises:
            InvalidTransitionError: Another broker's event came first, and contradicts it.
            RemoteStorageError: It could not be written, or was not read back in time.
            RemoteStorageNotReadyError: The metadata partition is not served here (any more).
        """
        if self._pending_events.pending >= PENDING_MAX:
            raise RemoteStorageError(f"{PENDING_MAX} events are being published already")
        self._pending_events.begin()
        try:
            first = await self._log.append(self.partition, *values)
            last = first + len(values) - 1
            state = self._state
            if state is None or state.next_offset <= last:
                self._wake.set()
                await self._pending_events.expect(last)
            self._stats.events_published += len(values)
            for offset in range(first, last + 1):
                self._pending_events.check(offset)
        except (RemoteStorageError, RemoteStorageNotReadyError):
            self._stats.publish_failures += 1
            raise
        finally:
            self._pending_events.end()

    # -- reading ---------------------------------------------------------------------------------

    def wake(self) -> None:
        """There may be more to read."""
        self._wake.set()

    async def run(self) -> None:
        """Read until cancelled; errors are retried."""
        delay_ms = self._settings.retry_ms
        while True:
            try:
                if self.is_loaded:
                    await self._follow()
                else:
                    await self._load()
                delay_ms = self._settings.retry_ms
                continue
            except RemoteStorageNotReadyError:
                # Its log is not open yet, or was deleted; `wake` says when to try again.
                pass
            except RemoteOffsetNotFoundError:
                if await self._mend():
                    continue
            except SnapshotError as error:
                LOGGER.error(
                    "remote log metadata snapshots are corrupt, reading __remote_log_metadata "
                    "instead %s",
                    error,
                )
                self._stats.snapshots_ignored += 1
                self._ignore_snapshots = True
                self._reset()
                continue
            except (TieredError, StorageError, DecodeError) as error:
                self._stats.read_failures += 1
                LOGGER.warning(
                    "remote log metadata cannot be read, trying again "
                    "partition=__remote_log_metadata-%d retry_ms=%d error=%s",
                    self.partition,
                    delay_ms,
                    error,
                )
            except Exception:
                self._stats.read_failures += 1
                LOGGER.exception(
                    "remote log metadata reader failed partition=__remote_log_metadata-%d",
                    self.partition,
                )
            await self._pause(delay_ms)
            delay_ms = min(2 * delay_ms, self._settings.retry_max_ms)

    async def _pause(self, delay_ms: float) -> None:
        """Until `wake`, or until time is up."""
        self._wake.clear()
        handle = self._timer.call_later_ms(delay_ms, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            handle.cancel()

    async def _load(self) -> None:
        started_ms = self._clock.monotonic_ms()
        offsets = await self._log.offsets(self.partition)
        state = self._state
        if state is None:
            state = await self._snapshotter.load(
                self.partition, self._log.topic_id, offsets, ignore=self._ignore_snapshots
            )
            self._snapshot_offset = state.next_offset
            self._snapshot_due = state.next_offset + self._settings.snapshot_events
            self._state = state
        first = state.next_offset
        await self._read_until(state, offsets.end)
        self.is_loaded = True
        took_ms = self._clock.monotonic_ms() - started_ms
        self._stats.loaded += 1
        self._stats.loading_ms = max(self._stats.loading_ms, took_ms)
        if offsets.end:
            LOGGER.info(
                "remote log metadata loaded partition=__remote_log_metadata-%d events=%d of=%d "
                "elapsed_ms=%d",
                self.partition,
                state.next_offset - first,
                state.next_offset,
                took_ms,
            )
        self._snapshot_if_many()

    async def _follow(self) -> None:
        """One step: make visible what is wanted, or read what is new, or wait."""
        state = self._state
        assert state is not None
        self._wake.clear()
        if self._loss:
            text, self._loss = self._loss, ""
            await self.lose(text)
        new = self.wanted.invisible()
        if new or self._catching_up:
            await self._show(state, new)
            return
        page = await self._log.read(self.partition, state.next_offset, READ_BYTES)
        if page.next_offset > state.next_offset:
            await self._apply_page(state, page)
            self._snapshot_if_many()
        else:
            await self._wake.wait()

    async def _show(self, state: MetadataPartitionState, new: list[WantedPartition]) -> None:
        catching_up = len(self._catching_up)
        offsets = await self._log.offsets(self.partition)
        await self._read_until(state, offsets.end)
        done, self._catching_up = (
            self._catching_up[:catching_up],
            self._catching_up[catching_up:],
        )
        for future in done:
            if not future.done():
                future.set_result(None)
        await self._slicer.pause()
        for wanted in new:
            user = state.ensure(wanted.partition)
            if user.block is not None:
                await self._slicer.go_through(user.reading_block())
            self.wanted.show(wanted, user)
            await self._slicer.worked(4)

    async def _read_until(self, state: MetadataPartitionState, end: int) -> None:
        if state.next_offset > end:
            raise RemoteOffsetNotFoundError(
                f"__remote_log_metadata-{self.partition}", None, state.next_offset
            )
        while state.next_offset < end:
            await self._slicer.pause()
            page = await self._log.read(self.partition, state.next_offset, READ_BYTES)
            if page.next_offset <= state.next_offset:
                raise RemoteStorageError(f"nothing to read at {state.next_offset}, end is {end}")
            await self._apply_page(state, page)

    async def _apply_page(self, state: MetadataPartitionState, page: LogPage) -> None:
        applied = self._pending_events.applied
        for offset, value in page.records:
            if offset < state.next_offset:
                continue
            await self._apply(state, offset, value)
            # Now, not at the page's end: a task that runs in between sees what is true.
            state.next_offset = offset + 1
            applied(offset)
            await self._slicer.worked(1)
        state.next_offset = page.next_offset
        self._stats.events_read += len(page.records)
        # Decoding a page has cost about as much as applying it.
        await self._slicer.worked(1 + len(page.records))

    async def _apply(self, state: MetadataPartitionState, offset: int, value: bytes) -> None:
        try:
            record = decode_event(value)
            user = state.user((record.topic_id, record.partition))
            if user is not None and user.block is not None:
                await self._slicer.go_through(user.reading_block())
            state.apply(record)
        except DecodeError as error:
            self._stats.events_undecodable += 1
            self._refuse(offset, RemoteStorageError(f"event {offset} is malformed: {error}"))
        except InvalidTransitionError as error:
            self._stats.events_refused += 1
            self._refuse(offset, error)
        else:
            if type(record) is PartitionDeleteMetadataRecord:
                self._after_deletion(state, record)

    def _after_deletion(self, state: MetadataPartitionState, record: EventRecord) -> None:
        key = (record.topic_id, record.partition)
        if state.user(key) is None:
            partition = self.wanted.forget(key)
            if partition is not None:
                self._on_deleted(partition)

    def _refuse(self, offset: int, error: TieredError) -> None:
        self._pending_events.refused(offset, error)
        self._complaints += 1
        if self._complaints <= COMPLAINTS_MAX or self._complaints % 1000 == 0:
            LOGGER.warning(
                "remote log metadata event ignored partition=__remote_log_metadata-%d offset=%d "
                "count=%d reason=%s",
                self.partition,
                offset,
                self._complaints,
                error,
            )

    async def _mend(self) -> bool:
        """The topic does not go on where we are; False: try again later."""
        state = self._state
        try:
            offsets = await self._log.offsets(self.partition)
        except TieredError:
            return False
        if state is None or offsets.start <= state.next_offset <= offsets.end:
            return False
        try:
            if state.next_offset < offsets.start:
                await self._snapshotter.lose(state, gap_text(state, offsets.start))
                state.next_offset = offsets.start
            else:
                # It was cut back. A start that found this out by a snapshot would do the same.
                kept = await self._snapshotter.keep(state, self._log.topic_id, offsets)
                self._snapshot_offset = offsets.end if kept else 0
                self._snapshot_due = offsets.end + self._settings.snapshot_events
        except TieredError:
            return False
        return True

    def _reset(self) -> None:
        """Start over; nothing is visible until that is done."""
        self._state = None
        self.is_loaded = False
        self.wanted.hide_all()

    # -- snapshots -------------------------------------------------------------------------------

    @property
    def events_since_snapshot(self) -> int:
        """Events a start would have to read besides the newest snapshot."""
        return 0 if self._state is None else self._state.next_offset - self._snapshot_offset

    def _snapshot_if_many(self) -> None:
        if self._state is not None and self._state.next_offset >= self._snapshot_due:
            self.begin_snapshot()

    def begin_snapshot(self) -> None:
        """Write one in the background, if there is anything new and none is being written."""
        state = self._state
        if state is None or not self.is_loaded or not self.events_since_snapshot:
            return
        if self._snapshot_task is None and self._snapshotter.may_write(self.partition):
            self._snapshot_due = state.next_offset + self._settings.snapshot_events
            self._snapshot_task = asyncio.get_running_loop().create_task(self._snapshot())

    async def last_snapshot(self) -> None:
        """Wait for the one that is being written, then write what is new; `run` has ended."""
        if self._snapshot_task is not None:
            await self._snapshot_task
        may_write = self._snapshotter.may_write(self.partition)
        if self.is_loaded and self.events_since_snapshot and may_write:
            await self._snapshot()

    async def _snapshot(self) -> None:
        try:
            if self._state is not None:
                written = await self._snapshotter.write(self._state, self._log.topic_id)
                if written is not None:
                    self._snapshot_offset = max(self._snapshot_offset, written)
        finally:
            self._snapshot_task = None

    def close(self) -> None:
        """Fail all waiters; `run` has been cancelled."""
        for future in self._catching_up:
            if not future.done():
                future.set_exception(
                    RemoteStorageNotReadyError(
                        f"__remote_log_metadata-{self.partition} is not read here any more"
                    )
                )
        self._catching_up.clear()
        self.wanted.forget_all()
        self._pending_events.close()
