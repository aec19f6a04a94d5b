"""Runs of neighbouring partitions."""

from hypothesis import given

from broker.groups.consumer.assignors.range_assignor import RangeAssignor
from broker.groups.modern.assignor import Members, MemberSpec, Topics
from tests.unit.broker.groups.consumer.assignors.groups import (
    ANY_SPEED,
    check_complete,
    equal_members,
    groups,
    owning,
    topic,
    topics,
)

ASSIGN = RangeAssignor().assign


def test_longer_runs_first() -> None:
    """Seven partitions among three."""
    targets = ASSIGN(equal_members(3, topics(7)), topics(7))
    assert [target[topic(1)] for target in targets.values()] == [(0, 1, 2), (3, 4), (5, 6)]


def test_topics_are_cut_at_the_same_places() -> None:
    """Topics of one size: the same partitions of each."""
    targets = ASSIGN(equal_members(3, topics(8, 8)), topics(8, 8))
    for target in targets.values():
        assert target[topic(1)] == target[topic(2)]


def test_each_topic_among_its_own_subscribers() -> None:
    """A member that did not subscribe takes no place in the line."""
    specs = topics(4, 2)
    members = equal_members(3, specs)
    members["m0001"] = members["m0001"]._replace(subscribed_topic_ids=frozenset({topic(2)}))
    assert ASSIGN(members, specs) == {
        "m0000": {topic(1): (0, 1), topic(2): (0,)},
        "m0001": {topic(2): (1,)},
        "m0002": {topic(1): (2, 3)},
    }


def test_static_members_stand_first_and_by_their_name() -> None:
    """Coming back under another member id changes nothing."""
    specs = topics(6)
    wanted = frozenset(specs)

    def by_instance(static_ids: dict[str, str]) -> dict[str | None, object]:
        members = {
            member_id: MemberSpec(instance_id, None, wanted)
            for member_id, instance_id in static_ids.items()
        }
        members["a-dynamic"] = MemberSpec(None, None, wanted)
        targets = ASSIGN(members, specs)
        return {members[member_id].instance_id: target for member_id, target in targets.items()}

    before = by_instance({"m1": "i1", "m2": "i2"})
    assert before == {"i1": {topic(1): (0, 1)}, "i2": {topic(1): (2, 3)}, None: {topic(1): (4, 5)}}
    assert by_instance({"z9": "i1", "b1": "i2"}) == before


@ANY_SPEED
@given(groups(equal=False))
def test_complete_and_even_by_topic(group: tuple[Members, Topics]) -> None:
    """Subscribers of a topic get runs that differ by at most one; order of the dicts is nothing."""
    members, specs = group
    targets = ASSIGN(members, specs)
    check_complete(members, specs, targets)
    for topic_id in specs:
        shares = [
            targets[member_id].get(topic_id, ())
            for member_id, spec in members.items()
            if topic_id in spec.subscribed_topic_ids
        ]
        if shares:
            lengths = [len(share) for share in shares]
            assert max(lengths) - min(lengths) <= 1
        for share in shares:
            assert list(share) == list(range(share[0], share[-1] + 1) if share else ())
    assert ASSIGN(dict(reversed(list(members.items()))), specs) == targets
    assert ASSIGN(owning(members, targets), specs) == targets
