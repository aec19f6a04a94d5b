"""Actions on brokers, their settings and the replicas they hold; see `actions`.

Source: Kafka, storage/src/test/java/org/apache/kafka/tiered/storage/actions.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.system.tiered.context import Context
from tests.system.tiered.topic_actions import check, until_led

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1


@dataclass(frozen=True, slots=True)
class StopBroker:
    """As an operator does; nobody asks it anything any more."""

    broker: int

    async def run(self, context: Context) -> None:
        await asyncio.to_thread(context.cluster.stop, self.broker)


@dataclass(frozen=True, slots=True)
class StartBroker:
    """Until every partition of the scenario is led again, if all brokers run."""

    broker: int

    async def run(self, context: Context) -> None:
        await asyncio.to_thread(context.cluster.start, self.broker)
        for plan in context.topics.values():
            for partition in range(plan.partitions):
                await until_led(context, plan.name, partition)


@dataclass(frozen=True, slots=True)
class BounceBroker:
    """Stop, then start."""

    broker: int

    async def run(self, context: Context) -> None:
        await StopBroker(self.broker).run(context)
        await StartBroker(self.broker).run(context)


@dataclass(frozen=True, slots=True)
class EraseBrokerStorage:
    """Remove files of a stopped broker from its log directories, by name; folders whole."""

    broker: int
    matches: Callable[[str], bool]

    async def run(self, context: Context) -> None:
        assert self.broker not in context.cluster.living(), "it is still running"
        erased = 0
        for log_dir in context.cluster.log_dirs(self.broker):
            for path in log_dir.iterdir():
                if self.matches(path.name):
                    erased += 1
                    if path.is_dir():
                        await asyncio.to_thread(shutil.rmtree, path)
                    else:
                        path.unlink()
        assert erased, "nothing matched"


@dataclass(frozen=True, slots=True)
class UpdateBrokerConfig:
    """Settings of one running broker."""

    broker: int
    set: Mapping[str, str]
    unset: Sequence[str] = ()

    async def run(self, context: Context) -> None:
        name = str(context.cluster.node_id(self.broker))
        await _alter(context, BROKER_RESOURCE, name, self.set, self.unset)


@dataclass(frozen=True, slots=True)
class UpdateTopicConfig:
    """Settings of a topic."""

    topic: str
    set: Mapping[str, str]
    unset: Sequence[str] = ()

    async def run(self, context: Context) -> None:
        await _alter(context, TOPIC_RESOURCE, self.topic, self.set, self.unset)
        plan = context.topics[self.topic]
        enabled = self.set.get("remote.storage.enable")
        if enabled is not None:
            plan.tiered = enabled == "true"


async def _alter(
    context: Context, kind: int, name: str, values: Mapping[str, str], unset: Sequence[str]
) -> None:
    configs = [
        AlterableConfig(name=k, config_operation=SET, value=v) for k, v in values.items()
    ] + [AlterableConfig(name=k, config_operation=DELETE, value=None) for k in unset]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = (await (await context.client()).call(request)).responses
    check(result.error_code, result.error_message)


async def reassign(context: Context, topic: str, partition: int, brokers: Sequence[int]) -> None:
    wanted = [context.cluster.node_id(broker) for broker in brokers]
    change = ReassignablePartition(partition_index=partition, replicas=wanted)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=[ReassignableTopic(name=topic, partitions=[change])]
    )
    answer = await (await context.client()).call(request)
    check(answer.error_code, answer.error_message)
    result = answer.responses[0].partitions[0]
    check(result.error_code, result.error_message)

    async def done() -> None:
        found = await context.partition(topic, partition)
        assert found.replica_nodes == wanted, f"replicas are {found.replica_nodes}"

    await context.eventually(done)


@dataclass(frozen=True, slots=True)
class ReassignReplica:
    """Give a partition these replicas, the first preferred."""

    topic: str
    partition: int
    brokers: Sequence[int]

    async def run(self, context: Context) -> None:
        await reassign(context, self.topic, self.partition, self.brokers)


@dataclass(frozen=True, slots=True)
class ShrinkReplica:
    """Leave a partition only those of its replicas that are named."""

    topic: str
    partition: int
    brokers: Sequence[int]

    async def run(self, context: Context) -> None:
        now = (await context.partition(self.topic, self.partition)).replica_nodes
        kept = [b for b in self.brokers if context.cluster.node_id(b) in now]
        await reassign(context, self.topic, self.partition, kept)


@dataclass(frozen=True, slots=True)
class AlterLogDir:
    """Move a replica to the broker's other log directory, and wait until it is there."""

    topic: str
    partition: int
    broker: int

    async def run(self, context: Context) -> None:
        cluster = context.cluster
        source = cluster.partition_directory(self.broker, self.topic, self.partition)
        assert source is not None, "no replica there"
        (target,) = (d for d in cluster.log_dirs(self.broker) if d != source.parent)
        topic = AlterReplicaLogDirTopic(name=self.topic, partitions=[self.partition])
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=str(target), topics=[topic])]
        )
        answer = await (await context.client(self.broker)).call(request)
        check(answer.results[0].partitions[0].error_code, None)

        async def moved() -> None:
            assert (target / source.name).is_dir()
            assert not source.is_dir()

        await context.eventually(moved)
