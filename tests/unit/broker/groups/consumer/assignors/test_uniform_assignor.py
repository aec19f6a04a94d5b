"""Which of the two ways a group is assigned."""

from hypothesis import given

from broker.groups.consumer.assignors.uniform_assignor import UniformAssignor
from broker.groups.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from broker.groups.consumer.assignors.uniform_homogeneous import assign_homogeneous
from broker.groups.modern.assignor import Members, Topics
from tests.unit.broker.groups.consumer.assignors.groups import (
    ANY_SPEED,
    equal_members,
    groups,
    topics,
)

ASSIGN = UniformAssignor().assign


@ANY_SPEED
@given(groups(equal=True))
def test_equal_subscriptions(group: tuple[Members, Topics]) -> None:
    """Compared by what they hold: sets of other kinds too."""
    members, specs = group
    wanted = next(iter(members.values())).subscribed_topic_ids
    copies = {
        member_id: spec._replace(subscribed_topic_ids=set(spec.subscribed_topic_ids))
        for member_id, spec in members.items()
    }
    assert ASSIGN(copies, specs) == assign_homogeneous(members, wanted, specs)


def test_different_subscriptions() -> None:
    """One member that wants less is enough."""
    specs = topics(9, 4)
    members = equal_members(4, specs)
    members["m0002"] = members["m0002"]._replace(
        subscribed_topic_ids=frozenset(list(specs)[:1]),
    )
    assert ASSIGN(members, specs) == assign_heterogeneous(members, specs)
