"""Who is hit by a fault, and what its figures are."""

from pathlib import Path

import pytest

from bench.cluster.cluster import Cluster
from bench.cluster.failover import FAULTS, choose_roles, quantile
from bench.failover import can_strike
from bench.node import NodeError, OwnedNode


class Controlled(Cluster):
    """A cluster whose controller is known."""

    def __init__(self, directory: Path, controller: int) -> None:
        super().__init__({n: OwnedNode(directory / f"{n}") for n in (1, 2, 3)})
        self._controller = controller

    def controller_id(self) -> int:
        return self._controller


@pytest.mark.parametrize("controller", [1, 2, 3])
def test_leader_is_the_controller_only_where_the_fault_says_so(
    tmp_path: Path, controller: int
) -> None:
    cluster = Controlled(tmp_path, controller)
    for fault in FAULTS:
        roles = choose_roles(cluster, fault)
        assert (roles.leader == controller) is fault.leader_is_controller
        assert sorted([roles.leader, *roles.followers]) == [1, 2, 3]


def test_without_a_controller_nothing_is_measured(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="no controller"):
        choose_roles(Controlled(tmp_path, -1), FAULTS[0])


def test_quantiles_are_values_that_were_seen() -> None:
    values = [float(n) for n in range(20, 0, -1)]
    assert quantile(values, 0.95) == 19
    assert quantile(values, 0.5) == 10
    assert quantile([3.0], 0.95) == 3


def test_a_network_is_cut_where_there_is_one_to_cut() -> None:
    """Proxies stand between our brokers only, and have no link to take down."""
    by_name = {fault.name: fault for fault in FAULTS}
    killed, cut, unplugged, store = (
        by_name[name]
        for name in (
            "kill -9 leader",
            "leader cut off",
            "leader unplugged",
            "leader cut off from store",
        )
    )
    assert [can_strike(killed, "kafka", has) for has in (False, True)] == [True, True]
    assert [can_strike(cut, "varve", has) for has in (False, True)] == [True, True]
    assert [can_strike(cut, "kafka", has) for has in (False, True)] == [False, True]
    assert [can_strike(unplugged, "varve", has) for has in (False, True)] == [False, True]
    assert [can_strike(store, "kafka", has) for has in (False, True)] == [False, False]
