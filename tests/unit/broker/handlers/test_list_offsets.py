"""ListOffsets: ends, times, and versions that do not know them yet."""

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.handlers import list_offsets
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.fakes.broker.controller import context_of
from tests.unit.broker.replicas.test_delayed_remote_fetch import TIERED, tiered
from tests.unit.broker.world import NODE_ID, World, batch
from tiered.errors import StoreUnavailableError

T0 = 1_700_000_000_000


async def ask(world: World, timestamp: int, version: int = 11, **options: Any) -> Any:
    wanted = ListOffsetsPartition(
        partition_index=0,
        timestamp=timestamp,
        current_leader_epoch=options.pop("current_leader_epoch", -1),
    )
    message = ListOffsetsRequest(
        replica_id=options.pop("replica_id", -1),
        topics=[ListOffsetsTopic(name="t", partitions=[wanted])],
        **options,
    )
    world.send(ApiKey.LIST_OFFSETS, version, message)
    await world.until(lambda: world.has_answer)
    (topic,) = world.answer(ApiKey.LIST_OFFSETS, version).topics
    (partition,) = topic.partitions
    return partition


async def fill(world: World) -> Any:
    partition = world.add("t")
    for i, ms in enumerate((T0, T0 + 30, T0 + 20)):
        partition.append(memoryview(batch(b"%d" % i, timestamp_ms=ms)), world.clock.now_ms())
    return partition


@pytest.mark.parametrize("version", range(1, 12))
async def test_ends(world: World, version: int) -> None:
    partition = await fill(world)
    partition.log.delete_records(1)
    latest = await ask(world, -1, version)
    assert (latest.error_code, latest.offset, latest.timestamp) == (0, 3, -1)
    earliest = await ask(world, -2, version)
    assert (earliest.error_code, earliest.offset) == (0, 1)


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [(T0 - 1, 0, T0), (T0, 0, T0), (T0 + 1, 1, T0 + 30), (T0 + 30, 1, T0 + 30), (T0 + 31, -1, -1)],
)
async def test_the_first_record_at_or_after_a_time(
    world: World, timestamp: int, offset: int, found: int
) -> None:
    await fill(world)
    answer = await ask(world, timestamp)
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, found)


async def test_the_record_with_the_largest_timestamp(world: World) -> None:
    await fill(world)
    answer = await ask(world, -3)
    assert (answer.offset, answer.timestamp) == (1, T0 + 30)
    assert (await ask(world, -3, version=6)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_nothing_is_tiered(world: World) -> None:
    await fill(world)
    assert (await ask(world, -4, 8)).offset == 0
    assert (await ask(world, -5, 9)).offset == -1
    assert (await ask(world, -6, 11)).offset == -1
    assert (await ask(world, -6, 10)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_log_without_its_remote_part_begins_where_it_can_be_read(world: World) -> None:
    """A broker without remote storage: a consumer that is sent below would be sent there again."""
    partition = await fill(world)
    log = partition.log
    log.durable_remote_offset = 2
    log.writer.roll()
    log.update_config(log.config.model_copy(update={"retention_bytes": 0}))
    assert log.retention.delete_old_segments() > 0
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 3)
    assert (await ask(world, -2)).offset == 3


async def test_read_committed_ends_at_the_open_transaction(world: World) -> None:
    partition = await fill(world)
    data = batch(b"open", transactional=True, producer_id=9, producer_epoch=0, base_sequence=0)
    partition.append(memoryview(data), world.clock.now_ms())
    assert (await ask(world, -1, isolation_level=1)).offset == 3
    assert (await ask(world, -1, isolation_level=0)).offset == 4


async def test_a_replica_that_does_not_lead_compares_the_epoch_first(world: World) -> None:
    world.replicas.is_known = lambda topic, index: topic == "t"
    partition = world.add("t")
    world.replicas.stop_leading(partition)
    partition.leader_epoch = 3
    found = [await ask(world, -1, current_leader_epoch=epoch) for epoch in (-1, 2, 3, 4)]
    assert [answer.error_code for answer in found] == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]


async def test_unknown_partitions_and_epochs(world: World) -> None:
    assert (await ask(world, -1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await fill(world)
    answer = await ask(world, -1, current_leader_epoch=9)
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def of_new_leader(world: World) -> Any:
    """A partition with three records, of which one is known to be committed."""
    partition = await fill(world)
    partition.log.high_watermark = 1
    replicas = (NODE_ID, 2, 3)
    partition.become_leader(PartitionImage(0, NODE_ID, 1, 0, replicas, replicas), now_ms=0.0)
    return partition


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)]
)
async def test_a_new_leader_names_no_end_below_what_was_committed(
    world: World, version: int, code: ErrorCode
) -> None:
    """Its predecessor may have shown all three to consumers (KIP-207)."""
    partition = await of_new_leader(world)
    assert (await ask(world, -1, version)).error_code == code
    assert (await ask(world, T0 + 20, version)).error_code == code
    # What is known to be committed has been so all the time.
    assert (await ask(world, -2, version)).offset == 0
    assert (await ask(world, T0, version)).offset == 0
    partition.log.update_high_watermark(3)
    assert (await ask(world, -1, version)).offset == 3
    assert (await ask(world, T0 + 31, version)).offset == -1


async def test_followers_get_the_log_end(world: World) -> None:
    """Also before anything of it is committed."""
    await of_new_leader(world)
    answer = await ask(world, -1, replica_id=2)
    assert (answer.error_code, answer.offset) == (0, 3)


