"""The assignors by name."""

import pytest

from broker.groups.consumer.assignors.builtin import BUILTIN_ASSIGNORS
from broker.groups.modern.assignor import AssignorError
from tests.unit.broker.groups.consumer.assignors.groups import equal_members, topics


def test_names() -> None:
    """As members ask for them; the default first."""
    assert list(BUILTIN_ASSIGNORS) == ["uniform", "range"]
    assert all(assignor.name == name for name, assignor in BUILTIN_ASSIGNORS.items())


@pytest.mark.parametrize("name", list(BUILTIN_ASSIGNORS))
def test_nobody_and_nothing(name: str) -> None:
    """A group without members, one that subscribed to nothing, one with more members than work."""
    assign = BUILTIN_ASSIGNORS[name].assign
    assert assign({}, topics(3)) == {}
    assert assign(equal_members(2, {}), topics(3)) == {"m0000": {}, "m0001": {}}
    targets = assign(equal_members(3, topics(1)), topics(1))
    assert sorted(map(len, targets.values())) == [0, 0, 1]


@pytest.mark.parametrize("name", list(BUILTIN_ASSIGNORS))
@pytest.mark.parametrize("equal", [True, False])
def test_unknown_topic(name: str, equal: bool) -> None:
    """Whoever resolved the names left out topics that do not exist."""
    members = equal_members(2, topics(1, 1))
    if not equal:
        members["m0001"] = members["m0001"]._replace(subscribed_topic_ids=frozenset())
    with pytest.raises(AssignorError):
        BUILTIN_ASSIGNORS[name].assign(members, topics(1))
