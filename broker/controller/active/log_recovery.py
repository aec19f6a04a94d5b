"""Recovery of partitions without a clean leader: the longest of their logs is found, and led.

              all that were in sync last live (Balanced), one replica does (Aggressive)
    WAITING ────────────────────────────────────────────────────────────> ASKING
      ^  ^──── one of these did not answer, none did (Aggressive);          │
      │        or none has a log, and another replica could (Balanced) ─────┤
      │                                                                     │ answers: the greatest
      │                                                                     v (last epoch, end)
      └──── the record, or a life of those that answered, has changed ─── CHOSEN ──committed──> over

Only here is an election made that may lose acknowledged records: ISR and ELR are empty, for every
member's machine has lost what was not on its disk (KIP-966, Unclean Recovery). The longest log has
the most that any of them has kept. Who answers has no leader, so its log does not change meanwhile;
it answers in the leader epoch of the record, so it has seen that there is none.

Who was in sync last and has no log any more (a new disk, a directory that was given up) tells
nothing: then the other replicas are waited for, too, unless they are not registered. They may have
all of it, and would cut it off behind a leader that has none.

Nothing is kept between two rounds but what is asked now: the next controller begins anew. One round
at a time, of 10,000 partitions at most; requests have 1,000 partitions at most, and 5 seconds.

Source: KIP-966. Its GetReplicaLogInfo (93) is in no released Kafka: 4.2.0 ends at API 92. What it
would answer, the last leader epoch and the log's end, ListOffsets of the debugging replica does.
"""

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from broker.controller.active.partition_change import (
    Terms,
    changed,
    replicas_to_compare,
)
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.slices import Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import NO_LEADER, PartitionImage

LOGGER = logging.getLogger(__name__)

PARTITIONS_MAX: Final = 10_000
"""Partitions of one round."""

REQUEST_MAX: Final = 1_000
"""Partitions of one request."""

REPORTED_MAX: Final = 10
"""Partitions of a round that get a line of their own in the log."""

TIMEOUT_MS: Final = 5_000.0
"""Time of a request; an aggressive recovery goes on without who has not answered by then."""


class LogEnd(NamedTuple):
    """How far a log goes; the greater is the longer one.

    `last_epoch`: -1 of an empty log. `end_offset`: exclusive.
    """

    last_epoch: int
    end_offset: int


class Asked(NamedTuple):
    """A partition whose log's end is asked for; the answer counts in this leader epoch alone."""

    topic: str
    partition: int
    leader_epoch: int


NOTHING: Final = LogEnd(-1, 0)
"""Of a log that was begun anew: one that was led has an epoch, also without a record."""

Ask = Callable[[int, Sequence[Asked], float], Awaitable[Mapping[Asked, LogEnd]]]
"""Asks a broker, with a time-out in ms: the ends that it has sent; what it has not is left out."""


class Phase(enum.Enum):
    """See the module."""

    WAITING = "waiting"
    ASKING = "asking"
    CHOSEN = "chosen"


_NEXT: Final = {
    Phase.WAITING: {Phase.ASKING},
    Phase.ASKING: {Phase.CHOSEN, Phase.WAITING},
    Phase.CHOSEN: {Phase.WAITING},
}


@dataclass(slots=True)
class PartitionRecovery:
    """One partition on its way.

    Attributes:
        topic: As of the image with which it began.
        partition: The record, likewise.
        members: Replicas to be compared; of equal logs the first is taken.
        needed: Of those, all that have to answer; empty: any one is enough.
        epochs: Broker epochs of those that are asked.
        away: Members that are registered, and cannot be asked now.
        ends: What those that were asked have answered.
    """

    topic: TopicImage
    partition: PartitionImage
    members: tuple[int, ...]
    needed: tuple[int, ...]
    epochs: dict[int, int] = field(default_factory=dict)
    away: tuple[int, ...] = ()
    ends: dict[int, LogEnd] = field(default_factory=dict)
    phase: Phase = Phase.WAITING

    @property
    def asked(self) -> Asked:
        """What is asked for."""
        return Asked(self.topic.name, self.partition.index, self.partition.leader_epoch)

    @property
    def chosen(self) -> int:
        """The member with the longest log; only in `CHOSEN`."""
        assert self.phase is Phase.CHOSEN
        first = max(self.ends.values())
        return next(node for node in self.members if self.ends.get(node) == first)

    def go(self, phase: Phase) -> None:
        """Enter a phase."""
        assert phase in _NEXT[self.phase], f"{self.phase} to {phase}"
        self.phase = phase

    def ask(self, image: ClusterImage, may_answer: Container[int]) -> bool:
        """Begin to ask those of the members that live; False: one that is needed does not."""
        alive = [node for node in self.members if node in may_answer]
        if not alive or any(node not in may_answer for node in self.needed):
            return False
        self.epochs = {node: image.brokers[node].epoch for node in alive}
        self.away = tuple(
            node for node in self.members if node in image.brokers and node not in self.epochs
        )
        self.go(Phase.ASKING)
        return True

    def answered(self) -> bool:
        """All requests are over: choose, or wait again."""
        complete = bool(self.ends) and all(node in self.ends for node in self.needed)
        if complete and self.needed and max(self.ends.values()) == NOTHING:
            complete = not self.away and all(node in self.ends for node in self.epochs)
        self.go(Phase.CHOSEN if complete else Phase.WAITING)
        return complete

    def still_holds(self, image: ClusterImage) -> bool:
        """Whether the image is, for this partition, the one that it was chosen with."""
        topic = image.topics_by_id.get(self.topic.topic_id)
        if topic is None or self.partition.index >= len(topic.partitions):
            return False
        now = topic.partitions[self.partition.index]
        return now.partition_epoch == self.partition.partition_epoch and all(
            (broker := image.brokers.get(node)) is not None
            and broker.epoch == self.epochs[node]
            and not broker.is_fenced
            for node in self.ends
        )


