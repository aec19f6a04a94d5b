"""Bugs of replication, seeded on purpose: does the simulation notice?

Each replaces a piece of the broker in a process of its own (`--mutant NAME`); `--mutants` tries
them one after the other, each for a time.
"""

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any, Final

from tests.checker.mutation.seeding import replace


def committed_isr_counts() -> None:
    """The high watermark goes by the committed ISR, not by who is about to join as well."""
    from broker.replication.leader_state import LeaderState

    def count(self: LeaderState) -> None:
        for follower in self.followers:
            follower.is_counted = follower.node_id in self.isr

    replace(LeaderState, "_count", count)
    replace(LeaderState, "_is_joining", lambda *_: False)


def acked_at_append() -> None:
    """A batch is acknowledged when the leader has it."""
    from broker.replicas.delayed_produce import DelayedProduce

    replace(DelayedProduce, "wait_for", lambda *_: None)


def truncated_to_high_watermark() -> None:
    """A follower cuts its log at its high watermark before it fetches."""
    from broker.replication.fetcher.log_repair import LogRepair

    prepare = LogRepair.prepare

    def cutting(self: LogRepair, owner: Any, followed: Any) -> bool:
        log = followed.partition.log
        if log.log_end_offset > log.high_watermark:
            self._begin(owner, followed, self._cut(followed, log.high_watermark))
            return False
        return prepare(self, owner, followed)

    replace(LogRepair, "prepare", cutting)


def fetch_epoch_ignored() -> None:
    """A leader answers fetches of any epoch, and compares no last fetched epoch."""
    from broker.replicas.partition import Partition
    from broker.replication.followers import look

    replace(Partition, "check_leader_epoch", lambda *_: None)
    replace(look, "_diverging_epoch", lambda *_: None)


def expanded_without_epoch_start() -> None:
    """A follower joins the ISR that has not reached where its leader began."""
    from broker.replication.leader_state import LeaderState

    replace(
        LeaderState,
        "can_join",
        lambda self, follower, high_watermark: (
            not follower.is_counted
            and follower.end_offset >= high_watermark
            and self.may_join(follower)
        ),
    )


def progress_kept_over_epochs() -> None:
    """A leader goes on with followers' offsets of an earlier epoch."""
    from broker.replicas.partition import Partition

    become_leader = Partition.become_leader
    known: dict[tuple[int, object], dict[int, tuple[int, int]]] = {}

    def remembering(self: Partition, state: Any, *, now_ms: float) -> None:
        if self.leading is not None:
            known[state.leader, self.topic_partition] = {
                one.node_id: (one.end_offset, one.broker_epoch) for one in self.leading.followers
            }
        become_leader(self, state, now_ms=now_ms)
        if self.leading is not None:
            for one in self.leading.followers:
                found = known.get((state.leader, self.topic_partition), {}).get(one.node_id)
                if found is not None:
                    one.end_offset, one.broker_epoch = found

    stop_leading = Partition._stop_leading

    def stopping(self: Partition, code: Any) -> None:
        if self.leading is not None:
            known[self.leader_id, self.topic_partition] = {
                one.node_id: (one.end_offset, one.broker_epoch) for one in self.leading.followers
            }
        stop_leading(self, code)

    replace(Partition, "become_leader", remembering)
    replace(Partition, "_stop_leading", stopping)


def stale_replica_counted() -> None:
    """A replica joins the ISR whatever the life of its broker, and whoever has lost its log."""
    from broker.controller.active import broker_states
    from broker.replication.leader_state import LeaderState
    from broker.replication.replica_progress import UNKNOWN_OFFSET

    replace(LeaderState, "may_join", lambda _self, one: one.end_offset != UNKNOWN_OFFSET)
    replace(broker_states, "_has_lost", lambda *_: False)


