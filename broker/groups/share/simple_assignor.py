"""The assignor of share groups: it spreads members evenly over partitions, and vice versa.

    partitions P, members M          every partition is shared by ceil(M / P) members
                                     every member has its part of all these places, within one

    P = 2, M = 5: three on each, six places:   m1 m2 m3 on 0,   m3 m4 m5 on 1

Members keep what they have as far as that allows: first those with too many partitions give some
up, then partitions with too many members, then free places are filled. When all members
subscribed to the same topics, their partitions are shared out together, otherwise topic by topic.

Source of the rules: Kafka, SimpleAssignor.java, SimpleHomogeneousAssignmentBuilder.java,
SimpleHeterogeneousAssignmentBuilder.java; which member keeps which partition is chosen here.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple
from uuid import UUID

from broker.groups.modern.assignment import NO_PARTITIONS, Assignment
from broker.groups.modern.assignor import topic_order

Place = tuple[UUID, int]
"""A partition of a topic."""


class ShareMemberSpec(NamedTuple):
    """A member, as the assignor's input; `assignment` is its current target."""

    subscribed_topic_ids: AbstractSet[UUID]
    assignment: Assignment = NO_PARTITIONS


class SimpleAssignor:
    """`simple`, the only one there is."""

    name = "simple"

    def assign(
        self, members: Mapping[str, ShareMemberSpec], assignable: Assignment
    ) -> dict[str, Assignment]:
        """The next target of every member.

        Args:
            members: By member id.
            assignable: Partitions that may be given away, by topic.
        """
        if not members:
            return {}
        subscriptions = {spec.subscribed_topic_ids for spec in map(_frozen, members.values())}
        topics = sorted(frozenset().union(*subscriptions) & assignable.keys(), key=topic_order)
        owned: dict[str, set[Place]] = {member_id: set() for member_id in members}
        if len(subscriptions) == 1:
            places = [(topic, p) for topic in topics for p in assignable[topic]]
            _share_out(sorted(members), places, members, owned)
        else:
            for topic in topics:
                readers = sorted(m for m, s in members.items() if topic in s.subscribed_topic_ids)
                _share_out(readers, [(topic, p) for p in assignable[topic]], members, owned)
        return {member_id: _assignment(places) for member_id, places in owned.items()}


ASSIGNORS = {SimpleAssignor.name: SimpleAssignor()}
"""By the name that `group.share.assignors` has."""


def _frozen(spec: ShareMemberSpec) -> ShareMemberSpec:
    return spec._replace(subscribed_topic_ids=frozenset(spec.subscribed_topic_ids))


def _share_out(
    member_ids: Sequence[str],
    places: Sequence[Place],
    members: Mapping[str, ShareMemberSpec],
    owned: dict[str, set[Place]],
) -> None:
    """Add to `owned` the partitions that these members get."""
    if not places:
        return
    sharing = -(-len(member_ids) // len(places))
    workers: dict[Place, int] = dict.fromkeys(places, 0)
    kept: dict[str, list[Place]] = {}
    for member_id in member_ids:
        assignment = members[member_id].assignment
        kept[member_id] = [
            place
            for topic, partitions in assignment.items()
            for place in ((topic, partition) for partition in partitions)
            if place in workers
        ]
        for place in kept[member_id]:
            workers[place] += 1
    wanted = _wanted(kept, sharing * len(places))
    for member_id, has in kept.items():
        surplus = len(has) - wanted[member_id]
        if surplus > 0:
            has.sort(key=workers.__getitem__)
            for place in has[-surplus:]:
                workers[place] -= 1
            del has[-surplus:]
    for member_id, has in kept.items():
        for place in has:
            if workers[place] > sharing:
                workers[place] -= 1
            else:
                owned[member_id].add(place)
        wanted[member_id] -= sum(place in owned[member_id] for place in has)
    _fill(owned, wanted, workers, sharing)


def _wanted(kept: Mapping[str, Sequence[Place]], count: int) -> dict[str, int]:
    """Number of partitions of each member; those with most get the remainder."""
    each, over = divmod(count, len(kept))
    by_size = sorted(kept, key=lambda member_id: (-len(kept[member_id]), member_id))
    return {member_id: each + (rank < over) for rank, member_id in enumerate(by_size)}


def _fill(
    owned: dict[str, set[Place]],
    wanted: dict[str, int],
    workers: Mapping[Place, int],
    sharing: int,
) -> None:
    """Assign partitions that have too few members to members that have too few, round robin.

    A place for which there are only members that own the partition already stays free.
    """
    unfilled = [member_id for member_id, count in wanted.items() if count > 0]
    position = 0
    for place, count in workers.items():
        missing = sharing - count
        passed_over = 0
        while missing and passed_over < len(unfilled):
            position %= len(unfilled)
            member_id = unfilled[position]
            if place in owned[member_id]:
                position += 1
                passed_over += 1
                continue
            owned[member_id].add(place)
            missing -= 1
            passed_over = 0
            wanted[member_id] -= 1
            if wanted[member_id]:
                position += 1
            else:
                del unfilled[position]


def _assignment(places: AbstractSet[Place]) -> Assignment:
    found: dict[UUID, list[int]] = {}
    for topic, partition in sorted(places, key=lambda place: (topic_order(place[0]), place[1])):
        found.setdefault(topic, []).append(partition)
    return {topic: tuple(partitions) for topic, partitions in found.items()}
