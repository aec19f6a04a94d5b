"""Bugs for Varve, seeded on purpose: does the checker notice?

Each replaces a piece of the broker in a process started for it (`tests.checker.mutant_broker`) and
names the faults it needs to show. Rare ones are drawn with a fixed seed.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from storage.append_info import AppendInfo
from tests.checker.workloads import SHARING, TRANSACTIONAL

_RANDOM: Final = random.Random(4711)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug."""

    apply: Callable[[], None]
    faults: tuple[str, ...] = ()
    delayed: bool = False
    """Shown by delayed requests instead of the workload."""
    workload: tuple[str, ...] = TRANSACTIONAL

    @property
    def summary(self) -> str:
        """What the bug is."""
        return (self.apply.__doc__ or "").strip().rstrip(".")


def _replace(owner: Any, name: str, value: object) -> None:
    setattr(owner, name, value)


def lso_ignored() -> None:
    """Consumers that ask for committed records read up to the high watermark."""
    from storage.log_state import LogState

    _replace(LogState, "last_stable_offset", property(lambda log: log.high_watermark))


def aborted_list_empty() -> None:
    """Fetch tells of no aborted transaction."""
    from storage.log_read import LogReads

    _replace(LogReads, "aborted_transactions", lambda *_: [])


def aborted_index_not_recovered() -> None:
    """After a crash the transaction index is empty."""
    from storage.log import Log
    from storage.transaction_index import TransactionIndex

    opened: Any = vars(Log)["open"].__func__
    append = TransactionIndex.append

    def opening(cls: type[Log], *arguments: Any, **named: Any) -> Log:
        def forget(index: TransactionIndex, txn: object) -> None:
            index.reset()

        _replace(TransactionIndex, "append", forget)
        try:
            log: Log = opened(cls, *arguments, **named)
            return log
        finally:
            _replace(TransactionIndex, "append", append)

    _replace(Log, "open", classmethod(opening))


def marker_forgotten() -> None:
    """One marker in twenty is reported as written, and is not."""
    from broker.groups.coordinator import OFFSETS_TOPIC
    from broker.transactions import markers
    from protocol.error_codes import ErrorCode

    write_to = markers.LocalMarkerWriter._write_to

    def sometimes(writer: Any, topic_partition: Any, writes: list[Any]) -> None:
        kept = []
        for write in writes:
            if topic_partition[0] == OFFSETS_TOPIC or _RANDOM.random() >= 0.05:
                kept.append(write)
            else:
                write.answer(topic_partition, ErrorCode.NONE)
        if kept:
            write_to(writer, topic_partition, kept)

    _replace(markers.LocalMarkerWriter, "_write_to", sometimes)


def abort_marker_as_commit() -> None:
    """One abort in ten gets commit markers."""
    from broker.replica_manager import ReplicaManager

    append = ReplicaManager.append_markers

    def appending(replicas: Any, partition: Any, markers: Any) -> Any:
        wrong = [
            marker._replace(commit=True) if _RANDOM.random() < 0.1 else marker for marker in markers
        ]
        return append(replicas, partition, wrong)

    _replace(ReplicaManager, "append_markers", appending)


def acknowledged_not_written() -> None:
    """One produce in a hundred is acknowledged and not written."""
    from broker.partition import Partition
    from storage.append_origin import AppendOrigin

    append = Partition.append

    def sometimes(
        partition: Any,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        **named: Any,
    ) -> AppendInfo:
        if origin is AppendOrigin.CLIENT and _RANDOM.random() < 0.01:
            end = partition.log.log_end_offset
            if end:
                return AppendInfo(end - 1, end - 1, -1, partition.log.log_start_offset, False)
        return append(partition, records, now_ms, origin, **named)

    _replace(Partition, "append", sometimes)


