"""Computes target assignments: not for every member that joins, and not on the loop when large.

Kafka 4.2 computes a target with each heartbeat that bumped the group epoch; a thousand members
that join cost a thousand assignments of up to a thousand members. Kafka 4.3 computes at most one a
second (group.consumer.assignment.interval.ms). Here a member that joins waits, parked, for the
target that has a place for it:

    join ──> parked ──(nobody new for a moment, at most the interval)──> one target for all of them
                                                                         ──> everybody is answered

so members that start together find their partitions free, rather than with the first of them. What
makes a new target otherwise (somebody left, subscribes to something else, topics changed) is
computed with the next heartbeat, as Kafka does. Large targets are computed in another thread, and
not again before `COST_FACTOR` times what the last one took; a group that changed meanwhile gets the
next one, and a member that asked for other topics waits for it as one that joins.

Source: Kafka, TargetAssignmentBuilder.java; GroupMetadataManager.java (updateTargetAssignment).
"""

import logging
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from broker.controller.cluster_image import ClusterImage
from broker.groups.consumer.assignors.assignor import Assignor, MemberSpec, TopicSpec
from broker.groups.consumer.changes import Changes, target_record
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import NO_PARTITIONS, Assignment
from broker.groups.consumer.offload import Offload
from broker.groups.log_value import log_value
from broker.groups.offsets_log import KeyValue
from broker.timer import Timer
from storage.clock import Clock

logger = logging.getLogger(__name__)

QUIET_MS = 50
"""A target is computed when nobody has joined for this long."""

FIRST_QUIET_MS = 200
"""The same while nobody owns a partition yet: whoever comes too late for the first target waits for
heartbeats of those who came in time, ten seconds mostly."""

COST_FACTOR = 20
"""Computing large targets of one group takes at most this part of the time."""

RETRY_MS = 1_000
"""Before an assignor that failed is asked again."""

INLINE_SIZE_MAX = 1_000
"""Members and partitions of a target that is computed on the loop: about two milliseconds."""


class _Input(NamedTuple):
    """A group as an assignor sees it."""

    group_id: str
    epoch: int
    assignor: Assignor
    members: dict[str, MemberSpec]
    topics: dict[UUID, TopicSpec]
    has_target: frozenset[str]

    @property
    def size(self) -> int:
        return len(self.members) + sum(topic.partition_count for topic in self.topics.values())


class _Output(NamedTuple):
    """What has changed for whom, with its record."""

    epoch: int
    changed: list[tuple[str, str | None, Assignment, KeyValue]]


class Targets:
    """Says when the groups of one shard get a new target, and computes it."""

    def __init__(
        self,
        assignors: dict[str, Assignor],
        *,
        interval_ms: int,
        clock: Clock,
        timer: Timer,
        offload: Offload,
        image: Callable[[], ClusterImage],
        ready: Callable[[ConsumerGroup, Changes], None],
    ) -> None:
        """`ready` is called with changes to write whenever one was not computed by `update`."""
        self._assignors = assignors
        self._default_assignor = next(iter(assignors))
        self._interval_ms = interval_ms
        self._clock = clock
        self._timer = timer
        self._offload = offload
        self._image = image
        self._ready = ready

    def update(self, group: ConsumerGroup, changes: Changes, *, joining: bool) -> bool:
        """Compute the target for the present group epoch if it may be computed now.

        Returns:
            Whether it is there. Otherwise `ready` will be called.
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
        """Compute the target soon, whether a heartbeat comes or not: somebody is parked."""
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
        given = self._input(group)
        started_ms = self._clock.monotonic_ms()
        if not self._interval_ms or given.size <= INLINE_SIZE_MAX:
            try:
                output = _run(given)
            except Exception as error:  # noqa: BLE001 because the group's change must be written
                self._failed(group, error)
                return False
            self._finish(group, changes, output, started_ms)
            return True
        work.is_assigning = True

        def done(output: _Output) -> None:
            work.is_assigning = False
            if not group.is_dead:
                late = Changes(group)
                self._finish(group, late, output, started_ms)
                now_ms = self._clock.monotonic_ms()
                work.assign_not_before_ms = now_ms + min(
                    COST_FACTOR * (now_ms - started_ms), self._interval_ms
                )
                self._ready(group, late)

        def failed(error: BaseException) -> None:
            work.is_assigning = False
            self._failed(group, error)

        self._offload.run(lambda: _run(given), done, failed)
        return False

    def _failed(self, group: ConsumerGroup, error: BaseException) -> None:
        """An assignor must not fail, as topics that do not exist are left out: try again later."""
        logger.error("no target group=%s", log_value(group.group_id), exc_info=error)
        work = group.work
        work.deferred_since_ms = None
        work.assign_not_before_ms = self._clock.monotonic_ms() + max(self._interval_ms, RETRY_MS)
        if not group.is_dead:
            # Whoever waits for it is parked, or will be when this returns.
            self._defer(group, max(self._interval_ms, RETRY_MS))

    def _finish(
        self, group: ConsumerGroup, changes: Changes, output: _Output, started_ms: float
    ) -> None:
        work = group.work
        for member_id, instance_id, assignment, record in output.changed:
            if member_id in group.members:
                changes.take_target(member_id, assignment, record)
                continue
            # It left while the target was computed; as a static member it may be back by now.
            successor = group.static_members.get(instance_id) if instance_id is not None else None
            if successor is not None:
                changes.set_target(successor, assignment)
        changes.set_assignment_epoch(output.epoch)
        work.deferred_since_ms = None
        logger.info(
            "group has a new target group=%s epoch=%d members=%d changed=%d elapsed_ms=%d",
            log_value(group.group_id),
            output.epoch,
            len(group.members),
            len(output.changed),
            self._clock.monotonic_ms() - started_ms,
        )

    def _input(self, group: ConsumerGroup) -> _Input:
        image = self._image()
        name = group.preferred_assignor(self._default_assignor)
        # An assignor that was switched off since the member asked for it.
        assignor = self._assignors.get(name) or self._assignors[self._default_assignor]
        topics: dict[UUID, TopicSpec] = {}
        ids_of: dict[frozenset[str], frozenset[UUID]] = {}
        members: dict[str, MemberSpec] = {}
        for member_id, member in group.members.items():
            names = group.topics_of(member)
            ids = ids_of.get(names)
            if ids is None:
                found = [image.topics[name] for name in names if name in image.topics]
                for topic in found:
                    topics[topic.topic_id] = TopicSpec(topic.name, len(topic.partitions))
                ids = ids_of[names] = frozenset(topic.topic_id for topic in found)
            members[member_id] = MemberSpec(
                member.instance_id, member.rack_id, ids, group.target_of(member_id)
            )
        return _Input(
            group.group_id, group.group_epoch, assignor, members, topics, frozenset(group.target)
        )


def _run(given: _Input) -> _Output:
    """Compute a target and the records of what it changes; touches nothing else."""
    assigned = given.assignor.assign(given.members, given.topics)
    changed = []
    for member_id, spec in given.members.items():
        assignment = assigned.get(member_id, NO_PARTITIONS)
        if member_id not in given.has_target or assignment != spec.assignment:
            record = target_record(given.group_id, member_id, assignment)
            changed.append((member_id, spec.instance_id, assignment, record))
    return _Output(given.epoch, changed)
