"""Who works on what: the rules of Kafka's assignor, for any group."""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from broker.groups.modern.assignment import Assignment
from broker.groups.share.simple_assignor import ShareMemberSpec, SimpleAssignor

FOO, BAR, GONE = UUID(int=1), UUID(int=2), UUID(int=3)
ASSIGNOR = SimpleAssignor()

ASSIGNMENTS = st.dictionaries(
    st.sampled_from([FOO, BAR, GONE]),
    st.sets(st.integers(0, 9), min_size=1).map(lambda p: tuple(sorted(p))),
    max_size=3,
)
SUBSCRIPTIONS = st.frozensets(st.sampled_from([FOO, BAR, GONE]))
ASSIGNABLE = st.builds(
    lambda foo, bar: {FOO: tuple(range(foo)), BAR: tuple(range(bar))},
    st.integers(0, 8),
    st.integers(0, 8),
)
MEMBERS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2),
    st.builds(ShareMemberSpec, SUBSCRIPTIONS, ASSIGNMENTS),
    min_size=1,
    max_size=12,
)


def spec(*topics: UUID, **owned: tuple[int, ...]) -> ShareMemberSpec:
    ids = {"foo": FOO, "bar": BAR}
    return ShareMemberSpec(frozenset(topics), {ids[name]: p for name, p in owned.items()})


def counts(assigned: Mapping[str, Assignment]) -> Counter[tuple[UUID, int]]:
    return Counter((topic, p) for own in assigned.values() for topic, ps in own.items() for p in ps)


def test_one_member_gets_all() -> None:
    assert ASSIGNOR.assign({"a": spec(FOO)}, {FOO: (0, 1, 2)}) == {"a": {FOO: (0, 1, 2)}}


def test_nobody_and_nothing() -> None:
    assert ASSIGNOR.assign({}, {FOO: (0,)}) == {}
    assert ASSIGNOR.assign({"a": spec()}, {FOO: (0,)}) == {"a": {}}
    assert ASSIGNOR.assign({"a": spec(FOO)}, {}) == {"a": {}}


def test_more_members_than_partitions_share() -> None:
    assigned = ASSIGNOR.assign({m: spec(FOO) for m in "abcde"}, {FOO: (0, 1)})
    assert counts(assigned) == {(FOO, 0): 3, (FOO, 1): 3}
    assert sorted(sum(map(len, own.values())) for own in assigned.values()) == [1, 1, 1, 1, 2]


def test_members_keep_what_they_have() -> None:
    before = {"a": spec(FOO, foo=(0, 1, 2)), "b": spec(FOO, foo=(3, 4, 5))}
    assert ASSIGNOR.assign(before, {FOO: tuple(range(6))}) == {
        "a": {FOO: (0, 1, 2)},
        "b": {FOO: (3, 4, 5)},
    }
    after = ASSIGNOR.assign({**before, "c": spec(FOO)}, {FOO: tuple(range(6))})
    assert set(after["a"][FOO]) < {0, 1, 2}
    assert set(after["b"][FOO]) < {3, 4, 5}
    assert len(after["c"][FOO]) == 2


def test_topics_are_shared_out_one_by_one_when_subscriptions_differ() -> None:
    assigned = ASSIGNOR.assign(
        {"a": spec(FOO), "b": spec(BAR), "c": spec(FOO, BAR)},
        {FOO: (0, 1, 2, 3), BAR: (0, 1)},
    )
    assert {m: {t: len(p) for t, p in own.items()} for m, own in assigned.items()} == {
        "a": {FOO: 2},
        "b": {BAR: 1},
        "c": {FOO: 2, BAR: 1},
    }


@given(MEMBERS, ASSIGNABLE)
def test_rules_hold_for_any_group(
    members: dict[str, ShareMemberSpec], assignable: Assignment
) -> None:
    assigned = ASSIGNOR.assign(members, assignable)
    assert assigned.keys() == members.keys()
    for member_id, own in assigned.items():
        for topic, partitions in own.items():
            assert topic in members[member_id].subscribed_topic_ids
            assert list(partitions) == sorted(set(partitions))
            assert set(partitions) <= set(assignable[topic])
    shares = counts(assigned)
    for topic, partitions in assignable.items():
        readers = [m for m, s in members.items() if topic in s.subscribed_topic_ids]
        for partition in partitions:
            # Everything somebody asks for is worked on.
            assert (shares[topic, partition] > 0) == bool(readers)


@given(
    st.integers(1, 12),
    ASSIGNABLE,
    st.frozensets(st.sampled_from([FOO, BAR]), min_size=1),
    st.data(),
)
def test_equal_members_get_equally_much(
    size: int, assignable: Assignment, topics: frozenset[UUID], data: st.DataObject
) -> None:
    members = {
        f"m{i}": ShareMemberSpec(topics, data.draw(ASSIGNMENTS, label="before"))
        for i in range(size)
    }
    assigned = ASSIGNOR.assign(members, assignable)
    partition_count = sum(len(assignable[topic]) for topic in topics)
    if not partition_count:
        assert not counts(assigned)
        return
    sharing = -(-size // partition_count)
    assert max(counts(assigned).values()) <= sharing
    most = -(-sharing * partition_count // size)
    assert all(sum(map(len, own.values())) <= most for own in assigned.values())


@given(MEMBERS, ASSIGNABLE)
def test_nothing_moves_twice(members: dict[str, ShareMemberSpec], assignable: Assignment) -> None:
    """Who has what the assignor wants keeps it, unless a place was left free."""
    once = ASSIGNOR.assign(members, assignable)
    again = ASSIGNOR.assign(
        {m: s._replace(assignment=once[m]) for m, s in members.items()}, assignable
    )
    if counts(once).total() == counts(again).total():
        assert again == once


@given(MEMBERS, ASSIGNABLE)
def test_order_does_not_matter(members: dict[str, ShareMemberSpec], assignable: Assignment) -> None:
    backwards = dict(reversed(members.items()))
    assert ASSIGNOR.assign(backwards, assignable) == ASSIGNOR.assign(members, assignable)
