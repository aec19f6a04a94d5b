"""Single steps of a member towards its target."""

from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from broker.groups.consumer.member import ConsumerGroupMember, MemberState
from broker.groups.consumer.reconciliation import Owned, owns_any, owns_only, reconcile
from broker.groups.modern.assignment import Assignment, sorted_assignment
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS
A, B = UUID(int=1), UUID(int=2)


def member(
    state: MemberState = STABLE,
    epoch: int = 5,
    assigned: Assignment | None = None,
    pending: Assignment | None = None,
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        "m",
        epoch,
        epoch - 1,
        state=state,
        assigned={A: (1, 2, 3)} if assigned is None else assigned,
        pending_revocation=pending or {},
    )


def report(assignment: Assignment | None) -> Owned | None:
    if assignment is None:
        return None
    return cast(
        "Owned",
        [SimpleNamespace(topic_id=i, partitions=list(p)) for i, p in assignment.items()],
    )


def step(
    before: ConsumerGroupMember,
    target: Assignment,
    *,
    epoch: int = 6,
    owned: Assignment | None = None,
    taken: frozenset[tuple[UUID, int]] = frozenset(),
    subscribed: frozenset[UUID] = frozenset((A, B)),
    changed: bool = False,
) -> tuple[MemberState, int, int, Assignment, Assignment]:
    after = reconcile(
        before,
        assignment_epoch=epoch,
        target=target,
        is_subscribed_to=subscribed.__contains__,
        partition_epoch=lambda topic, partition: 3 if (topic, partition) in taken else -1,
        has_subscription_changed=changed,
        owned=report(owned),
    )
    return (
        after.state,
        after.member_epoch,
        after.previous_member_epoch,
        after.assigned,
        after.pending_revocation,
    )


def test_stable_member_at_the_target_stays() -> None:
    before = member()
    assert step(before, {A: (9,)}, epoch=5) == (STABLE, 5, 4, {A: (1, 2, 3)}, {})


def test_stable_to_stable_with_more() -> None:
    assert step(member(), {A: (1, 2, 3), B: (0,)}) == (STABLE, 6, 5, {A: (1, 2, 3), B: (0,)}, {})


def test_stable_to_stable_with_the_same() -> None:
    assert step(member(), {A: (1, 2, 3)}) == (STABLE, 6, 5, {A: (1, 2, 3)}, {})


def test_stable_to_unrevoked() -> None:
    assert step(member(), {A: (2, 3), B: (0,)}) == (UNREVOKED, 5, 5, {A: (2, 3)}, {A: (1,)})


def test_stable_to_unreleased() -> None:
    taken = frozenset({(A, 4)})
    assert step(member(), {A: (1, 2, 3, 4)}, taken=taken) == (
        UNRELEASED,
        6,
        5,
        {A: (1, 2, 3)},
        {},
    )
    assert step(member(), {A: (1, 2, 3, 4, 5)}, taken=taken) == (
        UNRELEASED,
        6,
        5,
        {A: (1, 2, 3, 5)},
        {},
    )


def test_partitions_it_does_not_report_need_no_giving_back() -> None:
    assert step(member(), {A: (2, 3)}, owned={A: (2, 3)}) == (STABLE, 6, 5, {A: (2, 3)}, {})


def test_unrevoked_stays_until_it_has_given_back() -> None:
    before = member(UNREVOKED, assigned={A: (2, 3)}, pending={A: (1,)})
    same = (UNREVOKED, 5, 4, {A: (2, 3)}, {A: (1,)})
    assert step(before, {A: (2, 3)}) == same
    assert step(before, {A: (2, 3)}, owned={A: (1, 2, 3)}) == same
    assert step(before, {A: (2, 3)}, owned={A: (2, 3)}) == (STABLE, 6, 5, {A: (2, 3)}, {})


def test_unrevoked_to_unrevoked_in_the_next_epoch() -> None:
    """The target has moved on by several epochs meanwhile."""
    before = member(UNREVOKED, assigned={A: (2, 3)}, pending={A: (1,)})
    assert step(before, {A: (3,)}, epoch=9, owned={A: (2, 3)}) == (
        UNREVOKED,
        6,
        5,
        {A: (3,)},
        {A: (2,)},
    )


