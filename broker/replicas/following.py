"""A follower's side of a partition: what it fetches is written, flushed where asked, then settled.

    append_fetched ──> log ──in place──────────────────────> settled at once
                        │  └─queued──> PartitionWrites ──┬──> settled
                        └──(flush.messages reached)──> GroupCommit ──┘
                           refused, the disk has failed ──> settled, with the error

The next Fetch names the log end, and by that the leader counts the records as held: so it leaves
when all is settled. One answer of a partition is under way at a time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.replicas.group_commit import GroupCommit
    from broker.replicas.partition_writes import PartitionWrites
    from storage.errors import DiskError
    from storage.log.log import AppendInfo, Log
    from storage.log.write_queue import BorrowedMemory

Settled = Callable[["DiskError | None"], None]


class Following:
    """See the module. Lives as long as a partition follows in one role."""

    __slots__ = ("_commit", "_log", "_settled", "_writes")

    def __init__(self, log: "Log", commit: "GroupCommit", writes: "PartitionWrites | None") -> None:
        self._log = log
        self._commit = commit
        self._writes = writes
        self._settled: Settled | None = None

    def append(
        self,
        records: memoryview,
        *,
        fetch_offset: int,
        leader_epoch: int,
        memory: "BorrowedMemory | None",
        settled: Settled,
    ) -> "tuple[AppendInfo | None, bool]":
        """Append fetched batches; see `Partition.append_fetched`.

        Returns:
            Their offsets, if any batch was whole; and whether they are settled: else `settled` is
            called once they are.
        """
        log = self._log
        info = log.follower.append(
            records, fetch_offset=fetch_offset, leader_epoch=leader_epoch, memory=memory
        )
        if info is None:
            return None, True
        if log.write_queue is not None:
            assert self._writes is not None
            self._settled = settled
            self._writes.pump()
        elif log.flusher.needs_flush:
            self._settled = settled
            self._commit.request()
        return info, self._settled is None

    def written(self) -> None:
        """Queued records have been written."""
        log = self._log
        if self._settled is None or log.write_queue is not None:
            return
        if log.flusher.needs_flush:
            self._commit.request()
        else:
            self.settle(None)

    def flushed(self, end_offset: int) -> None:
        """The log is on disk up to here."""
        if end_offset >= self._log.next_offset:
            self.settle(None)

    def settle(self, error: "DiskError | None") -> None:
        """Answer what waits: all is held, or it will not be. Nothing happens if nothing waits."""
        settled, self._settled = self._settled, None
        if settled is not None:
            settled(error)
