"""Equal subscriptions: counts differ by one at most, and what need not move stays."""

import time

from hypothesis import given
from hypothesis import strategies as st

from broker.groups.consumer.assignors.uniform_homogeneous import assign_homogeneous
from broker.groups.modern.assignor import Members, Topics
from tests.unit.broker.groups.consumer.assignors.groups import (
    ANY_SPEED,
    Targets,
    check_complete,
    equal_members,
    groups,
    kept,
    owning,
    sizes,
    topic,
    topics,
)


def assign(members: Members, specs: Topics) -> Targets:
    (topic_ids,) = {frozenset(spec.subscribed_topic_ids) for spec in members.values()}
    return assign_homogeneous(members, topic_ids, specs)


def most_that_can_stay(members: Members, specs: Topics) -> int:
    """With even counts: everybody keeps the lower count, as many as there are extras one more."""
    owned = [
        sum(
            partition < specs[topic_id].partition_count
            for topic_id, partitions in spec.assignment.items()
            if topic_id in spec.subscribed_topic_ids
            for partition in partitions
        )
        for spec in members.values()
    ]
    wanted = next(iter(members.values())).subscribed_topic_ids
    total = sum(specs[topic_id].partition_count for topic_id in wanted)
    lower, extras = divmod(total, len(members))
    above = sum(count > lower for count in owned)
    return sum(min(count, lower) for count in owned) + min(above, extras)


@ANY_SPEED
@given(groups(equal=True))
def test_complete_even_sticky_and_settled(group: tuple[Members, Topics]) -> None:
    """From any earlier time, once; a second time changes nothing; order of dicts is nothing."""
    members, specs = group
    targets = assign(members, specs)
    check_complete(members, specs, targets)
    assert sizes(targets)[-1] - sizes(targets)[0] <= 1
    assert kept(members, targets) == most_that_can_stay(members, specs)
    assert assign(owning(members, targets), specs) == targets
    assert assign(dict(reversed(list(members.items()))), specs) == targets


@ANY_SPEED
@given(st.integers(1, 30), st.integers(1, 100))
def test_one_joins_and_leaves(count: int, partitions: int) -> None:
    """A member that joins takes its share and no other moves; what it leaves comes back."""
    specs = topics(partitions, 7)
    total = partitions + 7
    members = equal_members(count, specs)
    members = owning(members, assign(members, specs))
    joined = {**members, "new": members["m0000"]._replace(assignment={})}
    targets = assign(joined, specs)
    share = sum(map(len, targets["new"].values()))
    assert total // (count + 1) <= share <= total // (count + 1) + 1
    assert kept(joined, targets) == total - share
    joined = owning(joined, targets)
    del joined["m0000"]
    if joined:
        left = assign(joined, specs)
        assert kept(joined, left) == total - sum(map(len, targets["m0000"].values()))


def test_topics_that_grow_move_nothing() -> None:
    """New partitions go where there is room."""
    members = equal_members(3, topics(6))
    members = owning(members, assign(members, topics(6)))
    targets = assign(members, topics(8))
    assert kept(members, targets) == 6
    assert sizes(targets) == [2, 3, 3]


def test_partition_that_two_claim_stays_with_the_first() -> None:
    """No target of ours says so, but a log may have been written by anybody."""
    specs = topics(4)
    members = equal_members(2, specs)
    claims: Targets = {member_id: {topic(1): (0, 1, 9)} for member_id in members}
    members = owning(members, claims)
    targets = assign(members, specs)
    check_complete(members, specs, targets)
    assert targets["m0000"] == {topic(1): (0, 1)}


def test_large_group_takes_a_moment() -> None:
    """A thousand members and ten thousand partitions: milliseconds, with a wide margin here."""
    specs = topics(*[100] * 100)
    members = equal_members(1000, specs)
    started = time.thread_time()
    targets = assign(members, specs)
    members = owning(members, targets)
    del members["m0500"]
    after = assign(members, specs)
    assert time.thread_time() - started < 5.0
    assert set(sizes(targets)) == {10}
    assert kept(members, after) == 9990
