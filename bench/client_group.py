"""A hundred librdkafka consumers of one group, in one process: the start of a fleet.

The raw members of `bench.group_members` show the coordinator alone. Real clients bring what comes
with them: metadata, ApiVersions, offset fetches and a waiting Fetch for every partition, and they
start as fast as their own machine lets them, so the group grows while it rebalances.
"""

import time
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition

from bench.generator import GeneratorError
from bench.process import cpu_seconds


@dataclass(slots=True)
class ClientGroupResult:
    """Seconds until every partition is owned once and every consumer owns its share."""

    join_s: float
    leave_s: float
    broker_cpu_s: float
    generator_busy: float


class _Group:
    def __init__(self, address: str, topic: str, partitions: int, group: str) -> None:
        self.settings = {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "log_level": 0,
        }
        self.topic, self.partitions = topic, partitions
        self.owned: list[set[int]] = []
        self.consumers: list[Consumer] = []

    def add(self) -> None:
        index = len(self.consumers)
        self.owned.append(set())

        def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self.owned[index] = {p.partition for p in partitions}
            consumer.assign(partitions)

        def on_revoke(consumer: Consumer, _partitions: list[TopicPartition]) -> None:
            self.owned[index] = set()
            consumer.unassign()

        consumer = Consumer({**self.settings, "client.id": f"member-{index}"})
        consumer.subscribe([self.topic], on_assign=on_assign, on_revoke=on_revoke)
        self.consumers.append(consumer)

    def is_balanced(self) -> bool:
        share = self.partitions // len(self.consumers)
        total = sum(map(len, self.owned))
        return (
            total == self.partitions
            and len(set().union(*self.owned)) == self.partitions
            and all(len(owned) >= share for owned in self.owned)
        )

    def wait(self, timeout_s: float = 180.0) -> float:
        begin = time.perf_counter()
        while not self.is_balanced():
            if time.perf_counter() - begin > timeout_s:
                raise GeneratorError(f"not balanced after {timeout_s} s")
            for consumer in self.consumers:
                message = consumer.poll(0)
                error = message.error() if message is not None else None
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise GeneratorError(str(error))
            time.sleep(0.01)
        return time.perf_counter() - begin


def join_clients(
    address: str, pid: int, topic: str, partitions: int, members: int
) -> ClientGroupResult:
    """Start `members` consumers, wait until they share the topic, then let one leave."""
    group = _Group(address, topic, partitions, f"clients-{topic}")
    cpu_before, own_before = cpu_seconds(pid), time.process_time()
    begin = time.perf_counter()
    for _ in range(members):
        group.add()
    group.wait()
    join_s = time.perf_counter() - begin
    busy = (time.process_time() - own_before) / join_s
    cpu = cpu_seconds(pid) - cpu_before
    begin = time.perf_counter()
    group.consumers.pop().close()
    group.owned.pop()
    group.wait()
    leave_s = time.perf_counter() - begin
    # Closing a hundred consumers properly takes longer than all of this; they end with the process.
    return ClientGroupResult(join_s, leave_s, cpu, busy)