def shrink_assumed() -> None:
    """A member that is to leave the ISR is not waited for any more at once."""
    from broker.replication.leader_state import LeaderState

    propose = LeaderState.propose

    def assuming(self: LeaderState, isr: tuple[int, ...], epochs: tuple[int, ...]) -> None:
        self.isr = isr
        propose(self, isr, epochs)

    replace(LeaderState, "propose", assuming)


def epoch_kept_over_restart() -> None:
    """A leader that comes back leads on in its epoch."""
    from broker.controller.active import partition_change, reconcile

    plan = partition_change.changed

    def keeping(partition: Any, *arguments: Any, **named: Any) -> Any:
        new = plan(partition, *arguments, **named)
        return new if new is partition else changed(new, leader_epoch=partition.leader_epoch)

    replace(partition_change, "changed", keeping)
    replace(reconcile, "changed", keeping)


def gap_appended() -> None:
    """A follower leaves out the first batch of an answer, at times, and goes on behind it."""
    from storage.log.append_as_follower import FollowerWriter

    append = FollowerWriter.append
    turn = iter(range(1 << 60))

    def leaping(self: FollowerWriter, records: memoryview, *arguments: Any, **named: Any) -> Any:
        if next(turn) % 50 == 49 and len(records) > 61:
            first = 12 + int.from_bytes(records[8:12], "big")
            if first < len(records):
                records = records[first:]
        return append(self, records, *arguments, **named)

    replace(FollowerWriter, "append", leaping)


def producers_kept_over_truncation() -> None:
    """A truncated log remembers batches of producers that it no longer has."""
    from storage.producers.state import ProducerStateManager

    replace(ProducerStateManager, "truncate_and_reload", lambda *_: None)


def producers_kept_over_full_disk() -> None:
    """A log whose queued batches found no room goes on remembering them."""
    from storage.log.rollback import ProducerRollback

    def keeping(self: ProducerRollback, _ticket: Any, _error: BaseException | None) -> None:
        self.is_under_way = False
        state = self._state
        state.leader_epochs.forget_from_end(state.log_end_offset)
        state.load_latest_epoch()
        state.end_rollback()

    replace(ProducerRollback, "finish", keeping)


def controller_without_guard() -> None:
    """A controller that was replaced goes on writing."""
    from broker.controller.active import guarded_writes
    from broker.controller.images.metadata_records import CONTROLLER_KEY
    from broker.controller.store.metadata_store import Compare, Relation, Target

    replace(
        guarded_writes,
        "in_epoch",
        lambda _epoch: Compare(CONTROLLER_KEY, Target.VERSION, Relation.GREATER, -1),
    )


def min_isr_not_strict() -> None:
    """The high watermark moves also while the ISR is smaller than the minimum."""
    from broker.replication.leader_state import LeaderState

    replace(LeaderState, "is_under_min_isr", lambda *_: False)


def eligible_kept_under_a_lower_minimum() -> None:
    """Who is eligible stays so when `min.insync.replicas` goes down, and the leader commits alone.

    The small ISR is large enough for the new minimum, until a leader of it dies.
    """
    from broker.controller.configs import config_changes

    replace(config_changes, "emptied_elrs", lambda *_: [])


def lease_counted_from_answer() -> None:
    """A lease is good from when its renewal was answered, not from when it was sent."""
    from broker.membership import lease_keeper

    replace(lease_keeper, "valid_until", lambda sent_ms, ttl_ms: sent_ms + 2 * ttl_ms)