def offset_off_by_one() -> None:
    """One produce in a hundred is told the offset after its own."""
    from broker.partition import Partition
    from storage.append_origin import AppendOrigin

    append = Partition.append

    def sometimes(
        partition: Any,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        **named: Any,
    ) -> AppendInfo:
        info = append(partition, records, now_ms, origin, **named)
        if origin is AppendOrigin.CLIENT and _RANDOM.random() < 0.01:
            return info._replace(first_offset=info.first_offset + 1)
        return info

    _replace(Partition, "append", sometimes)


def duplicates_written() -> None:
    """A batch that was sent again is written again."""
    from storage.producer_state import ProducerStateManager

    check = ProducerStateManager.check

    def checked(state: Any, *arguments: Any, **named: Any) -> None:
        check(state, *arguments, **named)

    _replace(ProducerStateManager, "check", checked)


def late_end_accepted() -> None:
    """EndTxn of version 2 does not look at the epoch."""
    from broker.transactions import end_transaction
    from broker.transactions.transaction_state import TransactionState

    check: Any = vars(end_transaction)["check_end"]

    def checked(metadata: Any, producer: Any, *, commit: bool) -> Any:
        if metadata.pending is None and metadata.state is TransactionState.ONGOING:
            return None
        return check(metadata, producer, commit=commit)

    _replace(end_transaction, "check_end", checked)


def late_produce_accepted() -> None:
    """Neither partition nor coordinator looks at the epoch of a transactional batch."""
    from broker.transactions import partitions
    from storage.append_origin import AppendOrigin
    from storage.producer_state import ProducerStateManager

    check = ProducerStateManager.check

    def checked(state: Any, *arguments: Any) -> Any:
        is_client_data = arguments[6] is AppendOrigin.CLIENT and not arguments[5]
        if is_client_data and arguments[4]:
            entry = state.last_entry(arguments[0])
            if entry is not None and arguments[1] < entry.epoch:
                return None
        return check(state, *arguments)

    _replace(ProducerStateManager, "check", checked)
    _replace(partitions, "_check", lambda metadata, producer: None)


def pending_offsets_applied_early() -> None:
    """Offsets of a transaction count before it is committed."""
    from broker.groups.offset_store import OffsetStore

    def put(store: Any, _producer_id: int, key: Any, committed: Any) -> None:
        store.put(*key, committed)

    _replace(OffsetStore, "put_pending", put)


def aborted_offsets_kept() -> None:
    """Offsets of an aborted transaction are committed."""
    from broker.groups.offset_store import OffsetStore

    end = OffsetStore.end_transaction

    def ended(store: OffsetStore, producer_id: int, *, commit: bool) -> None:
        assert commit in (True, False)
        end(store, producer_id, commit=True)

    _replace(OffsetStore, "end_transaction", ended)


def committed_offsets_dropped() -> None:
    """Offsets of a committed transaction are dropped, one time in ten."""
    from broker.groups.offset_store import OffsetStore

    end = OffsetStore.end_transaction

    def ended(store: OffsetStore, producer_id: int, *, commit: bool) -> None:
        end(store, producer_id, commit=commit and _RANDOM.random() >= 0.1)

    _replace(OffsetStore, "end_transaction", ended)


def recovery_drops_a_batch() -> None:
    """After a crash the last record of a log is gone."""
    from storage.log import Log

    opened: Any = vars(Log)["open"].__func__

    def opening(cls: type[Log], *arguments: Any, **named: Any) -> Log:
        log: Log = opened(cls, *arguments, **named)
        if not named.get("clean_shutdown") and log.log_end_offset > 1:
            log.truncate_to(log.log_end_offset - 1)
        return log

    _replace(Log, "open", classmethod(opening))


def transaction_log_not_replayed() -> None:
    """A coordinator begins with no transactions after a restart."""
    from broker.transactions.loader import TransactionLoader

    async def nothing(_loader: Any, _shard: Any, _stats: Any) -> None:
        return

    _replace(TransactionLoader, "fill", nothing)


