"""Computation of share groups' target assignments: large ones in another thread.

    small    with the heartbeat that finds the group epoch ahead
    large    one at a time in another thread, from a snapshot of the group; members that join or
             change their subscription are answered when it is computed, in batches, all others
             at once

A group that has changed meanwhile takes the target all the same, without members that have left:
the group epoch is ahead again, so the next heartbeat computes the next target.

Source: Kafka, TargetAssignmentBuilder.java; the thread is Varve's.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.groups.modern.assignment import NO_PARTITIONS, Assignment
from broker.groups.modern.journal import Journal
from broker.groups.modern.offload import Offload
from broker.groups.modern.targets import ChangedTarget, SubscribedTopics, changed_targets
from broker.groups.share.changes import ShareChanges
from broker.groups.share.records import SHARE_GROUP_RECORDS
from broker.groups.share.share_group import ShareGroup
from broker.groups.share.simple_assignor import ShareMemberSpec, SimpleAssignor
from broker.runtime.batches import BATCH_SIZE
from broker.runtime.log_value import log_value
from broker.runtime.timer import Timer
from protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

INLINE_SIZE_MAX = 1_000
"""Members and partitions of a target that is computed on the loop: about four milliseconds."""

WAITING_MAX = 2_000
"""Requests of one group that wait for a target; a group has at most a thousand members."""

Ready = Callable[[ErrorCode], None]


class _Given(NamedTuple):
    """An immutable snapshot of all that a target depends on."""

    group_id: str
    epoch: int
    names: dict[str, frozenset[str]]
    target: dict[str, Assignment]
    initialized: dict[UUID, tuple[int, ...]]
    image: ClusterImage


class ShareTargets:
    """The target computation of one shard's share groups."""

    def __init__(
        self,
        assignor: SimpleAssignor,
        *,
        image: Callable[[], ClusterImage],
        offload: Offload,
        journal: Journal,
        timer: Timer,
    ) -> None:
        self._assignor = assignor
        self._image = image
        self._offload = offload
        self._timer = timer
        self._journal = journal

    def update(self, group: ShareGroup, changes: ShareChanges) -> bool:
        """Compute the target for the current group epoch; return whether it is complete."""
        if group.work.is_assigning:
            return False
        given = self._given(group)
        if _is_small(given):
            _take(changes, given.epoch, self._run(given))
            return True
        group.work.is_assigning = True

        def done(changed: list[ChangedTarget]) -> None:
            group.work.is_assigning = False
            if group.is_dead:
                self._answer(group, ErrorCode.NOT_COORDINATOR)
                return
            late = ShareChanges(group)
            _take(late, given.epoch, changed)
            self._journal.write(group, late.records, lambda _: None)
            self._answer(group, ErrorCode.NONE)

        def failed(error: BaseException) -> None:
            # The next heartbeat tries again.
            group.work.is_assigning = False
            logger.error(
                "target assignment could not be computed share group=%s",
                log_value(group.group_id),
                exc_info=error,
            )
            self._answer(group, ErrorCode.COORDINATOR_NOT_AVAILABLE)

        self._offload.run(lambda: self._run(given), done, failed)
        return False

    @staticmethod
    def wait(group: ShareGroup, ready: Ready) -> None:
        """Call `ready` when the target is computed, or with the error."""
        waiting = group.work.waiting_for_target
        if len(waiting) >= WAITING_MAX:
            ready(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            waiting.append(ready)

    def _answer(self, group: ShareGroup, code: ErrorCode) -> None:
        waiting, group.work.waiting_for_target = group.work.waiting_for_target, []
        self._answer_some(waiting, code)

    def _answer_some(self, waiting: list[Ready], code: ErrorCode) -> None:
        """Answer waiting requests with the target, which is written, in batches."""
        now, later = waiting[:BATCH_SIZE], waiting[BATCH_SIZE:]
        if later:
            self._timer.call_later_ms(0, lambda: self._answer_some(later, code))
        with self._journal.gathering():
            for ready in now:
                ready(code)

    def _given(self, group: ShareGroup) -> _Given:
        return _Given(
            group.group_id,
            group.group_epoch,
            {member_id: m.subscribed_topic_names for member_id, m in group.members.items()},
            group.target.copy(),
            {
                topic_id: tuple(sorted(topic.partitions))
                for topic_id, topic in group.kept.initialized.items()
            },
            self._image(),
        )

    def _run(self, given: _Given) -> list[ChangedTarget]:
        """Compute changed targets and their records; touches nothing else."""
        subscribed = SubscribedTopics(given.image)
        specs = {
            member_id: ShareMemberSpec(
                subscribed.ids_of(names), given.target.get(member_id, NO_PARTITIONS)
            )
            for member_id, names in given.names.items()
        }
        after = self._assignor.assign(specs, given.initialized)
        return changed_targets(given.group_id, given.target, after, SHARE_GROUP_RECORDS)


def _is_small(given: _Given) -> bool:
    partitions = sum(map(len, given.initialized.values()))
    return len(given.names) + partitions <= INLINE_SIZE_MAX


def _take(changes: ShareChanges, epoch: int, changed: list[ChangedTarget]) -> None:
    members = changes.group.members
    for one in changed:
        # The member may have left since.
        if one.member_id in members:
            changes.add_target(*one)
    changes.set_assignment_epoch(epoch)