Elect = Callable[[list[PartitionRecovery]], Awaitable[None]]
"""Commits the elections of what is `CHOSEN`, as far as it still holds."""


class LogRecovery:
    """See the module. Runs on the loop's thread.

    Attributes:
        ask: How brokers are asked; set once there are connections to them.
        waiting: Partitions that could not be recovered the last time, by their topic's id.
    """

    def __init__(
        self,
        elect: Elect,
        again: Callable[[], None],
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Ask no broker yet.

        Args:
            elect: See there.
            again: Called when what waits is to be looked at once more, later.
            start: Runs a round.
        """
        self.ask: Ask = _no_answers
        self.waiting: dict[UUID, int] = {}
        self._elect = elect
        self._again = again
        self._start = start
        self._is_busy = False

    async def pursue(
        self,
        leaderless: Iterable[tuple[TopicImage, PartitionImage]],
        image: ClusterImage,
        terms: TopicTerms,
        slices: Slices,
    ) -> None:
        """Begin a round for partitions without a leader, unless one is under way.

        Args:
            leaderless: None of them can be led cleanly.
            image: They are of it.
            terms: Of elections.
            slices: There may be thousands.
        """
        if self._is_busy:
            return
        self.waiting.clear()
        asking: list[PartitionRecovery] = []
        for topic, partition in leaderless:
            await slices.turn()
            by = terms.of(topic, partition)
            one = _recovery_of(topic, partition, by)
            if one is None:
                continue
            if len(asking) < PARTITIONS_MAX and one.ask(image, by.may_lead):
                asking.append(one)
            else:
                self._wait(one)
        if asking:
            self._is_busy = True
            self._start(self._round(asking))

    def _wait(self, one: PartitionRecovery) -> None:
        topic_id = one.topic.topic_id
        self.waiting[topic_id] = self.waiting.get(topic_id, 0) + 1

    async def _round(self, asking: list[PartitionRecovery]) -> None:
        try:
            by_node: dict[int, list[PartitionRecovery]] = {}
            for one in asking:
                for node in one.epochs:
                    by_node.setdefault(node, []).append(one)
            await asyncio.gather(*(self._ask_all(node, ones) for node, ones in by_node.items()))
            chosen = [one for one in asking if one.answered()]
            for one in asking:
                if one.phase is Phase.WAITING:
                    self._wait(one)
            if chosen:
                await self._elect(chosen)
        finally:
            self._is_busy = False
            # What was elected needs nothing more, and the rest another try.
            self._again()

    async def _ask_all(self, node: int, ones: list[PartitionRecovery]) -> None:
        by_asked = {one.asked: one for one in ones}
        asked = list(by_asked)
        for start in range(0, len(asked), REQUEST_MAX):
            ends = await self.ask(node, asked[start : start + REQUEST_MAX], TIMEOUT_MS)
            for one, end in ends.items():
                by_asked[one].ends[node] = end


def _recovery_of(
    topic: TopicImage, partition: PartitionImage, terms: Terms
) -> PartitionRecovery | None:
    compared = replicas_to_compare(partition, terms)
    if compared is None:
        return None
    assert partition.leader == NO_LEADER
    return PartitionRecovery(topic, partition, *compared)


async def plan_longest(
    plan: PartitionPlan, terms: TopicTerms, chosen: Iterable[PartitionRecovery], slices: Slices
) -> None:
    """Plan that the longest logs are led, where what was compared still holds."""
    for one in chosen:
        await slices.turn()
        topic = plan.image.topics_by_id.get(one.topic.topic_id)
        current = None if topic is None else plan.partition(topic, one.partition.index)
        if topic is None or current is None or not one.still_holds(plan.image):
            one.go(Phase.WAITING)
            continue
        new = changed(current, terms.of(topic, current, chosen=one.chosen))
        if new.leader != one.chosen:
            one.go(Phase.WAITING)
            continue
        plan.change(topic, new)


def report_recovered(chosen: Iterable[PartitionRecovery]) -> None:
    """Log what was elected, and by how much: the first few, for there may be thousands."""
    elected = [one for one in chosen if one.phase is Phase.CHOSEN]
    for one in elected[:REPORTED_MAX]:
        LOGGER.warning(
            "partition recovered from the longest of its logs partition=%s-%d leader=%d logs=%s",
            one.topic.name,
            one.partition.index,
            one.chosen,
            {node: tuple(one.ends[node]) for node in sorted(one.ends)},
        )
    if elected:
        LOGGER.warning("partitions recovered partitions=%d", len(elected))


async def _no_answers(
    _node_id: int, _asked: Sequence[Asked], _timeout_ms: float
) -> Mapping[Asked, LogEnd]:
    """Before there are connections."""
    return {}
