"""What a coordinator says of itself is what its runtime says, at every step of a shard's life."""

import pytest

from broker.coordinator.topic_coordinator import TopicCoordinator
from protocol.error_codes import ErrorCode as E
from tests.harness.coordinator import RuntimeHarness

EPOCH = 3


async def test_from_the_election_to_the_resignation() -> None:
    h = RuntimeHarness()
    coordinator = TopicCoordinator(h.runtime)
    assert not coordinator.is_running
    coordinator.on_elected(0, EPOCH)
    assert coordinator.is_loading
    assert coordinator.is_reading
    await h.start(elect=False)
    await h.settle()
    assert coordinator.is_running
    assert not coordinator.is_loading
    assert not coordinator.is_reading
    assert not coordinator.is_in_doubt
    assert coordinator.waiting_count == 0
    assert not coordinator.unavailable
    assert h.put("a", b"1") == [E.NONE]
    coordinator.on_resigned(0, EPOCH + 1)
    assert h.put("a", b"2") == [E.NOT_COORDINATOR]
    await h.runtime.stop()
    assert not coordinator.is_running


@pytest.mark.parametrize("key", ["a", "b", "c"])
async def test_the_topic_and_the_partition_of_a_key(key: str) -> None:
    h = await RuntimeHarness(2).start()
    coordinator = TopicCoordinator(h.runtime)
    await coordinator.ensure_topic()
    assert coordinator.partition_for(key) == h.runtime.partition_for(key)
    await h.runtime.stop()
