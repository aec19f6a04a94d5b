"""The library's admin client, as far as a cluster's description goes."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any


def partition(
    index: int, leader: int, replicas: Sequence[int], isr: Sequence[int]
) -> dict[str, Any]:
    """A partition as Metadata has it."""
    return {
        "partition_index": index,
        "leader_id": leader,
        "replica_nodes": list(replicas),
        "isr_nodes": list(isr),
    }


class FakeAdmin:
    """Brokers with whether they are fenced, topics with partitions and their least in sync."""

    def __init__(
        self,
        *,
        brokers: Mapping[int, bool],
        topics: Mapping[str, list[dict[str, Any]]],
        min_isr: Mapping[str, int],
        controller: int = 1,
    ) -> None:
        self._brokers, self._topics, self._min_isr = brokers, topics, min_isr
        self._controller = controller
        self.asked_configs: list[str] = []
        self.elections: list[dict[str, list[int]]] = []
        self.election_answer: Any = SimpleNamespace(replica_election_results=[])

    def describe_cluster(self) -> dict[str, Any]:
        return {
            "cluster_id": "an-id",
            "controller_id": self._controller,
            "brokers": [
                {"broker_id": n, "host": "h", "port": 9000 + n, "rack": None, "is_fenced": fenced}
                for n, fenced in reversed(list(self._brokers.items()))
            ],
        }

    def describe_topics(self) -> list[dict[str, Any]]:
        return [{"name": name, "partitions": found} for name, found in self._topics.items()]

    def describe_configs(
        self, resources: Sequence[Any], *, config_filter: str
    ) -> dict[str, dict[str, Any]]:
        assert config_filter == "all"
        self.asked_configs = [resource.name for resource in resources]
        return {
            "topic": {
                name: {"min.insync.replicas": {"value": str(self._min_isr[name])}}
                for name in self.asked_configs
            }
        }

    def elect_leaders(
        self, election_type: int, asked: dict[str, list[int]], *, raise_errors: bool
    ) -> Any:
        assert (election_type, raise_errors) == (0, False)
        self.elections.append(asked)
        return self.election_answer

    def close(self) -> None:
        pass
