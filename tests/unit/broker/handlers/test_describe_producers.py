"""DescribeProducers: what a log remembers of those who wrote to it."""

from typing import Any

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from storage.types.append_origin import AppendOrigin
from tests.unit.broker.world import World, batch


def ask(world: World, **topics: list[int]) -> dict[str, list[Any]]:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=found) for name, found in topics.items()]
    )
    answer = world.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request)
    return {topic.name: topic.partitions for topic in answer.topics}


def write(world: World, index: int, *values: bytes, **options: Any) -> None:
    partition = world.replicas.replica_of("t", index)
    assert partition is not None
    records = memoryview(batch(*values, **options))
    partition.append(records, world.clock.now_ms(), AppendOrigin.COORDINATOR)


async def test_idempotent_producers(world: World) -> None:
    """Last sequence and time of each; those without an id are nobody."""
    world.add("t")
    write(world, 0, b"anonymous")
    write(world, 0, b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=0)
    stamp = 1_700_000_000_500
    write(world, 0, b"c", producer_id=7, producer_epoch=3, base_sequence=2, timestamp_ms=stamp)
    write(world, 0, b"d", producer_id=9, producer_epoch=0, base_sequence=0)
    (partition,) = ask(world, t=[0])["t"]
    found = {
        p.producer_id: (
            p.producer_epoch,
            p.last_sequence,
            p.last_timestamp,
            p.coordinator_epoch,
            p.current_txn_start_offset,
        )
        for p in partition.active_producers
    }
    assert partition.error_code == 0
    assert found == {7: (3, 2, stamp, -1, -1), 9: (0, 0, 1_700_000_000_000, -1, -1)}


async def test_an_open_transaction_shows_where_it_began(world: World) -> None:
    """That is how a hanging one is found (KIP-664)."""
    world.add("t")
    write(world, 0, b"before")
    write(world, 0, b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    (partition,) = ask(world, t=[0])["t"]
    assert [p.current_txn_start_offset for p in partition.active_producers] == [1]


async def test_every_partition_is_answered(world: World) -> None:
    """In the order asked; those that are not here with their error."""
    world.add("t", 0)
    world.add("t", 1)
    write(world, 1, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    answers = ask(world, t=[1, 5, 0], absent=[0])
    told = [(p.partition_index, p.error_code, len(p.active_producers)) for p in answers["t"]]
    assert told == [(1, 0, 1), (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0), (0, 0, 0)]
    (absent,) = answers["absent"]
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_name_that_no_topic_can_have_is_said_to_be_one(world: World) -> None:
    """Nobody asks again for it."""
    answers = ask(world, **{"a b": [0, 5], "": [0]})
    codes = [p.error_code for partitions in answers.values() for p in partitions]
    assert codes == 3 * [ErrorCode.INVALID_TOPIC_EXCEPTION]


async def test_a_partition_in_recovery_is_worth_a_retry(world: World) -> None:
    """It exists, it is only not served yet."""
    world.replicas.is_known = lambda _topic, _index: True
    (partition,) = ask(world, t=[0])["t"]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_follower_answers_for_its_own_log(world: World) -> None:
    """Producers of all replicas are compared to find out where a transaction hangs."""
    partition = world.add("t")
    write(world, 0, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    partition.become_follower(2, 5)
    world.replicas.stop_leading(partition)
    (answer,) = ask(world, t=[0])["t"]
    assert (answer.error_code, [p.producer_id for p in answer.active_producers]) == (0, [7])