def coordinator_not_reloaded() -> None:
    """A coordinator goes on with its state in a newer epoch, whoever was it in between."""
    from broker.coordinator.elected_appender import ElectedAppender
    from broker.coordinator.election import ElectionState
    from broker.coordinator.runtime import CoordinatorRuntime

    on_elected = CoordinatorRuntime.on_elected
    on_resigned = CoordinatorRuntime.on_resigned

    def is_kept(self: CoordinatorRuntime[Any], partition: int) -> bool:
        known = self._elections.get(partition)
        return known is not None and known.state is ElectionState.ACTIVE

    def keeping(self: CoordinatorRuntime[Any], partition: int, leader_epoch: int) -> None:
        if is_kept(self, partition):
            self._elections[partition].leader_epoch = leader_epoch
        else:
            on_elected(self, partition, leader_epoch)

    def staying(
        self: CoordinatorRuntime[Any], partition: int, leader_epoch: int | None = None
    ) -> None:
        if not is_kept(self, partition):
            on_resigned(self, partition, leader_epoch)

    def append(self: ElectedAppender, *arguments: Any, **named: Any) -> int:
        named.setdefault("timeout_ms", self._timeout_ms)
        return self._replicas.append_coordinated(*arguments, **named)

    replace(CoordinatorRuntime, "on_elected", keeping)
    replace(CoordinatorRuntime, "on_resigned", staying)
    replace(ElectedAppender, "append_coordinated", append)


def share_states_forgotten() -> None:
    """A share coordinator begins with no states after an election."""
    from tests.checker.mutation.share_mutants import state_not_replayed

    state_not_replayed()


def share_states_not_written() -> None:
    """One acknowledgement in five of a share group is answered and not written."""
    from tests.checker.mutation.share_mutants import state_not_written

    state_not_written()


def cleaned_above_the_high_watermark() -> None:
    """Compaction takes what is not committed for what replaces older values."""
    from storage.cleaner import log_cleaner_manager

    measure = log_cleaner_manager.measure

    class Ahead:
        def __init__(self, log: Any) -> None:
            self._log = log
            self.last_stable_offset = log.log_end_offset

        def __getattr__(self, name: str) -> Any:
            return getattr(self._log, name)

    def measured(log: Any, *arguments: Any) -> Any:
        return changed(measure(Ahead(log), *arguments), log=log)

    replace(log_cleaner_manager, "measure", measured)


def shortest_log_chosen() -> None:
    """Where nobody can lead cleanly, the log that has kept least is led."""
    from broker.controller.active.log_recovery import PartitionRecovery

    def chosen(self: PartitionRecovery) -> int:
        least = min(self.ends.values())
        return next(node for node in self.members if self.ends.get(node) == least)

    replace(PartitionRecovery, "chosen", property(chosen))


def elected_before_those_in_sync() -> None:
    """An unclean election takes the first that lives, also beside one that is in sync."""
    from broker.controller.active import partition_change

    elect = partition_change._elect

    def first_that_lives(partition: Any, terms: Any, isr: Any, elr: Any) -> Any:
        if terms.election is partition_change.Election.UNCLEAN and partition.leader not in isr:
            for node in partition.original:
                if terms.takes(node, partition.leader):
                    is_clean = node in (isr or elr)
                    return partition_change._Elected(node, is_clean=is_clean)
        return elect(partition, terms, isr, elr)

    replace(partition_change, "_elect", first_that_lives)


def unfinished_copies_left() -> None:
    """What a broker that died has copied of a log to another directory stays there."""
    from storage.manager.log_startup import LogStartup
    from tests.simulation.brokers import COPY

    jobs_of = LogStartup._jobs_of

    def leaving(
        self: LogStartup, directory: Any, names: Any, holders: Any, *rest: Any, **named: Any
    ) -> Any:
        names = [one for one in names if not one.name.endswith(COPY)]
        return jobs_of(self, directory, names, holders, *rest, **named)

    replace(LogStartup, "_jobs_of", leaving)


def moved_without_its_end() -> None:
    """A log that changes its directory lacks what it took since it was copied the last time."""
    from storage.manager.log_copy import LogCopy
    from storage.manager.log_moves import LogMoves

    copy_segments, extend = LogMoves.copy_segments, LogCopy._extend

    def copied_once(self: LogMoves, log: Any, copy: LogCopy) -> int:
        return 0 if copy.size_bytes else copy_segments(self, log, copy)

    def leaving_out(self: LogCopy, name: str, size: int) -> int:
        return 0 if name in self._copied else extend(self, name, size)

    replace(LogMoves, "copy_segments", copied_once)
    replace(LogCopy, "_extend", leaving_out)


