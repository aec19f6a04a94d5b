"""A cluster for `varve cluster reassign` and `remove-broker`: moves end when a test says so."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cli.admin.kafka_library import KafkaError
from protocol.error_codes import ErrorCode


class Partition(NamedTuple):
    """As the library names one."""

    topic: str
    partition: int


class FakeCluster:
    """The admin client's calls, on partitions in memory.

    Attributes:
        moving: Where partitions are going.
        refuses: Error and reason, by partition.
        configs: What is set, by kind and name.
        altered: Names of what settings were changed of, or asked to be.
    """

    def __init__(
        self, replicas: Mapping[Partition, Sequence[int]], brokers: Sequence[int] = (1, 2, 3, 4)
    ) -> None:
        self.replicas = {name: list(nodes) for name, nodes in replicas.items()}
        self.brokers = dict.fromkeys(brokers, False)
        self.moving: dict[Partition, list[int]] = {}
        self.refuses: dict[Partition, tuple[int, str | None]] = {}
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        self.altered: list[str] = []
        self.requests = 0

    def __call__(self, **_settings: Any) -> "FakeCluster":
        return self

    def close(self) -> None:
        pass

    def describe_cluster(self) -> dict[str, Any]:
        return {
            "brokers": [
                {"broker_id": node, "rack": None, "is_fenced": fenced}
                for node, fenced in self.brokers.items()
            ]
        }

    def _shown(self, name: Partition) -> list[int]:
        to = self.moving.get(name, [])
        return [*to, *(node for node in self.replicas[name] if node not in to)]

    def describe_topics(self) -> list[dict[str, Any]]:
        topics: dict[str, list[dict[str, Any]]] = {}
        for name in self.replicas:
            topics.setdefault(name.topic, []).append(
                {"partition_index": name.partition, "replica_nodes": self._shown(name)}
            )
        return [{"name": name, "partitions": found} for name, found in topics.items()]

    def list_partition_reassignments(self) -> dict[Partition, dict[str, list[int]]]:
        return {
            name: {
                "replicas": self._shown(name),
                "adding_replicas": [node for node in to if node not in self.replicas[name]],
                "removing_replicas": [node for node in self.replicas[name] if node not in to],
            }
            for name, to in self.moving.items()
        }

    def reassign(
        self, wanted: Mapping[tuple[str, int], Sequence[int] | None]
    ) -> dict[tuple[str, int], tuple[int, str | None]]:
        self.requests += 1
        refused: dict[tuple[str, int], tuple[int, str | None]] = {}
        for key, replicas in wanted.items():
            name = Partition(*key)
            if name in self.refuses:
                refused[key] = self.refuses[name]
            elif replicas is None:
                del self.moving[name]
            else:
                self.moving[name] = list(replicas)
        return refused

    def arrive(self) -> None:
        """All moves are complete."""
        self.replicas |= self.moving
        self.moving = {}

    def describe_configs(
        self, resources: Sequence[Any], *, config_filter: str
    ) -> dict[str, dict[str, dict[str, dict[str, str]]]]:
        assert config_filter == "all"
        answer: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
        for one in resources:
            kind = one.resource_type.name.lower()
            own = self.configs.get((kind, one.name), {})
            answer.setdefault(kind, {})[one.name] = {
                key: {"config_source": f"DYNAMIC_{kind.upper()}_CONFIG", "value": own[key]}
                if key in own
                else {"config_source": "DEFAULT_CONFIG", "value": ""}
                for key in one.configs
            }
        return answer

    def alter_configs(self, resources: Sequence[Any], *, raise_on_unknown: bool) -> dict[str, Any]:
        assert not raise_on_unknown
        self.altered += [one.name for one in resources]
        answer: dict[str, Any] = {}
        for one in resources:
            kind = one.resource_type.name.lower()
            if kind == "broker" and self.brokers[int(one.name)]:
                # The library asks the broker itself.
                raise KafkaError(one.name)
            own = self.configs.setdefault((kind, one.name), {})
            for key, (_, value) in one.configs.items():
                if value is None:
                    own.pop(key, None)
                else:
                    own[key] = value
            answer.setdefault(kind, {})[one.name] = "OK"
        return answer

    def unregister_broker(self, broker: int) -> tuple[int, str | None]:
        if not self.brokers[broker]:
            return int(ErrorCode.INVALID_REQUEST), "it takes part"
        del self.brokers[broker]
        return 0, None
