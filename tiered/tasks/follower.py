"""Follower state after OFFSET_MOVED_TO_TIERED_STORAGE, built from remote storage.

The leader has the wanted offsets in remote storage only. The follower does not download records: it
begins where the leader's local log begins, and takes over what the records before would have
taught it (leader epochs and producers):

    Fetch answers 109 ──> ask the leader for its earliest local offset L, of epoch E
                      ──> ask for the end of epoch E - 1: which epoch wrote L - 1
                      ──> find the remote segment that holds (epoch, L - 1); it ends at N - 1
                      ──> if that is behind L - 1: does the leader have its last epoch up to there
                      ──> fetch its leader epochs and its producer snapshot
                      ──> empty the log; it begins at N; put both in place
                      ──> go on fetching from N

A past leader may have copied more than the leader has, which an unclean election has cut off. Begun
behind that the log would have diverged, and begin anew, again and again. The leader's own copy of
those offsets is waited for.

Both files are fetched and checked before the log is emptied, so that a failure leaves it as it was.
A segment that is not known yet is a reason to try again, not an error of the log. Emptying it and
putting both in place block for the disk: they are done in a thread, where nothing else touches the
log (`broker.replication.fetcher.log_repair`).

Source: Kafka, TierStateMachine.java; KIP-405.
"""

from typing import NamedTuple, Protocol

from storage.checkpoints.checkpoint_files import decode_epochs
from storage.environment.timer import Timer
from storage.errors import CorruptFileError
from storage.log.log import Log
from storage.log.truncation import StateBelow
from storage.producers.snapshot import decode_snapshot
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import (
    CorruptRemoteDataError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    TieredError,
)
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition
from tiered.tasks.task_counters import TaskCounters
from tiered.tier import SideFile, Tier


class EpochOffset(NamedTuple):
    """An offset, and the leader epoch that goes with it."""

    epoch: int
    offset: int


class LeaderEndpoint(Protocol):
    """What a follower asks its leader. Each call ends; its errors are of OSError or TieredError."""

    async def earliest_local_offset(
        self, partition: TopicIdPartition, leader_epoch: int
    ) -> EpochOffset:
        """The first offset in the leader's local log, and its epoch (ListOffsets, -4)."""
        ...

    async def epoch_end_offset(
        self, partition: TopicIdPartition, leader_epoch: int, epoch: int
    ) -> EpochOffset:
        """The greatest epoch not above `epoch`, and its end, exclusive (OffsetForLeaderEpoch)."""
        ...


async def fetch_auxiliary_state(
    segment: RemoteLogSegmentMetadata, tier: Tier, timer: Timer, call_timeout_ms: int
) -> StateBelow:
    """Fetch and check both side files of a segment.

    Raises:
        RemoteStorageError: They could not be fetched.
        CorruptRemoteDataError: They do not parse.
    """
    next_offset = segment.end_offset + 1
    async with Deadline(timer, call_deadline_ms(call_timeout_ms, 2), f"side files of {segment.id}"):
        checkpoint = await tier.fetch_side_file(segment, SideFile.LEADER_EPOCH)
        snapshot = await tier.fetch_side_file(segment, SideFile.PRODUCER_SNAPSHOT)
    name = f"leader epochs of {segment.id}"
    try:
        epochs = decode_epochs(checkpoint, name)
        name = f"producer snapshot of {segment.id}"
        decode_snapshot(snapshot, name)
    except CorruptFileError as error:
        raise CorruptRemoteDataError(name, -1, str(error)) from error
    epochs = [entry for entry in epochs if entry[1] < next_offset]
    if not epochs:
        raise CorruptRemoteDataError(f"leader epochs of {segment.id}", -1, "there are none")
    return StateBelow(next_offset, epochs, snapshot)


