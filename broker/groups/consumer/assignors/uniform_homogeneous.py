"""`uniform` where all members subscribed to the same topics: counts differ by at most one.

Of P partitions and M members, each member gets P // M, and P % M members one more:

    1. Each member, by member id, keeps what it has up to its quota. While extra partitions are
       left, the quota includes one; a member that does not use it leaves it to the next, unless
       just as many members are left as extras.
    2. Free partitions, by topic and partition, and then those taken away, go to members below
       their quota, by member id.

So a partition moves only when its owner has too many, is gone, or no longer wants the topic.

Source: Kafka, UniformHomogeneousAssignmentBuilder.java.
"""

from collections.abc import Set
from uuid import UUID

from broker.groups.modern.assignment import Assignment
from broker.groups.modern.assignor import Members, Topics, partition_count, topic_order


def assign_homogeneous(
    members: Members, topic_ids: Set[UUID], topics: Topics
) -> dict[str, Assignment]:
    """The next target of every member.

    Raises:
        AssignorError: One of `topic_ids` is not among `topics`.
    """
    order = sorted(topic_ids, key=topic_order)
    counts = {topic_id: partition_count(topics, topic_id) for topic_id in order}
    member_ids = sorted(members)
    # One byte a partition: whether it is assigned.
    taken = {topic_id: bytearray(count) for topic_id, count in counts.items()}
    owned = [_owned(members[member_id].assignment, taken) for member_id in member_ids]
    unassigned: list[tuple[UUID, int]] = []
    for topic_id in order:
        flags = taken[topic_id]
        partition = flags.find(0)
        while partition >= 0:
            unassigned.append((topic_id, partition))
            partition = flags.find(0, partition + 1)

    quota, extras = divmod(sum(counts.values()), len(member_ids))
    kept: list[Assignment] = []
    room: list[tuple[int, int]] = []
    for position, assignment in enumerate(owned):
        may_have_extra = extras > 0
        left = quota + may_have_extra
        target, left = _keep(assignment, left, unassigned)
        if left > 0 and may_have_extra and len(member_ids) - position > extras:
            left -= 1
            may_have_extra = False
        if left > 0:
            room.append((position, left))
        if may_have_extra:
            extras -= 1
        kept.append(target)

    start = 0
    for position, left in room:
        kept[position] = _with(kept[position], unassigned[start : start + left])
        start += left
    return dict(zip(member_ids, kept, strict=True))


def _owned(assignment: Assignment, taken: dict[UUID, bytearray]) -> Assignment:
    """The valid part of an old target: subscribed topics, partitions that exist.

    A partition that two members claim, which no target of ours has, stays with the first.
    """
    owned: dict[UUID, tuple[int, ...]] = {}
    changed = False
    for topic_id, partitions in assignment.items():
        flags = taken.get(topic_id)
        if flags is None:
            changed = True
            continue
        count = len(flags)
        for partition in partitions:
            if partition >= count or flags[partition]:
                changed = True
                good = []
                for candidate in partitions:
                    if candidate < count and not flags[candidate]:
                        flags[candidate] = 1
                        good.append(candidate)
                if good:
                    owned[topic_id] = tuple(good)
                break
        else:
            for partition in partitions:
                flags[partition] = 1
            owned[topic_id] = partitions
    return owned if changed else assignment


def _keep(
    assignment: Assignment, left: int, unassigned: list[tuple[UUID, int]]
) -> tuple[Assignment, int]:
    """The part of an assignment that fits into a quota, and the rest of the quota."""
    count = sum(map(len, assignment.values()))
    if count <= left:
        return assignment, left - count
    target: dict[UUID, tuple[int, ...]] = {}
    for topic_id in sorted(assignment, key=topic_order):
        partitions = assignment[topic_id]
        kept = partitions[:left]
        if kept:
            target[topic_id] = kept
        unassigned.extend((topic_id, partition) for partition in partitions[left:])
        left -= len(kept)
    return target, left


def _with(assignment: Assignment, more: list[tuple[UUID, int]]) -> Assignment:
    if not more:
        return assignment
    added: dict[UUID, list[int]] = {}
    for topic_id, partition in more:
        added.setdefault(topic_id, []).append(partition)
    target = dict(assignment)
    for topic_id, partitions in added.items():
        target[topic_id] = tuple(sorted((*target.get(topic_id, ()), *partitions)))
    return target
