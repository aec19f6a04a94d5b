"""All seeded bugs, by name, and in which runs each is looked for."""

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.simulation.mutants import controller, coordinators, logs, replication, tier
from tests.simulation.remote.bucket import WAY_S
from tests.simulation.shape import Shape


def has_two_directories(shape: Shape) -> bool:
    """Logs are moved."""
    return shape.directories > 1


def is_synced(shape: Shape) -> bool:
    """All machines lose their power at once."""
    return shape.settings.get("log_flush_interval_messages") == 1


def may_lose(shape: Shape) -> bool:
    """Of a topic any replica may be elected, at once."""
    return "unclean_leader_election_enable" in shape.losses


def has_keys(shape: Shape) -> bool:
    """A topic is compacted."""
    return shape.has_keys


def has_sharers(shape: Shape) -> bool:
    """There is a share group."""
    return shape.sharers > 0


def has_a_broker_more(shape: Shape) -> bool:
    """A broker has no replica of what has three."""
    return shape.brokers > shape.replicas


def has_a_slow_bucket(shape: Shape) -> bool:
    """A copy is under way at most times."""
    return shape.bucket_s > WAY_S


def has_leavers(shape: Shape) -> bool:
    """Transactions are left open."""
    return shape.leavers > 0


def has_members(shape: Shape) -> bool:
    """There is a group."""
    return shape.members > 0


def has_lives(shape: Shape) -> bool:
    """A topic is deleted and made again."""
    return shape.has_lives


class Bug(NamedTuple):
    """A seeded bug.

    Attributes:
        seed: Puts it into this process.
        fits: Of which shapes runs have what it is about; of others none is tried.
        is_tiered: It is looked for in runs with a bucket.
    """

    seed: Callable[[], None]
    fits: Callable[[Shape], bool] = lambda _shape: True
    is_tiered: bool = False


BUGS: Final[dict[str, Bug]] = {
    bug.seed.__name__: bug
    for bug in (
        Bug(replication.committed_isr_counts),
        Bug(replication.acked_at_append),
        Bug(replication.truncated_to_high_watermark),
        Bug(replication.fetch_epoch_ignored),
        Bug(replication.expanded_without_epoch_start),
        Bug(replication.progress_kept_over_epochs),
        Bug(controller.stale_replica_counted),
        Bug(replication.shrink_assumed),
        Bug(controller.epoch_kept_over_restart),
        Bug(replication.gap_appended),
        Bug(logs.producers_kept_over_truncation),
        Bug(logs.producers_kept_over_full_disk),
        Bug(controller.controller_without_guard),
        Bug(replication.min_isr_not_strict),
        Bug(controller.eligible_kept_under_a_lower_minimum),
        Bug(controller.lease_counted_from_answer),
        Bug(coordinators.coordinator_not_reloaded),
        Bug(coordinators.share_states_forgotten, has_sharers),
        Bug(coordinators.share_states_not_written, has_sharers),
        Bug(logs.cleaned_above_the_high_watermark, has_keys),
        Bug(controller.shortest_log_chosen, is_synced),
        Bug(controller.elected_before_those_in_sync, may_lose),
        Bug(logs.unfinished_copies_left, has_two_directories),
        Bug(logs.moved_without_its_end, has_two_directories),
        Bug(coordinators.timed_out_not_aborted, has_leavers),
        Bug(coordinators.aborted_before_their_time, has_leavers),
        Bug(coordinators.added_partitions_not_assigned, has_members),
        Bug(controller.cancel_keeps_the_target),
        Bug(controller.moved_before_in_sync),
        Bug(controller.move_forgets_the_replicas_of_before),
        Bug(controller.added_partitions_undo_others),
        Bug(controller.added_partitions_led_by_nobody),
        Bug(replication.throttle_kept),
        Bug(replication.throttle_for_those_in_sync),
        Bug(logs.removed_replicas_left, has_a_broker_more),
        Bug(tier.local_log_dropped_uncopied, is_tiered=True),
        Bug(tier.metadata_not_read_to_its_end, has_a_slow_bucket, is_tiered=True),
        Bug(tier.copied_and_expired_in_doubt, is_tiered=True),
        Bug(tier.expired_early, is_tiered=True),
        Bug(tier.given_up_copies_left, is_tiered=True),
        Bug(tier.deleted_topics_segments_left, has_lives, is_tiered=True),
    )
}