def install_auxiliary_state(
    log: Log, state: StateBelow, *, log_start_offset: int, now_ms: int
) -> None:
    """Empty a log and let it begin at `state.next_offset`. Blocks for the disk.

    Args:
        log: Loses all its records; its next one gets `state.next_offset`.
        state: See there.
        log_start_offset: Of the leader: what lies between it and the new start is remote.
        now_ms: Wall clock; producers that are silent too long are left out.

    Raises:
        DiskError: The disk refused; the log may be empty, which is tried again in the same way.
    """
    log.truncation.start_behind(state, log_start_offset=log_start_offset, now_ms=now_ms)
    log.highest_remote_offset = state.next_offset - 1


class TierStateMachine:
    """See the module."""

    __slots__ = ("_call_timeout_ms", "_counters", "_metadata", "_tier", "_timer")

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        timer: Timer,
        counters: TaskCounters,
        call_timeout_ms: int,
    ) -> None:
        self._metadata = metadata
        self._tier = tier
        self._timer = timer
        self._counters = counters
        self._call_timeout_ms = call_timeout_ms

    async def find(
        self, partition: TopicIdPartition, log: Log, leader: LeaderEndpoint, *, leader_epoch: int
    ) -> StateBelow:
        """Find what `install_auxiliary_state` needs; the partition's metadata must be assigned.

        The log is not changed, and may be in use meanwhile.

        Args:
            partition: Whose.
            log: Of the follower.
            leader: Of the partition.
            leader_epoch: The present one.

        Raises:
            TieredError: To be tried again after a while.
            OSError: The leader has not answered; likewise.
        """
        counters = self._counters.of(partition.topic)
        counters.build_aux_requests += 1
        try:
            if not self._metadata.is_ready(partition):
                raise RemoteStorageNotReadyError(f"metadata of {partition} is still being read")
            epoch, offset = await self._last_remote(partition, leader, leader_epoch)
            segment = self._metadata.find(partition, epoch, offset)
            if segment is None:
                raise RemoteStorageError(
                    f"{partition}: no remote segment is known with offset {offset} of epoch {epoch}"
                )
            if segment.end_offset > offset:
                await self._require_history(segment, partition, leader, leader_epoch)
            return await fetch_auxiliary_state(
                segment, self._tier, self._timer, self._call_timeout_ms
            )
        except (TieredError, OSError):
            counters.build_aux_errors += 1
            raise

    async def _require_history(
        self,
        segment: RemoteLogSegmentMetadata,
        partition: TopicIdPartition,
        leader: LeaderEndpoint,
        leader_epoch: int,
    ) -> None:
        """Raises RemoteStorageError: the end of the segment is not in the leader's history."""
        last_epoch = segment.segment_leader_epochs[-1].epoch
        async with Deadline(
            self._timer, call_deadline_ms(self._call_timeout_ms, 1), f"the leader of {partition}"
        ):
            epoch, end = await leader.epoch_end_offset(partition, leader_epoch, last_epoch)
        if epoch != last_epoch or end <= segment.end_offset:
            raise RemoteStorageError(
                f"{partition}: remote segment {segment.id} ends at {segment.end_offset} of epoch "
                f"{last_epoch}, which is of another history than the leader's: that has epoch "
                f"{epoch} up to {end - 1}"
            )

    async def _last_remote(
        self, partition: TopicIdPartition, leader: LeaderEndpoint, leader_epoch: int
    ) -> EpochOffset:
        """The offset before the leader's first local one, and the epoch that wrote it."""
        async with Deadline(
            self._timer, call_deadline_ms(self._call_timeout_ms, 2), f"the leader of {partition}"
        ):
            epoch, first_local = await leader.earliest_local_offset(partition, leader_epoch)
            if epoch > 0:
                earlier = await leader.epoch_end_offset(partition, leader_epoch, epoch - 1)
                # Epochs that wrote nothing are passed over: the leader names the one that did.
                if earlier.offset > first_local - 1:
                    epoch = earlier.epoch
        return EpochOffset(epoch, first_local - 1)
