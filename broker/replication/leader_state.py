"""What the leader of a partition with several replicas knows in one leader epoch.

    committed ISR    as the controller has written it: the partition's record in the image
    maximal ISR      that and who has been proposed to join: the high watermark waits for all of it,
                     because the controller may have agreed already (KIP-497)
    high watermark   the least log end over the maximal ISR, and of followers that have caught up
                     and are about to join it; only while the ISR has at least
                     `min.insync.replicas` members (KIP-966)

    ──become leader──> COMMITTED ──propose──> PROPOSED ──the record has a later partition epoch──┐
                          ^  ^                   └──refused, nothing was changed──┐              │
                          │  └────────────────────────────────────────────────────┘              │
                          └──────────────────────────────────────────────────────────────────────┘

Two kinds of members are to leave. One lags: it has not had all that the leader has for
`replica.lag.time.max.ms`. One is silent: records wait for it, and no fetch of it has come for
`replica.silence.max.ms`; it may live well and be cut off from this broker alone. The latter only
leaves if `min.insync.replicas` members are left: else producers would be refused, not waiting.

A member that is to leave is counted until the controller has agreed; a refused or unanswered
proposal to join is counted until it is sure that it was not made.

Nothing here waits, and nothing reads a clock: times are monotonic milliseconds, passed in.

Source: Kafka, Partition.scala.
"""

from typing import TYPE_CHECKING, NamedTuple

from broker.replication.replica_progress import ReplicaProgress

if TYPE_CHECKING:
    from uuid import UUID

    from broker.controller.images.partition_image import PartitionImage
    from broker.replication.terms import ReplicationTerms

NEVER_MS = float("-inf")


class Proposal(NamedTuple):
    """An ISR that the controller has been asked for; whether it has agreed is not known yet.

    Attributes:
        topic_id: Of the topic.
        leader_epoch: In which it was asked for.
        partition_epoch: Of the record that it is to follow on.
        isr: What was asked for.
        epochs: The lives of its members, as of when they were found fit for it.
    """

    topic_id: "UUID"
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    epochs: tuple[int, ...]


