"""Computation of target assignments: not for every member that joins, nor on the loop when large.

Kafka 4.2 computes a target with each heartbeat that bumped the group epoch; a thousand members
that join cost a thousand assignments of up to a thousand members. Kafka 4.3 computes at most one a
second (group.consumer.assignment.interval.ms). Here a member that joins waits, parked, for the
target that includes it:

    join ──> parked ──(no further join for QUIET_MS, at most the interval)──> one target for all
                                                                         ──> all are answered

so members that start together find their partitions free, rather than with the first of them. The
target after any other change (a member left or changed its subscription, topics changed) is
computed with the next heartbeat, as Kafka does. Large targets are computed in another thread, and
not again before `COST_FACTOR` times the duration of the last one; a group that changed meanwhile
gets the next one, and a member that subscribed to other topics waits for it as one that joins.

Source: Kafka, TargetAssignmentBuilder.java; GroupMetadataManager.java (updateTargetAssignment).
"""

import logging
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.groups.consumer.changes import Changes
from broker.groups.consumer.consumer_group import (
    ConsumerGroup,
    ResolvedRegularExpression,
    topics_of,
)
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.consumer.records import CONSUMER_GROUP_RECORDS
from broker.groups.modern.assignment import NO_PARTITIONS, Assignment
from broker.groups.modern.assignor import Assignor, MemberSpec, TopicSpec
from broker.groups.modern.journal import Journal
from broker.groups.modern.offload import Offload
from broker.groups.modern.targets import ChangedTarget, SubscribedTopics, changed_targets
from broker.runtime.log_value import log_value
from broker.runtime.timer import Timer
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

QUIET_MS = 50
"""Debounce interval: a target is computed when no member has joined for this long."""

FIRST_QUIET_MS = 200
"""The same while no member owns a partition yet: one that is too late for the first target waits
for heartbeats of the others, ten seconds mostly."""

COST_FACTOR = 20
"""Computing large targets of one group takes at most this part of the time."""

RETRY_MS = 1_000
"""Retry delay after an assignor failed."""

INLINE_SIZE_MAX = 1_000
"""Members and partitions of a target that is computed on the loop: about two milliseconds."""


class _Snapshot(NamedTuple):
    """An immutable snapshot of all that a target depends on."""

    group_id: str
    epoch: int
    assignor: Assignor
    members: dict[str, ConsumerGroupMember]
    resolved: dict[str, ResolvedRegularExpression]
    target: dict[str, Assignment]
    image: ClusterImage


class _Output(NamedTuple):
    """Changed targets; large ones come with their records in batches."""

    epoch: int
    changed: list[ChangedTarget]
    targets: dict[str, Assignment]
    batches: list[bytearray]