def commit_answered_and_forgotten() -> None:
    """One commit in fifty is answered and nothing more is done."""
    from broker.transactions.end_transaction import EndTransaction
    from broker.transactions.parts import ProducerIdAndEpoch
    from protocol.error_codes import ErrorCode

    end = EndTransaction.end

    def sometimes(
        self: Any, transactional_id: str, producer: ProducerIdAndEpoch, **named: Any
    ) -> None:
        old = named["client_transaction_version"] < 2
        if old and named["commit"] and _RANDOM.random() < 0.02:
            named["done"](ErrorCode.NONE, producer)
            return
        end(self, transactional_id, producer, **named)

    _replace(EndTransaction, "end", sometimes)


def partition_not_added() -> None:
    """One partition in twenty is reported as added to the transaction, and is not."""
    from broker.transactions.partitions import TransactionPartitions

    add = TransactionPartitions.add

    def sometimes(
        self: Any, transactional_id: str, producer: Any, partitions: Any, **named: Any
    ) -> None:
        kept = [one for one in partitions if _RANDOM.random() >= 0.05] or list(partitions)[:1]
        add(self, transactional_id, producer, kept, **named)

    _replace(TransactionPartitions, "add", sometimes)


def fetch_skips_a_batch() -> None:
    """One read in fifty begins a record too late."""
    from storage.log_read import LogReads

    read = LogReads.read

    def sometimes(log: Any, offset: int, **named: Any) -> Any:
        if _RANDOM.random() < 0.02 and offset + 2 < named["end_offset"]:
            offset += 2
        return read(log, offset, **named)

    _replace(LogReads, "read", sometimes)


def offsets_replay_loses() -> None:
    """After a restart a group's newest offsets are those of one commit before."""
    from broker.groups import coordinator, loader
    from broker.groups.offset_store import OffsetStore

    fill = loader.fill_shard
    put = OffsetStore.put

    async def filled(*arguments: Any) -> None:
        def stale(store: Any, group: str, topic: str, partition: int, committed: Any) -> None:
            value = committed.value._replace(offset=max(committed.value.offset - 3, 0))
            put(store, group, topic, partition, committed._replace(value=value))

        _replace(OffsetStore, "put", stale)
        try:
            await fill(*arguments)
        finally:
            _replace(OffsetStore, "put", put)

    _replace(loader, "fill_shard", filled)
    _replace(coordinator, "fill_shard", filled)


def generation_not_checked() -> None:
    """A member that was thrown out commits offsets."""
    from broker.groups.classic_group import ClassicGroup
    from protocol.error_codes import ErrorCode

    _replace(ClassicGroup, "validate_offset_commit", lambda *_, **__: ErrorCode.NONE)


def member_epoch_not_checked() -> None:
    """As before, in groups of the new protocol."""
    from broker.groups.consumer.consumer_group import ConsumerGroup
    from protocol.error_codes import ErrorCode

    _replace(ConsumerGroup, "validate_offset_commit", lambda *_, **__: ErrorCode.NONE)


def partition_given_before_revoked() -> None:
    """A member of a consumer group gets partitions that another one has not given back yet."""
    from broker.groups.consumer import consumer_protocol

    reconcile: Any = vars(consumer_protocol)["reconcile"]

    def reconciled(member: Any, **named: Any) -> Any:
        return reconcile(member, **{**named, "partition_epoch": lambda *_: -1})

    _replace(consumer_protocol, "reconcile", reconciled)


def only_newest_transaction_counts() -> None:
    """The last stable offset is that of the newest open transaction."""
    from storage.log_state import LogState

    def last_stable_offset(log: Any) -> int:
        high_watermark: int = log.high_watermark
        return min(high_watermark, max(log.producer_state._ongoing or (high_watermark,)))

    _replace(LogState, "last_stable_offset", property(last_stable_offset))


