"""Plans of reassignments: few moves, even loads, racks apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.cluster.reassignment_plan import Name, Placement, PlanError
from tests.effort import examples

NO_RACKS: dict[int, str | None] = {1: None, 2: None, 3: None, 4: None}


def placed(*replicas: tuple[int, ...], racks: dict[int, str | None] | None = None) -> Placement:
    return Placement(
        {("t", index): one for index, one in enumerate(replicas)},
        NO_RACKS if racks is None else racks,
    )


def names(placement: Placement) -> list[Name]:
    return list(placement.replicas)


def test_a_drained_broker_has_nothing_and_the_others_stay_where_they_are() -> None:
    """Who comes takes the place of who goes."""
    placement = placed((1, 2, 3), (2, 3, 1), (3, 1, 4))
    placement.drain(names(placement), (2,))
    assert list(placement.replicas.values()) == [(1, 4, 3), (4, 3, 1), (3, 1, 4)]


def test_a_drain_without_room_is_refused_and_names_the_way_out() -> None:
    placement = placed((1, 2, 3), racks={1: None, 2: None, 3: None})
    with pytest.raises(PlanError, match=r"no other broker .*--replication-factor 2 --execute"):
        placement.drain(names(placement), (2,))
    alone = placed((1,), racks={1: None})
    with pytest.raises(PlanError, match=r"there is no other broker for one$"):
        alone.drain(names(alone), (1,))


def test_a_new_broker_gets_its_share() -> None:
    placement = placed(*[(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 4)
    placement.add(names(placement), (4,))
    assert placement.load(NO_RACKS) == {1: 9, 2: 9, 3: 9, 4: 9}


def test_a_broker_that_is_not_up_gets_nothing() -> None:
    placement = placed((1, 2))
    with pytest.raises(PlanError, match="broker 9 is not there"):
        placement.add(names(placement), (9,))


def test_more_and_fewer_replicas() -> None:
    placement = placed((1,), (2, 3, 4))
    placement.resize(names(placement), 2)
    assert [len(one) for one in placement.replicas.values()] == [2, 2]
    assert placement.replicas["t", 1] == (2, 3)
    with pytest.raises(PlanError):
        placement.resize(names(placement), 5)


def test_of_replicas_that_are_too_many_those_go_first_whose_broker_is_away() -> None:
    """It may be gone for good: what is left would wait for it. The order of the others stays."""
    placement = placed((3, 1, 2), (1, 3, 2), (2, 1, 3), racks={1: None, 2: None})
    placement.resize(names(placement), 2)
    assert list(placement.replicas.values()) == [(1, 2), (1, 2), (2, 1)]
    placement = placed((3, 2, 1), racks={1: None, 2: None})
    placement.resize(names(placement), 1)
    assert placement.replicas["t", 0] == (2,)


def test_racks_stay_apart() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}
    placement = placed((1, 2), (1, 2), (1, 2), racks=racks)
    placement.drain(names(placement), (2,))
    assert set(placement.replicas.values()) == {(1, 4)}
    placement.add(names(placement), (3,))
    assert all({racks[node] for node in one} == {"a", "b"} for one in placement.replicas.values())


NODES = st.integers(1, 6)
REPLICAS = st.lists(NODES, min_size=1, max_size=3, unique=True).map(tuple)


@given(st.lists(REPLICAS, max_size=20), st.sets(NODES, max_size=3), NODES)
@examples(200)
def test_plans_keep_the_number_of_replicas_and_name_each_broker_once(
    replicas: list[tuple[int, ...]], gone: set[int], added: int
) -> None:
    """And what is done twice changes nothing the second time."""
    placement = placed(*replicas, racks=dict.fromkeys(range(1, 7)))
    placement.drain(names(placement), gone)
    once = dict(placement.replicas)
    for before, after in zip(replicas, once.values(), strict=True):
        assert len(after) == len(set(after)) == len(before)
        assert not gone & set(after)
    placement.drain(names(placement), gone)
    assert placement.replicas == once
    placement.add(names(placement), (added,))
    assert all(len(one) == len(set(one)) for one in placement.replicas.values())
    load = placement.load(range(1, 7))
    placement.add(names(placement), (added,))
    assert abs(placement.load(range(1, 7))[added] - load[added]) <= 1
