"""Which open transactions are called hanging."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.hanging_transactions import PARTITIONS_PER_REQUEST, find_hanging, open_transactions

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PID = 7


def producer(start_offset: int = 40, *, last_timestamp: int = 0) -> SimpleNamespace:
    return SimpleNamespace(
        producer_id=PID,
        producer_epoch=3,
        coordinator_epoch=2,
        current_transaction_start_offset=start_offset,
        last_timestamp=last_timestamp,
    )


@dataclass
class Brokers:
    """One producer, what logs say of it, and what its coordinator says."""

    producers: list[SimpleNamespace] = field(default_factory=lambda: [producer()])
    state: str | None = None
    partitions: set[TopicPartition] = field(default_factory=set)
    asked: int = 0

    def describe_producers(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Any]:
        self.asked += 1
        return {where: SimpleNamespace(active_producers=self.producers) for where in partitions}

    def list_transactions(self, *, producer_id_filters: list[int]) -> dict[int, list[Any]]:
        assert producer_id_filters == [PID]
        known = [SimpleNamespace(producer_id=PID, transactional_id="tx")]
        return {1: known if self.state is not None else [], 2: []}

    def describe_transactions(self, names: list[str]) -> dict[str, Any]:
        assert names == ["tx"]
        return {"tx": SimpleNamespace(state=self.state, topic_partitions=self.partitions)}


def hangs(brokers: Brokers) -> bool:
    return bool(find_hanging(brokers, [T0], now_ms=1_001, timeout_ms=1_000))


@pytest.mark.parametrize(
    ("state", "partitions", "hanging"),
    [
        (None, set(), True),
        ("Empty", {T0}, True),
        ("CompleteCommit", {T0}, True),
        ("CompleteAbort", set(), True),
        ("Ongoing", {T1}, True),
        ("Ongoing", {T0, T1}, False),
        ("PrepareCommit", {T0}, False),
        ("PrepareAbort", {T0}, False),
        ("PrepareEpochFence", {T0}, False),
    ],
)
def test_nobody_will_end_it(
    state: str | None, partitions: set[TopicPartition], hanging: bool
) -> None:
    """Unless the coordinator has a transaction under way there."""
    assert hangs(Brokers(state=state, partitions=partitions)) is hanging


def test_only_what_is_silent_for_long() -> None:
    """Others may still be ended in their time."""
    assert hangs(Brokers([producer(last_timestamp=0)]))
    assert not hangs(Brokers([producer(last_timestamp=1)]))
    assert not hangs(Brokers([producer(-1)]))


def test_many_partitions_are_asked_for_in_parts() -> None:
    """A cluster may have thousands."""
    brokers = Brokers()
    partitions = [TopicPartition("t", index) for index in range(PARTITIONS_PER_REQUEST + 1)]
    found = list(open_transactions(brokers, partitions))
    assert [one.partition for one in found] == list(range(PARTITIONS_PER_REQUEST + 1))
    assert brokers.asked == 2
