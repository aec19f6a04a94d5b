"""R: who has a replica of a partition is what an operator has asked for, as the store has it.

    no move, then one         its target is asked for; the replicas of before stay
    one, then another         so is that one's; the replicas of before the first stay
    one, then none            complete: who was added, and is wanted, is in sync
                              given up: it was asked for, and the replicas of before are back
    it is answered            the store has had what was asked for since it was sent

Asked for is what was sent and not answered yet, or answered with an error that leaves its outcome
unknown; for as long as such a request may still be under way.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.partition_image import PartitionImage
from protocol.error_codes import ErrorCode
from tests.simulation.world import Place, Violation, World

UNDER_WAY_S: Final = 180.0
"""A request times out after a minute; a broker may have been paused before it has read it."""

REFUSED: Final = {
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Answers after which nothing will come of a request."""


@dataclass(eq=False)
class Asked:
    """A request for one partition; replicas of None: those of before, a cancel."""

    replicas: tuple[int, ...] | None
    sent_s: float
    is_over: bool = False


@dataclass(frozen=True)
class _Had:
    """What a partition's record was at a time."""

    at_s: float
    record: PartitionImage
    is_given_up: bool = False


class Assignments:
    """See the module.

    Attributes:
        moves: Moves that have begun.
        replaced: Of these, those that another one has replaced.
        given_up: Those that were cancelled.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._asked: defaultdict[Place, list[Asked]] = defaultdict(list)
        self._had: dict[tuple[UUID, Place], list[_Had]] = {}
        self._image = ClusterImage.empty()
        self.moves = self.replaced = self.given_up = 0

    def ask(self, place: Place, replicas: tuple[int, ...] | None) -> Asked:
        """A request is about to be sent."""
        asked = Asked(replicas, self._world.loop.time())
        self._asked[place].append(asked)
        return asked

    def answered(self, place: Place, asked: Asked, code: ErrorCode) -> None:
        """It was answered.

        Raises:
            Violation: It is said to be done, and the store has not had it.
        """
        if code is ErrorCode.NONE:
            asked.is_over = True
            if self._is_alone(place, asked) and not self._is_done(place, asked):
                raise Violation(f"R {place}: {asked} is said to be done, and was not")
        elif code in REFUSED:
            asked.is_over = True

    def _is_alone(self, place: Place, asked: Asked) -> bool:
        """Whether no other request may have been planned together with it."""
        return all(
            other is asked or (other.is_over and other.sent_s < asked.sent_s)
            for other in self._lately(place)
        )

    def _is_done(self, place: Place, asked: Asked) -> bool:
        topic = self._world.image.topics.get(place.topic)
        if topic is None:
            return True
        had = self._had.get((topic.topic_id, place), [])
        # The last one before it was sent counts as well: there was nothing left to do.
        first = max((at for at, one in enumerate(had) if one.at_s <= asked.sent_s), default=0)
        since = had[first:]
        if asked.replicas is None:
            return any(one.is_given_up and one.at_s >= asked.sent_s for one in since)
        return any(one.record.target == asked.replicas for one in since)

    def _lately(self, place: Place) -> Iterator[Asked]:
        since_s = self._world.loop.time() - UNDER_WAY_S
        return (one for one in self._asked[place] if one.sent_s >= since_s)

    def _is_asked(self, place: Place, replicas: tuple[int, ...] | None) -> bool:
        return any(one.replicas == replicas and not one.is_over for one in self._lately(place))

    def stored(self, image: ClusterImage) -> None:
        """Look at a new image of the store.

        Raises:
            Violation: Replicas are others than were asked for.
        """
        before, self._image = self._image, image
        if before.topics is image.topics:
            return
        for topic in image.topics.values():
            former = before.topics_by_id.get(topic.topic_id)
            if former is not None and former.partitions is topic.partitions:
                continue
            for record in topic.partitions:
                self._look(topic.topic_id, Place(topic.name, record.index), record)

    def _look(self, topic_id: UUID, place: Place, now: PartitionImage) -> None:
        had = self._had.setdefault((topic_id, place), [])
        is_given_up = False
        if had:
            before = had[-1].record
            if (before.replicas, before.adding, before.removing) == (
                now.replicas,
                now.adding,
                now.removing,
            ):
                return
            is_given_up = self._judge(place, before, now)
        had.append(_Had(self._world.loop.time(), now, is_given_up))

    def _judge(self, place: Place, before: PartitionImage, now: PartitionImage) -> bool:
        """Hold a record against the one before it; whether a move was given up."""
        is_wanted = self._is_asked(place, now.target)
        if now.is_reassigning:
            if not is_wanted or set(now.original) != set(before.original):
                raise Violation(f"R {place}: nobody asked for {now} after {before}")
            self.moves += not before.is_reassigning
            self.replaced += before.is_reassigning
            return False
        added = set(now.replicas) - set(before.original)
        is_complete = added <= set(now.isr)
        if is_complete and (now.replicas == before.target or is_wanted):
            return self._is_asked(place, None) and set(now.replicas) == set(before.original)
        if self._is_asked(place, None) and set(now.replicas) == set(before.original):
            self.given_up += 1
            return True
        raise Violation(f"R {place}: {before} has become {now}, which nobody asked for")