class LeaderState:
    """See the module. One object lives for one leader epoch.

    Attributes:
        node_id: The leader, this broker.
        leader_epoch: Of this leadership.
        partition_epoch: Of the record that is known; later changes of the ISR name it (KIP-497).
        replicas: All that are assigned, the leader among them.
        replication_factor: How many there are without those that a reassignment adds.
        adding: Those that it adds.
        is_reassigning: Whether a reassignment is under way.
        isr: The committed ISR, the leader among them.
        proposed: The ISR that the controller has been asked for; None: nothing is under way.
        proposed_epochs: The lives of its members, as of when they were found fit for it.
        followers: Progress of each other replica, in order of assignment.
        epoch_start_offset: The leader's log end when it took over: a follower that is not there yet
            may lack what an earlier leader has committed (KAFKA-7128).
        own_end_offset: The leader's own log end as far as it counts: up to the last flush where
            `flush.messages` asks for one.
    """

    __slots__ = (
        "_not_before_ms",
        "_terms",
        "adding",
        "epoch_start_offset",
        "followers",
        "is_reassigning",
        "isr",
        "leader_epoch",
        "node_id",
        "own_end_offset",
        "partition_epoch",
        "proposed",
        "proposed_epochs",
        "replicas",
        "replication_factor",
    )

    def __init__(
        self,
        state: "PartitionImage",
        terms: "ReplicationTerms",
        *,
        epoch_start_offset: int,
        own_end_offset: int,
        now_ms: float,
    ) -> None:
        self._terms = terms
        self.node_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = state.replicas
        self.replication_factor = len(state.original)
        self.adding = state.adding
        self.is_reassigning = state.is_reassigning
        self.isr = state.isr
        self.proposed: tuple[int, ...] | None = None
        self.proposed_epochs: tuple[int, ...] = ()
        self._not_before_ms = NEVER_MS
        self.epoch_start_offset = epoch_start_offset
        self.own_end_offset = own_end_offset
        self.followers: tuple[ReplicaProgress, ...] = tuple(
            ReplicaProgress(
                node_id,
                is_counted=node_id in state.isr,
                caught_up_ms=now_ms if node_id in state.isr else NEVER_MS,
            )
            for node_id in state.replicas
            if node_id != state.leader
        )
        self._place(state)

    def update(self, state: "PartitionImage") -> None:
        """Take a later record of the same leader epoch: it settles what was proposed."""
        if state.partition_epoch <= self.partition_epoch:
            return
        self.partition_epoch = state.partition_epoch
        self.replication_factor = len(state.original)
        self.adding = state.adding
        self.is_reassigning = state.is_reassigning
        self.isr = state.isr
        self.proposed = None
        self.tell_followers(has_records=True)
        if state.replicas != self.replicas:
            known = {follower.node_id: follower for follower in self.followers}
            self.replicas = state.replicas
            self.followers = tuple(
                known.get(node_id)
                or ReplicaProgress(node_id, is_counted=False, caught_up_ms=NEVER_MS)
                for node_id in state.replicas
                if node_id != self.node_id
            )
        self._place(state)
        self._count()

    def _place(self, state: "PartitionImage") -> None:
        for follower in self.followers:
            follower.directory_id = state.directory_on(follower.node_id)

    def follower(self, node_id: int) -> ReplicaProgress | None:
        """The progress of a follower; None: no such replica is assigned."""
        for follower in self.followers:
            if follower.node_id == node_id:
                return follower
        return None

    @property
    def has_all_in_sync(self) -> bool:
        """Whether the ISR is as large as it can be; then `min.insync.replicas` need not be read."""
        return len(self.isr) >= self.replication_factor

    def is_under_min_isr(self, min_insync_replicas: int) -> bool:
        """Whether the ISR is too small for acks=all.

        More than all replicas are never asked for, and never those that are still being added.
        """
        in_sync = len(self.isr)
        return in_sync < min_insync_replicas and in_sync < self.replication_factor

    def high_watermark(self, current: int, min_insync_replicas: int, now_ms: float) -> int:
        """The high watermark, `current` or later: it never goes back."""
        if self.is_under_min_isr(min_insync_replicas):
            return current
        least = self.own_end_offset
        for follower in self.followers:
            if follower.end_offset < least and (
                follower.is_counted or self._is_joining(follower, now_ms)
            ):
                least = follower.end_offset
                if least <= current:
                    return current
        return max(least, current)

    def low_watermark(self, own_log_start: int) -> int:
        """The least log start of the leader, `own_log_start`, and of live followers and members.

        -1: one of those has not fetched in this epoch. Others do not count: when they come back,
        they follow the leader's log start. A member of the ISR counts without a lease, too: its
        lease may have ended too early, and it be elected in the next moment, with the records.
        """
        lowest = own_log_start
        for follower in self.followers:
            if follower.log_start_offset < lowest and (
                follower.is_counted or self._is_live(follower)
            ):
                lowest = follower.log_start_offset
        return lowest

    def begin_no_later_than(self, offset: int) -> None:
        """The leader's log ends at `offset` now: what was queued when it took over is lost."""
        self.epoch_start_offset = min(self.epoch_start_offset, offset)

    def propose(self, isr: tuple[int, ...], epochs: tuple[int, ...]) -> None:
        """Count `isr` as well from now on: the controller is asked for it.

        `epochs`: of its members, the lives in which they were found fit for it.
        """
        self.proposed, self.proposed_epochs = isr, epochs
        self._count()

    def withdraw(self, not_before_ms: float) -> None:
        """Nothing is proposed any more: the controller has refused, and changed nothing.

        `not_before_ms`: when the next proposal may be made.
        """
        self.proposed = None
        self._not_before_ms = not_before_ms
        self._count()

    def can_join(self, follower: ReplicaProgress, high_watermark: int) -> bool:
        """Whether a follower is to be proposed for the ISR.

        It has all that is committed, and all that a leader before this one may have committed
        (KAFKA-7128), by a fetch of this epoch.
        """
        return (
            not follower.is_counted
            and follower.end_offset >= high_watermark
            and follower.end_offset >= self.epoch_start_offset
            and self.may_join(follower)
        )

    def is_lagging(self, follower: ReplicaProgress, leader_end_offset: int, now_ms: float) -> bool:
        """Whether a member is to leave the ISR."""
        return follower.node_id in self.isr and not follower.is_caught_up(
            leader_end_offset, now_ms, self._terms.lag_time_max_ms
        )

    def is_silent(self, follower: ReplicaProgress, leader_end_offset: int, now_ms: float) -> bool:
        """Whether records wait for a follower that has fetched in this epoch, and does no more."""
        return (
            follower.end_offset < leader_end_offset
            and follower.fetched_ms > NEVER_MS
            and self._terms.listening.is_silent(follower.seen_ms, now_ms)
        )

    def wanted_isr(
        self, high_watermark: int, leader_end_offset: int, now_ms: float, min_insync_replicas: int
    ) -> tuple[int, ...] | None:
        """The ISR to ask the controller for; None: the committed one is right, or asked for.

        This broker is always in it.
        """
        if self.proposed is not None or now_ms < self._not_before_ms:
            return None
        leaving = {
            follower.node_id
            for follower in self.followers
            if self.is_lagging(follower, leader_end_offset, now_ms)
        }
        silent = {
            follower.node_id
            for follower in self.followers
            if follower.node_id in self.isr
            and follower.node_id not in leaving
            and self.is_silent(follower, leader_end_offset, now_ms)
        }
        needed = min(min_insync_replicas, self.replication_factor)
        # All of them or none: the high watermark would go on waiting for who is left.
        if len(self.isr) - len(leaving) - len(silent) >= needed:
            leaving |= silent
        joining = [
            follower.node_id
            for follower in self.followers
            if self.can_join(follower, high_watermark)
            # Else it would have to leave at once.
            and now_ms - follower.seen_ms <= self._terms.lag_time_max_ms
        ]
        if not leaving and not joining:
            return None
        return (*(node_id for node_id in self.isr if node_id not in leaving), *joining)

    def _is_joining(self, follower: ReplicaProgress, now_ms: float) -> bool:
        """Whether a follower outside the ISR has caught up and may join: it would be the next."""
        terms = self._terms
        return (
            follower.is_caught_up(self.own_end_offset, now_ms, terms.lag_time_max_ms)
            and self.may_join(follower)
            and not self.is_silent(follower, self.own_end_offset, now_ms)
        )

    def may_join(self, follower: ReplicaProgress) -> bool:
        """Whether a follower lives in the epoch in which it fetches; before a fetch it has none.

        And its log directory works: what it has fetched before that failed counts for nothing.
        """
        terms = self._terms
        return terms.live_epoch(follower.node_id) == follower.broker_epoch and not terms.is_offline(
            follower.node_id, follower.directory_id
        )

    def _is_live(self, follower: ReplicaProgress) -> bool:
        terms, node_id = self._terms, follower.node_id
        return terms.live_epoch(node_id) is not None and not terms.is_offline(
            node_id, follower.directory_id
        )

    @property
    def commits_alone(self) -> bool:
        """Whether no follower is waited for: what is appended is committed at once."""
        return all(not follower.is_counted for follower in self.followers)

    def is_confirmed(
        self, min_insync_replicas: int, now_ms: float, *, elects_any: bool = False
    ) -> bool:
        """Whether no other broker can have been elected by now, whatever the image lacks.

        Another leader would be one of the maximal ISR, and would fetch here no longer: so each of
        its members must have sent a fetch of this epoch less than two waits of a follower ago. When
        it was sent, not when it was read: what lay in a socket while this process was paused is old
        (`ReplicaProgress.confirmed_ms`). Alone in
        it, this broker is the only one that can be elected, unless the ISR is smaller than
        `min.insync.replicas`: then others are eligible that have left it (KIP-966).

        Args:
            min_insync_replicas: Of the topic.
            now_ms: Monotonic.
            elects_any: Whether the topic's settings let the controller elect a replica that was
                not in sync while this one is away: then being alone says nothing.
        """
        since_ms = now_ms - 2 * self._terms.fetch_wait_max_ms
        return self.is_confirmed_since(min_insync_replicas, since_ms, elects_any=elects_any)

    def is_confirmed_since(
        self, min_insync_replicas: int, since_ms: float, *, elects_any: bool = False
    ) -> bool:
        """As `is_confirmed`, by each follower's fetch behind `since_ms` (monotonic)."""
        if self.commits_alone:
            others_are_electable = elects_any and bool(self.followers)
            return not others_are_electable and not self.is_under_min_isr(min_insync_replicas)
        for follower in self.followers:
            if follower.is_counted and follower.confirmed_ms < since_ms:
                return False
        return True

    def tell_followers(self, *, has_records: bool) -> None:
        """Have the followers' sessions look at the partition.

        Args:
            has_records: At once: it has grown, or its role has changed. Else with the next answer:
                the high watermark or the log start has moved.
        """
        for follower in self.followers:
            followed = follower.followed
            if followed is not None and followed.session is not None:
                followed.session.changed_at(followed, has_records=has_records)

    def _count(self) -> None:
        proposed = self.proposed or ()
        for follower in self.followers:
            node_id = follower.node_id
            follower.is_counted = node_id in self.isr or node_id in proposed
