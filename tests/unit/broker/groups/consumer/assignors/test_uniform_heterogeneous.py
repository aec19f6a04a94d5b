"""Different subscriptions: as even as they allow, and what need not move stays."""

import time
from random import Random

from hypothesis import example, given

from broker.groups.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from broker.groups.modern.assignor import Members, MemberSpec, Topics
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


def check_no_move_helps(members: Members, targets: Targets) -> None:
    """Nobody has two more than another who would take one of them."""
    load = {member_id: sum(map(len, target.values())) for member_id, target in targets.items()}
    for giver, target in targets.items():
        for topic_id in target:
            for taker, spec in members.items():
                if topic_id in spec.subscribed_topic_ids:
                    assert load[giver] - load[taker] <= 1


@ANY_SPEED
@given(groups(equal=False))
@example(
    (
        {
            "m1": MemberSpec(None, None, frozenset({topic(1)}), {topic(1): tuple(range(10))}),
            "m2": MemberSpec(None, None, frozenset({topic(1), topic(2)})),
            "m3": MemberSpec(None, None, frozenset({topic(2)}), {topic(2): tuple(range(20))}),
        },
        topics(10, 20),
    )
)
def test_complete_even_and_settled(group: tuple[Members, Topics]) -> None:
    """From any earlier time; order of dicts is nothing; done again it moves nothing more."""
    members, specs = group
    targets = assign_heterogeneous(members, specs)
    check_complete(members, specs, targets)
    check_no_move_helps(members, targets)
    assert assign_heterogeneous(dict(reversed(list(members.items()))), specs) == targets
    assert assign_heterogeneous(owning(members, targets), specs) == targets


@ANY_SPEED
@given(groups(equal=True))
def test_equal_subscriptions_are_even(group: tuple[Members, Topics]) -> None:
    """They come here too when somebody else in the group differs."""
    members, specs = group
    targets = assign_heterogeneous(members, specs)
    check_complete(members, specs, targets)
    assert sizes(targets)[-1] - sizes(targets)[0] <= 1


def test_who_has_little_choice_is_served_first() -> None:
    """Two of a topic of their own leave the common one to the third."""
    specs = topics(4, 4)
    members = {
        "a": MemberSpec(None, None, frozenset({topic(1)})),
        "b": MemberSpec(None, None, frozenset({topic(1), topic(2)})),
    }
    targets = assign_heterogeneous(members, specs)
    assert targets == {"a": {topic(1): (0, 1, 2, 3)}, "b": {topic(2): (0, 1, 2, 3)}}


def test_one_leaves() -> None:
    """Only what it had finds new owners."""
    random = Random(1)
    specs = topics(*[12] * 10)
    members = {
        f"m{number}": MemberSpec(None, None, frozenset(random.sample(sorted(specs), 5)))
        for number in range(20)
    }
    targets = assign_heterogeneous(members, specs)
    members = owning(members, targets)
    gone = members.pop("m7")
    after = assign_heterogeneous(members, specs)
    check_complete(members, specs, after)
    moved = 120 - sum(map(len, gone.assignment.values())) - kept(members, after)
    assert moved <= 6


def test_large_group_takes_a_moment() -> None:
    """A thousand members that want half of a hundred topics each."""
    random = Random(2)
    specs = topics(*[100] * 100)
    members = {
        member_id: spec._replace(subscribed_topic_ids=frozenset(random.sample(sorted(specs), 50)))
        for member_id, spec in equal_members(1000, specs).items()
    }
    started = time.thread_time()
    targets = assign_heterogeneous(members, specs)
    assert time.thread_time() - started < 5.0
    assert set(sizes(targets)) == {10}