def test_unrevoked_takes_back_what_it_was_to_give() -> None:
    """It is the owner itself of what is pending."""
    before = member(UNREVOKED, assigned={A: (2, 3)}, pending={A: (1,)})
    assert step(before, {A: (1, 2, 3)}, owned={A: (2, 3)}, taken=frozenset({(A, 1)})) == (
        STABLE,
        6,
        5,
        {A: (1, 2, 3)},
        {},
    )


def test_unrevoked_by_subscription_alone_stays_in_its_epoch() -> None:
    before = member(UNREVOKED, assigned={}, pending={A: (1, 2, 3)})
    assert step(before, {}, epoch=5, owned={}) == (STABLE, 5, 5, {}, {})


def test_unreleased_takes_what_became_free() -> None:
    before = member(UNRELEASED, 6)
    assert step(before, {A: (1, 2, 3, 4)}, taken=frozenset({(A, 4)}))[0] is UNRELEASED
    assert step(before, {A: (1, 2, 3, 4)}) == (STABLE, 6, 6, {A: (1, 2, 3, 4)}, {})


def test_unreleased_to_unrevoked() -> None:
    before = member(UNRELEASED, 6)
    assert step(before, {A: (1, 2)}, epoch=7) == (UNREVOKED, 6, 6, {A: (1, 2)}, {A: (3,)})


def test_unsubscribed_topics_are_taken_away_at_once() -> None:
    before = member(assigned={A: (1,), B: (2,)})
    only_a = frozenset((A,))
    assert step(before, {A: (1,), B: (2,)}, epoch=5, subscribed=only_a, changed=True) == (
        UNREVOKED,
        5,
        4,
        {A: (1,)},
        {B: (2,)},
    )
    assert step(
        before, {A: (1,), B: (2,)}, epoch=5, subscribed=only_a, changed=True, owned={A: (1,)}
    ) == (STABLE, 5, 4, {A: (1,)}, {})
    assert step(before, {A: (1,), B: (2,)}, subscribed=only_a)[3:] == ({A: (1,)}, {B: (2,)})


def test_unsubscribed_while_giving_back() -> None:
    before = member(UNREVOKED, assigned={A: (2,), B: (0,)}, pending={A: (1,), B: (3,)})
    assert step(
        before, {}, subscribed=frozenset((A,)), changed=True, owned={A: (1, 2), B: (0, 3)}
    ) == (UNREVOKED, 5, 4, {A: (2,)}, {A: (1,), B: (0, 3)})


def test_nothing_to_take_away_is_nothing_changed() -> None:
    before = member()
    assert step(before, {A: (1, 2, 3)}, epoch=5, changed=True) == (
        STABLE,
        5,
        4,
        before.assigned,
        {},
    )


def test_unknown_state_begins_anew_or_is_fenced() -> None:
    before = member(MemberState.UNKNOWN, assigned={})
    for owned in (None, {A: (1,)}):
        with pytest.raises(ApiError) as fenced:
            step(before, {A: (1,)}, owned=owned)
        assert fenced.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(before, {A: (1,)}, owned={})[:2] == (STABLE, 6)


def test_owning() -> None:
    assert owns_any(None, {})
    assert not owns_any(report({}), {A: (1,)})
    assert not owns_any(report({A: (2,), B: (1,)}), {A: (1,)})
    assert owns_any(report({A: (2, 1)}), {A: (1,)})
    assert not owns_only(None, {A: (1,)})
    assert owns_only(report({}), {})
    assert owns_only(report({A: (1,)}), {A: (1, 2)})
    assert not owns_only(report({A: (3,)}), {A: (1, 2)})
    assert not owns_only(report({B: (1,)}), {A: (1, 2)})


def test_assignments_are_sorted_when_read() -> None:
    assert sorted_assignment({A: (3, 1, 3), B: ()}) == {A: (1, 3)}
