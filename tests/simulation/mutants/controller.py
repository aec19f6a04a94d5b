"""Bugs of the controller and of membership."""

from dataclasses import replace as changed
from typing import Any

from tests.checker.mutation.seeding import replace


def stale_replica_counted() -> None:
    """A replica joins the ISR whatever the life of its broker, and whoever has lost its log."""
    from broker.controller.active import broker_states
    from broker.replication.leader_state import LeaderState
    from broker.replication.replica_progress import UNKNOWN_OFFSET

    replace(LeaderState, "may_join", lambda _self, one: one.end_offset != UNKNOWN_OFFSET)
    replace(broker_states, "_has_lost", lambda *_: False)


def epoch_kept_over_restart() -> None:
    """A leader that comes back leads on in its epoch."""
    from broker.controller.active import partition_change, reconcile

    plan = partition_change.changed

    def keeping(partition: Any, *arguments: Any, **named: Any) -> Any:
        new = plan(partition, *arguments, **named)
        return new if new is partition else changed(new, leader_epoch=partition.leader_epoch)

    replace(partition_change, "changed", keeping)
    replace(reconcile, "changed", keeping)


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


def cancel_keeps_the_target() -> None:
    """A move that is given up ends where it was to go."""
    from broker.controller.active import partition_change, reassignments

    def kept(_topic: Any, current: Any, terms: Any) -> Any:
        new = current.keeping(current.target)
        isr = tuple(node for node in current.isr if node in new.replicas)
        return partition_change.changed(current, terms, isr=isr, assigned=new)

    replace(reassignments, "_cancelled", kept)


def moved_before_in_sync() -> None:
    """A move is complete once one of those that stay is in sync."""
    from broker.controller.active import partition_change

    def is_complete(partition: Any, _terms: Any, isr: tuple[int, ...]) -> bool:
        return not set(partition.target).isdisjoint(isr)

    replace(partition_change, "is_complete", is_complete)


def move_forgets_the_replicas_of_before() -> None:
    """A move over one under way takes what that one adds for replicas of before."""
    from broker.controller.active import reassignments

    assigned = reassignments._assigned

    def forgetting(image: Any, current: Any, target: Any) -> Any:
        return assigned(image, changed(current, adding=(), removing=()), target)

    replace(reassignments, "_assigned", forgetting)


def added_partitions_undo_others() -> None:
    """Partitions that are added are written together with the others as they were made."""
    from broker.controller import topic_planner
    from broker.controller.images.metadata_records import chunks

    made: dict[Any, list[Any]] = {}

    def writing(topic_id: Any, partitions: Any, **named: Any) -> Any:
        known = made.setdefault(topic_id, list(partitions))
        return chunks(topic_id, [*known, *partitions[len(known) :]], **named)

    replace(topic_planner, "chunks", writing)


def added_partitions_led_by_nobody() -> None:
    """Partitions that are added have no leader, and nobody in sync who could be elected."""
    from broker.controller import topic_planner
    from broker.controller.topics.topics import added_partitions

    def leaderless(*arguments: Any) -> Any:
        return [changed(one, leader=-1, isr=(), elr=()) for one in added_partitions(*arguments)]

    replace(topic_planner, "added_partitions", leaderless)
