"""Bugs for Varve, seeded on purpose: does the checker notice?

Each replaces a piece of the broker in a process started for it
(`tests.checker.mutation.mutant_broker`) and names the faults it needs to show. Rare ones are drawn
with a fixed seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from storage.types.append_info import AppendInfo
from tests.checker.mutation import order_mutants, share_mutants
from tests.checker.mutation.seeding import RANDOM, replace
from tests.checker.workloads import CIRCLING, SHARING, TRANSACTIONAL


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


def lso_ignored() -> None:
    """Consumers that ask for committed records read up to the high watermark."""
    from storage.log.state import LogState

    replace(LogState, "last_stable_offset", property(lambda log: log.high_watermark))


def aborted_list_empty() -> None:
    """Fetch tells of no aborted transaction."""
    from storage.log.read import LogReader

    replace(LogReader, "aborted_transactions", lambda *_: [])


def aborted_index_not_recovered() -> None:
    """After a crash the transaction index is empty."""
    from storage.index.transaction_index import TransactionIndex
    from storage.log.log import Log

    opened: Any = vars(Log)["open"].__func__
    append = TransactionIndex.append

    def opening(cls: type[Log], *arguments: Any, **named: Any) -> Log:
        def forget(index: TransactionIndex, txn: object) -> None:
            index.reset()

        replace(TransactionIndex, "append", forget)
        try:
            log: Log = opened(cls, *arguments, **named)
            return log
        finally:
            replace(TransactionIndex, "append", append)

    replace(Log, "open", classmethod(opening))


def marker_forgotten() -> None:
    """One marker in twenty is reported as written, and is not."""
    from broker.groups.coordinator import OFFSETS_TOPIC
    from broker.transactions.partitions import markers
    from protocol.error_codes import ErrorCode

    write_to = markers.LocalMarkerWriter._write_to

    def sometimes(writer: Any, topic_partition: Any, writes: list[Any]) -> None:
        kept = []
        for write in writes:
            if topic_partition[0] == OFFSETS_TOPIC or RANDOM.random() >= 0.05:
                kept.append(write)
            else:
                write.answer(topic_partition, ErrorCode.NONE)
        if kept:
            write_to(writer, topic_partition, kept)

    replace(markers.LocalMarkerWriter, "_write_to", sometimes)


def abort_marker_as_commit() -> None:
    """One abort in ten gets commit markers."""
    from broker.replicas.replica_manager import ReplicaManager

    append = ReplicaManager.append_markers

    def appending(replicas: Any, partition: Any, markers: Any) -> Any:
        wrong = [
            marker._replace(commit=True) if RANDOM.random() < 0.1 else marker for marker in markers
        ]
        return append(replicas, partition, wrong)

    replace(ReplicaManager, "append_markers", appending)


def acknowledged_not_written() -> None:
    """One produce in a hundred is acknowledged and not written."""
    from broker.replicas.partition import Partition
    from storage.types.append_origin import AppendOrigin

    append = Partition.append

    def sometimes(
        partition: Any,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        **named: Any,
    ) -> AppendInfo:
        if origin is AppendOrigin.CLIENT and RANDOM.random() < 0.01:
            end = partition.log.log_end_offset
            if end:
                return AppendInfo(end - 1, end - 1, -1, partition.log.log_start_offset, False)
        return append(partition, records, now_ms, origin, **named)

    replace(Partition, "append", sometimes)


def offset_off_by_one() -> None:
    """One produce in a hundred is told the offset after its own."""
    from broker.replicas.partition import Partition
    from storage.types.append_origin import AppendOrigin

    append = Partition.append

    def sometimes(
        partition: Any,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        **named: Any,
    ) -> AppendInfo:
        info: AppendInfo = append(partition, records, now_ms, origin, **named)
        if origin is AppendOrigin.CLIENT and RANDOM.random() < 0.01:
            info.first_offset += 1
        return info

    replace(Partition, "append", sometimes)


def duplicates_written() -> None:
    """A batch that was sent again is written again."""
    from storage.producers.state import ProducerStateManager

    check = ProducerStateManager.check

    def checked(state: Any, *arguments: Any, **named: Any) -> None:
        check(state, *arguments, **named)

    replace(ProducerStateManager, "check", checked)


def late_end_accepted() -> None:
    """EndTxn of version 2 does not look at the epoch."""
    from broker.transactions.coordinator import end_transaction
    from broker.transactions.coordinator.transaction_state import TransactionState

    check: Any = vars(end_transaction)["check_end"]

    def checked(metadata: Any, producer: Any, *, commit: bool) -> Any:
        if metadata.pending is None and metadata.state is TransactionState.ONGOING:
            return None
        return check(metadata, producer, commit=commit)

    replace(end_transaction, "check_end", checked)


def late_produce_accepted() -> None:
    """Neither partition nor coordinator looks at the epoch of a transactional batch."""
    from broker.transactions.coordinator import add_partitions as partitions
    from storage.producers.state import ProducerStateManager
    from storage.types.append_origin import AppendOrigin

    check = ProducerStateManager.check

    def checked(state: Any, *arguments: Any) -> Any:
        is_client_data = arguments[6] is AppendOrigin.CLIENT and not arguments[5]
        if is_client_data and arguments[4]:
            entry = state.last_entry(arguments[0])
            if entry is not None and arguments[1] < entry.epoch:
                return None
        return check(state, *arguments)

    replace(ProducerStateManager, "check", checked)
    replace(partitions, "_check", lambda metadata, producer: None)


def pending_offsets_applied_early() -> None:
    """Offsets of a transaction count before it is committed."""
    from broker.groups.state.offset_store import OffsetStore

    def put(store: Any, _producer_id: int, key: Any, committed: Any) -> None:
        store.put(*key, committed)

    replace(OffsetStore, "put_pending", put)


def aborted_offsets_kept() -> None:
    """Offsets of an aborted transaction are committed."""
    from broker.groups.state.offset_store import OffsetStore

    end = OffsetStore.end_transaction

    def ended(store: OffsetStore, producer_id: int, *, commit: bool) -> None:
        assert commit in (True, False)
        end(store, producer_id, commit=True)

    replace(OffsetStore, "end_transaction", ended)


def committed_offsets_dropped() -> None:
    """Offsets of a committed transaction are dropped, one time in ten."""
    from broker.groups.state.offset_store import OffsetStore

    end = OffsetStore.end_transaction

    def ended(store: OffsetStore, producer_id: int, *, commit: bool) -> None:
        end(store, producer_id, commit=commit and RANDOM.random() >= 0.1)

    replace(OffsetStore, "end_transaction", ended)


def recovery_drops_a_batch() -> None:
    """After a crash the last record of a log is gone."""
    from storage.log.log import Log

    opened: Any = vars(Log)["open"].__func__

    def opening(cls: type[Log], *arguments: Any, **named: Any) -> Log:
        log: Log = opened(cls, *arguments, **named)
        if not named.get("clean_shutdown") and log.log_end_offset > 1:
            log.truncation.truncate_to(log.log_end_offset - 1)
        return log

    replace(Log, "open", classmethod(opening))


def transaction_log_not_replayed() -> None:
    """A coordinator begins with no transactions after a restart."""
    from broker.transactions.coordinator.shard import TransactionShard

    replace(TransactionShard, "replay", lambda *_: None)


def commit_answered_and_forgotten() -> None:
    """One commit in fifty is answered and nothing more is done."""
    from broker.transactions.coordinator.end_transaction import EndTransaction
    from broker.transactions.interfaces import ProducerIdAndEpoch
    from protocol.error_codes import ErrorCode

    end = EndTransaction.end

    def sometimes(
        self: Any, transactional_id: str, producer: ProducerIdAndEpoch, **named: Any
    ) -> None:
        old = named["client_transaction_version"] < 2
        if old and named["commit"] and RANDOM.random() < 0.02:
            named["done"](ErrorCode.NONE, producer)
            return
        end(self, transactional_id, producer, **named)

    replace(EndTransaction, "end", sometimes)


def partition_not_added() -> None:
    """One partition in twenty is reported as added to the transaction, and is not."""
    from broker.transactions.coordinator.add_partitions import TransactionPartitions

    add = TransactionPartitions.add

    def sometimes(
        self: Any, transactional_id: str, producer: Any, partitions: Any, **named: Any
    ) -> None:
        kept = [one for one in partitions if RANDOM.random() >= 0.05] or list(partitions)[:1]
        add(self, transactional_id, producer, kept, **named)

    replace(TransactionPartitions, "add", sometimes)


def fetch_skips_a_batch() -> None:
    """One read in fifty begins a record too late."""
    from storage.log.read import LogReader

    read = LogReader.read

    def sometimes(log: Any, offset: int, **named: Any) -> Any:
        if RANDOM.random() < 0.02 and offset + 2 < named["end_offset"]:
            offset += 2
        return read(log, offset, **named)

    replace(LogReader, "read", sometimes)


def offsets_replay_loses() -> None:
    """After a restart a group's newest offsets are those of one commit before."""
    from broker.groups import replay
    from broker.groups import shard as coordinator_shard
    from broker.groups.state.offset_store import OffsetStore

    fill = replay.fill_shard
    put = OffsetStore.put

    async def filled(*arguments: Any) -> None:
        def stale(store: Any, group: str, topic: str, partition: int, committed: Any) -> None:
            value = committed.value._replace(offset=max(committed.value.offset - 3, 0))
            put(store, group, topic, partition, committed._replace(value=value))

        replace(OffsetStore, "put", stale)
        try:
            await fill(*arguments)
        finally:
            replace(OffsetStore, "put", put)

    replace(coordinator_shard, "fill_shard", filled)


