"""Bugs of leaders and followers."""

from typing import Any

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


def shrink_assumed() -> None:
    """A member that is to leave the ISR is not waited for any more at once."""
    from broker.replication.leader_state import LeaderState

    propose = LeaderState.propose

    def assuming(self: LeaderState, isr: tuple[int, ...], epochs: tuple[int, ...]) -> None:
        self.isr = isr
        propose(self, isr, epochs)

    replace(LeaderState, "propose", assuming)


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


def min_isr_not_strict() -> None:
    """The high watermark moves also while the ISR is smaller than the minimum."""
    from broker.replication.leader_state import LeaderState

    replace(LeaderState, "is_under_min_isr", lambda *_: False)


def throttle_kept() -> None:
    """A throttle that is taken away, rate and replicas, goes on."""
    from broker.replication.quota import ReplicationQuota

    set_rate, covers = ReplicationQuota.set_rate, ReplicationQuota.covers
    covered: set[tuple[int, str]] = set()

    def keeping(self: ReplicationQuota, rate: int) -> None:
        set_rate(self, min(rate, self.rate))

    def covering(self: ReplicationQuota, topic_partition: Any, config: Any) -> bool:
        one = (self._node_id, topic_partition.topic)
        if covers(self, topic_partition, config):
            covered.add(one)
        return one in covered

    replace(ReplicationQuota, "set_rate", keeping)
    replace(ReplicationQuota, "covers", covering)


def throttle_for_those_in_sync() -> None:
    """A throttle holds back who is in sync, too."""
    from broker.replication.followers import look

    def is_held_back(quota: Any, _look: Any, partition: Any) -> bool:
        covers: bool = quota.covers(partition.topic_partition, partition.log.config)
        return covers and quota.wait_ms() > 0

    replace(look, "_is_held_back", is_held_back)