def impatient_last_stable_offset() -> None:
    """The last stable offset waits 50 ms for a transaction, then passes over it."""
    from storage.log_state import LogState

    seen: dict[tuple[int, int], float] = {}

    def last_stable_offset(log: Any) -> int:
        high_watermark: int = log.high_watermark
        for first in sorted(log.producer_state._ongoing or ()):
            since = seen.setdefault((id(log), first), time.monotonic())
            if time.monotonic() - since < 0.05:
                return min(int(first), high_watermark)
        return high_watermark

    _replace(LogState, "last_stable_offset", property(last_stable_offset))


def answered_before_written() -> None:
    """One producer in ten waits a second with its batches, long after it has told of success."""
    from broker.partition import Partition
    from storage.append_origin import AppendOrigin

    append = Partition.append
    held: dict[tuple[int, int], list[tuple[bytes, int]]] = {}

    def sometimes(
        partition: Any,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        **named: Any,
    ) -> AppendInfo:
        producer_id = int.from_bytes(records[43:51], "big", signed=True)
        whose = (id(partition), producer_id)
        is_plain = origin is AppendOrigin.CLIENT and not records[22] & 0x10 and producer_id >= 0
        if not is_plain or (whose not in held and _RANDOM.random() >= 0.1):
            return append(partition, records, now_ms, origin, **named)
        if whose not in held:
            held[whose] = []

            def write() -> None:
                for batch, then_ms in held.pop(whose):
                    append(partition, memoryview(batch), then_ms, origin)

            asyncio.get_running_loop().call_later(1.0, write)
        held[whose].append((bytes(records), now_ms))
        return AppendInfo(-1, -1, -1, partition.log.log_start_offset, False)

    _replace(Partition, "append", sometimes)


def share_state_not_replayed() -> None:
    """A share coordinator begins with no states after a restart."""
    from broker.share.share_loader import ShareLoader

    async def nothing(_loader: Any, _start: int, _end: int) -> None:
        return

    _replace(ShareLoader, "read", nothing)


def share_state_not_written() -> None:
    """One acknowledgement in five of a share group is answered and not written."""
    from broker.share.share_partition import SharePartition
    from protocol.error_codes import ErrorCode

    write = SharePartition._write

    def sometimes(share: SharePartition, batches: Any, done: Any) -> None:
        if _RANDOM.random() < 0.2:
            done(ErrorCode.NONE)
        else:
            write(share, batches, done)

    _replace(SharePartition, "_write", sometimes)


def share_accept_forgotten() -> None:
    """One acceptance in fifty by a share group's member is taken for a release."""
    from broker.share.share_partition import SharePartition

    acknowledge = SharePartition.acknowledge
    accept, release = 1, 2

    def sometimes(share: SharePartition, member_id: str, said: Any, done: Any) -> None:
        if _RANDOM.random() < 0.02:
            said = [
                one._replace(types=[release if kind == accept else kind for kind in one.types])
                for one in said
            ]
        acknowledge(share, member_id, said, done)

    _replace(SharePartition, "acknowledge", sometimes)


def share_release_is_final() -> None:
    """What a share group's member releases is given up."""
    from broker.share.in_flight import RecordState
    from broker.share.share_partition import SharePartition

    _replace(SharePartition, "_released_state", lambda _share, _run: RecordState.ARCHIVED)


def share_lock_for_ever() -> None:
    """A lock of a share group never runs out, not even when its member has gone."""
    from broker.share.share_partition import SharePartition
    from protocol.error_codes import ErrorCode

    _replace(SharePartition, "_expire", lambda _share, _lock: None)
    _replace(SharePartition, "release", lambda _share, _member, done: done(ErrorCode.NONE))


def share_limit_ignored() -> None:
    """A share group gives no record up."""
    from broker.share.in_flight import RecordState
    from broker.share.share_partition import SharePartition

    _replace(SharePartition, "_released_state", lambda _share, _run: RecordState.AVAILABLE)