def generation_not_checked() -> None:
    """A member that was thrown out commits offsets."""
    from broker.groups.classic.classic_group import ClassicGroup
    from protocol.error_codes import ErrorCode

    replace(ClassicGroup, "validate_offset_commit", lambda *_, **__: ErrorCode.NONE)


def member_epoch_not_checked() -> None:
    """As before, in groups of the new protocol."""
    from broker.groups.consumer.consumer_group import ConsumerGroup
    from protocol.error_codes import ErrorCode

    replace(ConsumerGroup, "validate_offset_commit", lambda *_, **__: ErrorCode.NONE)


def partition_given_before_revoked() -> None:
    """A member of a consumer group gets partitions that another one has not given back yet."""
    from broker.groups.consumer import rebalance

    reconcile: Any = vars(rebalance)["reconcile"]

    def reconciled(member: Any, **named: Any) -> Any:
        return reconcile(member, **{**named, "partition_epoch": lambda *_: -1})

    replace(rebalance, "reconcile", reconciled)


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
    "only-newest-transaction-counts": Mutant(
        order_mutants.only_newest_transaction_counts, workload=CIRCLING
    ),
    "impatient-last-stable-offset": Mutant(
        order_mutants.impatient_last_stable_offset, workload=CIRCLING
    ),
    "answered-before-written": Mutant(order_mutants.answered_before_written),
    "share-state-not-replayed": Mutant(
        share_mutants.state_not_replayed, ("kill",), workload=SHARING
    ),
    "share-state-not-written": Mutant(share_mutants.state_not_written, ("kill",), workload=SHARING),
    "share-accept-forgotten": Mutant(share_mutants.accept_forgotten, workload=SHARING),
    "share-release-is-final": Mutant(share_mutants.release_is_final, workload=SHARING),
    "share-lock-for-ever": Mutant(share_mutants.lock_for_ever, ("clients",), workload=SHARING),
    "share-limit-ignored": Mutant(share_mutants.limit_ignored, workload=SHARING),
    "share-aborted-delivered": Mutant(share_mutants.aborted_delivered, workload=SHARING),
    "share-skips-a-record": Mutant(share_mutants.skips_a_record, workload=SHARING),
}
"""By name."""