class Targets:
    """The target computation of one shard's groups: when, and where."""

    def __init__(
        self,
        assignors: dict[str, Assignor],
        *,
        interval_ms: int,
        clock: Clock,
        timer: Timer,
        offload: Offload,
        image: Callable[[], ClusterImage],
        journal: Journal,
        ready: Callable[[ConsumerGroup, Changes], None],
    ) -> None:
        """`ready` is called with changes to write whenever one was not computed by `update`."""
        self._journal = journal
        self._assignors = assignors
        self._default_assignor = next(iter(assignors))
        self._interval_ms = interval_ms
        self._clock = clock
        self._timer = timer
        self._offload = offload
        self._image = image
        self._ready = ready

    def update(self, group: ConsumerGroup, changes: Changes, *, joining: bool) -> bool:
        """Compute the target for the current group epoch if it may be computed now.

        Returns:
            Whether it was computed. Otherwise `ready` will be called.
        """
        work = group.work
        if work.is_assigning:
            return False
        now_ms = self._clock.monotonic_ms()
        due_ms = self._due_ms(group, now_ms, joining=joining)
        if due_ms > now_ms:
            self._defer(group, due_ms - now_ms)
            return False
        return self._compute(group, changes)

    def defer(self, group: ConsumerGroup) -> None:
        """Schedule the target for parked members, whether a heartbeat comes or not."""
        now_ms = self._clock.monotonic_ms()
        self._defer(group, max(self._due_ms(group, now_ms, joining=True) - now_ms, 0))

    def _due_ms(self, group: ConsumerGroup, now_ms: float, *, joining: bool) -> float:
        work = group.work
        if not self._interval_ms:
            return now_ms
        due_ms = work.assign_not_before_ms
        if work.assign_timer is not None:
            due_ms = max(due_ms, work.assign_due_ms)
        if joining or work.is_resolving:
            quiet_ms = QUIET_MS if group.partition_epochs else FIRST_QUIET_MS
            due_ms = max(due_ms, now_ms + quiet_ms)
        if work.deferred_since_ms is None:
            work.deferred_since_ms = now_ms
        return min(due_ms, work.deferred_since_ms + self._interval_ms)

    def _defer(self, group: ConsumerGroup, delay_ms: float) -> None:
        work = group.work
        if work.assign_timer is not None:
            work.assign_timer.cancel()
        work.assign_due_ms = self._clock.monotonic_ms() + delay_ms

        def fire() -> None:
            work.assign_timer = None
            if group.is_dead or work.is_assigning:
                return
            changes = Changes(group)
            if group.group_epoch <= group.assignment_epoch:
                self._ready(group, changes)
            elif work.is_resolving and not self._is_overdue(group):
                self._defer(group, QUIET_MS)
            elif self._compute(group, changes):
                self._ready(group, changes)

        work.assign_timer = self._timer.call_later_ms(delay_ms, fire)

    def _is_overdue(self, group: ConsumerGroup) -> bool:
        since_ms = group.work.deferred_since_ms
        return since_ms is None or self._clock.monotonic_ms() >= since_ms + self._interval_ms

    # -- computing --

    def _compute(self, group: ConsumerGroup, changes: Changes) -> bool:
        work = group.work
        if work.assign_timer is not None:
            work.assign_timer.cancel()
            work.assign_timer = None
        given = self._snapshot(group)
        started_ms = self._clock.monotonic_ms()
        if not self._interval_ms or _is_small(group, given):
            try:
                changed = _run(given)
            except Exception as error:  # noqa: BLE001 because the group's change must be written
                self._failed(group, error)
                return False
            for one in changed:
                changes.add_target(*one)
            self._finish(group, changes, given.epoch, len(changed), started_ms)
            return True
        work.is_assigning = True

        def done(output: _Output) -> None:
            work.is_assigning = False
            if not group.is_dead:
                late = Changes(group)
                self._take(group, late, given, output)
                self._finish(group, late, output.epoch, len(output.changed), started_ms)
                now_ms = self._clock.monotonic_ms()
                work.assign_not_before_ms = now_ms + min(
                    COST_FACTOR * (now_ms - started_ms), self._interval_ms
                )
                self._ready(group, late)

        def failed(error: BaseException) -> None:
            work.is_assigning = False
            self._failed(group, error)

        def compute() -> _Output:
            changed = _run(given)
            return _Output(
                given.epoch,
                changed,
                {one.member_id: one.assignment for one in changed},
                self._journal.prepare([one.record for one in changed]) if changed else [],
            )

        self._offload.run(compute, done, failed)
        return False

    def _failed(self, group: ConsumerGroup, error: BaseException) -> None:
        """Retry later; an assignor must not fail, as topics that do not exist are left out."""
        logger.error(
            "target assignment could not be computed group=%s",
            log_value(group.group_id),
            exc_info=error,
        )
        work = group.work
        work.deferred_since_ms = None
        work.assign_not_before_ms = self._clock.monotonic_ms() + max(self._interval_ms, RETRY_MS)
        if not group.is_dead:
            # Members that wait for it are parked, or will be when this returns.
            self._defer(group, max(self._interval_ms, RETRY_MS))

    def _take(
        self, group: ConsumerGroup, changes: Changes, given: _Snapshot, output: _Output
    ) -> None:
        """Apply a large target at once, without members that have left meanwhile."""
        self._journal.write_prepared(group, output.batches)
        changes.add_written_targets(output.targets)
        gone = output.targets.keys() - group.members.keys()
        if not gone:
            return
        for one in output.changed:
            if one.member_id not in gone:
                continue
            changes.remove_target(one.member_id)
            # As a static member it may be back by now.
            instance_id = given.members[one.member_id].instance_id
            successor = group.static_members.get(instance_id) if instance_id is not None else None
            if successor is not None:
                changes.set_target(successor, one.assignment)

    def _finish(
        self, group: ConsumerGroup, changes: Changes, epoch: int, changed: int, started_ms: float
    ) -> None:
        changes.set_assignment_epoch(epoch)
        group.work.deferred_since_ms = None
        logger.info(
            "computed a new target assignment group=%s epoch=%d members=%d changed=%d "
            "elapsed_ms=%d",
            log_value(group.group_id),
            epoch,
            len(group.members),
            changed,
            self._clock.monotonic_ms() - started_ms,
        )

    def _snapshot(self, group: ConsumerGroup) -> _Snapshot:
        name = group.preferred_assignor(self._default_assignor)
        # The assignor may have been disabled since the member chose it.
        assignor = self._assignors.get(name) or self._assignors[self._default_assignor]
        return _Snapshot(
            group.group_id,
            group.group_epoch,
            assignor,
            group.members.copy(),
            group.resolved.copy(),
            group.target.copy(),
            self._image(),
        )


def _is_small(group: ConsumerGroup, given: _Snapshot) -> bool:
    """Whether the target may be computed on the loop."""
    left = INLINE_SIZE_MAX - len(given.members)
    left -= len(group.name_counts) + len(group.regex_topic_counts)
    if left < 0:
        return False
    topics = given.image.topics
    for name in group.subscribed_topics():
        topic = topics.get(name)
        if topic is not None:
            left -= len(topic.partitions)
    return left >= 0


def _specs(given: _Snapshot) -> tuple[dict[str, MemberSpec], dict[UUID, TopicSpec]]:
    """The group as an assignor sees it."""
    subscribed = SubscribedTopics(given.image)
    members = {
        member_id: MemberSpec(
            member.instance_id,
            member.rack_id,
            subscribed.ids_of(topics_of(member, given.resolved)),
            given.target.get(member_id, NO_PARTITIONS),
        )
        for member_id, member in given.members.items()
    }
    topics = {
        topic_id: TopicSpec(topic.name, len(topic.partitions))
        for topic_id, topic in subscribed.topics.items()
    }
    return members, topics


def _run(given: _Snapshot) -> list[ChangedTarget]:
    """Compute a target and the records of what it changes; touches nothing else."""
    members, topics = _specs(given)
    assigned = given.assignor.assign(members, topics)
    after = {member_id: assigned.get(member_id, NO_PARTITIONS) for member_id in members}
    return changed_targets(given.group_id, given.target, after, CONSUMER_GROUP_RECORDS)
