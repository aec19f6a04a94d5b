"""The read of one share fetch: it reads the logs, and acquires the records.

Nothing is acquired before there is enough to answer: a record that waits in a parked request would
be processed by no member. Reading and acquiring are one step of the loop, so no two requests get
the same record.

Records that only remote storage has are requested, and the fetch is tried again when they arrive;
those that arrive after its wait are in the cache for the client's next request.

Index pages that are not in memory are read by threads (`storage.index.reads`), and the fetch is
tried again afterwards.

Source: Kafka, DelayedShareFetch.java, ShareFetchUtils.java.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.coordinator.persister import SharePartitionKey
from broker.replicas.delayed_remote_fetch import ANSWERED_AT_ONCE
from broker.runtime.errors import ApiError, code_of
from broker.share.delivery.fetched_batches import (
    FetchedBatch,
    Records,
    aborted_ranges,
    part_of,
    scan,
)
from broker.share.delivery.share_partition import Acquired, SharePartition, SharePartitionState
from protocol.error_codes import ErrorCode
from storage.errors import (
    DiskError,
    OffsetNotLocalError,
    OffsetOutOfRangeError,
    StorageError,
)
from storage.index.reads import NOWAIT, CachedReads, Reads, WouldBlockError
from tiered.errors import TieredError
from tiered.remote_read import RemoteRecords

if TYPE_CHECKING:
    from broker.replicas.cold_reads import ColdRead
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.share.delivery.share_partitions import SharePartitions
    from tiered.remote_read import RemoteRead

_READS_MAX = 8
"""Consecutive reads while all records belong to aborted transactions."""


class ShareReadTerms(NamedTuple):
    """The parameters of a share fetch."""

    group_id: str
    member_id: str
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_exact: bool
    is_read_committed: bool
    client: tuple[str, str]


class Delivery(NamedTuple):
    """The records of one partition."""

    error_code: int
    records: Records | None
    acquired: Sequence[Acquired]


NOTHING = Delivery(0, None, ())


class _Found(NamedTuple):
    key: SharePartitionKey
    share_partition: SharePartition
    partition: "Partition"
    offset: int
    records: Records


class ShareRead:
    """One request's partitions, and the state of each read."""

    __slots__ = (
        "_cold",
        "_found",
        "_remote",
        "_replicas",
        "_share",
        "_terms",
        "failed",
        "open",
        "wanted",
    )

    def __init__(
        self,
        share: "SharePartitions",
        replicas: "ReplicaManager",
        terms: ShareReadTerms,
        wanted: Sequence[SharePartitionKey],
    ) -> None:
        """Open every share-partition; those that cannot be are in `failed`.

        Args:
            share: Has the share-partitions.
            replicas: Has the logs.
            terms: The request's parameters.
            wanted: In order of preference.
        """
        self._share = share
        self._replicas = replicas
        self._terms = terms
        self.wanted = wanted
        self.failed: dict[SharePartitionKey, ErrorCode] = {}
        self.open: dict[SharePartitionKey, SharePartition] = {}
        # Reads of remote storage under way, by share-partition and start offset.
        self._remote: dict[SharePartitionKey, tuple[int, RemoteRead]] = {}
        # Reads of index pages in threads, and their results.
        self._cold: dict[SharePartitionKey, ColdRead] = {}
        self._found: dict[SharePartitionKey, CachedReads] = {}
        for key in wanted:
            self._open(key)

    def _open(self, key: SharePartitionKey) -> None:
        def failed(code: ErrorCode) -> None:
            self.open.pop(key, None)
            self.failed[key] = code

        try:
            share_partition = self._share.open(key, failed)
        except ApiError as error:
            self.failed[key] = error.code
            return
        if key not in self.failed:
            self.open[key] = share_partition

    def watched(self) -> list[tuple[SharePartition, "Partition"]]:
        """The share-partitions and partitions to watch."""
        watched = []
        for key, share_partition in self.open.items():
            try:
                watched.append((share_partition, self._share.partition_of(key)))
            except ApiError as error:
                self.failed[key] = error.code
        return watched

    def take(self, *, force: bool) -> dict[SharePartitionKey, Delivery] | None:
        """Acquire and deliver; None if there is too little, unless `force`."""
        for _ in range(_READS_MAX):
            found = self._find(force=force)
            size = sum(one.records.length for one in found)
            has_failed = not self.open
            if not force and not has_failed and (not found or size < self._terms.min_bytes):
                return None
            delivered = self._deliver(found)
            if delivered or force or has_failed:
                return self._complete(delivered)
            if not found or self._cold:
                return None
        # So many aborted records are rare enough for an empty answer.
        return self._complete({})

    def _complete(
        self, delivered: dict[SharePartitionKey, Delivery]
    ) -> dict[SharePartitionKey, Delivery]:
        complete = {}
        for key in self.wanted:
            code = self.failed.get(key)
            if code is not None and key not in delivered:
                complete[key] = Delivery(int(code), None, ())
            else:
                complete[key] = delivered.get(key, NOTHING)
        return complete

    def _find(self, *, force: bool) -> list[_Found]:
        candidates = []
        for key, share_partition in list(self.open.items()):
            if share_partition.state in (SharePartitionState.FENCED, SharePartitionState.FAILED):
                del self.open[key]
                self.failed.setdefault(key, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif share_partition.can_acquire():
                candidates.append((key, share_partition))
        found: list[_Found] = []
        size = 0
        for at, (key, share_partition) in enumerate(candidates):
            # The unused part of one's share goes to those after it.
            room = (self._terms.max_bytes - size) // (len(candidates) - at)
            try:
                partition = self._share.partition_of(key)
                one = self._read(
                    key,
                    share_partition,
                    partition,
                    max(room, 0),
                    is_first=not found,
                    force=force,
                )
            except (ApiError, StorageError, TieredError) as error:
                del self.open[key]
                self.failed[key] = code_of(error)
                continue
            if one is not None:
                found.append(one)
                size += one.records.length
        return found

    def _read(
        self,
        key: SharePartitionKey,
        share_partition: SharePartition,
        partition: "Partition",
        max_bytes: int,
        *,
        is_first: bool,
        force: bool,
    ) -> _Found | None:
        log = partition.log
        share_partition.raise_log_start(log.log_start_offset)
        offset = share_partition.next_fetch_offset()
        committed_only = self._terms.is_read_committed
        end_offset = log.last_stable_offset if committed_only else log.high_watermark
        try:
            records = log.reader.read(
                offset,
                max_bytes=max_bytes,
                end_offset=end_offset,
                min_one_batch=is_first,
                reads=self._found.get(key, NOWAIT),
            )
        except WouldBlockError as need:
            self._read_from_disk(key, partition, need)
            return None
        except OffsetNotLocalError:
            remote = self._read_remote(key, partition, offset, max_bytes, force=force)
            if remote is None:
                return None
            return _Found(key, share_partition, partition, offset, remote)
        except OffsetOutOfRangeError:
            if offset > log.log_end_offset:
                # The log was cut: as in Kafka the group waits until it has grown that far again.
                return None
            raise
        except DiskError as error:
            self._replicas.disk_failed(partition, error)
            raise
        partition.stats.fetches += 1
        if records is None or not records.length:
            return None
        return _Found(key, share_partition, partition, offset, records)

    def _read_remote(
        self,
        key: SharePartitionKey,
        partition: "Partition",
        offset: int,
        max_bytes: int,
        *,
        force: bool,
    ) -> Records | None:
        """The records read from remote storage; retriable errors are raised only with `force`."""
        known = self._remote.get(key)
        if known is not None and known[0] != offset:
            self._let_go(key)
            known = None
        if known is None:
            read = self._replicas.remote.read(
                partition,
                offset,
                max_bytes=max_bytes,
                min_one_batch=True,
                with_aborted=self._terms.is_read_committed,
                client=self._terms.client,
            )
            self._remote[key] = (offset, read)
            read.on_finished = self.open[key].watchers.check
        else:
            read = known[1]
        if read.error is not None and (force or isinstance(read.error, ANSWERED_AT_ONCE)):
            raise read.error
        if not read.finished or read.records is None or not read.records.length:
            return None
        return read.records

    def _read_from_disk(
        self, key: SharePartitionKey, partition: "Partition", need: WouldBlockError
    ) -> None:
        """Read missing index pages in a thread; the fetch is tried again afterwards."""
        if key in self._cold:
            return
        # Not the error itself: see `Missing`.
        what = need.key

        def done(result: object, error: StorageError | None) -> None:
            del self._cold[key]
            self._found.setdefault(key, CachedReads()).keep(what, result, error)
            share_partition = self.open.get(key)
            if share_partition is not None:
                share_partition.watchers.check()

        directory = partition.log.directory.rpartition("/")[0]
        read = self._replicas.cold_reads.start(directory, what, need.work, done)
        if read is not None:
            self._cold[key] = read

    def _let_go(self, key: SharePartitionKey) -> None:
        _, read = self._remote.pop(key)
        read.on_finished = None
        if not read.finished:
            read.release()

    def release(self) -> None:
        """End the reads after the answer; those under way may still fill the cache."""
        for key in list(self._remote):
            self._let_go(key)
        for read in self._cold.values():
            read.leave()
        self._cold.clear()

    def cancel(self) -> None:
        """Cancel all reads: the client has disconnected."""
        for _, read in self._remote.values():
            read.on_finished = None
            if not read.finished:
                read.cancel()
        self._remote.clear()
        for waiting in self._cold.values():
            waiting.cancel()
        self._cold.clear()

    def _deliver(self, found: Sequence[_Found]) -> dict[SharePartitionKey, Delivery]:
        terms = self._terms
        delivered: dict[SharePartitionKey, Delivery] = {}
        left = terms.max_records
        for key, share_partition, partition, offset, records in found:
            if left <= 0:
                break
            try:
                # All released records may be acquired, and `left` new ones.
                last_offset = max(offset, share_partition.end_offset) + left - 1
                batches, aborted = self._inspect(
                    partition, offset, records, last_offset, self._found.get(key, NOWAIT)
                )
            except WouldBlockError as need:
                self._read_from_disk(key, partition, need)
                continue
            if not batches:
                continue
            acquired = share_partition.acquire(
                terms.member_id,
                batches,
                fetch_offset=offset,
                max_records=left,
                batch_size=terms.batch_size,
                is_exact=terms.is_exact,
                aborted=aborted,
            )
            if not acquired:
                continue
            part = part_of(records, batches, acquired[0].first, acquired[-1].last)
            partition.stats.bytes_out += part.length
            delivered[key] = Delivery(0, part, acquired)
            left -= sum(one.last - one.first + 1 for one in acquired)
        return delivered

    def _inspect(
        self,
        partition: "Partition",
        offset: int,
        records: Records,
        last_offset: int,
        reads: Reads,
    ) -> tuple[Sequence[FetchedBatch], Sequence[tuple[int, int]]]:
        """The batches, and the ranges of those whose transaction was aborted."""
        batches = scan(records, last_offset, reads)
        if not batches or not self._terms.is_read_committed:
            return batches, ()
        transactions = (
            records.aborted
            if isinstance(records, RemoteRecords)
            else partition.log.reader.aborted_transactions(offset, records, reads)
        )
        return batches, aborted_ranges(
            records, batches, transactions, reads
        ) if transactions else ()