def share_aborted_delivered() -> None:
    """A share group that asks for committed records gets aborted ones, too."""
    from broker.share.share_partition import SharePartition

    acquire = SharePartition.acquire

    def acquired(share: SharePartition, member_id: str, batches: Any, **named: Any) -> Any:
        return acquire(share, member_id, batches, **{**named, "aborted": ()})

    _replace(SharePartition, "acquire", acquired)


def share_skips_a_record() -> None:
    """One fetch in twenty of a share group passes over a record."""
    from broker.share.in_flight import RecordState, Run
    from broker.share.share_partition import SharePartition

    acquire = SharePartition.acquire

    def sometimes(share: SharePartition, member_id: str, batches: Any, **named: Any) -> Any:
        at = share.end_offset
        if batches and batches[-1].last_offset > at and share.in_flight and _RANDOM.random() < 0.05:
            share._in_flight.append(Run(at, at, RecordState.ARCHIVED, 0))
            share.end_offset = at + 1
        return acquire(share, member_id, batches, **named)

    _replace(SharePartition, "acquire", sometimes)


MUTANTS: Final[dict[str, Mutant]] = {
    "lso-ignored": Mutant(lso_ignored),
    "aborted-list-empty": Mutant(aborted_list_empty),
    "aborted-index-not-recovered": Mutant(aborted_index_not_recovered, ("kill",)),
    "marker-forgotten": Mutant(marker_forgotten),
    "abort-marker-as-commit": Mutant(abort_marker_as_commit),
    "acknowledged-not-written": Mutant(acknowledged_not_written),
    "offset-off-by-one": Mutant(offset_off_by_one),
    "duplicates-written": Mutant(duplicates_written, ("proxy",)),
    "late-end-accepted": Mutant(late_end_accepted, delayed=True),
    "late-produce-accepted": Mutant(late_produce_accepted, delayed=True),
    "pending-offsets-applied-early": Mutant(pending_offsets_applied_early),
    "aborted-offsets-kept": Mutant(aborted_offsets_kept),
    "committed-offsets-dropped": Mutant(committed_offsets_dropped),
    "recovery-drops-a-batch": Mutant(recovery_drops_a_batch, ("kill",)),
    "transaction-log-not-replayed": Mutant(transaction_log_not_replayed, ("kill",)),
    "commit-answered-and-forgotten": Mutant(commit_answered_and_forgotten),
    "partition-not-added": Mutant(partition_not_added),
    "fetch-skips-a-batch": Mutant(fetch_skips_a_batch),
    "offsets-replay-loses": Mutant(offsets_replay_loses, ("kill",)),
    "generation-not-checked": Mutant(generation_not_checked),
    "member-epoch-not-checked": Mutant(member_epoch_not_checked),
    "partition-given-before-revoked": Mutant(partition_given_before_revoked, ("clients",)),
    "only-newest-transaction-counts": Mutant(only_newest_transaction_counts),
    "impatient-last-stable-offset": Mutant(impatient_last_stable_offset),
    "answered-before-written": Mutant(answered_before_written),
    "share-state-not-replayed": Mutant(share_state_not_replayed, ("kill",), workload=SHARING),
    "share-state-not-written": Mutant(share_state_not_written, ("kill",), workload=SHARING),
    "share-accept-forgotten": Mutant(share_accept_forgotten, workload=SHARING),
    "share-release-is-final": Mutant(share_release_is_final, workload=SHARING),
    "share-lock-for-ever": Mutant(share_lock_for_ever, ("clients",), workload=SHARING),
    "share-limit-ignored": Mutant(share_limit_ignored, workload=SHARING),
    "share-aborted-delivered": Mutant(share_aborted_delivered, workload=SHARING),
    "share-skips-a-record": Mutant(share_skips_a_record, workload=SHARING),
}
"""By name."""