async def test_a_follower_answers_the_debugging_replica_alone(world: World) -> None:
    partition = await fill(world)
    partition.become_follower(2, 5)
    world.replicas.stop_leading(partition)
    world.replicas.is_known = lambda _topic, _index: True
    for replica_id in (-1, 3):
        answer = await ask(world, -1, replica_id=replica_id)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer = await ask(world, -1, replica_id=-2)
    assert (answer.error_code, answer.offset) == (0, 3)


async def test_both_tiers_have_their_ends(world: World) -> None:
    """-2 to -6 over a log whose first five records are in remote storage only."""
    tiered(world)
    log = world.replicas.replica_of("t", 0).log  # type: ignore[union-attr]  # why: just added
    assert (await ask(world, -2)).offset == 0
    assert (await ask(world, -4)).offset == log.local_log_start_offset == 6
    assert (await ask(world, -5)).offset == log.highest_remote_offset == 5
    assert (await ask(world, -6)).offset == 6
    log.highest_remote_offset = -1
    assert (await ask(world, -5)).offset == -1
    assert (await ask(world, -6)).offset == -1


async def test_without_remote_storage_nothing_is_in_it(world: World) -> None:
    """It was switched off: as Kafka, which asks the topic's settings."""
    tiered(world)
    partition: Any = world.replicas.replica_of("t", 0)
    config = partition.log.config
    partition.log.update_config(config.model_copy(update={"remote_storage_enable": False}))
    assert partition.log.highest_remote_offset == 5
    assert (await ask(world, -5)).offset == -1
    assert (await ask(world, -6)).offset == -1


async def test_nothing_copied_yet_is_pending_from_the_start(world: World) -> None:
    partition = world.add("t", config=TIERED)
    partition.append(memoryview(batch(b"x")), world.clock.now_ms())
    assert (await ask(world, -6)).offset == 0
    assert (await ask(world, -5)).offset == -1


@pytest.mark.parametrize(("timestamp", "offset"), [(T0 - 1, 0), (T0, 0), (T0 + 1, -1)])
async def test_times_are_found_in_remote_storage_first(
    world: World, timestamp: int, offset: int
) -> None:
    tiered(world)
    assert (await ask(world, timestamp)).offset == offset


async def test_a_time_beyond_the_remote_part_is_found_here(world: World) -> None:
    tiered(world)
    partition: Any = world.replicas.replica_of("t", 0)
    partition.append(memoryview(batch(b"new", timestamp_ms=T0 + 50)), world.clock.now_ms())
    found = await ask(world, T0 + 1)
    assert (found.offset, found.timestamp) == (6, T0 + 50)
    assert (await ask(world, -3)).offset == 6
    partition.append(memoryview(batch(b"old", timestamp_ms=T0 - 50)), world.clock.now_ms())
    assert (await ask(world, T0 - 50)).offset == 0


async def test_a_store_that_hangs_costs_the_request_its_time_and_nobody_else_theirs(
    world: World,
) -> None:
    reader: Any = tiered(world)

    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    reader.find_timestamp = hang
    answer = await ask(world, T0, timeout_ms=20)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert world.services.lookups.expired == 1
    world.services.lookups.timeout_ms = 20
    assert (await ask(world, T0)).error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_trouble_with_the_store_is_the_partitions_error(world: World) -> None:
    tiered(world).failure = StoreUnavailableError("503")
    assert (await ask(world, T0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("timestamp", [-5, -6])
async def test_what_is_tiered_is_waited_for_while_metadata_is_read(
    world: World, timestamp: int
) -> None:
    """Not known yet is not the same as nothing."""
    tiered(world)
    log = world.replicas.replica_of("t", 0).log  # type: ignore[union-attr]  # why: just added
    log.highest_remote_offset = -1
    known = asyncio.Event()

    async def settled(_partition: Any) -> None:
        await known.wait()
        log.highest_remote_offset = 5

    world.services.remote = SimpleNamespace(is_settled=lambda _: False, settled=settled)
    asking = asyncio.ensure_future(ask(world, timestamp))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not world.has_answer
    known.set()
    assert (await asking).offset == (5 if timestamp == -5 else 6)


async def test_a_request_that_is_refused_leaves_nothing_behind(world: World) -> None:
    """No look-up has been begun that nobody will end (warnings are errors here)."""
    tiered(world)
    world.services.lookups.capacity = 0
    wanted = ListOffsetsPartition(partition_index=0, timestamp=T0)
    topics = [ListOffsetsTopic(name="t", partitions=[wanted])]
    world.send(ApiKey.LIST_OFFSETS, 11, ListOffsetsRequest(replica_id=-1, topics=topics))
    gc.collect()
    assert world.services.lookups.refused == 1


class Name(str):
    """Tells how often names are compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def ends_of(world: World, names: list[Name]) -> ListOffsetsResponse:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
            for name in names
        ],
    )
    services: Any = world.services
    answer = list_offsets.handle(services, context_of(ApiKey.LIST_OFFSETS, 11), request)
    assert isinstance(answer, ListOffsetsResponse)
    return answer


@pytest.mark.parametrize("count", [2, 900, 5_000])
async def test_partitions_named_twice_are_refused_in_a_request_of_any_size(
    world: World, count: int
) -> None:
    """Each of the two; the others are answered."""
    world.add("t")
    topics = ends_of(world, [*(Name(f"x{n}") for n in range(count)), Name("x1"), Name("t")]).topics
    codes = [topic.partitions[0].error_code for topic in topics]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    expected = [unknown] * count + [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    expected[1] = ErrorCode.INVALID_REQUEST
    assert codes == expected


async def test_looking_for_them_is_linear(world: World) -> None:
    """A few comparisons a partition, not one with every other."""
    Name.compared = 0
    ends_of(world, [Name(f"x{n}") for n in range(999)])
    assert Name.compared < 10 * 999
