"""A partition that is open here: its role, fencing, appends, high watermark, waiting requests.

    opened ──> no role ──become_leader──> leads ──become_leader: a later epoch──> leads
                 │  ^                      │  ^
                 │  └───────resign─────────┤  │
                 └──become_follower──> follows ──> follows another, or in a later epoch

Each of these raises `role_number`: what comes late for an earlier role is dropped. Only a leader
takes appends; when it is one no longer, everything that waits is answered at once. Only a follower
takes fetched batches, and has its log truncated: a thread does that, and until it has ended nothing
else touches the log, and the partition takes no other role (`is_truncating`).

A leader's own log end counts as soon as a batch is in the log - or, with `flush.messages` reached,
as soon as it is on disk: then it waits for the flush, so that records which a power cut could lose
are neither acknowledged nor readable.

    append ──> log ──(nothing to flush)──────────────> own end = log end ──> high watermark
                │ └──(flush.messages reached)──> GroupCommit ──fdatasync done──┘
                └─(queued)─> PartitionWrites ──written─> as above

On one replica the high watermark is that end; on several, `LeaderState` says how far it is. Queued
records are not in the file yet: the log end offset moves when the directory's thread has written
them.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from broker.replicas.following import Following
from broker.replicas.group_commit import GroupCommit
from broker.replicas.offset_waits import OffsetWaits, Waits
from broker.replicas.partition_writes import PartitionWrites
from broker.replicas.preparation import Preparation
from broker.replication.leader_state import LeaderState, Proposal
from broker.runtime.errors import ApiError
from broker.runtime.watchers import Watchers
from protocol.error_codes import ErrorCode
from protocol.records.control import MARKER_SIZE
from storage.errors import DiskError
from storage.types.append_origin import AppendOrigin

if TYPE_CHECKING:
    from uuid import UUID

    from broker.controller.images.partition_image import PartitionImage
    from broker.network.connection import Connection
    from broker.replicas.following import Settled
    from broker.replicas.partition_context import PartitionContext
    from broker.replicas.topic_stats import TopicStats
    from broker.replication.replica_progress import ReplicaProgress
    from broker.runtime.directory_writer import DirectoryWriter
    from broker.runtime.disk import Disk
    from storage.log.log import AppendInfo, Log
    from storage.log.write_queue import BorrowedMemory
    from storage.producers.verification import TransactionTerms
    from storage.types.topic_partition import TopicPartition
    from storage.types.transaction_marker import TransactionMarker

NO_LEADER: Final = -1
NO_LEADER_EPOCH: Final = -1


class Partition:
    """See the module. Touched on the loop's thread only.

    Attributes:
        is_leader: Whether it takes appends.
        leader_id: Node that leads it, as far as is known here; -1: none.
        leader_epoch: Of that leader; -1 before the first role.
        role_number: Grows with every change of role or epoch.
        leading: Progress of the followers; None unless this broker leads it, and on one replica.
        following: Appends of what is fetched; None unless another broker leads it.
        is_truncating: A thread is changing the log.
        gone: Why waiting requests are not served here any more, NONE while it leads.
        commit_waits: Appends that wait for the high watermark; None before the first.
        write_waits: On several replicas, those that wait for this one's own end.
    """

    __slots__ = (
        "_after_truncation",
        "_context",
        "_disk",
        "commit",
        "commit_waits",
        "deletion_waits",
        "fetch_watchers",
        "following",
        "gone",
        "is_added",
        "is_leader",
        "is_truncating",
        "leader_epoch",
        "leader_id",
        "leading",
        "log",
        "preparation",
        "role_number",
        "stats",
        "topic_id",
        "topic_partition",
        "wake_due",
        "write_waits",
        "writes",
    )

    def __init__(
        self,
        topic_partition: "TopicPartition",
        topic_id: "UUID",
        log: "Log",
        *,
        stats: "TopicStats",
        disk: "Disk",
        context: "PartitionContext",
        writer: "DirectoryWriter | None" = None,
    ) -> None:
        """Without a role. `writer`: of the log's directory; without one appends write in place."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.role_number = 0
        self.leading: LeaderState | None = None
        self.following: Following | None = None
        self.is_truncating = False
        self._after_truncation: list[Callable[[], None]] = []
        self._disk = disk
        self.stats = stats
        self.fetch_watchers: Watchers | None = None
        self.commit_waits: OffsetWaits | None = None
        self.write_waits: OffsetWaits | None = None
        self.deletion_waits: OffsetWaits | None = None
        self.gone = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.commit = GroupCommit(log, disk, self._flushed, self._flush_failed, context.timer)
        self.writes: PartitionWrites | None = None
        if writer is not None:
            self.writes = PartitionWrites(
                log,
                writer,
                self._written,
                self._write_failed,
                self._taken_back,
                self._may_write,
            )
        self.preparation: Preparation | None = None
        self.wake_due = False
        # A reassignment adds this replica.
        self.is_added = False
        self._context = context

    # -- roles -----------------------------------------------------------------------------------

    def become_leader(
        self,
        state: "PartitionImage",
        *,
        now_ms: float,
        proposed: Proposal | None = None,
    ) -> None:
        """Take appends in the leader epoch of `state`, the partition's record.

        Appends of clients in an earlier epoch of the same leadership go on waiting: their records
        are still in the log. Coordinators begin anew.

        Args:
            state: With this broker as the leader.
            now_ms: Monotonic: members of the ISR have their grace from then on.
            proposed: What was under way when the log was closed that this broker led; None:
                nothing was. It counts only in the same epoch of the same record.
        """
        log = self.log
        if self.leading is not None:
            # In an epoch that has ended, which is what its followers get to hear.
            self.leading.tell_followers(has_records=True)
        if self.commit_waits is not None:
            self.commit_waits.fail_where(ErrorCode.NOT_LEADER_OR_FOLLOWER, is_internal=True)
        self._take_role(state.leader, state.leader_epoch)
        self.is_leader = True
        self.gone = ErrorCode.NONE
        log.begin_to_lead(state.leader_epoch)
        if len(state.replicas) == 1:
            # Everything is committed, whatever the checkpoint said.
            self.leading = None
            self._advance(log.log_end_offset)
            self.wake_fetches()
            return
        own_end_offset = log.log_end_offset
        if log.flusher.needs_flush or self.commit.flushing:
            own_end_offset = log.recovery_point
            self.commit.request()
        self.leading = LeaderState(
            state,
            self._context.terms,
            epoch_start_offset=log.next_offset,
            own_end_offset=own_end_offset,
            now_ms=now_ms,
        )
        if proposed is not None and proposed[:3] == (
            self.topic_id,
            state.leader_epoch,
            state.partition_epoch,
        ):
            self.leading.propose(proposed.isr, proposed.epochs)
            self._isr_due()
        self._advance(own_end_offset)
        # Consumers that waited at a follower.
        self.wake_fetches()

    @property
    def proposal(self) -> Proposal | None:
        """The change of the ISR that is under way; None: none is."""
        leading = self.leading
        if leading is None or leading.proposed is None:
            return None
        return Proposal(
            self.topic_id,
            leading.leader_epoch,
            leading.partition_epoch,
            leading.proposed,
            leading.proposed_epochs,
        )

    def update_isr(self, state: "PartitionImage") -> None:
        """Take a later record of the same leader epoch: the ISR or the replicas have changed."""
        leading = self.leading
        if leading is not None:
            leading.update(state)
            own_end_offset = leading.own_end_offset
            if len(state.replicas) == 1:
                self.leading = None
            self._advance(own_end_offset)
            if self.deletion_waits is not None:
                # A follower may live no longer.
                self.deletion_waits.reached(self.low_watermark)
            if self.commit_waits is not None and self.is_under_min_isr:
                # Nothing is committed until members come back, which may take long.
                code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
                self.commit_waits.fail_where(code, is_internal=False)
            self._isr_due()
        elif self.is_leader and len(state.replicas) > 1:
            context = self._context
            self.leading = LeaderState(
                state,
                context.terms,
                epoch_start_offset=self.log.next_offset,
                own_end_offset=self.log.high_watermark,
                now_ms=context.clock.monotonic_ms(),
            )

    def become_follower(self, leader: int, leader_epoch: int) -> None:
        """Take no appends any more: another broker leads; what waits is answered."""
        self._take_role(leader, leader_epoch)
        self._stop_leading(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.following = Following(self.log, self.commit, self.writes)

    def resign(self, code: ErrorCode) -> None:
        """Have no role: requests that wait are answered with `code`."""
        self.role_number += 1
        self._stop_following()
        self._stop_leading(code)

    def _stop_leading(self, code: ErrorCode) -> None:
        self.is_leader = False
        leading, self.leading = self.leading, None
        if leading is not None:
            leading.tell_followers(has_records=True)
        self.gone = code
        if self.fetch_watchers is not None:
            self.fetch_watchers.check()
        self._fail_waits(code)
        if self.deletion_waits is not None:
            self.deletion_waits.fail(code)

    def _stop_following(self) -> None:
        following, self.following = self.following, None
        if following is not None:
            following.settle(None)

    def _take_role(self, leader: int, leader_epoch: int) -> None:
        assert not self.is_truncating, self.topic_partition
        self.role_number += 1
        self._stop_following()
        self.leader_id = leader
        self.leader_epoch = leader_epoch
        self.pump()

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Fence a client whose leader epoch is older or newer than ours (KIP-320).

        Raises:
            ApiError: See `leader_epoch_error`.
        """
        code = self.leader_epoch_error(current_leader_epoch)
        if code is not None:
            raise ApiError(code)

    def leader_epoch_error(self, current_leader_epoch: int) -> ErrorCode | None:
        """The error for a client with this epoch; None for the same one, and where it is -1.

        FENCED_LEADER_EPOCH: it refreshes its metadata. UNKNOWN_LEADER_EPOCH: it retries until this
        broker has caught up.
        """
        if current_leader_epoch == NO_LEADER_EPOCH or current_leader_epoch == self.leader_epoch:
            return None
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        *,
        prepared: bool = False,
        terms: "TransactionTerms | None" = None,
        memory: "BorrowedMemory | None" = None,
        acks_all: bool = False,
        is_alone: bool = False,
    ) -> "AppendInfo":
        """Append batches; the caller then checks how far they are, and waits in `waits`.

        Args:
            records: As `LogWriter.append_as_leader` has them.
            now_ms: Milliseconds since 1970 UTC.
            origin: Of the batches.
            prepared: They come out of the log's `preparation`.
            terms: The batch's transaction, as verified.
            memory: Where the records lie, if they may be left there while they are queued.
            acks_all: It counts only once all of the ISR have it. So do all of coordinators.
            is_alone: No other append is behind it: a consumer that waits for this partition, as
                the only one, gets the records at once, if that is quick. After a burst, or with
                several, they get them in the loop's next iteration.

        Raises:
            ApiError: It is not led here; NOT_ENOUGH_REPLICAS: with `acks_all`, the ISR is smaller
                than `min.insync.replicas`.
            BatchError, ProducerError, DirectoryBusyError: Refused, nothing was written.
            DiskError: The directory has failed.
        """
        if not self.is_leader:
            raise ApiError(self.gone)
        leading = self.leading
        if (
            leading is not None
            and (acks_all or origin is AppendOrigin.COORDINATOR)
            and self.is_under_min_isr
        ):
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        info = log.writer.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            prepared=prepared,
            terms=terms,
            memory=memory,
        )
        if info.duplicate:
            return info
        stats = self.stats
        stats.bytes_in += len(records)
        stats.messages_in += info.last_offset - info.first_offset + 1
        if log.write_queue is not None:
            assert self.writes is not None
            self.writes.pump()
        elif (
            log.flusher.needs_flush
            or (log.high_watermark if leading is None else leading.own_end_offset)
            < info.first_offset
        ):
            # Also when records before these still wait for the disk, `flush.messages` having been
            # raised meanwhile: they must not be committed by the way.
            self.commit.request()
        elif leading is None:
            self._commit(log.log_end_offset, is_alone=is_alone)
        else:
            self._advance(log.log_end_offset)
        return info

    def append_markers(self, markers: "Sequence[TransactionMarker]", now_ms: int) -> int:
        """Append markers as `MarkerWriter.append` does; the caller then checks `is_committed`.

        Returns:
            The first one's offset; the others follow on it.

        Raises:
            ApiError: It is not led here; NOT_ENOUGH_REPLICAS as in `append`.
            DiskError: The directory has failed.
        """
        if not self.is_leader:
            raise ApiError(self.gone)
        if self.is_under_min_isr:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        first_offset = log.markers.append(markers, leader_epoch=self.leader_epoch, now_ms=now_ms)
        stats = self.stats
        stats.bytes_in += len(markers) * MARKER_SIZE
        stats.messages_in += len(markers)
        if log.write_queue is not None:
            assert self.writes is not None
            self.writes.pump()
        elif log.flusher.needs_flush or self.own_end_offset < first_offset:
            self.commit.request()
        else:
            self._advance(log.log_end_offset)
        return first_offset

    # -- following -------------------------------------------------------------------------------

    def append_fetched(
        self,
        records: memoryview,
        *,
        fetch_offset: int,
        settled: "Settled",
        memory: "BorrowedMemory | None" = None,
    ) -> bool:
        """Append batches that the leader has given, as `Log.follower` does.

        Args:
            records: Batches, the last of which may be cut off.
            fetch_offset: What the leader was asked for.
            settled: Called once all is written, and flushed where `flush.messages` asks for it, or
                with the error of the disk; also, without one, when the role ends before.
            memory: Where the records lie, if they may be left there while they are queued.

        Returns:
            Whether that is so already: then `settled` is not called.

        Raises:
            ApiError: It does not follow.
            BatchError, FollowerOffsetError: Refused, nothing was written.
            DiskError: The directory has failed, or has no room.
        """
        following = self.following
        if following is None or self.is_truncating:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            info, is_settled = following.append(
                records,
                fetch_offset=fetch_offset,
                leader_epoch=self.leader_epoch,
                memory=memory,
                settled=settled,
            )
        except DiskError as error:
            self._context.on_disk_failure(self, error)
            raise
        if info is not None:
            stats = self.stats
            stats.replication_bytes_in += len(records)
            if self.is_added:
                stats.reassignment_bytes_in += len(records)
        return is_settled

    def follow_high_watermark(self, leader_high_watermark: int, leader_log_start: int) -> None:
        """Take the leader's offsets from its answer: as far as they lie in this log.

        The high watermark may go down: a new leader may not have heard of the newest yet.
        """
        log = self.log
        high_watermark = log.high_watermark
        if leader_high_watermark != high_watermark:
            log.update_high_watermark(leader_high_watermark)
        if leader_log_start > log.log_start_offset:
            log.raise_log_start(leader_log_start)
        elif log.high_watermark == high_watermark:
            return
        self.wake_fetches()

    async def truncate(self, cut: "Callable[[Log], object]") -> None:
        """Have a thread remove records of a follower's log.

        What is being written is waited for; until this returns nothing else touches the log.

        Raises:
            DiskError: The directory has failed, or has no room.
        """
        assert not self.is_leader, self.topic_partition
        self.is_truncating = True
        try:
            if self.writes is not None:
                await self.writes.idle()
            await self.commit.idle()
            await self._disk.run(cut, self.log)
        except DiskError as error:
            self._context.on_disk_failure(self, error)
            raise
        finally:
            self.is_truncating = False
            self.pump()
            waiting, self._after_truncation = self._after_truncation, []
            for callback in waiting:
                callback()

    def when_truncated(self, callback: Callable[[], None]) -> None:
        """Call back once the log is not being truncated any more."""
        self._after_truncation.append(callback)

    def pump(self) -> None:
        """Write records that the log may have queued."""
        if self.writes is not None:
            self.writes.pump()

    def _may_write(self) -> bool:
        """Whether no thread may have the log: without a role it may be being closed."""
        return not self.is_truncating and (self.is_leader or self.following is not None)

    @property
    def is_congested(self) -> bool:
        """Whether so many bytes wait for its directory that clients are to be throttled."""
        return self.writes is not None and self.writes.writer.pace.is_congested

    def hold_back(self, connection: "Connection") -> None:
        """Pause a client's connection until fewer bytes wait."""
        if self.writes is not None:
            connection.wait_for_disk(self.writes.writer.when_uncongested)

    # -- how far it is, and for certain ------------------------------------------------------------

    def is_committed(self, end_offset: int) -> bool:
        """Whether everything below `end_offset` may be acknowledged."""
        return self.log.high_watermark >= end_offset

    def has_reached(self, end_offset: int, *, acks_all: bool) -> bool:
        """Whether everything below `end_offset` is where the acks ask for it."""
        return (self.log.high_watermark if acks_all else self.own_end_offset) >= end_offset

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the ISR is too small for appends with acks=all."""
        leading = self.leading
        return (
            leading is not None
            and not leading.has_all_in_sync
            and leading.is_under_min_isr(self.log.config.min_insync_replicas)
        )

    def is_in_doubt(self, now_ms: float) -> bool:
        """Whether another broker may lead it by now, and this one has not heard of it.

        Then nothing may be answered that another leader would answer differently: appends (see
        `is_in_doubt_for`), committed offsets, heartbeats, transactions. `now_ms` is monotonic.
        """
        leading = self.leading
        if leading is None or now_ms <= self._context.terms.validity.until_ms:
            return False
        config = self.log.config
        return not leading.is_confirmed(
            config.min_insync_replicas, now_ms, elects_any=self._elects_any
        )

    def has_led_since(self, since_ms: float) -> bool:
        """Whether no other broker can have led it by `since_ms`, whatever the image lacks.

        Its followers say so by their fetches: within two of their waits, without records to fetch.
        """
        leading = self.leading
        return leading is None or leading.is_confirmed_since(
            self.log.config.min_insync_replicas, since_ms, elects_any=self._elects_any
        )

    @property
    def _elects_any(self) -> bool:
        config = self.log.config
        return (
            config.unclean_leader_election_enable
            or config.unclean_recovery_strategy == "Aggressive"
        )

    def is_in_doubt_for(self, *, acks_all: bool) -> bool:
        """Whether a producer's append has to be refused because the leader is in doubt.

        acks=all needs no such care while there are followers to wait for: nothing is acknowledged
        without them. The only replica is never in doubt, so its appends read no clock.
        """
        leading = self.leading
        return (
            leading is not None
            and bool(leading.followers)
            and (not acks_all or leading.commits_alone)
            and self.is_in_doubt(self._context.clock.monotonic_ms())
        )

    @property
    def leads_for_certain(self) -> bool:
        """Whether it leads, and no other broker may do so by now.

        So no other replica's log can be known to end later than this one's. A follower may lack
        what it has not fetched yet, and a leader in doubt what another has been given: offsets
        above their log's end may have been read there.
        """
        return self.is_leader and not self.is_in_doubt(self._context.clock.monotonic_ms())

    @property
    def own_end_offset(self) -> int:
        """The end of what this replica holds for certain, as `flush.messages` has it."""
        leading = self.leading
        return self.log.high_watermark if leading is None else leading.own_end_offset

    # -- what threads of the disk have done --------------------------------------------------------

    def _written(self, former_end_offset: int) -> None:
        """Advance: the log end offset has moved, queued records are written."""
        if self.following is not None:
            self.following.written()
            return
        log = self.log
        if log.flusher.needs_flush or self.own_end_offset < former_end_offset:
            self.commit.request()
        elif self.is_leader:
            self._advance(log.log_end_offset)

    async def idle(self) -> None:
        """Wait until no write, flush, truncation is under way: the log's files will be deleted."""
        if self.is_truncating:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_truncated(lambda: ended.set_result(None))
            await ended
        if self.writes is not None:
            await self.writes.idle()
        await self.commit.idle()

    def _flushed(self, end_offset: int) -> None:
        """Advance after a group commit: `end_offset` is flushed."""
        if self.following is not None:
            self.following.flushed(end_offset)
        if self.is_leader and end_offset > self.own_end_offset:
            self._advance(end_offset)

    def _flush_failed(self, error: "DiskError") -> None:
        """Fail all waiting appends: their records may not be on disk."""
        if self.following is not None:
            self.following.settle(error)
        if self.commit.failed:
            self._fail_waits(ErrorCode.KAFKA_STORAGE_ERROR)
        self._context.on_disk_failure(self, error)

    def _write_failed(self, error: "DiskError") -> None:
        """Fail the appends of queued records, which are lost.

        If there was only no room, their offsets are assigned again.
        """
        if self.log.failure is not None:
            self.commit.failed = True
        if self.following is not None:
            self.following.settle(error)
        from_offset = -1 if self.commit.failed else self.log.log_end_offset
        self._fail_waits(ErrorCode.KAFKA_STORAGE_ERROR, from_offset=from_offset)
        self._context.on_disk_failure(self, error)

    def _taken_back(self) -> None:
        """Begin the leader epoch again, at the end that the log has without what was queued."""
        log = self.log
        if self.is_leader and log.failure is None:
            log.begin_to_lead(self.leader_epoch)
            if self.leading is not None:
                self.leading.begin_no_later_than(log.log_end_offset)

    def _fail_waits(self, code: ErrorCode, *, from_offset: int = -1) -> None:
        for waits in (self.commit_waits, self.write_waits):
            if waits is not None:
                waits.fail(code, from_offset=from_offset)

    # -- low watermark: DeleteRecords --------------------------------------------------------------

    @property
    def low_watermark(self) -> int:
        """Below it no live replica, and no member of the ISR, has records; -1: not known of one."""
        log_start: int = self.log.log_start_offset
        return log_start if self.leading is None else self.leading.low_watermark(log_start)

    def wait_for_low_watermark(self, offset: int, operation: "Waits", part: object) -> None:
        """Have a part of an operation settled when the low watermark has reached `offset`."""
        if self.deletion_waits is None:
            self.deletion_waits = OffsetWaits(self._context.waker)
        self.deletion_waits.add(offset, operation, part)

    def brokers_changed(self) -> None:
        """A follower may live no longer: what waits for the low watermark waits for it no more."""
        if self.deletion_waits is not None:
            self.deletion_waits.reached(self.low_watermark)

    # -- high watermark and ISR --------------------------------------------------------------------

    def _advance(self, own_end_offset: int) -> None:
        """This leader's own end counts up to here: move the high watermark as far as it goes."""
        leading = self.leading
        if self.write_waits is not None:
            self.write_waits.reached(own_end_offset)
        if leading is None:
            self._commit(own_end_offset)
        else:
            leading.own_end_offset = own_end_offset
            leading.tell_followers(has_records=True)
            self.advance_high_watermark(leading, self._context.clock.monotonic_ms())

    def follower_fetched(
        self, progress: "ReplicaProgress", now_ms: float, *, is_alone: bool = False
    ) -> None:
        """A follower's position has been noted: the high watermark may move.

        Args:
            progress: Where the position is.
            now_ms: Monotonic.
            is_alone: The follower's fetch has news of no other partition: consumers that wait get
                their records at once, before the producer its acknowledgement, as in Kafka. With
                several, a consumer's fetch of them is answered once, in the loop's next iteration.
        """
        leading = self.leading
        assert leading is not None
        self.advance_high_watermark(leading, now_ms, wakes_at_once=is_alone)
        if self.deletion_waits is not None:
            self.deletion_waits.reached(self.low_watermark)
        if (
            not progress.is_counted
            and leading.proposed is None
            and leading.can_join(progress, self.log.high_watermark)
        ):
            self._isr_due()

    def _isr_due(self) -> None:
        isr_due = self._context.terms.isr_due
        if isr_due is not None:
            isr_due(self)

    def reconfigured(self) -> None:
        """Settings of its topic have changed: `min.insync.replicas` may be smaller now."""
        if self.leading is not None:
            self.advance_high_watermark(self.leading, self._context.clock.monotonic_ms())

    def advance_high_watermark(
        self, leading: LeaderState, now_ms: float, *, wakes_at_once: bool = False
    ) -> None:
        """Move the high watermark as far as it goes: an end offset or the ISR has changed."""
        log = self.log
        # With all in sync there are always enough.
        min_insync_replicas = 1 if leading.has_all_in_sync else log.config.min_insync_replicas
        high_watermark = leading.high_watermark(log.high_watermark, min_insync_replicas, now_ms)
        if high_watermark > log.high_watermark:
            leading.tell_followers(has_records=False)
            self._commit(high_watermark, wakes_at_once=wakes_at_once)

    def _commit(self, offset: int, *, wakes_at_once: bool = False, is_alone: bool = False) -> None:
        self.log.update_high_watermark(offset)
        watchers = self.fetch_watchers
        if watchers is not None and not self.wake_due and not watchers.is_empty:
            if wakes_at_once:
                watchers.check()
            elif not (is_alone and watchers.check_quick()):
                self.wake_due = True
                self._context.wake(self)
        if self.commit_waits is not None:
            self.commit_waits.reached(offset)

    # -- requests that wait ------------------------------------------------------------------------

    def wake_fetches(self) -> None:
        """Try waiting fetches again: the log start offset has moved."""
        if self.leading is not None:
            self.leading.tell_followers(has_records=False)
        watchers = self.fetch_watchers
        if watchers is not None and not self.wake_due and not watchers.is_empty:
            self.wake_due = True
            self._context.wake(self)

    def watch_fetch(self) -> Watchers:
        """Requests that wait for records."""
        if self.fetch_watchers is None:
            self.fetch_watchers = Watchers(self._context.waker)
        return self.fetch_watchers

    def waits(self, *, acks_all: bool) -> OffsetWaits:
        """Appends that wait for all of the ISR, or for this replica alone."""
        if acks_all or self.leading is None:
            if self.commit_waits is None:
                self.commit_waits = OffsetWaits(self._context.waker)
            return self.commit_waits
        if self.write_waits is None:
            self.write_waits = OffsetWaits(self._context.waker)
        return self.write_waits