def local_log_dropped_uncopied() -> None:
    """A follower takes for copied what its log has, and drops it from its disk."""
    from tiered.tasks import partition_roles

    replace(
        partition_roles,
        "find_highest_remote_offset",
        lambda _metadata, _partition, log: log.high_watermark - 1,
    )


def metadata_not_read_to_its_end() -> None:
    """A new leader goes by the metadata of remote storage as it has read it."""
    from tiered.metadata.topic_based_manager import TopicMetadataManager

    replace(TopicMetadataManager, "refresh", lambda *_: None)

    async def as_it_is(*_: Any) -> None:
        """Nor is it read before an unfinished copy is removed."""

    replace(TopicMetadataManager, "caught_up", as_it_is)


def copied_and_expired_in_doubt() -> None:
    """A leader that was replaced, and does not know, goes on with copies and removals."""
    from tiered.tasks.led_partition import LedPartition

    replace(LedPartition, "may_change", property(lambda _: True))


def expired_early() -> None:
    """Remote segments go a third of their time too early."""
    from tiered.tasks import expirer
    from tiered.tasks.expiry_plan import plan_expiry

    def plan(*arguments: Any, **named: Any) -> Any:
        limits = next(one for one in (*arguments, *named.values()) if hasattr(one, "keep_after_ms"))
        if limits.keep_after_ms is not None:
            early = changed(limits, keep_after_ms=limits.keep_after_ms + 5_000)
            arguments = tuple(early if one is limits else one for one in arguments)
            named = {name: early if one is limits else one for name, one in named.items()}
        return plan_expiry(*arguments, **named)

    replace(expirer, "plan_expiry", plan)


def given_up_copies_left() -> None:
    """What a replaced leader uploads after the next one has given its copy up stays for ever."""
    from tiered.maintenance.garbage_collector import Scrubber
    from tiered.tasks.segment_copy import SegmentCopy

    async def nothing(*_: Any) -> None:
        pass

    replace(SegmentCopy, "remove_given_up", nothing)
    replace(Scrubber, "_remove", nothing)


def deleted_topics_segments_left() -> None:
    """What a deleted topic has in remote storage is nobody's business."""
    from broker.remote.deleted_topics import DeletedTopics
    from tiered.tasks.remote_log_manager import RemoteLogManager

    on_stop = RemoteLogManager.on_stop

    def stopping(self: RemoteLogManager, partition: Any, **_: Any) -> Any:
        return on_stop(self, partition, delete_remote=False)

    replace(RemoteLogManager, "on_stop", stopping)
    replace(DeletedTopics, "check", lambda _: None)


MUTANTS: Final[dict[str, Callable[[], None]]] = {
    bug.__name__: bug
    for bug in (
        committed_isr_counts,
        acked_at_append,
        truncated_to_high_watermark,
        fetch_epoch_ignored,
        expanded_without_epoch_start,
        progress_kept_over_epochs,
        stale_replica_counted,
        shrink_assumed,
        epoch_kept_over_restart,
        gap_appended,
        producers_kept_over_truncation,
        producers_kept_over_full_disk,
        controller_without_guard,
        min_isr_not_strict,
        eligible_kept_under_a_lower_minimum,
        lease_counted_from_answer,
        coordinator_not_reloaded,
        share_states_forgotten,
        share_states_not_written,
        cleaned_above_the_high_watermark,
        shortest_log_chosen,
        elected_before_those_in_sync,
        unfinished_copies_left,
        moved_without_its_end,
    )
}

TIERED: Final[dict[str, Callable[[], None]]] = {
    bug.__name__: bug
    for bug in (
        local_log_dropped_uncopied,
        metadata_not_read_to_its_end,
        copied_and_expired_in_doubt,
        expired_early,
        given_up_copies_left,
        deleted_topics_segments_left,
    )
}
"""Of remote storage: looked for in runs with a bucket."""
